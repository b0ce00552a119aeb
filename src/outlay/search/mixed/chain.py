"""A chain of layers, a strategy each: least cost under a limit of memory, by dynamic programming along the chain.

    f(i, s, u) = least over the strategies o of layer i of
                 switch(s, state of o) + cost(o) + f(i + 1, state of o, u - units(o))

s is the state that layer i - 1 left, u the units of memory that are left. A chunk begins and ends in state 0. Memory is
in whole units, rounded up before, so what fits here fits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Option:
    """One strategy of one layer."""

    units: int
    cost: float
    state: int = 0


Layer = tuple[Option, ...]


def cheapest(chunks: Sequence[Sequence[Layer]], switch: Array, most: int) -> tuple[int, ...] | None:
    """The option of each layer, along all chunks: the least cost, and of what costs the same the fewest units. None
    where no choice stays within `most` units.

    `switch[a, b]` is what it costs to go from state a to state b; nothing on its diagonal.
    """
    layers = [layer for chunk in chunks for layer in chunk]
    starts = set(np.cumsum([len(chunk) for chunk in chunks]).tolist())
    values = _values(layers, starts, switch, most)
    first = values[0][0]
    if not np.isfinite(first[most]):
        return None
    return tuple(_walk(layers, starts, values, switch, int(np.argmax(first <= first[most]))))


def _values(layers: Sequence[Layer], starts: set[int], switch: Array, most: int) -> list[Array]:
    """f of each layer and behind the last: (states, units), with at most so many units."""
    values = [np.repeat(switch[:, :1], most + 1, 1)]
    for place in range(len(layers) - 1, -1, -1):
        reached = np.full((len(switch), most + 1), np.inf)
        for option in layers[place]:
            if option.units <= most:
                behind = values[-1][option.state, : most + 1 - option.units]
                held = reached[option.state, option.units :]
                np.minimum(held, behind + option.cost, out=held)
        now = (switch[:, :, None] + reached[None]).min(1)
        values.append(switch[:, :1] + now[:1] if place in starts else now)
    return values[::-1]


def _walk(
    layers: Sequence[Layer], starts: set[int], values: Sequence[Array], switch: Array, left: int
) -> Iterator[int]:
    """The options that reach f at the first layer with so many units."""
    state = 0
    for place, layer in enumerate(layers):
        state = 0 if place in starts else state
        costs = [
            switch[state, option.state] + (values[place + 1][option.state, left - option.units] + option.cost)
            if option.units <= left
            else np.inf
            for option in layer
        ]
        chosen = int(np.argmin(costs))
        yield chosen
        state, left = layer[chosen].state, left - layer[chosen].units
