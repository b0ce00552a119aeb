"""The stream of collectives beside each rank's compute: weights gathered before use, gradients reduced after the last.

Collectives of a rank run one after the other, in the order in which they are wanted.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .program import Half, Ints, Program
from .times import Numbers, Table


class Stream(NamedTuple):
    """What one rank's collectives do, as arrays in order. Kinds: G (gather of weights), D (reduction of gradients)."""

    rank: int
    start: Numbers
    end: Numbers
    kind: NDArray[np.str_]
    stage: Ints


class _Job(NamedTuple):
    rank: int
    kind: str
    stage: int
    start: float
    end: float


def gathers(program: Program, table: Table) -> tuple[list[_Job], Numbers]:
    """The gathers, all asked for at time 0, and the earliest start of each operation."""
    earliest = np.zeros(len(program.rank), table.gather.dtype)
    free = [0] * len(program.order.ranks)
    jobs = []
    for rank, stage, operation in _ends(program, [program.forward], last=False):
        if table.gather[stage]:
            start = free[rank]
            free[rank] = end = start + table.gather[stage].item()
            earliest[operation] = end
            jobs.append(_Job(rank, "G", stage, start, end))
    return jobs, earliest


def reduces(program: Program, table: Table, end: Numbers, before: list[_Job]) -> list[_Job]:
    """The reductions, each after the last weight gradient of its stage, behind the gathers of its rank."""
    free: dict[int, float] = {job.rank: job.end for job in before}
    jobs = []
    whole = program.backward.where(program.backward.kind == "B")
    for rank, stage, operation in _ends(program, [whole, program.weight], last=True):
        if table.reduce[stage]:
            start = max(free.get(rank, 0), end[operation].item())
            free[rank] = start + table.reduce[stage].item()
            jobs.append(_Job(rank, "D", stage, start, free[rank]))
    return jobs


def _ends(program: Program, halves: list[Half], last: bool) -> list[tuple[int, int, int]]:
    """The first or last operation of each stage on each rank: (rank, stage, operation), in the order of operations."""
    operation = np.concatenate([half.operation for half in halves])
    stage = np.concatenate([half.stage for half in halves])
    order = np.argsort(-operation if last else operation, kind="stable")
    key = program.rank[operation[order]] * program.order.stages + stage[order]
    chosen = order[np.unique(key, return_index=True)[1]]
    chosen = chosen[np.argsort(operation[chosen], kind="stable")]
    found = operation[chosen]
    return list(zip(program.rank[found].tolist(), stage[chosen].tolist(), found.tolist()))


def streams(ranks: int, jobs: list[_Job], kind: np.dtype[np.generic]) -> tuple[Stream, ...]:
    """The collectives of each rank; none where there are none at all."""
    if not jobs:
        return ()
    return tuple(_stream(rank, [job for job in jobs if job.rank == rank], kind) for rank in range(ranks))


def _stream(rank: int, jobs: list[_Job], kind: np.dtype[np.generic]) -> Stream:
    return Stream(
        rank,
        np.array([job.start for job in jobs], kind),
        np.array([job.end for job in jobs], kind),
        np.array([job.kind for job in jobs], "U1"),
        np.array([job.stage for job in jobs], np.int64),
    )
