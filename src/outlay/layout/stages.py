"""Layers to stages: what each rank of a pipeline holds, and the few stages among which the worst one is.

Passes in flight never grow with the rank. So a stage between the ends can be the worst only if no stage before it
holds at least as much of everything: the first stage, those few, and the last stand for all, and a grid needs no rank
axis.
"""

from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
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
    unevenness: Count = 1  # most layers that its passes in flight may be in, over those if its chunks were equal


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


def chunk_layers(
    layers: int, pp: int, vpp: int, split: tuple[int, ...] = (), counts_ends: bool = False, folded: bool = False
) -> list[list[int]]:
    """The layers of each chunk, along the model. A folded split gives each stage's layers to its two chunks."""
    if folded and len(split) == pp:
        split = (*(share // vpp for share in split), *(share // vpp for share in reversed(split)))
    ends = np.cumsum([0, *chunk_sizes(layers, pp, vpp, split, counts_ends)]).tolist()
    return [list(range(start, min(end, layers))) for start, end in pairwise(ends)]  # more chunks than layers: empty


def stage_layers(
    layers: int, pp: int, vpp: int, split: tuple[int, ...] = (), counts_ends: bool = False, folded: bool = False
) -> list[list[int]]:
    """The layers of each rank: chunk c of rank r is chunk c * pp + r; folded, r and 2 pp - 1 - r are its two."""
    chunks = chunk_layers(layers, pp, vpp, split, counts_ends, folded)
    return [[layer for chunk in rank_chunks(pp, vpp, rank, folded) for layer in chunks[chunk]] for rank in range(pp)]


def rank_chunks(pp: int, vpp: int, rank: int, folded: bool) -> tuple[int, ...]:
    """The chunks of a rank, along the model: every pp-th; folded, r and 2 pp - 1 - r, down the ranks and up again."""
    return tuple(row * pp + (pp - 1 - rank if folded and row % 2 else rank) for row in range(vpp))


def every_chunk(model: Model, layout: Layout, counts_ends: bool = False) -> tuple[Stage, ...]:
    """The chunks of one layout along the model, each as a stage by itself."""
    split, folded = tuple(layout.split or ()), bool(layout.folded)
    chunks = chunk_layers(model.layers, layout.pp, layout.vpp, split, counts_ends, folded)
    last = len(chunks) - 1
    return tuple(
        Stage(f"chunk {place}", place, counted(model, held), int(place == 0), int(place == last))
        for place, held in enumerate(chunks)
    )


def counted(model: Model, layers: list[int]) -> tuple[int, ...]:
    """Layers of each kind among some layers."""
    kinds = [model.pattern[layer] for layer in layers]
    return tuple(kinds.count(kind) for kind in range(len(model.blocks)))


@cache
def stages_of(
    model: Model, pp: int, vpp: int, split: tuple[int, ...], counts_ends: bool, folded: bool
) -> tuple[Stage, ...]:
    """All stages of a pipeline, in order."""
    chunks = chunk_layers(model.layers, pp, vpp, split, counts_ends, folded)
    found = []
    for rank in range(pp):
        places = rank_chunks(pp, vpp, rank, folded)
        held = [chunks[chunk] for chunk in places]
        layers = [layer for chunk in held for layer in chunk]
        uneven = unevenness(list(map(len, held)))
        head = int(places[-1] == len(chunks) - 1)
        found.append(Stage(f"stage {rank}", rank, counted(model, layers), int(rank == 0), head, uneven))
    return tuple(found)


def unevenness(sizes: list[int]) -> float:
    """The most layers that passes in flight may be in, over those if they were spread evenly over a rank's chunks.

    A micro-batch that is in flight in a chunk is so in every earlier one, which it entered before and leaves later. So
    the most is where all passes are spread over the first chunks alone, as many as have the largest mean.
    """
    if not sum(sizes):
        return 1
    means = (held / chunks for chunks, held in enumerate(accumulate(sizes), 1))
    return len(sizes) * max(means) / sum(sizes)


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
        covered = any(_covers(other, stage) for other in kept)
        if not covered:
            kept.append(stage)
    return (found[0], *kept, *found[1:][-1:])


def _covers(other: Stage, stage: Stage) -> bool:
    """Whether a stage holds at least as much of everything as another one."""
    more = all(a >= b for a, b in zip(other.counts, stage.counts, strict=True))
    return more and bool(other.unevenness >= stage.unevenness)


def distinct(codes: "np.ndarray[Any, np.dtype[np.intp]]") -> tuple[Any, Any]:
    """Where each distinct code from 0 on stands first, in order of the codes, and which of them each element is.

    As `np.unique`, without sorting.
    """
    seen = np.zeros(int(codes.max(initial=0)) + 1, int)
    seen[codes] = 1
    present = np.flatnonzero(seen)
    seen[present] = np.arange(present.size)
    index = seen[codes]
    first = np.empty(present.size, int)
    first[index[::-1]] = np.arange(codes.size)[::-1]
    return first, index


def candidates(model: Model, layout: Layout, counts_ends: bool = False) -> tuple[Stage, ...]:
    """The stages among which the worst one is, first and last at the ends; arrays where `pp` or `vpp` are arrays."""
    pp, vpp, folded = np.broadcast_arrays(layout.pp, layout.vpp, layout.folded)
    if pp.ndim == 0:
        split = tuple(layout.split or ())
        return _candidates(model, int(layout.pp), int(layout.vpp), split, counts_ends, bool(folded))
    wide = 2 * int(vpp.max(initial=0)) + 2  # of a pipeline: one whole number
    codes = (pp * wide + 2 * vpp + folded).astype(int).ravel()
    first, index = distinct(codes)
    pipelines = [(code // wide, code % wide // 2, code % 2) for code in codes[first].tolist()]
    found = [_candidates(model, p, v, (), counts_ends, bool(f)) for p, v, f in pipelines]
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
    others = (over([getattr(each, name) for each in stages]) for name in ("rank", "embedding", "head", "unevenness"))
    rank, embedding, head, unevenness = others
    return Stage(f"candidate {place}", rank, counts, embedding, head, unevenness)


def whole(model: Model) -> Stage:
    """All layers and both ends: the model before it is cut into stages."""
    return Stage("whole", 0, counted(model, list(range(model.layers))), 1, 1)
