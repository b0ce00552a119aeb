"""Every row of measured runs against what count() says of it: step time, peak memory, or why it was not compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from os import PathLike

from ..bill import Bill, count
from ..cluster.accelerator import Cluster
from ..engines.engine import Engine
from ..engines.profile import Profile
from ..engines.profiled import profiled
from ..engines.tables import engine as find_engine
from ..errors import Fault, InputError, OutlayError
from ..holding import at_allocator
from ..quantities import GIB
from .question import question_of
from .ranks import CasePeak, Counted, Reading, case_of, is_ranks, joined, readings_of
from .read import Run, Skip, runs_of, table_of
from .row import Row
from .score import repeats
from .summary import Summary, summarise, summarise_cases
from .table import UNITS, Source, accelerator_of, source_of
from .tiers import same_runs, tier_of

LEFT_OUT = "published"  # in the reason of a row whose table leaves something out
Span = tuple[float, float]
Report = Callable[[int, int], None]  # rows done, rows in all


@dataclass(frozen=True)
class Validation:
    """All rows of all files, and their errors together."""

    files: tuple[str, ...]
    rows: tuple[Row, ...]
    total: int  # rows in the files
    notes: tuple[str, ...] = ()  # what was assumed of sources that are not known
    summary: tuple[Summary, ...] = field(default=())
    cases: tuple[CasePeak, ...] = field(default=())  # of readings rank by rank
    profile: str = ""  # whose constants stood in place of the catalogue's

    @property
    def compared(self) -> tuple[Row, ...]:
        """The rows that were compared."""
        return tuple(row for row in self.rows if row.status == "compared")

    @property
    def complete(self) -> int:
        """The rows whose table says all that a count needs: those compared, and those skipped for another reason."""
        return sum(row.status == "compared" or LEFT_OUT not in row.reason for row in self.rows)

    @property
    def stopped(self) -> bool:
        """Whether rows are missing, because the comparison was stopped."""
        return len(self.rows) < self.total


def compare_files(
    paths: Sequence[str | PathLike[str]],
    report: Report | None = None,
    profile: Profile | None = None,
    engine: str = "",
) -> Validation:
    """Compare every row of some files with count(). `report` is called after each row. Ctrl-C keeps what is done.

    `profile` holds constants in place of the catalogue's; rows of another accelerator than its own are skipped.
    `engine` is that of rows whose source is not known.
    Raises InputError for a file that cannot be read; a row that cannot be used is skipped with its reason.
    """
    runs, readings = read_all(paths)
    rows: list[Row] = []
    counted: Counted = {}
    try:
        for run in runs:
            row, bill = compare_run(run, profile, engine)
            rows.append(row)
            if case_of(run):
                counted[case_of(run)] = run, bill or row.reason
            if report:
                report(len(rows), len(runs))
    except KeyboardInterrupt:
        pass
    again, same = repeats(rows), same_runs(rows)
    rows = [_with(row, **again.get(place, {}), **same.get(place, {})) for place, row in enumerate(rows)]
    cases = joined(readings, counted)
    summary = (*summarise(rows), *summarise_cases(cases))
    named = profile.name if profile else ""
    return Validation(tuple(map(str, paths)), tuple(rows), len(runs), _notes(runs), summary, cases, named)


def read_all(paths: Sequence[str | PathLike[str]]) -> tuple[list[Run], list[Reading]]:
    """The rows of all files, and the readings rank by rank; the faults of all files at once."""
    runs: list[Run] = []
    readings: list[Reading] = []
    faults: list[Fault] = []
    for path in paths:
        try:
            header, rows = table_of(path)
            if is_ranks(header):
                readings += readings_of(path, header, rows)
            else:
                runs += runs_of(path, header, rows)
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    return runs, readings


def _notes(runs: Sequence[Run]) -> tuple[str, ...]:
    """A source that is not known is read by a convention, and the output says so."""
    unknown = sorted({run.text("source") or "(blank)" for run in runs if not source_of(run.cells).known})
    return tuple(f"source {name} is not known: memory read as GiB, FLOPs with full attention" for name in unknown)


def compare_run(run: Run, profile: Profile | None = None, engine: str = "") -> tuple[Row, Bill | None]:
    """One row, compared with its bill, or skipped with its reason."""
    source = source_of(run.cells)
    source = source if source.known or not engine else replace(source, engine=engine)
    source_name, model, accelerator, precision = map(run.text, ("source", "model", "accelerator", "precision"))
    plain = Row(run.file, run.line, source_name, model, accelerator, precision, "skipped", facts=source.name)
    printed = run.number("peak_mem_gb")
    if printed and not run.fault:
        known = {"measured_peak_mem_gib": printed * UNITS[source.unit] / GIB}
        plain = _with(plain, **known, memory_is="" if source.skip else f"{source.unit}, {source.level}")
    try:
        return _compared(plain, run, source, profile)
    except Skip as skip:
        return _with(plain, reason=str(skip)), None
    except (OutlayError, ArithmeticError) as error:  # absurd sizes overflow, and are no reason to stop
        return _with(plain, reason=f"cannot be counted: {error}"), None


def _with(row: Row, **changes: object) -> Row:
    return Row(**(vars(row) | changes))


def _compared(plain: Row, run: Run, source: Source, profile: Profile | None) -> tuple[Row, Bill]:
    asked = question_of(run, source)
    if not any(run.number(column) for column in MEASURED):
        raise Skip("neither time nor memory published")
    where, driver = _under(profile, asked.cluster, asked.engine)
    driver = _without_waits(driver) if source.composed else driver
    bill = count(asked.model, asked.job, where, asked.layout, driver)
    if not isfinite(bill.step.seconds + bill.memory.peak_bytes):
        raise Skip("the counts are beyond any number")
    seconds, columns = measured_seconds(run, source, bill)
    untimed = accelerator_of(run.text("accelerator")).untimed
    seconds = 0.0 if untimed else seconds
    if not seconds and not run.number("peak_mem_gb"):
        raise Skip(untimed or "global batch not published: a rate gives no time of a step")
    broken = "; ".join(f"{violation.code} {violation.what} ({violation.got})" for violation in bill.violations)
    row = _with(
        plain, status="compared", reason=broken, engine=bill.engine.name, precision=bill.job.precision,
        accelerator=bill.cluster.accelerator.name, assumed=asked.assumed, layout=_layout_words(bill),
    )  # fmt: skip
    row = _timed(row, run, source, bill, seconds, columns) if seconds else row
    return _remembered(row, run, source, bill), bill


def _layout_words(bill: Bill) -> str:
    """What was counted, in a few words: accelerators, the degrees above one, schedule, micro-batch."""
    at = bill.layout
    degrees = (f"{axis} {getattr(at, axis):g}" for axis in AXES if getattr(at, axis) > 1)
    again = () if at.recompute == "none" else (f"recompute {at.recompute}",)
    order = (at.schedule,) if at.pp > 1 else ()
    return " ".join((f"{bill.cluster.ranks} cards", *degrees, *order, f"mbs {at.micro_batch:g}", *again))


def _timed(row: Row, run: Run, source: Source, bill: Bill, seconds: float, columns: str) -> Row:
    """The row with its step time, and the tier that it is scored in."""
    low, high = bill.step.band_seconds
    counted = {
        "accelerator": bill.cluster.accelerator.name,
        "precision": bill.job.precision,
        "model": "experts" if bill.model.experts else "dense",
    }
    tier, why = tier_of(run, source, counted)
    return _with(
        row, time_from=columns, measured_step_time_s=seconds, predicted_step_time_s=bill.step.seconds,
        step_time_error=bill.step.seconds / seconds - 1, step_time_in_band=low <= seconds <= high,
        step_time_tier=tier, step_time_unscored=why, step_time_composed=source.composed,
    )  # fmt: skip


def _without_waits(driver: str | Engine) -> Engine:
    """The engine as a sum of profiled parts sees it: nothing between steps, and no rank waits for another."""
    engine = find_engine(driver) if isinstance(driver, str) else driver
    return replace(engine, step_seconds=0.0, straggler_share=0.0, rank_skew_seconds=0.0)


def _under(profile: Profile | None, cluster: Cluster, name: str) -> tuple[Cluster, str | Engine]:
    """Cluster and engine of a row, with the constants of a profile. Raises Skip for another accelerator."""
    if profile is None:
        return cluster, name
    if cluster.accelerator.name != profile.accelerator:
        raise Skip(f"{cluster.accelerator.name}: profile {profile.name} is of {profile.accelerator}")
    return profiled(profile, cluster, find_engine(name))


def _remembered(row: Row, run: Run, source: Source, bill: Bill) -> Row:
    """The row with its peak memory, at the level that the source reads."""
    printed = run.number("peak_mem_gb")
    if not printed:
        return row
    measured, half = printed * UNITS[source.unit], run.half("peak_mem_gb") * UNITS[source.unit]
    predicted, (low, high) = memory_at(source.level, bill, source.loading)
    score = "" if source.not_scored else "device" if source.level == "nvidia-smi" else "allocator"
    return _with(
        row, predicted_peak_mem_gib=predicted / GIB, peak_mem_error=predicted / measured - 1,
        peak_mem_in_band=low - half <= measured <= high + half, peak_mem_score=score,
        peak_mem_unscored=source.not_scored,
    )  # fmt: skip


AXES = ("tp", "cp", "pp", "vpp", "ep", "etp", "dp_replicate", "dp_shard")
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


def memory_at(level: str, bill: Bill, loading: bool = False) -> tuple[float, Span]:
    """Peak memory and its band at the level that a source reads.

    `allocated` is what tensors hold; the band leaves room for the least workspace. `reserved` is that and what the
    allocator keeps beyond it. `nvidia-smi` is all of the card. With `loading` the reading is of the whole run, so that
    it is what stands while the weights are loaded where that is more.
    """
    memory = bill.memory
    if level == "nvidia-smi":
        context = bill.cluster.accelerator.context_bytes
        low, high = memory.peak_band_bytes
        return memory.device_bytes, (low + context, high + context)
    loaded = (bill.loading.accelerator_bytes or 0.0) if loading and bill.loading else 0.0
    return at_allocator(level, memory, bill.engine, loaded)
