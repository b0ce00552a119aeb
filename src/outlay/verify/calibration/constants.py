"""The constants of a profile from measured times, each with what it rests on; and what the times do not fix."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from ...engines.profile import HARDWARE, KERNELS, Constant
from .estimators import Estimate, cost_line, estimate, rate_and_depth, start_and_step
from .peaks import Peaks
from .shapes import steps_of, wire_share
from .tasks import FORWARD, GATHER, SCATTER, Measured

QUIET = 0.95  # of the time of its kernels, that a rank of a quiet machine has its core
MOST_NAMED = 12  # rows that a constant names
WAYS = {"link": "inside a machine", "nic": "between machines"}


@dataclass(frozen=True)
class Wire:
    """One collective over one group: the time of next to nothing, and bytes that pass the slowest wire a second."""

    what: str
    ranks: int
    start: float  # s
    bandwidth: float  # B/s

    @property
    def steps(self) -> int:
        """Steps that its time is counted with."""
        return steps_of(self.what, self.ranks)


@dataclass
class Finding:
    """Constants as they are found, and what is said of those that are not."""

    measured: Sequence[Measured]
    precision: str
    peaks: Peaks
    where: str  # the device, versions and ranks
    date: str
    own: bool = False  # the peaks are the best that was measured, so that nothing is above them
    constants: list[Constant] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    rests: dict[str, tuple[int, float]] = field(default_factory=dict)  # of a constant: rows, and how far times spread

    def of(self, kind: str) -> list[Measured]:
        """What was measured of one kind, in the precision of the profile where that matters."""
        found = (one for one in self.measured if one.task.kind == kind)
        apart = kind in ("matmul", "attention", "elementwise")
        return [one for one in found if one.task.weight > 0 and (not apart or one.task.precision == self.precision)]

    @property
    def launch(self) -> float:
        """The gap between two kernels; 0 where it was not measured."""
        return next((one.seconds for one in self.of("launch")), 0.0)

    def peak(self, name: str, rate: float) -> float:
        """What a rate is a share of: a field of `peaks`; where those were measured, no less than the rate itself."""
        plain = name != "flops"
        peak: float = getattr(self.peaks, name) if plain else self.peaks.flops[self.precision]
        if self.own and 0 < peak < rate:
            raised: dict[str, Any] = {name: rate if plain else {**self.peaks.flops, self.precision: rate}}
            self.peaks = replace(self.peaks, **raised)
            return rate
        return peak

    def keep(self, name: str, value: float, source: str, rows: Sequence[Measured]) -> None:
        """Keep one constant, if a profile can hold it."""
        least, most, rule = HARDWARE[name] if name in HARDWARE else KERNELS[name]
        if not least <= value <= most:
            self.said.append(f"{name} is left out: {value:.4g} was measured, and a profile holds {rule}")
            return
        spread = median(one.spread for one in rows)
        self.rests[name] = len(rows), spread
        text = f"outlay calibrate on {self.where}: {source}; single times within {100 * spread:.0f} % of their median"
        self.constants.append(Constant(name, float(f"{value:.5g}"), "measured", text, self.date, _named(rows)))


def constants_of(
    measured: Sequence[Measured], precision: str, peaks: Peaks, where: str, date: str, own: bool
) -> Finding:  # fmt: skip
    """All constants that the times fix."""
    found = Finding(measured, precision, peaks, where, date, own)
    _quiet(found)
    _launch(found)
    _matmul(found)
    _attention(found)
    _memory(found)
    _elementwise(found)
    wires = wires_of(found.of("collectives"))
    start = _starts(found, wires["link"] or wires["nic"], "link" if wires["link"] else "nic")
    for level, those in wires.items():
        _wire(found, those, level, start)
    return found


def _quiet(found: Finding) -> None:
    """Say where other work ran on the cores that were measured."""
    shares = [one.core for one in found.measured if one.task.kind not in ("collectives", "launch")]
    if shares and (core := median(shares)) < QUIET:
        away = "kernels are timed on their core, but caches are shared, and collectives wait for whoever comes last"
        found.said.append(f"NOT QUIET: a rank had its core for {100 * core:.0f} % of the time; {away}")


def _launch(found: Finding) -> None:
    if rows := found.of("launch"):
        found.keep("launch_seconds", found.launch, f"{rows[0].task.sizes[0]:,} tiny kernels back to back", rows)


def _matmul(found: Finding) -> None:
    rows, bound = list[Measured](), 0
    for one in found.of("matmul"):
        bytes_alone = one.task.moved / found.peaks.memory if found.peaks.memory else 0.0
        if bytes_alone < one.seconds and found.launch < one.seconds:
            rows.append(one)
        else:
            bound += 1
    if bound:
        found.said.append(f"{bound} multiplies are bound by memory or by their launch, and say nothing of the rate")
    if not rows or not found.peaks.flops[found.precision]:
        return
    each = ((one.task, one.seconds - found.launch) for one in rows)
    rate, depth = rate_and_depth([(task.inner, task.work / time, task.work * task.weight) for task, time in each])
    peak = found.peak("flops", rate.value)
    source = f"median of {rate.count} multiplies in {found.precision}, by work, {_quartiles(rate, peak)}"
    found.keep("matmul_share", rate.value / peak, f"{source}, of {peak / 1e12:.4g} TFLOP/s", rows)
    if depth is None:
        found.said.append("matmul_depth is left out: all multiplies have one inner dimension")
    else:
        found.keep("matmul_depth", depth, f"line of 1/rate over 1/k through {rate.count} multiplies", rows)


def _attention(found: Finding) -> None:
    rows = [one for one in found.of("attention") if one.seconds > found.launch]
    for name, forward in (("attention_share", True), ("attention_back_share", False)):
        those = [one for one in rows if (one.task.what == FORWARD) is forward]
        if not those or not found.peaks.flops[found.precision]:
            continue
        idle = [1 + found.peaks.fill / one.task.blocks for one in those]
        rates = [one.task.work * more / (one.seconds - found.launch) for one, more in zip(those, idle)]
        rate = estimate(rates, [one.task.work * one.task.weight for one in those])
        peak = found.peak("flops", rate.value)
        way = "forward" if forward else "backward"
        source = f"median of {rate.count} fused causal cores {way} in {found.precision}, {_quartiles(rate, peak)}"
        found.keep(name, rate.value / peak, f"{source}, of {peak / 1e12:.4g} TFLOP/s", those)


def _memory(found: Finding) -> None:
    rows = [one for one in found.of("memory") if one.seconds > found.launch]
    if rows and found.peaks.memory:
        weights = [one.task.work * one.task.weight for one in rows]
        rate = estimate([one.task.work / (one.seconds - found.launch) for one in rows], weights)
        peak = found.peak("memory", rate.value)
        source = f"median of {rate.count} copies and sums into a new tensor, {_quartiles(rate, peak)}"
        found.keep("memory_share", rate.value / peak, f"{source}, of {peak / 1e9:.4g} GB/s", rows)


def _elementwise(found: Finding) -> None:
    """The time of an eager engine's memory-bound kernels, all of a step's together, over that of their bytes."""
    rows = [one for one in found.of("elementwise") if one.seconds > found.launch]
    reached = found.peaks.reached * found.peaks.memory
    held = (each.value * found.peaks.memory for each in found.constants if each.name == "memory_share")
    rate = next(held, reached)
    if not rows or not rate:
        return
    taken = sum(one.task.weight * (one.seconds - found.launch) for one in rows)
    counted = sum(one.task.weight * one.task.work / rate for one in rows)
    each = ", ".join(f"{one.task.what} {(one.seconds - found.launch) * rate / one.task.work:.3g}" for one in rows)
    source = f"what a step of them takes over their counted bytes at {rate / 1e9:.4g} GB/s: {each}"
    found.keep("elementwise", taken / counted, source, rows)


# ---- collectives


def wires_of(rows: Sequence[Measured]) -> dict[str, list[Wire]]:
    """A line through the times of each collective and group, inside a machine (link) and between machines (nic)."""
    found: dict[str, list[Wire]] = {level: [] for level in WAYS}
    groups = dict[tuple[str, int, bool], list[Measured]]()
    for one in rows:
        groups.setdefault((one.task.what, one.task.sizes[1], one.task.far), []).append(one)
    for (what, ranks, far), those in groups.items():
        line = cost_line([(one.task.sizes[0], one.seconds) for one in those])
        if line.slope > 0:
            bandwidth = wire_share(what, ranks) / line.slope
            found["nic" if far else "link"].append(Wire(what, ranks, line.start, bandwidth))
    return found


def _starts(found: Finding, wires: Sequence[Wire], level: str) -> float:
    """The start of a collective and one step of it."""
    if not wires:
        return 0.0
    rows = found.of("collectives")
    start, step = start_and_step([(wire.steps, wire.start) for wire in wires])
    source = f"line over the steps of {len(wires)} collectives {WAYS[level]}, each of next to nothing"
    found.keep("collective_seconds", start, source, rows)
    found.keep(f"{level}_latency_seconds", step, source, rows)
    return start


def _wire(found: Finding, wires: Sequence[Wire], level: str, start: float) -> None:
    rows = [one for one in found.of("collectives") if one.task.far is (level == "nic")]
    found.said += [_line(wire, level) for wire in wires]
    both = [estimate([1 / wire.bandwidth for wire in wires if wire.what == what]) for what in _moved(wires)]
    if both and getattr(found.peaks, level):
        rate = len(both) / sum(each.value for each in both)
        most = max(wire.ranks for wire in wires)
        path = min(1.0, max(1, most - 1) / found.peaks.paths) if level == "link" else 1.0
        peak = found.peak(level, rate)
        source = f"a byte gathered and a byte scattered, lines over size, of {peak / 1e9:.4g} GB/s"
        found.keep(f"{level}_share", rate / (peak * path), source, rows)
    if level == "nic" and wires and not any(each.name == "nic_latency_seconds" for each in found.constants):
        step = max(0.0, estimate([(wire.start - start) / wire.steps for wire in wires]).value)
        found.keep("nic_latency_seconds", step, "what a step takes longer than the start inside a machine", rows)


def _moved(wires: Sequence[Wire]) -> Iterator[str]:
    """What a link's share is of: gathers and scatters, which FSDP and ZeRO live on."""
    yield from (what for what in (GATHER, SCATTER) if any(wire.what == what for wire in wires))


def _line(wire: Wire, level: str) -> str:
    words = wire.what.replace("_", "-")
    pace = f"{wire.start * 1e6:.1f} us, then {wire.bandwidth / 1e9:.4g} GB/s"
    return f"{words} over {wire.ranks} ranks {WAYS[level]}: {pace}"


# ---- words


def _quartiles(rate: Estimate, peak: float) -> str:
    return f"quartiles {rate.low / peak:.3g} to {rate.high / peak:.3g}"


def _named(rows: Sequence[Measured]) -> str:
    names = [f"{one.task.what} {'x'.join(map(str, one.task.sizes))}" for one in rows]
    more = f", and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
