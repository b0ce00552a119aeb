"""A profile from measured steps: which constants they fix, where these end, and how far off the steps then are."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike

import numpy as np

from ..engines.profile import Constant, Profile
from ..errors import Fault, InputError
from ..layout.case import Case
from .constants import ATTENTION, BACK, Together, candidates, placed, trial, values_at
from .fit_rows import FitRow, fit_rows, named, sides
from .solve import Solution, Vector, fixed, slopes_of, solve, without

LIMIT = 0.3  # standard error of a constant's logarithm above which rows do not fix it
GUESS = 6  # iterations of a fit, to say how long it will take
FIXED_BY = {
    BACK: "long and short sequences, with full recompute and without,",
    "elementwise": "small and large models",
    "step_seconds": "steps of a few tenths of a second",
}  # what would fix a constant that rows leave loose
Report = Callable[[int, int], None]  # steps counted, and about how many in all


@dataclass(frozen=True)
class Errors:
    """Errors predicted / measured - 1 of some rows."""

    rows: int
    mean: float  # without their signs
    median: float
    worst: float  # with its sign
    bias: float


@dataclass(frozen=True)
class Fitted:
    """One constant that was fitted."""

    table: str
    name: str
    before: float
    value: float
    loose: float  # standard error, a share of the value
    tied: bool


@dataclass(frozen=True)
class FitError:
    """One row: its error under the fit, and, of a fitted one, the error where the fit is without it."""

    file: str
    line: int
    side: str  # fitted or held out
    measured_step_time_s: float
    predicted_step_time_s: float
    error: float
    error_without: float | None


@dataclass(frozen=True)
class Fit:
    """A fitted profile and what speaks for it."""

    profile: Profile
    fitted: tuple[Fitted, ...]
    rows: tuple[FitError, ...]
    before: Errors  # of all rows, under what stood before
    inside: Errors  # of the rows that were fitted
    left_out: Errors | None  # of the same, each without itself; None where the fit was stopped
    held_out: Errors | None  # of the rows that were kept apart; None where there are none
    said: tuple[str, ...]
    stopped: bool


@dataclass
class _Counter:
    """Steps counted so far."""

    report: Report | None
    total: int
    done: int = 0

    def __call__(self) -> None:
        self.done += 1
        if self.report:
            self.report(self.done, max(self.total, self.done))


@dataclass(frozen=True)
class _Work:
    """What a fit is of."""

    base: Profile
    engine: str
    counted: _Counter

    def residuals(self, rows: Sequence[FitRow], groups: Sequence[Together]) -> Callable[[Vector], Vector]:
        """log(predicted / measured) of rows, at the logarithms of the constants."""

        def found(at: Vector) -> Vector:
            profile = trial(self.base, values_at(groups, list(at)), self.engine)
            return np.array([self.error(row, profile) for row in rows])

        return found

    def error(self, row: FitRow, profile: Profile) -> float:
        self.counted()
        return float(np.log(row.predicted(profile) / row.seconds))


def fit_files(
    paths: Sequence[str | PathLike[str]],
    name: str = "own",
    base: Profile | None = None,
    engine: str = "",
    date: str = "",
    report: Report | None = None,
) -> Fit:
    """Fit the constants that the rows of some files fix. `base` stands where nothing is fitted.

    `report` is called before the first and after each counted step. Ctrl-C keeps the best so far. Raises InputError
    (FIT001, FIT002).
    """
    rows, left = fit_rows(paths, base, engine)
    case = rows[0].case
    start = _start(name, base, case)
    inside, outside = sides(rows)
    every = candidates(inside)
    total = len(inside) * (len(every) + 1) * GUESS + len(rows) + len(inside)
    work = _Work(start, case.engine.name, _Counter(report, total))
    if report:
        report(0, total)
    groups, said, solution = _solved(work, inside, every)
    return _made(work, inside, outside, groups, solution, (*said, *left), date)


def _start(name: str, base: Profile | None, case: Case) -> Profile:
    """What stands where nothing is fitted; constants of another engine than the rows' are left behind."""
    card, engine = case.cluster.accelerator.name, case.engine.name
    kernels = base.kernels if base and base.engine == engine else ()
    return Profile(name, card, base.hardware if base else (), engine if kernels else "", kernels)


def _solved(
    work: _Work, rows: Sequence[FitRow], every: tuple[Together, ...]
) -> tuple[tuple[Together, ...], tuple[str, ...], Solution]:
    """The constants that rows fix, what is held and why, and where the fit ends.

    What rows fix is judged at the start, and again where the first fit ends: a start that is far off misjudges it.
    """
    groups, said = _determined(work, rows, every, np.zeros(len(every)))
    solution = solve(work.residuals(rows, groups), np.zeros(len(groups)))
    if solution.stopped:
        return groups, said, solution
    alone = {each: step for group, step in zip(groups, solution.at, strict=True) for each in group}
    at = np.array([alone.get(each, 0.0) for (each,) in every])
    try:
        better, more = _determined(work, rows, every, at)
    except KeyboardInterrupt:
        return groups, said, replace(solution, stopped=True)
    if set(better) == set(groups):
        return groups, said, solution
    start = np.array([np.mean([alone.get(each, 0.0) for each in group]) for group in better])
    return better, more, solve(work.residuals(rows, better), start)


def _determined(
    work: _Work, rows: Sequence[FitRow], every: tuple[Together, ...], at: Vector
) -> tuple[tuple[Together, ...], tuple[str, ...]]:
    """The constants that rows fix, and what is held. Attention is tied where its directions cannot be told apart."""
    residuals = work.residuals(rows, every)
    slopes = slopes_of(residuals, at, residuals(at))
    left = {group: slopes[:, index] for index, group in enumerate(every)}
    said: list[str] = []
    while left:
        errors = dict(zip(left, fixed(list(left.values())), strict=True))
        loose = {group: error for group, error in errors.items() if error > LIMIT or len(left) >= len(rows)}
        if not loose:
            break
        pair = [group for group in left if len(group) == 1 and group[0].name in (ATTENTION, BACK)]
        if len(pair) == 2 and not loose.keys().isdisjoint(pair):
            left[(*pair[0], *pair[1])] = left.pop(pair[0]) + left.pop(pair[1])
            error = max(errors[group] for group in pair)
            said.append(f"{ATTENTION} and {BACK} tied at the ratio they have: {_why(error, BACK)}")
        else:
            worst = max(loose, key=lambda group: loose[group])
            del left[worst]
            said.append(f"{' and '.join(each.name for each in worst)} held: {_why(loose[worst], worst[-1].name)}")
    if not left:
        rule = "rows that differ in sequence length and size fix the constants that they depend on"
        raise InputError(Fault("FIT001", "these rows fix no constant", rule, "; ".join(said), "measure more steps"))
    return tuple(left), tuple(said)


def _why(error: float, name: str) -> str:
    size = f"{100 * error:.0f} %" if error < 1 else "any amount"
    return f"rows leave it loose by {size}; {FIXED_BY.get(name, 'more rows')} would fix it"


def _made(
    work: _Work,
    inside: tuple[FitRow, ...],
    outside: tuple[FitRow, ...],
    groups: tuple[Together, ...],
    solution: Solution,
    said: tuple[str, ...],
    date: str,
) -> Fit:
    values = values_at(groups, list(solution.at))
    counted = trial(work.base, values, work.engine)
    errors = np.array([work.error(row, counted) for row in inside])
    far = np.array([work.error(row, counted) for row in outside])
    before = np.array([work.error(row, trial(work.base, {}, work.engine)) for row in (*inside, *outside)])
    apart = None if solution.stopped or not groups else _apart(work, inside, groups, solution)
    fitted = _fitted(groups, values, solution)
    source = f"fit over {len(inside)} measured steps, mean error {100 * float(np.abs(np.expm1(errors)).mean()):.1f} %"
    constants = [Constant(each.name, each.value, "measured", source, date, named(inside)) for each in fitted]
    profile = placed(work.base, constants, [each.table for each in fitted], work.engine)
    rows = [*_rows(inside, errors, apart, "fitted"), *_rows(outside, far, None, "held out")]
    of_apart = None if apart is None else _errors(apart)
    held = _errors(far) if outside else None
    return Fit(profile, fitted, tuple(rows), _errors(before), _errors(errors), of_apart, held, said, solution.stopped)


def _apart(work: _Work, rows: Sequence[FitRow], groups: Sequence[Together], solution: Solution) -> Vector:
    """Error of each row where the fit is without it."""
    found = []
    for index, row in enumerate(rows):
        profile = trial(work.base, values_at(groups, list(without(solution, index))), work.engine)
        found.append(work.error(row, profile))
    return np.array(found)


def _fitted(groups: Sequence[Together], values: dict[tuple[str, str], float], solution: Solution) -> tuple[Fitted, ...]:
    loose = solution.loose if solution.slopes.size else np.zeros(len(groups))
    return tuple(
        Fitted(each.table, each.name, each.start, values[each.table, each.name], float(error), len(group) > 1)
        for group, error in zip(groups, loose, strict=True)
        for each in group
    )


def _rows(rows: Sequence[FitRow], errors: Vector, apart: Vector | None, side: str) -> Iterable[FitError]:
    for index, row in enumerate(rows):
        error, other = float(np.expm1(errors[index])), None if apart is None else float(np.expm1(apart[index]))
        yield FitError(row.file, row.line, side, row.seconds, row.seconds * (1 + error), error, other)


def _errors(logarithms: Vector) -> Errors:
    errors = np.expm1(logarithms)
    sizes = np.abs(errors)
    worst = float(errors[int(sizes.argmax())])
    return Errors(int(errors.size), float(sizes.mean()), float(np.median(sizes)), worst, float(errors.mean()))
