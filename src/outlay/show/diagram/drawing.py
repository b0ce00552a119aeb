"""A timing diagram before it is drawn: rows that differ, what repeats, and where a time stands on paper.

Three faces draw it: `diagram_svg` (and `diagram_html` around it), `diagram_text` in a terminal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..text import duration, percent

Numbers = NDArray[np.float64]
Whole = NDArray[np.int64]
CAUSES = ("fill", "drain", "dependency", "communication")
WORDS = {
    "F": "forward",
    "B": "backward",
    "I": "input gradient",
    "W": "weight gradient",
    "P": "forward and backward as a pair",
    "R": "recompute",
    "C": "communication",
}


@dataclass(frozen=True)
class Lane:
    """One row: what the ranks that it stands for do, in order, and where they wait. Times are in seconds or ticks."""

    ranks: tuple[int, ...]
    start: Numbers
    end: Numbers
    kind: NDArray[np.str_]
    stage: Whole
    chunk: Whole
    micro_batch: Whole  # from 0; of a pair, that of its forward pass
    other: Whole  # of a pair, the micro-batch of its backward pass; else -1
    gap_start: Numbers
    gap_end: Numbers
    gap_cause: NDArray[np.str_]
    busy: float
    idle_by_cause: dict[str, float]
    peak: float = 0.0
    sent_start: Numbers = field(default_factory=lambda: np.zeros(0))  # collectives on a stream of their own
    sent_end: Numbers = field(default_factory=lambda: np.zeros(0))

    @property
    def idle(self) -> float:
        """Time without work, of one rank."""
        return sum(self.idle_by_cause.values())

    @property
    def label(self) -> str:
        """The ranks that this row stands for."""
        names = [str(rank) for rank in self.ranks]
        return "rank " + (", ".join(names) if len(names) <= 3 else f"{names[0]} .. {names[-1]}")


@dataclass(frozen=True)
class Cut:
    """A part that repeats exactly and is not drawn: so many micro-batches between two times."""

    start: float
    end: float
    micro_batches: int

    @property
    def length(self) -> float:
        """How long it lasts."""
        return self.end - self.start


@dataclass(frozen=True)
class Chart:
    """A whole timing diagram."""

    title: str
    lanes: tuple[Lane, ...]
    makespan: float
    span: float  # the longest time from a rank's own first start to its own last end
    span_share: float  # idle share where every rank is held for that long only
    micro_batches: int
    unit: str = "s"  # s, or what one tick is
    cut: Cut | None = None
    critical: tuple[tuple[int, int], ...] = ()  # (lane, operation)
    notes: tuple[str, ...] = ()
    copies: int = 1  # accelerators that each rank of the pipeline stands for
    missing: tuple[float, float] | None = None  # a time inside the cut whose operations are not held at all

    @property
    def ranks(self) -> int:
        """Ranks of all rows together."""
        return self.copies * sum(len(lane.ranks) for lane in self.lanes)

    @property
    def operations(self) -> int:
        """Operations of all rows together."""
        return sum(len(lane.start) for lane in self.lanes)

    @cached_property
    def idle(self) -> float:
        """Idle time of all ranks together."""
        return self.copies * sum(lane.idle * len(lane.ranks) for lane in self.lanes)

    @property
    def share(self) -> float:
        """Idle share of all accelerator-time."""
        return self.idle / (self.makespan * self.ranks) if self.makespan else 0.0

    @cached_property
    def idle_by_cause(self) -> dict[str, float]:
        """Idle time of all ranks together, by what they wait for."""
        return {
            cause: self.copies * sum(lane.idle_by_cause.get(cause, 0.0) * len(lane.ranks) for lane in self.lanes)
            for cause in CAUSES
        }

    @property
    def kinds(self) -> list[str]:
        """Kinds of operations that occur, in the order of their words."""
        found = {str(kind) for lane in self.lanes for kind in np.unique(lane.kind)}
        return [kind for kind in WORDS if kind in found]

    def time(self, value: float) -> str:
        """A time in words: seconds in the unit that suits them, or ticks."""
        return duration(value) if self.unit == "s" else f"{value:,.4g} {self.unit}"

    def rows(self) -> str:
        """How many rows stand for how many ranks, where some are equal."""
        return f"{len(self.lanes)} rows for {self.ranks} ranks" if len(self.lanes) < self.ranks else ""

    def folded(self) -> str:
        """The part that is folded away, in words."""
        if self.cut is None:
            return ""
        more = f"{self.cut.micro_batches:,} more micro-batches"
        return f"{more}, the same pattern, {self.time(self.cut.length)}"


@dataclass(frozen=True)
class View:
    """Where times stand on a paper of some width: one scale, with a tear of some width where the chart is cut."""

    makespan: float
    width: float
    cut: Cut | None = None
    tear: float = 0.0
    knots: tuple[Numbers, Numbers] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        times, places = [0.0, self.makespan], [0.0, self.width]
        if self.cut is not None:
            left = self.cut.start * self.scale
            times, places = [0.0, self.cut.start, self.cut.end, self.makespan], [0, left, left + self.tear, self.width]
        object.__setattr__(self, "knots", (np.array(times, float), np.array(places, float)))

    @property
    def scale(self) -> float:
        """Width of one unit of time."""
        drawn = self.makespan - (self.cut.length if self.cut else 0.0)
        return (self.width - (self.tear if self.cut else 0.0)) / drawn if drawn else 0.0

    def place(self, times: Any) -> Any:
        """Where times stand."""
        return np.interp(times, *self.knots)

    def drawn(self, start: Numbers, end: Numbers) -> tuple[NDArray[np.intp], Numbers, Numbers]:
        """The intervals that are drawn: their indices and both ends, clipped at the tear."""
        if self.cut is None:
            index = np.arange(len(start))
            return index, self.place(start), self.place(end)
        a, b = self.cut.start, self.cut.end
        index = np.flatnonzero((start < a) | (end > b))
        start, end = start[index], end[index]
        left, right = np.where(start < a, start, np.maximum(start, b)), np.where(start < a, np.minimum(end, a), end)
        return index, self.place(left), self.place(right)


def merged(lanes: Sequence[Lane]) -> tuple[tuple[Lane, ...], dict[int, int]]:
    """Equal rows once; and the row of each rank."""
    found: dict[bytes, Lane] = {}
    keys = []
    for lane in lanes:
        key = b"|".join(
            part.tobytes() for part in (lane.start, lane.end, lane.kind, lane.chunk, lane.micro_batch, lane.other)
        )
        keys.append(key)
        found[key] = replace(found[key], ranks=found[key].ranks + lane.ranks) if key in found else lane
    rows = {key: row for row, key in enumerate(found)}
    return tuple(found.values()), {rank: rows[key] for lane, key in zip(lanes, keys) for rank in lane.ranks}


# --- what is said about it ------------------------------------------------------------------------------------------


def share(value: float) -> str:
    """A share in percent, also one that is very small."""
    return percent(value) if not value or value >= 5e-5 else f"{100 * value:.1g} %"


def between(values: Sequence[float], say: Any) -> str:
    """One value where all are equal, else the least and the largest."""
    low, high = min(values), max(values)
    return say(low) if high - low <= 1e-9 * max(abs(high), 1e-300) else f"{say(low)} to {say(high)}"


def sentences(chart: Chart) -> Iterator[str]:
    """The figures of a diagram in words: for its description, and for readers who do not see it."""
    yield f"Idle {share(chart.share)} of all accelerator-time, {chart.time(chart.idle)} over {chart.ranks} ranks."
    yield f"The step takes {chart.time(chart.makespan)}; the longest span of one rank is {chart.time(chart.span)}."
    causes = [f"{cause} {chart.time(value)}" for cause, value in chart.idle_by_cause.items() if value]
    if causes:
        yield f"Idle by cause: {', '.join(causes)}."
    peaks = between([lane.peak for lane in chart.lanes], "{:.4g}".format)
    yield f"Micro-batches in flight at the peak: {peaks}."
    if chart.cut:
        yield f"Not drawn: {chart.folded()}."
    yield from (f"{note[0].upper()}{note[1:]}." for note in chart.notes)
