"""Why not this layout: illegal by which rule, too large by how much, slower by which items, or never searched."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..bill import Bill, count
from ..layout.axes import Layout
from ..layout.case import Case
from .blocks import Grid
from .narrow import narrow
from .plan import Plan, Ranked, first_of, ranked_by
from .plan import asked as case_asked
from .rows import legal_rows
from .space import Space, Width, declare
from .split.plan import with_best

Answer = Literal["best", "slower", "faster", "tight", "does_not_fit", "illegal"]


@dataclass(frozen=True)
class Reason:
    """What becomes of some values: the best layout that has them, or the rules that leave none."""

    asked: Mapping[str, Any]
    answer: Answer  # faster, or no best to be beside: only where the search left these values out
    ranked: Ranked | None  # the fastest that fits, or the one that needs least; where illegal, the layout as asked
    legal: int  # layouts that have these values
    seconds_more: float  # than the best, below 0 where faster; 0 where nothing fits or is legal
    bytes_over: float  # of its peak, over what is usable; 0 where it fits


def why(found: Plan, width: Width, asked: Mapping[str, Any], *, split: bool = False) -> Reason:
    """Why the best layout of a plan is not one with these values: `{"tp": 4, "pp": 8}`.

    Other fields take what was searched. Values that the search left out are asked about all the same. With `split` the
    layout takes its best split, as those of the plan do.
    Raises InputError for fields that are not searched.
    """
    case, _ = case_asked(found.model, found.job, found.cluster, found.engine)
    space = _opened(found, width, asked)
    grid = Grid(case, space, legal_rows(case, space))
    if not grid.layouts:
        return Reason(asked, "illegal", _as_asked(case, asked), 0, 0.0, 0.0)
    ranked = first_of(grid, prune=width == "full")
    assert ranked is not None
    ranked = with_best(ranked) if split else ranked
    bill = ranked.bill
    return Reason(asked, _answer(found, bill), ranked, grid.layouts, _slower(found, bill), _over(bill))


def _opened(found: Plan, width: Width, asked: Mapping[str, Any]) -> Space:
    """The space that was searched with only these values, whatever it was narrowed to in their fields."""
    space = found.space
    declared = declare(found.model, found.job, found.cluster, found.engine, width)
    if "recompute" in asked:
        space = replace(space, recompute=declared.recompute)
    stages, inside = {stage for stage, _ in space.zero}, {bool(domains) for _, domains in space.zero}
    zero = tuple(
        (stage, domains)
        for stage, domains in dict.fromkeys((*space.zero, *declared.zero))
        if ("zero" in asked or stage in stages) and ("hybrid" in asked or bool(domains) in inside)
    )
    space = replace(space, zero=zero)
    return narrow(space, **{name: (value,) for name, value in asked.items()})


def _as_asked(case: Case, asked: Mapping[str, Any]) -> Ranked | None:
    """The layout with these values and defaults elsewhere, with the rules that it breaks; none where it breaks none."""
    fields = {name: value for name, value in asked.items() if name != "hybrid"}
    if "recompute_modules" in fields:
        fields["recompute_modules"] = (fields["recompute_modules"],)
    bill = count(case.model, case.job, case.cluster, Layout(**fields), case.engine)
    return ranked_by(bill, case) if bill.violations else None


def _answer(found: Plan, bill: Bill) -> Answer:
    if bill.memory.verdict != "fits":
        return "tight" if bill.memory.verdict == "tight" else "does_not_fit"
    more = _slower(found, bill)
    return "slower" if more > 0 else "faster" if more < 0 or not found.best else "best"


def _slower(found: Plan, bill: Bill) -> float:
    return bill.step.seconds - found.best[0].bill.step.seconds if found.best and bill.memory.verdict == "fits" else 0.0


def _over(bill: Bill) -> float:
    return max(0.0, bill.memory.peak_bytes - bill.memory.usable_bytes)
