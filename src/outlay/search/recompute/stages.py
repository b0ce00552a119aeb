"""The best recompute of a layout: on two levels, the operations of a layer and the layers of a stage.

First the curve of every kind of layer over its operations, then the program over the layers of the stage that has
least room, with the points of those curves as the ways to keep a layer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, floor

import numpy as np

from ...bill import Loaded
from ...layout.case import Case
from ...memory.chain import Kept, Link, Program, Sweep, Way
from ...memory.ways import in_units, ways
from .offered import Choice, choices, known_modules
from .operations import Layer
from .room import Rooms, StageRoom, Step, rooms, without_recompute

PARTS, MANY = 4, 48  # units in the smallest input of a layer, to which what is kept is rounded; half for many layers
MOST_UNITS = 50_000  # in all tapes of a stage: the unit is larger where a tape is very much larger than an input
SAME = 1e-12  # s: no difference between two times
LONGEST = 16  # layers in a row that may run again from one input
SPARES = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16)  # largest tapes


@dataclass(frozen=True)
class Point:
    """One plan of a stage: bytes that the tapes need, and seconds that a pass takes longer."""

    needed: float
    extra: float
    spare: int = 0  # units that stand beside what the passes keep
    kept: int = 0  # units that a pass keeps, the input of the chain apart


@dataclass(frozen=True)
class Group:
    """Layers of one kind that are treated alike."""

    kind: str
    layers: int
    again: tuple[str, ...]  # operations; empty: nothing
    length: int  # layers from one kept input; 0: each layer keeps its own, and what is not run again
    kept: float  # bytes a layer and pass
    seconds: float  # a layer and pass


@dataclass(frozen=True)
class StagePlan:
    """The program of one stage, and all that it found."""

    room: StageRoom
    unit: float
    program: Program
    points: tuple[Point, ...]  # least memory first; each takes less time than those before it
    sweeps: dict[int, Sweep] = field(default_factory=dict, compare=False)  # those of plans that were looked at

    def best(self, budget: float) -> Point | None:
        """The least time under a budget, or None where even the least memory is too much."""
        fitting = [point for point in self.points if point.needed <= budget]
        return next((point for point in reversed(fitting) if self.needed(point) <= budget), None)

    def needed(self, point: Point) -> float:
        """Bytes that the tapes of a plan need, without rounding what is kept."""
        return self.room.needed(self.kept_bytes(point), point.spare * self.unit)

    def decisions(self, point: Point) -> tuple[Kept, ...]:
        """What a point does with each layer."""
        if point.spare not in self.sweeps:
            self.sweeps[point.spare] = _sweep(self.room, self.program, point.spare)
        return self.sweeps[point.spare].plan(point.kept)

    def groups(self, point: Point) -> tuple[Group, ...]:
        """The same, alike layers together."""
        layers = self.room.layers
        found: dict[tuple[str, tuple[str, ...], int], list[tuple[float, float, int]]] = {}
        for step in self.decisions(point):
            first, count = layers[step.start], step.end - step.start
            again = step.way.dropped if step.way else tuple(operation.name for operation in first.operations)
            key = (first.name, again, 0 if step.way else count)
            found.setdefault(key, []).append((*_use(layers, step), count))
        return tuple(
            Group(kind, sum(count for *_, count in each), again, length, *_mean(each))
            for (kind, again, length), each in found.items()
        )

    def kept_bytes(self, point: Point) -> float:
        """Bytes that a pass keeps, without rounding."""
        return sum(_use(self.room.layers, step)[0] for step in self.decisions(point))


def _mean(each: Sequence[tuple[float, float, int]]) -> tuple[float, float]:
    count = sum(layers for *_, layers in each)
    return sum(kept for kept, *_ in each) / count, sum(seconds for _, seconds, _ in each) / count


def _use(layers: Sequence[Layer], step: Kept) -> tuple[float, float]:
    """Bytes that one pass keeps of the layers of a step, and forward seconds that run again."""
    if step.way is None:
        return layers[step.start].entry, sum(layer.forward for layer in layers[step.start : step.end])
    layer, dropped = layers[step.start], set(step.way.dropped)
    freed = sum(operation.freed for operation in layer.operations if operation.name in dropped)
    return layer.kept - freed, step.way.again


def _links(layers: Sequence[Layer], costs: dict[str, float], unit: float) -> Iterator[Link]:
    """The layers of a stage as links: their tapes without their inputs, and with their outputs."""
    curves = {layer.name: ways(layer.operations, unit) for layer in layers}
    for place, layer in enumerate(layers):
        behind = in_units(layers[place + 1].entry, unit) if place + 1 < len(layers) else 0
        fixed = layer.kept - layer.reads - sum(operation.freed for operation in layer.operations)
        more = behind + in_units(fixed, unit)
        yield Link(
            layer.forward,
            costs[layer.name],
            in_units(layer.entry, unit),
            tuple(Way(way.kept + more, way.again, way.dropped) for way in curves[layer.name]),
            in_units(layer.kept - layer.reads, unit) + behind,
            in_units(layer.reads, unit),
        )


def _sweep(room: StageRoom, program: Program, spare: int) -> Sweep:
    total = sum(max(way.kept for way in link.ways) for link in program.links)
    return Sweep(program, spare, total, room.near, _longest(room))


def _longest(room: StageRoom) -> int:
    """Chunks of a stage are apart, so with several no row of layers is longer than one."""
    return 1 if len(room.chunks) > 1 else min(LONGEST, len(room.layers))


def stage_plan(room: StageRoom) -> StagePlan:
    """Every plan of a stage that no other beats."""
    layers = room.layers
    costs = {held.name: float(held.costs.input_gradient + held.costs.weight_gradient) for held in room.stage.layers}
    whole = sum(layer.kept for layer in layers)
    fine = min(layer.entry for layer in layers) / (PARTS if len(layers) <= MANY else PARTS // 2)
    unit = max(fine, whole / MOST_UNITS)
    links = tuple(_links(layers, costs, unit))
    most = sum(max(link.whole, *(way.kept for way in link.ways)) for link in links)
    program = Program(links, most).solve(_longest(room))
    every = sum(link.ways[0].kept for link in links)
    points = [Point(room.needed(whole, 0.0), 0.0, 0, every)]
    for spare in _spares(room, links, unit):
        values = _sweep(room, program, spare).extra()
        for kept in np.flatnonzero(np.minimum.accumulate(values) == values).tolist():
            if np.isfinite(values[kept]):
                needed = room.held(kept * unit + layers[0].entry, max(spare * unit, room.standing))
                points.append(Point(needed, max(0.0, float(values[kept])), spare, kept))
    return StagePlan(room, unit, program, tuple(_front(points)))


def _spares(room: StageRoom, links: Sequence[Link], unit: float) -> list[int]:
    """Units to leave beside what is kept: steps of the largest tape, and no less than what stands anyway."""
    largest, least = max(link.whole for link in links), floor(room.standing / unit)
    every = {max(least, ceil(share * largest)) for share in (0, *SPARES)}
    return sorted(spare for spare in every if spare <= max(least, sum(link.whole for link in links)))


def _front(points: Sequence[Point]) -> Iterator[Point]:
    least = float("inf")
    for point in sorted(points, key=lambda point: (point.needed, point.extra)):
        if point.extra < least - SAME:
            least = point.extra
            yield point


@dataclass(frozen=True)
class Outcome:
    """What the answer needs and takes."""

    needed: float  # B for tapes
    peak: float  # B
    seconds: float  # more in a step
    choice: Choice | None = None  # the engine's own, where what is kept is rounded and no plan found is as good


@dataclass(frozen=True)
class Recompute:
    """The answer: the plan of the stage that binds, and what the engine itself offers."""

    loaded: Loaded
    rooms: Rooms
    budget: float | None  # bytes for the tapes of the layers on one accelerator, where it is given
    plan: StagePlan  # of the stage that binds
    best: Point | None  # None: the budget is below the floor
    choices: tuple[Choice, ...]
    asked: Choice | None  # modules that were asked for

    @property
    def room(self) -> float:
        """Bytes that the tapes may take."""
        return self.plan.room.room if self.budget is None else self.budget

    @property
    def floor(self) -> Point:
        """The plan of the least memory."""
        return self.plan.points[0]

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """What the best plan does with the layers, or the plan of the least memory."""
        return self.plan.groups(self.best or self.floor)

    @cached_property
    def offered(self) -> Choice | None:
        """The engine's own choice that takes least time and fits."""
        fitting = [choice for choice in self.choices if choice.fits]
        return min(fitting, key=lambda choice: (choice.extra, choice.needed)) if fitting else None

    @cached_property
    def outcome(self) -> Outcome | None:
        """The best plan, or the engine's own choice where that takes less time; None where neither fits."""
        best, own = self.outcome_of(self.best) if self.best else None, self.offered
        if own and (best is None or self.choice_seconds(own) < best.seconds):
            return self.chosen(own)
        return best

    @cached_property
    def least(self) -> Outcome:
        """The floor: the plan of the least memory, or the engine's own choice where that needs less."""
        own = min(self.choices, key=lambda choice: choice.needed)
        floor = self.outcome_of(self.floor)
        return self.chosen(own) if own.needed < floor.needed else floor

    def outcome_of(self, point: Point) -> Outcome:
        """What a plan needs and takes."""
        return Outcome(self.needed(point), self.peak(point), self.seconds(point))

    def chosen(self, choice: Choice) -> Outcome:
        """What a choice of the engine needs and takes."""
        return Outcome(choice.needed, choice.peak, self.choice_seconds(choice), choice)

    @cached_property
    def step(self) -> Step:
        """The step where nothing is computed again."""
        return Step(self.loaded)

    @property
    def plain_seconds(self) -> float:
        """Its seconds."""
        return self.step.seconds

    def seconds(self, point: Point) -> float:
        """Seconds that a plan adds to a step, where every stage treats its layers as the one that binds."""
        own = len(self.plan.room.layers)
        extras = {room.stage.name: point.extra * len(room.layers) / own for room in self.rooms.stages}
        through = point.extra * len(self.rooms.whole.layers) / own
        return self.step.longer(extras, through)

    def choice_seconds(self, choice: Choice) -> float:
        """Seconds that a choice of the engine adds to a step."""
        return self.step.longer(choice.extras, choice.through)

    def needed(self, point: Point) -> float:
        """Bytes that the tapes of a plan need."""
        return self.plan.needed(point)

    def peak(self, point: Point) -> float:
        """Peak memory of a rank of the stage that binds."""
        return self.plan.room.peak(self.plan.kept_bytes(point), point.spare * self.plan.unit)


def recompute(case: Case, budget: float | None = None, modules: tuple[str, ...] = ()) -> Recompute:
    """The best recompute of a layout, under the memory that it leaves or under a budget for the tapes.

    Raises InputError (RCP001, RCP002, RCP003) for modules that are none, or that the model lacks.
    """
    loaded = without_recompute(case)
    found = rooms(loaded)
    names = known_modules(modules, case.model, found)
    offered = tuple(choices(found, budget))
    asked = next((each for each in offered if each.name == f"selective: {', '.join(names)}"), None) if names else None
    plans = [stage_plan(room) for room in _tight(found.stages, budget)]
    return Recompute(loaded, found, budget, *_binding(plans, budget), offered, asked)


def _tight(found: Sequence[StageRoom], budget: float | None) -> list[StageRoom]:
    """The stages whose whole tapes do not fit; where all do, the one that is nearest to it."""
    left = [
        (room.room if budget is None else budget) - room.needed(sum(layer.kept for layer in room.layers), 0.0)
        for room in found
    ]
    over = [room for room, rest in zip(found, left, strict=True) if rest < 0]
    return over or [found[min(range(len(found)), key=left.__getitem__)]]


def _binding(plans: Sequence[StagePlan], budget: float | None) -> tuple[StagePlan, Point | None]:
    """The plan of the stage that needs most time, or that does not fit at all."""
    chosen = [(plan, plan.best(plan.room.room if budget is None else budget)) for plan in plans]
    return max(chosen, key=lambda pair: float("inf") if pair[1] is None else pair[1].extra)
