"""Where the figures of a log contradict each other or what is possible: rates, work, peak, capacity. Never a cause."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import isclose
from statistics import median

from ...cluster.catalogue import accelerator, accelerator_names
from ...cluster.efficiency import counted_rate
from .pace import WINDOW, Pace
from .record import Log

FALLBACK = 312e12  # FLOP/s of an A100, which torchtitan takes for a card that it does not know, and nanoGPT for any
EXACT = 0.003  # tflops over mfu, both of three digits or four
NEAR = 0.03  # of a ratio of rates: three digits each, and steps that vary
BESIDE = 0.02  # of the time of steps; clocks of lines are whole seconds in some frameworks
GAP = 0.005  # of a step; less is rounding
EDGE = 0.95  # reserved memory above this share of a card
WORK = 0.02  # by which the work of a step may differ: TFLOP/s and seconds have three digits
LESS, SHARE = 0.6 * 2**30, 0.012  # bytes, and share of a card, that torch sees less than the driver reports


@dataclass(frozen=True)
class Remark:
    """Something that does not fit together in a log, or that is worth knowing before its figures are compared."""

    name: str
    text: str


def peak_of(log: Log) -> float | None:
    """FLOP/s of a device that the log's MFU is over."""
    rates = [step.flops_per_second / step.mfu for step in log.steps[-WINDOW:] if step.flops_per_second and step.mfu]
    return median(rates) if rates else log.number("peak_flops")


def cards_of(log: Log) -> tuple[str, ...]:
    """Accelerators of the catalogue with the capacity and the peak that the log's lines imply; empty without either.

    A peak that is the usual fallback says nothing of the card.
    """
    capacity, peak = log.number("capacity_bytes"), peak_of(log)
    told = peak is not None and not isclose(peak, FALLBACK, rel_tol=0.02)
    if capacity is None:
        return ()
    found = []
    for name in accelerator_names():
        card = accelerator(name)
        less = card.memory_bytes - capacity
        room = -0.001 * capacity <= less <= max(LESS, SHARE * capacity)
        rate = not told or abs(card.bf16_flops / (peak or 1) - 1) <= EXACT
        if room and rate:
            found.append(name)
    return tuple(found)


def checks_of(
    log: Log, pace: Pace, card_peak: float | None = None, degrees: Mapping[str, int] | None = None
) -> tuple[Remark, ...]:
    """All remarks. `card_peak`: FLOP/s of the accelerator that the question beside the log names; `degrees`: what of
    its layout a rate may be a multiple of."""
    known = {**(degrees or {}), **_degrees(log, pace)}
    of_time = (*_rates(pace, log, known), *_work(log), *_clock(log, pace), *_gap(log, pace))
    return (*_peak(log, pace, card_peak), *of_time, *_memory(log), *_start(log))


def _peak(log: Log, pace: Pace, card_peak: float | None) -> Iterator[Remark]:
    """MFU over a peak that is not this card's, or above 1."""
    peak, mfu = peak_of(log), pace.mfu
    if mfu and not peak and log.framework == "nanogpt":
        peak = FALLBACK
    if not peak or not mfu:
        return
    fallback = isclose(peak, FALLBACK, rel_tol=0.06 if mfu < 0.01 else EXACT * 2)
    names = cards_of(log)
    another = (names and not any(isclose(accelerator(name).bf16_flops, FALLBACK) for name in names)) or (
        card_peak is not None and not isclose(card_peak, FALLBACK, rel_tol=0.02)
    )
    right = card_peak or (counted_rate(accelerator(names[0]), "bf16") if len(names) == 1 else None)
    if fallback and (another or mfu > 1):
        said = (
            f"MFU {100 * mfu:.2f} % is over {peak / 1e12:,.0f} TFLOP/s, the peak of an A100, taken for any unknown card"
        )
        again = f": over {right / 1e12:,.0f} it is {100 * mfu * peak / right:.1f} %" if right else ""
        yield Remark("peak_is_fallback", said + again)
    elif mfu > 1:
        yield Remark("mfu_above_one", f"MFU {100 * mfu:.1f} % cannot be: its peak or its FLOPs are another job's")
    elif card_peak and not isclose(peak, card_peak, rel_tol=0.02):
        again = f"over {card_peak / 1e12:,.0f} it is {100 * mfu * peak / card_peak:.1f} %"
        yield Remark("peak_differs", f"the log's MFU is over {peak / 1e12:,.0f} TFLOP/s a device; {again}")


def _rates(pace: Pace, log: Log, known: Mapping[str, int]) -> Iterator[Remark]:
    """A printed rate that is a whole multiple of tokens over time, or a whole part of it."""
    told, steps = pace.told, log.steps[-WINDOW:]
    if not told.tokens or not pace.seconds or pace.how != "as printed":
        return
    rate = told.tokens / pace.seconds
    printed = [step.tokens_per_second for step in steps if step.tokens_per_second]
    each = [step.tokens_per_second_per_device for step in steps if step.tokens_per_second_per_device]
    if printed:
        yield from _ratio("tokens/s", median(printed) / rate, pace, known)
    if each and told.devices:
        yield from _ratio("tokens/s of a device", median(each) * told.devices / rate, pace, known)


def _ratio(what: str, ratio: float, pace: Pace, known: Mapping[str, int]) -> Iterator[Remark]:
    """A ratio that is whole, or one over a whole number, and the degree that it equals."""
    times = ratio if ratio >= 1 else 1 / ratio
    whole = round(times)
    if abs(ratio - 1) <= NEAR:
        return
    side, whose = "more" if ratio > 1 else "less", "" if pace.told.of_log else "the question's "
    text = f"the printed {what} are {times:.2f} times {side} than {whose}tokens over seconds"
    if abs(times / whole - 1) > NEAR or whole < 2:
        yield Remark("rates_disagree", text)
        return
    named = [name for name, value in known.items() if value == whole]
    who = f", which is {' or '.join(named)}" if named else ""
    yield Remark("rate_is_multiple" if ratio > 1 else "rate_is_part", f"{text}: {whole}{who}")


def _degrees(log: Log, pace: Pace) -> Mapping[str, int]:
    names = {"devices": "all devices", "accumulation": "the micro-batches a step", "tp": "tp", "cp": "cp", "pp": "pp"}
    found = {words: log.number(name) for name, words in names.items()}
    found["all devices"] = pace.told.devices
    return {words: int(value) for words, value in found.items() if value and value > 1}


def outside_engine(log: Log, pace: Pace) -> float:
    """Seconds of a step between the calls of DeepSpeed's engine, where the program around it times its own step."""
    inner = [step.samples_per_second for step in log.others.get("deepspeed", ()) if step.samples_per_second]
    if not inner or not pace.seconds or not pace.told.samples or log.framework == "deepspeed":
        return 0.0
    gone = pace.seconds - pace.told.samples / median(inner)
    return gone if gone > GAP * pace.seconds else 0.0


def _gap(log: Log, pace: Pace) -> Iterator[Remark]:
    gone = outside_engine(log, pace)
    if gone and pace.seconds:
        text = f"{gone:.3f} s of a step, {100 * gone / pace.seconds:.1f} %, lie outside the calls of DeepSpeed's engine"
        yield Remark("outside_engine", text)


def _clock(log: Log, pace: Pace) -> Iterator[Remark]:
    """Time between lines that no step took: evaluation, checkpoints, logging, waiting."""
    gone = taken = 0.0
    for a, b in pairwise(log.steps):
        if a.run == b.run and a.when is not None and b.when is not None and b.seconds and b.number > a.number:
            gone, taken = gone + b.when - a.when, taken + b.seconds * (b.number - a.number)
    if pace.how == "as printed" and taken and gone > (1 + BESIDE) * taken:
        share = 100 * (1 - taken / gone)
        text = f"of {gone:,.0f} s on the clock the steps took {taken:,.0f}: {share:.1f} % is beside them"
        yield Remark("time_beside_steps", text)


def _work(log: Log) -> Iterator[Remark]:
    """FLOPs of a step that are not those of the others: TFLOP/s or the time of that line are wrong."""
    done = [
        (step, step.flops_per_second * step.seconds) for step in log.steps if step.flops_per_second and step.seconds
    ]
    if len(done) < 2:
        return
    middle = sorted(work for _, work in done)[len(done) // 2]
    same = {step.samples for step, _ in done}
    odd = [(step, work / middle) for step, work in done if abs(work / middle - 1) > WORK]
    if odd and len(same) == 1:
        step, ratio = max(odd, key=lambda one: abs(one[1] - 1))
        text = f"TFLOP/s x seconds of step {step.number:,} is {ratio:.2f} times that of the others"
        more = f", and {len(odd) - 1:,} more lines differ" if len(odd) > 1 else ""
        yield Remark("work_differs", f"{text}{more}: the work of a step is the same")


def _memory(log: Log) -> Iterator[Remark]:
    """Memory at the edge of the card, and peaks from before there were states."""
    capacity = log.number("capacity_bytes")
    for held in log.memory:
        if held.before_states:
            text = f"the {held.kind} memory is from before the first update: the optimizer's states are not in it"
            yield Remark("before_states", text)
        if capacity and held.kind in ("reserved", "device") and held.bytes > EDGE * capacity:
            text = f"{100 * held.bytes / capacity:.1f} % of the card's {capacity / 2**30:.1f} GiB are {held.kind}"
            yield Remark("memory_at_edge", text)
    retries = log.marks.get("allocation retries", 0) + int(log.number("allocation_retries") or 0)
    if retries:
        text = (
            f"{retries:,} allocations were tried again: the allocator was full and gave memory back, which takes time"
        )
        yield Remark("allocation_retries", text)


def _start(log: Log) -> Iterator[Remark]:
    """Settings and counts that change what a comparison means."""
    if log.since:
        text = f"the arguments changed with run {log.since + 1}: steps before it are not in the median"
        yield Remark("arguments_changed", text)
    if "NCCL_P2P_DISABLE=1" in log.marks:
        yield Remark("p2p_disabled", "NCCL_P2P_DISABLE=1 is set: cards of a node talk through host memory")
    if any("whole run" in step.marks for step in log.steps):
        yield Remark(
            "whole_run", "the time is that of the whole run over its steps: start-up, evaluation and saving are in it"
        )
    if log.skipped or log.nans:
        yield Remark("skipped", f"{log.skipped:,} steps without an update, {log.nans:,} with a number that is none")
