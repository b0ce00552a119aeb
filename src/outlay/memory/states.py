"""State: weights, gradients and optimizer, sharded by ZeRO stage; experts over groups of their own."""

from ..engines.engine import Engine
from ..formula import each, maximum, minimum, total, where
from ..held import held_dense, held_frozen_bytes
from ..job import Beside
from ..layout.case import Case
from ..quantities import Bytes, Count, Params, Share
from ..stage import StageCosts
from .shared_table import embedding_gradient_bytes, sharing


def state_bytes(parameters: Params, bytes_per_parameter: Bytes) -> Bytes:
    """The wall: all state before it is divided, N x bytes a parameter.

    Mixed-precision Adam keeps 16 (2 weight, 2 gradient, 4 master, 4 + 4 moments). Source: Rajbhandari et al. 2020.
    """
    return parameters * bytes_per_parameter


def resident_bytes(parameters: Params, trained: Share, weights: Bytes, bytes_per_parameter: Bytes) -> Bytes:
    """State where only a share of the parameters is trained: the rest keeps its weight alone.

    With 16 bytes, freezing removes 14 of them: so no saving here is worth more than a factor of 8.
    """
    frozen: Bytes = (1 - trained) * parameters * weights
    return trained * parameters * bytes_per_parameter + frozen


def gathered_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Weights that stand gathered at all times: a few blocks under ZeRO-3; all of them where they are not resharded.

    Of an engine that gathers each block ahead of its backward pass, the ends of the model: see `blocks_bytes`. Not
    where these are groups of their own: see `head_weight_bytes`.

    Frozen weights are gathered in the format that they are kept in. Source: bitsandbytes documentation, FSDP-QLoRA.
    """
    table: Bytes = case.compute_bytes * held_dense(stage.ends[0]) + held_frozen_bytes(stage.ends[0], "dense")
    own: Bytes = case.compute_bytes * stage.end_parameters + stage.end_frozen_bytes
    stays: Bytes = own - where(case.ends_apart, table, 0)  # in a pipeline it is resharded like a block
    ends: Bytes = where(case.engine.gathers_ends, where(case.apart > 0, 0, stays), 0)
    every: Bytes = stage.whole_bytes(case.compute_bytes)
    blocks: Count = where(case.engine.scatters_blocks, 0, case.engine.gathered_blocks)
    few: Bytes = minimum(blocks * stage.block_bytes(case.compute_bytes) + ends, every)
    return few * case.gathers_blocks + every * case.gathers_all


def weight_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Weights of a stage and their quantised copies on one rank, less what is offloaded."""
    dense: Bytes = case.recipe.weights * stage.dense_parameters + stage.copies("dense") + stage.frozen_bytes("dense")
    own: Bytes = case.recipe.weights * stage.expert_parameters + stage.copies("expert")
    experts: Bytes = own + stage.frozen_bytes("expert")
    held: Bytes = total(dense=dense / case.weight_cut, experts=experts / case.expert_weight_cut)
    return held * (1 - case.layout.offload_parameters)


def waiting(case: Case) -> tuple[Engine, ...]:
    """The engine, where it keeps gradients that wait whole in the type that they are reduced in: FSDP."""
    return (case.engine,) if case.engine.scatters_blocks else ()


def wider_bytes(engine: Engine, case: Case) -> Bytes:
    """By how much a gradient that waits whole is wider than one that is sharded.

    Source: torch 2.13, FSDPParam.to_accumulated_grad_if_needed.
    """
    return where((case.whole > 0) & (case.layout.zero >= 2), case.reduce_bytes - case.recipe.gradients, 0)


def gradient_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Gradients of a stage on one rank, sharded from ZeRO-2 on unless they wait whole, less what is offloaded."""
    wider: Bytes = total(each(wider_bytes, waiting(case), case))
    each_here: Bytes = (case.recipe.gradients + wider) * case.gradients_here
    dense: Bytes = each_here * stage.dense_parameters
    experts: Bytes = each_here * stage.expert_parameters
    return total(dense=dense / case.gradient_cut, experts=experts / case.expert_gradient_cut)


def optimizer_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Master weights and moments of a stage on one rank, sharded from ZeRO-1 on, less what is offloaded."""
    dense: Bytes = case.recipe.master * stage.dense_parameters + stage.moments("dense")
    experts: Bytes = case.recipe.master * stage.expert_parameters + stage.moments("expert")
    held: Bytes = total(dense=dense / case.optimizer_cut, experts=experts / case.expert_optimizer_cut)
    return held * (1 - case.layout.offload_optimizer)


def library_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Workspaces of matrix multiplies, and more where experts are multiplied in groups."""
    grouped: Bytes = where(stage.expert_parameters > 0, case.workspaces.grouped, 0)
    return where(case.workspaces.grouped > 0, case.workspaces.held + grouped, case.workspaces.held)


def dummy_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Tensors in place of gradients that were added elsewhere, gathered inputs, a dequantised matrix, workspaces."""
    gathered: Bytes = stage.largest_entry * case.layout.sliced
    buffers: Bytes = case.engine.gather_buffers * where(case.layout.sliced > 1, gathered, 0)
    return total(
        gradients=case.engine.dummy_gradients * stage.shapes,
        inputs=buffers,
        dequantised=stage.dequantised,
        workspaces=library_bytes(stage, case),
    )


def freeing(case: Case) -> tuple[Engine, ...]:
    """The engine, where it frees gradients after each step."""
    return (case.engine,) if case.engine.frees_gradients else ()


def freed_bytes(engine: Engine, stage: StageCosts, case: Case) -> Bytes:
    """Gradients that an engine made in the one backward pass of a step."""
    return where(case.fresh > 0, gradient_bytes(stage, case), 0)


def fresh_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Gradients that are not there yet where the backward pass begins: with one micro-batch, freed after each step."""
    return total(each(freed_bytes, freeing(case), stage, case))


def shared_unit_bytes(stage: StageCosts, case: Case) -> Bytes:
    """By how much all gradients are more where those of a shared table are added than where they are scattered."""
    trained: Params = stage.dense_parameters + stage.expert_parameters
    made: Bytes = case.gathers_all * (case.compute_bytes * trained + embedding_gradient_bytes(stage, case))
    return maximum(made - case.unit_gradient * trained, 0)


def unit_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Gradients that stand whole at the end of a backward pass, where the whole model is one unit of FSDP."""
    shared: Bytes = total(each(shared_unit_bytes, sharing(stage, case), case))
    whole: Bytes = case.unit_gradient * (stage.dense_parameters + stage.expert_parameters)
    return where(case.one_unit > 0, whole + shared, 0)  # no array where there is nothing


def beside_bytes(case: Case) -> Bytes:
    """Other models on one accelerator."""
    return total(each(Beside.held, case.job.beside, case.recipe.bytes_per_parameter))


def bucket_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Buckets of gradients, never larger than the gradients that there are."""
    trained: Params = stage.dense_parameters + stage.expert_parameters
    return case.bucket_width * minimum(case.engine.bucket_elements, trained)


def replica_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Copies that plain data parallelism keeps beside a stage's weights and gradients: autocast, DDP's buckets."""
    return case.copied_bytes * (stage.dense_parameters + stage.expert_parameters)
