"""1F1B: once the first micro-batch is back, a backward pass for each forward pass. Source: Narayanan et al. 2021."""

from ..passes import Pass
from .facts import OrderFacts, Schedule, Shape
from .row import alternate


def rank(r: int, shape: Shape) -> list[Pass]:
    """Warm-up of w = min(P - 1 - r, M) forward passes, then F and B in turn, then the w last backward passes."""
    P, M, _, _ = shape
    w = min(P - 1 - r, M)
    forwards = [Pass("F", r, m) for m in range(M)]
    backwards = [Pass("B", r, m) for m in range(M)]
    # w F, (M - w) [F B], w B
    return forwards[:w] + alternate(forwards[w:], backwards) + backwards[M - w :]


ONE_F_ONE_B = Schedule(
    OrderFacts("1f1b", "one", "loop", 1, "vpp 1; any number of micro-batches"),
    lambda shape: [rank(r, shape) for r in range(shape.pp)],
)
