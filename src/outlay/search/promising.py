"""The rows of a large space that could hold one of the best layouts; the others are passed over, by proof.

No option of a row is faster than the same with nothing recomputed, nothing in host memory and all exchange hidden, and
none is smaller than one with all in host memory that can be and nothing, modules or every layer recomputed. Both are
counted for every row and ZeRO stage. Rows are then counted whole, the fastest bound first, until the next bound is
above the k-th time found.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..layout.case import Case
from ..layout.stages import whole
from ..memory.peak import peak
from ..stage import stage_costs
from ..step.total import step_seconds
from .best import Best
from .blocks import Block, Grid, with_options
from .options import AXES
from .rows import taken
from .space import Space
from .split.stacked import staged

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
SLAB = 4_000_000  # cells that are counted before the bound is looked at again
AWAY = ("offload_optimizer", "offload_parameters", "offload_activations")
HIDDEN = ("overlap_tp", "overlap_ep", "overlap_dp")


def fastest_options(space: Space) -> Space:
    """The space with the options that no other of the same row and stage beats in time."""
    nothing: dict[str, Any] = dict.fromkeys(AWAY, (0.0,))
    hidden: dict[str, Any] = {name: (max(getattr(space, name)),) for name in HIDDEN}
    again = space.recompute if space.recompute == (("selective", 0),) else (("none", 0),)
    return replace(space, recompute=again, **nothing, **hidden)


def smallest_options(space: Space) -> Space:
    """The space with options of which one is the smallest of each row and stage."""
    everything: dict[str, Any] = {name: (max(getattr(space, name)),) for name in AWAY}
    hidden: dict[str, Any] = {name: getattr(space, name)[:1] for name in HIDDEN}
    kinds = [pair for pair in space.recompute if pair[0] != "full"]
    again = [pair for pair in space.recompute if pair[0] == "full"]  # what stands is linear in the layers
    return replace(space, recompute=tuple(dict.fromkeys([*kinds, *again[:1], *again[-1:]])), **everything, **hidden)


def least_seconds(grid: Grid, only: Rows | None = None) -> Floats:
    """Seconds that no layout of a row is faster than, legal or not; of some rows alone, without end for the others."""

    def seconds(case: Case, costs: Any) -> Any:
        asked, stages = staged(case, costs, AXES)
        return step_seconds(stages, stage_costs(whole(case.model), costs, case.layout.pp), asked)

    return _least(grid, fastest_options(grid.space), seconds, only)


def least_peaks(grid: Grid, only: Rows | None = None) -> Floats:
    """Bytes that no layout of a row is smaller than, legal or not; of some rows alone, without end for the others."""

    def peaks(case: Case, costs: Any) -> Any:
        asked, stages = staged(case, costs, AXES)
        return peak(stages, asked)

    return _least(grid, smallest_options(grid.space), peaks, only)


def _least(grid: Grid, space: Space, count: Callable[[Case, Any], Any], only: Rows | None) -> Floats:
    """The least of some count over the options of each row."""
    found, hoisted, rows = np.full(len(grid.rows), np.inf), grid.hoisted, grid.rows.layout
    for ids, some in Grid(grid.case, space, grid.rows).pieces(only=only):
        block = replace(grid.case, layout=with_options(grid.case, taken(rows, ids), some))
        counts = np.asarray(count(block, hoisted.at(ids)))
        found[ids] = counts.min(axis=tuple(range(counts.ndim - 1)))
    return found


def promising(grid: Grid, best: Best, least: Best) -> Iterator[Block]:
    """Blocks of the rows that could hold one of the best, or the smallest where none fits: first those with the usual
    modules, then those with other ones, whose bounds are asked of the rows that are left."""
    if not len(grid.rows):
        return
    seconds, peaks = least_seconds(grid), least_peaks(grid)
    yield from _while_better((grid,), np.flatnonzero(peaks <= best.limit), seconds, lambda: best.bound)
    left = np.flatnonzero(seconds <= best.bound)
    every = (grid, *grid.alike[1:])
    seconds = np.concatenate([np.full(len(grid.rows), np.inf), *(least_seconds(each, left) for each in every[1:])])
    peaks = np.concatenate([peaks, *(least_peaks(each, left) for each in every[1:])])
    yield from _while_better(every, np.flatnonzero(peaks <= best.limit), seconds, lambda: best.bound)
    if not best.found:
        yield from _while_better(every, np.flatnonzero(peaks > best.limit), peaks, lambda: least.bound)


def _while_better(grids: tuple[Grid, ...], rows: Rows, bounds: Floats, most: Callable[[], float]) -> Iterator[Block]:
    """Rows of all grids in the order of their bounds, slab by slab, until the next is above the most."""
    rows, count = rows[np.argsort(bounds[rows], kind="stable")], len(grids[0].rows)
    cells = np.concatenate([each.cells for each in grids])
    slabs = np.cumsum(cells[rows]) // SLAB
    for slab in np.split(rows, np.flatnonzero(np.diff(slabs)) + 1):
        kept = slab[(bounds[slab] <= most()) & (bounds[slab] < np.inf)]
        if not kept.size:
            return
        for place, each in enumerate(grids):
            own = kept[kept // count == place] % count
            if own.size:
                yield from each.own_blocks(only=own, start=place * count)
