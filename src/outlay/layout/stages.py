"""Layers to stages: what each rank of a pipeline holds, and the three stages of which one is the worst.

Among ranks that hold the same, the first has most passes in flight. So the first stage, the heaviest between, and the
last stand for all: a grid needs no rank axis.
"""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import ceil

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


def chunk_layers(layers: int, pp: int, vpp: int, split: tuple[int, ...] = ()) -> list[list[int]]:
    """The layers of each chunk, chunk by chunk: equal, the last ones shorter (48 + 13 layers on 4 stages: 16 16 16 13).

    `split` gives the layers of each stage instead; each stage's layers are then dealt to its chunks in turn.
    """
    if split:
        per_chunk = [share // vpp + (turn < share % vpp) for turn in range(vpp) for share in split]
    else:
        each = ceil(layers / (pp * vpp))
        per_chunk = [max(0, min(each, layers - each * chunk)) for chunk in range(pp * vpp)]
    ends = np.cumsum([0, *per_chunk]).tolist()
    return [list(range(start, end)) for start, end in pairwise(ends)]


def stage_layers(layers: int, pp: int, vpp: int, split: tuple[int, ...] = ()) -> list[list[int]]:
    """The layers of each rank: chunk c of rank r is chunk c * pp + r."""
    chunks = chunk_layers(layers, pp, vpp, split)
    return [[layer for chunk in chunks[rank::pp] for layer in chunk] for rank in range(pp)]


def counted(model: Model, layers: list[int]) -> tuple[int, ...]:
    """Layers of each kind among some layers."""
    kinds = [model.pattern[layer] for layer in layers]
    return tuple(kinds.count(kind) for kind in range(len(model.blocks)))


def every_stage(model: Model, layout: Layout) -> tuple[Stage, ...]:
    """All stages of one layout, in order."""
    ranks = stage_layers(model.layers, layout.pp, layout.vpp, layout.split)
    last = layout.pp - 1
    return tuple(
        Stage(f"stage {rank}", rank, counted(model, held), int(rank == 0), int(rank == last))
        for rank, held in enumerate(ranks)
    )


def _heaviest(model: Model, between: list[Stage]) -> Stage:
    """Of the stages between the ends, the first of those with most experts, then most layers."""
    experts = [block.feed_forward.experts > 0 for block in model.blocks]

    def weight(stage: Stage) -> tuple[float, float]:
        of_experts = sum(float(count) for count, is_expert in zip(stage.counts, experts, strict=True) if is_expert)
        return of_experts, sum(map(float, stage.counts))

    return max(between, key=weight)


@cache
def _candidates(model: Model, pp: int, vpp: int, split: tuple[int, ...]) -> tuple[Stage, Stage, Stage]:
    ranks = stage_layers(model.layers, pp, vpp, split)
    held = [
        Stage("", rank, counted(model, layers), int(rank == 0), int(rank == pp - 1))
        for rank, layers in enumerate(ranks)
    ]
    nothing = Stage("", 0, (0,) * len(model.blocks), 0, 0)
    return held[0], _heaviest(model, held[1:-1]) if pp > 2 else nothing, held[-1] if pp > 1 else nothing


NAMES = ("first", "middle", "last")


def candidates(model: Model, layout: Layout) -> tuple[Stage, Stage, Stage]:
    """The first stage, the heaviest between, and the last; arrays where `pp` or `vpp` are arrays."""
    pp, vpp = np.broadcast_arrays(layout.pp, layout.vpp)
    if pp.ndim == 0:
        found = [_candidates(model, int(layout.pp), int(layout.vpp), tuple(layout.split or ()))]
        index = None
    else:
        pairs, index = np.unique(np.column_stack([pp.ravel(), vpp.ravel()]), axis=0, return_inverse=True)
        found = [_candidates(model, int(p), int(v), ()) for p, v in pairs]
        index = index.reshape(pp.shape)
    first, middle, last = (_gathered(name, [each[i] for each in found], index) for i, name in enumerate(NAMES))
    return first, middle, last


def _gathered(name: str, stages: list[Stage], index: "np.ndarray[tuple[int, ...], np.dtype[np.intp]] | None") -> Stage:
    """One stage of several layouts as arrays over them."""

    def field(values: list[Count]) -> Count:
        return values[0] if index is None else np.asarray(values, float)[index]

    counts = tuple(field([stage.counts[kind] for stage in stages]) for kind in range(len(stages[0].counts)))
    return Stage(
        name,
        field([stage.rank for stage in stages]),
        counts,
        field([stage.embedding for stage in stages]),
        field([stage.head for stage in stages]),
    )


def whole(model: Model) -> Stage:
    """All layers and both ends: the model before it is cut into stages."""
    return Stage("whole", 0, counted(model, list(range(model.layers))), 1, 1)
