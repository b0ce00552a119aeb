"""What the worst rank holds: memory against the wall, itemised from the formulas' own parts."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from .engines.engine import Engine
from .layout.case import Case
from .memory.activations import activation_bytes
from .memory.blocks import ends_moment
from .memory.moments import head_moment, layer_moment
from .memory.peak import (
    Stages,
    allocated_bytes,
    buffer_bytes,
    held_activations,
    held_state,
    peak_bytes,
    table_moment,
)
from .memory.states import beside_bytes, fresh_bytes, unit_bytes
from .reading import parts
from .stage import StageCosts
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
    allocated_bytes: float  # of it, what tensors hold


@dataclass(frozen=True)
class Memory:
    """Memory of the worst rank against the wall."""

    unsharded_state_bytes: float
    state_bytes: float
    activation_bytes: float
    peak_bytes: float
    allocated_bytes: float  # of it, what tensors hold: torch's max_memory_allocated
    reserved_bytes: float  # and what the allocator keeps: max_memory_reserved
    device_bytes: float  # and all else on the card, with the driver's context: nvidia-smi
    peak_band_bytes: tuple[float, float]
    capacity_bytes: float
    usable_bytes: float
    verdict: Verdict | None
    impossible_factor: float  # state / (ranks x usable): above 1 no layout fits without offload or training less
    worst_rank: WorstRank
    items: tuple[Item, ...]
    ranks: tuple[RankMemory, ...]


@cache
def _ends(engine: Engine) -> tuple[Engine, Engine]:
    """The engine with the least buffers and workspaces of its band, and with the largest."""
    low = replace(engine, workspace_bytes=engine.workspace_low, slack_share=engine.slack_low)
    return low, replace(engine, workspace_bytes=engine.workspace_high, slack_share=engine.slack_high)


def _buffers(allocated: float, case: Case) -> Item:
    value, least, most = (float(buffer_bytes(allocated, each)) for each in (case.engine, *_ends(case.engine)))
    return Item("buffers", value, "modelled", least, most, "assumed")


def _held(name: str, value: float, stage: StageCosts) -> Item:
    """An exact part; where a stage's chunks are unequal, its activations are a bound: all chunks as the largest."""
    if name == "activations" and stage.unevenness > 1:
        return Item(name, value, "modelled", value / float(stage.unevenness), value, "assumed")
    return Item(name, value)


def peak_parts(stage: StageCosts, case: Case) -> dict[str, float]:
    """What stands at the peak of one stage: where the backward pass begins, or all state where the update is more."""
    state = {name: float(value) for name, value in parts(held_state, stage, case).items()}
    fresh, ends = float(fresh_bytes(stage, case)), float(ends_moment(stage, case))
    late_ones = (("unit", unit_bytes(stage, case)), ("ends", ends), ("table", table_moment(stage, case)))
    name, most = max(((name, float(size)) for name, size in late_ones), key=lambda late: late[1])
    if float(held_activations(stage, case)) <= max(fresh, most):
        late = {"gradients": state["gradients"] - fresh, name: most} if most > fresh else {}
        return state | late | {"activations": 0.0}
    head, layer = float(head_moment(stage, case)), float(layer_moment(stage, case))
    moment = parts(head_moment if head >= layer else layer_moment, stage, case)
    state["gradients"] -= fresh
    tapes = {"activations": float(activation_bytes(stage, case))}
    return state | tapes | {name: float(value) for name, value in moment.items()}


def memory_items(stage: StageCosts, case: Case) -> tuple[Item, ...]:
    """The parts of one stage's peak; they add up to it."""
    named = peak_parts(stage, case)
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


def _worst(stage: StageCosts, case: Case) -> WorstRank:
    number = int(stage.rank)
    if case.layout.pp == 1:
        reason = "every rank is alike"
    elif number == 0:
        reason = "the embedding, and most micro-batches in flight"
    else:
        reason = "the head and the logits" if stage.head else "more or heavier layers than the stages before it"
    return WorstRank(number * int(case.layout.tp * case.layout.cp * case.layout.dp), number, reason)


def memory_of(stages: Stages, every: tuple[StageCosts, ...], case: Case, legal: bool) -> Memory:
    """Memory of one layout: the worst rank itemised, every stage beside it."""
    allocated = [allocated_bytes(one, case) for one in every]
    peaks = [float(peak_bytes(each, case.engine)) for each in allocated]
    stage = max(stages, key=lambda one: peaks[int(one.rank)])
    items = memory_items(stage, case)
    low, high = band(items)
    accelerator = case.cluster.accelerator
    usable = accelerator.memory_bytes - accelerator.context_bytes - case.job.reserved_bytes
    state = state_of(case.model, case.recipe, case.job)
    undivided = state.bytes
    others = beside_bytes(case) * case.cluster.ranks
    resident = (
        undivided
        + others
        - (state.weights * case.layout.offload_parameters + state.optimizer * case.layout.offload_optimizer)
    )
    impossible = float(resident / (case.cluster.ranks * usable)) if usable > 0 else float("inf")
    named = {item.name: item.value for item in items}
    held = parts(held_state, stage, case)
    own, most = float(allocated[int(stage.rank)]), peaks[int(stage.rank)]
    alike = int(case.layout.tp * case.layout.cp * case.layout.dp)
    return Memory(
        unsharded_state_bytes=float(undivided),
        state_bytes=float(held["weights"] + held["gradients"] + held["optimizer"]),
        activation_bytes=named["activations"],
        peak_bytes=most,
        allocated_bytes=own,
        reserved_bytes=own * (1 + case.engine.slack_share),
        device_bytes=most + accelerator.context_bytes,
        peak_band_bytes=(low, high),
        capacity_bytes=accelerator.memory_bytes,
        usable_bytes=usable,
        verdict=verdict(low, high, usable, impossible) if legal else None,
        impossible_factor=impossible,
        worst_rank=_worst(stage, case),
        items=items,
        ranks=tuple(
            RankMemory(
                index, alike, int(sum(float(held.layers) for held in one.layers)),
                bool(one.ends[0].layers), bool(one.head), peaks[index], float(allocated[index]),
            )
            for index, one in enumerate(every)
        ),
    )  # fmt: skip


def at_allocator(level: str, memory: Memory, engine: Engine, loaded: float = 0.0) -> tuple[float, tuple[float, float]]:
    """What torch's allocator reads at its peak, and its band, at a level: allocated, or reserved.

    `allocated` is what tensors hold; the band leaves room for the least workspace. `reserved` is that and what the
    allocator keeps beyond it. `loaded`: bytes that stood before, while weights were loaded.
    """
    least = sum(item.low if item.kind == "modelled" else item.value for item in memory.items if item.name != "buffers")
    held, least = max(memory.allocated_bytes, loaded), max(least, loaded)
    if level == "allocated":
        return held, (least, held + engine.workspace_low)
    kept = held * (1 + engine.slack_share)
    return kept, (least * (1 + engine.slack_low), held * (1 + engine.slack_high) + engine.workspace_low)
