"""Bytes each rank sends in a step, by axis, and how long the exchanges take.

Data parallelism moves parameters, whatever the batch; tensor, context and expert parallelism move tokens, at every
layer; a pipeline moves stage boundaries alone.
"""

from ..cluster.network import gather_time, send_time, sent_bytes
from ..formula import each, total, where
from ..layer import Held, StageCosts
from ..layout.case import Case
from ..layout.sizes import tokens_on_rank
from ..memory.activations import recomputed_share
from ..memory.states import dense_parameters, expert_parameters
from ..quantities import Bandwidth, Bytes, Count, Params, Seconds, Share, Tokens
from ..schedule.bubble import sends


def coarse_gradient_bytes(parameters: Params, gradient: Bytes) -> Bytes:
    """The textbook's data-parallel traffic: every gradient once, 2N bytes a device a step.

    On the wire a ring moves 2(n - 1)/n of the buffer.
    """
    return parameters * gradient


def transfer_seconds(size: Bytes, bandwidth: Bandwidth) -> Seconds:
    """Bytes over a bandwidth."""
    return size / bandwidth


def held_sent(held: Held, axis: str, recomputed: Share) -> Bytes:
    """Bytes one rank sends on an axis for one micro-batch, of the layers of one kind; recompute sends forward again."""
    return held.layers * ((1 + recomputed) * held.costs.on(axis).sent_forward + held.costs.on(axis).sent_backward)


def axis_bytes(stage: StageCosts, axis: str, case: Case) -> Bytes:
    """Bytes one rank of a stage sends on tp, cp, ep or etp in one step."""
    recomputed: Share = recomputed_share(stage, case.layout)
    layers: Bytes = total(each(held_sent, stage.layers, axis, recomputed))
    ends: Bytes = total(each(held_sent, stage.ends, axis, 0))
    return case.micro_batches * total(layers=layers, ends=ends)


def message_bytes(case: Case) -> Bytes:
    """One pipeline message: the hidden vectors of a micro-batch; a slice under sp, or where the engine splits sends."""
    sliced: Count = where(case.engine.splits_sends, case.layout.tp, case.layout.sliced)
    tokens: Tokens = tokens_on_rank(case.job, case.layout)
    return case.job.activation_bytes * tokens * case.model.hidden / sliced


def pipeline_bytes(case: Case) -> Bytes:
    """Bytes that a rank in the middle of a pipeline sends in one step, both directions."""
    return sends(case.layout.pp, case.layout.vpp, case.micro_batches) * message_bytes(case)


def message_seconds(case: Case) -> Seconds:
    """One message to the next stage."""
    return send_time(message_bytes(case), case.layout.tp * case.layout.cp * case.layout.dp, case.cluster)


def passes_scattered(case: Case) -> Count:
    """Reduce-scatters of the gradients in one step: one, or one a micro-batch from ZeRO-2 on."""
    return where(case.layout.zero >= 2, case.micro_batches, 1)


def passes_gathered(case: Case) -> Count:
    """All-gathers of the weights in one step: one, or two a micro-batch under ZeRO-3."""
    return where(case.layout.zero >= 3, 2 * case.micro_batches, 1)


def replica_bytes(parameters: Params, replicas: Count, shard: Count, case: Case) -> Bytes:
    """Bytes one rank sends for its replicas: an all-reduce of gradients under ZeRO-0; else scatters and gathers over
    the shard group, and an all-reduce of the shard between copies. Source: ZeRO; FSDP2's collectives in torch 2.13.
    """
    gradients: Bytes = case.engine.reduce_bytes * parameters
    weights: Bytes = case.engine.compute_bytes * parameters
    reduced: Bytes = 2 * sent_bytes(gradients, replicas)
    scattered: Bytes = passes_scattered(case) * sent_bytes(gradients, shard)
    gathered: Bytes = passes_gathered(case) * sent_bytes(weights, shard)
    copies: Bytes = 2 * sent_bytes(gradients / shard, replicas / shard)
    return where(case.layout.zero >= 1, scattered + gathered + copies, reduced)


def replica_seconds(parameters: Params, replicas: Count, shard: Count, stride: Count, case: Case) -> Seconds:
    """Time of the same exchanges, one after another."""
    gradients: Bytes = case.engine.reduce_bytes * parameters
    weights: Bytes = case.engine.compute_bytes * parameters
    reduced: Seconds = 2 * gather_time(gradients, replicas, stride, case.cluster)
    scattered: Seconds = passes_scattered(case) * gather_time(gradients, shard, stride, case.cluster)
    gathered: Seconds = passes_gathered(case) * gather_time(weights, shard, stride, case.cluster)
    copies: Seconds = 2 * gather_time(gradients / shard, replicas / shard, stride * shard, case.cluster)
    return where(case.layout.zero >= 1, scattered + gathered + copies, reduced)


def tied_bytes(case: Case) -> Bytes:
    """Gradients of a tied embedding, summed between first and last stage."""
    table: Params = case.model.vocab * case.model.hidden / case.layout.tp
    return where((case.layout.pp > 1) & case.model.tied, case.engine.reduce_bytes * table, 0)


def data_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Bytes one rank of a stage sends for data parallelism in one step; experts over their own group."""
    return total(
        dense=replica_bytes(dense_parameters(stage), case.layout.replicas, case.layout.shard, case),
        experts=replica_bytes(expert_parameters(stage), case.layout.edp, case.layout.expert_shard, case),
        tied=tied_bytes(case),
    )


def tied_seconds(case: Case) -> Seconds:
    """Time to sum a tied embedding's gradients between first and last stage: sent and received."""
    sent: Seconds = 2 * send_time(tied_bytes(case), case.layout.tp * case.layout.cp * case.layout.dp, case.cluster)
    return where(tied_bytes(case) > 0, sent, 0)


def data_seconds(stage: StageCosts, case: Case) -> Seconds:
    """Time of a stage's data-parallel exchange in one step."""
    near: Count = case.layout.tp
    far: Count = case.layout.etp * case.layout.ep
    return total(
        dense=replica_seconds(dense_parameters(stage), case.layout.replicas, case.layout.shard, near, case),
        experts=replica_seconds(expert_parameters(stage), case.layout.edp, case.layout.expert_shard, far, case),
        tied=tied_seconds(case),
    )


def tokens_at_parity(
    parameters: Params, gradient: Bytes, hidden: Count, layers: Count, value: Bytes, units: Count
) -> Tokens:
    """Tokens a step on one data-parallel rank at which tensor parallelism sends as much as data parallelism.

    Data: 2 g N (n - 1)/n bytes whatever the batch. Tensor: `units` x value x hidden x layers a token, (t - 1)/t of it.
    Stated without the two ring factors, which are near 1 and nearly cancel.
    """
    return 2 * gradient * parameters / (units * value * hidden * layers)


def held_seconds(held: Held, axis: str, recomputed: Share) -> Seconds:
    """Time of an axis's collectives for one micro-batch, nothing hidden, of the layers of one kind."""
    return held.layers * ((1 + recomputed) * held.costs.on(axis).forward + held.costs.on(axis).backward)


def axis_seconds(stage: StageCosts, axis: str, case: Case) -> Seconds:
    """Time of an axis's collectives in one step on one stage, nothing hidden."""
    recomputed: Share = recomputed_share(stage, case.layout)
    layers: Seconds = total(each(held_seconds, stage.layers, axis, recomputed))
    ends: Seconds = total(each(held_seconds, stage.ends, axis, 0))
    return case.micro_batches * total(layers=layers, ends=ends)
