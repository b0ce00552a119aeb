"""A whole pipeline with a plan for each rank: its step and its peak, put together as a bill puts them together."""

from collections.abc import Sequence
from dataclasses import replace

from ...formula import total
from ...schedule.bubble import fill_and_drain, one_part, parts_of_chunks
from ...step.overlap import exposed_data
from ...step.total import forward_seconds, pass_seconds, straggler_seconds
from ...step.traffic import message_seconds
from .stages import Counted, Mixing, Place, Plan


def counted(mixing: Mixing, plans: Sequence[Plan]) -> tuple[Counted, ...]:
    """Each rank with its plan."""
    return tuple(Counted(mixing, place, plan) for place, plan in zip(mixing.places, plans, strict=True))


def value(mixing: Mixing, plans: Sequence[Plan]) -> tuple[float, float]:
    """Step and peak of a whole pipeline."""
    found = counted(mixing, plans)
    return step_seconds_of(mixing, found), max(one.peak for one in found)


def alike(mixing: Mixing) -> tuple[tuple[Plan, ...], ...]:
    """Every plan in which all layers follow one strategy, of the degree of the ends."""
    ways = (way for way in mixing.strategies if way.tp == mixing.own.tp)
    return tuple(tuple((way,) * len(place.layers) for place in mixing.places) for way in ways)


def step_seconds_of(mixing: Mixing, found: Sequence[Counted]) -> float:
    """The step of a whole pipeline, as `step_seconds` counts it, of the plan of each rank."""
    case = mixing.case
    layers = tuple(layer for place in mixing.places for layer in place.layers)
    every = tuple(one for rank in found for one in rank.plan)
    parts = Counted(mixing, Place(0, (layers,), 1, 1), every, float(case.layout.pp)).parts
    passes = sum(float(pass_seconds(*part)) for part in parts)
    passes += sum(mixing.relayout(*pair) for one in found for pair in one.boundaries)
    forward = sum(float(forward_seconds(*part)) for part in parts)
    weights = sum(float(stage.weight_gradients) for stage, _ in parts)
    pp, vpp = case.layout.pp, case.layout.vpp
    idle = case.schedule.parts(forward, passes - forward - weights, weights, pp, vpp)
    slowest = max(one.one_pass for one in found)
    data, wire, optimizer = (max(getattr(one, name) for one in found) for name in ("data", "wire", "optimizer"))
    return assembled(mixing, slowest, float(fill_and_drain(passes, slowest, idle)), data, wire + optimizer)


def assembled(mixing: Mixing, slowest: float, idle: float, data: float, once: float) -> float:
    """A step of its parts: M passes of the slowest stage, and what they wait for."""
    case = mixing.case
    work = float(case.micro_batches) * slowest
    return float(
        total(
            work=work,
            stragglers=straggler_seconds(work, case),
            idle=idle,
            sends=message_seconds(case) * case.schedule.hops(case.layout.pp, case.layout.vpp, case.micro_batches),
            overhead=case.engine.step_seconds,
            data=exposed_data(data, slowest, case),
            once=once,
        )
    )


def fastest(mixing: Mixing) -> float:
    """A step that no plan of a mixing is under: every layer the fastest that it can be, whatever it holds, and nothing
    idle but under the schedules whose idle time does not depend on the kinds of passes."""
    ways, layers = mixing.strategies, mixing.ground.layers
    kinds = range(len(mixing.case.model.blocks))
    least = {kind: min(layers[kind, way].one_pass for way in ways) for kind in kinds}
    passes = []
    for place in mixing.places:
        ends = sum(float(pass_seconds(*part)) for part in Counted(mixing, replace(place, chunks=()), ()).parts)
        passes.append(ends + sum(least[mixing.kind(layer)] for layer in place.layers))
    case = mixing.case
    parts = {one_part: 1.0, parts_of_chunks: float(case.layout.vpp)}.get(case.schedule.parts)
    idle = float(fill_and_drain(sum(passes), max(passes), parts)) if parts else 0.0
    return assembled(mixing, max(passes), idle, 0.0, 0.0)
