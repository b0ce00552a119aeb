"""What is stated of the schedules that no engine runs: idle time and passes held, in closed form, and where that holds.

P ranks (pp), M micro-batches, k slices a micro-batch; F, B, W are a rank's share, X = B + W. Equal stages, free sends.
Idle time is a rank's, of the makespan beyond M (F + X). Each was held against its order run pass by pass.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ..formula import floor, minimum, where
from ..quantities import Count, Flag, Seconds

# --- idle time ------------------------------------------------------------------------------------------------------


def idle_v_half(forward: Seconds, inputs: Seconds, weights: Seconds, pp: Count, micro_batches: Count) -> Seconds:
    """V-Half: (3P - 7)(F + X)/6 where P is even, (3P - 4)(F + X)/6 where it is odd, (F + X)/6 for 2 ranks.

    Exact for F = B = W and M >= 2P. Half of 1F1B's, as Qi et al. 2024 say, is what it tends to.
    """
    slots: Count = where(pp % 2 == 0, where(pp > 2, 3 * pp - 7, 1), 3 * pp - 4)
    return where(pp > 1, slots, 0) * (forward + inputs + weights) / 6


def idle_v_min(forward: Seconds, inputs: Seconds, weights: Seconds, pp: Count, micro_batches: Count) -> Seconds:
    """V-Min: (4P - 7)(F + X)/6 where 3 divides P, else (4P - 5)(F + X)/6.

    Exact for F = B = W and M >= 2P; elsewhere it can idle more than 1F1B. Qi et al. 2024 say two thirds of
    1F1B's: what it tends to.
    """
    slots: Count = where(pp % 3 == 0, 4 * pp - 7, 4 * pp - 5)
    return where(pp > 1, slots, 0) * (forward + inputs + weights) / 6


def idle_chimera(forward: Seconds, inputs: Seconds, weights: Seconds, pp: Count, micro_batches: Count) -> Seconds:
    """Chimera: (P - 2)[X + (M/P - 1)(X - F)]: units of P micro-batches do not fit into each other unless X is F.

    Exact for X >= F. The published (P - 2)/(2M + P - 2) is that of X = F alone. Li and Hoefler 2021.
    """
    backward: Seconds = inputs + weights
    return (pp - 2) * (backward + (micro_batches / pp - 1) * (backward - forward))


def idle_gems(forward: Seconds, inputs: Seconds, weights: Seconds, pp: Count, micro_batches: Count) -> Seconds:
    """GEMS: a micro-batch takes P X + F, and the first P - 1 more F. Exact for X >= F. Jain et al. 2020."""
    backward: Seconds = inputs + weights
    return micro_batches * (pp - 1) * backward + (pp - 1) * forward


def idle_once(forward: Seconds, inputs: Seconds, weights: Seconds, pp: Count, micro_batches: Count) -> Seconds:
    """As 1F1B: (P - 1)(F + X), for any M. A slice counts as a micro-batch, F and X being its own."""
    return (pp - 1) * (forward + inputs + weights)


# --- passes held ----------------------------------------------------------------------------------------------------


def held_v_half(rank: Count, pp: Count, micro_batches: Count, slices: Count) -> Count:
    """V-Half: floor((P + 2)/2) at the most, from M = 2P on."""
    return floor((pp + 2) / 2)


def held_v_min(rank: Count, pp: Count, micro_batches: Count, slices: Count) -> Count:
    """V-Min: floor((P + 4)/3) at the most."""
    return floor((pp + 4) / 3)


def held_1f1b_v(rank: Count, pp: Count, micro_batches: Count, slices: Count) -> Count:
    """1F1B-V: floor(2P/3) + 1 at the most."""
    return floor(2 * pp / 3) + 1


def held_chimera(rank: Count, pp: Count, micro_batches: Count, slices: Count) -> Count:
    """Chimera: P/2 + 1 at the ends, one more for each rank inwards, P in the middle."""
    return pp / 2 + 1 + minimum(rank, pp - 1 - rank)


def held_one(rank: Count, pp: Count, micro_batches: Count, slices: Count) -> Count:
    """GEMS: one."""
    return 1


def held_slices(rank: Count, pp: Count, micro_batches: Count, slices: Count) -> Count:
    """Seq1F1B, in slices: min(M, P - 1 - r + k), M counting slices. Keys and values of earlier slices stay beside."""
    return minimum(micro_batches, pp - 1 - rank + slices)


def held_staircase(rank: Count, pp: Count, micro_batches: Count, slices: Count) -> Count:
    """As 1F1B: min(M, P - r); BPipe before its ranks share."""
    return minimum(micro_batches, pp - rank)


# --- where they hold ------------------------------------------------------------------------------------------------


def _alike(forward: float, inputs: float, weights: float, pp: int, micro_batches: int) -> Flag:
    return forward == inputs == weights and micro_batches >= 2 * pp


def _longer_backward(forward: float, inputs: float, weights: float, pp: int, micro_batches: int) -> Flag:
    return inputs + weights >= forward


def _everywhere(forward: float, inputs: float, weights: float, pp: int, micro_batches: int) -> Flag:
    return True


@dataclass(frozen=True)
class Stated:
    """One schedule: its closed forms, and where they hold. `most` where the peak is that of the fullest rank alone."""

    name: str
    idle: Callable[..., Seconds] | None  # (forward, inputs, weights, pp, micro-batches)
    held: Callable[..., Count] | None  # (rank, pp, micro-batches, slices)
    holds: Callable[..., Flag]  # as `idle`
    where: str  # the same in words
    most: bool = False


_ALIKE = "F = B = W and M >= 2 P"
_TABLE = (
    Stated("v_half", idle_v_half, held_v_half, _alike, _ALIKE, most=True),
    Stated("v_min", idle_v_min, held_v_min, _alike, _ALIKE, most=True),
    Stated("1f1b_v", None, held_1f1b_v, _everywhere, "only simulated", most=True),
    Stated("chimera", idle_chimera, held_chimera, _longer_backward, "B + W >= F"),
    Stated("gems", idle_gems, held_one, _longer_backward, "B + W >= F"),
    Stated("hanayo", None, None, _everywhere, "only simulated: the published form does not come out of the order"),
    Stated("seq1f1b", idle_once, held_slices, _everywhere, "slices that take equally long"),
    Stated("bpipe", idle_once, held_staircase, _everywhere, "handing over hidden"),
    Stated("pipedream", idle_once, held_staircase, _everywhere, "a run; nothing idles in its middle"),
    Stated("pipedream_2bw", idle_once, held_staircase, _everywhere, "a run; nothing idles in its middle"),
)

STATED = {row.name: row for row in _TABLE}
