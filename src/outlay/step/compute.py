"""Kernel time of one micro-batch on one stage, the optimizer, and the arithmetic of a model."""

from ..formula import total, where
from ..layout.axes import Layout
from ..layout.case import Case
from ..quantities import Bandwidth, Bytes, Count, FlopRate, Flops, Params, Seconds, Share
from ..stage import StageCosts

BACKWARD = 2  # FLOPs of a backward pass over those of its forward pass, the field's convention


def kernel_seconds(stage: StageCosts) -> Seconds:
    """Kernels of one micro-batch on one stage: forward, input gradients, weight gradients, and the ends."""
    return total(forward=stage.forward, gradients=stage.gradients, ends=stage.end_kernels)


def recompute_seconds(stage: StageCosts, recomputed: Share, layout: Layout) -> Seconds:
    """Forward passes run again: whole layers, and the attention core of the others under selective recompute."""
    core: Seconds = where(layout.selective, stage.core_forward, 0)
    return recomputed * stage.forward + (1 - recomputed) * core


def recomputed_flops(layers: Flops, cores: Flops, recomputed: Share, layout: Layout) -> Flops:
    """FLOPs that recompute adds to those of forward passes through all layers: counted in HFU, not in MFU."""
    core: Flops = where(layout.selective, cores, 0)
    return recomputed * layers + (1 - recomputed) * core


def flops_share(flops: Flops, seconds: Seconds, ranks: Count, rate: FlopRate) -> Share:
    """FLOPs over what the accelerators could do in that time: MFU of model FLOPs, HFU with recompute."""
    return flops / (seconds * ranks * rate)


def optimizer_seconds(stage: StageCosts, case: Case) -> Seconds:
    """One optimizer step on this rank's share: memory traffic; what is offloaded crosses to the host and runs there."""
    own: Params = stage.dense_parameters / case.optimizer_cut + stage.expert_parameters / case.expert_optimizer_cut
    reached: Bandwidth = case.cluster.accelerator.memory_bandwidth * case.cluster.accelerator.memory_share
    near: Seconds = own * (case.engine.optimizer_traffic / reached)
    moved: Bytes = case.recipe.gradients + case.compute_bytes
    crossed: Seconds = moved / case.cluster.accelerator.host_bandwidth
    away: Seconds = own * (crossed + case.engine.optimizer_traffic / case.engine.host_memory)
    return near + (away - near) * case.layout.offload_optimizer
