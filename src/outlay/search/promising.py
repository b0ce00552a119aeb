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
SLAB = 2_000_000  # cells that are counted before the bound is looked at again
AWAY = ("offload_optimizer", "offload_parameters", "offload_activations")
HIDDEN = ("overlap_tp", "overlap_ep", "overlap_dp")


def fastest_options(space: Space) -> Space:
    """The space with the options that no other of the same row and stage beats in time."""
    nothing: dict[str, Any] = dict.fromkeys(AWAY, (0.0,))
    hidden: dict[str, Any] = {name: (max(getattr(space, name)),) for name in HIDDEN}
    return replace(space, recompute=(("none", 0),), **nothing, **hidden)


def smallest_options(space: Space) -> Space:
    """The space with options of which one is the smallest of each row and stage."""
    everything: dict[str, Any] = {name: (max(getattr(space, name)),) for name in AWAY}
    hidden: dict[str, Any] = {name: getattr(space, name)[:1] for name in HIDDEN}
    kinds = [pair for pair in space.recompute if pair[0] != "full"]
    again = [pair for pair in space.recompute if pair[0] == "full"]  # what stands is linear in the layers
    return replace(space, recompute=tuple(dict.fromkeys([*kinds, *again[:1], *again[-1:]])), **everything, **hidden)


def least_seconds(grid: Grid) -> Floats:
    """Seconds that no layout of a row is faster than, legal or not."""

    def seconds(case: Case, costs: Any) -> Any:
        asked, stages = staged(case, costs, AXES)
        return step_seconds(stages, stage_costs(whole(case.model), costs, case.layout.pp), asked)

    return _least(grid, fastest_options(grid.space), seconds)


def least_peaks(grid: Grid) -> Floats:
    """Bytes that no layout of a row is smaller than, legal or not."""

    def peaks(case: Case, costs: Any) -> Any:
        asked, stages = staged(case, costs, AXES)
        return peak(stages, asked)

    return _least(grid, smallest_options(grid.space), peaks)


def _least(grid: Grid, space: Space, count: Callable[[Case, Any], Any]) -> Floats:
    """The least of some count over the options of each row."""
    found, hoisted, rows = np.empty(len(grid.rows)), grid.hoisted, grid.rows.layout
    for ids, some in Grid(grid.case, space, grid.rows).pieces():
        block = replace(grid.case, layout=with_options(grid.case, taken(rows, ids), some))
        counts = np.asarray(count(block, hoisted.at(ids)))
        found[ids] = counts.min(axis=tuple(range(counts.ndim - 1)))
    return found


def promising(grid: Grid, best: Best, least: Best) -> Iterator[Block]:
    """Blocks of the rows that could hold one of the best, or the smallest where none fits."""
    if not len(grid.rows):
        return
    seconds, count = least_seconds(grid), len(grid.rows)
    peaks = [least_peaks(each) for each in grid.alike]
    for place, each in enumerate(grid.alike):
        fits = np.flatnonzero(peaks[place] <= best.limit)
        yield from _while_better(each, fits, seconds, lambda: best.bound, place * count)
    for place, each in enumerate(() if best.found else grid.alike):
        left = np.flatnonzero(peaks[place] > best.limit)
        yield from _while_better(each, left, peaks[place], lambda: least.bound, place * count)


def _while_better(
    grid: Grid, rows: NDArray[np.intp], bounds: Floats, most: Callable[[], float], start: int
) -> Iterator[Block]:
    """Rows in the order of their bounds, slab by slab, until the next bound is above the most."""
    rows = rows[np.argsort(bounds[rows], kind="stable")]
    slabs = np.cumsum(grid.cells[rows]) // SLAB
    for slab in np.split(rows, np.flatnonzero(np.diff(slabs)) + 1):
        kept = slab[bounds[slab] <= most()]
        if not kept.size:
            return
        yield from grid.own_blocks(only=kept, start=start)
