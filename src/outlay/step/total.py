"""One step: the slowest stage's work, the idle time, and what communication stays exposed."""

from ..formula import each, maximum, total
from ..layer import StageCosts
from ..layout.case import Case
from ..memory.activations import pass_bytes, recomputed_share
from ..memory.peak import Candidates
from ..memory.states import dense_parameters, expert_parameters
from ..quantities import Bytes, Seconds
from ..schedule.bubble import fill_and_drain
from .compute import kernel_seconds, optimizer_seconds, recompute_seconds
from .overlap import context_seconds, expert_seconds, exposed_data, tensor_seconds
from .traffic import data_seconds, message_seconds


def pass_seconds(stage: StageCosts, case: Case) -> Seconds:
    """Forward and backward pass of one micro-batch through one stage."""
    return total(
        arithmetic=kernel_seconds(stage),
        recompute=recompute_seconds(stage, case.layout),
        tensor=tensor_seconds(stage, case),
        context=context_seconds(stage, case),
        expert=expert_seconds(stage, case),
        offload=stage_offload(stage, case),
    )


def slowest_pass(stages: Candidates, case: Case) -> Seconds:
    """One micro-batch through the slowest stage: the first, the heaviest between, or the last with the head."""
    first: Seconds = pass_seconds(stages.first, case)
    middle: Seconds = pass_seconds(stages.middle, case)
    last: Seconds = pass_seconds(stages.last, case)
    return maximum(first=first, middle=middle, last=last)


def slowest_data(stages: Candidates, case: Case) -> Seconds:
    """The longest data-parallel exchange of a stage."""
    first: Seconds = data_seconds(stages.first, case)
    middle: Seconds = data_seconds(stages.middle, case)
    last: Seconds = data_seconds(stages.last, case)
    return maximum(first=first, middle=middle, last=last)


def stage_optimizer(stage: StageCosts, case: Case) -> Seconds:
    """One optimizer step on one stage."""
    return optimizer_seconds(dense_parameters(stage), expert_parameters(stage), case)


def slowest_optimizer(stages: Candidates, case: Case) -> Seconds:
    """The longest optimizer step of a stage."""
    first: Seconds = stage_optimizer(stages.first, case)
    middle: Seconds = stage_optimizer(stages.middle, case)
    last: Seconds = stage_optimizer(stages.last, case)
    return maximum(first=first, middle=middle, last=last)


def stage_offload(stage: StageCosts, case: Case) -> Seconds:
    """Weights read twice from host memory, activations written and read back, for one micro-batch on one stage."""
    weights: Bytes = 2 * case.engine.compute_bytes * (dense_parameters(stage) + expert_parameters(stage))
    tapes: Bytes = 2 * total(each(pass_bytes, stage.layers, recomputed_share(stage, case.layout), case.layout))
    moved: Bytes = weights * case.layout.offload_parameters + tapes * case.layout.offload_activations
    return moved / case.cluster.accelerator.host_bandwidth


def step_seconds(stages: Candidates, whole: StageCosts, case: Case) -> Seconds:
    """One optimizer step: M passes of the slowest stage, fill and drain, sends, and what is paid once.

    Refined: exact in slots for GPipe, 1F1B and interleaving where one stage is the slowest; kernel times are modelled.
    """
    slowest: Seconds = slowest_pass(stages, case)
    idle: Seconds = fill_and_drain(pass_seconds(whole, case), slowest, case.layout.vpp)
    message: Seconds = message_seconds(case)
    return total(
        work=case.micro_batches * slowest,
        idle=idle,
        sends=message * case.schedule.hops(case.layout.pp, case.layout.vpp, case.micro_batches),
        data=exposed_data(slowest_data(stages, case), slowest, case),
        optimizer=slowest_optimizer(stages, case),
        overhead=case.engine.step_seconds,
    )
