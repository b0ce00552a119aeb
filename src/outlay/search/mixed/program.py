"""The program over the layers of one rank: what each costs in each strategy, and the cheapest plan that fits.

What a layer holds and takes is what one layer more makes of the formulas of a stage, once for each kind of layer and
strategy. Memory is rounded up to whole units. What stands for a moment is not a sum over layers, so the program is run
once for each such moment, with the strategies that need no more. What it finds is then counted by the formulas, and
kept only where that fits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np

from .chain import Array, Layer, Option, cheapest
from .stages import Counted, Mixing, Place, Plan
from .strategies import Strategy

UNITS = 2_048  # of memory, in what a rank's layers may hold beyond the least
SAME = 1e-12  # share of a cost that is no difference
TRIES = 5  # a plan that its count finds too large is sought again with so much less
Weight = tuple[float, float]  # of a pass, and of the data-parallel exchange, in the time of a step


@dataclass(frozen=True)
class Program:
    """The program over one rank."""

    mixing: Mixing
    place: Place
    limit: float  # B that may be allocated

    @cached_property
    def kinds(self) -> tuple[int, ...]:
        """Kinds of its layers."""
        return tuple(sorted({self.mixing.kind(layer) for layer in self.place.layers}))

    @cached_property
    def held(self) -> dict[tuple[int, Strategy], float]:
        """Bytes of one layer of each kind in each strategy: state, and tapes of all passes in flight."""
        flying = next(iter(self.alike.values())).flying
        every = self.mixing.ground.layers
        return {
            (kind, way): every[kind, way].state + flying * every[kind, way].tape
            for kind in self.kinds
            for way in self.mixing.strategies
        }

    def costs(self, weight: Weight) -> dict[tuple[int, Strategy], float]:
        """What one layer adds to a step."""
        return {
            key: weight[0] * each.one_pass + weight[1] * each.data + each.once
            for key, each in self.mixing.ground.layers.items()
        }

    @cached_property
    def seen(self) -> dict[Plan, Counted]:
        """Every plan that was counted: other moments and weights often end at the same."""
        return {}

    def counted(self, plan: Plan) -> Counted:
        """The rank with a plan."""
        return self.seen.setdefault(plan, Counted(self.mixing, self.place, plan))

    @cached_property
    def alike(self) -> dict[Strategy, Counted]:
        """The rank where all layers follow one strategy."""
        size = len(self.place.layers)
        return {way: self.counted((way,) * size) for way in self.mixing.strategies}

    def plans(self, weight: Weight) -> Iterator[Counted]:
        """A plan for each moment that may be the largest, if it fits; until one costs no more than if all fitted."""
        if not self.place.layers:
            bare = Counted(self.mixing, self.place, ())
            yield from (bare,) if bare.allocated <= self.limit else ()
            return
        ways = self.mixing.strategies
        moments = {way: found.moment for way, found in self.alike.items()}
        kinds = [self.mixing.kind(layer) for layer in self.place.layers]
        costs = self.costs(weight)
        least = sum(min(costs[kind, way] for way in ways) for kind in kinds)
        for moment in sorted(set(moments.values())):
            able = tuple(way for way in ways if moments[way] <= moment)
            found = self._within(able, next(way for way in able if moments[way] == moment), weight)
            if found:
                yield found
                spent = sum(costs[pair] for pair in zip(kinds, found.plan, strict=True))
                if spent <= least * (1 + SAME) and not found.boundaries:
                    return

    def _within(self, able: Sequence[Strategy], largest: Strategy, weight: Weight) -> Counted | None:
        """The cheapest plan of some strategies whose count fits."""
        chunks = [[self.mixing.kind(layer) for layer in chunk] for chunk in self.place.chunks]
        kinds = [kind for chunk in chunks for kind in chunk]
        least = {kind: min(self.held[kind, way] for way in able) for kind in self.kinds}
        alike = self.alike[largest]
        fixed = alike.allocated - sum(self.held[kind, largest] for kind in kinds)
        room = self.limit - fixed - sum(least[kind] for kind in kinds)
        for _ in range(TRIES):
            if room < 0:
                return None
            unit = self._unit(able, least, room)
            options = {kind: self._options(kind, able, least[kind], unit, weight) for kind in self.kinds}
            most = min(int(room / unit), sum(max(each.units for each in options[kind]) for kind in kinds))
            layers: list[list[Layer]] = [[options[kind] for kind in chunk] for chunk in chunks]
            chosen = cheapest(layers, self._switch(able, weight[0]), most)
            if chosen is None:
                return None
            found = self.counted(self._ordered([able[each] for each in chosen]))
            over = found.allocated - self.limit
            if over <= 0:
                return found
            room -= max(over, unit)
        return None

    def _unit(self, able: Sequence[Strategy], least: dict[int, float], room: float) -> float:
        """A unit of memory that divides the smallest step between two strategies, so that this is not rounded."""
        steps = [self.held[kind, way] - least[kind] for kind in self.kinds for way in able]
        large = [step for step in steps if step > room / UNITS]
        fine = max(room / UNITS, max(steps) / UNITS, 1.0)
        return min(large) / ceil(min(large) / fine) if large else fine

    def _options(self, kind: int, able: Sequence[Strategy], least: float, unit: float, weight: Weight) -> Layer:
        """The strategies of one layer, their memory rounded up."""
        states, costs = [end.tp for end in self._ends(able)], self.costs(weight)
        units = (ceil((self.held[kind, way] - least) / unit - 1e-9) for way in able)
        return tuple(
            Option(size, costs[kind, way], states.index(way.tp)) for size, way in zip(units, able, strict=True)
        )

    def _ends(self, able: Sequence[Strategy]) -> tuple[Strategy, ...]:
        """One strategy of each degree, that of the layout first: the states of the chain."""
        first = {way.tp: way for way in reversed((self.mixing.own, *able))}
        return tuple(first[tp] for tp in dict.fromkeys([self.mixing.own.tp, *(way.tp for way in able)]))

    def _switch(self, able: Sequence[Strategy], weight: float) -> Array:
        """What it costs to go from one degree to another."""
        ends = self._ends(able)
        return np.array([[weight * self.mixing.relayout(one, other) for other in ends] for one in ends])

    def _ordered(self, plan: Sequence[Strategy]) -> Plan:
        """The same with layers that keep less before like ones that keep more, as Megatron's blocks recompute: then no
        chunk that holds more passes in flight keeps more."""
        places: dict[tuple[int, int], list[int]] = {}
        for at, (layer, way) in enumerate(zip(self.place.layers, plan, strict=True)):
            places.setdefault((self.mixing.kind(layer), way.tp), []).append(at)
        made = list(plan)
        for (kind, _), held in places.items():
            ways = sorted((plan[at] for at in held), key=lambda way: (self.held[kind, way], way))
            for at, way in zip(held, ways, strict=True):
                made[at] = way
        return tuple(made)
