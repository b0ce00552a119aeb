"""What is sought: an order of F, I and W of every micro-batch on every rank, as short as can be, under a memory cap.

On each stage micro-batches go in order, forward, backward and in their weight gradients: any order can be relabelled so
without becoming longer or holding more, since micro-batches are alike. A chunk's activations are held from the start of
F to the end of W.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..passes import Order, Pass

Rows = list[
    list[tuple[int, int]]
]  # of each rank, in order: (kind, stage); the n-th of a kind and stage is micro-batch n
F, I, W = 0, 1, 2  # noqa: E741 - kinds, as in the pictures
LETTERS = "FIW"


@dataclass(frozen=True)
class Problem:
    """Stages of a model on ranks, in whole ticks. Times and `send` (over the boundary after it) are by stage."""

    name: str
    pp: int
    micro_batches: int
    forward: tuple[int, ...]
    inputs: tuple[int, ...]
    weights: tuple[int, ...]
    send: tuple[int, ...]
    place: Callable[[int], int]
    cap: int  # chunks whose activations a rank may hold
    tick: int = 1  # that times are counted in

    @property
    def depth(self) -> int:
        """Stages along the model."""
        return len(self.forward)

    @property
    def chunks(self) -> int:
        """Stages a rank."""
        return self.depth // self.pp

    @cached_property
    def home(self) -> tuple[int, ...]:
        """The rank of each stage."""
        return tuple(self.place(stage) for stage in range(self.depth))

    @cached_property
    def stages(self) -> tuple[tuple[int, ...], ...]:
        """The stages of each rank, along the model."""
        return tuple(tuple(s for s in range(self.depth) if self.home[s] == r) for r in range(self.pp))

    @cached_property
    def durations(self) -> tuple[tuple[int, ...], ...]:
        """By kind and stage."""
        return (self.forward, self.inputs, self.weights)

    @cached_property
    def hop(self) -> tuple[int, ...]:
        """What a message takes from a stage to the next; nothing inside a rank."""
        inner = range(self.depth - 1)
        return (*(self.send[s] if self.home[s] != self.home[s + 1] else 0 for s in inner), 0)

    def order(self, rows: Sequence[Sequence[tuple[int, int]]]) -> Order:
        """The order that rows mean."""
        made = []
        for row in rows:
            count: dict[tuple[int, int], int] = {}
            passes = []
            for each in row:
                number = count.get(each, 0)
                count[each] = number + 1
                passes.append(Pass(LETTERS[each[0]], each[1], number))  # type: ignore[arg-type]
            made.append(tuple(passes))
        return Order(self.name, tuple(made), self.depth, self.micro_batches, self.place)


# --- what no order can be shorter than -------------------------------------------------------------------------------


def least(problem: Problem) -> int:
    """A makespan that no order under the cap goes below: of each rank, and of one micro-batch alone."""
    bounds = (_filled, _drained, _crowded)
    return max(alone(problem), *(bound(problem, r) for bound in bounds for r in range(problem.pp)))


def alone(problem: Problem) -> int:
    """One micro-batch by itself: down the model, back, and the last weight gradient."""
    return sum(problem.forward) + sum(problem.inputs) + 2 * sum(problem.hop) + problem.weights[0]


def _work(problem: Problem, rank: int) -> int:
    return problem.micro_batches * sum(kind[s] for kind in problem.durations for s in problem.stages[rank])


def _filled(problem: Problem, rank: int) -> int:
    """A rank starts when the first micro-batch reaches it; until one is back, it does forward passes under the cap."""
    stages = problem.stages[rank]
    first, last = stages[0], stages[-1]
    reached = sum(problem.forward[:first]) + sum(problem.hop[:first])
    back = sum(problem.forward) + sum(problem.hop) + sum(problem.inputs[last + 1 :]) + sum(problem.hop[last:])
    most = min(problem.cap, problem.micro_batches * len(stages))
    until = sum(sorted((problem.forward[s] for s in stages for _ in range(problem.micro_batches)), reverse=True)[:most])
    return _work(problem, rank) + max(reached, back - until)


def _drained(problem: Problem, rank: int) -> int:
    """After its last input gradient that goes on, a rank may have as many weight gradients left as the cap allows."""
    stages = problem.stages[rank]
    first = stages[0]
    if first == 0:
        return 0
    reached = sum(problem.forward[:first]) + sum(problem.hop[:first])
    held = sorted((problem.weights[s] for s in stages for _ in range(problem.micro_batches)), reverse=True)
    left = sum(held[: problem.cap])
    home = sum(problem.inputs[:first]) + sum(problem.hop[:first]) + problem.weights[0]
    return reached + _work(problem, rank) + max(0, home - left)


def _crowded(problem: Problem, rank: int) -> int:
    """Chunks are held at least for the way to the head and back: all of them, over those that are held at once."""
    out, back, whole = 0, 0, 0
    for stage in range(problem.depth - 1, -1, -1):
        out += problem.forward[stage] + problem.hop[stage]
        back += problem.inputs[stage] + problem.hop[stage]
        if problem.home[stage] == rank:
            whole += out + back + problem.weights[stage]
    return -(-problem.micro_batches * whole // problem.cap)
