"""outlay explain: a figure of a bill, a bubble without a model, or an error code."""

import re
from typing import TYPE_CHECKING

from ..errors import InputError
from ..show.codes import page, pages
from ..show.ladder import explain_lines, explain_record
from ..show.record import head, plain
from ..show.text import Style, block, wrapped
from .flags import Given
from .output import Told
from .values import Faults, count

if TYPE_CHECKING:
    from ..bill import Loaded
    from ..simulated import Simulated

CODE = re.compile(r"[A-Za-z]{2,4}\d{3}")


def explain(given: Given) -> Told:
    """The derivation and the ladder of one quantity; a code's page; or the list of both."""
    name = given.text("quantity")
    if name is None:
        return _list()
    if CODE.fullmatch(name):
        return _code(name)
    if given.text("model") is None and name == "bubble" and given.text("micro_batches"):
        return _bubble(given)
    return _quantity(given, name)


def _list() -> Told:
    from ..ladder import QUANTITIES

    known = pages()

    def lines(style: Style) -> list[str]:
        rows = [line for each in known.values() for line in wrapped(f"{each.code:<7} {each.what}", style, 2, 10)]
        return [*block("EXPLAIN", "quantities: " + ", ".join(QUANTITIES), style), "", *block("CODES", "", style), *rows]

    return Told(
        lambda: head("explain") | {"quantities": list(QUANTITIES), "codes": [plain(each) for each in known.values()]},
        lines,
    )


def _code(name: str) -> Told:
    found = page(name)

    def lines(style: Style) -> list[str]:
        parts = {"rule": found.rule, "fix": found.fix}
        body = [line for key, text in parts.items() for line in block(f"  {key}", text, style, "2")]
        return [*block(found.code, found.what, style), *body]

    return Told(lambda: head("explain") | plain(found), lines)


def _bubble(given: Given) -> Told:
    from ..derivation import explain as derive
    from ..schedule.bubble import bubble_share, interleaved_share

    faults = Faults()
    pp, micro_batches, vpp = (
        count(given.text(name) or default, flag, faults)
        for name, flag, default in (
            ("pp", "--pp", "1"),
            ("micro_batches", "--micro-batches", "1"),
            ("vpp", "--vpp", "1"),
        )
    )
    faults.stop()
    step = (
        derive(interleaved_share, pp, vpp, micro_batches)
        if vpp and vpp > 1
        else derive(bubble_share, pp, micro_batches)
    )
    return Told(lambda: explain_record("bubble", step, ()), lambda style: explain_lines("bubble", step, (), style))


def _run(loaded: "Loaded") -> "Simulated":
    from ..simulated import simulated

    return simulated(loaded)


def _quantity(given: Given, name: str) -> Told:
    from ..bill import case_of, countable, load
    from ..ladder import derive, find_quantity, rungs
    from .question import read_question

    faults = Faults()
    faults.attempt(find_quantity, name)
    try:
        question = read_question(given)
    except InputError as error:
        raise InputError(*faults.found, *error.faults) from None
    faults.stop()
    bill = question.bill()
    case, _ = case_of(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)
    loaded = load(countable(case))
    run = _run(loaded) if given.on("simulate") and not bill.violations else None
    step, ladder = derive(name, loaded), rungs(name, loaded, run)

    def lines(style: Style) -> list[str]:
        from ..show.terminal import closing_lines, loud_lines, subject_lines, violation_lines

        return [
            *explain_lines(name, step, ladder, style),
            "",
            *loud_lines(bill, style),
            *violation_lines(bill.violations, style),
            *subject_lines(bill, style),
            *closing_lines(bill, style, "outlay explain   lists what can be explained   |   --json"),
        ]

    held = {"profile": plain(bill.engine.profile)} if bill.engine.profile else {}
    violations = {"violations": plain(bill.violations)}
    return Told(lambda: explain_record(name, step, ladder) | violations | held, lines, not bill.violations)
