"""What of an exchange shows: each axis's collectives less what hides behind compute."""

from ..formula import each, maximum, total, where
from ..layer import Held, StageCosts
from ..layout.case import Case
from ..memory.activations import recomputed_share
from ..quantities import Count, Seconds, Share


def held_tensor(held: Held, recomputed: Share, case: Case) -> Seconds:
    """Exposed tensor-parallel exchange of the layers of one kind, one micro-batch.

    Without sp the backward all-reduce runs beside the weight gradients, and `backward_exposed` of it shows.
    """
    forward: Seconds = (1 + recomputed) * held.costs.tp.forward
    backward: Seconds = held.costs.tp.backward * where(case.layout.sp, 1, case.engine.backward_exposed)
    shown: Share = where(case.layout.overlap_tp, 1 - case.engine.tp_hidden, 1)
    return held.layers * (forward + backward) * shown


def held_context(held: Held, recomputed: Share, case: Case) -> Seconds:
    """Exposed context-parallel exchange: a ring hides behind the attention core, the other kinds do not."""
    ring: Count = where(case.layout.cp_kind == "ring", 1, 0)
    forward: Seconds = maximum(held.costs.cp.forward - ring * held.costs.core_forward, 0)
    backward: Seconds = maximum(held.costs.cp.backward - 2 * ring * held.costs.core_forward, 0)
    return held.layers * ((1 + recomputed) * forward + backward)


def held_expert(held: Held, recomputed: Share, case: Case) -> Seconds:
    """Expert-parallel exchange, none of it hidden."""
    forward: Seconds = held.costs.ep.forward + held.costs.etp.forward
    backward: Seconds = held.costs.ep.backward + held.costs.etp.backward
    return held.layers * ((1 + recomputed) * forward + backward)


def tensor_seconds(stage: StageCosts, case: Case) -> Seconds:
    """Exposed tensor-parallel exchange of one micro-batch on one stage."""
    recomputed: Share = recomputed_share(stage, case.layout)
    layers: Seconds = total(each(held_tensor, stage.layers, recomputed, case))
    return total(layers=layers, ends=total(each(held_tensor, stage.ends, 0, case)))


def context_seconds(stage: StageCosts, case: Case) -> Seconds:
    """Exposed context-parallel exchange of one micro-batch on one stage."""
    recomputed: Share = recomputed_share(stage, case.layout)
    return total(each(held_context, stage.layers, recomputed, case))


def expert_seconds(stage: StageCosts, case: Case) -> Seconds:
    """Expert-parallel exchange of one micro-batch on one stage."""
    recomputed: Share = recomputed_share(stage, case.layout)
    return total(each(held_expert, stage.layers, recomputed, case))


def exposed_data(alone: Seconds, one_pass: Seconds, case: Case) -> Seconds:
    """Data-parallel exchange beyond what hides under the last micro-batch, or under every one from ZeRO-2 on."""
    passes: Count = where(case.layout.zero >= 2, case.micro_batches, 1)
    hidden: Seconds = where(case.layout.overlap_dp, case.engine.dp_hidden * passes * one_pass, 0)
    least: Share = where(case.layout.overlap_dp, case.engine.dp_exposed, 1)
    return maximum(remaining=alone - hidden, least=least * alone)
