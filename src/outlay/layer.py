"""What one layer of a kind keeps, moves and takes on one rank: sums over its rows, in one frozen record.

The seam between the inventory and everything after it: memory and step read only this. It depends on tp, cp, ep, etp,
the micro-batch and sp alone, so a search computes it once for each distinct combination.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

from .cluster.accelerator import Cluster
from .cluster.efficiency import Rates
from .engines.engine import Engine, KernelSet
from .engines.rates import rates
from .engines.recipe import Recipe
from .engines.tables import kernels_of, precision
from .job import AUTO, Job, dequantised_of, recipe_of
from .layer_passes import again_forward, context_backward, context_forward, layer_forward, layer_input_gradient
from .layout.axes import Layout
from .layout.case import Case
from .layout.sizes import sizes
from .model.blocks import embedding_rows, head_rows, rows
from .model.gradients import most_standing
from .model.model import Model
from .model.modules import Checkpoint, checkpoints
from .model.moves import Move
from .model.operations import Attention, Linear, Pointwise, Row, Sizes
from .model.quantised import Quantised
from .model.reads import only_added
from .model.trained import differentiated, trained_rows
from .model.weights import Shapes, distinct_shapes
from .quantities import Bytes, Flag, Params, Seconds
from .sums import (
    AXES,
    is_expert,
    largest_dequantised,
    largest_freed,
    split_moves,
    sum_backward_workspace,
    sum_forward,
    sum_freed,
    sum_frozen,
    sum_kept,
    sum_matrices,
    sum_moments,
    sum_orthogonalised,
    sum_parameters,
    sum_sent_backward,
    sum_sent_forward,
    sum_spared,
    sum_time_backward,
    sum_time_forward,
    sum_weight_gradient,
    sum_workspace,
)

ENDS = ("embedding", "head")  # of a model: their gradients are counted where the backward pass begins


@dataclass(frozen=True)
class Exchange:
    """Collectives of one axis in one layer and micro-batch, on one rank."""

    forward: Seconds
    backward: Seconds
    again: Seconds  # of the modules that selective recompute runs again
    sent_forward: Bytes
    sent_backward: Bytes
    sent_again: Bytes


@dataclass(frozen=True)
class Owned:
    """What the parameters of one layer on one rank cost by their shape, dense ones or experts."""

    frozen_bytes: Bytes  # of frozen weights
    copies: Bytes  # quantised weights
    moments: Bytes  # of the optimizer
    orthogonalised: Seconds


@dataclass(frozen=True)
class LayerCosts:
    """One layer (or one end of the model), one micro-batch, one rank."""

    name: str
    dense_parameters: Params  # those that are trained
    expert_parameters: Params
    entry: Bytes  # the layer's input, all that full recompute keeps
    kept: Bytes  # the tape
    kept_selective: Bytes  # the tape where modules are recomputed
    freed: Bytes  # what the largest of them frees, one at a time
    workspace: Bytes  # held for a moment beyond the tape: the loss
    backward: Bytes  # gradients of values that its backward pass holds for a moment
    dequantised: Bytes  # the largest frozen matrix that is dequantised before each use
    differentiated: Flag  # whether a backward pass runs through it
    forward: Seconds
    whole_again: Seconds  # the same as full recompute runs it again
    modules_forward: Seconds  # the part that selective recompute runs again
    input_gradient: Seconds
    weight_gradient: Seconds
    context_forward: Seconds  # context-parallel exchange that shows, forward
    context_backward: Seconds
    context_again: Seconds  # the same, of the modules that run again
    tp: Exchange
    cp: Exchange
    ep: Exchange
    etp: Exchange
    dense: Owned
    expert: Owned

    def owned(self, kind: str) -> Owned:
        """What the dense parameters or the experts cost by their shape."""
        found: Owned = getattr(self, kind)
        return found

    def on(self, axis: str) -> Exchange:
        """The collectives of one axis."""
        found: Exchange = getattr(self, axis)
        return found


def entry_bytes(here: Sizes) -> Bytes:
    """The input of one layer: the hidden vectors of a micro-batch's tokens on this rank."""
    return here["value"] * here["S"] * here["stream"]


def _exchange(moves: tuple[Move, ...], again: tuple[Move, ...], here: Sizes, cluster: Cluster) -> Exchange:
    back = passed_back(moves)
    return Exchange(
        forward=sum_time_forward(moves, here, cluster),
        backward=sum_time_backward(back, here, cluster),
        again=sum_time_forward(again, here, cluster),
        sent_forward=sum_sent_forward(moves, here),
        sent_backward=sum_sent_backward(back, here),
        sent_again=sum_sent_forward(again, here),
    )


OneRow = TypeVar("OneRow", bound=Row)


def passed_back(rows: tuple[OneRow, ...]) -> tuple[OneRow, ...]:
    """The rows that a backward pass runs through."""
    return tuple(row for row in rows if row.differentiated)


ROUTING = ("router", "shared_gate")  # matrices whose gradients are autograd's own, whatever the engine


def with_gradients(rows: tuple[Row, ...]) -> tuple[Linear, ...]:
    """The linears for whose matrices an engine's kernels may write a gradient."""
    linears = (row for row in passed_back(rows) if isinstance(row, Linear))
    return tuple(row for row in linears if row.trained and row.name not in ROUTING)


def owned(rows: tuple[Row, ...], here: Sizes, speed: Rates, recipe: Recipe) -> Owned:
    """What the parameters of some rows cost by their shape."""
    still, rows = tuple(row for row in rows if not row.trained), tuple(row for row in rows if row.trained)
    linears = tuple(row for row in rows if isinstance(row, Linear))
    tables = tuple(row for row in rows if isinstance(row, Pointwise))
    others = tuple(row for row in rows if not isinstance(row, Linear | Pointwise))
    matrices = tuple(row for row in still if isinstance(row, Linear))
    return Owned(
        frozen_bytes=sum_frozen(still, matrices, here, recipe.frozen, recipe.frozen_rest),
        copies=recipe.copies * sum_matrices(linears, here) + recipe.frozen_copies * sum_matrices(matrices, here),
        moments=sum_moments(linears, tables, others, here, recipe.moments),
        orthogonalised=sum_orthogonalised(linears, here, recipe.steps, speed),
    )


def layer_costs(
    name: str,
    all_rows: tuple[Row, ...],
    here: Sizes,
    speed: Rates,
    cluster: Cluster,
    recipe: Recipe,
    recomputed: tuple[Checkpoint, ...] = (),
    by_block: bool = False,
    unread: tuple[Row, ...] = (),
) -> LayerCosts:
    """Every field is a sum over rows. `recomputed`: what runs again under selective recompute. `by_block`: the layer's
    gradients of weights are made whole, beside what it still keeps. `unread`: what full recompute does not run again.
    """
    work, moves = split_moves(all_rows)
    again, moved_again = split_moves(row for one in recomputed for row in (*one.work, *one.moves))
    back = passed_back(work)
    core = tuple(row for row in work if isinstance(row, Attention))
    dense, experts = (tuple(row for row in work if is_expert(row) is which) for which in (False, True))
    linears = tuple(row for row in back if isinstance(row, Linear) and row.trained)
    packed = tuple(row for row in work if isinstance(row, Quantised))
    wider = recipe.spares, recipe.output_again
    spared = sum_spared(linears, here, *wider)
    kept = sum_kept(back, here) - spared
    sent = {axis: _exchange(moves[axis], moved_again[axis], here, cluster) for axis in AXES}
    forward = layer_forward(work, sent["tp"].forward, here, speed)
    return LayerCosts(
        name=name,
        dense_parameters=sum_parameters(tuple(row for row in dense if row.trained), here),
        expert_parameters=sum_parameters(tuple(row for row in experts if row.trained), here),
        dense=owned(dense, here, speed, recipe),
        expert=owned(experts, here, speed, recipe),
        entry=entry_bytes(here),
        kept=kept,
        kept_selective=kept - sum_freed(recomputed, here, *wider),
        freed=largest_freed(recomputed, here, *wider),
        workspace=sum_workspace(work, here),
        backward=most_standing(back, here) - kept if by_block else sum_backward_workspace(back, here),
        dequantised=largest_dequantised(packed, here),
        differentiated=len(back) > 0,
        forward=forward,
        whole_again=forward - sum_forward(unread, here, speed) if unread else forward,
        modules_forward=again_forward(again, work, sent["tp"].forward, here, speed),
        input_gradient=layer_input_gradient(back, sent["tp"].backward, here, speed) if back else 0,
        weight_gradient=sum_weight_gradient(back, here, speed),
        context_forward=context_forward(moves["cp"], core, here, speed, cluster),
        context_backward=context_backward(passed_back(moves["cp"]), core, here, speed, cluster),
        context_again=context_forward(moved_again["cp"], core, here, speed, cluster),
        **sent,
    )


@dataclass(frozen=True)
class ModelCosts:
    """The costs of every kind of layer and of both ends, for one layout (or a grid of layouts)."""

    layers: tuple[LayerCosts, ...]  # in the order of `model.blocks`
    embedding: LayerCosts
    head: LayerCosts
    shapes: tuple[Shapes, ...] = ()  # of matrices for whose gradients an engine's kernels write a tensor


def inventory(model: Model, job: Job, kernels: KernelSet) -> dict[str, tuple[Row, ...]]:
    """The rows of every kind of layer, and of the two ends, with those of adapters."""
    found = {block.name: rows(model, block, kernels) for block in model.blocks}
    found |= {"embedding": embedding_rows(model, kernels), "head": head_rows(model, kernels)}
    if job.training.whole:
        return found
    stored = dequantised_of(job)
    return differentiated(
        {
            block.name: trained_rows(block, found[block.name], job.training, model.tied, stored)
            for block in (*model.blocks, *model.ends)
        }
    )


def model_costs(model: Model, job: Job, cluster: Cluster, layout: Layout, engine: Engine) -> ModelCosts:
    """Walk the rows of every kind once. The only call that does."""
    kernels, recipe = kernels_of(engine), recipe_of(job, engine, cluster.accelerator)
    speed = rates(cluster.accelerator, precision(job.precision), kernels, recipe)
    heres = [sizes(model, block, job, layout, engine, kernels) for block in (*model.blocks, *model.ends)]
    found = inventory(model, job, kernels)
    again = [*(checkpoints(found[block.name], layout.recompute_modules, kernels) for block in model.blocks), (), ()]
    walked = [
        layer_costs(
            name, them, here, speed, cluster, recipe, recomputed, engine.scatters_blocks and name not in ENDS,
            only_added(them) if engine.drops_unread else (),
        )
        for (name, them), here, recomputed in zip(found.items(), heres, again, strict=True)
    ]  # fmt: skip
    matrices = zip(map(with_gradients, found.values()), heres, strict=True) if engine.dummy_gradients else ()
    return ModelCosts(tuple(walked[:-2]), walked[-2], walked[-1], distinct_shapes(tuple(found), matrices))


# What no cost of one layer depends on: layouts that differ in these alone share them.
BEYOND_LAYERS: dict[str, Any] = dict.fromkeys(
    ("dp_replicate", "dp_shard", "zero", "gather_unit", "accumulate_whole", "vpp", "split", "recompute",
     "recompute_layers", "recompute_group", "overlap_tp", "overlap_ep", "overlap_dp", "offload_optimizer",
     "offload_parameters", "offload_activations"), AUTO
)  # fmt: skip
_walked = lru_cache(maxsize=64)(model_costs)


def costs_of(case: Case) -> ModelCosts:
    """The costs of one layout's layers, walked once for all that share them. A pipeline matters to them only where it
    parts the two ends of a model that share a table."""
    apart = bool(case.model.tied and case.layout.apart)
    at = replace(case.layout, **BEYOND_LAYERS, pp=2 if apart else 1, schedule="1f1b")
    return _walked(case.model, case.job, case.cluster, at, case.engine)


def unpadded(engine: Engine) -> Engine:
    """The same engine without vocabulary padding: what a model has by itself."""
    return replace(engine, vocab_multiple=1)
