"""What repeats in a timing diagram: the longest time in which every row does the same again for later micro-batches."""

from collections.abc import Sequence
from math import ceil

import numpy as np

from .drawing import Cut, Lane, Numbers, Whole

LEAST_SAVED = 0.2  # share of the step that a fold has to spare
KEPT = 4  # micro-batches of the steady state that stay on each side, at most


def fold(lanes: Sequence[Lane], micro_batches: int, makespan: float, least_rounds: int = 3) -> Cut | None:
    """The part to leave out, where more than `least_rounds` micro-batches a rank run and a part of them repeats."""
    ranks = sum(len(lane.ranks) for lane in lanes)
    if micro_batches <= least_rounds * ranks or not all(len(lane.start) for lane in lanes):
        return None
    rows = [_Row(lane) for lane in lanes]
    most = max(1, min(micro_batches // 3, 4 * ranks))
    for lag in range(1, most + 1):
        period = rows[0].period(lag)
        if period <= 0:
            continue
        free = _regular(rows[:1], lag, period, makespan)
        if free[1] - free[0] > 2 * period:
            free = _regular(rows, lag, period, makespan)
        if cut := _cut(free, period, makespan, ceil(min(KEPT, ranks) / lag) if lag < KEPT else 0):
            number = _micro_batches(lanes, micro_batches, *cut)
            return Cut(*cut, number) if number else None  # GPipe does all forward passes first: nothing to fold
    return None


def _cut(free: tuple[float, float], period: float, makespan: float, side: int) -> tuple[float, float] | None:
    """Whole periods inside the regular time, some of them kept on each side."""
    times = int((free[1] - free[0]) / period) - 2 * side
    if times < 1 or times * period < LEAST_SAVED * makespan:
        return None
    start = free[0] + side * period
    return start, start + times * period


def _micro_batches(lanes: Sequence[Lane], micro_batches: int, start: float, end: float) -> int:
    """Micro-batches that pass in this time, forward and backward: its share of all passes; 0 where the two differ."""
    found = []
    for kinds in (("F", "P"), ("B", "I", "P")):
        passes = [np.isin(lane.kind, kinds) for lane in lanes]
        inside = (here & (lane.start >= start) & (lane.start < end) for here, lane in zip(passes, lanes))
        every = sum(int(here.sum()) for here in passes)
        found.append(round(micro_batches * sum(int(here.sum()) for here in inside) / every) if every else 0)
    return found[0] if found[0] == found[1] else 0


class _Row:
    """One row, sorted so that the same pass of later micro-batches stands at later places."""

    def __init__(self, lane: Lane) -> None:
        order = np.lexsort((lane.micro_batch, lane.stage, lane.kind))
        _, kinds = np.unique(lane.kind, return_inverse=True)
        self.start: Numbers = lane.start[order]
        self.long: Numbers = (lane.end - lane.start)[order]
        self.group: Whole = (kinds * (1 + int(lane.stage.max())) + lane.stage)[order]
        self.micro_batch: Whole = lane.micro_batch[order]
        self.other: Whole = lane.other[order]
        sizes = np.bincount(self.group)
        self.most = int(sizes.max())  # micro-batches of the pass that this row does most often
        self.first = int(np.searchsorted(self.group, int(sizes.argmax())))

    def period(self, lag: int) -> float:
        """How much later that pass comes, so many micro-batches on; in the middle of the step."""
        middle = self.first + self.most // 2
        return float(self.start[middle + lag] - self.start[middle]) if self.most // 2 + lag < self.most else 0.0

    def irregular(self, lag: int, period: float, slack: float) -> Numbers:
        """Starts of the passes that do not come again exactly one period later, or did not come one before."""
        same = (self.group[lag:] == self.group[:-lag]) & (self.micro_batch[lag:] - self.micro_batch[:-lag] == lag)
        same &= (self.other[lag:] - self.other[:-lag] == lag) | (self.other[lag:] == -1) & (self.other[:-lag] == -1)
        later = np.abs(self.start[lag:] - self.start[:-lag] - period) <= slack
        again = same & later & (np.abs(self.long[lag:] - self.long[:-lag]) <= slack)
        ends = np.zeros(lag, bool)
        found: Numbers = self.start[~(np.concatenate([again, ends]) & np.concatenate([ends, again]))]
        return found


def _regular(rows: Sequence[_Row], lag: int, period: float, makespan: float) -> tuple[float, float]:
    """The longest time in which no pass of these rows is irregular."""
    slack = 1e-9 * makespan
    marks = np.unique(np.concatenate([[0.0, makespan], *(row.irregular(lag, period, slack) for row in rows)]))
    at = int(np.argmax(np.diff(marks)))
    longest = max(float(row.long.max()) for row in rows)
    return float(marks[at]) + longest, float(marks[at + 1])
