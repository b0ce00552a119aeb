"""Measured runs made ready for a fit: each row's question is read once, and only its step is counted again."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from os import PathLike
from pathlib import Path

from ..bill import Bill, case_of, load
from ..engines.profile import Profile
from ..engines.profiled import profiled
from ..errors import Fault, InputError
from ..layout.case import Case
from ..step.total import step_seconds
from .predict import compare_run
from .read import Run, read

LEAST = 3  # rows


@dataclass(frozen=True)
class FitRow:
    """One measured step with its case, and the group of rows that it stays with."""

    file: str
    line: int
    seconds: float  # measured
    case: Case
    layout: str  # alike in rows that differ in batch and in the number of accelerators alone

    def predicted(self, profile: Profile) -> float:
        """Seconds of the step under a profile."""
        cluster, engine = profiled(profile, self.case.cluster, self.case.engine)
        loaded = load(replace(self.case, cluster=cluster, engine=engine))
        return float(step_seconds(loaded.stages, loaded.whole, loaded.case))

    @property
    def place(self) -> bytes:
        """A number by which layouts are put in an order that says nothing of them."""
        return sha256(self.layout.encode()).digest()


def fit_rows(
    paths: Sequence[str | PathLike[str]], profile: Profile | None = None, engine: str = ""
) -> tuple[tuple[FitRow, ...], tuple[str, ...]]:
    """The rows that can be fitted on, and why others cannot. Raises InputError (FIT001, FIT002).

    They are rows of one accelerator and one engine that `outlay validate` compares by time, each case once.
    """
    rows: list[FitRow] = []
    left: Counter[str] = Counter()
    seen: set[tuple[object, ...]] = set()
    for run in (run for path in paths for run in read(path)):
        row, bill = compare_run(run, profile, engine)
        if bill is None or row.measured_step_time_s is None:
            left[row.reason or "no step time"] += 1
        elif row.reason:
            left[f"breaks {row.reason.partition(' ')[0]}"] += 1
        else:
            made = _row(run, row.measured_step_time_s, bill)
            again = (made.layout, made.seconds, bill.cluster.name, bill.job.global_batch)
            left["an earlier row's case and time again"] += again in seen
            rows += [] if again in seen else [made]
            seen.add(again)
    _check(rows, left)
    return tuple(rows), tuple(f"{count} rows left out: {why}" for why, count in left.most_common() if count)


def _row(run: Run, seconds: float, bill: Bill) -> FitRow:
    case, _ = case_of(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)
    of = bill.layout
    alike = (
        run.text("model"), bill.job.sequence_length, bill.job.precision, of.tp, of.pp, of.vpp, of.cp, of.ep, of.etp,
        of.zero, of.micro_batch, of.recompute, of.recompute_layers,
    )  # fmt: skip
    return FitRow(run.file, run.line, seconds, case, repr(alike))


def _check(rows: Sequence[FitRow], left: Counter[str]) -> None:
    kinds = Counter(f"{row.case.cluster.accelerator.name} under {row.case.engine.name}" for row in rows)
    if len(kinds) > 1:
        rule = "a profile is of one accelerator and one engine"
        got = ", ".join(f"{count} rows of {name}" for name, count in kinds.most_common(4))
        fix = "a file with the rows of one of them; --engine NAME where the source of rows is not known"
        raise InputError(Fault("FIT002", "the rows are of several accelerators or engines", rule, got, fix))
    if len(rows) < LEAST:
        rule = (
            f"a fit takes {LEAST} rows or more with a step time; 6 to 10 that span sequence length fix every constant"
        )
        why = "; ".join(f"{count} left out: {reason}" for reason, count in left.most_common(2))
        got = f"{len(rows)} rows" + (f"; {why}" if why else "")
        raise InputError(Fault("FIT001", "there are too few rows to fit on", rule, got, "measure more steps"))


def sides(rows: Sequence[FitRow]) -> tuple[tuple[FitRow, ...], tuple[FitRow, ...]]:
    """Rows to fit on, and rows that are held out: none of fewer than 12, else the third whose hashes come first.

    Rows of one layout are on one side.
    """
    if len(rows) < 12:
        return tuple(rows), ()
    groups = sorted({row.layout: row.place for row in rows}.items(), key=lambda each: each[1])
    held: set[str] = set()
    for layout, _ in groups:
        more = sum(row.layout in held or row.layout == layout for row in rows)
        if more <= len(rows) / 3:
            held.add(layout)
    fitted = tuple(row for row in rows if row.layout not in held)
    return fitted, tuple(row for row in rows if row.layout in held)


def named(rows: Sequence[FitRow]) -> str:
    """Files and lines of rows, in a line."""
    files: dict[str, list[int]] = {}
    for row in rows:
        files.setdefault(Path(row.file).name, []).append(row.line)
    return "; ".join(f"{file} lines {', '.join(map(str, sorted(lines)))}" for file, lines in files.items())
