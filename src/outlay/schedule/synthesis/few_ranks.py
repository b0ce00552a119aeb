"""What no order goes below because of one rank, or a few: a constraint program of their passes alone, under their caps.

All other ranks are taken to be free whenever a micro-batch comes. What then is left of them is how long it is away
between two stages of these ranks, and that micro-batches follow each other through the slowest stage in between. Every
order keeps to that, so the shortest order of the few is a bound of all. It is small, and it says what a cap costs: a
chunk's activations stay for the whole way to the head and back, whatever else the rank could do.
"""

from itertools import combinations, pairwise
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from .problem import F, I, Problem, W

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel


class Away(NamedTuple):
    """Between two stages of a rank, of one direction: the least time of one micro-batch, and between two of them."""

    lag: int
    apart: int


def out(problem: Problem, after: int, stage: int) -> Away:
    """From the end of F of a stage (-1: from the beginning) to the beginning of F of a later one."""
    between = range(after + 1, stage)
    hops = sum(problem.hop[max(after, 0) : stage])
    return Away(sum(problem.forward[s] for s in between) + hops, max((problem.forward[s] for s in between), default=0))


def back(problem: Problem, stage: int, until: int) -> Away:
    """From the end of I of a stage to the beginning of I of an earlier one (-1: to the end of the first stage's)."""
    between = range(until + 1, stage)
    hops = sum(problem.hop[max(until, 0) : stage])
    return Away(sum(problem.inputs[s] for s in between) + hops, max((problem.inputs[s] for s in between), default=0))


def turned(problem: Problem, stage: int) -> int:
    """From the end of F of a stage to the beginning of its own I: to the head and back."""
    behind = range(stage + 1, problem.depth)
    return sum(problem.forward[s] + problem.inputs[s] for s in behind) + 2 * sum(problem.hop[stage:])


def weights_in_turn(problem: Problem, rank: int, start: dict[tuple[int, int, int], Any], new: "CpModel") -> None:
    """Weight gradients of a rank's stages in the order of their input gradients, where they are equally long.

    Any order can be changed so: of two that wait, either can have the earlier place, and both free one chunk. On an
    earlier stage I comes after that of the later ones, so W too; of different micro-batches it is as I is.
    """
    for early, late in combinations(problem.stages[rank], 2):
        if problem.weights[early] != problem.weights[late]:
            continue
        taken = problem.weights[late]
        for m in range(problem.micro_batches):
            new.add(start[W, early, m] >= start[W, late, m] + taken)
            for later in range(m + 1, problem.micro_batches):
                first = new.new_bool_var("")  # whether the earlier stage's I comes first
                one, other = start[I, early, m], start[I, late, later]
                new.add(other >= one + problem.inputs[early]).only_enforce_if(first)
                new.add(one >= other + problem.inputs[late]).only_enforce_if(~first)
                one, other = start[W, early, m], start[W, late, later]
                new.add(other >= one + taken).only_enforce_if(first)
                new.add(one >= other + taken).only_enforce_if(~first)


class _Model:
    """When each pass of some ranks begins."""

    def __init__(self, problem: Problem, ranks: tuple[int, ...], cp: Any, least: int, most: int) -> None:
        self.problem, self.many = problem, range(problem.micro_batches)
        self.stages = tuple(s for s in range(problem.depth) if problem.home[s] in ranks)
        self.model: CpModel = cp.CpModel()
        keys = ((kind, s, m) for kind in (F, I, W) for s in self.stages for m in self.many)
        self.start = {key: self.model.new_int_var(0, most, "") for key in keys}
        self.makespan = self.model.new_int_var(least, most, "makespan")
        for m in self.many:
            self._way(m)
        self._in_order()
        for rank in ranks:
            self._rank(problem.stages[rank], most)
            weights_in_turn(problem, rank, self.start, self.model)
        self.model.minimize(self.makespan)

    def _way(self, m: int) -> None:
        """Of one micro-batch: in, from stage to stage, to the head and back, and out."""
        problem, stages, at, add = self.problem, self.stages, self.start, self.model.add
        first, last = stages[0], stages[-1]
        come, go = out(problem, -1, first), back(problem, first, -1)
        add(at[F, first, m] >= come.lag + m * come.apart)
        for before, stage in pairwise(stages):
            add(at[F, stage, m] >= at[F, before, m] + problem.forward[before] + out(problem, before, stage).lag)
            add(at[I, before, m] >= at[I, stage, m] + problem.inputs[stage] + back(problem, stage, before).lag)
        add(at[I, last, m] >= at[F, last, m] + problem.forward[last] + turned(problem, last))
        for stage in stages:
            add(at[W, stage, m] >= at[I, stage, m] + problem.inputs[stage])
        if first:
            left = (problem.micro_batches - 1 - m) * go.apart + problem.weights[0]
            add(self.makespan >= at[I, first, m] + problem.inputs[first] + go.lag + left)

    def _in_order(self) -> None:
        """Micro-batches follow each other on each stage; between two stages, through the slowest in between."""
        add, at, problem = self.model.add, self.start, self.problem
        for (kind, stage, m), start in at.items():
            if m:
                add(start >= at[kind, stage, m - 1] + problem.durations[kind][stage])
        for stage in self.stages:
            add(self.makespan >= at[W, stage, self.many[-1]] + problem.weights[stage])

    def _rank(self, stages: tuple[int, ...], most: int) -> None:
        """One pass at a time, and no more chunks held than the cap."""
        problem, new, at = self.problem, self.model, self.start
        mine = [(problem.durations[kind][s], start) for (kind, s, _), start in at.items() if s in stages]
        new.add_no_overlap(new.new_fixed_size_interval_var(start, taken, "") for taken, start in mine)
        if problem.cap >= len(self.many) * len(stages):
            return
        held = []
        for s in stages:
            for m in self.many:
                size = new.new_int_var(0, most, "")
                held.append(new.new_interval_var(at[F, s, m], size, at[W, s, m] + problem.weights[s], ""))
        new.add_cumulative(held, [1] * len(held), problem.cap)


def bound(problem: Problem, ranks: tuple[int, ...], engine: Any, cp: Any, limits: tuple[int, int]) -> tuple[int, bool]:
    """A makespan that no order goes below because of these ranks, from a solver with its time; whether it is the best.

    `limits` are one that is known already, and the makespan of an order.
    """
    least, most = limits
    status = engine.solve(_Model(problem, ranks, cp, least, most).model)
    if status not in (cp.OPTIMAL, cp.FEASIBLE, cp.UNKNOWN):
        return least, True
    found: int = ceil(engine.best_objective_bound - 1e-6)
    return max(least, min(most, found)), bool(status == cp.OPTIMAL)
