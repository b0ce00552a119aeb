"""Errors of many rows together: how many, how large, to which side, and how many inside the printed band."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

Quantity = Literal["step_time", "peak_mem"]
GROUPS = ("all", "source", "accelerator", "precision", "model")


class Compared(Protocol):
    """What a summary reads of a row."""

    @property
    def status(self) -> str: ...


@dataclass(frozen=True)
class Summary:
    """The errors of one group of rows. Shares are of the measured value; `in_band` is a share of the rows."""

    by: str  # all, source, accelerator, precision or model
    name: str
    quantity: Quantity
    count: int
    mean: float  # of the errors without their signs
    median: float
    p90: float
    worst: float  # the largest, with its sign
    bias: float  # mean of the errors with their signs
    in_band: float


def summarise(rows: Iterable[Compared]) -> tuple[Summary, ...]:
    """Every group of the rows that were compared, largest first."""
    compared = [row for row in rows if row.status == "compared"]
    return tuple(
        found for by in GROUPS for quantity in ("step_time", "peak_mem") for found in _groups(compared, by, quantity)
    )


def _groups(rows: list[Compared], by: str, quantity: Quantity) -> list[Summary]:
    names = dict.fromkeys(_name(row, by) for row in rows)
    found = [_summary(by, name, quantity, [row for row in rows if _name(row, by) == name]) for name in names]
    return sorted((one for one in found if one.count), key=lambda one: (-one.count, one.name))


def _name(row: Compared, by: str) -> str:
    return "all" if by == "all" else str(getattr(row, by)) or "(blank)"


def _summary(by: str, name: str, quantity: Quantity, rows: list[Compared]) -> Summary:
    errors, inside = _columns(rows, quantity)
    if not errors.size:
        return Summary(by, name, quantity, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    sizes = np.abs(errors)
    return Summary(
        by, name, quantity, int(errors.size), float(sizes.mean()), float(np.median(sizes)),
        float(np.quantile(sizes, 0.9)), float(errors[int(sizes.argmax())]), float(errors.mean()), float(inside.mean()),
    )  # fmt: skip


def _columns(rows: list[Compared], quantity: Quantity) -> tuple["np.ndarray[tuple[int], np.dtype[np.float64]]", ...]:
    """Errors and whether they lie inside the band, of the rows that have the quantity."""
    pairs = [(getattr(row, f"{quantity}_error"), getattr(row, f"{quantity}_in_band")) for row in rows]
    known = [(error, inside) for error, inside in pairs if error is not None]
    return np.array([error for error, _ in known], float), np.array([inside for _, inside in known], float)
