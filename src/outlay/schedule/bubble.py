"""How long a pipeline idles: share and time, and by schedule what the other stages' work is divided by.

P stages (pp), v chunks a rank (vpp), M micro-batches. Equal stages and free sends unless stated.
"""

from ..formula import divide, maximum, where
from ..quantities import Count, Seconds, Share


def bubble_share(pp: Count, micro_batches: Count) -> Share:
    """Share of all accelerator-time that idles while the pipeline fills and drains: (P - 1) / (M + P - 1).

    Exact for GPipe and 1F1B with equal stages. Source: the staircase; Huang et al. 2019.
    """
    return (pp - 1) / (micro_batches + pp - 1)


def interleaved_share(pp: Count, vpp: Count, micro_batches: Count) -> Share:
    """The same with v chunks a rank: (P - 1) / (v M + P - 1).

    Exact where M is a multiple of P, equal chunks. Source: Narayanan et al. 2021, section 2.2.
    """
    return (pp - 1) / (vpp * micro_batches + pp - 1)


def useful_slots(pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """Slots that work: M v P; a slot is one forward and one backward pass of one chunk."""
    return micro_batches * vpp * pp


def held_slots(pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """Slots that are held: P ranks for v M + P - 1 slots each."""
    return pp * (vpp * micro_batches + pp - 1)


def schedule_slots(pp: Count, vpp: Count, micro_batches: Count, parts: Count) -> Count:
    """Slots that are held by any schedule here: P ranks for v M + (P - 1) v/k slots each; not whole where k is not."""
    return pp * (vpp * micro_batches + (pp - 1) * (vpp / parts))


def schedule_share(pp: Count, parts: Count, micro_batches: Count) -> Share:
    """Idle share of any schedule here: (P - 1) / (k M + P - 1), where filling and draining idle for 1/k of a pass.

    k is 1 for GPipe and 1F1B, v for interleaving; where weight gradients fill the bubble it follows from F, B and W.
    """
    return (pp - 1) / (parts * micro_batches + pp - 1)


def fill_and_drain(whole: Seconds, slowest: Seconds, parts: Count) -> Seconds:
    """Idle time of the slowest stage while the pipeline fills and drains: the other stages' work, over k.

    Equal stages give (P - 1)(F + B + W)/k. Exact for one heavy last stage under GPipe, 1F1B and interleaving, whose k
    is 1 or v; else a bound.
    """
    return (whole - slowest) / parts


def one_part(forward: Seconds, inputs: Seconds, weights: Seconds, pp: Count, vpp: Count) -> Count:
    """GPipe and 1F1B: all of the other stages' work idles."""
    return 1


def parts_of_chunks(forward: Seconds, inputs: Seconds, weights: Seconds, pp: Count, vpp: Count) -> Count:
    """Interleaving: a chunk's pass is a v-th of the stage's."""
    return vpp


def parts_zb_h1(forward: Seconds, inputs: Seconds, weights: Seconds, pp: Count, vpp: Count) -> Count:
    """ZB-H1 idles (P - 1) max(F + B - W, B, F). Exact for equal stages and M >= P. Source: the order, simulated.

    The paper's (P - 1)(F + B - W) holds where W <= F. Qi et al. 2023.
    """
    return (forward + inputs + weights) / maximum(forward + inputs - weights, inputs, forward)


def parts_zb_h2(forward: Seconds, inputs: Seconds, weights: Seconds, pp: Count, vpp: Count) -> Count:
    """ZB-H2 idles (P - 1) max(F + B - 2W, B - F, F), of the makespan. Exact for equal stages and M >= 2P - 1.

    The paper's form is of the span. Qi et al. 2023.
    """
    return (forward + inputs + weights) / maximum(forward + inputs - 2 * weights, inputs - forward, forward)


def parts_interleaved_zb(forward: Seconds, inputs: Seconds, weights: Seconds, pp: Count, vpp: Count) -> Count:
    """Interleaving with split backward passes idles (P - 1)(F + B - W)/v where W <= F and W <= B; else at most whole.

    Exact in that region for equal chunks; elsewhere the bubble of interleaving, as a bound.
    """
    work: Seconds = forward + inputs + weights
    idle: Seconds = where((weights <= forward) & (weights <= inputs), work - 2 * weights, work)
    return vpp * work / idle


def parts_zbv(forward: Seconds, inputs: Seconds, weights: Seconds, pp: Count, vpp: Count) -> Count:
    """ZBV idles (P - 1) max(B - W, B/2) where B >= F >= W and M >= 2P - 1; elsewhere half of 1F1B's, as a bound."""
    work: Seconds = forward + inputs + weights
    idle: Seconds = maximum(inputs - weights, inputs / 2)
    return work / where((inputs >= forward) & (forward >= weights), idle, work / 2)


def parts_dualpipe_v(forward: Seconds, inputs: Seconds, weights: Seconds, pp: Count, vpp: Count) -> Count:
    """DualPipeV idles max{(P-1)(2f + b - w), (P-1)(f + 2b - w) - f} in chunk times, if a pair gains nothing.

    Exact on the last rank for b >= f >= w and M >= 2P; elsewhere half of 1F1B's at least, as a bound.
    """
    work: Seconds = forward + inputs + weights
    last_pairs: Seconds = forward + 2 * inputs - weights - divide(forward, pp - 1)
    idle: Seconds = maximum(2 * forward + inputs - weights, last_pairs)
    bound: Seconds = where((inputs >= forward) & (forward >= weights), 0, work)
    return 2 * work / maximum(idle, bound)
