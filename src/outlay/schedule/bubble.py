"""Laws of the pipeline schedules: idle share, idle time, passes in flight, exposed messages. One row a schedule.

P stages (pp), v chunks a rank (vpp), M micro-batches. Equal stages and free sends unless stated.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..formula import divide, maximum, minimum, where
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


def slots_held(pp: Count, vpp: Count, micro_batches: Count, parts: Count) -> Count:
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

    Exact on the last rank for b >= f >= w > 0 and M >= 2P; a stage's pass is two chunks'.
    """
    whole_pairs: Seconds = 2 * forward + inputs - weights
    last_pairs: Seconds = forward + 2 * inputs - weights - divide(forward, pp - 1)
    return 2 * (forward + inputs + weights) / maximum(whole_pairs, last_pairs)


def hold_all(rank: Count, pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """GPipe: every micro-batch, M."""
    return micro_batches


def hold_staircase(rank: Count, pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """1F1B: rank r holds min(M, P - r). Source: Narayanan et al. 2021."""
    return minimum(micro_batches, pp - rank)


def hold_interleaved(rank: Count, pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """Interleaved 1F1B, in stages: min(M, [(v - 1) P + 2 (P - 1 - r) + 1] / v). Source: Megatron-LM warm-up rule."""
    return minimum(micro_batches, ((vpp - 1) * pp + 2 * (pp - 1 - rank) + 1) / vpp)


def hold_pipeline(rank: Count, pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """ZB-H1, its interleaved form and ZBV: P on every rank, until the weight gradient is done."""
    return minimum(micro_batches, pp)


def hold_twice(rank: Count, pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """ZB-H2: 2P - 1 on every rank."""
    return minimum(micro_batches, 2 * pp - 1)


def hold_dualpipe_v(rank: Count, pp: Count, vpp: Count, micro_batches: Count) -> Count:
    """DualPipeV: 2P + 1 chunks, two of which make a stage."""
    return minimum(micro_batches, pp + 1 / 2)


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


def least_one(pp: Count) -> Count:
    """The laws of GPipe and 1F1B hold for any number of micro-batches."""
    return 1


def least_pipeline(pp: Count) -> Count:
    """A micro-batch for every rank, P: fewer leave gaps that no law here counts."""
    return pp


def least_twice(pp: Count) -> Count:
    """The warm-up of ZB-H2 and ZBV, 2P - 1 on the first rank."""
    return 2 * pp - 1


def least_pairs(pp: Count) -> Count:
    """DualPipeV pairs passes from 2P on."""
    return 2 * pp


def _one_chunk(pp: Count, vpp: Count) -> Flag:
    return vpp == 1


def _two_chunks(pp: Count, vpp: Count) -> Flag:
    two: Flag = (vpp == 2) & (pp > 1)
    return two


def _chunks(pp: Count, vpp: Count) -> Flag:
    several: Flag = (vpp > 1) & (pp > 1)
    return several


@dataclass(frozen=True)
class Schedule:
    """The laws of one schedule, each a formula of arrays or numbers."""

    name: str
    parts: Callable[..., Real]  # (forward, input gradients, weight gradients, pp, vpp)
    in_flight: Callable[..., Count]  # (rank, pp, vpp, micro-batches), in stages
    head_in_flight: Callable[..., Count]
    hops: Callable[[Count, Count, Count], Count]  # (pp, vpp, micro-batches)
    fits: Callable[[Count, Count], Flag]  # (pp, vpp)
    least: Callable[[Count], Count]  # micro-batches from which the laws hold, of pp
    needs: str  # what `fits` and `least` ask for, in words
    rounds: bool = False  # whether the laws want a number of micro-batches that pp divides
    folded: bool = False  # a V: the last chunk stands on the first rank

    def legal(self, pp: int, vpp: int, micro_batches: int) -> bool:
        """Whether the laws hold for a pipeline."""
        whole = micro_batches % pp == 0 if self.rounds else True
        return bool(whole and self.fits(pp, vpp) and micro_batches >= self.least(pp))


LAWS = ("parts", "in_flight", "head_in_flight", "hops", "fits", "least")


def among(names: NDArray[np.str_]) -> Schedule:
    """The laws of several schedules at once: each cell of a grid by the schedule it names."""
    present = {name: names == name for name in SCHEDULES if np.any(names == name)}

    def chosen(law: str) -> Callable[..., Any]:
        def answer(*inputs: Real) -> Real:
            result: Real = 0
            for name, here in present.items():
                result = where(here, getattr(SCHEDULES[name], law)(*inputs), result)
            return result

        return answer

    parts, in_flight, head_in_flight, hops, fits, least = map(chosen, LAWS)
    return Schedule("several", parts, in_flight, head_in_flight, hops, fits, least, "")


_CHUNKS = "vpp > 1, pp > 1"

_TABLE = (
    Schedule("gpipe", one_part, hold_all, hold_all, hops_ends, _one_chunk, least_one, "vpp 1"),
    Schedule("1f1b", one_part, hold_staircase, hold_one, hops_every, _one_chunk, least_one, "vpp 1"),
    Schedule(
        "interleaved", parts_of_chunks, hold_interleaved, hold_one, hops_chunks, _chunks, least_pipeline,
        f"{_CHUNKS}, and a number of micro-batches that pp divides", rounds=True,
    ),
    Schedule(
        "looped_bfs", parts_of_chunks, hold_all, hold_all, hops_chunks, _chunks, least_pipeline,
        f"{_CHUNKS}, and pp micro-batches or more",
    ),
    Schedule(
        "interleaved_zb", parts_interleaved_zb, hold_pipeline, hold_pipeline, hops_chunks, _chunks, least_pipeline,
        f"{_CHUNKS}, and a number of micro-batches that pp divides", rounds=True,
    ),
    Schedule(
        "zb_h1", parts_zb_h1, hold_pipeline, hold_pipeline, hops_ends, _one_chunk, least_pipeline,
        "vpp 1, and pp micro-batches or more",
    ),
    Schedule(
        "zb_h2", parts_zb_h2, hold_twice, hold_twice, hops_ends, _one_chunk, least_twice,
        "vpp 1, and 2 pp - 1 micro-batches or more",
    ),
    Schedule(
        "zbv", parts_zbv, hold_pipeline, hold_one, hops_chunks, _two_chunks, least_twice,
        "vpp 2, pp > 1, and 2 pp - 1 micro-batches or more", folded=True,
    ),
    Schedule(
        "dualpipe_v", parts_dualpipe_v, hold_dualpipe_v, hold_one, hops_every, _two_chunks, least_pairs,
        "vpp 2, pp > 1, and 2 pp micro-batches or more", folded=True,
    ),
)  # fmt: skip

SCHEDULES = {schedule.name: schedule for schedule in _TABLE}
FOLDED = tuple(schedule.name for schedule in _TABLE if schedule.folded)
