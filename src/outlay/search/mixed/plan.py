"""The layouts of a plan with a strategy for each layer, beside others that fit with one alone."""

from collections.abc import Sequence

from ...errors import InputError
from ...layout.axes import Layout
from ..plan import Plan
from ..progress import Progress
from ..split.best import unfilled
from ..split.plan import roomier
from .best import Mixed, Mixes, best_mixes, plain
from .uniform import Uniform, uniform_of, worth


def best_of_plan(plan: Plan, most: int, what: Sequence[str], progress: Progress | None = None) -> Mixes:
    """The best mix of the cuts of a plan's `most` best layouts, and of as many that would be the fastest with more
    memory, beside the plan's first. Never slower than that: where no mix is faster, it is said.

    A cut of which no mix can be faster than the best so far is left out. Cuts beyond these are not tried, so the mix is
    not proved over cuts.
    """
    uniform = [Uniform(each.layout, each.seconds, each.peak_bytes, each.case) for each in plan.best[:1]]
    best: Mixed | None = None
    cuts = _cuts(plan, most, what)
    for tried, layout in enumerate(cuts, 1):
        beat = best.seconds if best else float("inf")
        try:
            found = best_mixes(plan.model, plan.job, plan.cluster, layout, plan.engine, what, beat)
        except InputError as refused:
            if any(fault.code != "MIX003" for fault in refused.faults):
                raise
            continue  # the recompute of a part of its layers, which degrees alone do not choose
        uniform += [found.uniform] if found.uniform else []
        if found.best and (
            best is None or (found.best.seconds, found.best.peak_bytes) < (best.seconds, best.peak_bytes)
        ):
            best = found.best
        if progress:
            progress(tried, len(cuts), best.seconds if best else float("inf"))
    return Mixes(tuple(what), best, min(uniform, key=worth, default=None), len(cuts))


def _cuts(plan: Plan, most: int, what: Sequence[str]) -> list[Layout]:
    """Each cut once, the fastest first."""
    first = plan.best[0] if plan.best else plan.smallest
    if first is None:
        return []
    layouts = (*(each.bill for each in plan.best[:most] or (first,)), *(each.bill for each in roomier(plan, most)))
    bare = [plain(each.layout) if "recompute" in what else unfilled(each) for each in layouts]
    case = first.case
    return sorted(dict.fromkeys(bare), key=lambda layout: uniform_of(case, layout).seconds)
