"""DualPipe and DualPipeV: forward and backward passes of different micro-batches run together, to hide their messages.

Source: DeepSeek-AI 2024, and its published code. DualPipeV is one half of it, cut where it mirrors itself.
DualPipe runs a model in each direction: rank r holds stage r of one copy and stage P - 1 - r of the other, which is
numbered 2 P - 1 - r here. The first half of the micro-batches goes down the ranks, the second half up.
"""

from collections.abc import Iterator

from ...errors import Fault
from ..passes import Operation
from .facts import OrderFacts, Schedule, Shape, described, micro_batch_fault
from .row import Row


def half(row: Row, r: int, P: int, M: int, s0: int, s1: int) -> list[Operation]:
    """What rank r of a V of P ranks does with M micro-batches: eight steps. `&` runs together, B is I and W at once."""
    # Step 1, 2 (P - 1 - r): F0
    for _ in range(2 * (P - 1 - r)):
        row.forward(s0)
    # Step 2, r + 1: F0 F1
    for _ in range(r + 1):
        row.forward(s0)
        row.forward(s1)
    # Step 3, P - 1 - r: I1 W1 F1
    for _ in range(P - 1 - r):
        row.input_gradient(s1)
        row.weight_gradient()
        row.forward(s1)
    # Step 4, M - 2 P + r + 1: F0&B1 F1&B0; at the turn of the V the first F0 and B1 run one after the other
    for i in range(M - 2 * P + r + 1):
        if i == 0 and r == P - 1:
            row.forward(s0)
            row.backward(s1)
        else:
            row.pair(s0, s1)
        row.pair(s1, s0)
    # Step 5, P - 1 - r: B1 F1&B0
    for _ in range(P - 1 - r):
        row.backward(s1)
        row.pair(s1, s0)
    # Step 6, r + 1: B1 B0; the second half, in passes, is I1 I0, and its W wait
    for i in range(2 * (r + 1)):
        (row.backward if i < r + 1 else row.input_gradient)(s0 if i % 2 else s1)
    # Step 7, P - 1 - r: W I0
    for _ in range(P - 1 - r):
        row.weight_gradient()
        row.input_gradient(s0)
    # Step 8, r + 1: W
    for _ in range(r + 1):
        row.weight_gradient()
    return row.operations


def v_rank(r: int, shape: Shape) -> list[Operation]:
    """DualPipeV: chunk 0 is stage r, chunk 1 is stage 2 P - 1 - r."""
    P, M, _, _ = shape
    return half(Row(), r, P, M, r, 2 * P - 1 - r)


def both_rank(r: int, shape: Shape) -> list[Operation]:
    """DualPipe: the steps of a V of P / 2 ranks for each direction, its own as chunk 0, the opposite one as chunk 1."""
    P, M, _, _ = shape
    down, up = r, 2 * P - 1 - r
    own, opposite = (down, up) if r < P // 2 else (up, down)
    return half(Row({up: M // 2}), min(r, P - 1 - r), P // 2, M // 2, own, opposite)


def v_faults(shape: Shape) -> Iterator[Fault]:
    """Twice as many micro-batches as ranks."""
    rule = "M >= 2 P: a micro-batch for each stage"
    yield from micro_batch_fault("dualpipe_v", shape, rule, lambda M: 2 * shape.pp <= M)


def both_faults(shape: Shape) -> Iterator[Fault]:
    """Halves that mirror each other. The micro-batches that an odd number of ranks lacks are those of the next even."""
    even = shape.pp + shape.pp % 2
    if shape.pp != even:
        rule = "P is even: two halves that mirror each other"
        what = "dualpipe cannot take this number of ranks"
        yield Fault("SCH005", what, rule, described(shape), f"--pp {even}")
    rule = "M is even and M >= 2 P: half of the micro-batches in each direction"
    yield from micro_batch_fault("dualpipe", shape, rule, lambda M: M % 2 == 0 and 2 * even <= M)


DUALPIPE = Schedule(
    OrderFacts("dualpipe", "one", "both", 2, "vpp 1, pp even, an even number of micro-batches, at least 2 pp"),
    lambda shape: [both_rank(r, shape) for r in range(shape.pp)],
    both_faults,
)
DUALPIPE_V = Schedule(
    OrderFacts("dualpipe_v", "two", "folded", 1, "vpp 2, and at least 2 pp micro-batches"),
    lambda shape: [v_rank(r, shape) for r in range(shape.pp)],
    v_faults,
)
