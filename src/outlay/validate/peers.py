"""Errors of other planners, published or measured, beside outlay's on exactly the same rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from .row import Row
from .table import entries
from .tiers import AGAIN


@dataclass(frozen=True)
class Peer:
    """One planner on one set of rows."""

    name: str
    release: str
    facts: str  # the source of the rows: all of them are meant
    rows: int
    quantity: Literal["step_time", "peak_mem"]
    mean: float  # of its errors without their signs
    kind: Literal["published", "measured"]  # by itself, or by us, who ran it
    how: str
    source: str
    bias: float | None = None  # None where it is not published


@dataclass(frozen=True)
class Beside:
    """A planner's errors, and outlay's on the same rows."""

    peer: Peer
    mean: float
    bias: float


@cache
def peers() -> tuple[Peer, ...]:
    """Every planner whose errors are known on rows of a source that is known."""
    return tuple(Peer(**entry) for entry in entries("peers.toml", "peer"))


def uncompared() -> tuple[tuple[str, str], ...]:
    """Planners, and why their errors on other rows are not known."""
    return tuple((entry["name"], entry["why"]) for entry in entries("peers.toml", "uncompared"))


def beside(rows: Iterable[Row]) -> tuple[Beside, ...]:
    """The planners all of whose rows are among some rows, no more and no fewer, in the order of the table."""
    known = tuple(rows)
    found = ((peer, _errors(known, peer)) for peer in peers())
    return tuple(
        Beside(peer, float(np.abs(errors).mean()), float(errors.mean()))
        for peer, errors in found if errors.size == peer.rows
    )  # fmt: skip


def _errors(rows: Iterable[Row], peer: Peer) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """outlay's errors of the rows of a source; a run that two files print counts once."""
    mine = (row for row in rows if row.facts == peer.facts)
    if peer.quantity == "step_time":
        mine = (row for row in mine if row.step_time_unscored != AGAIN)
    errors = (getattr(row, f"{peer.quantity}_error") for row in mine)
    return np.array([error for error in errors if error is not None], float)
