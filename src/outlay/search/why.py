"""Why not this layout: illegal by which rule, too large by how much, or slower by which items."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..bill import Bill, count
from ..layout.axes import Layout
from ..layout.case import Case
from .blocks import Grid
from .narrow import narrow
from .plan import Plan, Ranked, first_of, ranked_by
from .plan import asked as case_asked
from .rows import legal_rows
from .space import Width, declare

Answer = Literal["best", "slower", "tight", "does_not_fit", "illegal"]


@dataclass(frozen=True)
class Reason:
    """What becomes of some values: the best layout that has them, or the rules that leave none."""

    asked: Mapping[str, Any]
    answer: Answer
    ranked: Ranked | None  # the fastest that fits, or the one that needs least; where illegal, the layout as asked
    legal: int  # layouts that have these values
    seconds_more: float  # than the best; 0 where nothing fits or is legal
    bytes_over: float  # of its peak, over what is usable; 0 where it fits


def why(found: Plan, width: Width, asked: Mapping[str, Any]) -> Reason:
    """Why the best layout of a plan is not one with these values: `{"tp": 4, "pp": 8}`. Other fields are free.

    Raises InputError for fields that are not searched.
    """
    case, _ = case_asked(found.model, found.job, found.cluster, found.engine)
    declared = declare(found.model, found.job, found.cluster, found.engine, width)
    space = narrow(declared, **{name: (value,) for name, value in asked.items()})
    grid = Grid(case, space, legal_rows(case, space))
    if not grid.layouts:
        return Reason(asked, "illegal", _as_asked(case, asked), 0, 0.0, 0.0)
    ranked = first_of(grid)
    assert ranked is not None
    bill = ranked.bill
    return Reason(asked, _answer(found, bill), ranked, grid.layouts, _slower(found, bill), _over(bill))


def _as_asked(case: Case, asked: Mapping[str, Any]) -> Ranked | None:
    """The layout with these values and defaults elsewhere, with the rules that it breaks; none where it breaks none."""
    fields = {name: value for name, value in asked.items() if name != "hybrid"}
    bill = count(case.model, case.job, case.cluster, Layout(**fields), case.engine)
    return ranked_by(bill, case) if bill.violations else None


def _answer(found: Plan, bill: Bill) -> Answer:
    if bill.memory.verdict != "fits":
        return "tight" if bill.memory.verdict == "tight" else "does_not_fit"
    return "best" if found.best and bill.step.seconds <= found.best[0].bill.step.seconds else "slower"


def _slower(found: Plan, bill: Bill) -> float:
    return bill.step.seconds - found.best[0].bill.step.seconds if found.best and bill.memory.verdict == "fits" else 0.0


def _over(bill: Bill) -> float:
    return max(0.0, bill.memory.peak_bytes - bill.memory.usable_bytes)
