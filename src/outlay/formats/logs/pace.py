"""The pace of a log: the median step once start-up is over, what was left out and why, rates, and the time left."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log2
from statistics import median

from .known import FROM_ZERO, WARM
from .record import Log, Step

WINDOW = 200  # steady lines that a median is over, the last ones
FEW = 3  # lines that are enough to leave others out beside them
DEVIATIONS, SHARE = 8.0, 0.02  # a line is an outlier beyond so many median deviations, and so much of the median
HOLDS = ("profiler",)  # marks whose line is left out whatever its time


@dataclass(frozen=True)
class Told:
    """What a step's time may have to be worked out from; from the log, else from the question beside it."""

    devices: float | None = None
    sequence_length: float | None = None
    samples: float | None = None  # sequences a step
    tokens: float | None = None  # of the whole job a step
    of_log: bool = False  # whether the log itself says these tokens


@dataclass(frozen=True)
class LeftOut:
    """A line that the median is not over."""

    number: int
    run: int
    seconds: float | None
    why: str


@dataclass(frozen=True)
class Pace:
    """How fast a job goes."""

    seconds: float | None  # of one step: the median
    low: float | None  # the tenth percentile
    high: float | None  # the ninetieth
    lines: int  # that it is over
    how: str  # what the seconds of a step are from
    left_out: tuple[LeftOut, ...]
    tokens_per_second: float | None
    tokens_per_second_per_device: float | None
    flops_per_second: float | None  # of one device, as the framework prints them
    mfu: float | None  # as it prints it
    data_seconds: float | None
    last: int
    total: int | None
    seconds_left: float | None  # at the median, without evaluation and checkpoints
    told: Told


Way = Callable[[Step, Told], float | None]


def _over(amount: float | None, rate: float | None) -> float | None:
    return amount / rate if amount and rate else None


WAYS: tuple[tuple[str, Way], ...] = (
    ("as printed", lambda step, _: step.seconds),
    (
        "sequences over their printed rate",
        lambda step, told: _over(step.samples or told.samples, step.samples_per_second),
    ),
    ("tokens over their printed rate", lambda step, told: _over(step.tokens or told.tokens, step.tokens_per_second)),
    (
        "tokens over the printed rate of a device",
        lambda step, told: _over(
            step.tokens or told.tokens,
            step.tokens_per_second_per_device * told.devices
            if step.tokens_per_second_per_device and told.devices
            else None,
        ),
    ),
)  # fmt: skip
BRIDGE = "megatron_bridge"  # whose TFLOP/s stand on a line without a number
CLOCK = "time between lines"


def told_by(log: Log, beside: Told | None = None) -> Told:
    """What the log says of its job; what it does not say is as the question beside it has it."""
    also = beside or Told()
    devices = log.number("devices") or _ratio(log) or also.devices
    each = log.number("samples_each")
    samples = _middle(step.samples for step in log.steps[-WINDOW:]) or log.number("samples") or _consumed(log)
    samples = samples or (each * devices if each and devices else None)
    tokens = _middle(step.tokens for step in log.steps[-WINDOW:]) or log.number("tokens_a_step")
    samples = samples or _passed(log)
    sequence = log.number("sequence_length") or _length(log, samples)
    if not tokens and samples and sequence:
        tokens = samples * sequence
    of_log, sequence, samples = tokens is not None, sequence or also.sequence_length, samples or also.samples
    if not tokens and samples and sequence:
        tokens = samples * sequence
    return Told(devices, sequence, samples, tokens or also.tokens, of_log)


def _ratio(log: Log) -> float | None:
    """Devices, from a rate of all and a rate of each: whole, within what three digits allow."""
    found = _middle(
        step.tokens_per_second / step.tokens_per_second_per_device
        for step in log.steps[-WINDOW:]
        if step.tokens_per_second and step.tokens_per_second_per_device
    )
    return float(round(found)) if found and abs(found - round(found)) <= 0.02 * found and round(found) else None


def _passed(log: Log) -> float | None:
    """Sequences a step, from their rate and its time, where that is whole."""
    found = _middle(
        step.samples_per_second * step.seconds for step in log.steps if step.samples_per_second and step.seconds
    )
    return float(round(found)) if found and round(found) and abs(found / round(found) - 1) <= SHARE / 4 else None


def _length(log: Log, samples: float | None) -> float | None:
    """Tokens of a sequence, from tokens a second and sequences a step: the power of two that they are close to."""
    found = _middle(
        step.tokens_per_second * step.seconds for step in log.steps if step.tokens_per_second and step.seconds
    )
    if not found or not samples or found < samples:
        return None
    power = 2.0 ** round(log2(found / samples))
    return power if abs(found / samples / power - 1) <= SHARE else None


def _consumed(log: Log) -> float | None:
    """Sequences a step, from what was consumed in all."""
    return _middle(
        (b.consumed_samples - a.consumed_samples) / (b.number - a.number)
        for a, b in pairwise(log.steps)
        if a.run == b.run and a.consumed_samples is not None and b.consumed_samples and b.number > a.number
    )


def _middle(values: Iterable[float | None]) -> float | None:
    found = [value for value in values if value]
    return median(found) if found else None


def pace_of(log: Log, beside: Told | None = None) -> Pace:
    """The pace of a log. `beside` fills what the log itself does not say."""
    told = told_by(log, beside)
    how, timed = _timed([step for step in log.steps if step.run >= log.since], told)
    steady, left_out = _steady(timed, log.framework, from_start=log.seen == len(log.steps))
    used = steady[-WINDOW:]
    weights = [float(covers) for _, covers in used]
    seconds = [step.seconds for step, _ in used if step.seconds is not None]
    middle, low, high = (_quantile(seconds, weights, share) for share in (0.5, 0.1, 0.9))
    steps = [step for step, _ in used]
    total = log.number("total_steps")
    last = log.steps[-1].number if log.steps else 0
    done = last + (log.framework in FROM_ZERO)
    left = max(0.0, total - done) * middle if total and middle else None
    rate = told.tokens / middle if told.tokens and middle else _middle(step.tokens_per_second for step in steps)
    each = rate / told.devices if rate and told.devices else None
    return Pace(
        seconds=middle,
        low=low,
        high=high,
        lines=len(seconds),
        how=how,
        left_out=left_out,
        tokens_per_second=rate,
        tokens_per_second_per_device=each or _middle(step.tokens_per_second_per_device for step in steps),
        flops_per_second=_middle(step.flops_per_second for step in (*steps, *log.others.get(BRIDGE, ()))),
        mfu=_middle(step.mfu for step in steps),
        data_seconds=_middle(step.data_seconds for step in steps),
        last=last,
        total=int(total) if total else None,
        seconds_left=left,
        told=told,
    )


def _timed(steps: Sequence[Step], told: Told) -> tuple[str, list[tuple[Step, int]]]:
    """Every step with its seconds and how many steps its line is of; the first way that most lines allow."""
    before = [None, *steps[:-1]]
    covers = [
        step.number - old.number if old and old.run == step.run and step.number > old.number else 1
        for step, old in zip(steps, before, strict=True)
    ] if steps else []  # fmt: skip
    for name, way in WAYS:
        seconds = [way(step, told) for step in steps]
        if sum(value is not None for value in seconds) * 2 > len(steps):
            return name, _with(steps, seconds, covers)
    seconds = [_between(step, old) for step, old in zip(steps, before, strict=True)] if steps else []
    found = any(value is not None for value in seconds)
    return (CLOCK if found else ""), _with(steps, seconds, covers)


def _with(steps: Sequence[Step], seconds: Sequence[float | None], covers: Sequence[int]) -> list[tuple[Step, int]]:
    return [(replace(step, seconds=value), many) for step, value, many in zip(steps, seconds, covers, strict=True)]


def _between(step: Step, old: Step | None) -> float | None:
    """Seconds a step from the clock of two lines, evaluation and checkpoints included."""
    if old is None or old.run != step.run or step.when is None or old.when is None or step.number <= old.number:
        return None
    gone = step.when - old.when
    return gone / (step.number - old.number) if gone > 0 else None


def _steady(
    timed: Sequence[tuple[Step, int]], framework: str, from_start: bool
) -> tuple[list[tuple[Step, int]], tuple[LeftOut, ...]]:
    """The lines of a steady run, and those left out: start-up, what is not training, outliers."""
    left, kept = list[LeftOut](), list[tuple[Step, int]]()
    for run in _runs(timed):
        warm = min(_warm(run, framework), len(run) - 1) if from_start or run[0][0].run > timed[0][0].run else 0
        left += [_left(step, "start-up") for step, _ in run[:warm]]
        kept += run[warm:]
    timed_at_all = any(step.seconds is not None for step, _ in timed)
    kept = [(step, covers) for step, covers in kept if step.seconds is not None or not timed_at_all]
    marked = [one for one in kept if any(mark in HOLDS for mark in one[0].marks)]
    if len(kept) - len(marked) >= FEW:
        left += [_left(step, " and ".join(mark for mark in step.marks if mark in HOLDS)) for step, _ in marked]
        kept = [one for one in kept if one not in marked]
    return _without_outliers(kept, left)


def _runs(timed: Sequence[tuple[Step, int]]) -> list[list[tuple[Step, int]]]:
    found: dict[int, list[tuple[Step, int]]] = {}
    for step, covers in timed:
        found.setdefault(step.run, []).append((step, covers))
    return list(found.values())


def _warm(run: Sequence[tuple[Step, int]], framework: str) -> int:
    """Lines at the start of a run that hold start-up.

    Megatron-LM prints iteration 1 without a new start of its clock: the line after it, of several, holds it too.
    """
    usual: int = WARM.get(framework, 1)
    again = framework.startswith("megatron") and len(run) > FEW and run[0][0].number == 1 and run[1][1] > 1
    return usual + again


def _left(step: Step, why: str) -> LeftOut:
    return LeftOut(step.number, step.run, step.seconds, why)


def _without_outliers(
    kept: list[tuple[Step, int]], left: list[LeftOut]
) -> tuple[list[tuple[Step, int]], tuple[LeftOut, ...]]:
    """Without lines far from the median, where there are enough to tell."""
    values = [step.seconds for step, _ in kept[-WINDOW:] if step.seconds is not None]
    if len(values) > FEW:
        middle = median(values)
        reach = max(DEVIATIONS * median(abs(value - middle) for value in values), SHARE * middle)
        far = [one for one in kept if abs((one[0].seconds or 0.0) - middle) > reach]
        if len(kept) - len(far) >= FEW:
            every = _period([step.number for step, _ in far])
            left += [_left(step, _why(step, middle, every)) for step, _ in far]
            kept = [one for one in kept if one not in far]
    return kept, tuple(sorted(left, key=lambda one: (one.run, one.number)))


def _period(numbers: Sequence[int]) -> int:
    """The distance of outliers that come regularly; 0 where they do not."""
    apart = {b - a for a, b in pairwise(numbers)}
    return apart.pop() if len(apart) == 1 and len(numbers) > 2 else 0


def _why(step: Step, middle: float, every: int) -> str:
    """What the log tells of an outlier; that it is one, where it tells nothing."""
    if step.marks:
        return " and ".join(step.marks)
    way = "slow" if (step.seconds or 0.0) > middle else "fast"
    return f"{way}, as every {every} steps" if every else f"{way}, and the log does not say why"


def _quantile(values: Sequence[float], weights: Sequence[float], share: float) -> float | None:
    """A quantile of values with weights: the mean of the two in the middle where a share falls between them."""
    if not values:
        return None
    ordered = sorted(zip(values, weights, strict=True))
    goal, gone = share * sum(weights), 0.0
    for index, (value, weight) in enumerate(ordered):
        gone += weight
        if abs(gone - goal) < 1e-9 * goal and index + 1 < len(ordered):
            return (value + ordered[index + 1][0]) / 2
        if gone >= goal:
            return value
    return ordered[-1][0]
