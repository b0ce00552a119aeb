"""Errors of many rows together: how many, how large, to which side, and how many inside the printed band."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .ranks import CasePeak, StagePeak
from .row import Row

Quantity = Literal["step_time", "peak_mem", "allocated", "reserved"]
GROUPS = ("all", "source", "accelerator", "precision", "model")
FEW = 20  # rows of a source, below which sources are summed together
TIERS = ("tier", "tier 1", "tier 2")
SCORES = {"allocator": "complete rows at the allocator's level", "device": "rows at the level of the device"}


@dataclass(frozen=True)
class Summary:
    """The errors of one group of rows. Shares are of the measured value; `in_band` is a share of the rows."""

    by: str  # all, source, accelerator, precision, model, score, stage, tier, or a tier's sources: tier 1, tier 2
    name: str
    quantity: Quantity
    count: int
    mean: float  # of the errors without their signs
    median: float
    p90: float
    worst: float  # the largest, with its sign
    bias: float  # mean of the errors with their signs
    in_band: float


def summarise(rows: Iterable[Row]) -> tuple[Summary, ...]:
    """Every group of the rows that were compared, largest first."""
    compared = [row for row in rows if row.status == "compared"]
    groups = tuple(
        found for by in GROUPS for quantity in ("step_time", "peak_mem") for found in _groups(compared, by, quantity)
    )
    tiers = (one for tier in (1, 2) for one in _tier(tier, [row for row in compared if row.step_time_tier == tier]))
    scored = ((name, [row for row in compared if row.peak_mem_score == score]) for score, name in SCORES.items())
    peaks = (_summary("score", name, "peak_mem", found) for name, found in scored if found)
    return *groups, *tiers, *peaks


def _tier(tier: int, rows: list[Row]) -> Iterator[Summary]:
    """A tier, the same without times that add up from parts, and its sources; those of few rows are one group."""
    whole = [row for row in rows if not row.step_time_composed]
    names = Counter(row.facts for row in rows)
    groups = [("tier", f"tier {tier}", rows)]
    groups += [("tier", f"tier {tier}, measured as a whole", whole)] if len(whole) < len(rows) else []
    groups += [(f"tier {tier}", name, [row for row in rows if row.facts == name]) for name, _ in names.most_common()]
    few = [row for row in rows if names[row.facts] < FEW]
    groups = [group for group in groups if group[0] == "tier" or len(group[2]) >= FEW]
    for by, name, found in (*groups, (f"tier {tier}", f"sources under {FEW} rows", few)):
        if found:
            yield _summary(by, name, "step_time", found)


def summarise_cases(cases: Iterable[CasePeak]) -> tuple[Summary, ...]:
    """The stages of all cases that were read rank by rank, each stage once: equal readings of a source are one."""
    stages: dict[tuple[object, ...], StagePeak] = {}
    for case in cases:
        for stage in case.stages:
            stages.setdefault((case.source, case.model, stage.measured_allocated_gib, stage.stage), stage)
    found = list(stages.values())
    made = (_summary("stage", "stages read rank by rank", quantity, found) for quantity in ("allocated", "reserved"))
    return tuple(one for one in made if one.count)


def _groups(rows: list[Row], by: str, quantity: Quantity) -> list[Summary]:
    names = dict.fromkeys(_name(row, by) for row in rows)
    found = [_summary(by, name, quantity, [row for row in rows if _name(row, by) == name]) for name in names]
    return sorted((one for one in found if one.count), key=lambda one: (-one.count, one.name))


def _name(row: Row, by: str) -> str:
    return "all" if by == "all" else str(getattr(row, by)) or "(blank)"


def _summary(by: str, name: str, quantity: Quantity, rows: Sequence[object]) -> Summary:
    errors, inside = _columns(rows, quantity)
    if not errors.size:
        return Summary(by, name, quantity, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    sizes = np.abs(errors)
    return Summary(
        by, name, quantity, int(errors.size), float(sizes.mean()), float(np.median(sizes)),
        float(np.quantile(sizes, 0.9)), float(errors[int(sizes.argmax())]), float(errors.mean()), float(inside.mean()),
    )  # fmt: skip


def _columns(rows: Sequence[object], quantity: Quantity) -> tuple["np.ndarray[tuple[int], np.dtype[np.float64]]", ...]:
    """Errors and whether they lie inside the band, of the rows that have the quantity."""
    pairs = [(getattr(row, f"{quantity}_error"), getattr(row, f"{quantity}_in_band")) for row in rows]
    known = [(error, inside) for error, inside in pairs if error is not None]
    return np.array([error for error, _ in known], float), np.array([inside for _, inside in known], float)
