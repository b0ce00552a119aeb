"""The k fastest layouts that fit, kept while blocks go by: only cells under the k-th time so far are looked at."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, order=True)
class Found:
    """One layout that was kept: its step time and peak, and where it stands.

    In order: by time, then by peak, then by place, which is by the schedule and the other fields of the layout in the
    order in which a space lists their values. So no two are equal, and the order of the blocks changes nothing.
    """

    seconds: float
    peak: float
    row: int
    cell: int  # of the options of that row


class Best:
    """The k fastest layouts whose peak stays under a limit."""

    def __init__(self, most: int, limit: float) -> None:
        self.most, self.limit = most, limit
        self.found: list[Found] = []
        self.fitting = 0

    @property
    def bound(self) -> float:
        """The k-th time so far: what is slower cannot be kept."""
        return self.found[-1].seconds if len(self.found) == self.most else np.inf

    @property
    def fastest(self) -> float:
        """The least time so far."""
        return self.found[0].seconds if self.found else np.inf

    def offer(self, peaks: Floats, seconds: Floats, rows: NDArray[np.intp]) -> None:
        """Look at a block: peaks broadcast against seconds, rows along the last axis."""
        fits = peaks <= self.limit
        self.fitting += int(np.count_nonzero(fits)) * (seconds.size // peaks.size)
        if seconds.min() > self.bound:
            return
        under = np.flatnonzero((seconds <= self.bound) & fits)
        if not under.size:
            return
        flat = seconds.ravel()[under]
        if len(under) > self.most:
            last = np.partition(flat, self.most - 1)[self.most - 1]
            under = under[flat <= last]
        wide = np.broadcast_to(peaks, seconds.shape)
        width = seconds.shape[-1]
        for place in under.tolist():
            at = np.unravel_index(place, seconds.shape)
            self.found.append(Found(float(seconds[at]), float(wide[at]), int(rows[place % width]), place // width))
        self.found = sorted(self.found)[: self.most]
