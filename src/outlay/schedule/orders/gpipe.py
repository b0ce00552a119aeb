"""GPipe and its looped form: all forward passes, then all backward passes.

Sources: Huang et al. 2019; Lamy-Poirier 2022.

Looped BFS ("breadth first") runs all micro-batches through one chunk before the next, so that the weights of a chunk
are gathered once each way. Its backward order is that of PyTorch: last micro-batch first.
"""

from ..passes import Pass
from .facts import OrderFacts, Schedule, Shape


def gpipe_rank(r: int, shape: Shape) -> list[Pass]:
    """F0 .. F(M-1), B0 .. B(M-1)."""
    M = shape.micro_batches
    return [Pass("F", r, m) for m in range(M)] + [Pass("B", r, m) for m in range(M)]


def looped_rank(r: int, shape: Shape) -> list[Pass]:
    """Chunk 0 .. v-1: F0 .. F(M-1). Chunk v-1 .. 0: B(M-1) .. B0. Chunk k of rank r is stage k P + r."""
    P, M, v, _ = shape
    forwards = [Pass("F", k * P + r, m) for k in range(v) for m in range(M)]
    backwards = [Pass("B", k * P + r, m) for k in reversed(range(v)) for m in reversed(range(M))]
    return forwards + backwards


GPIPE = Schedule(
    OrderFacts("gpipe", "one", "loop", 1, "vpp 1; any number of micro-batches"),
    lambda shape: [gpipe_rank(r, shape) for r in range(shape.pp)],
)
LOOPED_BFS = Schedule(
    OrderFacts("looped_bfs", "any", "loop", 1, "any vpp, any number of micro-batches"),
    lambda shape: [looped_rank(r, shape) for r in range(shape.pp)],
)
