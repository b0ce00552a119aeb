"""Peak memory rank by rank: a file of readings beside a file of runs, joined by the case that a run's remarks name."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal

from ..bill import Bill
from ..errors import InputError
from ..quantities import GIB
from . import words
from .read import Run, number_in, unreadable

RANKS = ("case", "rank", "max_allocated_mib", "max_reserved_mib")
"""The columns of a file of readings, in any order and among others; MiB is 2^20 B."""

MOST_RANKS = 10_000_000
MIB = GIB / 1024


@dataclass(frozen=True)
class Reading:
    """What one rank of one case read: torch's max_memory_allocated and max_memory_reserved."""

    file: str
    line: int
    case: str
    rank: int
    allocated: float  # B
    reserved: float  # B; 0 where it is not published


@dataclass(frozen=True)
class StagePeak:
    """One stage: the most that one of its ranks read, and what is predicted."""

    stage: int
    ranks: int
    measured_allocated_gib: float
    predicted_allocated_gib: float
    allocated_error: float
    allocated_in_band: bool
    measured_reserved_gib: float | None
    predicted_reserved_gib: float
    reserved_error: float | None
    reserved_in_band: bool | None


@dataclass(frozen=True)
class CasePeak:
    """One case: its stages, its worst rank, and how far the worst stage of the bill is from it."""

    file: str
    line: int
    case: str
    status: Literal["compared", "skipped"]
    reason: str = ""
    source: str = ""
    model: str = ""
    worst_rank: int | None = None
    measured_peak_gib: float | None = None
    predicted_peak_gib: float | None = None
    peak_error: float | None = None
    stages: tuple[StagePeak, ...] = ()


def is_ranks(header: Sequence[str]) -> bool:
    """Whether a header is that of readings rank by rank."""
    return all(name in header for name in RANKS)


def readings_of(path: str | PathLike[str], header: list[str], rows: list[tuple[int, list[str]]]) -> list[Reading]:
    """Every reading of a file. Raises InputError (VAL003) for a cell that is not a number above zero."""
    return [_reading(str(path), line, dict(zip(header, row, strict=False))) for line, row in rows]


def _reading(file: str, line: int, cells: Mapping[str, str]) -> Reading:
    allocated, reserved = (_mebibytes(file, line, column, cells.get(column, "")) for column in RANKS[2:])
    text = cells.get("rank", "").strip()
    if not text.isdecimal() or int(text) > MOST_RANKS or not allocated or not cells.get("case", "").strip():
        raise InputError(unreadable(file, f"line {line}: case, rank and max_allocated_mib are needed"))
    return Reading(file, line, cells.get("case", "").strip(), int(text), allocated, reserved)


def _mebibytes(file: str, line: int, column: str, text: str) -> float:
    value, fault = number_in(column, text.strip()) if text.strip() else (0.0, "")
    if fault:
        raise InputError(unreadable(file, f"line {line}: {fault}"))
    return value * MIB


Counted = dict[str, tuple[Run, Bill | str]]  # by case: its run, and its bill or why there is none


def joined(readings: Sequence[Reading], counted: Counted) -> tuple[CasePeak, ...]:
    """Every case of some readings, against the bill of the run that names it."""
    return tuple(_joined(name, found, counted) for name, found in _cases(readings))


def _cases(readings: Sequence[Reading]) -> Iterator[tuple[str, list[Reading]]]:
    for name in dict.fromkeys(reading.case for reading in readings):
        yield name, [reading for reading in readings if reading.case == name]


def _joined(name: str, found: list[Reading], counted: Counted) -> CasePeak:
    first = found[0]
    if name not in counted:
        reason = "no row of the other files has this case (case=NAME in its remarks)"
        return CasePeak(first.file, first.line, name, "skipped", reason)
    run, bill = counted[name]
    known: dict[str, Any] = {"source": run.text("source"), "model": run.text("model")}
    if isinstance(bill, str):
        return CasePeak(first.file, first.line, name, "skipped", f"its row is skipped: {bill}", **known)
    ranks = bill.cluster.ranks
    if sorted(reading.rank for reading in found) != list(range(ranks)):
        reason = f"{len(found):,} readings, not one for each of {ranks:,} ranks"
        return CasePeak(first.file, first.line, name, "skipped", reason, **known)
    worst = max(found, key=lambda reading: reading.allocated)
    predicted = max(one.allocated_bytes for one in bill.memory.ranks)
    return CasePeak(
        first.file, first.line, name, "compared", **known, worst_rank=worst.rank,
        measured_peak_gib=worst.allocated / GIB, predicted_peak_gib=predicted / GIB,
        peak_error=predicted / worst.allocated - 1, stages=tuple(_stages(found, bill)),
    )  # fmt: skip


def _stages(found: list[Reading], bill: Bill) -> Iterator[StagePeak]:
    """The stages of a pipeline, which is the outermost axis: its ranks stand one after the other."""
    alike = bill.cluster.ranks // len(bill.memory.ranks)
    for stage in bill.memory.ranks:
        here = [reading for reading in found if reading.rank // alike == stage.stage]
        allocated, reserved = (max(getattr(each, name) for each in here) for name in ("allocated", "reserved"))
        predicted = stage.allocated_bytes
        kept, low, high = (predicted * (1 + share) for share in slack(bill))
        yield StagePeak(
            stage.stage, len(here), allocated / GIB, predicted / GIB, predicted / allocated - 1,
            predicted <= allocated <= predicted + bill.engine.workspace_low,
            reserved / GIB if reserved else None, kept / GIB, kept / reserved - 1 if reserved else None,
            low <= reserved <= high if reserved else None,
        )  # fmt: skip


def slack(bill: Bill) -> tuple[float, float, float]:
    """What torch's allocator keeps beyond what is allocated, as a share of it, and the ends of its band."""
    engine = bill.engine
    return engine.slack_share, engine.slack_low, engine.slack_high


def case_of(run: Run) -> str:
    """The name of a run's case, where its remarks give one."""
    return words.case_of(run.text("other"))
