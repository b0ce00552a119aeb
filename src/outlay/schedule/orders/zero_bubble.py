"""Zero bubble: the backward pass is split, and weight gradients fill what would idle. Source: Qi et al. 2023.

I is the input gradient, which the rank before waits for; W the weight gradient, which nobody waits for. A rank starts
its weight gradients late by a delay, so that all ranks hold as many micro-batches as the first.
"""

from collections.abc import Iterator

from ...errors import Fault
from ..passes import Pass, of_kind
from .facts import OrderFacts, Schedule, Shape
from .interleaved import group_faults, passes, rounds, rounds_faults


def row(forwards: list[Pass], backwards: list[Pass], w: int, delay: int) -> list[Pass]:
    """Warm-up of w forward passes; then F and I in turn, from the delay on with the oldest W; then the W that wait."""
    gradients, weights = of_kind("I", backwards), of_kind("W", backwards)
    done = forwards[:w]  # w F
    for i, gradient in enumerate(gradients):
        done += forwards[w + i : w + i + 1]  # delay [F I], [F I W] while F last, w [I W]
        done.append(gradient)
        if i >= delay:
            done.append(weights[i - delay])
    return done + weights[max(len(weights) - delay, 0) :]  # delay W


def h1_rank(r: int, shape: Shape) -> list[Pass]:
    """ZB-H1 (ZB1P): the memory of 1F1B. w = P - 1 - r, delay r."""
    w = min(shape.pp - 1 - r, shape.micro_batches)
    return row(*passes(r, shape, shape.micro_batches), w, r)


def h2_rank(r: int, shape: Shape) -> list[Pass]:
    """ZB-H2 (ZB2P): the warm-up of a second round fills the bubble. w = 2 (P - 1 - r), delay 2 r."""
    w = min(2 * (shape.pp - 1 - r), shape.micro_batches)
    return row(*passes(r, shape, shape.micro_batches), w, 2 * r)


def interleaved_rank(r: int, shape: Shape) -> list[Pass]:
    """ZB-H1 over v chunks: w = min((v - 1) N + P - 1 - r, M v), delay r. N is by PyTorch's rule unless given."""
    P, M, v, group = shape
    N = group or rounds(P, M)
    w = min((v - 1) * N + P - 1 - r, M * v)
    return row(*passes(r, shape, N), w, r)


def interleaved_faults(shape: Shape) -> Iterator[Fault]:
    """PyTorch's rule, or that of a group that is given."""
    yield from (group_faults if shape.group else rounds_faults)("interleaved_zb", shape)


ZB_H1 = Schedule(
    OrderFacts("zb_h1", "one", "loop", 1, "vpp 1; any number of micro-batches"),
    lambda shape: [h1_rank(r, shape) for r in range(shape.pp)],
)
ZB_H2 = Schedule(
    OrderFacts("zb_h2", "one", "loop", 1, "vpp 1; any number of micro-batches"),
    lambda shape: [h2_rank(r, shape) for r in range(shape.pp)],
)
INTERLEAVED_ZB = Schedule(
    OrderFacts("interleaved_zb", "any", "loop", 1, "a number of micro-batches that makes equal rounds of pp or more"),
    lambda shape: [interleaved_rank(r, shape) for r in range(shape.pp)],
    interleaved_faults,
    grouped=True,
)
