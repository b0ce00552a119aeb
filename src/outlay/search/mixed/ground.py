"""One cut, and what a layer of each kind costs in each of its strategies: evaluated once, from a bill's formulas.

A layer is what a stage with two of them has more than a stage with one: what a rank has once is no part of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ...bill import load
from ...layer import Exchange, LayerCosts, ModelCosts, costs_of
from ...layout.case import Case
from ...layout.stages import Stage
from ...memory.activations import one_pass_bytes
from ...memory.peak import held_state
from ...stage import stage_costs
from ...step.compute import optimizer_seconds
from ...step.overlap import wire_seconds
from ...step.total import pass_seconds
from ...step.traffic import data_seconds
from ..recompute.operations import Layer
from ..recompute.room import Rooms, rooms
from .relayout import relayout_seconds
from .strategies import Strategy, complete_case, under


@dataclass(frozen=True)
class LayerOf:
    """What one layer more adds to a rank: one kind in one strategy."""

    state: float  # B
    tape: float  # B, of one micro-batch
    one_pass: float  # s
    data: float  # s, once a step
    once: float  # s: optimizer and what exchange takes from kernels, once a step


def run_again(costs: LayerCosts, layer: Layer | None, names: Sequence[str]) -> LayerCosts:
    """One kind of layer in which some operations run again, and those whose outputs they need and nobody keeps."""
    operations = layer.operations if layer else ()
    places = {place for place, one in enumerate(operations) if one.name in names}
    while more := {need for place in places for need in operations[place].needs} - places:
        places |= more
    freed = sum(operations[place].freed for place in places)
    return replace(
        costs,
        kept_selective=costs.kept - freed,
        freed=freed,
        modules_forward=sum(operations[place].seconds for place in sorted(places)),
        context_again=0.0,
        tp=_once(costs.tp),
        cp=_once(costs.cp),
        ep=_once(costs.ep),
        etp=_once(costs.etp),
    )


def _once(exchange: Exchange) -> Exchange:
    """The same, none of it again by itself: the seconds of an operation hold what shows of its own."""
    return replace(exchange, again=0.0, sent_again=0.0)


@dataclass(frozen=True)
class Ground:
    """One cut and the strategies that its layers may have, wherever the ends of the model stand."""

    case: Case
    strategies: tuple[Strategy, ...]

    @cached_property
    def cases(self) -> dict[Strategy, Case]:
        """The question where all layers follow one strategy, and are recomputed whole where it says so."""
        plain = {Strategy(strategy.tp): None for strategy in self.strategies}
        return {strategy: self._case(strategy) for strategy in dict.fromkeys((*self.strategies, *plain))}

    def _case(self, strategy: Strategy) -> Case:
        case = complete_case(self.case, under(self.case.layout, strategy))
        every = self.case.model.layers if strategy.recompute == "full" else 0
        return replace(case, layout=replace(case.layout, recompute_layers=every))

    @cached_property
    def costs(self) -> dict[Strategy, ModelCosts]:
        """The costs of every kind of layer, walked once for each degree and each choice of modules."""
        walked: dict[tuple[int, tuple[str, ...]], ModelCosts] = {}
        for strategy, case in self.cases.items():
            key = strategy.tp, strategy.modules
            if key not in walked:
                walked[key] = costs_of(case)
        return {way: self._again(way, walked[way.tp, way.modules]) for way in self.cases}

    def _again(self, way: Strategy, costs: ModelCosts) -> ModelCosts:
        """The same where single operations run again, with their exchanges; all they free stands in the backward pass.

        Operations are those of `outlay recompute`, whose seconds hold the exchange that shows.
        """
        if not way.operations:
            return costs
        kinds = {layer.name: layer for layer in self.operations[way.tp].layers}
        return replace(
            costs, layers=tuple(run_again(each, kinds.get(each.name), way.operations) for each in costs.layers)
        )

    @cached_property
    def operations(self) -> dict[int, Rooms]:
        """The operations of the layers at each degree."""
        return {way.tp: rooms(load(case)) for way, case in self.cases.items() if way.recompute == "none"}

    @cached_property
    def turned(self) -> dict[tuple[int, int], float]:
        """Seconds of a boundary between two degrees, both directions."""
        every = {strategy.tp: case for strategy, case in self.cases.items()}.items()
        return {(one, two): relayout_seconds(here, there) for one, here in every for two, there in every}

    @cached_property
    def layers(self) -> dict[tuple[int, Strategy], LayerOf]:
        """One layer of each kind in each strategy, counted once."""
        kinds = range(len(self.case.model.blocks))
        return {(kind, way): self._layer(kind, way) for kind in kinds for way in self.strategies}

    def _layer(self, kind: int, way: Strategy) -> LayerOf:
        case, costs = self.cases[way], self.costs[way]
        every = range(len(self.case.model.blocks))
        one, two = (
            stage_costs(Stage(f"{n} more", 0, tuple(n * (of == kind) for of in every), 0, 0), costs) for n in (1, 2)
        )

        def more(formula: Callable[..., Any]) -> float:
            return float(formula(two, case)) - float(formula(one, case))

        once = more(optimizer_seconds) + more(wire_seconds)
        passes = float(pass_seconds(one, case))
        return LayerOf(more(held_state), float(one_pass_bytes(one, case)), passes, more(data_seconds), once)
