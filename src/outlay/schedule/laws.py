"""The laws of the pipeline schedules, a row each: idle time, passes in flight, exposed messages, what it needs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..formula import where
from ..quantities import Count, Flag, Real
from .bubble import (
    one_part,
    parts_dualpipe_v,
    parts_interleaved_zb,
    parts_of_chunks,
    parts_zb_h1,
    parts_zb_h2,
    parts_zbv,
)
from .flight import (
    hold_all,
    hold_dualpipe_v,
    hold_interleaved,
    hold_interleaved_zb,
    hold_one,
    hold_pipeline,
    hold_staircase,
    hold_twice,
    hops_chunks,
    hops_ends,
    hops_every,
    hops_looped,
    hops_pairs,
    hops_split,
    hops_zbv,
)


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
    in_flight: Callable[..., Count]  # (rank, pp, vpp, micro-batches, round size), in stages
    head_in_flight: Callable[..., Count]
    hops: Callable[[Count, Count, Count], Count]  # (pp, vpp, micro-batches)
    fits: Callable[[Count, Count], Flag]  # (pp, vpp)
    least: Callable[[Count], Count]  # micro-batches from which the laws hold, of pp
    needs: str  # what `fits` and `least` ask for, in words
    rounds: bool = False  # whether the laws want a number of micro-batches that pp divides
    folded: bool = False  # a V: the last chunk stands on the first rank
    paired: Flag = False  # whether a forward pass runs beside a backward pass of another micro-batch

    def legal(self, pp: int, vpp: int, micro_batches: int) -> bool:
        """Whether the laws hold for a pipeline."""
        whole = micro_batches % pp == 0 if self.rounds else True
        return bool(whole and self.fits(pp, vpp) and micro_batches >= self.least(pp))


LAWS = ("parts", "in_flight", "head_in_flight", "hops", "fits", "least")


def among(names: NDArray[np.str_]) -> Schedule:
    """The laws of several schedules at once: each cell of a grid by the schedule it names."""
    present = {name: here for name in SCHEDULES if np.any(here := names == name)}

    def chosen(law: str) -> Callable[..., Any]:
        def answer(*inputs: Real) -> Real:
            result: Real = 0
            for name, here in present.items():
                result = where(here, getattr(SCHEDULES[name], law)(*inputs), result)
            return result

        return answer

    parts, in_flight, head_in_flight, hops, fits, least = map(chosen, LAWS)
    pairs = np.isin(names, [name for name in present if SCHEDULES[name].paired])
    return Schedule("several", parts, in_flight, head_in_flight, hops, fits, least, "", paired=pairs)


_CHUNKS = "vpp > 1, pp > 1"

_TABLE = (
    Schedule("gpipe", one_part, hold_all, hold_all, hops_ends, _one_chunk, least_one, "vpp 1"),
    Schedule("1f1b", one_part, hold_staircase, hold_one, hops_every, _one_chunk, least_one, "vpp 1"),
    Schedule(
        "interleaved", parts_of_chunks, hold_interleaved, hold_one, hops_chunks, _chunks, least_pipeline,
        f"{_CHUNKS}, and a number of micro-batches that pp divides", rounds=True,
    ),
    Schedule(
        "looped_bfs", parts_of_chunks, hold_all, hold_all, hops_looped, _chunks, least_pipeline,
        f"{_CHUNKS}, and pp micro-batches or more",
    ),
    Schedule(
        "interleaved_zb", parts_interleaved_zb, hold_interleaved_zb, hold_interleaved_zb, hops_split, _chunks,
        least_pipeline, f"{_CHUNKS}, and a number of micro-batches that pp divides", rounds=True,
    ),
    Schedule(
        "zb_h1", parts_zb_h1, hold_pipeline, hold_pipeline, hops_split, _one_chunk, least_pipeline,
        "vpp 1, and pp micro-batches or more",
    ),
    Schedule(
        "zb_h2", parts_zb_h2, hold_twice, hold_twice, hops_ends, _one_chunk, least_twice,
        "vpp 1, and 2 pp - 1 micro-batches or more",
    ),
    Schedule(
        "zbv", parts_zbv, hold_pipeline, hold_one, hops_zbv, _two_chunks, least_twice,
        "vpp 2, pp > 1, and 2 pp - 1 micro-batches or more", folded=True,
    ),
    Schedule(
        "dualpipe_v", parts_dualpipe_v, hold_dualpipe_v, hold_one, hops_pairs, _two_chunks, least_pairs,
        "vpp 2, pp > 1, and 2 pp micro-batches or more", folded=True, paired=True,
    ),
)  # fmt: skip

SCHEDULES = {schedule.name: schedule for schedule in _TABLE}
FOLDED = tuple(schedule.name for schedule in _TABLE if schedule.folded)
