"""Kernel time of one micro-batch on one stage, the optimizer, and the arithmetic of a model."""

from ..formula import total, where
from ..layout.axes import Layout
from ..layout.case import Case
from ..quantities import Bandwidth, Bytes, Count, FlopRate, Flops, Params, Seconds, Share
from ..stage import StageCosts


def kernel_seconds(stage: StageCosts) -> Seconds:
    """Kernels of one micro-batch on one stage: forward, input gradients, weight gradients, and the ends."""
    return total(forward=stage.forward, gradients=stage.gradients, ends=stage.end_kernels)


def recompute_seconds(stage: StageCosts, recomputed: Share, layout: Layout) -> Seconds:
    """Forward passes run again: of whole layers, or of modules of every layer under selective recompute."""
    return where(layout.selective, stage.modules_forward, recomputed * stage.whole_again)


def recomputed_flops(layers: Flops, modules: Flops, recomputed: Share, layout: Layout) -> Flops:
    """FLOPs that recompute adds to those of forward passes through all layers: counted in HFU, not in MFU."""
    return where(layout.selective, modules, recomputed * layers)


def flops_share(flops: Flops, seconds: Seconds, ranks: Count, rate: FlopRate) -> Share:
    """FLOPs over what the accelerators could do in that time: MFU of model FLOPs, HFU with recompute."""
    return flops / (seconds * ranks * rate)


def updated_parameters(stage: StageCosts, case: Case) -> Params:
    """Parameters of a stage that this rank's optimizer updates."""
    return stage.dense_parameters / case.optimizer_cut + stage.expert_parameters / case.expert_optimizer_cut


def touched_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Bytes that one optimizer step reads and writes on this rank.

    What is counted is the gradient read, master and moments read and written, and the weight written. What an engine's
    Adam was measured to move is more: every optimizer moves as much more than its count.
    """
    dense: Bytes = stage.moments("dense") / case.optimizer_cut
    experts: Bytes = stage.moments("expert") / case.expert_optimizer_cut
    counted: Bytes = case.recipe.touched * updated_parameters(stage, case) + 2 * (dense + experts)
    return counted * (case.engine.optimizer_traffic / case.recipe.adam_touched)


def optimizer_near(touched: Bytes, case: Case) -> Seconds:
    """One optimizer step on the accelerator: its memory traffic."""
    reached: Bandwidth = case.cluster.accelerator.memory_bandwidth * case.cluster.accelerator.memory_share
    return touched / reached


def optimizer_moved(stage: StageCosts, case: Case) -> Bytes:
    """What an optimizer step on the host has the link carry: gradients out, weights back."""
    return updated_parameters(stage, case) * (case.recipe.gradients + case.compute_bytes)


def optimizer_away(touched: Bytes, moved: Bytes, case: Case) -> Seconds:
    """One optimizer step on the host: what crosses, and its traffic in host memory."""
    return moved / case.cluster.accelerator.host_bandwidth + touched / case.engine.host_memory


def optimizer_seconds(stage: StageCosts, case: Case) -> Seconds:
    """One optimizer step on this rank's share: memory traffic, and matrices orthogonalised.

    What is offloaded crosses to the host and runs there.
    """
    touched: Bytes = touched_bytes(stage, case)
    near: Seconds = optimizer_near(touched, case)
    away: Seconds = optimizer_away(touched, optimizer_moved(stage, case), case)
    dense: Seconds = stage.orthogonalised("dense") / case.optimizer_cut
    experts: Seconds = stage.orthogonalised("expert") / case.expert_optimizer_cut
    return near + (away - near) * case.layout.offload_optimizer + dense + experts
