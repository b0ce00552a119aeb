"""State: weights, gradients and optimizer, sharded by ZeRO stage; experts over groups of their own."""

from ..formula import each, maximum, minimum, total, where
from ..layer import Held, StageCosts
from ..layout.axes import Layout
from ..layout.case import Case
from ..quantities import Bytes, Flag, Params, Share


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


def held_dense(held: Held) -> Params:
    """Parameters outside experts, of the layers of one kind."""
    return held.layers * held.costs.dense_parameters


def held_experts(held: Held) -> Params:
    """Expert parameters, of the layers of one kind."""
    return held.layers * held.costs.expert_parameters


def dense_parameters(stage: StageCosts) -> Params:
    """Parameters of a stage on one rank, experts apart."""
    return total(each(held_dense, stage.parts))


def expert_parameters(stage: StageCosts) -> Params:
    """Expert parameters of a stage on one rank."""
    return total(each(held_experts, stage.parts))


def stored(size: Bytes, stage: StageCosts, sharded: Flag, layout: Layout) -> Bytes:
    """`size` bytes a parameter of a stage on one rank; experts have shard groups of their own.

    Source: ZeRO; Megatron-LM's distributed optimizer for experts.
    """
    dense: Bytes = size * dense_parameters(stage) / where(sharded, layout.shard, 1)
    experts: Bytes = size * expert_parameters(stage) / where(sharded, layout.expert_shard, 1)
    return total(dense=dense, experts=experts)


def held_block(held: Held) -> Params:
    """Parameters of one layer, where the stage has such layers."""
    return (held.costs.dense_parameters + held.costs.expert_parameters) * minimum(held.layers, 1)


def gathered_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Weights that stand gathered at one time: a few blocks under ZeRO-3; all of them where they are not resharded."""
    block: Params = maximum(each(held_block, stage.layers))
    ends: Params = where(case.engine.gathers_ends, total(each(held_dense, stage.ends)), 0)
    few: Params = case.engine.gathered_blocks * block + ends
    every: Params = dense_parameters(stage) + expert_parameters(stage)
    kept: Params = where(case.layout.zero >= case.engine.weights_sharded_from, every, 0)
    together: Params = where(case.layout.zero >= 3, minimum(few, every), kept)
    return case.engine.compute_bytes * where(case.layout.shard > 1, together, 0)


def weight_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Weights of a stage on one rank, less what is offloaded."""
    held: Bytes = stored(case.recipe.weights, stage, case.layout.zero >= case.engine.weights_sharded_from, case.layout)
    return held * (1 - case.layout.offload_parameters)


def gradient_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Gradients of a stage on one rank, sharded from ZeRO-2 on."""
    return stored(case.recipe.gradients, stage, case.layout.zero >= 2, case.layout)


def optimizer_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Master weights and moments of a stage on one rank, sharded from ZeRO-1 on, less what is offloaded."""
    held: Bytes = stored(case.recipe.optimizer, stage, case.layout.zero >= 1, case.layout)
    return held * (1 - case.layout.offload_optimizer)
