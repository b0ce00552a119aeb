"""Chimera and GEMS: a model in each direction, so that what idles in one is filled by the other.

Sources: Li and Hoefler 2021 (Chimera, its plain form: a backward pass is as long as a forward pass in the order);
Jain et al. 2020 (GEMS). Rank r holds stage r of one copy and stage P - 1 - r of the other, numbered 2 P - 1 - r.
The first half of the micro-batches goes down the ranks, the second half up.
"""

from collections.abc import Iterator

from ...errors import Fault
from ..passes import Pass
from .facts import OrderFacts, Schedule, Shape, described, micro_batch_fault

TWICE = "the weights are held twice, and the two copies of a stage add up their gradients once a step"


def twice_said(shape: Shape) -> str:
    """What a picture does not show."""
    return TWICE


def chimera_rank(r: int, shape: Shape) -> list[Pass]:
    """Units of P micro-batches, half of them each way, in slots that never fall together where P is even.

    F of the m-th that goes a way is in slot s + 2 m, B in slot 2 P - 1 - s + 2 m; the next unit is 2 P slots later.
    """
    P, M, _, _ = shape
    placed = []
    for first, stage, place in ((0, r, r), (M // 2, 2 * P - 1 - r, P - 1 - r)):
        for m in range(M // 2):
            unit, each = divmod(m, P // 2)
            slot = 2 * P * unit + 2 * each
            placed += [(slot + place, "F", stage, first + m), (slot + 2 * P - 1 - place, "B", stage, first + m)]
    return [Pass("F" if kind == "F" else "B", stage, m) for _, kind, stage, m in sorted(placed)]


def gems_rank(r: int, shape: Shape) -> list[Pass]:
    """F and B of one micro-batch, then of one that goes the other way: one is alive at a time."""
    P, M, _, _ = shape
    found = []
    for turn in range(M):
        stage, m = (2 * P - 1 - r, (M + 1) // 2 + turn // 2) if turn % 2 else (r, turn // 2)
        found += [Pass("F", stage, m), Pass("B", stage, m)]
    return found


def chimera_faults(shape: Shape) -> Iterator[Fault]:
    """An even number of ranks, and whole units of as many micro-batches."""
    even = shape.pp + shape.pp % 2
    if shape.pp != even:
        what = "chimera cannot take this number of ranks"
        yield Fault("SCH005", what, "P is even: half of a unit goes each way", described(shape), f"--pp {even}")
    rule = "M is a multiple of P: units of P micro-batches"
    yield from micro_batch_fault("chimera", shape, rule, lambda M: M % even == 0)


def gems_faults(shape: Shape) -> Iterator[Fault]:
    """A micro-batch for each way."""
    yield from micro_batch_fault("gems", shape, "M >= 2: a micro-batch for each direction", lambda M: M >= 2)


CHIMERA = Schedule(
    OrderFacts("chimera", "one", "both", 2, "vpp 1, pp even, a number of micro-batches that pp divides", twice_said),
    lambda shape: [chimera_rank(r, shape) for r in range(shape.pp)],
    chimera_faults,
)
GEMS = Schedule(
    OrderFacts("gems", "one", "both", 2, "vpp 1, 2 micro-batches or more", twice_said),
    lambda shape: [gems_rank(r, shape) for r in range(shape.pp)],
    gems_faults,
)
