"""The parts of a bill beside its memory: step, bubble and traffic, itemised from the formulas' own parts."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from .cluster.network import level
from .formula import total
from .holding import Item
from .layout.axes import Layout
from .layout.case import Case
from .memory.peak import Stages
from .reading import parts
from .schedule.bubble import schedule_share, schedule_slots, useful_slots
from .stage import StageCosts
from .step.overlap import exposed_data
from .step.total import (
    idle_parts,
    pass_seconds,
    step_seconds,
    time_band,
)
from .step.traffic import (
    axis_bytes,
    axis_seconds,
    data_bytes,
    data_seconds,
    message_seconds,
    pipeline_bytes,
    tables,
    tied_bytes,
)


def _banded(name: str, value: float, timed: "Timed") -> Item:
    low, high = (value * (1 + sign * timed.band) for sign in (-1, 1))
    return Item(name, value, "modelled", low, high, timed.case.time_bands.kind)


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


def slowest_stage(stages: Stages, case: Case) -> StageCosts:
    """The stage whose pass takes longest."""
    return max(stages, key=lambda stage: float(pass_seconds(stage, case)))


def busiest_stage(stages: Stages, case: Case) -> StageCosts:
    """The stage whose data-parallel exchange takes longest."""
    return max(stages, key=lambda stage: float(data_seconds(stage, case)))


@dataclass(frozen=True)
class Timed:
    """The times of one layout, each counted once: what the parts of a bill beside its memory are made of."""

    stages: Stages
    whole: StageCosts
    case: Case

    @cached_property
    def step(self) -> dict[str, float]:
        """The parts of a step."""
        return parts(step_seconds, self.stages, self.whole, self.case)

    @cached_property
    def band(self) -> float:
        """Share of its time, up and down, in which the step may lie."""
        return float(time_band(self.case))

    @cached_property
    def slowest(self) -> StageCosts:
        """The stage whose pass takes longest."""
        return slowest_stage(self.stages, self.case)

    @cached_property
    def one_pass(self) -> dict[str, float]:
        """The parts of one micro-batch through that stage."""
        return parts(pass_seconds, self.slowest, self.case)


def step_items(timed: Timed) -> tuple[Item, ...]:
    """The parts of a step's time; they add up to it. Work is shown by what the slowest stage spends it on."""
    case = timed.case
    work = {name: float(case.micro_batches) * value for name, value in timed.one_pass.items()}
    rest = {name: value for name, value in timed.step.items() if name != "work"}
    shown = {name: value for name, value in (work | rest).items() if value or name in ("arithmetic", "idle")}
    return tuple(_banded(name, float(value), timed) for name, value in shown.items())


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


def bubble_of(timed: Timed) -> Bubble:
    """The bubble of one layout: its share exact in slots of equal stages, its seconds those of the stages at hand."""
    case = timed.case
    pp, vpp, micro_batches = case.layout.pp, case.layout.vpp, case.micro_batches
    divided = idle_parts(pass_seconds(timed.whole, case), timed.whole, case)
    share = float(schedule_share(pp, divided, micro_batches))
    held = float(schedule_slots(pp, vpp, micro_batches, divided))
    return Bubble(
        share=share,
        span_share=share,
        seconds=float(timed.step["idle"]),
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


def traffic_of(timed: Timed) -> tuple[TrafficItem, ...]:
    """Bytes, seconds and exposed seconds of every axis that is cut, on the slowest stage."""
    stage, case, layout, shown = timed.slowest, timed.case, timed.case.layout, timed.one_pass
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
    tied = any(float(tied_bytes(model, case)) > 0 for model in tables(case))
    if layout.replicas > 1 or (experts and layout.edp > 1) or tied:
        busiest = busiest_stage(timed.stages, case)
        alone = float(data_seconds(busiest, case))
        exposed = float(exposed_data(alone, total(shown), case))
        link = level(int(layout.replicas), int(layout.tp), case.cluster)
        found.append(TrafficItem("dp", float(data_bytes(busiest, case)), alone, exposed, link, "parameters"))
    return tuple(found)
