"""A log beside the bill of its layout: is the measured step inside the band, and which item explains it if not.

What explains a difference is only what the log itself tells: a timer, a wait for data, another job. Where it tells
nothing, the difference is said to be unexplained.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import isclose

from ..bill import Bill
from ..cluster.efficiency import counted_rate
from ..formats.logs.checks import Remark, checks_of, outside_engine
from ..formats.logs.pace import Pace, Told, pace_of
from ..formats.logs.record import Log
from ..job import Job, Measured
from ..measured import CONVENTIONS, Reached, flops_of, reached_of
from ..undivided import parameters
from .watched_memory import MemoryBeside, memories_of

SAME = 0.005  # FLOPs a token of a convention: TFLOP/s and seconds have three or four digits
ANOTHER = 0.02  # parameters or tokens that differ by more are another job
FEW_TOKENS = 2_000  # of one device in a step: kernels are then too small to keep it busy

# The parts of a step that timers tell, and the item of a bill that each is; empty: no bill has it.
TIMERS: Mapping[str, str] = {
    "batch-generator": "",
    "data_loading": "",
    "optimizer": "optimizer",
    "step": "optimizer",
    "optimizer_step": "optimizer",
    "all-grads-sync": "data",
    "grads-all-reduce": "data",
    "grads-reduce-scatter": "data",
    "params-all-gather": "data",
    "bwd_allreduce": "data",
    "backward_allreduce": "data",
    "forward-recv": "idle",
    "backward-recv": "idle",
    "pipe_recv_input": "idle",
    "pipe_recv_grad": "idle",
}


@dataclass(frozen=True)
class Cause:
    """What the log tells of a difference. `seconds` is None where it tells no time."""

    item: str
    seconds: float | None
    text: str


@dataclass(frozen=True)
class Beside:
    """A measured step beside the bill's."""

    seconds: float
    predicted: float
    band: tuple[float, float]
    inside: bool
    reached: Reached
    counted_by: tuple[str, ...]  # conventions whose FLOPs a token are those that the log prints
    printed_flops: float | None  # FLOPs a token that it prints
    lengths: tuple[tuple[int, str], ...]  # where no convention fits: sequences, and conventions, that would
    other_job: tuple[str, ...]  # where the log contradicts the question
    causes: tuple[Cause, ...]
    unexplained: float  # seconds beyond the band that no cause covers; below 0: faster than the band
    covers: str  # the largest item whose own band covers the difference; empty where none does


@dataclass(frozen=True)
class Watched:
    """A whole answer: the log, its pace, what does not fit in it, and the bill where there is one."""

    log: Log
    pace: Pace
    remarks: tuple[Remark, ...]
    bill: Bill | None = None
    beside: Beside | None = None
    memory: tuple[MemoryBeside, ...] = ()

    @property
    def outside(self) -> bool:
        """Whether the measured step lies outside the band of the bill, or the bill is of a layout that breaks rules."""
        broken = self.bill is not None and bool(self.bill.violations)
        return broken or (self.beside is not None and not self.beside.inside)


def watched(log: Log, bill: Bill | None = None) -> Watched:
    """A log beside a bill, or by itself."""
    if bill is None:
        pace = pace_of(log)
        return Watched(log, pace, checks_of(log, pace))
    job = bill.job
    told = Told(
        float(bill.cluster.ranks), job.sequence_length, job.global_batch, job.global_batch * job.sequence_length
    )
    pace = pace_of(log, told)
    layout, each = bill.layout, bill.derived.micro_batches
    degrees = {"tp": layout.tp, "cp": layout.cp, "pp": layout.pp, "the micro-batches a step": int(each)}
    remarks = checks_of(log, pace, counted_rate(bill.cluster.accelerator, job.number), degrees)
    return Watched(log, pace, remarks, bill, _beside(log, pace, bill), memories_of(log, bill))


def _beside(log: Log, pace: Pace, bill: Bill) -> Beside | None:
    if pace.seconds is None or bill.violations:
        return None
    reached = reached_of(replace(bill, job=replace(bill.job, measured=Measured(step_seconds=pace.seconds))))
    if reached is None:
        return None
    low, high = bill.step.band_seconds
    printed = printed_flops(pace)
    counted_by = conventions_of(printed, bill) if printed else ()
    other = (*_other_job(log, pace, bill), *_other_model(printed, counted_by, bill))
    beyond = pace.seconds - high if pace.seconds > high else min(0.0, pace.seconds - low)
    slower = pace.seconds > bill.step.seconds and not other
    causes = tuple(_causes(log, pace, bill)) if slower else ()
    found = sum(cause.seconds or 0.0 for cause in causes)
    return Beside(
        seconds=pace.seconds,
        predicted=bill.step.seconds,
        band=(low, high),
        inside=reached.step_time_in_band,
        reached=reached,
        counted_by=counted_by,
        lengths=_lengths(pace, bill) if printed and not counted_by else (),
        printed_flops=printed,
        other_job=other,
        causes=causes,
        unexplained=max(0.0, beyond - found) if beyond > 0 else beyond,
        covers=_covering(pace.seconds, bill),
    )


def printed_flops(pace: Pace) -> float | None:
    """FLOPs a token that a log's TFLOP/s, seconds and tokens make together."""
    work = work_of(pace)
    return work / pace.told.tokens if work and pace.told.tokens else None


def conventions_of(flops: float, bill: Bill) -> tuple[str, ...]:
    """The conventions that count so many FLOPs a token of this model, among them the bill's own."""
    known = {one.name: flops_of(one, bill.model, bill.job) for one in CONVENTIONS}
    known |= {f"outlay, {bill.job.attention_flops}": _own(bill)}
    return tuple(name for name, value in known.items() if isclose(flops, value, rel_tol=SAME))


def _own(bill: Bill) -> float:
    job = bill.job
    return bill.step.model_flops / (job.global_batch * job.sequence_length * job.useful_share)


def _lengths(pace: Pace, bill: Bill) -> tuple[tuple[int, str], ...]:
    samples = pace.told.samples or bill.job.global_batch
    work = work_of(pace)
    return sequences_of(work, samples, bill) if work else ()


def work_of(pace: Pace) -> float | None:
    """FLOPs of a step of the whole job, as the log counts them: of one job they are the same on any machine."""
    devices = pace.told.devices
    return (
        pace.flops_per_second * pace.seconds * devices if pace.flops_per_second and pace.seconds and devices else None
    )


def sequences_of(flops_a_step: float, samples: float, bill: Bill) -> tuple[tuple[int, str], ...]:
    """Lengths of a sequence, powers of two, and conventions under which a step of so many sequences is so much work."""
    found = []
    for power in range(7, 21):
        length = 2**power
        job: Job = replace(bill.job, sequence_length=length)
        for one in CONVENTIONS:
            work = flops_of(one, bill.model, job) * length * samples
            if isclose(work, flops_a_step, rel_tol=SAME):
                found.append((length, one.name))
    return tuple(found)


def _other_job(log: Log, pace: Pace, bill: Bill) -> Iterator[str]:
    """Where the log says another model, another number of devices, or other batches than the question."""
    told, job = pace.told, bill.job
    owned, here = parameters(bill.model).total, log.number("parameters")
    if here and abs(here / owned - 1) > ANOTHER:
        yield f"the log's model has {here:,.0f} parameters, {bill.model.name} {owned:,}"
    if told.devices and round(told.devices) != bill.cluster.ranks:
        yield f"the log is of {told.devices:,.0f} devices, --on of {bill.cluster.ranks:,}"
    if told.sequence_length and told.sequence_length != job.sequence_length:
        length = f"{told.sequence_length:,.0f}"
        yield f"the log's sequences are of {length} tokens, the question's of {job.sequence_length:,}"
    tokens = job.global_batch * job.sequence_length
    if told.tokens and abs(told.tokens / tokens - 1) > ANOTHER:
        yield f"a step of the log is of {told.tokens:,.0f} tokens, of the question {tokens:,}"


def _other_model(printed: float | None, counted_by: tuple[str, ...], bill: Bill) -> Iterator[str]:
    """FLOPs a token that no way of counting makes of this model: less than half of the least, twice the most."""
    if not printed or counted_by:
        return
    known = [*(flops_of(one, bill.model, bill.job) for one in CONVENTIONS), _own(bill)]
    if not min(known) / 2 <= printed <= max(known) * 2:
        yield (
            f"the log prints {printed:.3g} FLOPs a token, {bill.model.name} has {min(known):.3g} to {max(known):.3g}:"
            " another model, or a wrong rate"
        )


def _causes(log: Log, pace: Pace, bill: Bill) -> Iterator[Cause]:
    """What the log tells of time that the bill has not."""
    items = {item.name: item.high if item.kind == "modelled" else item.value for item in bill.step.items}
    if pace.data_seconds:
        yield Cause("input", pace.data_seconds, "waiting for data, as the log prints it; no bill has it")
    for name, timer in log.timers.items():
        item = TIMERS.get(name)
        if item is None:
            continue
        most = items.get(item, 0.0)
        if timer.seconds > most:
            has = f"the bill has {most:.3g} s at most" if item else "no bill has it"
            yield Cause(item or "input", timer.seconds - most, f"timer {name} {timer.seconds:.4g} s; {has}")
    yield from _outside_engine(log, pace)
    forward = log.timers.get("forward-backward")
    if forward and forward.least and forward.seconds - forward.least > 0.01 * forward.seconds:
        text = f"ranks differ in forward-backward: {forward.least:.4g} to {forward.seconds:.4g} s"
        yield Cause("stragglers", max(0.0, forward.seconds - forward.least - items.get("stragglers", 0.0)), text)
    each = pace.told.tokens / bill.cluster.ranks if pace.told.tokens else None
    if each and each < FEW_TOKENS:
        text = f"{each:,.0f} tokens a device in a step: too few to keep it busy, so that MFU means little"
        yield Cause("few tokens", None, text)
    if log.marks.get("allocation retries") or log.number("allocation_retries"):
        yield Cause("allocator", None, "allocations were tried again; the log does not say how long that took")


def _outside_engine(log: Log, pace: Pace) -> Iterator[Cause]:
    """Time between the calls of DeepSpeed's engine, where the program around it prints its own step."""
    if gone := outside_engine(log, pace):
        yield Cause("outside the engine", gone, "the step is longer than DeepSpeed's own calls in it")


def _covering(seconds: float, bill: Bill) -> str:
    """The item whose own band is as wide as the difference, the largest of them; empty where none is."""
    off = seconds - bill.step.seconds
    able = [
        item
        for item in bill.step.items
        if item.kind == "modelled" and (item.high - item.value if off > 0 else item.value - item.low) >= abs(off)
    ]
    return max(able, key=lambda item: item.value).name if able else ""


def implied_bandwidth(beside: Beside, bill: Bill) -> tuple[str, float, float] | None:
    """Axis, B/s that its link would carry if all of a longer step were its exchange, and what the bill counts with."""
    moved = [item for item in bill.traffic if item.bytes and item.seconds]
    more = beside.seconds - beside.predicted
    if not moved or more <= 0 or beside.inside:
        return None
    largest = max(moved, key=lambda item: item.bytes)
    return largest.axis, largest.bytes / (more + largest.seconds), largest.bytes / largest.seconds
