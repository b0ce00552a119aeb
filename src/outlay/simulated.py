"""A step simulated: every pass of every micro-batch through every chunk as it is, where the bill has closed forms."""

from dataclasses import dataclass, replace
from typing import Any

from .bill import Loaded
from .formula import divide
from .layer import model_costs
from .layout.case import Case
from .layout.stages import every_chunk, rank_chunks
from .memory.activations import recomputed_share
from .schedule.orders import order_in_rounds
from .schedule.passes import Order
from .schedule.steady import Make, simulate_long
from .schedule.timeline import Timeline
from .schedule.times import TICK, Times
from .stage import StageCosts, stage_costs
from .step.compute import recompute_seconds
from .step.overlap import exposed_data
from .step.total import (
    forward_seconds,
    pass_seconds,
    slowest_data,
    slowest_optimizer,
    slowest_pass,
    slowest_wire,
    straggler_seconds,
)
from .step.traffic import message_seconds


@dataclass(frozen=True)
class Simulated:
    """A simulated step: how long it takes, what idles, and the timeline of its passes in ticks of a nanosecond."""

    seconds: float  # s
    bubble_share: float
    timeline: Timeline


def chunk_costs(case: Case) -> tuple[StageCosts, ...]:
    """The chunks of a pipeline along the model, each with its costs, and as a share of its stage's layers."""
    costs = model_costs(case.model, case.job, case.cluster, case.layout, case.engine)
    chunks = [stage_costs(chunk, costs) for chunk in every_chunk(case.model, case.layout, case.engine.counts_ends)]
    at = case.layout
    shared: dict[int, Any] = {}  # layers of the rank that each chunk stands on
    for rank in range(at.pp):
        places = rank_chunks(at.pp, at.vpp, rank, bool(at.folded))
        shared |= dict.fromkeys(places, sum(chunks[place].differentiated for place in places))
    return tuple(
        replace(chunk, stages=divide(chunk.differentiated, shared[place])) for place, chunk in enumerate(chunks)
    )


def times_of(case: Case) -> Times:
    """Durations of the passes of each chunk, in seconds. What a stage recomputes is shared by its chunks."""
    chunks = chunk_costs(case)
    forward = [float(forward_seconds(chunk, case)) for chunk in chunks]
    weights = [float(chunk.weight_gradients) for chunk in chunks]
    again = [_again(chunk, case) for chunk in chunks]
    whole = [float(pass_seconds(chunk, case)) for chunk in chunks]
    inputs = [a - f - w - r for a, f, w, r in zip(whole, forward, weights, again, strict=True)]
    return Times(forward, inputs, weights, recompute=again, send=float(message_seconds(case)))


def _again(chunk: StageCosts, case: Case) -> float:
    return float(recompute_seconds(chunk, recomputed_share(chunk, case.layout), case.layout))


def order_of(case: Case, micro_batches: int, schedule: str | None = None) -> Order:
    """The order of a schedule, the layout's own unless said, for so many micro-batches, as the engine interleaves."""
    at = case.layout
    name = schedule or str(at.schedule)
    return order_in_rounds(name, int(at.pp), micro_batches, int(at.vpp), case.engine.even_rounds)


def simulated(loaded: Loaded) -> Simulated:
    """Run the order of a case. Raises InputError where the schedule's order does not take its numbers."""
    return run(loaded, lambda some: order_of(loaded.case, some))


def run(loaded: Loaded, make: Make) -> Simulated:
    """Run an order that is made for a number of micro-batches. Raises InputError where it does not take this one."""
    case = loaded.case
    line = simulate_long(make, int(case.layout.pp), int(case.micro_batches), times_of(case).in_ticks(TICK))
    return with_passes(loaded, line)


def with_passes(loaded: Loaded, line: Timeline) -> Simulated:
    """A step around its passes: the exchange that they leave exposed, the optimizer, and what is once a step."""
    return Simulated(line.makespan * TICK + seconds_around(loaded), line.bubble_share, line)


def seconds_around(loaded: Loaded) -> float:
    """What a step takes beside its passes, whatever their order."""
    case = loaded.case
    slowest = slowest_pass(loaded.stages, case)
    data = exposed_data(slowest_data(loaded.stages, case), slowest, case)
    once = case.engine.step_seconds + float(data) + float(slowest_optimizer(loaded.stages, case))
    once += float(straggler_seconds(case.micro_batches * slowest, case)) + float(slowest_wire(loaded.stages, case))
    return once
