"""The fewest accelerators that do a job: clusters in ascending order, until one has a layout that fits."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..cluster.accelerator import Cluster
from ..engines.engine import Engine
from ..job import Job
from ..model.model import Model
from .plan import Plan, Progress, plan
from .space import Width


@dataclass(frozen=True)
class Tried:
    """One cluster that was searched."""

    ranks: int
    verdict: str  # fits, does_not_fit, impossible, or empty: no legal layout
    legal: int


@dataclass(frozen=True)
class Fewest:
    """The clusters tried, and the plan of the last: the first that fits, or one whose `best` is empty."""

    tried: tuple[Tried, ...]
    plan: Plan


def fewest(
    model: Model,
    job: Job,
    clusters: Iterable[Cluster],
    engine: Engine | str = "megatron",
    *,
    width: Width = "wide",
    best: int = 20,
    progress: Progress | None = None,
    **narrowed: tuple[Any, ...],
) -> Fewest:
    """Search one cluster after another, smallest first; stop at the first with a layout that fits.

    Raises ValueError without clusters.
    """
    tried: list[Tried] = []
    found: Plan | None = None
    every = sorted(clusters, key=lambda each: each.ranks)
    least = max((one.ranks or 1 for one in job.beside), default=1)  # a copy beside is cut over so many
    for cluster in [each for each in every if each.ranks >= least] or every:
        found = plan(model, job, cluster, engine, width=width, best=best, progress=progress, **narrowed)
        tried.append(Tried(cluster.ranks, verdict_of(found), found.search.legal))
        if found.best or not found.search.proved:
            break
    if found is None:
        raise ValueError("no clusters to search")
    return Fewest(tuple(tried), found)


def verdict_of(found: Plan) -> str:
    """The verdict of a plan: that of its best layout, or of the smallest where none fits."""
    if found.best:
        return "fits"
    if found.smallest is None:
        return "empty"
    return found.smallest.bill.memory.verdict or "does_not_fit"
