"""Layers to stages: what each rank of a pipeline holds, and the few stages among which the worst one is.

Passes in flight never grow with the rank. So a stage between the ends can be the worst only if no stage before it
holds at least as much of everything: the first stage, those few, and the last stand for all, and a grid needs no rank
axis.
"""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np

from ..model.model import Model
from ..quantities import Count
from .axes import Layout


@dataclass(frozen=True)
class Stage:
    """What one rank of a pipeline holds. All zeros where there is no such stage."""

    name: str
    rank: Count
    counts: tuple[Count, ...]  # layers of each kind, in the order of `model.blocks`
    embedding: Count
    head: Count


def chunk_sizes(layers: int, pp: int, vpp: int, split: tuple[int, ...] = (), counts_ends: bool = False) -> list[int]:
    """Layers of each chunk: equal, the last ones shorter (61 layers on 4 stages: 16 16 16 13).

    `split` gives the layers of each chunk instead, or of each stage, shared equally by its chunks. With `counts_ends`
    embedding and head count as a layer each (61 on 4: 15 16 16 14), as torchtitan cuts.
    """
    chunks = pp * vpp
    if split:
        return list(split) if len(split) == chunks else [share // vpp for _ in range(vpp) for share in split]
    if counts_ends and chunks > 1:
        least, more = divmod(layers + 2, chunks)
        sizes = [least + (chunk < more) for chunk in range(chunks)]
        return [max(0, sizes[0] - 1), *sizes[1:-1], max(0, sizes[-1] - 1)]
    each = ceil(layers / chunks)
    return [max(0, min(each, layers - each * chunk)) for chunk in range(chunks)]


def stage_layers(
    layers: int, pp: int, vpp: int, split: tuple[int, ...] = (), counts_ends: bool = False, folded: bool = False
) -> list[list[int]]:
    """The layers of each rank: chunk c of rank r is chunk c * pp + r; folded, r and 2 pp - 1 - r are its two."""
    if folded and len(split) == pp:
        split = (*(share // vpp for share in split), *(share // vpp for share in reversed(split)))
    ends = np.cumsum([0, *chunk_sizes(layers, pp, vpp, split, counts_ends)]).tolist()
    chunks = [list(range(start, min(end, layers))) for start, end in pairwise(ends)]  # more chunks than layers: empty
    if folded:
        return [[*chunks[rank], *chunks[-1 - rank]] for rank in range(pp)]
    return [[layer for chunk in chunks[rank::pp] for layer in chunk] for rank in range(pp)]


def counted(model: Model, layers: list[int]) -> tuple[int, ...]:
    """Layers of each kind among some layers."""
    kinds = [model.pattern[layer] for layer in layers]
    return tuple(kinds.count(kind) for kind in range(len(model.blocks)))


@cache
def stages_of(
    model: Model, pp: int, vpp: int, split: tuple[int, ...], counts_ends: bool, folded: bool
) -> tuple[Stage, ...]:
    """All stages of a pipeline, in order."""
    ranks = stage_layers(model.layers, pp, vpp, split, counts_ends, folded)
    last = 0 if folded else pp - 1
    return tuple(
        Stage(f"stage {rank}", rank, counted(model, held), int(rank == 0), int(rank == last))
        for rank, held in enumerate(ranks)
    )


def every_stage(model: Model, layout: Layout, counts_ends: bool = False) -> tuple[Stage, ...]:
    """All stages of one layout, in order."""
    return stages_of(model, layout.pp, layout.vpp, tuple(layout.split or ()), counts_ends, bool(layout.folded))


@cache
def _candidates(
    model: Model, pp: int, vpp: int, split: tuple[int, ...], counts_ends: bool, folded: bool
) -> tuple[Stage, ...]:
    """The first stage, those between that no earlier one covers, and the last."""
    found = stages_of(model, pp, vpp, split, counts_ends, folded)
    kept: list[Stage] = []
    for stage in found[1:-1]:
        covered = any(all(a >= b for a, b in zip(other.counts, stage.counts, strict=True)) for other in kept)
        if not covered:
            kept.append(stage)
    return (found[0], *kept, *found[1:][-1:])


def candidates(model: Model, layout: Layout, counts_ends: bool = False) -> tuple[Stage, ...]:
    """The stages among which the worst one is, first and last at the ends; arrays where `pp` or `vpp` are arrays."""
    pp, vpp, folded = np.broadcast_arrays(layout.pp, layout.vpp, layout.folded)
    if pp.ndim == 0:
        split = tuple(layout.split or ())
        return _candidates(model, int(layout.pp), int(layout.vpp), split, counts_ends, bool(folded))
    columns = np.column_stack([pp.ravel(), vpp.ravel(), folded.ravel()])
    pipelines, index = np.unique(columns, axis=0, return_inverse=True)
    found = [_candidates(model, int(p), int(v), (), counts_ends, bool(f)) for p, v, f in pipelines]
    most = max(map(len, found))
    padded = [_padded(each, most, len(model.blocks)) for each in found]
    return tuple(_gathered(place, [each[place] for each in padded], index.reshape(pp.shape)) for place in range(most))


def _padded(stages: tuple[Stage, ...], most: int, kinds: int) -> tuple[Stage, ...]:
    """The same stages, with empty ones where another pipeline has more of them."""
    nothing = Stage("", 0, (0,) * kinds, 0, 0)
    return stages + (nothing,) * (most - len(stages))


def _gathered(place: int, stages: list[Stage], index: "np.ndarray[Any, np.dtype[np.intp]]") -> Stage:
    """One stage of several pipelines as arrays over layouts; one number where it does not vary."""

    def over(values: list[Count]) -> Count:
        same = all(value == values[0] for value in values)
        return values[0] if same else np.asarray(values, float)[index]

    counts = tuple(over([stage.counts[kind] for stage in stages]) for kind in range(len(stages[0].counts)))
    rank, embedding, head = (over([getattr(each, name) for each in stages]) for name in ("rank", "embedding", "head"))
    return Stage(f"candidate {place}", rank, counts, embedding, head)


def whole(model: Model) -> Stage:
    """All layers and both ends: the model before it is cut into stages."""
    return Stage("whole", 0, counted(model, list(range(model.layers))), 1, 1)
