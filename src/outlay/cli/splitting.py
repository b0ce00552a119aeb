"""`--split best`: the split is found, and then it is one that was given."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..bill import Bill, count
from ..cluster.accelerator import Cluster
from ..engines.engine import Engine
from ..job import AUTO, Job
from ..layout.axes import Layout
from ..model.model import Model

if TYPE_CHECKING:
    from .question import Task

BEST = "best"


def without_best(at: "Task") -> tuple["Task", bool]:
    """The task without `--split best`, and whether it was asked for, by a flag or in the file's [layout]."""
    table = at.file.get("layout")
    table = table if isinstance(table, dict) else {}
    said = at.texts.get("split", table.get("split"))
    if not isinstance(said, str) or said.strip().lower() != BEST:
        return at, False
    texts = {name: text for name, text in at.texts.items() if name != "split"}
    layout = {name: value for name, value in table.items() if name != "split"}
    return replace(at, texts=texts, file={**at.file, "layout": layout}), True


def freed(layout: Layout, at: "Task") -> Layout:
    """The layout with its split let go, and the layers that a printed bill recomputes with it."""
    given = {*at.texts, *at.file.get("layout", {})}
    follows: dict[str, Any] = {"recompute_layers": AUTO} if at.asked and "recompute_layers" not in given else {}
    return replace(layout, split=AUTO, **follows)


def best_count(model: Model, job: Job, cluster: Cluster, layout: Layout, engine: Engine | str) -> Bill:
    """The bill with the best split, which it says among its assumptions. Raises InputError as `best_split` does."""
    from ..search.split.best import best_split

    found = best_split(model, job, cluster, layout, engine)
    if found is None:
        bill = count(model, job, cluster, layout, engine)
        said = ("one stage: there is nothing to split (--split)",) if bill.layout.pp == 1 else ()
    else:
        bill, said = found.bill, (found.said,)
    return replace(bill, assumptions=(*said, *bill.assumptions))
