"""Kernel time of one micro-batch on one stage, and the arithmetic of a model."""

from ..formula import each, total, where
from ..layer import Held, StageCosts
from ..layout.axes import Layout
from ..layout.case import Case
from ..memory.activations import recomputed_share
from ..quantities import Bytes, Count, FlopRate, Flops, Params, Seconds, Share

BACKWARD = 2  # FLOPs of a backward pass over those of its forward pass, the field's convention


def held_kernels(held: Held) -> Seconds:
    """Forward pass and both gradients, of the layers of one kind."""
    return held.layers * (held.costs.forward + held.costs.input_gradient + held.costs.weight_gradient)


def kernel_seconds(stage: StageCosts) -> Seconds:
    """Kernels of one micro-batch on one stage: forward, input gradients, weight gradients."""
    return total(each(held_kernels, stage.parts))


def held_recompute(held: Held, recomputed: Share, layout: Layout) -> Seconds:
    """Forward passes run again: whole layers, and the attention core of the others under selective recompute."""
    core: Seconds = where(layout.selective, held.costs.core_forward, 0)
    return held.layers * (recomputed * held.costs.forward + (1 - recomputed) * core)


def recompute_seconds(stage: StageCosts, layout: Layout) -> Seconds:
    """Recompute of one micro-batch on one stage."""
    recomputed: Share = recomputed_share(stage, layout)
    return total(each(held_recompute, stage.layers, recomputed, layout))


def held_flops(held: Held) -> Flops:
    """Model FLOPs of the forward pass, of the layers of one kind."""
    return held.layers * held.costs.flops


def model_flops(whole: StageCosts, sequences: Count) -> Flops:
    """Model FLOPs of one step: forward and twice as much backward; `whole` is undivided, one sequence.

    Recompute is not counted. Source: Narayanan et al. 2021, appendix; PaLM, appendix B (both with full attention).
    """
    forward: Flops = total(each(held_flops, whole.parts))
    return (1 + BACKWARD) * forward * sequences


def held_recomputed_flops(held: Held, recomputed: Share, layout: Layout) -> Flops:
    """FLOPs run again, of the layers of one kind."""
    core: Flops = where(layout.selective, held.costs.core_flops, 0)
    return held.layers * (recomputed * held.costs.flops + (1 - recomputed) * core)


def recomputed_flops(whole: StageCosts, recomputed: Share, layout: Layout, sequences: Count) -> Flops:
    """FLOPs of one step that recompute adds: counted in HFU, not in MFU."""
    return sequences * total(each(held_recomputed_flops, whole.layers, recomputed, layout))


def flops_share(flops: Flops, seconds: Seconds, ranks: Count, rate: FlopRate) -> Share:
    """FLOPs over what the accelerators could do in that time: MFU of model FLOPs, HFU with recompute."""
    return flops / (seconds * ranks * rate)


def optimizer_seconds(dense: Params, experts: Params, case: Case) -> Seconds:
    """One optimizer step on this rank's share: memory traffic; over the host link for what is offloaded."""
    sharded: Params = total(
        dense=dense / where(case.layout.zero >= 1, case.layout.shard, 1),
        experts=experts / where(case.layout.zero >= 1, case.layout.expert_shard, 1),
    )
    here: Bytes = case.engine.optimizer_traffic * sharded * (1 - case.layout.offload_optimizer)
    away: Bytes = (case.recipe.gradients + case.engine.compute_bytes) * sharded * case.layout.offload_optimizer
    near: Seconds = here / (case.cluster.accelerator.memory_bandwidth * case.cluster.accelerator.memory_share)
    return near + away / case.cluster.accelerator.host_bandwidth
