"""ZBV: zero bubble on a V of two chunks a rank, with the memory of 1F1B. Source: Qi et al. 2023.

Chunk 0 of rank r is stage r, chunk 1 is stage 2 P - 1 - r: the head stands on the rank of the embedding.
"""

from ..passes import Operation
from .facts import OrderFacts, Schedule, Shape
from .row import blocks


def rank(r: int, shape: Shape) -> list[Operation]:
    """The fixed order of the paper, made for 2 P - 1 micro-batches or more; with fewer, those that lack drop out."""
    P, M, _, _ = shape
    n = max(2 * P - 1, M)
    chunks = {"0": r, "1": 2 * P - 1 - r}
    parts = (
        ("F0", 2 * (P - r) - 1),
        ("F1 F0", r),
        ("F1 I1 W1", P - r),
        ("F0 I0 W0 F1 I1 W1", n - 2 * P + 1 + r),
        ("I0 W0 F1 I1 W1", P - 1 - r),
        ("I0 I1", r),
        ("I0 W0", P - r),
        ("W1", r),
        ("W0", r),
    )
    return [each for each in blocks(parts, chunks) if each.micro_batch < M]


ZBV = Schedule(
    OrderFacts("zbv", "two", "folded", 1, "vpp 2; any number of micro-batches"),
    lambda shape: [rank(r, shape) for r in range(shape.pp)],
)
