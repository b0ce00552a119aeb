"""Better orders from a good one: passes on the critical path change places with those before or behind them."""

from collections.abc import Callable
from random import Random

from .problem import Problem, Rows
from .timing import Timed, timed, within

TRIES_WITHOUT_GAIN = 400
REACH = 6  # places that a pass moves at the most


def improved(problem: Problem, rows: Rows, goal: int, going: Callable[[], bool]) -> Rows:
    """Rows that take no longer: moves are kept that make the step no longer, until none of many did.

    A row that has a pass of a critical path is chosen, and a pass that ended late moves up, or one before it back.
    """
    draw = Random(7)
    found = timed(problem, rows)
    assert found is not None
    best, idle, path = found, 0, _critical(problem, rows, found)
    while idle < TRIES_WITHOUT_GAIN and best.makespan > goal and going():
        trial = _moved(problem, rows, path, draw)
        after = trial and timed(problem, trial)
        idle += 1
        if trial and after and after.makespan <= best.makespan:
            idle = 0 if after.makespan < best.makespan else idle
            rows, best, path = trial, after, _critical(problem, trial, after)
    return rows


def _moved(problem: Problem, rows: Rows, path: list[tuple[int, int]], draw: Random) -> Rows | None:
    """Rows with one pass of the critical path elsewhere; None where that breaks a rule."""
    rank, place = draw.choice(path)
    row = rows[rank]
    to = min(max(0, place + draw.choice((-1, 1)) * draw.randint(1, REACH)), len(row) - 1)
    if to == place:
        return None
    changed = row[:place] + row[place + 1 :]
    changed.insert(to, row[place])
    if not within(changed, problem.cap):
        return None
    return [changed if each == rank else other for each, other in enumerate(rows)]


def _critical(problem: Problem, rows: Rows, now: Timed) -> list[tuple[int, int]]:
    """Passes that the step waits for, as (rank, place), from the last back to the first."""
    where: dict[tuple[int, int, int], tuple[int, int]] = {}
    number: list[list[int]] = []
    for rank, row in enumerate(rows):
        seen: dict[tuple[int, int], int] = {}
        here = []
        for place, each in enumerate(row):
            seen[each] = seen.get(each, -1) + 1
            where[(*each, seen[each])] = (rank, place)
            here.append(seen[each])
        number.append(here)
    rank = max(range(problem.pp), key=lambda each: now.ends[each][-1])
    place = len(rows[rank]) - 1
    path = []
    while True:
        path.append((rank, place))
        kind, stage = rows[rank][place]
        start = now.ends[rank][place] - problem.durations[kind][stage]
        if start <= 0:
            return path
        if place and now.ends[rank][place - 1] == start:
            place -= 1
            continue
        need = _need(problem, kind, stage, number[rank][place])
        if need is None:
            return path
        rank, place = where[need]


def _need(problem: Problem, kind: int, stage: int, number: int) -> tuple[int, int, int] | None:
    """The pass of another rank, or of the same stage, that a pass waits for."""
    if kind == 0:
        return (0, stage - 1, number) if stage else None
    if kind == 2:
        return (1, stage, number)
    return (1, stage + 1, number) if stage + 1 < problem.depth else (0, stage, number)
