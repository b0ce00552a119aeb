"""Engines that gather weights and scatter gradients block by block (FSDP2): what stands beside the shards, and when.

At the loss only the ends of the model stand gathered. The backward pass gathers each block ahead of the one before it,
and keeps the input of a block's reduce-scatter until the next one's. Embedding, final norm and head are one group, so
the head's gradient stays whole until the embedding has its own. Or the embedding is a group like a block, and final
norm and head are another, gathered until its backward pass and scattered at once. Source: torch 2.13, FSDPMemTracker
and _fsdp_param_group.py.
"""

from ..formula import divide, each, maximum, minimum, total, where
from ..held import Held, held_dense, held_frozen_bytes
from ..layout.case import Case
from ..quantities import Bytes, Count, Params
from ..stage import StageCosts
from .activations import one_pass_bytes, recompute_bytes
from .shared_table import embedding_gradient_bytes, sharing
from .states import fresh_bytes


def scattering(stage: StageCosts, case: Case) -> tuple[StageCosts, ...]:
    """The stage, where its engine gathers and scatters block by block; else none, and nothing of it is counted."""
    return (stage,) if case.engine.scatters_blocks else ()


def growing(stage: StageCosts, case: Case) -> tuple[StageCosts, ...]:
    """The stage, where something may grow in its backward pass: blocks, or gradients that were not there before."""
    return (stage,) if case.engine.scatters_blocks or case.engine.frees_gradients else ()


def layers_bytes(stage: StageCosts, case: Case) -> Bytes:
    """All layers, gathered."""
    own: Bytes = case.compute_bytes * stage.end_parameters + stage.end_frozen_bytes
    return stage.whole_bytes(case.compute_bytes) - own


def end_bytes(held: Held, weight: Bytes) -> Bytes:
    """One end of the model, gathered: `weight` a trained parameter, frozen ones as they are kept."""
    return weight * held_dense(held) + held_frozen_bytes(held, "dense")


def head_weight_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Final norm and head where they are a group of their own: it is gathered from its forward to its backward pass."""
    return case.apart * case.gathers_blocks * end_bytes(stage.ends[1], case.compute_bytes)


def scattering_bytes(held: Held, case: Case) -> Bytes:
    """An end of the model while its gradient is scattered: the input, its own part, and the gradient itself.

    The last gradient of a group goes after the rest, and of an end that is its matrix.
    """
    part: Bytes = case.reduce_bytes / case.weight_cut
    return (case.compute_bytes + case.reduce_bytes + part) * held_dense(held)


def head_scatter_bytes(stage: StageCosts, case: Case) -> Bytes:
    """What stands beyond the logits while the gradient of the head's own group is scattered, without the logits.

    The last block is gathered ahead, and the gradient of the head's input stands. Weights that are never resharded
    are so here. Of a gradient that stood whole the sum stands already, and its last part is added to it before.
    """
    kept: Bytes = stage.ends[1].costs.kept - stage.largest_entry
    gone: Bytes = case.gathers_all * end_bytes(stage.ends[1], case.compute_bytes)
    summed: Bytes = case.summed * case.compute_bytes * held_dense(stage.ends[1])
    own: Bytes = scattering_bytes(stage.ends[1], case) - summed - gone - kept
    return case.apart * (case.scattered + case.summed) * maximum(own + blocks_bytes(stage, case, 1), 0)


def blocks_bytes(stage: StageCosts, case: Case, blocks: Count) -> Bytes:
    """So many blocks, gathered: at the head one, since the last layer is gathered ahead; two in a layer."""
    few: Bytes = minimum(blocks * stage.block_bytes(case.compute_bytes), layers_bytes(stage, case))
    return where(case.engine.scatters_blocks, case.gathers_blocks * few, 0)


def whole_gradient_bytes(stage: StageCosts, case: Case) -> Bytes:
    """The head's gradient in a layer's backward pass. It is whole to the end where its group has the embedding too;
    else this rank's part of it, where it was not there before."""
    table: Params = where(case.shares_table, stage.ends[0].costs.dense_parameters, 0)
    head: Params = stage.ends[1].costs.dense_parameters + table
    cut: Count = where(case.summed > 0, case.weight_cut, case.gradient_cut)
    own: Bytes = case.gradients_here * case.recipe.gradients / cut
    part: Bytes = where(case.fresh + case.summed * case.apart > 0, own, 0)
    apart: Count = where(case.reduce_bytes > case.compute_bytes, case.summed, 0)  # else it is added where it is made
    return where(case.scattered + apart > case.apart, case.compute_bytes, part) * stage.head * head


def scatter_bytes(stage: StageCosts, case: Case) -> Bytes:
    """The input of a block's reduce-scatter, which stands until the next one's."""
    return (case.scattered + case.summed) * case.reduce_bytes * stage.largest_trained


def end_shard_bytes(stage: StageCosts, case: Case) -> Bytes:
    """This rank's gradients of the ends of the model, where they were not there before the backward pass."""
    own: Bytes = case.gradients_here * case.recipe.gradients * stage.end_parameters / case.gradient_cut
    return where(case.fresh > 0, own, 0)


def scattered_sum_bytes(stage: StageCosts, case: Case) -> Bytes:
    """What the last backward pass makes of gradients of the layers that stood whole: shards, less the sums."""
    dense: Params = stage.dense_parameters - stage.end_parameters
    shards: Params = dense / case.weight_cut + stage.expert_parameters / case.expert_weight_cut
    here: Bytes = case.gradients_here * case.recipe.gradients
    return case.summed * (here * shards - case.reduce_bytes * (dense + stage.expert_parameters))


def staying_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Layers that a backward pass leaves gathered in a pipeline, until the next forward pass.

    Source: torch 2.13, pipelining/stage.py, backward_maybe_with_nosync: set_reshard_after_backward(False).
    """
    stays: Count = where(case.engine.scatters_blocks, case.deferred * case.gathers_blocks, 0)
    return stays * layers_bytes(stage, case)


def grown_bytes(stage: StageCosts, case: Case) -> Bytes:
    """By how much each layer that is done has changed what stands: gradients that were not there, less its tape. In a
    pipeline its weights stay gathered too."""
    own: Bytes = fresh_bytes(stage, case) - end_shard_bytes(stage, case)
    shards: Bytes = own + scattered_sum_bytes(stage, case)
    gathered: Bytes = case.gathers_all * (case.scattered + case.summed) * stage.block_bytes(case.compute_bytes)
    stays: Bytes = staying_bytes(stage, case)
    made: Bytes = divide(shards + stays, stage.differentiated) - gathered
    tape: Bytes = divide(one_pass_bytes(stage, case), stage.differentiated)
    return where(case.scattered + case.fresh + case.summed + stays > 0, made - tape, 0)


def ahead_bytes(stage: StageCosts, case: Case) -> Bytes:
    """The embedding, where it is a group of its own: it is gathered ahead in the backward pass of the first layer."""
    return case.embedding_apart * case.gathers_blocks * end_bytes(stage.ends[0], case.compute_bytes)


def head_behind_bytes(stage: StageCosts, case: Case) -> Bytes:
    """The input of the reduce-scatter of the head's own group, in the backward pass of the last layer."""
    return case.apart * case.scattered * case.reduce_bytes * held_dense(stage.ends[1])


def resharded_bytes(stage: StageCosts, case: Case) -> Bytes:
    """The head's weights, which stood gathered with all others, and go with its own group."""
    gathered: Count = case.gathers_all * (case.scattered + case.summed)
    return case.apart * gathered * end_bytes(stage.ends[1], case.compute_bytes)


def summed_head_bytes(stage: StageCosts, case: Case) -> Bytes:
    """The head's gradient that stood whole, which is scattered before the layers' where it is a group of its own."""
    return case.apart * case.summed * case.reduce_bytes * held_dense(stage.ends[1])


def between_bytes(stage: StageCosts, case: Case) -> Bytes:
    """The first layer in a backward pass before the last, where nothing that stands whole is scattered."""
    tapes: Bytes = one_pass_bytes(stage, case) - divide(one_pass_bytes(stage, case), stage.differentiated)
    ahead: Bytes = ahead_bytes(stage, case) - blocks_bytes(stage, case, 1) - tapes
    return where(case.summed > 0, where(case.micro_batches > 2, ahead - whole_gradient_bytes(stage, case), 0), 0)


def behind_bytes(stage: StageCosts, case: Case) -> Bytes:
    """What the layers whose backward pass is done hold beyond their tapes, at the layer where that is most.

    The first of them, with what the head's own group left; the second; the last but one; or the last, which gathers no
    block ahead: there one block less stands, or, where that is more, all but its backward pass, since its own block
    stands twice while it is copied out of the gather. An embedding that is a group of its own is gathered ahead there.
    """
    layers: Count = stage.differentiated
    grown: Bytes = grown_bytes(stage, case)
    buffer: Bytes = scatter_bytes(stage, case)
    table: Bytes = ahead_bytes(stage, case)
    first: Bytes = head_behind_bytes(stage, case) + where(layers > 1, 0, table)
    inner: Bytes = where(layers > 2, buffer + maximum(grown, (layers - 2) * grown), 0)
    own: Bytes = recompute_bytes(stage, case) + stage.largest_backward - stage.largest_entry
    less: Bytes = minimum(block=blocks_bytes(stage, case, 1) - table, own=own)
    last: Bytes = where(layers > 1, buffer + (layers - 1) * grown - less, 0)
    done: Bytes = summed_head_bytes(stage, case)
    return maximum(first, inner - done, last - done, between_bytes(stage, case)) - resharded_bytes(stage, case)


def table_gradient_bytes(stage: StageCosts, case: Case) -> Bytes:
    """The embedding's gradient as DTensor makes it of a table cut by rows: a partial sum as large as the whole table.

    Beside it stands its slice, or the gathered gradient that it is made of. Source: torch 2.13, FSDPMemTracker.
    """
    slice_bytes: Bytes = case.compute_bytes * stage.ends[0].layers * stage.ends[0].costs.dense_parameters
    beside: Bytes = maximum(stage.largest_entry * case.layout.sliced - slice_bytes, 0)
    return where(case.layout.tp > 1, case.layout.tp * slice_bytes + beside, 0)


def together_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Ends that are one group, where their backward pass is over: their gradients whole, and a buffer: the last
    block's, or that of the ends themselves, whose weights are gathered no more."""
    own: Bytes = (case.reduce_bytes - case.compute_bytes) * stage.end_parameters
    shared: Bytes = total(each(embedding_gradient_bytes, sharing(stage, case), case))
    made: Bytes = shared + table_gradient_bytes(stage, case) + scatter_bytes(stage, case)
    return case.compute_bytes * stage.end_parameters + maximum(made=made, scattered=own)


def table_bytes(stage: StageCosts, case: Case) -> Bytes:
    """An embedding that is a group of its own, where its backward pass is over: weights, gradient and the last block's
    buffer; or its gradient while it is scattered, beside the partial sum that it is a slice of. Weights that are never
    resharded are so here, the head's before."""
    made: Bytes = table_gradient_bytes(stage, case) + scatter_bytes(stage, case)
    own: Bytes = end_bytes(stage.ends[0], case.compute_bytes) + case.compute_bytes * held_dense(stage.ends[0])
    gone: Bytes = case.compute_bytes * stage.end_parameters + stage.end_frozen_bytes
    partial: Bytes = case.compute_bytes * where(case.layout.tp > 1, case.layout.tp, 0) * held_dense(stage.ends[0])
    most: Bytes = maximum(made=own + made, scattered=partial + scattering_bytes(stage.ends[0], case))
    return most - where(case.gathers_all > 0, gone, 0)


def ends_moment(stage: StageCosts, case: Case) -> Bytes:
    """What stands beside the rest of the state where the backward pass ends: gradients of all that is done, and what
    the ends hold. The layers, where all were gathered, are not."""
    shards: Bytes = fresh_bytes(stage, case) - end_shard_bytes(stage, case)
    part: Bytes = where(case.fresh > 0, case.gradients_here * case.recipe.gradients / case.gradient_cut, 0)
    head: Bytes = part * held_dense(stage.ends[1])
    whole: Bytes = where(case.apart > 0, head + table_bytes(stage, case), together_bytes(stage, case))
    gone: Bytes = where(case.gathers_all > 0, layers_bytes(stage, case), 0)
    return case.scattered * (shards + whole - gone)
