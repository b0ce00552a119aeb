"""The best layouts of a plan run pass by pass: stages as they are, in the schedule's own order."""

from collections.abc import Callable
from dataclasses import dataclass

from ..bill import case_of, load
from ..errors import InputError
from ..simulated import simulated
from .plan import Plan, Ranked


@dataclass(frozen=True)
class Retimed:
    """One layout of the ranking, with its simulated time; none where its order does not take its numbers."""

    place: int  # in the ranking by refined time, from 1
    ranked: Ranked
    seconds: float | None


@dataclass(frozen=True)
class Simulation:
    """The ranking again by simulated time, and how far it is proved."""

    ranking: tuple[Retimed, ...]
    proved: bool  # every layout that is not in the ranking has a refined time above the least simulated one
    gap: float | None  # share by which one that is not in it may be faster, 0 where proved; None: of a stopped search


def retime(found: Plan, progress: Callable[[int, int], None] | None = None) -> Simulation:
    """Simulate what a plan ranked; `progress` is told how many of how many are done. Ctrl-C keeps what is done.

    A layout that was left out takes no less than the last of the ranking, by refined time: it is the bound of the gap.
    """
    made: list[Retimed] = []
    try:
        for place, ranked in enumerate(found.best, 1):
            made.append(Retimed(place, ranked, _seconds(found, ranked)))
            if progress:
                progress(place, len(found.best))
    except KeyboardInterrupt:
        pass
    ranking = sorted(made, key=lambda each: (each.seconds is None, each.seconds or 0.0, each.place))
    if not ranking or ranking[0].seconds is None:
        return Simulation(tuple(ranking), False, None)
    if not found.search.proved or len(made) < len(found.best):
        return Simulation(tuple(ranking), False, None)
    left = found.search.pruned or found.search.counted - found.search.did_not_fit > len(found.best)
    bound = found.best[-1].bill.step.seconds if left else float("inf")
    return Simulation(tuple(ranking), ranking[0].seconds <= bound, max(0.0, 1 - bound / ranking[0].seconds))


def _seconds(found: Plan, ranked: Ranked) -> float | None:
    case, _ = case_of(found.model, found.job, found.cluster, ranked.layout, found.engine)
    try:
        return simulated(load(case)).seconds
    except InputError:
        return None
