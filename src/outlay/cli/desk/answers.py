"""What each question of the desk is answered with: the same records that the commands print with --json."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..flags import Given
from . import first, written
from .run_files import check, content_of, fix
from .words import command_of, given_of

if TYPE_CHECKING:
    from ...search.progress import Progress
    from ..drawing import Drawn

Record = dict[str, Any]
Question = Mapping[str, Any]  # words, and maybe config, file, other
MOST_OPERATIONS = 200_000


def answer(command: str, question: Question, progress: "Progress | None" = None) -> Record:
    """The record of one question. Raises InputError."""
    if command == "plan":
        return _plan(question, progress)
    own = OWN.get(command)
    return own(question) if own else _told(command, _given(command, question))


def _given(command: str, question: Question) -> Given:
    return given_of(command, question.get("words") or {}, question.get("config"))


def _told(command: str, given: Given) -> Record:
    record: Record = command_of(command).answer(given).record()
    return record


def _plan(question: Question, progress: "Progress | None") -> Record:
    from ..planning import searched
    from ..searching import read_search

    given = _given("plan", question)
    return searched(read_search(given), progress, given.on("simulate")).record()


def _advice(question: Question) -> Record:
    given = _given("count", question)
    record = _told("count", replace(given, values=given.values | {"advise": True}))
    return {"advice": record.get("advice", [])}


def _legal(question: Question) -> Record:
    from ..question import read_question
    from .legal import legal_values

    return legal_values(read_question(_given("count", question)))


def _ranks(question: Question) -> Record:
    """The parts of every stage's peak, as the bill has those of the worst rank."""
    from ...bill import case_of, countable, load
    from ...holding import memory_items
    from ...show.record import items
    from ..question import read_question

    bill = read_question(_given("count", question)).bill()
    loaded = load(countable(case_of(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)[0]))
    parts = (items(memory_items(stage, loaded.case), "bytes") for stage in loaded.every)
    return {"ranks": [{"stage": place, "items": each} for place, each in enumerate(parts)]}


def _compare(question: Question) -> Record:
    from ..comparing import compared
    from ..values import Faults

    faults = Faults()
    sides = [faults.attempt(_side, side) for side in (question, question.get("other") or {})]
    faults.stop()
    return compared(*sides).record()


def _side(question: Question) -> Any:
    from ..question import read_question

    given = _given("count", question)
    if question.get("file") is None:
        return read_question(given).bill()
    from ...formats.known import read
    from ..exporting import asked_of

    return asked_of(given, read(content_of(question["file"]))).bill()


def _draw(question: Question) -> Record:
    from ...bill import Bill
    from ...show.diagram.record import diagram_record
    from ...show.diagram.svg import svg
    from ..drawing import drawn, pipeline, refused

    given = _given("draw", question)
    asked = pipeline(given)
    if isinstance(asked, Bill):
        return {"svg": None, "record": refused(asked).record(), "operations": None}
    done = drawn(asked, given.on("whole"))
    record = diagram_record(done.chart, asked.plan.name)
    return {"svg": svg(done.chart), "record": record, "operations": _operations(done)}


def _operations(of: "Drawn") -> Record | None:
    """The passes of each rank, in order; none where they are too many. A pair is two of them, at the same time."""
    chart = of.chart
    if sum(len(lane.start) * len(lane.ranks) for lane in chart.lanes) > MOST_OPERATIONS:
        return None
    rows: dict[int, list[list[Any]]] = {}
    gaps: dict[int, list[list[Any]]] = {}
    for lane in chart.lanes:
        waits = zip(lane.gap_cause.tolist(), lane.gap_start.tolist(), lane.gap_end.tolist(), strict=True)
        idle = [list(each) for each in waits]
        gaps |= dict.fromkeys(lane.ranks, idle)
        row = []
        for kind, stage, number, other, start, end in zip(
            lane.kind.tolist(), lane.stage.tolist(), lane.micro_batch.tolist(), lane.other.tolist(),
            lane.start.tolist(), lane.end.tolist(), strict=True,
        ):  # fmt: skip
            if kind == "P":
                row += [["F", stage, number, start, end], ["B", stage, other, start, end]]
            else:
                row.append([kind, stage, number, start, end])
        rows |= dict.fromkeys(lane.ranks, row)
    return {
        "ranks": len(rows),
        "makespan_s": float(chart.makespan),
        "unit": chart.unit,
        "missing": list(chart.missing) if chart.missing else None,
        "copies": chart.copies,
        "rows": [rows[rank] for rank in sorted(rows)],
        "gaps": [gaps[rank] for rank in sorted(gaps)],
    }


def _models(_: Question) -> Record:
    return _told("models", Given({"text": ""}))


def _hardware(_: Question) -> Record:
    return _told("hardware", Given({"text": ""}))


def _described(question: Question) -> Record:
    from .described import described

    return described(question)


def _drilled(question: Question) -> Record:
    from .drilled import drilled

    return drilled(question)


OWN: Mapping[str, Callable[[Question], Record]] = {
    "first": first.bill,
    "known": first.known,
    "described": _described,
    "drilled": _drilled,
    "ranking": first.ranking,
    "beside": first.beside,
    "advice": _advice,
    "legal": _legal,
    "ranks": _ranks,
    "compare": _compare,
    "check": check,
    "fix": fix,
    "draw": _draw,
    "report": written.report,
    "trace": written.trace,
    "models": _models,
    "hardware": _hardware,
}
