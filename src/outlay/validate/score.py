"""Which peaks are scored: those of a source whose level, unit and configuration are known, each reading once."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .row import Row

REPEATS = "the reading and the count of line "
AGAIN = "an earlier row's reading and count again"


def repeats(rows: Iterable[Row]) -> dict[int, Mapping[str, Any]]:
    """What changes of rows, by their places, whose reading and count an earlier row of their source has."""
    first: dict[tuple[object, ...], int] = {}
    again: dict[int, Mapping[str, Any]] = {}
    for place, row in enumerate(rows):
        if not row.peak_mem_score:
            continue
        key = row.source, row.model, row.measured_peak_mem_gib, row.predicted_peak_mem_gib
        if key in first:
            reason = f"{REPEATS}{first[key]} again"
            again[place] = {"peak_mem_score": "", "peak_mem_unscored": reason}
        else:
            first[key] = row.line
    return again


@dataclass(frozen=True)
class Fact:
    """What one source's memory is, and how many of its rows are scored."""

    name: str
    level: str  # empty where no row of it can be compared
    unit: str
    rows: int
    scored: int
    why: str  # why the others are not: the most frequent reason first


def facts_of(rows: Iterable[Row]) -> tuple[Fact, ...]:
    """Every source that has peaks among some rows, most rows first."""
    known = [row for row in rows if row.measured_peak_mem_gib is not None]
    names = Counter(row.source for row in known)
    return tuple(_fact(name, [row for row in known if row.source == name]) for name, _ in names.most_common())


def _fact(name: str, rows: list[Row]) -> Fact:
    ((of, _),) = Counter(row.memory_is for row in rows if row.memory_is).most_common(1) or ((", ", 0),)
    unit, level = of.split(", ")
    scored = sum(bool(row.peak_mem_score) for row in rows)
    reasons = Counter(map(_reason, rows))
    why = "; ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common() if reason)
    return Fact(name, level, unit, len(rows), scored, why)


def _reason(row: Row) -> str:
    """Why the peak of a row is not scored; empty where it is."""
    if row.status == "skipped":
        return f"not compared: {row.reason}"
    return AGAIN if row.peak_mem_unscored.startswith(REPEATS) else row.peak_mem_unscored
