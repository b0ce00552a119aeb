"""The best plan of a cut that treats all layers alike, or as many on every stage: what a mix is held against."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from ...bill import load
from ...layout.axes import Layout, joined
from ...layout.case import Case
from ...memory.peak import peak
from ...step.total import step_seconds
from ..fitting import limits
from .stages import Mixing
from .strategies import Strategy, complete_case, under
from .whole import alike, value


@dataclass(frozen=True)
class Uniform:
    """A plan that treats all layers alike, or recomputes as many on every stage."""

    layout: Layout
    seconds: float
    peak_bytes: float
    case: Case = field(repr=False, compare=False)  # the question
    operations: tuple[str, ...] = ()  # that every layer runs again, which no layout says


def worth(uniform: Uniform) -> tuple[float, float]:
    """The faster is better; of two that are as fast the smaller."""
    return uniform.seconds, uniform.peak_bytes


def best_uniform(mixing: Mixing) -> Uniform | None:
    """The fastest plan that fits of those that treat all layers alike, or as many on every stage; None where none does.

    Recompute of the first layers of each stage is counted as a bill does, where the engine has it.
    """
    at = mixing.ground.case.layout
    fits = limits(mixing.case).fits
    ways = [way for way in mixing.strategies if way.tp == mixing.own.tp]
    found = [
        Uniform(mixing.cases[way].layout, *value(mixing, plans), mixing.case, way.operations)
        for way, plans in zip(ways, alike(mixing), strict=True)
    ]
    if mixing.case.engine.recompute_part == "any" and len(ways) > 1:
        found += _in_part(mixing, under(at, Strategy(mixing.own.tp, "full")))
    return min((each for each in found if each.peak_bytes <= fits), key=worth, default=None)


def _in_part(mixing: Mixing, whole: Layout) -> Iterator[Uniform]:
    """Every number of layers that each stage may recompute, all of them at once."""
    longest = max(len(place.layers) for place in mixing.places)
    counts = np.arange(1, longest, dtype=float)
    if not counts.size:
        return
    loaded = load(complete_case(mixing.case, whole))
    case = replace(loaded.case, layout=joined(loaded.case.layout, recompute_layers=counts))
    seconds = np.broadcast_to(step_seconds(loaded.stages, loaded.whole, case), counts.shape)
    peaks = np.broadcast_to(peak(loaded.stages, case), counts.shape)
    for count, time, held in zip(counts.tolist(), seconds.tolist(), peaks.tolist(), strict=True):
        yield Uniform(replace(loaded.case.layout, recompute_layers=int(count)), time, held, loaded.case)


def uniform_of(case: Case, layout: Layout) -> Uniform:
    """Step and peak of a layout, as its bill has them."""
    loaded = load(complete_case(case, layout))
    seconds = float(step_seconds(loaded.stages, loaded.whole, loaded.case))
    return Uniform(loaded.case.layout, seconds, float(peak(loaded.stages, loaded.case)), case)
