"""The tier in which the step time of a row is scored, and why a row is in none.

Tier 1 is complete and dense, on cards and in precisions that were measured often; tier 2 is the rest. A row that its
own table contradicts is compared and not scored; a run that two tables print, or one table twice, counts once.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .read import Run
from .row import Row
from .table import Source, Tier, contradictions, lower_tiers

AGAIN = "an earlier row's run again"


def tier_of(run: Run, source: Source, counted: Mapping[str, str]) -> tuple[Tier, str]:
    """The tier of a row, and why it is not in the first. `counted` is what it was counted as: accelerator and so on."""
    if not source.known:
        return 0, "the source is not known"
    if source.untimed or not source.tier:
        return 0, source.untimed or "its source is not scored"
    contradiction = contradictions(run.cells)
    if contradiction:
        return 0, contradiction
    lower = lower_tiers(counted)
    return (2, lower) if lower else (source.tier, "")


def same_runs(rows: Iterable[Row]) -> dict[int, Mapping[str, Any]]:
    """What changes of rows, by their places, whose time and count an earlier row of the same facts has."""
    first: set[tuple[object, ...]] = set()
    again: dict[int, Mapping[str, Any]] = {}
    for place, row in enumerate(rows):
        if not row.step_time_tier or row.measured_step_time_s is None:
            continue
        key = row.facts, row.model, round(row.measured_step_time_s, 9), row.predicted_step_time_s
        if key in first:
            again[place] = {"step_time_tier": 0, "step_time_unscored": AGAIN}
        first.add(key)
    return again


@dataclass(frozen=True)
class Timed:
    """One source's step times: how many were compared, how many are scored, and why the others are not."""

    name: str
    tier: Tier  # of most of its scored rows; 0 where none is scored
    rows: int
    first: int  # rows scored in tier 1
    second: int
    why: str  # why the others are in none: the most frequent reason first


def timed_sources(rows: Iterable[Row]) -> tuple[Timed, ...]:
    """Every source with step times among some rows, most rows first."""
    known = [row for row in rows if row.step_time_error is not None]
    names = Counter(row.facts for row in known)
    return tuple(_timed(name, [row for row in known if row.facts == name]) for name, _ in names.most_common())


def _timed(name: str, rows: list[Row]) -> Timed:
    tiers = Counter(row.step_time_tier for row in rows)
    reasons = Counter(row.step_time_unscored for row in rows if not row.step_time_tier)
    why = "; ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common())
    tier: Tier = 0 if not tiers[1] + tiers[2] else 1 if tiers[1] >= tiers[2] else 2
    return Timed(name, tier, len(rows), tiers[1], tiers[2], why)


def worst(rows: Iterable[Row], most: int) -> list[Row]:
    """The scored rows, measured as a whole, whose step time is furthest off."""
    scored = [row for row in rows if row.step_time_tier and not row.step_time_composed]
    return sorted(scored, key=lambda row: -abs(row.step_time_error or 0.0))[:most]
