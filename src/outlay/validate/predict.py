"""Every row of measured runs against what count() says of it: step time, peak memory, or why it was not compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from os import PathLike
from typing import Literal

from ..bill import Bill, count
from ..errors import Fault, InputError, OutlayError
from ..quantities import GIB
from .question import question_of
from .read import Run, Skip, read
from .summary import Summary, summarise
from .table import UNITS, Source, source_of

Span = tuple[float, float]
Report = Callable[[int, int], None]  # rows done, rows in all


@dataclass(frozen=True)
class Row:
    """One row of a file: what was measured, what is predicted, and the signed error predicted / measured - 1."""

    file: str
    line: int
    source: str
    model: str
    accelerator: str
    precision: str
    status: Literal["compared", "skipped"]
    reason: str = ""  # why it was skipped; of a compared row, the rules that it breaks
    measured_step_time_s: float | None = None
    predicted_step_time_s: float | None = None
    step_time_error: float | None = None
    step_time_in_band: bool | None = None
    measured_peak_mem_gib: float | None = None
    predicted_peak_mem_gib: float | None = None
    peak_mem_error: float | None = None
    peak_mem_in_band: bool | None = None
    time_from: str = ""  # the columns that the measured time is from
    memory_is: str = ""  # unit and level of the measured memory
    engine: str = ""
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Validation:
    """All rows of all files, and their errors together."""

    files: tuple[str, ...]
    rows: tuple[Row, ...]
    total: int  # rows in the files
    notes: tuple[str, ...] = ()  # what was assumed of sources that are not known
    summary: tuple[Summary, ...] = field(default=())

    @property
    def compared(self) -> tuple[Row, ...]:
        """The rows that were compared."""
        return tuple(row for row in self.rows if row.status == "compared")

    @property
    def stopped(self) -> bool:
        """Whether rows are missing, because the comparison was stopped."""
        return len(self.rows) < self.total


def compare_files(paths: Sequence[str | PathLike[str]], report: Report | None = None) -> Validation:
    """Compare every row of some files with count(). `report` is called after each row. Ctrl-C keeps what is done.

    Raises InputError for a file that cannot be read; a row that cannot be used is skipped with its reason.
    """
    runs = _read_all(paths)
    rows: list[Row] = []
    try:
        for run in runs:
            rows.append(compare_run(run))
            if report:
                report(len(rows), len(runs))
    except KeyboardInterrupt:
        pass
    return Validation(tuple(map(str, paths)), tuple(rows), len(runs), _notes(runs), summarise(rows))


def _read_all(paths: Sequence[str | PathLike[str]]) -> list[Run]:
    """The rows of all files; the faults of all files at once."""
    runs: list[Run] = []
    faults: list[Fault] = []
    for path in paths:
        try:
            runs += read(path)
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    return runs


def _notes(runs: Sequence[Run]) -> tuple[str, ...]:
    """A source that is not known is read by a convention, and the output says so."""
    unknown = sorted({run.text("source") or "(blank)" for run in runs if not source_of(run.cells).known})
    return tuple(f"source {name} is not known: memory read as GiB, FLOPs with full attention" for name in unknown)


def compare_run(run: Run) -> Row:
    """One row, compared or skipped with its reason."""
    source = source_of(run.cells)
    plain = Row(
        run.file,
        run.line,
        run.text("source"),
        run.text("model"),
        run.text("accelerator"),
        run.text("precision"),
        "skipped",
    )
    try:
        return _compared(plain, run, source)
    except Skip as skip:
        return _with(plain, reason=str(skip))
    except (OutlayError, ArithmeticError) as error:  # absurd sizes overflow, and are no reason to stop
        return _with(plain, reason=f"cannot be counted: {error}")


def _with(row: Row, **changes: object) -> Row:
    return Row(**(vars(row) | changes))


def _compared(plain: Row, run: Run, source: Source) -> Row:
    asked = question_of(run, source)
    if not any(run.number(column) for column in MEASURED):
        raise Skip("neither time nor memory published")
    bill = count(asked.model, asked.job, asked.cluster, asked.layout, asked.engine)
    if not isfinite(bill.step.seconds + bill.memory.peak_bytes):
        raise Skip("the counts are beyond any number")
    seconds, columns = measured_seconds(run, source, bill)
    if not seconds and not run.number("peak_mem_gb"):
        raise Skip("global batch not published: a rate gives no time of a step")
    broken = "; ".join(f"{violation.code} {violation.what} ({violation.got})" for violation in bill.violations)
    row = _with(plain, status="compared", reason=broken, engine=bill.engine.name, precision=bill.job.precision,
                accelerator=bill.cluster.accelerator.name, assumed=asked.assumed)  # fmt: skip
    if seconds:
        low, high = bill.step.band_seconds
        row = _with(
            row, time_from=columns, measured_step_time_s=seconds, predicted_step_time_s=bill.step.seconds,
            step_time_error=bill.step.seconds / seconds - 1, step_time_in_band=low <= seconds <= high,
        )  # fmt: skip
    return _remembered(row, run, source, bill)


def _remembered(row: Row, run: Run, source: Source, bill: Bill) -> Row:
    """The row with its peak memory, at the level that the source reads."""
    printed = run.number("peak_mem_gb")
    if not printed:
        return row
    measured = printed * UNITS[source.unit]
    predicted, (low, high) = memory_at(source.level, bill)
    return _with(
        row, memory_is=f"{source.unit}, {source.level}", measured_peak_mem_gib=measured / GIB,
        predicted_peak_mem_gib=predicted / GIB, peak_mem_error=predicted / measured - 1,
        peak_mem_in_band=low <= measured <= high,
    )  # fmt: skip


MEASURED = ("step_time_s", "derived_step_time_s", "tokens_per_s_per_accel", "tflops_per_accel", "peak_mem_gb")


def measured_seconds(run: Run, source: Source, bill: Bill) -> tuple[float, str]:
    """The measured time of a step and the column it is from; 0 where none is published.

    The printed time, else the one derived from it, else from tokens/s, else from TFLOP/s under the source's convention.
    """
    for column in ("step_time_s", "derived_step_time_s"):
        found = run.number(column)
        if found:
            return found, column
    if run.count("global_batch") is None:
        return 0.0, ""
    tokens, rate = run.number("tokens_per_s_per_accel"), run.number("tflops_per_accel")
    ranks = bill.cluster.ranks
    if tokens:
        return bill.job.global_batch * bill.job.sequence_length / (tokens * ranks), "tokens_per_s_per_accel"
    if rate:
        return source_flops(source, bill) / (rate * 1e12 * ranks), "tflops_per_accel"
    return 0.0, ""


def source_flops(source: Source, bill: Bill) -> float:
    """FLOPs of one step as a source counts them: model FLOPs or 6 a parameter and token, with recompute or without."""
    if source.flops == "6N":
        whole = 6.0 * bill.parameters.active * bill.job.global_batch * bill.job.sequence_length
        return whole * (4 / 3 if source.counts_recompute and bill.layout.recompute == "full" else 1)
    # hfu over mfu is the work with recompute over the work without
    return bill.step.model_flops * (bill.step.hfu / bill.step.mfu if source.counts_recompute else 1)


def memory_at(level: str, bill: Bill) -> tuple[float, Span]:
    """Peak memory and its band at the level that a source reads.

    `reserved` is the whole peak. `allocated` is the peak without its buffers: the slack is not allocated, and
    communication buffers are not the allocator's; the band leaves room for the least workspace. `nvidia-smi` adds the
    driver's context.
    """
    low, high = bill.memory.peak_band_bytes
    if level == "reserved":
        return bill.memory.peak_bytes, (low, high)
    if level == "nvidia-smi":
        context = bill.cluster.accelerator.context_bytes
        return bill.memory.peak_bytes + context, (low + context, high + context)
    held = [item for item in bill.memory.items if item.name != "buffers"]
    low = sum(item.low if item.kind == "modelled" else item.value for item in held)
    high = sum(item.high if item.kind == "modelled" else item.value for item in held)
    return sum(item.value for item in held), (low, high + bill.engine.workspace_low)
