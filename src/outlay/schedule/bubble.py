"""Laws of the pipeline schedules: idle share, idle time, passes in flight, exposed messages. One row a schedule.

P stages (pp), v chunks a rank (vpp), M micro-batches. Equal stages and free sends unless stated.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..formula import maximum, minimum, where
from ..quantities import Count, Flag, Real, Seconds, Share


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


def fill_and_drain(whole: Seconds, slowest: Seconds, vpp: Count) -> Seconds:
    """Idle time of the slowest stage while the pipeline fills and drains: the other stages' work, over v.

    Equal stages give (P - 1)(F + X)/v. Exact for one heavy last stage; a bound otherwise (GPipe, 1F1B, interleaved).
    """
    return (whole - slowest) / vpp


def hold_all(rank: Count, pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """GPipe: every micro-batch, M."""
    return micro_batches


def hold_staircase(rank: Count, pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """1F1B: rank r holds min(M, P - r). Source: Narayanan et al. 2021."""
    return minimum(micro_batches, pp - rank)


def hold_interleaved(rank: Count, pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """Interleaved 1F1B, in stages: min(M, [(v - 1) P + 2 (P - 1 - r) + 1] / v). Source: Megatron-LM warm-up rule."""
    return minimum(micro_batches, ((vpp - 1) * pp + 2 * (pp - 1 - rank) + 1) / vpp)


def hold_one(rank: Count, pp: Count, vpp: Count, micro_batches: Count) -> Count:
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


def sends(pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """Messages that a rank in the middle sends in one step: M v forward, as many backward; none where P is 1."""
    return where(pp > 1, 2 * vpp * micro_batches, 0)


@dataclass(frozen=True)
class Schedule:
    """The laws of one schedule, each a formula of (rank, pp, vpp, micro-batches) or (pp, vpp, micro-batches)."""

    name: str
    share: Callable[[Count, Count, Count], Share]  # (pp, vpp, micro-batches)
    in_flight: Callable[[Count, Count, Count, Count], Count]  # (rank, ..), in stages
    head_in_flight: Callable[[Count, Count, Count, Count], Count]
    hops: Callable[[Count, Count, Count], Count]
    legal: Callable[[Count, Count, Count], Flag]  # for its order, whatever the engine
    needs: str  # what `legal` asks for, in words


def _one_chunk(pp: Count, vpp: Count, micro_batches: Count) -> Flag:
    return vpp == 1


def _chunks(pp: Count, vpp: Count, micro_batches: Count) -> Flag:
    return (vpp > 1) & (pp > 1) & (micro_batches >= pp) & (micro_batches % pp == 0)


def _staircase_share(pp: Count, vpp: Count, micro_batches: Count) -> Share:
    """GPipe and 1F1B: v does not enter."""
    return bubble_share(pp, micro_batches)


def among(names: NDArray[np.str_]) -> Schedule:
    """The laws of several schedules at once: each cell of a grid by the schedule it names."""

    def chosen(law: str) -> Callable[..., Any]:
        def answer(*inputs: Real) -> Real:
            result: Real = 0
            for name, schedule in SCHEDULES.items():
                result = where(names == name, getattr(schedule, law)(*inputs), result)
            return result

        return answer

    return Schedule(
        "several", chosen("share"), chosen("in_flight"), chosen("head_in_flight"), chosen("hops"), chosen("legal"), ""
    )


SCHEDULES = {
    "gpipe": Schedule("gpipe", _staircase_share, hold_all, hold_all, hops_ends, _one_chunk, "vpp 1"),
    "1f1b": Schedule("1f1b", _staircase_share, hold_staircase, hold_one, hops_every, _one_chunk, "vpp 1"),
    "interleaved": Schedule(
        "interleaved", interleaved_share, hold_interleaved, hold_one, hops_chunks, _chunks,
        "vpp > 1, pp > 1, and a number of micro-batches that pp divides",
    ),
}  # fmt: skip
