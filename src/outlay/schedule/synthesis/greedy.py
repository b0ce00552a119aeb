"""A list scheduler: whoever is free takes the pass that its rule likes best of those that are ready."""

from collections.abc import Iterator
from heapq import heappop, heappush
from random import Random
from typing import NamedTuple

from .problem import F, I, Problem, Rows, W

NEVER = 2**62
NOISE = 6.0  # of what chance adds to a preference, whose steps are 1, 10 and 20
SPACED = ((0, 0.0), (1, 0.0), (0, 0.95), (0, 1.0), (0, 1.1), (0, 1.25), (0, 1.5))  # reserves and paces


class Rule(NamedTuple):
    """How a rank chooses, as shares and switches."""

    patience: float  # it rather waits than begins a W that would end later than a message comes, by this share of W
    eager: bool  # a W that waits goes before a new micro-batch's F once P - r chunks are held
    deep: bool  # of two F the later chunk's first
    forward: bool  # F before I
    reserve: int  # chunks of the cap that ranks behind the first leave free, each by its place in the pipeline
    pace: float = 0.0  # micro-batches go in at least so far apart, in times of the busiest rank's work on one
    noise: float = 0.0


def rules(problem: Problem) -> Iterator[Rule]:
    """Those that are tried first."""
    for patience in (0.0, 0.5, 1.0):
        for eager in (False, True):
            for deep in (True, False) if problem.chunks > 1 else (True,):
                for forward in (False, True):
                    for reserve, pace in SPACED:
                        yield Rule(patience, eager, deep, forward, reserve, pace)


def listed(problem: Problem, rule: Rule, draw: Random | None = None) -> tuple[int, Rows]:
    """The makespan and the rows of one rule."""
    board = _Board(problem, rule, draw)
    events = [(0, rank) for rank in range(problem.pp)]
    while events:
        now, rank = heappop(events)
        for at, who in board.go(rank, now):
            heappush(events, (at, who))
    return max(board.free), board.rows


class _Board:
    """What is done and what is ready while time goes on."""

    def __init__(self, problem: Problem, rule: Rule, draw: Random | None) -> None:
        self.problem, self.rule, self.draw = problem, rule, draw
        self.ready: list[list[list[int]]] = [[[] for _ in range(problem.depth)] for _ in range(3)]
        work = (sum(kind[s] for kind in problem.durations for s in stages) for stages in problem.stages)
        step = rule.pace * max(work)
        self.ready[F][0] = [int(step * number) for number in range(problem.micro_batches)]
        self.done = [[0] * problem.depth for _ in range(3)]
        self.held, self.free = [0] * problem.pp, [0] * problem.pp
        self.rows: Rows = [[] for _ in range(problem.pp)]
        self.caps = [self._cap(rank) for rank in range(problem.pp)]

    def _cap(self, rank: int) -> int:
        """Chunks that a rank lets itself hold."""
        least = max(self.problem.chunks, self.problem.cap - self.rule.reserve * rank * self.problem.chunks)
        return min(self.problem.cap, least)

    def go(self, rank: int, now: int) -> list[tuple[int, int]]:
        """One decision of a rank: when it, and whoever hears of it, has to look again."""
        if now < self.free[rank]:
            return []
        found, later = self._choose(rank, now)
        if found is None:
            return [(later, rank)] if later < NEVER else []
        kind, stage = found
        problem = self.problem
        end = now + problem.durations[kind][stage]
        self.done[kind][stage] += 1
        self.rows[rank].append(found)
        self.free[rank] = end
        woken = [(end, rank)]
        if kind == F:
            self.held[rank] += 1
            if stage + 1 < problem.depth:
                self.ready[F][stage + 1].append(end + problem.hop[stage])
                woken.append((end + problem.hop[stage], problem.home[stage + 1]))
            else:
                self.ready[I][stage].append(end)
        elif kind == I:
            self.ready[W][stage].append(end)
            if stage:
                self.ready[I][stage - 1].append(end + problem.hop[stage - 1])
                woken.append((end + problem.hop[stage - 1], problem.home[stage - 1]))
        else:
            self.held[rank] -= 1
        return woken

    def _when(self, kind: int, stage: int) -> int:
        """When the next pass of a stage may begin, as far as that is known."""
        due, number = self.ready[kind][stage], self.done[kind][stage]
        return due[number] if number < len(due) else NEVER

    def _room(self, rank: int, place: int) -> bool:
        """Whether a chunk more may be held, so that no micro-batches wait for each other's room for ever.

        In the order of their age, each must find room for its later chunks once those before it have ended.
        """
        free = self.caps[rank] - self.held[rank] - 1
        if free < 0 or self.problem.chunks == 1:
            return free >= 0
        stages = self.problem.stages[rank]
        begun = [self.done[F][s] for s in stages]
        begun[place] += 1
        ended = [self.done[W][s] for s in stages]
        for number in range(min(ended), begun[0]):
            if sum(number >= each for each in begun) > free:
                return False
            free += sum(last <= number < first for first, last in zip(begun, ended))
        return True

    def _choose(self, rank: int, now: int) -> tuple[tuple[int, int] | None, int]:
        """The pass that is liked best, or when to look again."""
        rule, stages = self.rule, self.problem.stages[rank]
        ready: list[tuple[float, tuple[int, int]]] = []
        soon = NEVER
        crowded = rule.eager and self.held[rank] >= self.problem.chunks * (self.problem.pp - rank)
        for place, stage in enumerate(stages):
            for kind in (I, F):
                when = self._when(kind, stage)
                if when == NEVER or (kind == F and not self._room(rank, place)):
                    continue
                if when > now:
                    soon = min(soon, when)
                    continue
                first = (kind == F) == rule.forward
                depth = -place if rule.deep == (kind == F) else place
                ready.append(
                    ((0.0 if first else 10.0) + depth + self._noise() + 30.0 * (kind == F and crowded), (kind, stage))
                )
        weight = self._weight(stages, now)
        if weight is not None:
            late = now + self.problem.weights[weight] - soon
            waits = soon < NEVER and late > rule.patience * self.problem.weights[weight] and rule.patience < 1.0
            full = not any(self._room(rank, place) for place in range(len(stages)))
            if not waits or full:
                ready.append((20.0 + self._noise(), (W, weight)))
        if ready:
            return min(ready)[1], NEVER
        return None, soon

    def _weight(self, stages: tuple[int, ...], now: int) -> int | None:
        """The stage whose weight gradient waits longest."""
        waiting = [(self._when(W, stage), stage) for stage in stages]
        when, stage = min(waiting)
        return stage if when <= now else None

    def _noise(self) -> float:
        return self.draw.random() * self.rule.noise if self.draw else 0.0
