"""The answer of `outlay watch`: how fast a job goes, what its log does not make fit, and its bill beside it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..bill import Bill
from ..errors import Fault
from ..formats.logs.checks import cards_of
from ..formats.logs.known import TITLES
from ..formats.logs.pace import LeftOut, Pace
from ..formats.logs.record import Held
from ..job import Measured
from ..validate.watched import Beside, Watched, implied_bandwidth
from ..validate.watched_memory import MemoryBeside
from .answer import headline, step_line
from .labels import AXES, label
from .measured import reached_part
from .terminal import loud_lines, subject_lines, violation_lines
from .text import BAD, GOOD, WARN, Style, block, counted, duration, figure, gib, percent, safe

MOST_LEFT_OUT = 6  # lines that are named one by one
TIMERS = 6
MINUTES, HOURS = 60.0, 3600.0
SAY_LAYOUT = ("torchtitan",)  # frameworks whose lines say the layout


def watch_lines(found: Watched, needs: Sequence[Fault], title: str, style: Style) -> Iterator[str]:
    """The whole answer."""
    yield from log_lines(found, title, style)
    for remark in found.remarks:
        yield from block("CHECK", safe(remark.text), style, f"1;{WARN}")
    for need in needs:
        yield from block("NEEDS", safe(f"{need.what}: {need.got}; {need.fix}"), style)
    if found.bill is None:
        if not needs:
            yield from block("NO BILL", "outlay watch LOG MODEL --on 64xh100-sxm .. puts the bill beside it", style)
        return
    yield ""
    yield from _bill_lines(found, style)


def log_lines(found: Watched, title: str, style: Style) -> Iterator[str]:
    """What the log itself says."""
    log, pace = found.log, found.pace
    who = TITLES.get(log.framework, log.framework)
    of = f" of {pace.total:,}" if pace.total else ""
    more = f", {log.runs:,} runs" if log.runs > 1 else ""
    left = f"; {_long(pace.seconds_left)} left at this pace" if pace.seconds_left else ""
    cut = "; its last line is cut" if log.cut else ""
    yield from block(
        "LOG",
        safe(f"{title}: {who}, step {pace.last:,}{of}, {counted(log.seen, 'line')} of steps{more}{left}{cut}"),
        style,
    )
    if about := _about(found):
        yield from block("SAYS", safe(about), style)
    yield from block("STEP", step_text(pace), style)
    if pace.left_out:
        yield from block("LEFT OUT", _left_out_text(pace.left_out), style)
    if rates := _rates_text(pace):
        yield from block("RATE", rates, style)
    if timers := _timers_text(found):
        yield from block("TIMERS", safe(timers), style)
    for held in log.memory:
        yield from block("PEAK", _held_text(held, log.number("capacity_bytes")), style)
    if names := cards_of(log):
        yield from block("CARD", f"capacity and peak are those of {', '.join(names)}", style)
    if log.skipped or log.nans:
        yield from block(
            "SKIPPED", f"{counted(log.skipped, 'step')} without an update; {log.nans:,} of nan or inf", style
        )


def _about(found: Watched) -> str:
    """The model and the card by the names that the log has for them."""
    log = found.log
    size = log.number("parameters")
    said = [f"model {log.text('model')}"] if log.text("model") else []
    said += [f"{size:,.0f} parameters"] if size else []
    said += [f"on {log.text('card')}"] if log.text("card") else []
    return ", ".join(said)


def pace_line(found: Watched, style: Style) -> list[str]:
    """One line of a job that runs: where it is, and how fast it goes."""
    pace = found.pace
    of = f" of {pace.total:,}" if pace.total else ""
    time = f"{duration(pace.seconds)} a step" if pace.seconds else "no time"
    rate = f"   {pace.tokens_per_second_per_device:,.0f} tokens/s a device" if pace.tokens_per_second_per_device else ""
    left = f"   {_long(pace.seconds_left)} left" if pace.seconds_left is not None else ""
    beside = found.beside
    side = f"   {'inside' if beside.inside else 'outside'} the band of the bill" if beside else ""
    return block("AT", f"step {pace.last:,}{of}   {time}{rate}{left}{side}", style)


def step_text(pace: Pace) -> str:
    """The median step with its spread, and what it rests on."""
    if pace.seconds is None:
        return "the lines say no time, and no batch or clock to work it out from"
    if pace.lines == 1:
        return f"{duration(pace.seconds, 4)}   one line, which may hold start-up; {pace.how}"
    spread = f"{duration(pace.low or 0)} to {duration(pace.high or 0)} for 80 % of them"
    return f"{duration(pace.seconds, 4)}   median of {counted(pace.lines, 'line')}, {spread}; {pace.how}"


def _left_out_text(left_out: Sequence[LeftOut]) -> str:
    """The lines left out, the last ones by name."""
    shown = left_out[-MOST_LEFT_OUT:]
    words = [
        f"step {one.number:,}{f' of run {one.run + 1}' if one.run else ''}"
        f" ({duration(one.seconds) if one.seconds is not None else 'no time'}): {one.why}"
        for one in shown
    ]
    earlier = len(left_out) - len(shown)
    return "; ".join([*([f"{earlier:,} earlier ones"] if earlier else []), *words])


def _rates_text(pace: Pace) -> str:
    """Tokens, FLOP/s and MFU, each where it is known."""
    said = []
    if pace.tokens_per_second:
        said.append(f"{pace.tokens_per_second:,.0f} tokens/s")
    if pace.tokens_per_second_per_device:
        said.append(f"{pace.tokens_per_second_per_device:,.0f} tokens/s a device")
    if pace.flops_per_second:
        said.append(f"{figure(pace.flops_per_second / 1e12, 4)} TFLOP/s a device as printed")
    if pace.mfu:
        said.append(f"MFU {percent(pace.mfu)} as printed")
    if pace.data_seconds:
        said.append(f"{duration(pace.data_seconds)} of a step waits for data")
    return "   ".join(said)


def _timers_text(found: Watched) -> str:
    timers = sorted(found.log.timers.values(), key=lambda one: -one.seconds)[:TIMERS]
    seconds = found.pace.seconds
    return "; ".join(
        f"{one.name} {duration(one.seconds)}{f' ({percent(one.seconds / seconds)})' if seconds else ''}"
        for one in timers
    )


def _held_text(held: Held, capacity: float | None) -> str:
    whose = f" on rank {held.rank}" if held.rank is not None else ""
    after = f", after step {held.after:,}" if held.after is not None else ""
    share = f", {percent(held.bytes / capacity)} of the card" if capacity and held.kind != "estimated" else ""
    grown = held.bytes - held.first_bytes
    more = f"; {gib(grown)} more than at first" if grown > 0.01 * held.bytes else ""
    return f"{gib(held.bytes)} {held.kind}{whose}{after}{share}{more}"


def _long(seconds: float | None) -> str:
    value = seconds or 0.0
    if value >= HOURS:
        return f"{figure(value / HOURS)} hours"
    return f"{figure(value / MINUTES)} minutes" if value >= 2 * MINUTES else duration(value)


# --- the bill --------------------------------------------------------------------------------------------------------


def _bill_lines(found: Watched, style: Style) -> Iterator[str]:
    bill = found.bill
    assert bill is not None
    yield from violation_lines(bill.violations, style)
    yield from beside_lines(found, style)
    yield ""
    for part in (headline, step_line, loud_lines, subject_lines):
        yield from part(bill, style)
    if found.beside:
        yield from ["", *reached_part(bill_measured(found), style)]


def beside_lines(found: Watched, style: Style) -> Iterator[str]:
    """The measured step and peaks beside the bill's, and what explains their difference."""
    if beside := found.beside:
        yield from block(*_verdict(beside), style, f"1;{GOOD if beside.inside else BAD}")
        yield from _why_lines(found, beside, style)
    for each in found.memory:
        yield from block("MEMORY", _memory_text(each), style)


def bill_measured(found: Watched) -> Bill:
    """The bill with the measured step in its job, which the tables of utilisation read."""
    bill, beside = found.bill, found.beside
    assert bill is not None and beside is not None
    return replace(bill, job=replace(bill.job, measured=Measured(step_seconds=beside.seconds)))


def _verdict(beside: Beside) -> tuple[str, str]:
    low, high = beside.band
    off = beside.seconds / beside.predicted - 1
    way = "longer" if off > 0 else "shorter"
    text = (
        f"measured {duration(beside.seconds, 4)}, the bill {duration(beside.predicted, 4)}"
        f" ({duration(low)} to {duration(high)}): {percent(abs(off))} {way}"
    )
    return ("INSIDE" if beside.inside else "OUTSIDE"), text


def _why_lines(found: Watched, beside: Beside, style: Style) -> Iterator[str]:
    """What explains the difference, as far as the log tells."""
    for text in beside.other_job:
        yield from block("OTHER JOB", safe(text), style, f"1;{BAD}")
    for cause in beside.causes:
        time = f" {duration(cause.seconds)}:" if cause.seconds is not None else ":"
        yield from block("TELLS", safe(f"{label(cause.item)}{time} {cause.text}"), style)
    if text := open_text(found, beside):
        yield from block("WHY", text, style)
    if beside.printed_flops:
        yield from block("COUNTED", counted_text(beside), style)


def counted_text(beside: Beside) -> str:
    """Whose way of counting the log's FLOPs are, or at which other length of a sequence they would be."""
    text = f"the log prints {beside.printed_flops:.4g} FLOPs a token: "
    if beside.counted_by:
        return f"{text}as {', '.join(beside.counted_by)}"
    solved = ", ".join(f"{length:,} ({name})" for length, name in beside.lengths)
    return f"{text}as no convention known here" + (f"; they fit sequences of {solved}" if solved else "")


def open_text(found: Watched, beside: Beside) -> str:
    """What is left to explain, in words; empty where nothing is."""
    assert found.bill is not None
    if beside.other_job:
        return "the question beside the log is of another job: no item is named"
    if beside.inside:
        covers = f"the band of {label(beside.covers)} alone covers it" if beside.covers else "several bands cover it"
        return f"the difference is inside the band; {covers}"
    if beside.unexplained < 0:
        return f"{duration(-beside.unexplained)} faster than the band: not explained by any band"
    if beside.unexplained == 0:
        return ""
    tells = "nothing in the log tells of the rest" if beside.causes else "nothing in the log tells of it"
    text = f"{duration(beside.unexplained)} beyond the band: not explained by any band, and {tells}"
    implied = implied_bandwidth(beside, found.bill)
    if not found.log.dump and found.log.framework not in SAY_LAYOUT:
        text += ". The layout is that of the flags: this log does not say it"
    if implied is None:
        return text
    axis, rate, usual = implied
    return (
        f"{text}. If all of it were the {AXES.get(axis, axis)} exchange, its link would carry"
        f" {figure(rate / 1e9)} GB/s, and the bill counts with {figure(usual / 1e9)}"
    )


def _memory_text(each: MemoryBeside) -> str:
    """A measured peak beside the bill's, and what of the bill is of that size."""
    held, (low, high) = each.held, each.band
    off = held.bytes - each.predicted
    way = "more" if off > 0 else "less"
    side = "inside" if each.inside else "outside"
    text = (
        f"{gib(held.bytes)} {held.kind}, the bill {gib(each.predicted)} ({figure(low / 2**30)} to"
        f" {figure(high / 2**30)}): {gib(abs(off))} {way}, {side} the band"
    )
    if held.before_states:
        return f"{text}; it is from before the optimizer's states, {gib(each.optimizer_bytes)} in the bill"
    if each.grown > 0.05 * held.bytes and each.optimizer_bytes:
        text += f"; it grew by {gib(each.grown)} after step {held.first_after}, the optimizer's states are"
        text += f" {gib(each.optimizer_bytes)}"
    if each.largest:
        text += "; largest beside the state: " + ", ".join(f"{label(name)} {gib(size)}" for name, size in each.largest)
    return text
