"""A chain of layers cut into stages: every cut that no other beats in each of several costs, by dynamic programming.

A cost of a cut is that of its worst stage. A cut counts only where it is not worse than another in every cost, so
whatever grows with each of them is least for one of the cuts that are kept.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Costs = Callable[[int], Array]  # of a stage: (costs, from, to), infinite where the stage cannot hold these layers


class Cuts(NamedTuple):
    """Cuts of a chain: where each stage ends, and the cost of the worst stage in each of the costs."""

    ends: Array  # (cuts, stages)
    worst: Array  # (cuts, costs)


def best_cuts(layers: int, stages: int, costs: Costs) -> Cuts:
    """The cuts that no other beats, in a fixed order; none where no cut can be held.

    Stage after stage, of the ways to end a stage at a layer those are kept that no other beats: what follows depends
    on nothing else.
    """
    terms = len(costs(0))
    found = Cuts(np.zeros((1, 0), int), np.full((1, terms), -np.inf))
    for stage in range(stages):
        last = found.ends[:, -1] if stage else np.zeros(1, int)
        table = costs(stage)[:, last]  # (costs, ways, to)
        if stage == stages - 1:
            table = np.where(np.arange(layers + 1) == layers, table, np.inf)
        way, end = np.nonzero(np.isfinite(table).all(0))
        if not way.size:
            return Cuts(np.empty((0, stages), int), np.empty((0, terms)))
        worst = np.maximum(found.worst[way], table[:, way, end].T)
        kept = _unbeaten(end, worst)
        found = Cuts(np.column_stack((found.ends[way[kept]], end[kept])), worst[kept])
    return found


def _unbeaten(end: Array, worst: Array) -> Array:
    """Which ways are kept: of those that end at one layer, each that no other one equals or beats in every cost.

    In order of its costs the first way of a layer is beaten by none. It is kept, what it beats is left out, and so on.
    """
    left = np.lexsort((*worst.T[::-1], end))
    kept = []
    while left.size:
        starts = np.diff(end[left], prepend=-1) != 0
        first = left[starts]
        kept.append(first)
        left = left[(worst[first[np.cumsum(starts) - 1]] > worst[left]).any(1)]
    return np.concatenate(kept)
