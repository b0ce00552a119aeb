"""A third of the configurations is held out while the constants that rest on published steps are fitted again.

Errors are given of both sides, under the tables and under the fit. Each third is held out in turn, so that every step
is judged by fits that saw it and by one that did not: the gap between the two is over-fitting, whatever the steps are.
"""

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Protocol

import numpy as np

from ..bill import case_of
from ..errors import Fault, InputError
from .predict import compare_run, read_all
from .refit import Counter, Measured, Moved, Report, guess, refitted
from .row import Row
from .shared_constants import bases
from .siblings import THIRDS, siblings_of, third_of
from .solve import Vector
from .summary import FEW
from .table import entries
from .tiers import same_runs


class Fitted(Protocol):
    """What a fit gives: a time for any step, and which constants it moved."""

    @property
    def moved(self) -> tuple[Moved, ...]:
        """The constants that it moved, or would have."""
        ...

    def predicted(self, row: Measured) -> float:
        """Seconds of a step."""
        ...


@dataclass(frozen=True)
class Figures:
    """Errors predicted / measured - 1 of some steps."""

    rows: int
    mean: float  # without their signs
    bias: float


@dataclass(frozen=True)
class Group:
    """The steps of a tier, or of one of its sources, with the first third held out, and with each in turn."""

    tier: int
    name: str
    source: bool  # else the tier, or a part of it
    rested: bool  # whether a constant rests on some of them
    tables_fitted: Figures | None  # under the tables, of the steps that are fitted; None where there are none
    tables_held: Figures | None  # of those held out
    fitted: Figures | None  # under the fit without the first third
    held: Figures | None
    tables: Figures  # of all steps
    seen: Figures  # each under the fits that saw it
    unseen: Figures  # each under the fit that did not

    @property
    def gap(self) -> float:
        """How much more steps are off where their fit has not seen them: over-fitting."""
        return self.unseen.mean - self.seen.mean


@dataclass(frozen=True)
class Constant:
    """One constant of the tables, and what it is without each third."""

    of: str
    name: str
    basis: str
    shipped: float
    values: tuple[float | None, ...]  # without each third; None where it was not fitted
    loose: tuple[float, ...]  # standard errors, shares of the values; 0 where it was not fitted
    held: tuple[str, ...]  # why it was not, for each third


@dataclass(frozen=True)
class HoldOut:
    """What a hold-out says of the tables."""

    configurations: int
    thirds: tuple[int, ...]  # steps in each
    groups: tuple[Group, ...]
    constants: tuple[Constant, ...]
    left: tuple[dict[str, object], ...]  # other constants that rest on runs, and why they are not fitted again


def hold_out_files(
    paths: Sequence[str | PathLike[str]], reading: Report | None = None, fitting: Report | None = None
) -> HoldOut:
    """Hold out the scored steps of some files. `reading` is called after each row, `fitting` after each counted step.

    Raises InputError for a file that cannot be read, and where no configuration is scored in some third (VAL004).
    """
    return hold_out(measured_steps(paths, reading), refitted, fitting)


def measured_steps(paths: Sequence[str | PathLike[str]], report: Report | None = None) -> tuple[Measured, ...]:
    """The scored steps of some files, each run once."""
    runs, _ = read_all(paths)
    rows: list[Row] = []
    cases = []
    for done, run in enumerate(runs, 1):
        row, bill = compare_run(run)
        if bill and row.step_time_tier:
            rows.append(row)
            cases.append(case_of(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)[0])
        if report:
            report(done, len(runs))
    again = same_runs(rows)
    return tuple(
        Measured(
            row.facts, row.model, row.step_time_tier, row.step_time_composed,
            row.measured_step_time_s or 0.0, row.predicted_step_time_s or 0.0, case, siblings_of(case),
        )
        for place, (row, case) in enumerate(zip(rows, cases, strict=True)) if place not in again
    )  # fmt: skip


def hold_out(
    rows: Sequence[Measured],
    fit: Callable[[Sequence[Measured], Counter], Fitted] = refitted,
    report: Report | None = None,
) -> HoldOut:
    """Hold out each third of some steps in turn. Raises InputError (VAL004) where a third has none."""
    thirds = np.array([third_of(row.siblings) for row in rows], int)
    sizes = tuple(int((thirds == third).sum()) for third in range(THIRDS))
    if not all(sizes):
        rule = f"each of {THIRDS} thirds of the configurations has a step time that is scored"
        got = f"{len(rows)} scored steps, {', '.join(map(str, sizes))} in the thirds"
        fix = "more files of published runs; outlay validate FILE.csv says which steps are scored"
        raise InputError(Fault("VAL004", "there is nothing to hold out", rule, got, fix))
    parts = [[row for row, of in zip(rows, thirds, strict=True) if of != third] for third in range(THIRDS)]
    count = Counter(report, sum(map(guess, parts)) + THIRDS * len(rows))
    if report:
        report(0, count.total)
    fits = [fit(part, count) for part in parts]
    errors = np.array([[_error(one, row, count) for row in rows] for one in fits])
    left = tuple(dict(entry) for entry in entries("fitted.toml", "left"))
    groups = tuple(_group(rows, thirds, errors, *one) for one in _names(rows))
    return HoldOut(len({row.siblings for row in rows}), sizes, groups, tuple(_constants(fits)), left)


def _error(fit: Fitted, row: Measured, count: Counter) -> float:
    count()
    return fit.predicted(row) / row.seconds - 1


def _names(rows: Sequence[Measured]) -> Iterator[tuple[int, str, bool, Vector]]:
    """Each tier, what was measured as a whole, and its sources, with the places of their steps; few are one group."""
    for tier in (1, 2):
        places = [place for place, row in enumerate(rows) if row.tier == tier]
        whole = [place for place in places if not rows[place].composed]
        names = Tally(rows[place].facts for place in places)
        groups = [(f"tier {tier}", False, places)]
        groups += [(f"tier {tier}, measured as a whole", False, whole)] if len(whole) < len(places) else []
        groups += [
            (name, True, [place for place in places if rows[place].facts == name])
            for name, size in names.most_common() if size >= FEW
        ]  # fmt: skip
        groups.append((f"sources under {FEW} rows", True, [at for at in places if names[rows[at].facts] < FEW]))
        yield from ((tier, name, source, np.array(found, int)) for name, source, found in groups if found)


def _group(
    rows: Sequence[Measured], thirds: Vector, errors: Vector, tier: int, name: str, source: bool, places: Vector
) -> Group:
    """The figures of some steps. `errors` has a line a fit, a column a step."""
    tables = np.array([rows[place].error for place in places])
    of, mine = thirds[places], errors[:, places]
    out = of == 0
    unseen = mine[of, np.arange(places.size)]
    seen = np.concatenate([mine[third][of != third] for third in range(THIRDS)])
    rested = any(
        basis.holds(row.facts, row.model, row.case) for row in (rows[at] for at in places) for basis in bases()
    )
    return Group(
        tier, name, source, rested, _figures(tables[~out]), _figures(tables[out]),
        _figures(mine[0][~out]), _figures(mine[0][out]), _sure(tables), _sure(seen, places.size), _sure(unseen),
    )  # fmt: skip


def _figures(errors: Vector) -> Figures | None:
    return _sure(errors) if errors.size else None


def _sure(errors: Vector, rows: int = 0) -> Figures:
    return Figures(rows or int(errors.size), float(np.abs(errors).mean()), float(errors.mean()))


def _constants(fits: Iterable[Fitted]) -> Iterator[Constant]:
    """Each constant, as every fit has it."""
    for same in zip(*(fit.moved for fit in fits), strict=True):
        first = same[0]
        values = tuple(None if each.held else each.value for each in same)
        shipped = max(each.shipped for each in same)  # 0 where no fitted step has it
        loose, held = tuple(each.loose for each in same), tuple(each.held for each in same)
        yield Constant(first.of, first.name, first.basis, shipped, values, loose, held)
