"""Orders that are proved the best: a constraint program of every pass, by OR-tools' CP-SAT (the extra `exact`)."""

from collections.abc import Callable
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import Fault, InputError
from .few_ranks import bound
from .problem import F, I, Problem, Rows, W, least
from .timing import timed

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel

SOON = 0.5  # seconds before its time at which it may end by itself
MOST = 6_000  # passes of a problem that is given to it
SETTINGS = {
    "num_workers": 1, "random_seed": 1,  # so that equal input gives equal output
    "cp_model_probing_level": 0, "symmetry_level": 0, "linearization_level": 0,  # they cost more than they find here
}  # fmt: skip

Said = Callable[[int, int], None]  # told of a better makespan and of the bound


class Proved(NamedTuple):
    """What it found: rows, their makespan, and what no order goes below."""

    rows: Rows
    makespan: int
    bound: int
    stopped: bool = False  # by Ctrl-C, before its time


def available() -> bool:
    """Whether OR-tools is installed."""
    from importlib.util import find_spec

    return find_spec("ortools") is not None


def solver() -> Any:
    """OR-tools' module. Raises InputError (SCH051) where it is not installed."""
    if not available():
        rule = "a proof needs OR-tools"
        raise InputError(
            Fault("SCH051", "the order cannot be proved", rule, "not installed", "pip install outlay[exact]")
        )
    from ortools.sat.python import cp_model

    return cp_model


class _Model:
    """The constraint program of a problem: a variable is when a pass starts."""

    def __init__(self, problem: Problem, cp: Any, most: int) -> None:
        self.problem, self.model = problem, cp.CpModel()
        new: CpModel = self.model
        many, depth = range(problem.micro_batches), range(problem.depth)
        self.start = {(k, s, m): new.new_int_var(0, most, "") for k in (F, I, W) for s in depth for m in many}
        self.held: dict[tuple[int, int], Any] = {}  # how long a chunk is held, where that is a variable
        self.makespan = new.new_int_var(least(problem), most, "makespan")
        for (kind, stage, number), start in self.start.items():
            if number:
                before = self.start[kind, stage, number - 1]
                new.add(start >= before + problem.durations[kind][stage])
        for stage in depth:
            for number in many:
                self._chain(stage, number)
            new.add(self.makespan >= self.start[W, stage, many[-1]] + problem.weights[stage])
        for rank in range(problem.pp):
            self._rank(rank, most)
        new.minimize(self.makespan)

    def _chain(self, stage: int, number: int) -> None:
        """What each pass of one stage and micro-batch needs."""
        problem, add, at = self.problem, self.model.add, self.start
        forward, inputs = at[F, stage, number], at[I, stage, number]
        if stage:
            add(forward >= at[F, stage - 1, number] + problem.forward[stage - 1] + problem.hop[stage - 1])
        if stage + 1 < problem.depth:
            add(inputs >= at[I, stage + 1, number] + problem.inputs[stage + 1] + problem.hop[stage])
        else:
            add(inputs >= forward + problem.forward[stage])
        add(at[W, stage, number] >= inputs + problem.inputs[stage])

    def _rank(self, rank: int, most: int) -> None:
        """One pass at a time, and no more chunks held than the cap."""
        problem, new, stages = self.problem, self.model, self.problem.stages[rank]
        many = range(problem.micro_batches)
        busy = [
            new.new_fixed_size_interval_var(self.start[k, s, m], problem.durations[k][s], "")
            for k in (F, I, W) for s in stages for m in many
        ]  # fmt: skip
        new.add_no_overlap(busy)
        if problem.cap >= problem.micro_batches * len(stages):
            return
        if len(stages) == 1:
            for late in many[problem.cap :]:
                freed = self.start[W, stages[0], late - problem.cap] + problem.weights[stages[0]]
                new.add(self.start[F, stages[0], late] >= freed)
            return
        held: list[Any] = []
        for s in stages:
            for m in many:
                begin, last = self.start[F, s, m], self.start[W, s, m]
                size = self.held[s, m] = new.new_int_var(0, most, "")
                held.append(new.new_interval_var(begin, size, last + problem.weights[s], ""))
        new.add_cumulative(held, [1] * len(held), problem.cap)

    def hint(self, rows: Rows) -> None:
        """Start from an order that is known."""
        found = timed(self.problem, rows)
        assert found is not None
        self.model.add_hint(self.makespan, found.makespan)
        ends: dict[tuple[int, int, int], int] = {}
        for row, times in zip(rows, found.ends):
            seen: dict[tuple[int, int], int] = {}
            for (kind, stage), end in zip(row, times):
                number = seen.get((kind, stage), 0)
                seen[kind, stage] = number + 1
                ends[kind, stage, number] = end
        for (kind, stage, number), start in self.start.items():
            self.model.add_hint(start, ends[kind, stage, number] - self.problem.durations[kind][stage])
        for (stage, number), size in self.held.items():
            begin = ends[F, stage, number] - self.problem.forward[stage]
            self.model.add_hint(size, ends[W, stage, number] - begin)

    def rows(self, value: Callable[[Any], int]) -> Rows:
        """The passes of each rank as they start."""
        found: Rows = []
        for stages in self.problem.stages:
            keys = (key for key in self.start if key[1] in stages)
            at = [(value(self.start[key]), key[0], key[1], key[2]) for key in keys]
            found.append([(kind, stage) for _, kind, stage, _ in sorted(at, key=lambda each: (each[0], each[3]))])
        return found


def bounded(problem: Problem, ranks: tuple[int, ...], seconds: float, limits: tuple[int, int]) -> tuple[int, bool]:
    """What no order goes below because of some ranks, as far as that is found in so many seconds; whether stopped.

    `limits` are a bound and a makespan that are known. Raises InputError (SCH051) without OR-tools.
    """
    cp = solver()
    engine = _engine(cp, seconds)
    found, ended = bound(problem, ranks, engine, cp, limits)
    return found, not ended and engine.wall_time < seconds - SOON


def _engine(cp: Any, seconds: float) -> Any:
    engine = cp.CpSolver()
    engine.parameters.max_time_in_seconds = seconds
    for name, value in SETTINGS.items():
        setattr(engine.parameters, name, value)
    return engine


def proved(problem: Problem, rows: Rows, seconds: float, said: Said | None = None, below: int = 0) -> Proved:
    """The best order that is found in so many seconds from one that is known, and what none goes below.

    `below` is such a bound that is known already. Raises InputError (SCH051) without OR-tools. Ctrl-C stops it, and
    keeps what was found.
    """
    cp = solver()
    known = timed(problem, rows)
    assert known is not None
    program = _Model(problem, cp, known.makespan)
    below = max(below, least(problem))
    program.model.add(program.makespan >= below)
    program.hint(rows)
    engine = _engine(cp, seconds)
    status = engine.solve(program.model, _teller(cp, said) if said else None)
    stopped = status != cp.OPTIMAL and engine.wall_time < seconds - SOON
    if status not in (cp.OPTIMAL, cp.FEASIBLE):
        return Proved(rows, known.makespan, below, stopped)
    none = max(below, ceil(engine.best_objective_bound - 1e-6))
    better = program.rows(engine.value)
    again = timed(problem, better)
    if again is None or again.makespan >= known.makespan:
        return Proved(rows, known.makespan, min(none, known.makespan), stopped)
    return Proved(better, again.makespan, min(none, again.makespan), stopped)


def _teller(cp: Any, said: Said) -> Any:
    class Teller(cp.CpSolverSolutionCallback):  # type: ignore[misc]
        def on_solution_callback(self) -> None:
            said(int(self.objective_value), int(self.best_objective_bound))

    return Teller()
