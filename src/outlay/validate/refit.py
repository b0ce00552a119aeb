"""The constants of the tables that rest on published steps, fitted again on some of these steps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..layout.case import Case
from .constants import Together, values_at
from .fit import LIMIT
from .shared_constants import Basis, Shared, Values, bases, counted, value_in
from .solve import Residuals, Solution, Vector, fixed, slopes_of, solve

GUESS = 6  # iterations of a fit, to say how long it will take
GAIN = 0.001  # a move that makes the squares of errors less by this share, or by a smaller one, ends a fit
Report = Callable[[int, int], None]  # steps counted, and about how many in all
NO_ROW = "no row that is fitted has it"


@dataclass(frozen=True)
class Measured:
    """One published step that is scored, its case, and what the tables predict."""

    facts: str  # the name of its source
    model: str
    tier: int
    composed: bool  # its time adds up from profiled parts
    seconds: float
    predicted: float
    case: Case
    siblings: str

    @property
    def error(self) -> float:
        """Error of the tables: predicted / measured - 1."""
        return self.predicted / self.seconds - 1


@dataclass(frozen=True)
class Moved:
    """One constant that was fitted again."""

    of: str
    name: str
    basis: str
    rows: int  # that its basis was fitted on
    shipped: float
    value: float
    loose: float  # standard error, a share of the value; 0 where it was not fitted
    held: str = ""  # why it stays where it was


@dataclass(frozen=True)
class Refit:
    """Values of constants that some rows give, and the counts under them."""

    values: Values
    moved: tuple[Moved, ...]
    shared: tuple[Shared, ...]

    def predicted(self, row: Measured) -> float:
        """Seconds of a step under them."""
        standing = [each for each in self.shared if each.stands_in(row.case)]
        return counted(row.case, standing, self.values) if standing else row.predicted


@dataclass
class Counter:
    """Steps counted so far, and about how many in all."""

    report: Report | None = None
    total: int = 0
    done: int = 0

    def __call__(self, steps: int = 1) -> None:
        self.done += steps
        if self.report:
            self.report(self.done, max(self.total, self.done))


@dataclass(frozen=True)
class _Work:
    """The rows of one basis, and the constants that stand in the count of each."""

    rows: tuple[Measured, ...]
    shared: tuple[tuple[Shared, ...], ...]  # of each row: those of this basis and of those before
    before: Values
    count: Counter
    seen: dict[tuple[object, ...], float] = field(default_factory=dict)

    def residuals(self, groups: Sequence[Together]) -> Residuals:
        """log(predicted / measured) of every row, at the logarithms of the constants."""

        def found(at: Vector) -> Vector:
            values = {**self.before, **values_at(groups, list(at))}
            return np.array([self._error(index, values) for index in range(len(self.rows))])

        return found

    def _error(self, index: int, values: Values) -> float:
        """A count is made once for each set of values that the row's own constants have."""
        row, shared = self.rows[index], self.shared[index]
        mine = {key: values[key] for each in shared for name in each.names if (key := (each.of, name)) in values}
        known = (index, *mine.values())
        if known not in self.seen:
            self.count()
            self.seen[known] = float(np.log(counted(row.case, shared, mine) / row.seconds))
        return self.seen[known]


def refitted(rows: Sequence[Measured], count: Counter) -> Refit:
    """Every constant that rests on published steps, fitted again on some rows. Ctrl-C is raised.

    A constant that the rows do not fix stays as it is, and says so.
    """
    values: dict[tuple[str, str], float] = {}
    moved: list[Moved] = []
    before: list[Shared] = []
    for basis in bases():
        mine = tuple(row for row in rows if basis.holds(row.facts, row.model, row.case))
        before += basis.constants
        found, said = _solved(basis, mine, tuple(before), values, count)
        values |= found
        moved += said
    return Refit(values, tuple(moved), tuple(before))


def guess(rows: Sequence[Measured]) -> int:
    """About how many steps a fit on some rows counts."""
    found = 0
    for basis in bases():
        for row in rows:
            if basis.holds(row.facts, row.model, row.case):
                found += 1 + GUESS * (1 + sum(each.stands_in(row.case) for each in basis.constants))
    return found


def _solved(
    basis: Basis, rows: tuple[Measured, ...], shared: tuple[Shared, ...], before: Values, count: Counter
) -> tuple[dict[tuple[str, str], float], list[Moved]]:
    """The values of the constants of one basis, and what is said of each.

    What rows fix is judged at the start, and again where the first fit ends: a start that is far off misjudges it.
    """
    cases = {each: next((row.case for row in rows if each.stands_in(row.case)), None) for each in basis.constants}
    every = {each: each.sought(case) for each, case in cases.items() if case}
    work = _Work(rows, tuple(tuple(each for each in shared if each.stands_in(row.case)) for row in rows), before, count)
    groups, held = _determined(work, tuple(every.values()))
    solution = _solve(work, groups, np.zeros(len(groups)))
    loose = {group: float(error) for group, error in zip(groups, solution.loose, strict=True) if error > LIMIT}
    if loose:
        held |= loose
        start = [step for group, step in zip(groups, solution.at, strict=True) if group not in loose]
        groups = tuple(group for group in groups if group not in loose)
        solution = _solve(work, groups, np.array(start))
    values = values_at(groups, list(solution.at))
    errors = dict(zip(groups, map(float, solution.loose), strict=True))
    said = []
    for each, case in cases.items():
        group = every.get(each, ())
        why = "" if group in errors else f"rows leave it loose by {_size(held[group])}" if case else NO_ROW
        for name in each.names:
            shipped = value_in(case, name) if case else 0.0
            value = values.get((each.of, name), shipped)
            said.append(Moved(each.of, name, basis.name, len(rows), shipped, value, errors.get(group, 0.0), why))
    return values, said


def _solve(work: _Work, groups: tuple[Together, ...], start: Vector) -> Solution:
    found = solve(work.residuals(groups), start, GAIN)
    if found.stopped:
        raise KeyboardInterrupt
    return found if found.slopes.size else replace(found, slopes=np.zeros((found.residuals.size, len(groups))))


def _size(loose: float) -> str:
    return f"{100 * loose:.0f} %" if loose < 1 else "any amount"


def _determined(work: _Work, every: tuple[Together, ...]) -> tuple[tuple[Together, ...], dict[Together, float]]:
    """The constants that rows fix, and how loose they leave the others: the loosest is held first."""
    if not every:
        return (), {}
    residuals, at = work.residuals(every), np.zeros(len(every))
    slopes = slopes_of(residuals, at, residuals(at))
    left = {group: slopes[:, index] for index, group in enumerate(every)}
    held: dict[Together, float] = {}
    while left:
        errors = dict(zip(left, fixed(list(left.values())), strict=True))
        worst = max(errors, key=lambda group: errors[group])
        if errors[worst] <= LIMIT and len(left) < len(work.rows):
            break
        held[worst] = float(errors[worst])
        del left[worst]
    return tuple(left), held
