"""Seq1F1B: 1F1B over slices of the sequences, so that filling and draining take a k-th. Source: Sun et al. 2024.

Slices count as micro-batches here: `group` of them are one. Slices go forward in order; the gradient of keys and values
comes from later slices, so they go backward in reverse. Slices of equal time are of unequal length: under causal
attention a later token costs more.
"""

from collections.abc import Iterator

from ...errors import Fault
from ..passes import Pass
from .facts import OrderFacts, Schedule, Shape, micro_batch_fault
from .row import alternate

SLICES = 2  # of a micro-batch, unless said


def rank(r: int, shape: Shape) -> list[Pass]:
    """Warm-up of w = min(P - 2 - r + k, M k) forward passes, then F and B in turn, then the rest."""
    P, units, _, group = shape
    k = group or SLICES
    w = max(0, min(P - 2 - r + k, units))
    forwards = [Pass("F", r, u) for u in range(units)]
    backwards = [Pass("B", r, first + each) for first in range(0, units, k) for each in reversed(range(k))]
    # w F, (M k - w) [F B], w B
    return forwards[:w] + alternate(forwards[w:], backwards) + backwards[units - w :]


def faults(shape: Shape) -> Iterator[Fault]:
    """Whole micro-batches, and a slice for each rank."""
    k = shape.group or SLICES
    rule = f"slices of whole micro-batches, {k} each, and P of them or more"
    yield from micro_batch_fault("seq1f1b", shape, rule, lambda M: M % k == 0 and shape.pp <= M)


def slices_said(shape: Shape) -> str:
    """What a picture does not show."""
    k = shape.group or SLICES
    return f"a micro-batch is {k} slices of its sequences; slices are numbered here, and counted in flight"


SEQ1F1B = Schedule(
    OrderFacts(
        "seq1f1b", "one", "loop", 1, "vpp 1; at least pp slices",
        slices_said,
    ),
    lambda shape: [rank(r, shape) for r in range(shape.pp)],
    faults,
    grouped=True,
)  # fmt: skip
