"""Orders made slot by slot: from slots to rows, and a long order from a short one whose middle repeats."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..passes import Operation, many_passes
from ..program import Ints

BLOCK = 6  # slots in which a rank of two chunks does one micro-batch: F, B and W of each

Placed = Sequence[tuple[str, int, Sequence[int]]]  # of a rank: kind, stage, slots; the n-th slot is micro-batch n


class _Grid(NamedTuple):
    """What each rank does in each slot: a row a rank, a column a slot."""

    kind: Ints  # which of the rank's kinds of passes; -1 for none
    batch: Ints


def grown(make: Callable[[int], list[Placed]], micro_batches: int, short: int) -> list[list[Operation]]:
    """The order of so many micro-batches: one of `short`, whose middle is repeated where all ranks have one."""
    few = min(short, micro_batches)
    ranks, more, cut = make(few), micro_batches - few, 0
    grid = _grid(ranks)
    if more and not (cut := _cut(grid, few)):
        ranks, more = make(micro_batches), 0
        grid = _grid(ranks)
    return [_longer(rank, kind, batch, cut, more) for rank, kind, batch in zip(ranks, *grid)]


def _grid(ranks: list[Placed]) -> _Grid:
    size = max(slots[-1] for rank in ranks for _, _, slots in rank) + 1
    kind, batch = np.full((2, len(ranks), size), -1)
    for rank, kinds, batches in zip(ranks, kind, batch):
        for each, (_, _, slots) in enumerate(rank):
            kinds[slots] = each
            batches[slots] = range(len(slots))
    return _Grid(kind, batch)


def _cut(grid: _Grid, micro_batches: int) -> int:
    """The last slot before which every rank has done in two blocks what it did in the two before; 0 without one."""
    kind, batch = (each[:, : BLOCK * micro_batches] for each in grid)
    same = (kind[:, BLOCK:] == kind[:, :-BLOCK]) & ((kind[:, BLOCK:] < 0) | (batch[:, BLOCK:] == batch[:, :-BLOCK] + 1))
    differs = np.concatenate([[0], (~same.all(0)).cumsum()])
    able = np.flatnonzero(differs[2 * BLOCK :] == differs[: -2 * BLOCK]) + 3 * BLOCK
    return int(able[able > 3 * BLOCK].max(initial=0))


def _longer(rank: Placed, kind: Ints, batch: Ints, cut: int, more: int) -> list[Operation]:
    """The passes of a rank, with the last block before the cut so many times more."""
    at = np.flatnonzero(kind >= 0)
    kind, batch = kind[at], batch[at]
    first, last = np.searchsorted(at, [cut - BLOCK, cut]).tolist()
    turns = np.arange(more + 1).repeat(last - first) if more else np.zeros(last - first, np.int64)
    kind = np.concatenate([kind[:first], np.resize(kind[first:last], len(turns)), kind[last:]])
    again = np.resize(batch[first:last], len(turns)) + turns
    batch = np.concatenate([batch[:first], again, batch[last:] + more])
    letters, stages = (np.array([each[column] for each in rank])[kind].tolist() for column in (0, 1))
    return [*many_passes(letters, stages, batch.tolist())]
