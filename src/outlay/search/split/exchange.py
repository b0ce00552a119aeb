"""Splits that no move of one layer from a chunk to another makes better.

Ranks pass micro-batches through their first chunks, then through their second ones: each of these rows takes as long
as its slowest chunk, and the rows together at least as long as the slowest rank. A bill knows that rank alone; so of
splits that are the same to it, that with the shortest rows is sought, which no chunk holds up.
"""

from collections.abc import Callable
from itertools import permutations, product

import numpy as np

from .pipeline import Array, Pipeline

POWER = 8  # of the passes of all chunks, whose sum says where work is near the slowest
Moves = Callable[[Pipeline, Array], list[tuple[int, int]]]  # from which chunk to which


def exchanged(pipeline: Pipeline, start: Array, limit: float) -> Array:
    """The split at which moves of layers from the slowest chunk of a row, or from the heaviest rank, end."""
    return _improved(pipeline, start, limit, _from_slowest)


def settled(pipeline: Pipeline, start: Array, limit: float) -> Array:
    """The split at which moves of layers between the chunks of the first rank, and of the last, end.

    Layers of one kind; the other ranks share theirs alike, and the chunks with the ends of the model are to have fewer.
    """
    return _improved(pipeline, start, limit, _within_ends)


def _improved(pipeline: Pipeline, start: Array, limit: float, moves: Moves) -> Array:
    """The split at which moves end, each the best there is.

    Better is: shorter rows; then less work in chunks near the slowest; then a lower peak. Where the start does not fit,
    a lower peak comes first.
    """
    best, worth = start, _worth(pipeline, start[None], limit)[0]
    while len(near := _moved(best, moves(pipeline, best))):
        worths = _worth(pipeline, near, limit)
        first = min(range(len(near)), key=lambda place: worths[place])
        if worths[first] >= worth:
            break
        best, worth = near[first], worths[first]
    return best


def _moved(sizes: Array, moves: list[tuple[int, int]]) -> Array:
    """What each move of one layer makes of a split."""
    near = np.repeat(sizes[None], len(moves), 0)
    for row, (away, to) in zip(near, moves, strict=True):
        row[away] -= 1
        row[to] += 1
    return near


def _from_slowest(pipeline: Pipeline, sizes: Array) -> list[tuple[int, int]]:
    pp, vpp = pipeline.shape
    slowest = pipeline.chunk_passes(sizes[None]).reshape(vpp, pp).argmax(1) + pp * np.arange(vpp)
    heaviest = int(np.argmax([float(pipeline.terms(stage)[1][0]) for stage in pipeline.stages(sizes[None])]))
    away = sorted({*slowest.tolist(), *pipeline.places[heaviest]})
    return [(a, b) for a, b in product(away, range(len(sizes))) if a != b and sizes[a] > pipeline.least[a]]


def _within_ends(pipeline: Pipeline, sizes: Array) -> list[tuple[int, int]]:
    pairs = (pair for places in {pipeline.places[0], pipeline.places[-1]} for pair in permutations(places, 2))
    return [(a, b) for a, b in sorted(pairs) if sizes[a] > pipeline.least[a]]


def _worth(pipeline: Pipeline, sizes: Array, limit: float) -> list[tuple[float, ...]]:
    """How good some splits are, the best least."""
    peaks, passes = pipeline.counted(sizes)[1], pipeline.chunk_passes(sizes)
    near = ((passes / passes.max()) ** POWER).sum(1)
    over = np.where(peaks <= limit, 0.0, peaks)
    return list(zip(over.tolist(), pipeline.rows(passes).tolist(), near.tolist(), peaks.tolist(), strict=True))
