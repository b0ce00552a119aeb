"""The parts of a bill: memory, step, bubble and traffic of one layout, itemised from the formulas' own parts."""

from dataclasses import dataclass, replace
from typing import Literal

from .cluster.network import level
from .layout.axes import Layout
from .layout.case import Case
from .memory.peak import Stages, buffer_bytes, held_activations, held_state, peak, peak_of
from .reading import parts
from .schedule.bubble import schedule_slots, useful_slots
from .stage import StageCosts
from .step.overlap import exposed_data
from .step.total import (
    idle_parts,
    idle_seconds,
    idle_share,
    pass_seconds,
    slowest_data,
    slowest_pass,
    step_seconds,
)
from .step.traffic import (
    axis_bytes,
    axis_seconds,
    data_bytes,
    data_seconds,
    message_seconds,
    pipeline_bytes,
    tied_bytes,
)
from .undivided import state_of

Verdict = Literal["fits", "tight", "does_not_fit", "impossible"]


@dataclass(frozen=True)
class Item:
    """One named part of a sum. `exact` items have no band; a modelled one says where its band is from."""

    name: str
    value: float  # B, or s
    kind: Literal["exact", "modelled"] = "exact"
    low: float = 0.0
    high: float = 0.0
    band: Literal["", "measured", "assumed"] = ""


@dataclass(frozen=True)
class WorstRank:
    """The rank that holds most, and why."""

    rank: int
    stage: int
    why: str


@dataclass(frozen=True)
class RankMemory:
    """One stage: how many ranks are alike, and their peak."""

    stage: int
    ranks: int
    layers: int
    embedding: bool
    head: bool
    peak_bytes: float


@dataclass(frozen=True)
class Memory:
    """Memory of the worst rank against the wall."""

    unsharded_state_bytes: float
    state_bytes: float
    activation_bytes: float
    peak_bytes: float
    peak_band_bytes: tuple[float, float]
    capacity_bytes: float
    usable_bytes: float
    verdict: Verdict | None
    impossible_factor: float  # state / (ranks x usable): above 1 no layout fits without offload or training less
    worst_rank: WorstRank
    items: tuple[Item, ...]
    ranks: tuple[RankMemory, ...]


def _banded(name: str, value: float, share: float) -> Item:
    return Item(name, value, "modelled", value * (1 - share), value * (1 + share), "assumed")


def _buffers(allocated: float, case: Case) -> Item:
    engine = case.engine
    low = replace(engine, workspace_bytes=engine.workspace_low, slack_share=engine.slack_low)
    high = replace(engine, workspace_bytes=engine.workspace_high, slack_share=engine.slack_high)
    value, least, most = (float(buffer_bytes(allocated, each)) for each in (engine, low, high))
    return Item("buffers", value, "modelled", least, most, "assumed")


def _held(name: str, value: float, stage: StageCosts) -> Item:
    """An exact part; where a stage's chunks are unequal, its activations are a bound: all chunks as the largest."""
    if name == "activations" and stage.unevenness > 1:
        return Item(name, value, "modelled", value / float(stage.unevenness), value, "assumed")
    return Item(name, value)


def memory_items(stage: StageCosts, case: Case) -> tuple[Item, ...]:
    """The parts of one stage's peak; they add up to it."""
    named = parts(held_state, stage, case) | parts(held_activations, stage, case)
    shown = [*(_held(name, float(value), stage) for name, value in named.items()), _buffers(sum(named.values()), case)]
    return tuple(
        item for item in shown if item.value or item.name in ("weights", "gradients", "optimizer", "activations")
    )


def band(items: tuple[Item, ...]) -> tuple[float, float]:
    """Ends of a sum's band: exact items as they are, modelled ones at their ends."""
    return (
        sum(item.low if item.kind == "modelled" else item.value for item in items),
        sum(item.high if item.kind == "modelled" else item.value for item in items),
    )


def verdict(low: float, high: float, usable: float, impossible: float) -> Verdict:
    """`fits` if the band ends under what is usable, `tight` if it straddles it; `impossible` if no layout could fit."""
    if impossible > 1:
        return "impossible"
    return "fits" if high <= usable else "tight" if low <= usable else "does_not_fit"


def _worst(stages: Stages, case: Case) -> tuple[StageCosts, WorstRank]:
    stage = max(stages, key=lambda each: float(peak_of(each, case)))
    number = int(stage.rank)
    if case.layout.pp == 1:
        reason = "every rank is alike"
    elif number == 0:
        reason = "the embedding, and most micro-batches in flight"
    else:
        reason = "the head and the logits" if stage.head else "more or heavier layers than the stages before it"
    return stage, WorstRank(number * int(case.layout.tp * case.layout.cp * case.layout.dp), number, reason)


def memory_of(stages: Stages, every: tuple[StageCosts, ...], case: Case, legal: bool) -> Memory:
    """Memory of one layout: the worst rank itemised, every stage beside it."""
    stage, worst = _worst(stages, case)
    items = memory_items(stage, case)
    low, high = band(items)
    accelerator = case.cluster.accelerator
    usable = accelerator.memory_bytes - accelerator.context_bytes - case.job.reserved_bytes
    state = state_of(case.model, case.recipe, case.job)
    undivided = state.bytes
    others = case.beside_bytes * case.cluster.ranks
    resident = (
        undivided
        + others
        - (state.weights * case.layout.offload_parameters + state.optimizer * case.layout.offload_optimizer)
    )
    impossible = float(resident / (case.cluster.ranks * usable)) if usable > 0 else float("inf")
    named = {item.name: item.value for item in items}
    alike = int(case.layout.tp * case.layout.cp * case.layout.dp)
    return Memory(
        unsharded_state_bytes=float(undivided),
        state_bytes=named["weights"] + named["gradients"] + named["optimizer"],
        activation_bytes=named["activations"],
        peak_bytes=float(peak(stages, case)),
        peak_band_bytes=(low, high),
        capacity_bytes=accelerator.memory_bytes,
        usable_bytes=usable,
        verdict=verdict(low, high, usable, impossible) if legal else None,
        impossible_factor=impossible,
        worst_rank=worst,
        items=items,
        ranks=tuple(
            RankMemory(
                index, alike, int(sum(float(held.layers) for held in one.layers)),
                bool(one.ends[0].layers), bool(one.head), float(peak_of(one, case)),
            )
            for index, one in enumerate(every)
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class Step:
    """Time of one optimizer step."""

    seconds: float
    band_seconds: tuple[float, float]
    items: tuple[Item, ...]
    tokens_per_second: float
    tokens_per_second_per_device: float
    mfu: float
    hfu: float
    model_flops: float


def step_items(stages: Stages, whole: StageCosts, case: Case) -> tuple[Item, ...]:
    """The parts of a step's time; they add up to it. Work is shown by what the slowest stage spends it on."""
    named = parts(step_seconds, stages, whole, case)
    one_pass = parts(pass_seconds, slowest_stage(stages, case), case)
    work = {name: float(case.micro_batches) * value for name, value in one_pass.items()}
    rest = {name: value for name, value in named.items() if name != "work"}
    shown = {name: value for name, value in (work | rest).items() if value or name in ("arithmetic", "idle")}
    return tuple(_banded(name, float(value), case.engine.time_band) for name, value in shown.items())


def slowest_stage(stages: Stages, case: Case) -> StageCosts:
    """The stage whose pass takes longest."""
    return max(stages, key=lambda stage: float(pass_seconds(stage, case)))


def busiest_stage(stages: Stages, case: Case) -> StageCosts:
    """The stage whose data-parallel exchange takes longest."""
    return max(stages, key=lambda stage: float(data_seconds(stage, case)))


@dataclass(frozen=True)
class Bubble:
    """Idle time of a pipeline: share and duration, in slots and in seconds."""

    share: float
    span_share: float
    seconds: float
    slots: float
    useful_slots: float
    held_slots: float
    definition: str


def bubble_of(stages: Stages, whole: StageCosts, case: Case) -> Bubble:
    """The bubble of one layout: its share exact in slots of equal stages, its seconds those of the stages at hand."""
    pp, vpp, micro_batches = case.layout.pp, case.layout.vpp, case.micro_batches
    share = float(idle_share(whole, case))
    held = float(schedule_slots(pp, vpp, micro_batches, idle_parts(pass_seconds(whole, case), whole, case)))
    return Bubble(
        share=share,
        span_share=share,
        seconds=float(idle_seconds(stages, whole, case)),
        slots=held / pp,
        useful_slots=float(useful_slots(pp, vpp, micro_batches)),
        held_slots=held,
        definition="makespan: idle slots over held slots, equal stages; seconds with the stages as they are",
    )


@dataclass(frozen=True)
class TrafficItem:
    """What one rank sends on one axis in a step."""

    axis: str
    bytes: float
    seconds: float  # alone
    exposed_seconds: float
    link: str
    grows_with: Literal["tokens", "parameters"]


def _group(layout: Layout, axis: str) -> tuple[int, int]:
    strides = {"tp": 1, "cp": layout.tp, "etp": 1, "ep": layout.etp}
    return int(getattr(layout, axis)), int(strides[axis])


EXPOSED = {"tp": "tensor", "cp": "context", "ep": "expert"}


def traffic_of(stages: Stages, case: Case) -> tuple[TrafficItem, ...]:
    """Bytes, seconds and exposed seconds of every axis that is cut, on the slowest stage."""
    stage, layout = slowest_stage(stages, case), case.layout
    shown = parts(pass_seconds, stage, case)
    found = []
    for axis in ("tp", "cp", "ep", "etp"):
        ranks, stride = _group(layout, axis)
        if ranks > 1:
            alone = float(axis_seconds(stage, axis, case))
            exposed = float(case.micro_batches) * shown[EXPOSED[axis]] if axis in EXPOSED else alone
            exposed = min(exposed, alone) if axis == "ep" else exposed
            link = level(ranks, stride, case.cluster)
            found.append(TrafficItem(axis, float(axis_bytes(stage, axis, case)), alone, exposed, link, "tokens"))
    stride = int(layout.tp * layout.cp * layout.dp)
    if layout.pp > 1:
        hops = float(case.schedule.hops(layout.pp, layout.vpp, case.micro_batches))
        size, one = float(pipeline_bytes(case)), float(message_seconds(case))
        alone = one * 2 * layout.vpp * float(case.micro_batches)
        link = case.cluster.inside.name if stride < case.cluster.inside.size else case.cluster.outside.name
        found.append(TrafficItem("pp", size, alone, one * hops, link, "tokens"))
    experts = case.model.experts > 0
    tied = float(tied_bytes(case)) > 0
    if layout.replicas > 1 or (experts and layout.edp > 1) or tied:
        busiest = busiest_stage(stages, case)
        alone = float(slowest_data(stages, case))
        exposed = float(exposed_data(alone, slowest_pass(stages, case), case))
        link = level(int(layout.replicas), int(layout.tp), case.cluster)
        found.append(TrafficItem("dp", float(data_bytes(busiest, case)), alone, exposed, link, "parameters"))
    return tuple(found)
