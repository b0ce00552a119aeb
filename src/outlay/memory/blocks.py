"""Engines that gather weights and scatter gradients block by block (FSDP2): what stands beside the shards, and when.

At the loss only the ends of the model stand gathered. The backward pass gathers each block ahead of the one before it,
and keeps the input of a block's reduce-scatter until the next one's. Embedding, final norm and head are one group, so
the head's gradient stays whole until the embedding has its own. Source: torch 2.13, FSDPMemTracker and
_fsdp_param_group.py.
"""

from ..formula import divide, maximum, minimum, where
from ..layout.case import Case
from ..quantities import Bytes, Count, Params
from ..stage import StageCosts
from .activations import one_pass_bytes, recompute_bytes
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


def blocks_bytes(stage: StageCosts, case: Case, blocks: Count) -> Bytes:
    """So many blocks, gathered: at the head one, since the last layer is gathered ahead; two in a layer."""
    few: Bytes = minimum(blocks * stage.block_bytes(case.compute_bytes), layers_bytes(stage, case))
    return where(case.engine.scatters_blocks, case.gathers_blocks * few, 0)


def whole_gradient_bytes(stage: StageCosts, case: Case) -> Bytes:
    """The head's gradient in a layer's backward pass. It is whole to the end where its group has the embedding too; of
    engines that do not scatter block by block, this rank's part of it, where it was not there before."""
    table: Params = where(case.shares_table, stage.ends[0].costs.dense_parameters, 0)
    head: Params = stage.ends[1].costs.dense_parameters + table
    own: Bytes = case.gradients_here * case.recipe.gradients / case.gradient_cut
    part: Bytes = where(case.fresh > 0, own, 0)
    return where(case.scattered > 0, case.compute_bytes, part) * stage.head * head


def scatter_bytes(stage: StageCosts, case: Case) -> Bytes:
    """The input of a block's reduce-scatter, which stands until the next one's."""
    return case.scattered * case.reduce_bytes * stage.largest_trained


def end_shard_bytes(stage: StageCosts, case: Case) -> Bytes:
    """This rank's gradients of the ends of the model, where they were not there before the backward pass."""
    own: Bytes = case.gradients_here * case.recipe.gradients * stage.end_parameters / case.gradient_cut
    return where(case.fresh > 0, own, 0)


def grown_bytes(stage: StageCosts, case: Case) -> Bytes:
    """By how much each layer that is done has changed what stands: gradients that were not there, less its tape."""
    shards: Bytes = fresh_bytes(stage, case) - end_shard_bytes(stage, case)
    gathered: Bytes = case.gathers_all * case.scattered * stage.block_bytes(case.compute_bytes)
    made: Bytes = divide(shards, stage.differentiated) - gathered
    tape: Bytes = divide(one_pass_bytes(stage, case), stage.differentiated)
    return where((case.scattered > 0) | (case.fresh > 0), made - tape, 0)


def behind_bytes(stage: StageCosts, case: Case) -> Bytes:
    """What the layers whose backward pass is done hold beyond their tapes, at the layer where that is most.

    The second layer, the last but one, or the last, which gathers none ahead: there one block less stands, or, where
    that is more, all but its backward pass, since its own block stands twice while it is copied out of the gather.
    0 at the first layer.
    """
    layers: Count = stage.differentiated
    grown: Bytes = grown_bytes(stage, case)
    buffer: Bytes = scatter_bytes(stage, case)
    inner: Bytes = where(layers > 2, buffer + maximum(grown, (layers - 2) * grown), 0)
    own: Bytes = recompute_bytes(stage, case) + stage.largest_backward - stage.largest_entry
    less: Bytes = minimum(block=blocks_bytes(stage, case, 1), own=own)
    last: Bytes = where(layers > 1, buffer + (layers - 1) * grown - less, 0)
    return maximum(inner, last, 0)


def table_gradient_bytes(stage: StageCosts, case: Case) -> Bytes:
    """The embedding's gradient as DTensor makes it of a table cut by rows: a partial sum as large as the whole table.

    Beside it stands its slice, or the gathered gradient that it is made of. Source: torch 2.13, FSDPMemTracker.
    """
    slice_bytes: Bytes = case.compute_bytes * stage.ends[0].layers * stage.ends[0].costs.dense_parameters
    beside: Bytes = maximum(stage.largest_entry * case.layout.sliced - slice_bytes, 0)
    return where(case.layout.tp > 1, case.layout.tp * slice_bytes + beside, 0)


def ends_moment(stage: StageCosts, case: Case) -> Bytes:
    """What stands beside the rest of the state where the backward pass ends: gradients of the layers, those of the ends
    whole, and a buffer: the last block's, or that of the ends themselves, whose weights are gathered no more. The
    layers, where all were gathered, are not."""
    shards: Bytes = fresh_bytes(stage, case) - end_shard_bytes(stage, case)
    own: Bytes = (case.reduce_bytes - case.compute_bytes) * stage.end_parameters
    made: Bytes = table_gradient_bytes(stage, case) + scatter_bytes(stage, case)
    whole: Bytes = case.compute_bytes * stage.end_parameters + maximum(made=made, scattered=own)
    gone: Bytes = where(case.gathers_all > 0, layers_bytes(stage, case), 0)
    return case.scattered * (shards + whole - gone)
