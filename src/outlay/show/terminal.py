"""A bill in the terminal: the answer first, evidence under it, what was assumed at the end."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..bill import Bill, Violation
from ..errors import Fault
from ..model.model import Model
from ..quantities import GIB
from ..search.advice import Advice
from ..undivided import Parameters
from .answer import (
    binds_line,
    colour_of,
    headline,
    idle_line,
    next_line,
    ramp_line,
    says_yes,
    step_line,
    unadvised_line,
    verdict_of,
)
from .labels import degrees
from .measured import reached_line, reached_part
from .parts import memory_part, time_part
from .storage import storage_lines
from .text import BAD, Style, block, counted, duration, figure, percent, safe, short, table, wrapped
from .whole_run import costs_part, run_lines

if TYPE_CHECKING:
    from ..search.mixed.best import Mixes
    from ..search.split.best import Split

LOUD = ("GLOBAL BATCH", "SEQUENCE LENGTH")  # defaults that change the answer most


def bill_lines(
    bill: Bill, style: Style, advice: Sequence[Advice] = (), split: "Split | None" = None, sought: bool = False,
    mixed: "Mixes | None" = None,
) -> list[str]:  # fmt: skip
    """The whole bill of one layout, the ways to fit where it does not, and its split beside the engine's own cut.

    Where a faster layout was `sought` and there is none, that is said.
    """
    return [
        *headline(bill, style),
        *step_line(bill, style),
        *reached_line(bill, style),
        *run_lines(bill, style),
        *ramp_line(bill, style),
        *idle_line(bill, style),
        *binds_line(bill, style),
        *next_line(bill, advice, style),
        *(unadvised_line(bill, style) if sought and not advice else ()),
        *(_split(split, style) if split else ()),
        *(_mixed(mixed, style) if mixed else ()),
        *loud_lines(bill, style),
        "",
        *violation_lines(bill.violations, style),
        *subject_lines(bill, style),
        "",
        *memory_part(bill, style),
        "",
        *time_part(bill, style),
        "",
        *reached_part(bill, style),
        *costs_part(bill, style),
        *storage_lines(bill, style),
        *closing_lines(bill, style),
    ]


def _mixed(mixed: "Mixes", style: Style) -> list[str]:
    from .mixed import mixed_lines

    return mixed_lines(mixed, style)


def _split(split: "Split", style: Style) -> list[str]:
    from .split import split_lines

    return split_lines(split, style)


def subject_lines(bill: Bill, style: Style) -> list[str]:
    """What was counted: model, task, cluster and layout."""
    job = bill.job
    tokens = job.global_batch * job.sequence_length
    return [
        *block("MODEL", model_text(bill), style),
        *block(
            "JOB",
            f"batch {job.global_batch:,} x {job.sequence_length:,} tokens = {short(tokens)} tokens a step,"
            f" {job.precision}, {counted(bill.derived.micro_batches, 'micro-batch')} a pipeline",
            style,
        ),
        *block(
            "LAYOUT",
            f"{safe(bill.cluster.name)}: {degrees(bill.layout, bill.derived.dp)}; engine {bill.engine.name}",
            style,
        ),
    ]


def model_text(bill: Bill) -> str:
    """The model of a bill."""
    return model_words(bill.model, bill.parameters)


def model_words(model: Model, owned: Parameters) -> str:
    """The model's name and parameters; with experts, those a token reaches too."""
    active = f", {short(owned.active)} active a token" if owned.active != owned.total else ""
    extra = f"; {short(owned.mtp)} in multi-token prediction beside it" if owned.mtp else ""
    return f"{safe(model.name)}: {short(owned.total)} parameters{active}{extra}"


def violation_lines(violations: Sequence[Violation], style: Style) -> list[str]:
    """Each broken rule with its ways out; the nearest legal layouts once, at the end."""
    lines: list[str] = []
    for each in violations:
        lines += [*fault_lines(Fault(each.code, each.what, each.rule, each.got, each.fix), style, "broken: "), ""]
    near = violations[0].nearest if violations else ()
    if near:
        lines += [*block("NEAREST", "legal layouts: " + ";  ".join(near), style), ""]
    return lines


def fault_lines(fault: Fault, style: Style, before: str = "error: ") -> list[str]:
    """One fault: what and its code, then rule, got and fix at the same indent."""
    what, *parts = (safe(" ".join(text.split())) for text in (fault.what, fault.rule, fault.got, fault.fix))
    first = wrapped(before + what, style, 0, len(before))
    room = style.width - len(first[-1]) - len(fault.code)
    if room >= 2:
        first[-1] += " " * room + fault.code
    else:
        first.append(" " * (style.width - len(fault.code)) + fault.code)
    first[0] = style.paint(before.strip(), f"1;{BAD}") + first[0][len(before.rstrip()) :]
    return [
        *first,
        *(line for key, text in zip(("rule", "got", "fix"), parts, strict=True) for line in _part(key, text, style)),
    ]


def _part(key: str, text: str, style: Style) -> list[str]:
    lines = wrapped(text, style, 8, 8) or [" " * 8]
    return [f"  {key:<5} {lines[0].lstrip()}", *lines[1:]]


def loud_lines(bill: Bill, style: Style) -> list[str]:
    """An assumption that changes the whole answer is said at the top, not at the end."""
    return loud_notes(bill.assumptions, style)


def loud_notes(assumptions: Sequence[str], style: Style) -> list[str]:
    """The loud ones among some assumptions."""
    loud = [safe(text) for text in assumptions if text.startswith(LOUD)]
    return [line for text in loud for line in block("NOTE", text, style, "1;33")]


def closing_lines(bill: Bill, style: Style, more: str = "") -> list[str]:
    """What was assumed, by which conventions it was counted, and where to go from here."""
    counts = [f"{name.replace('_', ' ')}: {text}" for name, text in bill.conventions.items()]
    onward = more or "outlay explain memory.activations ...   |   outlay traffic ...   |   --json"
    return [
        *assumed_lines(bill.assumptions, style),
        *block("COUNTS", "; ".join(counts), style),
        *block("MORE", onward, style),
    ]


def assumed_lines(assumptions: Sequence[str], style: Style) -> list[str]:
    """What was assumed, less what was said loudly."""
    quiet = [safe(text) for text in assumptions if not text.startswith(LOUD)]
    return block("ASSUMED", "; ".join(quiet), style) if quiet else []


def scaling_lines(
    bills: Sequence[Bill], style: Style, advised: Bill | None = None, advice: Sequence[Advice] = ()
) -> list[str]:
    """One job on several clusters: a row each, those that break a rule marked; and where advice was sought, that of
    one of them."""
    first = bills[0]
    good = sorted(filter(says_yes, bills), key=lambda bill: bill.cluster.ranks)
    lines = [*_scaled_verdict(bills, style), *block("MODEL", model_text(first), style), *_same_job(bills, style), ""]
    heads = ("on", "verdict", "peak GiB", "step", "MFU", "tokens/s", "a card", "idle", "scaling", "dp")
    base = good[0].step.tokens_per_second_per_device if good else None
    lines += table(heads, [_scaling_row(bill, base) for bill in bills], style, "ll")
    broken = [bill for bill in bills if bill.violations]
    for bill in broken:
        codes = "; ".join(f"{each.code} {each.what} ({each.got})" for each in bill.violations)
        lines += wrapped(f"{bill.cluster.name}: {codes}", style, 2, 6)
    smallest = good[0].cluster.name if good else ""
    about = f"scaling: tokens/s a card over those of {smallest}" if good else "scaling: no cluster holds the job"
    lines += [*wrapped(about, style, 2, 2), ""]
    if advised:
        lines += block("ADVICE", f"--advise: of {advised.cluster.name}", style)
        lines += [*next_line(advised, advice, style), *([] if advice else unadvised_line(advised, style))]
    return [
        *lines,
        *closing_lines(common(bills), style, "one cluster prints its whole bill   |   --json"),
    ]


def _scaled_verdict(bills: Sequence[Bill], style: Style) -> list[str]:
    """How many clusters hold the job: for sure, and only just."""
    good = sorted(filter(says_yes, bills), key=lambda bill: bill.cluster.ranks)
    if not good:
        return block("DOES NOT FIT", "on none of them", style, f"1;{colour_of(bills[0])}")
    sure = [bill for bill in good if bill.memory.verdict == "fits"]
    tight = [bill.cluster.name for bill in good if bill.memory.verdict == "tight"]
    just = f"; inside the band, so perhaps: {', '.join(tight)}" if tight else ""
    if not sure:
        text = f"none of {counted(len(bills), 'cluster')} holds it for sure{just}"
        return block("TIGHT", text, style, f"1;{colour_of(good[0])}")
    hold = f"{len(sure)} of {counted(len(bills), 'cluster')} {'holds' if len(sure) == 1 else 'hold'} it"
    return block("FITS", f"{hold}; the smallest is {sure[0].cluster.name}{just}", style, f"1;{colour_of(sure[0])}")


def common(bills: Sequence[Bill]) -> Bill:
    """The first bill with the assumptions that hold on every row; conventions that differ are each row's own."""
    first = bills[0]
    said = tuple(text for text in first.assumptions if all(text in bill.assumptions for bill in bills))
    counts = {
        name: text if all(bill.conventions.get(name) == text for bill in bills) else "of each row by itself"
        for name, text in first.conventions.items()
    }
    return replace(first, assumptions=said, conventions=counts)


def _same_job(bills: Sequence[Bill], style: Style) -> list[str]:
    batches = sorted({bill.job.global_batch for bill in bills})
    job, precision = bills[0].job, " or ".join(dict.fromkeys(bill.job.precision for bill in bills))
    same = f"batch {batches[0]:,}" if len(batches) == 1 else "batch NOT the same on every row (give --batch)"
    return [
        *block("JOB", f"{same}, {job.sequence_length:,} tokens a sequence, {precision}", style),
        *loud_lines(bills[0], style),
    ]


def _scaling_row(bill: Bill, base: float | None) -> tuple[str, ...]:
    """One cluster; rates that divide by its cards mean nothing where the layout breaks a rule, and scaling means
    something among those that hold the job alone."""
    step, broken = bill.step, bool(bill.violations)
    idle = f"{percent(bill.bubble.share)} = {duration(bill.bubble.seconds)}" if bill.layout.pp > 1 else "0"
    rates = (
        percent(step.mfu),
        f"{step.tokens_per_second:,.0f}",
        f"{step.tokens_per_second_per_device:,.0f}",
        idle,
        percent(step.tokens_per_second_per_device / base) if base and says_yes(bill) else "-",
    )
    front = (bill.cluster.name, verdict_of(bill), figure(bill.memory.peak_bytes / GIB))
    return *front, "-" if broken else duration(step.seconds), *(["-"] * 5 if broken else rates), str(bill.derived.dp)
