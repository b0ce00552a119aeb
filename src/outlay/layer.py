"""What one layer of a kind keeps, moves and takes on one rank: sums over its rows, in one frozen record.

The seam between the inventory and everything after it: memory and step read only this. It depends on tp, cp, ep, etp,
the micro-batch and sp alone, so a search computes it once for each distinct combination.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from .cluster.accelerator import Cluster
from .cluster.efficiency import Rates, rates
from .engines.engine import Engine, KernelSet
from .engines.tables import kernel_set
from .formula import each, maximum, total
from .job import Job
from .layout.axes import Layout
from .layout.sizes import sizes
from .model.blocks import embedding_rows, head_rows, rows
from .model.model import Model
from .model.operations import Attention, Linear, Move, Row, Sizes
from .quantities import Bytes, Flops, Params, Seconds

AXES = ("tp", "cp", "ep", "etp")


@dataclass(frozen=True)
class Exchange:
    """Collectives of one axis in one layer and micro-batch, on one rank."""

    forward: Seconds
    backward: Seconds
    sent_forward: Bytes
    sent_backward: Bytes


@dataclass(frozen=True)
class LayerCosts:
    """One layer (or one end of the model), one micro-batch, one rank."""

    name: str
    dense_parameters: Params
    expert_parameters: Params
    entry: Bytes  # the layer's input, all that full recompute keeps
    kept: Bytes  # the tape
    kept_selective: Bytes  # the tape where the attention core is recomputed
    workspace: Bytes  # held for a moment beyond the tape: the loss
    forward: Seconds
    core_forward: Seconds  # the part that selective recompute runs again
    input_gradient: Seconds
    weight_gradient: Seconds
    context_forward: Seconds  # context-parallel exchange that shows, forward
    context_backward: Seconds
    tp: Exchange
    cp: Exchange
    ep: Exchange
    etp: Exchange

    def on(self, axis: str) -> Exchange:
        """The collectives of one axis."""
        found: Exchange = getattr(self, axis)
        return found


def sum_parameters(rows: tuple[Row, ...], here: Sizes) -> Params:
    """Parameters of some rows on one rank."""
    return total(each(Row.parameters, rows, here))


def sum_kept(rows: tuple[Row, ...], here: Sizes) -> Bytes:
    """The tape: bytes of some rows that wait for the backward pass."""
    return total(each(Row.kept, rows, here))


def sum_kept_selective(rows: tuple[Row, ...], here: Sizes) -> Bytes:
    """The tape where the attention core is recomputed."""
    return total(each(Row.kept_selective, rows, here))


def sum_workspace(rows: tuple[Row, ...], here: Sizes) -> Bytes:
    """Bytes held for a moment beyond the tape."""
    return total(each(Row.workspace, rows, here))


def sum_flops(rows: tuple[Row, ...], here: Sizes) -> Flops:
    """Model FLOPs of the forward pass."""
    return total(each(Row.flops, rows, here))


def sum_forward(rows: tuple[Row, ...], here: Sizes, speed: Rates) -> Seconds:
    """Kernel time of the forward pass."""
    return total(each(Row.forward, rows, here, speed))


def sum_input_gradient(rows: tuple[Row, ...], here: Sizes, speed: Rates) -> Seconds:
    """Kernel time of the input gradients."""
    return total(each(Row.input_gradient, rows, here, speed))


def sum_weight_gradient(rows: tuple[Row, ...], here: Sizes, speed: Rates) -> Seconds:
    """Kernel time of the weight gradients."""
    return total(each(Row.weight_gradient, rows, here, speed))


def sum_time_forward(moves: tuple[Move, ...], here: Sizes, cluster: Cluster) -> Seconds:
    """Time of an axis's collectives in the forward pass."""
    return total(each(Move.time_forward, moves, here, cluster))


def sum_time_backward(moves: tuple[Move, ...], here: Sizes, cluster: Cluster) -> Seconds:
    """Time of an axis's collectives in the backward pass."""
    return total(each(Move.time_backward, moves, here, cluster))


def sum_sent_forward(moves: tuple[Move, ...], here: Sizes) -> Bytes:
    """Bytes that one rank sends on an axis in the forward pass."""
    return total(each(Move.sent_forward, moves, here))


def sum_sent_backward(moves: tuple[Move, ...], here: Sizes) -> Bytes:
    """Bytes that one rank sends on an axis in the backward pass."""
    return total(each(Move.sent_backward, moves, here))


def context_forward(
    moves: tuple[Move, ...], core: tuple[Row, ...], here: Sizes, speed: Rates, cluster: Cluster
) -> Seconds:
    """Exposed context-parallel exchange, forward: a ring hides behind the attention core, the other kinds do not."""
    hidden: Seconds = here["hides"] * sum_forward(core, here, speed)
    return maximum(sum_time_forward(moves, here, cluster) - hidden, 0)


def context_backward(
    moves: tuple[Move, ...], core: tuple[Row, ...], here: Sizes, speed: Rates, cluster: Cluster
) -> Seconds:
    """Exposed context-parallel exchange, backward: the core's own backward pass hides a ring."""
    hidden: Seconds = here["hides"] * sum_input_gradient(core, here, speed)
    return maximum(sum_time_backward(moves, here, cluster) - hidden, 0)


def entry_bytes(here: Sizes) -> Bytes:
    """The input of one layer: the hidden vectors of a micro-batch's tokens on this rank."""
    return here["value"] * here["S"] * here["hidden"]


def _exchange(moves: tuple[Move, ...], here: Sizes, cluster: Cluster) -> Exchange:
    return Exchange(
        forward=sum_time_forward(moves, here, cluster),
        backward=sum_time_backward(moves, here, cluster),
        sent_forward=sum_sent_forward(moves, here),
        sent_backward=sum_sent_backward(moves, here),
    )


def is_expert(row: Row) -> bool:
    """Whether a row's weights belong to the experts, which have data-parallel groups of their own."""
    return isinstance(row, Linear) and row.copies == "E"


def split_moves(all_rows: Iterable[Row]) -> tuple[tuple[Row, ...], dict[str, tuple[Move, ...]]]:
    """The kernels among some rows, and the collectives of each axis."""
    kept = tuple(all_rows)
    moves = tuple(row for row in kept if isinstance(row, Move))
    return (
        tuple(row for row in kept if not isinstance(row, Move)),
        {axis: tuple(move for move in moves if move.axis == axis) for axis in AXES},
    )


def layer_costs(name: str, all_rows: tuple[Row, ...], here: Sizes, speed: Rates, cluster: Cluster) -> LayerCosts:
    """Every field is a sum over rows."""
    work, moves = split_moves(all_rows)
    core = tuple(row for row in work if isinstance(row, Attention))
    return LayerCosts(
        name=name,
        dense_parameters=sum_parameters(tuple(row for row in work if not is_expert(row)), here),
        expert_parameters=sum_parameters(tuple(row for row in work if is_expert(row)), here),
        entry=entry_bytes(here),
        kept=sum_kept(work, here),
        kept_selective=sum_kept_selective(work, here),
        workspace=sum_workspace(work, here),
        forward=sum_forward(work, here, speed),
        core_forward=sum_forward(core, here, speed),
        input_gradient=sum_input_gradient(work, here, speed),
        weight_gradient=sum_weight_gradient(work, here, speed),
        context_forward=context_forward(moves["cp"], core, here, speed, cluster),
        context_backward=context_backward(moves["cp"], core, here, speed, cluster),
        **{axis: _exchange(moves[axis], here, cluster) for axis in AXES},
    )


@dataclass(frozen=True)
class ModelCosts:
    """The costs of every kind of layer and of both ends, for one layout (or a grid of layouts)."""

    layers: tuple[LayerCosts, ...]  # in the order of `model.blocks`
    embedding: LayerCosts
    head: LayerCosts


def inventory(model: Model, kernels: KernelSet) -> dict[str, tuple[Row, ...]]:
    """The rows of every kind of layer, and of the two ends."""
    kinds = {block.name: rows(model, block, kernels) for block in model.blocks}
    return kinds | {"embedding": embedding_rows(model, kernels), "head": head_rows(model, kernels)}


def model_costs(model: Model, job: Job, cluster: Cluster, layout: Layout, engine: Engine) -> ModelCosts:
    """Walk the rows of every kind once. The only call that does."""
    kernels = kernel_set(engine.kernels)
    speed = rates(cluster.accelerator, job.precision, kernels.attention_share, kernels.elementwise)
    heres = [sizes(model, block, job, layout, engine, kernels) for block in model.blocks]
    walked = [
        layer_costs(name, them, here, speed, cluster)
        for (name, them), here in zip(inventory(model, kernels).items(), [*heres, heres[0], heres[-1]], strict=True)
    ]
    return ModelCosts(tuple(walked[:-2]), walked[-2], walked[-1])


def unpadded(engine: Engine) -> Engine:
    """The same engine without vocabulary padding: what a model has by itself."""
    return replace(engine, vocab_multiple=1)
