"""What more of each resource is worth to a layout: rates, links and memory a tenth larger, twice the cards or batch."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..bill import Bill, count
from ..cluster.accelerator import Accelerator, Cluster
from ..errors import InputError
from ..job import AUTO
from ..layout.axes import Layout
from .changed import grown
from .plan import Plan

TENTH, TWICE = 1.1, 2.0
RATES = ("bf16_flops", "fp16_flops", "fp8_flops", "fp4_flops", "fp32_flops")


@dataclass(frozen=True)
class Worth:
    """More of one resource, and what a step then takes and gives."""

    resource: str
    times: float  # as much of it
    seconds: float
    tokens_per_second: float
    gain: float  # share of tokens a second that are gained; below 0 where they are lost
    layout: Layout | None = None  # where another layout uses it


def worths(found: Plan) -> tuple[Worth, ...]:
    """What the best layout of a plan would gain, the most first; nothing where none fits.

    Rates, links, cards and batch: the same layout counted again. Memory: the fastest of the plan that is tight.
    """
    if not found.best:
        return ()
    first = found.best[0].bill
    every = [*_faster(first), *_doubled(first), *_roomier(found, first)]
    return tuple(sorted(every, key=lambda each: -each.gain))


def _worth(resource: str, times: float, before: Bill, after: Bill, layout: Layout | None = None) -> Worth:
    gain = after.step.tokens_per_second / before.step.tokens_per_second - 1
    return Worth(resource, times, after.step.seconds, after.step.tokens_per_second, gain, layout)


def _faster(first: Bill) -> Iterator[Worth]:
    """The same layout where one rate is a tenth higher."""
    cluster = first.cluster
    for resource, better in _rates(cluster):
        after = count(first.model, first.job, better, first.layout, first.engine)
        yield _worth(resource, TENTH, first, after)


def _rates(cluster: Cluster) -> Iterator[tuple[str, Cluster]]:
    card = cluster.accelerator
    yield "matrix rate", replace(cluster, accelerator=_scaled(card, *RATES))
    yield "memory bandwidth", replace(cluster, accelerator=_scaled(card, "memory_bandwidth"))
    for level in ("inside", "outside", "spine"):
        link = getattr(cluster, level)
        below = {"inside": 1, "outside": cluster.inside.size, "spine": cluster.outside.size}[level]
        if link is not None and min(cluster.ranks, link.size) > below:
            yield link.name, replace(cluster, **{level: replace(link, bandwidth=TENTH * link.bandwidth)})


def _scaled(card: Accelerator, *names: str) -> Accelerator:
    return replace(card, **{name: TENTH * getattr(card, name) for name in names})


def _doubled(first: Bill) -> Iterator[Worth]:
    """Twice the cards for the same batch, and twice the batch on the same cards, cut alike, where that is legal."""
    wider = replace(first.layout, dp_shard=AUTO, dp_replicate=AUTO)
    larger = replace(first.job, global_batch=2 * first.job.global_batch)
    questions = (
        ("cards", first.job, grown(first.cluster, 2), wider),
        ("batch", larger, first.cluster, first.layout),
    )
    for resource, job, cluster, layout in questions:
        try:
            after = count(first.model, job, cluster, layout, first.engine)
        except InputError:
            continue
        if not after.violations:
            yield _worth(resource, TWICE, first, after)


def _roomier(found: Plan, first: Bill) -> Iterator[Worth]:
    """The fastest layout that would fit with more memory, of those that may fit already."""
    tight = [point for point in found.frontier if not point.fits and point.seconds < first.step.seconds]
    if not tight:
        return
    fastest = min(tight, key=lambda point: point.seconds)
    after = count(first.model, first.job, first.cluster, fastest.layout, first.engine)
    times = after.memory.usable_bytes + after.memory.peak_bytes - first.memory.peak_bytes
    yield _worth("memory", times / after.memory.usable_bytes, first, after, fastest.layout)
