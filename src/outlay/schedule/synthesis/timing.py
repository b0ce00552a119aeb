"""How long rows take: every pass as early as its rank and what it needs allow."""

from typing import NamedTuple

from .problem import F, I, Problem, Rows, W


class Timed(NamedTuple):
    """Rows with the ends of their passes, and the longest."""

    makespan: int
    ends: list[list[int]]  # beside the rows


def timed(problem: Problem, rows: Rows) -> Timed | None:
    """The times of rows; None where ranks wait for each other for ever."""
    depth, hop, home, durations = problem.depth, problem.hop, problem.home, problem.durations
    ready: list[list[list[int]]] = [[[] for _ in range(depth)] for _ in range(3)]  # when F, I, W may begin, by stage
    ready[F][0] = [0] * problem.micro_batches
    at, clock, ends = [0] * problem.pp, [0] * problem.pp, [list[int]() for _ in rows]
    seen = [[0] * depth for _ in range(3)]
    awake = list(range(problem.pp))
    while awake:
        rank = awake.pop()
        row, place, now = rows[rank], at[rank], clock[rank]
        while place < len(row):
            kind, stage = row[place]
            number = seen[kind][stage]
            due = ready[kind][stage]
            if number >= len(due):
                break
            now = max(now, due[number]) + durations[kind][stage]
            seen[kind][stage] = number + 1
            ends[rank].append(now)
            place += 1
            if kind == F:
                if stage + 1 < depth:
                    ready[F][stage + 1].append(now + hop[stage])
                    awake += [home[stage + 1]] * (home[stage + 1] != rank)
                else:
                    ready[I][stage].append(now)
            elif kind == I:
                ready[W][stage].append(now)
                if stage:
                    ready[I][stage - 1].append(now + hop[stage - 1])
                    awake += [home[stage - 1]] * (home[stage - 1] != rank)
        at[rank], clock[rank] = place, now
    if any(place < len(row) for place, row in zip(at, rows)):
        return None
    return Timed(max(clock), ends)


def within(row: list[tuple[int, int]], cap: int) -> bool:
    """Whether a rank never holds more chunks than that, and does no pass before its own stage allows."""
    held, done = 0, dict[tuple[int, int], int]()
    for kind, stage in row:
        held += kind == F
        number = done.get((kind, stage), 0)
        if held > cap or (kind and done.get((kind - 1, stage), 0) <= number):
            return False
        done[kind, stage] = number + 1
        held -= kind == W
    return True
