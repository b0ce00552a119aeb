"""outlay plan: the best layouts of a space, or the fewest accelerators that do the job."""

import sys

from ..cluster.accelerator import Cluster
from ..search.fewest import Tried, fewest
from ..search.plan import Plan, Progress
from ..search.plan import plan as search
from ..search.retimed import retime
from ..search.why import why
from ..search.worth import worths
from ..show.answer import says_yes
from ..show.plan import Answer
from .flags import Given
from .output import tell
from .searching import Searched, read_search
from .waiting import Waiting, announcement


def plan(given: Given) -> int:
    """Search, and say what was found. Exit 1: nothing fits, or no layout is legal."""
    from ..show.plan import plan_lines
    from ..show.plan_record import plan_record

    asked = read_search(given)
    sys.stderr.write(announcement(asked.combinations))
    waiting = Waiting(sys.stderr.write) if sys.stderr.isatty() else None
    answer = _searched(asked, waiting, given.on("simulate"))
    if waiting:
        waiting.close()
    tell(given, lambda: plan_record(answer), lambda style: plan_lines(answer, style))
    found = answer.plan
    return 0 if found.best or (found.smallest and says_yes(found.smallest.bill)) else 1


def _searched(asked: Searched, progress: Progress | None, simulate: bool) -> Answer:
    """One cluster's plan, or that of the smallest cluster that does it, and where none does, of the last tried; with
    what more of each resource is worth, and what becomes of the values that were asked about."""
    tried: tuple[Tried, ...] = ()
    if asked.objective == "time":
        found = _of_one(asked, asked.clusters[0], progress)
    else:
        several = fewest(
            asked.model,
            asked.job,
            asked.clusters,
            asked.engine,
            width=asked.width,
            best=asked.most,
            progress=progress,
            **asked.narrowed,
        )
        found, tried = several.plan, several.tried
    reason = why(found, asked.width, asked.why) if asked.why else None
    again = retime(found) if simulate else None
    return Answer(found, asked.width, asked.objective, tried, asked.notes, worths(found), reason, again)


def _of_one(asked: Searched, cluster: Cluster, progress: Progress | None) -> Plan:
    return search(
        asked.model,
        asked.job,
        cluster,
        asked.engine,
        width=asked.width,
        best=asked.most,
        progress=progress,
        **asked.narrowed,
    )
