"""One step: the slowest stage's work, the idle time, and what communication stays exposed."""

from ..formula import each, maximum, total
from ..layout.case import Case
from ..memory.activations import recomputed_share
from ..memory.peak import Stages
from ..quantities import Count, Seconds, Share
from ..schedule.bubble import fill_and_drain, schedule_share
from ..stage import StageCosts
from .compute import kernel_seconds, optimizer_seconds, recompute_seconds
from .offload import stage_offload
from .overlap import context_seconds, expert_seconds, exposed_data, tensor_forward, tensor_seconds, wire_seconds
from .traffic import data_seconds, message_seconds


def pass_seconds(stage: StageCosts, case: Case) -> Seconds:
    """Forward and backward pass of one micro-batch through one stage."""
    recomputed: Share = recomputed_share(stage, case.layout)
    return total(
        arithmetic=kernel_seconds(stage),
        recompute=recompute_seconds(stage, recomputed, case.layout),
        context=context_seconds(stage, recomputed, case.layout),
        expert=expert_seconds(stage, recomputed, case),
        offload=stage_offload(stage, recomputed, case),
        tensor=tensor_seconds(stage, recomputed, case),
    )


def forward_seconds(stage: StageCosts, case: Case) -> Seconds:
    """Forward pass of one micro-batch through one stage."""
    kernels: Seconds = stage.forward + stage.end_forward
    return kernels + stage.context_forward + stage.expert_forward + tensor_forward(stage, case)


def idle_parts(passes: Seconds, whole: StageCosts, case: Case) -> Count:
    """What the other stages' work is divided by where it idles: by the schedule, from the model's passes F, B and W.

    `passes` is all of them, through the whole model.
    """
    forward: Seconds = forward_seconds(whole, case)
    inputs: Seconds = passes - forward - whole.weight_gradients
    return case.schedule.parts(forward, inputs, whole.weight_gradients, case.layout.pp, case.layout.vpp)


def idle_share(whole: StageCosts, case: Case) -> Share:
    """Idle share of a pipeline of equal stages."""
    parts: Count = idle_parts(pass_seconds(whole, case), whole, case)
    return schedule_share(case.layout.pp, parts, case.micro_batches)


def idle_seconds(stages: Stages, whole: StageCosts, case: Case) -> Seconds:
    """Idle time of the slowest stage in one step, with the stages as they are."""
    passes: Seconds = pass_seconds(whole, case)
    return fill_and_drain(passes, slowest_pass(stages, case), idle_parts(passes, whole, case))


def slowest_pass(stages: Stages, case: Case) -> Seconds:
    """One micro-batch through the slowest stage."""
    return maximum(each(pass_seconds, stages, case))


def slowest_data(stages: Stages, case: Case) -> Seconds:
    """The longest data-parallel exchange of a stage."""
    return maximum(each(data_seconds, stages, case))


def slowest_optimizer(stages: Stages, case: Case) -> Seconds:
    """The longest optimizer step of a stage."""
    return maximum(each(optimizer_seconds, stages, case))


def slowest_wire(stages: Stages, case: Case) -> Seconds:
    """The most that a stage's data-parallel exchange takes from the memory that its kernels use."""
    return maximum(each(wire_seconds, stages, case))


def straggler_seconds(work: Seconds, case: Case) -> Seconds:
    """What a step waits longer for its slowest rank: a share of the work for each doubling of nodes of eight."""
    return case.engine.straggler_share * case.cluster.doublings * work


def step_seconds(stages: Stages, whole: StageCosts, case: Case) -> Seconds:
    """One optimizer step: M passes of the slowest stage, fill and drain, sends, and what is paid once.

    Refined: exact in slots for GPipe, 1F1B and interleaving where one stage is the slowest; kernel times are modelled.
    """
    slowest: Seconds = slowest_pass(stages, case)
    message: Seconds = message_seconds(case)
    passes: Seconds = pass_seconds(whole, case)
    return total(
        work=case.micro_batches * slowest,
        stragglers=straggler_seconds(case.micro_batches * slowest, case),
        idle=fill_and_drain(passes, slowest, idle_parts(passes, whole, case)),
        sends=message * case.schedule.hops(case.layout.pp, case.layout.vpp, case.micro_batches),
        overhead=case.engine.step_seconds,
        data=exposed_data(slowest_data(stages, case), slowest, case),
        wire=slowest_wire(stages, case),
        optimizer=slowest_optimizer(stages, case),
    )


def time_band(case: Case) -> Share:
    """Share of a step's time, up and down, inside which about nine of ten published steps of its class lie.

    A sum of what engine, precision, experts and accelerator add; each share and its rows are in time_bands.toml.
    Source: `outlay validate` over published steps.
    """
    return total(
        engine=case.time_bands.engine,
        precision=case.time_bands.precision,
        experts=case.time_bands.experts,
        accelerator=case.time_bands.accelerator,
    )
