"""outlay recompute: what to compute again so that a layout fits, and what it costs."""

from dataclasses import replace

from ..bill import Bill, case_of
from ..errors import Fault, InputError, quoted
from ..search.recompute.stages import recompute as search
from ..show.recompute.answer import Answer
from .files import STDOUT, picture, write
from .flags import Given
from .output import Told
from .question import read_question
from .values import BYTES, Faults, number

LARGEST = 1e18  # B


def recompute(given: Given) -> Told | int:
    """The best plan, or the floor. Exit 1: no plan fits, or the layout breaks a rule."""
    from ..show.recompute.answer import recompute_lines
    from ..show.recompute.record import recompute_record

    faults = Faults()
    budget, modules, path = _budget(given, faults), _modules(given, faults), picture(given, faults)
    try:
        question = read_question(given)
    except InputError as error:
        raise InputError(*faults.found, *error.faults) from None
    faults.stop()
    layout = replace(question.layout, recompute="none", recompute_layers=0)
    bill = replace(question, layout=layout).bill()
    if bill.violations:
        return _refused(bill)
    if question.layout.recompute not in (None, "none"):
        said = f"--recompute {question.layout.recompute} is left out: what to compute again is the question here"
        bill = replace(bill, assumptions=(said, *bill.assumptions))
    case = case_of(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)[0]
    answer = Answer(search(case, budget, modules), bill, (path,) if path else ())
    if path:
        from ..show.recompute.svg import recompute_svg

        write(path, recompute_svg(answer).encode(), given.on("force"))
    yes = bool(answer.found.outcome)
    told = Told(lambda: recompute_record(answer), lambda style: recompute_lines(answer, style), yes)
    return told.code if path == STDOUT else told


def _budget(given: Given, faults: Faults) -> float | None:
    text = given.text("budget")
    if text is None:
        return None
    size = number(text, BYTES)
    if size is None or not 0 < size <= LARGEST:
        rule = "--budget is an amount of memory above 0, at most 1e18 B, with its unit: B, KiB, MiB, GiB, GB"
        faults.add(Fault("RCP004", "--budget is not an amount of memory", rule, quoted(text), "--budget 40GiB"))
        return None
    return float(size)


def _modules(given: Given, faults: Faults) -> tuple[str, ...]:
    """Names between commas or blanks."""
    text = given.text("modules")
    names = tuple((text or "").replace(",", " ").split())
    if text is not None and not names:
        rule = "--modules are names with a comma between them: core_attn,mlp"
        faults.add(Fault("RCP001", "--modules names no module", rule, quoted(text), "--modules core_attn"))
    return names


def _refused(bill: Bill) -> Told:
    """The answer is no: the layout breaks rules."""
    from ..show.record import head, plain
    from ..show.terminal import violation_lines

    refused = head("recompute") | {"violations": plain(bill.violations)}
    return Told(lambda: refused, lambda style: violation_lines(bill.violations, style), yes=False)
