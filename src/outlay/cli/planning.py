"""outlay plan: the best layouts of a space, or the fewest accelerators that do the job."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from ..search.plan import Plan
from ..search.progress import Progress
from ..search.retimed import retime
from ..search.several import How, Several, best_of, deepest, fewest, largest, longest
from ..search.why import why
from ..search.worth import worths
from ..show.answer import says_yes
from ..show.plan.answer import Answer
from ..validate.progress import Progress as Countdown
from .flags import Given
from .output import Told
from .searching import Searched, read_search
from .waiting import Waiting, announcement

if TYPE_CHECKING:
    from ..search.mixed.best import Mixes
    from ..search.orders.plan import Orders


def plan(given: Given) -> Told:
    """Search, and say what was found. Exit 1: nothing fits, or no layout is legal."""
    asked = read_search(given)
    sys.stderr.write(announcement(asked.combinations))
    waiting = Waiting(sys.stderr.write) if sys.stderr.isatty() else None
    told = searched(asked, waiting, given.on("simulate"))
    if waiting:
        waiting.close()
    return told


def searched(asked: Searched, progress: Progress | None, simulate: bool) -> Told:
    """The answer of a search."""
    from ..show.plan.answer import plan_lines
    from ..show.plan.record import plan_record

    answer = answer_of(asked, progress, simulate)
    found = answer.plan
    fits = bool(found.best or (answer.mixed and answer.mixed.best))
    yes = fits or bool(found.smallest and says_yes(found.smallest.bill))
    return Told(lambda: plan_record(answer), lambda style: plan_lines(answer, style), yes)


def answer_of(asked: Searched, progress: Progress | None, simulate: bool) -> Answer:
    """One cluster's plan, or that of the smallest cluster that does it, and where none does, of the last tried; with
    what more of each resource is worth, and what becomes of the values that were asked about."""
    how = How(asked.engine, asked.width, asked.most, asked.narrowed, progress)
    several = _several(asked, how) if asked.objective != "time" else None
    found = several.plan if several else how.plan(asked.models[0], asked.job, asked.clusters[0])
    found, moved = _split(asked, found)
    mixed = _mixed(asked, found, progress)
    reason = why(found, asked.width, asked.why, split=asked.split) if asked.why else None
    again = retime(found) if simulate else None
    if again and moved is not None:  # a layout that was left out may be faster with a split of its own
        again = replace(again, proved=False)
    mine = (asked.width, asked.objective, several, asked.notes, worths(found), reason, again, moved)
    return Answer(found, *mine, models=asked.models, mixed=mixed, orders=_orders(asked, found))


def _orders(asked: Searched, found: Plan) -> "Orders | None":
    """The best pipelines in other orders, where that is asked for."""
    if asked.orders is None:
        return None
    from ..search.orders.plan import reorder

    line = Countdown(sys.stderr.write, words="orders") if sys.stderr.isatty() else None
    orders = reorder(found, asked.orders.names, asked.orders.seconds, line)
    if line:
        line.close()
    return orders


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


def _several(asked: Searched, how: How) -> Several:
    """What takes several searches."""
    model, job, cluster = asked.models[0], asked.job, asked.clusters[0]
    if asked.objective == "sequence":
        return longest(model, job, cluster, how)
    if asked.objective == "model":
        return largest(asked.models, job, cluster, how) if len(asked.models) > 1 else deepest(model, job, cluster, how)
    if asked.objective == "accelerators":
        return fewest(model, job, asked.clusters, how)
    return best_of(model, job, asked.clusters, how, by="money" if asked.objective == "money" else "tokens")
