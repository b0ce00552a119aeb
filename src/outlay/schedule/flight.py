"""What is in flight in a pipeline: passes whose activations a rank holds, and messages that nothing hides.

P stages (pp), v chunks a rank (vpp), M micro-batches.
"""

from ..formula import floor, maximum, minimum, where
from ..quantities import Count, Flag


def round_size_of(even: Flag, pp: Count, micro_batches: Count) -> Count:
    """Micro-batches N that an interleaved schedule takes through one chunk before the next.

    P, as Megatron-LM does; or M over as many equal rounds as hold P, as PyTorch does.
    """
    return where(even, micro_batches / maximum(1, floor(micro_batches / pp)), pp)


def hold_all(rank: Count, pp: Count, vpp: Count, micro_batches: Count, round_size: Count) -> Count:
    """GPipe: every micro-batch, M."""
    return micro_batches


def hold_staircase(rank: Count, pp: Count, vpp: Count, micro_batches: Count, round_size: Count) -> Count:
    """1F1B: rank r holds min(M, P - r). Source: Narayanan et al. 2021."""
    return minimum(micro_batches, pp - rank)


def hold_interleaved(rank: Count, pp: Count, vpp: Count, micro_batches: Count, round_size: Count) -> Count:
    """Interleaved 1F1B, in stages: min(M, [(v - 1) N + 2 (P - 1 - r) + 1] / v), groups of N.

    Source: Megatron-LM's warm-up rule.
    """
    return minimum(micro_batches, ((vpp - 1) * round_size + 2 * (pp - 1 - rank) + 1) / vpp)


def hold_pipeline(rank: Count, pp: Count, vpp: Count, micro_batches: Count, round_size: Count) -> Count:
    """ZB-H1 and ZBV: P on every rank, until the weight gradient is done."""
    return minimum(micro_batches, pp)


def hold_interleaved_zb(rank: Count, pp: Count, vpp: Count, micro_batches: Count, round_size: Count) -> Count:
    """Interleaved with split backward passes: P + (v - 1)(N - P)/v on every rank, groups of N. Simulated."""
    return minimum(micro_batches, pp + (vpp - 1) * (round_size - pp) / vpp)


def hold_twice(rank: Count, pp: Count, vpp: Count, micro_batches: Count, round_size: Count) -> Count:
    """ZB-H2: 2P - 1 on every rank."""
    return minimum(micro_batches, 2 * pp - 1)


def hold_dualpipe_v(rank: Count, pp: Count, vpp: Count, micro_batches: Count, round_size: Count) -> Count:
    """DualPipeV: 2P + 1 chunks, two of which make a stage."""
    return minimum(micro_batches, pp + 1 / 2)


def hold_one(rank: Count, pp: Count, vpp: Count, micro_batches: Count, round_size: Count) -> Count:
    """The head: its backward pass follows its forward pass at once."""
    return 1


def hops_ends(pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """Exposed one-way messages: fill and drain only, 2 (P - 1)."""
    return 2 * (pp - 1)


def hops_chunks(pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """Exposed one-way messages of interleaving: fill and drain over chunks, 2 (v P - 1) for P > 1."""
    return where(pp > 1, 2 * (vpp * pp - 1), 0)


def hops_every(pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """Exposed one-way messages of 1F1B, which has no slack: 2 (P - 1) M / P + 2 (P - 2). Exact where P divides M."""
    return 2 * (pp - 1) * micro_batches / pp + 2 * maximum(pp - 2, 0)


def hops_looped(pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """Exposed one-way messages of looped BFS: 2 (P - 1); over every chunk, 2 (v P - 1), where M is P. Simulated."""
    return where(micro_batches > pp, 2 * (pp - 1), hops_chunks(pp, vpp, micro_batches))


def hops_split(pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """Exposed one-way messages of ZB-H1 and its interleaved form: (v + 3) P - 4, two less where M is P. Simulated.

    Short messages only: the waiting weight gradients hide the others.
    """
    return where(pp > 1, (vpp + 3) * pp - 4 - where(micro_batches > pp, 0, 2), 0)


def hops_zbv(pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """Exposed one-way messages of ZBV: 6 P - 8; fewer where F = B = W. Simulated, short messages."""
    return where(pp > 1, 6 * pp - 8, 0)


def hops_pairs(pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """Exposed one-way messages of DualPipeV: 2 (P - 1) M / P + 4 P - 6, since a pair waits for both its messages.

    Exact where P divides M and B > F; fewer where F = B = W. Simulated, short messages.
    """
    return where(pp > 1, 2 * (pp - 1) * micro_batches / pp + 4 * pp - 6, 0)


def sends(pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """Messages that the busiest rank sends in one step: M v forward, as many backward, in the middle of a pipeline.

    Of two ranks each is an end, and sends one chunk's less; none where P is 1.
    """
    return where(pp > 1, (2 * vpp - where(pp > 2, 0, 1)) * micro_batches, 0)
