"""ZBV: zero bubble on a V of two chunks a rank, with the memory of 1F1B. Source: Qi et al. 2023.

Chunk 0 of rank r is stage r, chunk 1 is stage 2 P - 1 - r: the head stands on the rank of the embedding.
"""

from ..passes import Operation, Pass
from .facts import OrderFacts, Schedule, Shape
from .row import Row


def rank(r: int, shape: Shape) -> list[Operation]:
    """The fixed order of the paper, made for 2 P - 1 micro-batches or more; with fewer, those that lack drop out."""
    P, M, _, _ = shape
    n = max(2 * P - 1, M)
    s0, s1 = r, 2 * P - 1 - r
    row = Row()

    # 2 (P - r) - 1: F0
    for _ in range(2 * (P - r) - 1):
        row.forward(s0)
    # r: F1 F0
    for _ in range(r):
        row.forward(s1)
        row.forward(s0)
    # P - r: F1 I1 W1
    for _ in range(P - r):
        _whole(row, s1, forward=True)
    # n - 2 P + 1 + r: F0 I0 W0 F1 I1 W1; then P - 1 - r without F0
    for i in range(n - P):
        _whole(row, s0, forward=i < n - 2 * P + 1 + r)
        _whole(row, s1, forward=True)
    # r: I0 I1
    for _ in range(r):
        row.input_gradient(s0)
        row.input_gradient(s1)
    # P - r: I0 W0
    for _ in range(P - r):
        row.input_gradient(s0)
        row.weight_gradient(s0)
    # r: W1; r: W0
    for stage in (s1,) * r + (s0,) * r:
        row.weight_gradient(stage)
    return [each for each in row.operations if isinstance(each, Pass) and each.micro_batch < M]


def _whole(row: Row, stage: int, forward: bool) -> None:
    """F I W of one stage, or I W."""
    if forward:
        row.forward(stage)
    row.input_gradient(stage)
    row.weight_gradient(stage)


ZBV = Schedule(
    OrderFacts("zbv", "two", "folded", 1, "vpp 2; any number of micro-batches"),
    lambda shape: [rank(r, shape) for r in range(shape.pp)],
)
