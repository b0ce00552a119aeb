"""What parameters cost beyond their number: by the shape of their matrices, and by where they stand.

A matrix inside a layer, the embedding, the head, and vectors (norms and biases) are different things to an optimizer
and to a quantised matrix multiply. Sums over a layer's rows are in `layer.py`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..cluster.efficiency import Rates
from ..engines.recipe import Moments
from ..formula import maximum, minimum, where
from ..quantities import Bytes, Count, Flops, Params, Seconds
from .operations import Linear, Pointwise, Row, Sizes

VECTORS = ("one", "two")  # what a vector's parameters are counted by; a table's are counted by a width


def matrix_values(linear: Linear, here: Sizes) -> Params:
    """Parameters of a linear's matrices, biases apart."""
    return here[linear.owned] * here[linear.copies] * here[linear.ins] * here[linear.outs]


def inner_values(linear: Linear, here: Sizes) -> Params:
    """The same where the matrix stands inside a layer: not the head."""
    return where(linear.half, 0, matrix_values(linear, here))


def linear_moments(linear: Linear, here: Sizes, moments: Moments) -> Bytes:
    """Optimizer state of a linear: each value of its matrices, each row and column, its projection, and its biases.

    Factors and projections: Shazeer and Stern 2018; Zhao et al. 2024.
    """
    matrices: Count = here[linear.owned] * here[linear.copies]
    long: Count = maximum(here[linear.ins], here[linear.outs])
    short: Count = minimum(here[linear.ins], here[linear.outs])
    values: Bytes = where(linear.half, moments.head, moments.matrix) * long * short
    factors: Bytes = moments.factor * (long + short)
    rank: Count = where(linear.half, 0, minimum(moments.rank, short))
    projected: Bytes = rank * (moments.projected * long + moments.projector * short)
    biases: Bytes = where(linear.biased, moments.vector * matrices * here[linear.outs], 0)
    return matrices * (values + factors + projected) + biases


def pointwise_moments(pointwise: Pointwise, here: Sizes, moments: Moments) -> Bytes:
    """Optimizer state of a table, which is a matrix to those that factor, or of a norm's vectors."""
    factors: Bytes = moments.factor * (here[pointwise.weights] + here[pointwise.per])
    table: Bytes = moments.embedding * pointwise.parameters(here) + factors
    return where(pointwise.per in VECTORS, moments.vector * pointwise.parameters(here), table)


def vector_moments(row: Row, here: Sizes, moments: Moments) -> Bytes:
    """Optimizer state of parameters that are no matrix."""
    return moments.vector * row.parameters(here)


def newton_schulz(linear: Linear, here: Sizes, steps: Count) -> Flops:
    """FLOPs that orthogonalise a linear's matrices: X X', its square, and their product with X, in each step.

    For an m x n matrix, m <= n: 2 m m n + 2 m m m + 2 m m n. Source: torch.optim.Muon; Keller Jordan 2024.
    """
    long: Count = maximum(here[linear.ins], here[linear.outs])
    short: Count = minimum(here[linear.ins], here[linear.outs])
    matrices: Count = where(linear.half, 0, here[linear.owned] * here[linear.copies])
    return steps * matrices * here["multiply_add"] * short * short * (2 * long + short)


def orthogonalised(linear: Linear, here: Sizes, steps: Count, rates: Rates) -> Seconds:
    """Time of that, in bf16."""
    return newton_schulz(linear, here, steps) / rates.half_matmul


def input_spared(linear: Linear, here: Sizes, spares: Bytes, again: Bytes) -> Bytes:
    """Bytes that a quantised linear's input waits with less than in 16 bit.

    The attention core keeps its output in 16 bit for itself: a quantised copy of it comes on top, where there is one.
    """
    value: Bytes = where(linear.ins == "o", -1 * again, spares)
    return where(linear.half, 0, value * here[linear.waits] * here[linear.ins])


# --- distinct shapes ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shapes:
    """Matrices that differ in shape, and are found in exactly these parts of a model: values of one of each shape."""

    name: str
    parts: tuple[int, ...]  # places of kinds of layers and of the two ends
    values: Params


@dataclass
class _Shape:
    """One shape and the parts that have it; `values` is 0 where a grid's layouts give these parts no such shape."""

    ins: Any
    outs: Any
    values: Any
    parts: set[int] = field(default_factory=set)


def distinct_shapes(names: Sequence[str], walked: Iterable[tuple[Sequence[Linear], Sizes]]) -> tuple[Shapes, ...]:
    """The distinct shapes [out, in] of all parts' trained matrices, by the parts that have them.

    Shapes are equal where their sizes on a rank are, whatever they are called: an expert's and a shared expert's.
    """
    found: list[_Shape] = []
    for place, (linears, here) in enumerate(walked):
        for row in linears:
            _add(found, _Shape(here[row.ins], here[row.outs], here[row.ins] * here[row.outs], {place}), place)
    grouped: dict[tuple[int, ...], Any] = {}
    for shape in found:
        key = tuple(sorted(shape.parts))
        grouped[key] = grouped.get(key, 0) + shape.values
    return tuple(Shapes(" and ".join(names[at] for at in key), key, values) for key, values in grouped.items())


def _add(found: list[_Shape], new: _Shape, place: int) -> None:
    """Add one shape, less where it is one of those that were found: there its part has it too."""
    for old in tuple(found):
        same = (old.ins == new.ins) & (old.outs == new.outs)
        if not np.any(same):
            continue
        if np.all(same):
            old.parts.add(place)
            new.values = 0
        elif place not in old.parts:
            found.append(_Shape(old.ins, old.outs, old.values * same, {*old.parts, place}))
            old.values = old.values * ~same
        new.values = new.values * ~same if isinstance(same, np.ndarray) else new.values * (not same)
    if np.any(new.values):
        found.append(new)
