"""outlay report: a bill as a page, as Markdown or as CSV; of a printed plan, that of its best layout."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..bill import Bill, case_of
from ..errors import Fault, InputError
from ..show.answer import says_yes
from .configuring import LARGEST_FILE, standard_input
from .files import STDOUT, check, write
from .flags import Given
from .output import Told
from .question import read_question
from .values import Faults

if TYPE_CHECKING:
    from ..search.plan import Ranked
    from ..show.report.parts import Report

OUTPUTS = {"html": "--html", "md": "--md", "csv": "--csv"}
FACES = (*OUTPUTS, "force", "as_json", "plain", "debug")  # flags that change no figure
MOST_RANKED = 50


def report(given: Given) -> Told | int:
    """Write the files that are asked for, and print the answer."""
    from ..show.report.written import report_lines, report_record, written

    faults = Faults()
    paths = _paths(given, faults)
    given = _with_input(given)
    question = faults.attempt(read_question, given)
    faults.stop()
    bill = question.bill()
    made = report_of(given, bill)
    contents = {path: written(name, made).encode() for name, path in paths.items()}  # all before any is written
    for path, content in contents.items():
        write(path, content, given.on("force"))
    if STDOUT in contents:
        return 0 if says_yes(bill) else 1
    files = tuple(contents)
    return Told(lambda: report_record(made, files), lambda style: report_lines(made, files, style), says_yes(bill))


def report_of(given: Given, bill: Bill) -> "Report":
    """All that a report says of a bill; of a printed plan also its ranking."""
    from ..search.advice import advise
    from ..show.report.parts import Report

    chart, unseen = diagram_of(bill)
    return Report(bill, advise(bill), chart, unseen, ranking_of(given, bill))


def _with_input(given: Given) -> Given:
    """What stands on standard input, kept: the bill and the ranking are both read from it."""
    return replace(given, content=standard_input()) if given.text("model") == "-" else given


def _paths(given: Given, faults: Faults) -> dict[str, str]:
    """The files to write, each of which can be written as far as can be seen."""
    paths = {name: path for name in OUTPUTS if (path := given.text(name)) is not None}
    if not paths:
        rule, fix = f"one or more of {', '.join(OUTPUTS.values())}", "--html report.html"
        faults.add(Fault("RPT001", "no file is named", rule, "nothing", fix))
    faults.add(*(fault for path in paths.values() if (fault := check(path, given.on("force")))))
    if len(set(paths.values())) < len(paths):
        rule, got = "each output is a file of its own", ", ".join(paths.values())
        faults.add(Fault("RPT002", "two outputs have the same name", rule, got, "give each a name"))
    if STDOUT in paths.values() and given.on("as_json"):
        rule = "standard output holds one answer: the object of --json, or a file"
        faults.add(Fault("RPT002", "two answers go to standard output", rule, "--json and -", "write one to a file"))
    return paths


def diagram_of(bill: Bill) -> tuple[Any, str]:
    """The timing diagram of a bill's pipeline, or why there is none."""
    from .drawing import drawn, of_bill

    if bill.violations:
        return None, "The layout breaks a rule, so there is no diagram of it."
    if bill.layout.pp == 1:
        return None, "One stage: there is no pipeline to draw."
    try:
        return drawn(of_bill(bill)).chart, ""
    except InputError as error:
        return None, f"{error.faults[0].what}: {error.faults[0].rule}."


def ranking_of(given: Given, bill: Bill) -> "tuple[Ranked, ...]":
    """The layouts of a printed plan, each counted again; none where MODEL is something else."""
    from ..bill import count
    from ..search.plan import ranked_by
    from ..show.restore import restore

    best = _best_of(_printed(given))
    if len(best) < 2 or any(given.text(name) for name in given.values if name not in ("model", *FACES)):
        return ()
    case = case_of(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)[0]
    made = []
    for one in best[:MOST_RANKED]:
        asked = restore(one["bill"])
        made.append(ranked_by(count(asked.model, asked.job, asked.cluster, asked.layout, bill.engine), case))
    return tuple(made)


def _printed(given: Given) -> Any:
    """The JSON that MODEL is, where it is some."""
    if given.content is not None:
        text = given.content
    elif str(given.text("model")).endswith(".json"):
        with open(str(given.text("model")), "rb") as file:
            text = file.read(LARGEST_FILE)
    else:
        return None
    return json.loads(text)


def _best_of(value: Any) -> list[Any]:
    plan = isinstance(value, dict) and value.get("schema") == "outlay.plan.1"
    best = value.get("best") if plan else []
    return [one for one in best if isinstance(one, dict) and isinstance(one.get("bill"), dict)] if best else []
