"""Bytes each rank sends in a step, by axis, and how long the exchanges take.

Data parallelism moves parameters, whatever the batch; tensor, context and expert parallelism move tokens, at every
layer; a pipeline moves stage boundaries alone.
"""

from ..cluster.network import group, send_time, spine_time
from ..formula import each, total, where
from ..held import Held, held_dense, held_frozen_bytes
from ..layout.axes import Layout
from ..layout.case import Case
from ..layout.replicas import Replicas
from ..layout.sizes import padded_vocabulary, tokens_on_rank
from ..memory.activations import recomputed_share
from ..model.model import Model
from ..quantities import Bandwidth, Bytes, Count, Params, Seconds, Share, Tokens
from ..schedule.flight import sends
from ..stage import StageCosts


def coarse_gradient_bytes(parameters: Params, gradient: Bytes) -> Bytes:
    """The textbook's data-parallel traffic: every gradient once, 2N bytes a device a step.

    On the wire a ring moves 2(n - 1)/n of the buffer.
    """
    return parameters * gradient


def transfer_seconds(size: Bytes, bandwidth: Bandwidth) -> Seconds:
    """Bytes over a bandwidth."""
    return size / bandwidth


def held_sent(held: Held, axis: str, recomputed: Share, layout: Layout) -> Bytes:
    """Bytes one rank sends on an axis for one micro-batch, of the layers of one kind; recompute sends forward again."""
    once: Bytes = held.costs.on(axis).sent_forward + held.costs.on(axis).sent_backward
    whole: Bytes = recomputed * held.costs.on(axis).sent_forward
    return held.layers * (once + where(layout.selective, held.costs.on(axis).sent_again, whole))


def axis_bytes(stage: StageCosts, axis: str, case: Case) -> Bytes:
    """Bytes one rank of a stage sends on tp, cp, ep or etp in one step."""
    recomputed: Share = recomputed_share(stage, case.layout)
    layers: Bytes = total(each(held_sent, stage.layers, axis, recomputed, case.layout))
    ends: Bytes = total(each(held_sent, stage.ends, axis, 0, case.layout))
    return case.micro_batches * total(layers=layers, ends=ends)


def message_bytes(case: Case) -> Bytes:
    """One pipeline message: the hidden vectors of a micro-batch; a slice under sp, or where the engine splits sends."""
    sliced: Count = where(case.engine.splits_sends, case.layout.tp, case.layout.sliced)
    tokens: Tokens = tokens_on_rank(case.job, case.layout)
    return case.job.activation_bytes * tokens * case.model.hidden * case.model.streams / sliced


def pipeline_bytes(case: Case) -> Bytes:
    """Bytes that the busiest rank of a pipeline sends in one step, both directions."""
    return sends(case.layout.pp, case.layout.vpp, case.micro_batches) * message_bytes(case)


def message_seconds(case: Case) -> Seconds:
    """One message to the next stage: the mean over the hops of a pipeline, some of which leave the domain."""
    stride: Count = case.layout.tp * case.layout.cp * case.layout.dp
    return group(case.layout.pp, stride, case.cluster).send(message_bytes(case))


def tables(case: Case) -> tuple[Model, ...]:
    """The model, where its embedding and head share a table that is trained."""
    return (case.model,) if case.shares_table else ()


def tied_bytes(model: Model, case: Case) -> Bytes:
    """Gradients of a tied embedding, summed between first and last stage."""
    rows: Count = padded_vocabulary(model.vocab, case.layout.tp, case.engine.vocab_multiple)
    return where(case.layout.apart, case.reduce_bytes * rows * model.hidden, 0)


def held_again_bytes(held: Held, kind: str, replicas: Replicas) -> Bytes:
    """What gathering frozen weights for backward passes would send in one step, of parts that need no such gather."""
    return held_frozen_bytes(held, kind) * replicas.again_sent


def held_again_seconds(held: Held, kind: str, replicas: Replicas) -> Seconds:
    """The time of that."""
    return held_frozen_bytes(held, kind) * replicas.again_pace


def resharded(stage: StageCosts, case: Case) -> tuple[Held, ...]:
    """The embedding, where it is a group of its own: gathered again for its backward pass, which the head is not."""
    return stage.ends[:1] if case.ends_apart else ()


def kept_gathered(stage: StageCosts, case: Case) -> tuple[Held, ...]:
    """Parts whose weights are gathered once a micro-batch: no backward pass reads them, or they stay until it."""
    return stage.once(case.engine.gathers_ends, case.ends_apart)


def table_again_bytes(held: Held, replicas: Replicas) -> Bytes:
    """What gathering the embedding again sends in one step."""
    return held_dense(held) * replicas.end_again_sent


def table_again_seconds(held: Held, replicas: Replicas) -> Seconds:
    """The time of that."""
    return held_dense(held) * replicas.end_again_pace


def with_experts(stage: StageCosts, case: Case) -> tuple[StageCosts, ...]:
    """The stage, where the model has experts: they are exchanged over their own group."""
    return (stage,) if case.model.experts else ()


def expert_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Bytes one rank of a stage sends for data parallelism of its trained experts in one step."""
    return stage.expert_parameters * case.expert_replicas.sent


def data_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Bytes one rank of a stage sends for data parallelism in one step; experts over their own group."""
    spared: Bytes = stage.end_parameters * case.dense_replicas.ends_sent
    again: Bytes = total(each(table_again_bytes, resharded(stage, case), case.dense_replicas))
    dense: Bytes = stage.dense_parameters * case.dense_replicas.sent - spared + again
    experts: Bytes = total(each(expert_bytes, with_experts(stage, case), case))
    once: Bytes = total(each(held_again_bytes, kept_gathered(stage, case), "dense", case.dense_replicas))
    once_experts: Bytes = total(each(held_again_bytes, stage.once(), "expert", case.expert_replicas))
    still: Bytes = stage.frozen_bytes("dense") * case.dense_replicas.frozen_sent - once
    still_experts: Bytes = stage.frozen_bytes("expert") * case.expert_replicas.frozen_sent - once_experts
    tied: Bytes = total(each(tied_bytes, tables(case), case))
    return total(dense=dense, experts=experts, frozen=still + still_experts, tied=tied)


def tied_seconds(model: Model, case: Case) -> Seconds:
    """Time to sum a tied embedding's gradients between first and last stage: sent and received."""
    between: Count = case.layout.tp * case.layout.cp * case.layout.dp * (case.layout.pp - 1)
    far: Share = where(between < case.cluster.inside.size, 0, 1)
    beyond: Share = where(between < case.cluster.outside.size, 0, 1)
    message: Bytes = tied_bytes(model, case)
    sent: Seconds = 2 * (send_time(message, far, case.cluster) + spine_time(message, beyond, case.cluster))
    return where(case.layout.apart, sent, 0)


def collectives(stage: StageCosts, case: Case) -> Count:
    """Into how many collectives each scatter and gather of a stage's weights is cut: one a layer where weights are
    gathered layer by layer, and one for the ends of the model. Elsewhere buckets are so large that one is counted.
    """
    return 1 + case.gathers_blocks * stage.differentiated


def expert_data_seconds(stage: StageCosts, case: Case) -> Seconds:
    """Time of the data-parallel exchange of a stage's trained experts in one step."""
    moved: Seconds = stage.expert_parameters * case.expert_replicas.pace
    reduced: Seconds = case.expert_replicas.reduce_seconds(stage.expert_parameters)
    latency: Seconds = collectives(stage, case) * case.expert_replicas.latency
    return where(stage.expert_parameters > 0, moved + reduced + latency, 0)


def data_seconds(stage: StageCosts, case: Case) -> Seconds:
    """Time of a stage's data-parallel exchange in one step; experts over their own groups."""
    spared: Seconds = stage.end_parameters * case.dense_replicas.ends_pace
    again: Seconds = total(each(table_again_seconds, resharded(stage, case), case.dense_replicas))
    moved: Seconds = stage.dense_parameters * case.dense_replicas.pace - spared + again
    reduced: Seconds = case.dense_replicas.reduce_seconds(stage.dense_parameters)
    latency: Seconds = collectives(stage, case) * case.dense_replicas.latency
    once: Seconds = total(each(held_again_seconds, kept_gathered(stage, case), "dense", case.dense_replicas))
    once_experts: Seconds = total(each(held_again_seconds, stage.once(), "expert", case.expert_replicas))
    still: Seconds = stage.frozen_bytes("dense") * case.dense_replicas.frozen_pace - once
    still_experts: Seconds = stage.frozen_bytes("expert") * case.expert_replicas.frozen_pace - once_experts
    tied: Seconds = total(each(tied_seconds, tables(case), case))
    return total(
        dense=moved + where(stage.dense_parameters > 0, reduced + latency, 0),
        experts=total(each(expert_data_seconds, with_experts(stage, case), case)),
        frozen=still + still_experts,
        tied=tied,
    )


def tokens_at_parity(
    parameters: Params, gradient: Bytes, hidden: Count, layers: Count, value: Bytes, units: Count
) -> Tokens:
    """Tokens a step on one data-parallel rank at which tensor parallelism sends as much as data parallelism.

    Data: 2 g N (n - 1)/n bytes whatever the batch. Tensor: `units` x value x hidden x layers a token, (t - 1)/t of it.
    Stated without the two ring factors, which are near 1 and nearly cancel.
    """
    return 2 * gradient * parameters / (units * value * hidden * layers)


def held_seconds(held: Held, axis: str, recomputed: Share, layout: Layout) -> Seconds:
    """Time of an axis's collectives for one micro-batch, nothing hidden, of the layers of one kind."""
    once: Seconds = held.costs.on(axis).forward + held.costs.on(axis).backward
    whole: Seconds = recomputed * held.costs.on(axis).forward
    return held.layers * (once + where(layout.selective, held.costs.on(axis).again, whole))


def axis_seconds(stage: StageCosts, axis: str, case: Case) -> Seconds:
    """Time of an axis's collectives in one step on one stage, nothing hidden."""
    recomputed: Share = recomputed_share(stage, case.layout)
    layers: Seconds = total(each(held_seconds, stage.layers, axis, recomputed, case.layout))
    ends: Seconds = total(each(held_seconds, stage.ends, axis, 0, case.layout))
    return case.micro_batches * total(layers=layers, ends=ends)
