"""Sums over the rows of a layer: what they own, keep, move and take on one rank."""

from collections.abc import Iterable

from .cluster.accelerator import Cluster
from .cluster.efficiency import Rates
from .engines.recipe import Moments
from .formula import each, maximum, total
from .model.modules import Checkpoint
from .model.moves import Move
from .model.operations import Linear, Pointwise, Row, Sizes
from .model.policies import Saved
from .model.quantised import Quantised
from .model.weights import (
    inner_values,
    input_spared,
    linear_moments,
    orthogonalised,
    pointwise_moments,
    vector_moments,
)
from .quantities import Bytes, Count, Flops, Params, Seconds

AXES = ("tp", "cp", "ep", "etp")


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


def sum_parameters(rows: tuple[Row, ...], here: Sizes) -> Params:
    """Parameters of some rows on one rank."""
    return total(each(Row.parameters, rows, here))


def sum_frozen(rows: tuple[Row, ...], linears: tuple[Linear, ...], here: Sizes, matrix: Bytes, rest: Bytes) -> Bytes:
    """Bytes of frozen weights: matrices inside layers in their format, all else in the type of the run's weights."""
    matrices: Params = sum_matrices(linears, here)
    return matrix * matrices + rest * (sum_parameters(rows, here) - matrices)


def largest_dequantised(packed: tuple[Quantised, ...], here: Sizes) -> Bytes:
    """The largest frozen matrix of a layer that is dequantised before each use."""
    return maximum(each(Quantised.one_dequantised, packed, here), none=0)


def sum_matrices(linears: tuple[Linear, ...], here: Sizes) -> Params:
    """Parameters of the matrices inside a layer."""
    return total(each(inner_values, linears, here))


def sum_orthogonalised(linears: tuple[Linear, ...], here: Sizes, steps: Count, speed: Rates) -> Seconds:
    """Time in which the optimizer orthogonalises the matrices inside a layer, whole."""
    return total(each(orthogonalised, linears, here, steps, speed))


def sum_moments(
    linears: tuple[Linear, ...], tables: tuple[Pointwise, ...], others: tuple[Row, ...], here: Sizes, moments: Moments
) -> Bytes:
    """The optimizer's moments of some rows."""
    return total(
        linears=total(each(linear_moments, linears, here, moments)),
        tables=total(each(pointwise_moments, tables, here, moments)),
        others=total(each(vector_moments, others, here, moments)),
    )


def sum_spared(linears: tuple[Linear, ...], here: Sizes, spares: Bytes, again: Bytes) -> Bytes:
    """Bytes that quantised inputs wait with less than in 16 bit."""
    return total(each(input_spared, linears, here, spares, again))


def sum_backward_workspace(rows: tuple[Row, ...], here: Sizes) -> Bytes:
    """Bytes of gradients of values that stand at one time in the backward pass of a layer, beyond what is kept."""
    return total(each(Row.backward_workspace, rows, here))


def sum_kept(rows: tuple[Row, ...], here: Sizes) -> Bytes:
    """The tape: bytes of some rows that wait for the backward pass."""
    return total(each(Row.kept, rows, here))


def freed_bytes(one: Checkpoint, here: Sizes, spares: Bytes, again: Bytes) -> Bytes:
    """What a checkpoint frees of the tape: what lies inside its rows, and what nobody reads but rows that run again.

    It stands once more while the backward pass runs through it.
    """
    inside: Bytes = total(each(Row.kept_inside, one.inside, here))
    read: Bytes = total(each(Row.kept_input, one.reads, here))
    saved: Bytes = sum_spared(one.linears, here, spares, again) + total(each(Saved.bytes, one.saved, here))
    return total(inside=inside, read=read) - saved


def sum_freed(found: tuple[Checkpoint, ...], here: Sizes, spares: Bytes, again: Bytes) -> Bytes:
    """What the checkpoints of a layer free of its tape."""
    return total(each(freed_bytes, found, here, spares, again))


def largest_freed(found: tuple[Checkpoint, ...], here: Sizes, spares: Bytes, again: Bytes) -> Bytes:
    """What the largest of them frees: one at a time runs again."""
    return maximum(each(freed_bytes, found, here, spares, again), none=0)


def sum_workspace(rows: tuple[Row, ...], here: Sizes) -> Bytes:
    """Bytes held for a moment beyond the tape."""
    return total(each(Row.workspace, rows, here))


def sum_flops(rows: tuple[Row, ...], here: Sizes) -> Flops:
    """Model FLOPs of the forward pass."""
    return total(each(Row.flops, rows, here))


def sum_flops_back(rows: tuple[Row, ...], here: Sizes) -> Flops:
    """Model FLOPs of the backward pass."""
    return total(each(Row.flops_back, rows, here))


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
