"""The best order that is found: a list scheduler, named schedules under the same cap, small moves, and a proof."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import gcd
from random import Random

from ...errors import Fault, InputError
from ..orders import facts, names, order
from ..passes import Operation, Order, Pair, loop, snake
from ..times import Times
from .exact import MOST, available, bounded, proved
from .greedy import NOISE, listed, rules
from .improve import improved
from .problem import LETTERS, Problem, Rows, least
from .timing import timed, within

PLACES = {"loop": loop, "snake": snake}
KEPT = 3  # orders that are improved move by move
RESTARTS = 20  # with a little chance in each choice
SEEKING = 0.35  # of the time, where the rest is for a proof
PAIRS = 2  # of ranks, each with the last
FEW = 0.6  # of the time that is left for a proof, for one rank and for two
MOST_PASSES = 100_000  # of an order that is sought

Said = Callable[[str, int, int], None]  # told what is done, the shortest makespan so far, and the bound


@dataclass(frozen=True)
class Found:
    """An order, and how good it is."""

    problem: Problem
    order: Order
    makespan: int  # ticks
    bound: int  # no order of this placement under this cap takes less
    named: tuple[tuple[str, int], ...]  # schedules that keep to the cap, and what they take
    stopped: bool = False  # before all was tried

    @property
    def proved(self) -> bool:
        """Whether none is shorter."""
        return self.makespan == self.bound


def problem_of(times: Times, pp: int, micro_batches: int, chunks: int, place: str, cap: float) -> Problem:
    """What is sought with so many chunks a rank, in a loop or as a snake (a V); `cap` in micro-batches of a rank.

    Times are whole ticks. Raises InputError: SCH052 more passes than are searched, SCH053 a cap that no order keeps to.
    """
    depth = pp * chunks
    if 3 * depth * micro_batches > MOST_PASSES:
        rule = f"an order of up to {MOST_PASSES:,} passes is sought"
        got = f"pp {pp}, vpp {chunks}, {micro_batches:,} micro-batches: {3 * depth * micro_batches:,} passes"
        raise InputError(Fault("SCH052", "the order is too long to be sought", rule, got, "fewer --micro-batches"))
    if cap < 1:
        rule = "a rank holds one micro-batch at least, all its chunks of it, in any order"
        raise InputError(Fault("SCH053", "no order keeps to this memory cap", rule, f"{cap:g}", "--memory-cap 1"))
    table = times.table(depth)
    columns = (table.forward, table.input_gradient + table.recompute, table.weight_gradient, table.latency + table.wire)
    tick = gcd(*(int(value) for column in columns for value in column)) or 1
    forward, inputs, weights, send = (tuple(int(value) // tick for value in column) for column in columns)
    whole = int(cap * chunks)
    return Problem("best", pp, micro_batches, forward, inputs, weights, send, PLACES[place](pp), whole, tick)


def best(problem: Problem, seconds: float, prove: bool, said: Said | None = None) -> Found:
    """The shortest order that is found in about so many seconds. Ctrl-C keeps what there is."""
    search = _Search(problem, time.monotonic() + seconds, said)
    tries = prove and available() and search.passes <= MOST
    search.seeks_until -= (1 - SEEKING) * seconds if tries else 0.0
    stopped = False
    try:
        search.named()
        search.listed()
        search.improved()
        if tries and search.makespan > search.bound:
            stopped = search.few() or search.proved()
    except KeyboardInterrupt:
        stopped = True
    return search.found(stopped)


class _Search:
    """What is known while it goes on."""

    def __init__(self, problem: Problem, until: float, said: Said | None) -> None:
        self.problem, self.until, self.said = problem, until, said
        self.seeks_until = until
        self.bound = least(problem)
        self.known: list[tuple[int, Rows]] = []
        self.names: list[tuple[str, int]] = []

    @property
    def makespan(self) -> int:
        return min((each[0] for each in self.known), default=2**62)

    @property
    def passes(self) -> int:
        return 3 * self.problem.depth * self.problem.micro_batches

    def found(self, stopped: bool) -> Found:
        if not self.known:
            self.known.append(listed(self.problem, next(rules(self.problem))))
        makespan, rows = min(self.known, key=lambda each: each[0])
        return Found(self.problem, self.problem.order(rows), makespan, self.bound, tuple(self.names), stopped)

    def named(self) -> None:
        """Schedules that keep to the cap."""
        for name, rows in rows_of_names(self.problem):
            if (line := timed(self.problem, rows)) is not None:
                self.names.append((name, line.makespan))
                self._keep("named schedules", line.makespan, rows)

    def listed(self) -> None:
        """The list scheduler, by each of its rules, then by the best of them with a little chance."""
        tried = []
        for rule in rules(self.problem):
            made = listed(self.problem, rule)
            tried.append((made[0], rule))
            self._keep("list scheduler", *made)
            if not self._goes_on():
                return
        likely = [rule for _, rule in sorted(tried)[:KEPT]]
        for turn in range(RESTARTS):
            rule = likely[turn % len(likely)]._replace(noise=NOISE)
            self._keep("list scheduler", *listed(self.problem, rule, Random(turn)))
            if not self._goes_on():
                return

    def improved(self) -> None:
        """Small moves in the few best."""
        for _, rows in sorted(_apart(self.known), key=lambda each: each[0])[:KEPT]:
            if not self._goes_on():
                return
            better = improved(self.problem, rows, self.bound, self._goes_on)
            line = timed(self.problem, better)
            assert line is not None
            self._keep("small moves", line.makespan, better)

    def few(self) -> bool:
        """What no order goes below because of one rank or of two; whether it was stopped.

        The last rank first, and in both pairs: on a V its chunks follow each other, and all wait for them. The others
        are from the first half, where chunks are held longest and are furthest apart.
        """
        until = time.monotonic() + FEW * (self.until - time.monotonic())
        *others, last = range(self.problem.pp)
        pairs = sorted(others, key=lambda rank: abs(4 * rank - self.problem.pp))[:PAIRS]
        for ranks in ((last,), *((each,) for each in reversed(others)), *((each, last) for each in pairs)):
            left = until - time.monotonic()
            if left <= 0 or self.makespan <= self.bound:
                return False
            self.bound, stopped = bounded(self.problem, ranks, left / 2, (self.bound, self.makespan))
            if self.said:
                self.said("one rank and two", self.makespan, self.bound)
            if stopped:
                return True
        return False

    def proved(self) -> bool:
        """The constraint program, for the time that is left; whether it was stopped."""
        left = self.until - time.monotonic()
        if left <= 0 or self.makespan <= self.bound:
            return False
        rows = min(self.known, key=lambda each: each[0])[1]
        tell = self.said

        def heard(makespan: int, bound: int) -> None:
            if tell:
                tell("constraint program", makespan, max(bound, self.bound))

        answer = proved(self.problem, rows, left, heard, self.bound)
        self.bound = max(self.bound, answer.bound)
        self._keep("constraint program", answer.makespan, answer.rows)
        return answer.stopped

    def _keep(self, what: str, makespan: int, rows: Rows) -> None:
        better = makespan < self.makespan
        self.known.append((makespan, rows))
        if better and self.said:
            self.said(what, makespan, self.bound)

    def _goes_on(self) -> bool:
        return self.makespan > self.bound and time.monotonic() < self.seeks_until


def _apart(known: list[tuple[int, Rows]]) -> Iterator[tuple[int, Rows]]:
    """Each order once."""
    seen: list[Rows] = []
    for makespan, rows in sorted(known, key=lambda each: each[0]):
        if rows not in seen:
            seen.append(rows)
            yield makespan, rows


def rows_of_names(problem: Problem) -> Iterator[tuple[str, Rows]]:
    """Each named schedule of one copy that stands on the same ranks and keeps to the cap, its gradients apart."""
    for name in names():
        known = facts(name)
        if known.copies > 1 or known.asynchronous(2) or name in ("bpipe", "seq1f1b"):
            continue
        try:
            made = order(name, problem.pp, problem.micro_batches, problem.chunks)
        except InputError:
            continue
        if made.depth != problem.depth or any(made.rank_of(s) != problem.home[s] for s in range(problem.depth)):
            continue
        rows = [list(_apart_passes(row)) for row in made.ranks]
        if all(within(row, problem.cap) for row in rows):
            yield name, rows


def _apart_passes(row: tuple[Operation, ...]) -> Iterator[tuple[int, int]]:
    for operation in row:
        for letter, stage, _ in operation if isinstance(operation, Pair) else (operation,):
            yield from ((LETTERS.index(one), stage) for one in ("IW" if letter == "B" else letter))
