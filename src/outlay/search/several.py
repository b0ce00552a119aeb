"""Several searches for one answer: the fewest accelerators, the cheapest or fastest cluster, the longest sequence."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..bill import Bill
from ..cluster.accelerator import Cluster
from ..engines.engine import Engine
from ..errors import Fault, InputError
from ..job import Job
from ..model.model import Model
from ..whole_run import HOUR
from .plan import Plan, Progress, plan
from .space import Width

STEP = 1024  # tokens: the longest sequence is sought among its multiples
LONGEST = 2**24


@dataclass(frozen=True)
class Tried:
    """One search, and its best layout."""

    name: str  # of the cluster
    ranks: int
    sequence_length: int
    verdict: str  # fits, does_not_fit, impossible, or empty: no legal layout
    legal: int
    tokens_per_second: float | None  # of the best that fits
    dollars_per_million_tokens: float | None  # of it, where a price is known


@dataclass(frozen=True)
class Several:
    """The searches, and the plan of the one that answers; where none fits, of the last."""

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
) -> Several:
    """Search one cluster after another, smallest first; stop at the first with a layout that fits.

    Raises ValueError without clusters.
    """
    tried: list[Tried] = []
    found: Plan | None = None
    every = sorted(clusters, key=lambda each: each.ranks)
    least = max((one.ranks or 1 for one in job.beside), default=1)  # a copy beside is cut over so many
    for cluster in [each for each in every if each.ranks >= least] or every:
        found = plan(model, job, cluster, engine, width=width, best=best, progress=progress, **narrowed)
        tried.append(tried_of(found))
        if found.best or not found.search.proved:
            break
    if found is None:
        raise ValueError("no clusters to search")
    return Several(tuple(tried), found)


def best_of(
    model: Model,
    job: Job,
    clusters: Iterable[Cluster],
    engine: Engine | str = "megatron",
    *,
    by: Literal["tokens", "money"],
    width: Width = "wide",
    best: int = 20,
    progress: Progress | None = None,
    **narrowed: tuple[Any, ...],
) -> Several:
    """Search every cluster: the one that trains most tokens a second, or most of them for its price.

    Raises InputError (PLN010) for a cluster without a price, ValueError without clusters.
    """
    every = tuple(clusters)
    if by == "money":
        unpriced(every)
    plans: list[Plan] = []
    for cluster in every:
        plans.append(plan(model, job, cluster, engine, width=width, best=best, progress=progress, **narrowed))
        if not plans[-1].search.proved:
            break
    if not plans:
        raise ValueError("no clusters to search")
    tried = tuple(map(tried_of, plans))
    fitting = [place for place, each in enumerate(tried) if each.tokens_per_second]
    chosen = min(fitting, key=lambda place: _cost(tried[place], by), default=len(plans) - 1)
    return Several(tried, plans[chosen])


def unpriced(clusters: Iterable[Cluster]) -> None:
    """Refuse clusters whose price is not known, all at once."""
    rule = "money is compared where every cluster has a price an hour"
    fix = "outlay hardware NAME --toml > my.toml, with [price]; --on my.toml"
    faults = [Fault("PLN010", "no price is known", rule, one.name, fix) for one in clusters if one.dollars() is None]
    if faults:
        raise InputError(*faults)


def _cost(each: Tried, by: str) -> float:
    """What is least for the best cluster."""
    assert each.tokens_per_second is not None
    if by == "tokens":
        return -each.tokens_per_second
    assert each.dollars_per_million_tokens is not None
    return each.dollars_per_million_tokens


def longest(
    model: Model,
    job: Job,
    cluster: Cluster,
    engine: Engine | str = "megatron",
    *,
    width: Width = "wide",
    best: int = 20,
    progress: Progress | None = None,
    **narrowed: tuple[Any, ...],
) -> Several:
    """The longest sequence, a multiple of 1,024 tokens, that some layout holds for sure; the batch stays.

    Doubled until nothing fits, then halved in between: what fits at one length fits at every shorter one.
    """
    tried: list[Tried] = []

    def at(length: int) -> Plan:
        asked = replace(job, sequence_length=length)
        found = plan(model, asked, cluster, engine, width=width, best=best, progress=progress, **narrowed)
        tried.append(tried_of(found))
        return found

    fits: Plan | None = None
    low, high = 0, STEP
    while high <= LONGEST:
        found = at(high)
        if not found.best or not found.search.proved:
            break
        fits, low, high = found, high, 2 * high
    while fits and STEP < high - low <= LONGEST // 2 and found.search.proved:
        middle = (low + high) // (2 * STEP) * STEP
        found = at(middle)
        fits, low, high = (found, middle, high) if found.best else (fits, low, middle)
    return Several(tuple(tried), fits or found)


def tried_of(found: Plan) -> Tried:
    """A search in short."""
    bill = found.best[0].bill if found.best else None
    return Tried(
        name=found.cluster.name,
        ranks=found.cluster.ranks,
        sequence_length=int(found.job.sequence_length),
        verdict=verdict_of(found),
        legal=found.search.legal,
        tokens_per_second=bill.step.tokens_per_second if bill else None,
        dollars_per_million_tokens=_dollars(bill) if bill else None,
    )


def _dollars(bill: Bill) -> float | None:
    hourly = bill.cluster.dollars()
    return None if hourly is None else hourly / HOUR / bill.step.tokens_per_second * 1e6


def verdict_of(found: Plan) -> str:
    """The verdict of a plan: that of its best layout, or of the smallest where none fits."""
    if found.best:
        return "fits"
    if found.smallest is None:
        return "empty"
    return found.smallest.bill.memory.verdict or "does_not_fit"
