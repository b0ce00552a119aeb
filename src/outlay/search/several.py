"""Several searches for one answer: the fewest accelerators, the cheapest or fastest cluster, the longest sequence, the
largest model."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ..bill import Bill
from ..cluster.accelerator import Cluster
from ..engines.engine import Engine
from ..errors import Fault, InputError
from ..job import Job
from ..model.model import Model
from ..model.scaled import MOST_LAYERS, with_layers
from ..undivided import parameters
from ..whole_run import HOUR
from .plan import Plan, plan
from .progress import Progress
from .space import Width

STEP = 1024  # tokens: the longest sequence is sought among its multiples
LONGEST = 2**24


@dataclass(frozen=True)
class How:
    """What the searches have in common: the engine, how wide, how many layouts are kept, and what narrows them."""

    engine: Engine | str = "megatron"
    width: Width = "wide"
    best: int = 20
    narrowed: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    progress: Progress | None = None

    def plan(self, model: Model, job: Job, cluster: Cluster) -> Plan:
        """One of the searches."""
        return plan(
            model, job, cluster, self.engine,
            width=self.width, best=self.best, progress=self.progress, **dict(self.narrowed),
        )  # fmt: skip


@dataclass(frozen=True)
class Tried:
    """One search, and its best layout."""

    name: str  # of the cluster
    ranks: int
    model: str
    layers: int
    parameters: int
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
    proved: bool = True  # none of them was stopped


def _several(plans: list[Plan], chosen: Plan) -> Several:
    return Several(tuple(map(tried_of, plans)), chosen, all(each.search.proved for each in plans))


def _first(plans: Iterable[Plan]) -> Several:
    """Search until one fits, or is stopped. Raises ValueError where there is nothing to search."""
    made: list[Plan] = []
    for found in plans:
        made.append(found)
        if found.best or not found.search.proved:
            break
    if not made:
        raise ValueError("nothing to search")
    return _several(made, made[-1])


def fewest(model: Model, job: Job, clusters: Iterable[Cluster], how: How) -> Several:
    """Search one cluster after another, smallest first; stop at the first with a layout that fits.

    Raises ValueError without clusters.
    """
    every = sorted(clusters, key=lambda each: each.ranks)
    least = max((one.ranks or 1 for one in job.beside), default=1)  # a copy beside is cut over so many
    kept = [each for each in every if each.ranks >= least] or every
    return _first(how.plan(model, job, cluster) for cluster in kept)


def best_of(
    model: Model, job: Job, clusters: Iterable[Cluster], how: How, *, by: Literal["tokens", "money"]
) -> Several:  # fmt: skip
    """Search every cluster: the one that trains most tokens a second, or most of them for its price.

    Raises InputError (PLN010) for a cluster without a price, ValueError without clusters.
    """
    every = tuple(clusters)
    if by == "money":
        unpriced(every)
    plans: list[Plan] = []
    for cluster in every:
        plans.append(how.plan(model, job, cluster))
        if not plans[-1].search.proved:
            break
    if not plans:
        raise ValueError("no clusters to search")
    tried = tuple(map(tried_of, plans))
    fitting = [place for place, each in enumerate(tried) if each.tokens_per_second]
    chosen = min(fitting, key=lambda place: _cost(tried[place], by), default=len(plans) - 1)
    return _several(plans, plans[chosen])


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


def longest(model: Model, job: Job, cluster: Cluster, how: How) -> Several:
    """The longest sequence, a multiple of 1,024 tokens, that some layout holds for sure; the batch stays."""
    return _bisected(
        lambda length: how.plan(model, replace(job, sequence_length=length), cluster), STEP, STEP, LONGEST
    )  # fmt: skip


def deepest(model: Model, job: Job, cluster: Cluster, how: How) -> Several:
    """The most layers of a model's own widths that some layout holds for sure; fewer than it has where it does not
    fit itself."""
    return _bisected(
        lambda layers: how.plan(with_layers(model, layers), job, cluster),
        min(model.layers, MOST_LAYERS),
        1,
        MOST_LAYERS,
    )


def _bisected(at: Callable[[int], Plan], first: int, step: int, most: int) -> Several:
    """The largest number with a layout that fits: doubled from `first` until nothing fits, then halved in between, in
    multiples of `step`. The next multiple is tried, and does not fit; `most` has none."""
    plans: list[Plan] = []

    def fits(number: int) -> bool:
        plans.append(at(number))
        return bool(plans[-1].best)

    best: Plan | None = None
    low, high = 0, first
    while fits(high) and plans[-1].search.proved:
        best, low, high = plans[-1], high, min(2 * high, most)
        if low == most:
            break
    while high - low > step and plans[-1].search.proved:
        middle = (low + high) // (2 * step) * step
        if fits(middle):
            best, low = plans[-1], middle
        else:
            high = middle
    return _several(plans, best or plans[-1])


def largest(models: Iterable[Model], job: Job, cluster: Cluster, how: How) -> Several:
    """The model with most parameters that some layout holds for sure: the largest is tried first.

    Raises ValueError without models.
    """
    every = sorted(models, key=lambda model: -parameters(model).total)
    return _first(how.plan(model, job, cluster) for model in every)


def tried_of(found: Plan) -> Tried:
    """A search in short."""
    bill = found.best[0].bill if found.best else None
    return Tried(
        name=found.cluster.name,
        ranks=found.cluster.ranks,
        model=found.model.name,
        layers=found.model.layers,
        parameters=parameters(found.model).total,
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
