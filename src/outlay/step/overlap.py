"""What of an exchange shows: each axis's collectives less what hides behind compute."""

from ..engines.engine import Engine
from ..formula import each, maximum, total, where
from ..layout.axes import Layout
from ..layout.case import Case
from ..quantities import Bandwidth, Count, Seconds, Share
from ..stage import StageCosts
from .traffic import data_bytes


def tensor_forward(stage: StageCosts, case: Case) -> Seconds:
    """Exposed tensor-parallel exchange of the forward pass of one micro-batch on one stage."""
    return case.tensor_shown * (stage.tensor_forward + stage.end_tensor_forward)


def tensor_seconds(stage: StageCosts, recomputed: Share, case: Case) -> Seconds:
    """Exposed tensor-parallel exchange of one micro-batch on one stage.

    Without sp the backward all-reduce runs beside the weight gradients, and `backward_exposed` of it shows.
    """
    beside: Share = where(case.layout.sp, 1, case.engine.backward_exposed)
    back: Seconds = stage.tensor_backward + stage.end_tensor_backward
    once: Seconds = stage.tensor_forward + stage.end_tensor_forward + beside * back
    again: Seconds = where(case.layout.selective, stage.tensor_again, recomputed * stage.tensor_forward)
    return case.tensor_shown * (once + again)


def context_seconds(stage: StageCosts, recomputed: Share, layout: Layout) -> Seconds:
    """Exposed context-parallel exchange of one micro-batch on one stage."""
    once: Seconds = stage.context_forward + stage.context_backward
    return once + where(layout.selective, stage.context_again, recomputed * stage.context_forward)


def exchanging(stage: StageCosts) -> tuple[StageCosts, ...]:
    """The stage, where its layers exchange tokens between experts."""
    return (stage,) if stage.exchanging else ()


def exchange_seconds(stage: StageCosts, recomputed: Share, case: Case) -> Seconds:
    """Exposed exchange between experts of one micro-batch on a stage that has it."""
    shown: Share = where(case.layout.overlap_ep, 1 - case.engine.ep_hidden, 1)
    once: Seconds = stage.expert_forward + stage.expert_backward
    return shown * (once + where(case.layout.selective, stage.expert_again, recomputed * stage.expert_forward))


def expert_seconds(stage: StageCosts, recomputed: Share, case: Case) -> Seconds:
    """Exposed exchange between experts of one micro-batch on one stage."""
    return total(each(exchange_seconds, exchanging(stage), recomputed, case))


def exposed_data(alone: Seconds, one_pass: Seconds, case: Case) -> Seconds:
    """Data-parallel exchange beyond what hides under the last micro-batch, or under every one from ZeRO-2 on."""
    passes: Count = where(case.layout.zero >= 2, case.micro_batches, 1)
    room: Count = where(case.layout.overlap_dp, case.engine.dp_hidden, 0) * passes
    least: Seconds = where(case.layout.overlap_dp, case.engine.dp_exposed, 1) * alone
    return maximum(remaining=alone - room * one_pass, least=least)


def crowding(case: Case) -> tuple[Engine, ...]:
    """The engine, where its exchange takes memory's bandwidth from kernels."""
    return (case.engine,) if case.engine.wire_accesses > 0 else ()


def crowded_seconds(engine: Engine, stage: StageCosts, case: Case) -> Seconds:
    """What an engine's data-parallel exchange takes from the memory of the device."""
    reached: Bandwidth = case.cluster.accelerator.memory_bandwidth * case.cluster.accelerator.memory_share
    return engine.wire_accesses * data_bytes(stage, case) / reached


def wire_seconds(stage: StageCosts, case: Case) -> Seconds:
    """What data-parallel exchange takes from the memory of the device, while kernels run beside it."""
    return total(each(crowded_seconds, crowding(case), stage, case))
