"""outlay plan: the best layouts of a space, or the fewest accelerators that do the job."""

import sys

from ..search.fewest import fewest
from ..search.plan import Progress
from ..search.plan import plan as search
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
    answer = _searched(asked, waiting)
    if waiting:
        waiting.close()
    tell(given, lambda: plan_record(answer), lambda style: plan_lines(answer, style))
    found = answer.plan
    return 0 if found.best or (found.smallest and says_yes(found.smallest.bill)) else 1


def _searched(asked: Searched, progress: Progress | None) -> Answer:
    task = asked.model, asked.job
    how = {"width": asked.width, "best": asked.most, "progress": progress}
    if asked.objective == "time":
        found = search(*task, asked.clusters[0], asked.engine, **how, **asked.narrowed)
        return Answer(found, asked.width, asked.objective, (), asked.notes)
    several = fewest(*task, asked.clusters, asked.engine, **how, **asked.narrowed)
    last = several.tried[-1].ranks  # the first that fits; else the last that was tried
    cluster = next(each for each in asked.clusters if each.ranks == last)
    found = several.plan or search(*task, cluster, asked.engine, **how, **asked.narrowed)
    return Answer(found, asked.width, asked.objective, several.tried, asked.notes)
