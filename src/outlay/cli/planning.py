"""outlay plan: the best layouts of a space, or the fewest accelerators that do the job."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..search.plan import Plan, Progress
from ..search.plan import plan as search
from ..search.retimed import retime
from ..search.several import Several, Tried, best_of, fewest, longest
from ..search.why import why
from ..search.worth import worths
from ..show.answer import says_yes
from ..show.plan.answer import Answer
from .flags import Given
from .output import tell
from .searching import Searched, read_search
from .waiting import Waiting, announcement

if TYPE_CHECKING:
    from ..search.mixed.best import Mixes


def plan(given: Given) -> int:
    """Search, and say what was found. Exit 1: nothing fits, or no layout is legal."""
    from ..show.plan.answer import plan_lines
    from ..show.plan.record import plan_record

    asked = read_search(given)
    sys.stderr.write(announcement(asked.combinations))
    waiting = Waiting(sys.stderr.write) if sys.stderr.isatty() else None
    answer = _searched(asked, waiting, given.on("simulate"))
    if waiting:
        waiting.close()
    tell(given, lambda: plan_record(answer), lambda style: plan_lines(answer, style))
    found = answer.plan
    fits = found.best or (answer.mixed and answer.mixed.best)
    return 0 if fits or (found.smallest and says_yes(found.smallest.bill)) else 1


def _searched(asked: Searched, progress: Progress | None, simulate: bool) -> Answer:
    """One cluster's plan, or that of the smallest cluster that does it, and where none does, of the last tried; with
    what more of each resource is worth, and what becomes of the values that were asked about."""
    tried: tuple[Tried, ...] = ()
    if asked.objective == "time":
        found = search(asked.model, asked.job, asked.clusters[0], asked.engine, **_how(asked, progress))
    else:
        several = _several(asked, progress)
        found, tried = several.plan, several.tried
    found, moved = _split(asked, found)
    mixed = _mixed(asked, found, progress)
    reason = why(found, asked.width, asked.why, split=asked.split) if asked.why else None
    again = retime(found) if simulate else None
    if again and moved is not None:  # a layout that was left out may be faster with a split of its own
        again = replace(again, proved=False)
    return Answer(found, asked.width, asked.objective, tried, asked.notes, worths(found), reason, again, moved, mixed)


def _split(asked: Searched, found: Plan) -> tuple[Plan, int | None]:
    """The plan with the best split of each of its layouts, and how many moved, where that is asked for."""
    if not asked.split:
        return found, None
    from ..search.split.plan import changed, resplit

    again = resplit(found, asked.most)
    return again, changed(found, again)


def _mixed(asked: Searched, found: Plan, progress: Progress | None) -> "Mixes | None":
    """A strategy for each layer, where that is asked for."""
    if not asked.mixed:
        return None
    from ..search.mixed.plan import best_of_plan

    return best_of_plan(found, asked.most, asked.mixed, progress)


def _several(asked: Searched, progress: Progress | None) -> Several:
    """What takes several searches."""
    if asked.objective == "sequence":
        return longest(asked.model, asked.job, asked.clusters[0], asked.engine, **_how(asked, progress))
    question = asked.model, asked.job, asked.clusters, asked.engine
    if asked.objective == "accelerators":
        return fewest(*question, **_how(asked, progress))
    return best_of(*question, by="money" if asked.objective == "money" else "tokens", **_how(asked, progress))


def _how(asked: Searched, progress: Progress | None) -> dict[str, Any]:
    """How wide to search, and what to keep."""
    return {"width": asked.width, "best": asked.most, "progress": progress, **asked.narrowed}
