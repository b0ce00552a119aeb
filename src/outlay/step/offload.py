"""What offload moves over the link to the host, how much of it hides behind compute, and from which bandwidth on all.

Copies run beside the kernels: what the forward pass keeps goes out while weights come in; the backward pass reads both.
Source: TransformerEngine, CPU offloading (asynchronous transfers); torch 2.13 _fsdp_param.py (copies on a stream of
their own, non-blocking); DeepSpeed's ZeRO-Infinity, Rajbhandari et al. 2021, section 6 (prefetch while computing).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..formula import divide, maximum, total, where
from ..layout.case import Case
from ..memory.activations import pass_bytes, recomputed_share
from ..quantities import Bandwidth, Bytes, Count, Seconds, Share
from ..stage import StageCosts
from .compute import optimizer_away, optimizer_moved, optimizer_near, recompute_seconds, touched_bytes


def forward_reads(case: Case) -> Count:
    """Times that the forward pass of a micro-batch reads weights: whenever it gathers them, where ranks keep shards."""
    here: Count = (case.gathers - case.again) / case.micro_batches
    return where(case.layout.zero >= case.engine.weights_sharded_from, here, 1)


def backward_reads(case: Case) -> Count:
    """The same of its backward pass, which finds them gathered where they stand since the forward pass."""
    return where(case.layout.zero >= case.engine.weights_sharded_from, case.again / case.micro_batches, 1)


def forward_weights(stage: StageCosts, case: Case) -> Bytes:
    """A rank's own weights that the forward pass of one micro-batch reads from host memory, in the type of storage.

    Sharded ones are gathered afterwards. Source: torch 2.13 _fsdp_param.py, all_gather_inputs: copied, then cast.
    """
    dense: Bytes = case.recipe.weights * stage.dense_parameters + stage.frozen_bytes("dense")
    experts: Bytes = case.recipe.weights * stage.expert_parameters + stage.frozen_bytes("expert")
    once: Bytes = (dense / case.weight_cut + experts / case.expert_weight_cut) * case.layout.offload_parameters
    return forward_reads(case) * once


def backward_weights(stage: StageCosts, case: Case) -> Bytes:
    """The same of one backward pass, which does not need what is frozen below the first trained weight."""
    dense: Bytes = case.recipe.weights * stage.dense_parameters + stage.frozen_bytes("dense") - stage.read_once("dense")
    own: Bytes = case.recipe.weights * stage.expert_parameters + stage.frozen_bytes("expert")
    experts: Bytes = own - stage.read_once("expert")
    once: Bytes = (dense / case.weight_cut + experts / case.expert_weight_cut) * case.layout.offload_parameters
    return backward_reads(case) * once


def kept_away(stage: StageCosts, recomputed: Share, case: Case) -> Bytes:
    """Activations of one micro-batch that wait in host memory: written in the forward pass, read in the backward."""
    return pass_bytes(stage, recomputed, case.layout) * case.layout.offload_activations


def forward_moved(stage: StageCosts, recomputed: Share, case: Case) -> Bytes:
    """What one forward pass has the link carry: the larger of both directions, which run side by side."""
    return maximum(weights=forward_weights(stage, case), activations=kept_away(stage, recomputed, case))


def backward_moved(stage: StageCosts, recomputed: Share, case: Case) -> Bytes:
    """What one backward pass has the link carry: weights and activations, both inwards."""
    return total(weights=backward_weights(stage, case), activations=kept_away(stage, recomputed, case))


def forward_cover(stage: StageCosts) -> Seconds:
    """Kernels of one forward pass, behind which copies hide."""
    return stage.forward + stage.end_forward


def backward_cover(stage: StageCosts, recomputed: Share, case: Case) -> Seconds:
    """Kernels of one backward pass, with what is computed again."""
    ends: Seconds = stage.end_kernels - stage.end_forward
    return stage.gradients + ends + recompute_seconds(stage, recomputed, case.layout)


def shown_seconds(stage: StageCosts, recomputed: Share, case: Case) -> Seconds:
    """What of the copies of one micro-batch is longer than the kernels beside it, at the full rate of the link."""
    link: Bandwidth = case.cluster.accelerator.host_bandwidth
    forward: Seconds = forward_moved(stage, recomputed, case) / link - forward_cover(stage)
    backward: Seconds = backward_moved(stage, recomputed, case) / link - backward_cover(stage, recomputed, case)
    return total(forward=maximum(forward, 0), backward=maximum(backward, 0))


def free_from(stage: StageCosts, recomputed: Share, case: Case) -> Bandwidth:
    """The bandwidth to the host from which on all copies of one micro-batch hide behind its kernels."""
    forward: Bandwidth = divide(forward_moved(stage, recomputed, case), forward_cover(stage))
    backward: Bandwidth = divide(backward_moved(stage, recomputed, case), backward_cover(stage, recomputed, case))
    return maximum(forward=forward, backward=backward)


def optimizer_shown(stage: StageCosts, case: Case) -> Seconds:
    """What an optimizer step takes longer for the part of it that runs on the host: nothing computes beside it."""
    touched: Bytes = touched_bytes(stage, case)
    away: Seconds = optimizer_away(touched, optimizer_moved(stage, case), case)
    return (away - optimizer_near(touched, case)) * case.layout.offload_optimizer


def stage_offload(stage: StageCosts, recomputed: Share, case: Case) -> Any:
    """`shown_seconds`, and nothing at all where no pass moves anything: most layouts, and all of a search."""
    at = case.layout
    return shown_seconds(stage, recomputed, case) if _moves(at.offload_parameters, at.offload_activations) else 0.0


def _moves(*shares: Any) -> bool:
    return any(not isinstance(share, int | float) or share > 0 for share in shares)


@dataclass(frozen=True)
class Offload:
    """What one kind of offload moves, and whether that is free."""

    what: str  # weights, activations, weights and activations, or optimizer
    bytes: float  # in one step, both directions, of one accelerator
    needed_bandwidth: float | None  # from which on it is free; None where nothing computes beside it
    host_bandwidth: float  # of the accelerator's link, one direction
    shown_seconds: float  # in one step


def offload_of(stages: Sequence[StageCosts], slowest: StageCosts, case: Case) -> tuple[Offload, ...]:
    """The offload of one layout: of the passes of its slowest stage, and of its longest optimizer step."""
    at, link, found = case.layout, case.cluster.accelerator.host_bandwidth, []
    if _moves(at.offload_parameters, at.offload_activations):
        recomputed = recomputed_share(slowest, at)
        weights = float(forward_weights(slowest, case) + backward_weights(slowest, case))
        kept = 2 * float(kept_away(slowest, recomputed, case))
        what = " and ".join(name for name, size in (("weights", weights), ("activations", kept)) if size)
        passes = float(case.micro_batches)
        shown = passes * float(shown_seconds(slowest, recomputed, case))
        needed = float(free_from(slowest, recomputed, case))
        found.append(Offload(what or "nothing", passes * (weights + kept), needed, link, shown))
    if at.offload_optimizer > 0:
        stage = max(stages, key=lambda each: float(optimizer_shown(each, case)))
        moved = float(optimizer_moved(stage, case)) * float(at.offload_optimizer)
        found.append(Offload("optimizer", moved, None, link, float(optimizer_shown(stage, case))))
    return tuple(found)
