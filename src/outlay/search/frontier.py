"""The exact frontier of time against memory: layouts that no other beats on both."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
BINS = 256


@dataclass(frozen=True)
class Point:
    """One layout of the frontier, and where it stands."""

    peak: float
    seconds: float
    row: int
    cell: int  # of the options of that row


class Frontier:
    """Least time for each memory. A staircase over memory bins drops nearly all cells; the few left are sorted."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.bound = np.full(BINS + 1, np.inf)  # least time with memory in a lower bin
        self.points: Floats = np.empty((0, 4))  # peak, seconds, row, cell

    def offer(self, peaks: Floats, seconds: Floats, rows: NDArray[np.intp]) -> None:
        """Look at a block: peaks broadcast against seconds, rows along the last axis."""
        keep = seconds < np.where(peaks <= self.limit, self.bound[self._bins(peaks)], -np.inf)
        places = np.flatnonzero(keep)
        if not places.size:
            return
        memory = np.broadcast_to(peaks, seconds.shape)[np.unravel_index(places, seconds.shape)]
        times = seconds.ravel()[places]
        self._tighten(memory, times)
        left = np.flatnonzero(times < self.bound[self._bins(memory)])
        places, width = places[left], seconds.shape[-1]
        found = np.column_stack([memory[left], times[left], rows[places % width], places // width])
        self.points = staircase(np.concatenate([self.points, found]))

    def _bins(self, peaks: Floats) -> NDArray[np.intp]:
        bins: NDArray[np.intp] = np.minimum(peaks * (BINS / self.limit), BINS).astype(np.intp)
        return bins

    def _tighten(self, peaks: Floats, seconds: Floats) -> None:
        """Layouts bound those in every higher bin: most of a first block fall here, before any are sorted."""
        least = np.full(BINS + 2, np.inf)
        np.minimum.at(least, self._bins(peaks) + 1, seconds)
        self.bound = np.minimum(self.bound, np.minimum.accumulate(least)[:-1])

    def found(self) -> list[Point]:
        """The frontier, least memory first."""
        return [Point(float(peak), float(seconds), int(row), int(cell)) for peak, seconds, row, cell in self.points]


def staircase(points: Floats) -> Floats:
    """Points that no other beats on both, sorted by memory; of equal points the first in order stays."""
    points = points[np.lexsort((points[:, 3], points[:, 2], points[:, 1], points[:, 0]))]
    before = np.concatenate([[np.inf], np.minimum.accumulate(points[:, 1])[:-1]])
    kept: Floats = points[points[:, 1] < before]
    return kept
