"""The oracle of advice: every change counted as a whole bill, and the same choice among the bills."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations
from typing import Any

from outlay import Bill, Job, Layout, count
from outlay.errors import InputError
from outlay.search.advice import MOST, Advice, Change, changes
from outlay.search.changed import grown
from outlay.search.faster import LEAST, faster_changes

Way = tuple[tuple[Change, ...], Bill]


def changed(bill: Bill, made: tuple[Change, ...]) -> Bill | None:
    """The bill after some changes; nothing where it cannot be counted or is not legal."""
    layout: dict[str, Any] = {name: value for change in made for name, value in change.layout.items()}
    wanted: dict[str, Any] = {name: value for change in made for name, value in change.job.items()}
    at: Layout = replace(bill.layout, **layout)
    job: Job = replace(bill.job, **(wanted | ({"frozen_format": None} if "adapter" in wanted else {})))
    try:
        found = count(bill.model, job, grown(bill.cluster, max(change.ranks for change in made)), at, bill.engine)
    except InputError:
        return None
    return None if found.violations else found


def single(bill: Bill, every: Iterable[Change]) -> list[Way]:
    """Each change alone."""
    return [((change,), after) for change in every if (after := changed(bill, (change,))) is not None]


def advice(bill: Bill) -> tuple[Advice, ...]:
    """What `advise` says, by whole bills."""
    if bill.memory.verdict in ("fits", None):
        return ()
    tried = single(bill, changes(bill))
    whole = [way for way in tried if way[0][0].kind != "adapter"]
    adapted = [way for way in tried if way[0][0].kind == "adapter" and fits(way)]
    fitting = [way for way in whole if fits(way)] or pairs(bill, whole)
    return tuple(map(said, (*best(fitting)[: MOST - 1], *best(adapted)[:1])))


def pairs(bill: Bill, alone: list[Way]) -> list[Way]:
    """Two changes of different kinds, of each the one that leaves least."""
    least: dict[str, Change] = {}
    for made, _ in sorted(alone, key=lambda way: way[1].memory.peak_bytes):
        least.setdefault(made[0].kind, made[0])
    two = combinations((change for kind, change in least.items() if kind != "split"), 2)
    found = [(pair, after) for pair in two if (after := changed(bill, pair)) is not None]
    return [way for way in found if fits(way)]


def faster(bill: Bill) -> tuple[Advice, ...]:
    """What `faster` says, by whole bills."""
    if bill.memory.verdict != "fits":
        return ()
    useful = [way for way in single(bill, faster_changes(bill)) if fits(way) and shorter(way[1], bill)]
    first: dict[str, Way] = {}
    for way in sorted(useful, key=lambda way: way[1].step.seconds):
        first.setdefault(way[0][0].kind, way)
    made: tuple[Change, ...] = ()
    now = bill
    for (change,), _ in first.values():
        after = changed(bill, (*made, change))
        if after and fits(((change,), after)) and shorter(after, bill) and shorter(after, now):
            made, now = (*made, change), after
    found = list(first.values())[:MOST]
    return tuple(map(said, [*found, (made, now)] if len(made) > 1 else found))


def shorter(after: Bill, before: Bill) -> bool:
    """Whether a step saves enough."""
    return after.step.seconds < (1 - LEAST) * before.step.seconds


def fits(way: Way) -> bool:
    """Whether it fits for sure."""
    return way[1].memory.verdict == "fits"


def best(found: list[Way]) -> list[Way]:
    """The fastest way of each combination of kinds, the fastest of them first."""
    first: dict[tuple[str, ...], Way] = {}
    for way in sorted(found, key=lambda way: -way[1].step.tokens_per_second_per_device):
        first.setdefault(tuple(change.kind for change in way[0]), way)
    return list(first.values())


def said(way: Way) -> Advice:
    """A way in words."""
    made, after = way
    words, flags = ", ".join(change.words for change in made), " ".join(change.flag for change in made)
    step = after.step
    return Advice(words, flags, after.memory.peak_bytes, step.seconds, step.tokens_per_second_per_device)
