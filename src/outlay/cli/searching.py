"""The question behind plan: a model, a task, a cluster or several, and a space to search."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, get_args

from ..cluster.accelerator import Cluster
from ..engines.engine import Engine
from ..engines.profiled import said_of
from ..errors import Fault, quoted
from ..job import AUTO, Job
from ..model.model import Model
from ..model.scaled import with_layers
from ..search.narrow import narrow, unsearchable
from ..search.plan import asked
from ..search.several import unpriced
from ..search.space import Space, Width, declare
from ..search.split.best import takes_split
from .flags import Given
from .mixing import read_mixed
from .narrowing import Narrowed, read_narrowing, read_why, resolved
from .ordering import Wanted, read_orders
from .profiling import under
from .question import read_clusters
from .several_models import one_sequence, read_tasks
from .splitting import without_best
from .storing import with_site
from .values import BYTES, Faults, count, number

OBJECTIVES = ("time", "accelerators", "money", "tokens", "sequence", "model")
SEVERAL = ("accelerators", "money", "tokens")  # what compares clusters
RANGE = re.compile(r"\s*(\d{1,8})\s*\.\.\s*(\d{1,8})\s*[xX]\s*(\S+)\s*")
MOST_CLUSTERS, MOST_BEST = 1_000, 1_000
BEST = "20"
CHUNKED = (720, 1_001, 14)  # layers that up to 16 chunks divide: one of them or another


@dataclass(frozen=True)
class Searched:
    """One search, read and in range."""

    models: tuple[Model, ...]  # one, unless the largest of several is sought
    job: Job
    clusters: tuple[Cluster, ...]  # smallest first; one, unless the fewest accelerators are sought
    engine: str | Engine
    width: Width
    most: int
    objective: str
    narrowed: Narrowed
    why: Mapping[str, Any]  # values that are asked about
    combinations: int  # of the largest cluster
    notes: tuple[str, ...]
    split: bool = False  # the best layouts are counted again with the best split of each
    mixed: tuple[str, ...] = ()  # what each layer chooses by itself
    orders: Wanted | None = None  # that the best pipelines are run in again


def read_search(given: Given) -> Searched:
    """The search in a command line and its --config file. Raises every fault."""
    faults = Faults()
    objective = _choice(given, "objective", OBJECTIVES, "time", faults)
    first, *others = read_tasks(given, objective, faults)
    at, split = without_best(first)
    width = _choice(given, "space", get_args(Width), "wide", faults)
    if given.text("split") is not None and not split:
        _choice(given, "split", ("best",), "", faults)
    most = count(given.text("best") or BEST, "--best", faults, MOST_BEST)
    found = read_narrowing(given.values, _table(at.file.get("layout", {}), faults), faults)
    why = read_why(given.text("why"), faults)
    on = at.texts.get("on")
    clusters = () if at.broken and on is None else _clusters(on, at.asked, objective, faults)
    clusters = with_site(clusters, {**at.file, **at.texts}, faults)
    clusters, driver = under(at.profile, clusters, at.engine, faults)
    if split:
        faults.attempt(takes_split, driver)
    job = _with_headroom(given, at.job, clusters, faults)
    mixed, orders = faults.attempt(read_mixed, given) or (), read_orders(given, faults)
    if mixed:
        from ..search.mixed.best import takes_mixed

        faults.attempt(takes_mixed, driver, mixed)
    faults.stop()
    models = tuple(each.model for each in (at, *others) if each.model is not None)
    job, notes = _one_batch(job, clusters)
    job, more = one_sequence(job, models)
    spaces = _spaces(models, job, clusters, driver, width, objective)
    domain = clusters[0].inside.size if given.on("tp_within_node") else None
    narrowed = resolved(found, spaces, domain, faults)
    faults.stop()
    kept = [narrow(space, **narrowed) for space in spaces]
    faults.add(*unsearchable(max(kept, key=lambda space: prod(map(len, space.degrees.values())))))
    faults.stop()
    assert most is not None
    size = max(space.size for space in kept)
    notes += tuple(filter(None, [*more, said_of(clusters[0])]))
    found_all = (models, job, clusters, driver, width, most, objective, narrowed, why, size, notes)
    return Searched(*found_all, split, mixed, orders)


def _spaces(
    models: tuple[Model, ...],
    job: Job,
    clusters: tuple[Cluster, ...],
    driver: str | Engine,
    width: Width,
    objective: str,
) -> list[Space]:
    """The space of every search that is known before the first; of one model's layers, those of numbers that every
    number of chunks divides."""
    if objective == "model" and len(models) == 1:
        models = (*models, *(with_layers(models[0], layers) for layers in CHUNKED))
    cases = [asked(model, job, clusters[0], driver)[0] for model in models]
    return [declare(case.model, case.job, each, case.engine, width) for case in cases for each in clusters]


def _table(read: Any, faults: Faults) -> Mapping[str, Any]:
    if not isinstance(read, Mapping):
        faults.add(Fault("CFG003", "layout is not a table", "[layout] is a table of fields", quoted(read), "[layout]"))
        return {}
    return read


def _choice(given: Given, name: str, choices: tuple[str, ...], default: str, faults: Faults) -> Any:
    text = (given.text(name) or default).lower()
    if text not in choices:
        rule = f"one of {', '.join(choices)}"
        faults.add(Fault("PLN003", f"--{name} cannot be {quoted(text)}", rule, quoted(text), f"--{name} {choices[0]}"))
    return text


def _with_headroom(given: Given, job: Job, clusters: tuple[Cluster, ...], faults: Faults) -> Job:
    """The job with the memory that stays free beside what is reserved; a share is of the largest accelerator's."""
    text = given.text("headroom")
    if text is None:
        return job
    value = number(text, {**BYTES, "%": 0.01})
    there = max((each.accelerator.memory_bytes for each in clusters), default=float("inf"))
    share = "%" in text
    free = None if value is None or value < 0 else value * (there if share else 1)
    if free is None or not free < there:
        rule, got = "a share or a size of memory, less than there is", quoted(text)
        faults.add(Fault("PLN003", f"--headroom cannot be {got}", rule, got, "--headroom 5%"))
        return job
    return replace(job, reserved_bytes=job.reserved_bytes + free)


def _one_batch(job: Job, clusters: tuple[Cluster, ...]) -> tuple[Job, tuple[str, ...]]:
    """Clusters are compared at one batch: where none was given, that which the largest would take."""
    if len(clusters) < 2 or job.global_batch is not AUTO:
        return job, ()
    batch = clusters[-1].ranks
    said = f"GLOBAL BATCH {batch:,} ON EVERY CLUSTER: ONE SEQUENCE A CARD OF THE LARGEST (--batch)"
    return replace(job, global_batch=batch), (said,)


def _clusters(on: Any, base: Any, objective: str, faults: Faults) -> tuple[Cluster, ...]:
    """The clusters to search, smallest first: one for time or a sequence, several for what compares clusters."""
    match = RANGE.fullmatch(str(on or ""))
    found = _range(int(match[1]), int(match[2]), match[3], faults) if match else read_clusters(on, base, faults)
    found = tuple(sorted(found, key=lambda each: each.ranks))
    if objective in SEVERAL and len(found) == 1 and not match:
        what, rule = f"--objective {objective} of one cluster", f"--objective {objective} compares several clusters"
        name = found[0].name.partition("x")[2]
        faults.add(Fault("PLN007", what, rule, quoted(on or found[0].name), f"--on 8..512x{name}"))
    elif objective not in SEVERAL and (len(found) > 1 or match):
        what, rule = "several clusters for one plan", f"--objective {objective} is of one cluster"
        fix = f"--objective accelerators, money or tokens, or --on {found[-1].name if found else '64xh100-sxm'}"
        faults.add(Fault("PLN007", what, rule, quoted(on), fix))
    if objective == "money" and not faults.found:
        faults.attempt(unpriced, found)
    return found


def _range(low: int, high: int, name: str, faults: Faults) -> tuple[Cluster, ...]:
    """Clusters of low to high: multiples of the scale-up domain, and below it its divisors."""
    from ..cluster.catalogue import cluster

    one = faults.attempt(cluster, f"1x{name}")
    if one is None:
        return ()
    domain = one.inside.size
    rule = f"a..b counts {name}; tried are multiples of the scale-up domain, {domain} cards, and below it its divisors"
    if not 0 < low <= high:
        fix = f"--on {max(1, min(low, high))}..{max(1, low, high)}x{name}"
        faults.add(Fault("PLN004", "the range of --on goes down", rule, f"{low}..{high}", fix))
        return ()
    sizes = [n for n in _steps(low, high, one.ranks, domain) if _whole(n * one.ranks, domain)]
    if not sizes or len(sizes) > MOST_CLUSTERS:
        what = f"the range of --on holds {len(sizes):,} clusters" if sizes else "the range of --on holds no cluster"
        start = max(1, domain // one.ranks)
        fix = f"--on {max(start, low // start * start)}..{max(start, low // start * start) + 63 * start}x{name}"
        faults.add(Fault("PLN007", what, f"{rule}; {MOST_CLUSTERS:,} at most", f"{low}..{high}", fix))
        return ()
    return tuple(filter(None, (faults.attempt(cluster, f"{size}x{name}") for size in sizes)))


def _steps(low: int, high: int, ranks: int, domain: int) -> list[int]:
    """Counts that may make whole domains; one too many where there are too many, so that a long range costs nothing."""
    small = list(range(low, min(high, domain) + 1))
    step = max(1, domain // ranks)
    first = max(low, domain + 1)
    return small + list(range(first + -first % step, high + 1, step))[: MOST_CLUSTERS * 2]


def _whole(ranks: int, domain: int) -> bool:
    return ranks % domain == 0 or domain % ranks == 0
