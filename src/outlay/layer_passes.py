"""What the passes through one layer take: its kernels, exchange that shows, and no less than its host."""

from .cluster.accelerator import Cluster
from .cluster.efficiency import Rates
from .formula import maximum, where
from .model.moves import Move
from .model.operations import Row, Sizes
from .model.parts.experts import ROUTED
from .quantities import Seconds
from .sums import sum_forward, sum_input_gradient, sum_time_backward, sum_time_forward, sum_weight_gradient


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


def layer_forward(rows: tuple[Row, ...], tensor: Seconds, here: Sizes, speed: Rates) -> Seconds:
    """Forward pass of one layer: its kernels and waits; or what the host takes, if that is more than those and the
    tensor-parallel exchange between them."""
    kernels: Seconds = sum_forward(rows, here, speed) + here["router_wait"]
    return maximum(kernels=kernels, host=here["host_floor"] - tensor)


def again_forward(again: tuple[Row, ...], work: tuple[Row, ...], tensor: Seconds, here: Sizes, speed: Rates) -> Seconds:
    """Forward pass of the rows that run again; with the router among them, all that the host takes comes again."""
    host: Seconds = layer_forward(work, tensor, here, speed) - sum_forward(work, here, speed)
    return sum_forward(again, here, speed) + where(routes(again), host, 0)


def routes(rows: tuple[Row, ...]) -> bool:
    """Whether the router is among some rows."""
    return any(row.name == ROUTED for row in rows)


def layer_input_gradient(rows: tuple[Row, ...], tensor: Seconds, here: Sizes, speed: Rates) -> Seconds:
    """Gradients of the inputs of one layer; or what the host takes, less the weights' gradients and the exchange."""
    kernels: Seconds = sum_input_gradient(rows, here, speed) + here["router_wait"]
    return maximum(kernels=kernels, host=here["host_floor_back"] - sum_weight_gradient(rows, here, speed) - tensor)
