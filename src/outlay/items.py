"""The parts of a bill beside its memory: step, bubble and traffic, itemised from the formulas' own parts."""

from dataclasses import dataclass
from typing import Literal

from .cluster.network import level
from .holding import Item
from .layout.axes import Layout
from .layout.case import Case
from .memory.peak import Stages
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


def _banded(name: str, value: float, share: float) -> Item:
    return Item(name, value, "modelled", value * (1 - share), value * (1 + share), "assumed")


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
        found.append(TrafficItem("pp", size, alone, one * hops, level(2, stride, case.cluster), "tokens"))
    experts = case.model.experts > 0
    tied = float(tied_bytes(case)) > 0
    if layout.replicas > 1 or (experts and layout.edp > 1) or tied:
        busiest = busiest_stage(stages, case)
        alone = float(slowest_data(stages, case))
        exposed = float(exposed_data(alone, slowest_pass(stages, case), case))
        link = level(int(layout.replicas), int(layout.tp), case.cluster)
        found.append(TrafficItem("dp", float(data_bytes(busiest, case)), alone, exposed, link, "parameters"))
    return tuple(found)
