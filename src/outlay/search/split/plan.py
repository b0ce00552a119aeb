"""A plan whose best layouts are counted again, each with its best split, beside others that fit with one alone."""

from collections.abc import Iterator
from dataclasses import replace

from ...bill import count
from ..blocks import Grid
from ..plan import Plan, Ranked, asked, ranked_by, sweep
from ..rows import legal_rows
from .best import best_split, unfilled

ROOM = 1.3  # times the memory in which layouts are looked at that may fit with another split: assumed


def resplit(plan: Plan, most: int) -> Plan:
    """The `most` best layouts, each with its best split where that is better, in order again. Beside those of the plan
    are tried as many that would be the fastest with more memory: with another split they may fit.

    All others keep the engine's own split, so the ranking is not proved over splits.
    """
    tried = {each.layout: with_best(each) for each in (*plan.best, *roomier(plan, most))}
    fitting = [each for each in tried.values() if each.bill.memory.verdict == "fits"]
    best = sorted(fitting, key=lambda each: (each.bill.step.seconds, each.bill.memory.peak_bytes))[:most]
    smallest = with_best(plan.smallest) if plan.smallest and not best else None
    return replace(plan, best=tuple(best), smallest=smallest)


def roomier(plan: Plan, most: int) -> Iterator[Ranked]:
    """The fastest layouts of the space on accelerators with more memory, as they are on those that there are."""
    card = plan.cluster.accelerator
    larger = replace(plan.cluster, accelerator=replace(card, memory_bytes=ROOM * card.memory_bytes))
    here, there = (asked(plan.model, plan.job, on, plan.engine)[0] for on in (plan.cluster, larger))
    grid = Grid(there, plan.space, legal_rows(there, plan.space))
    found = sweep(grid, most).best.found
    for layout in grid.layouts_at([each.row for each in found], [each.cell for each in found]):
        bill = count(plan.model, plan.job, plan.cluster, layout, plan.engine)
        if not bill.violations:
            yield ranked_by(bill, here)


def with_best(ranked: Ranked) -> Ranked:
    """One layout with its best split; as it is where the engine's own is as good."""
    bill = ranked.bill
    found = best_split(bill.model, bill.job, bill.cluster, unfilled(bill), bill.engine)
    if found is None or found.bill is found.own:
        return ranked
    return ranked_by(found.bill, ranked.case)


def changed(before: Plan, after: Plan) -> int:
    """How many layouts of the answer have a split that was sought."""
    splits = {each.layout for each in before.best}
    return sum(each.layout not in splits for each in after.best)
