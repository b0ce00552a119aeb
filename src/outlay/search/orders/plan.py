"""The few best pipelines of a plan again, each in every order of passes that its stages can run."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...bill import Loaded, case_of, load
from ...errors import InputError
from ...layout.axes import Layout
from ...schedule.synthesis.problem import Problem
from ...schedule.times import TICK
from ...simulated import order_of, run
from ..fitting import limits
from ..plan import Plan
from .sought import least_seconds, peak_of, problem_for, room, seek_in_room
from .standing import MOST_WAYS, Way, standing, unlike, way_of, ways

SOUGHT = "best"
PIPELINES = 5  # of the ranking, each another in one of ANOTHER
ANOTHER = (
    "tp", "cp", "pp", "ep", "etp", "dp_replicate", "dp_shard", "micro_batch", "recompute", "recompute_modules",
    "recompute_layers",
)  # fmt: skip

Told = Callable[[int, int], None]  # orders that were run, of how many at the most


@dataclass(frozen=True)
class Reordered:
    """One pipeline of the ranking in one order, pass by pass."""

    place: int  # of the pipeline in the ranking by refined time, from 1
    order: str  # a schedule, or `best`: one that was sought
    layout: Layout  # with the chunks that the order has
    way: Way
    seconds: float
    peak_bytes: float  # of the rank that holds most, at its largest moment
    fits: bool
    own: bool = False  # whether it is what the plan has
    held: float | None = None  # of a search for an order: micro-batches that a rank may hold
    proved: bool = False  # no order of the same chunks that holds no more is shorter


@dataclass(frozen=True)
class Orders:
    """Pipelines in orders: those that fit, the fastest first, then the others; and which orders were not run."""

    ranking: tuple[Reordered, ...]
    left_out: tuple[tuple[str, str], ...]  # order and reason
    unsought: int  # pipelines with chunks so or so for which no order was sought: the time was over
    stopped: bool

    @property
    def own(self) -> Reordered | None:
        """The fastest that fits of what the plan has, pass by pass."""
        return next((each for each in self.ranking if each.own and each.fits), None)


def reorder(found: Plan, wanted: Sequence[str], seconds: float, told: Told | None = None) -> Orders:
    """Run the first pipelines of a plan in these orders; `best` is sought in about so many seconds altogether.

    Memory is that of the same passes, rank by rank, at its largest moment. Ctrl-C keeps what is done.
    """
    reasons = {name: why for name in wanted if name != SOUGHT and (why := unlike(name))}
    named = [name for name in wanted if name != SOUGHT and name not in reasons]
    search = _Search(_pipelines(found), named, SOUGHT in wanted, told)
    stopped = False
    try:
        search.run_named()
        if SOUGHT in wanted:
            stopped = search.seek_all(time.monotonic() + seconds)
    except KeyboardInterrupt:
        stopped = True
    run_of = {each.order for each in search.made} | ({SOUGHT} if search.sought else set())
    reasons |= {name: why for name, why in search.refused.items() if name not in run_of}
    ranking = sorted(search.made, key=lambda each: (not each.fits, each.seconds, not each.own, each.place))
    return Orders(tuple(ranking), tuple(reasons.items()), search.unsought, stopped)


def _pipelines(found: Plan) -> dict[int, Loaded]:
    """The first of the ranking that have stages and are cut or recomputed in another way each, by their place."""
    kept: dict[tuple[Any, ...], int] = {}
    for place, ranked in enumerate(found.best, 1):
        if ranked.layout.pp > 1 and len(kept) < PIPELINES:
            kept.setdefault(tuple(getattr(ranked.layout, name) for name in ANOTHER), place)
    layouts = [(place, found.best[place - 1].layout) for place in kept.values()]
    return {place: load(case_of(found.model, found.job, found.cluster, at, found.engine)[0]) for place, at in layouts}


@dataclass
class _Search:
    """What is run so far."""

    pipelines: dict[int, Loaded]
    named: list[str]
    seeks: bool
    told: Told | None
    made: list[Reordered] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # orders, and why one of the pipelines has none
    sought: int = 0
    unsought: int = 0
    done: int = 0

    def run_named(self) -> None:
        """Every pipeline in its own order, and in those with a name."""
        for place, loaded in self.pipelines.items():
            own = str(loaded.case.layout.schedule)
            for name in (own, *(name for name in self.named if name != own)):
                self._name(place, loaded, name, own=name == own)
                self._tell()

    def _name(self, place: int, pipeline: Loaded, name: str, own: bool) -> None:
        """One order with a name on one pipeline, where its stages can stand so and it takes their number."""
        way = way_of(name, pipeline.case.layout)
        case = standing(pipeline.case, way)
        if case is None:
            self.refused[name] = f"no cut into {way.chunks} chunks a rank obeys every rule"
            return
        loaded = load(case)
        try:
            ran = run(loaded, lambda some: order_of(case, some, name))
        except InputError as error:
            self.refused[name] = error.faults[0].rule
            return
        self._keep(place, name, way, loaded, (ran.seconds, peak_of(loaded, ran)), own=own)

    def _keep(self, place: int, name: str, way: Way, loaded: Loaded, took: tuple[float, float], **more: Any) -> None:
        seconds, peak = took
        fits = peak <= limits(loaded.case).fits
        self.made.append(Reordered(place, name, loaded.case.layout, way, seconds, peak, fits, **more))

    def _tell(self) -> None:
        """One order more is run, or cannot be."""
        self.done += 1
        if self.told:
            named = sum(len({str(each.case.layout.schedule), *self.named}) for each in self.pipelines.values())
            self.told(self.done, named + self.seeks * MOST_WAYS * len(self.pipelines))

    def seek_all(self, until: float) -> bool:
        """An order for each way the chunks of a pipeline stand, the likeliest first; whether it was stopped."""
        every = sorted(self._problems(), key=lambda each: least_seconds(*each[2:]))
        for turn, (place, way, loaded, problem) in enumerate(every):
            left = until - time.monotonic()
            if least_seconds(loaded, problem) < self._shortest():  # else none of its orders can be the fastest
                self.sought += left > 0
                self.unsought += left <= 0
                if left > 0 and self._seek(place, way, loaded, left / (len(every) - turn)):
                    return True
            self._tell()
        return False

    def _problems(self) -> Iterator[tuple[int, Way, Loaded, Problem]]:
        for place, pipeline in self.pipelines.items():
            for way in ways(pipeline.case.layout):
                case = standing(pipeline.case, way)
                if case is None:
                    continue
                loaded = load(case)
                try:
                    yield place, way, loaded, problem_for(loaded, way, room(loaded))
                except InputError as error:
                    self.refused[SOUGHT] = error.faults[0].rule

    def _seek(self, place: int, way: Way, loaded: Loaded, seconds: float) -> bool:
        """One search; whether it was stopped. A schedule with a name that is as short stands for its answer."""
        found = seek_in_room(loaded, way, seconds)
        more = {"held": found.held, "proved": found.proved}
        for index, each in enumerate(self.made):
            if (each.place, each.way) == (place, way) and each.fits and each.seconds <= found.run.seconds + TICK:
                self.made[index] = replace(each, **more)  # type: ignore[arg-type]
                return found.stopped
        self._keep(place, SOUGHT, way, loaded, (found.run.seconds, found.peak_bytes), **more)
        return found.stopped

    def _shortest(self) -> float:
        """Seconds of the fastest that fits."""
        return min((each.seconds for each in self.made if each.fits), default=float("inf"))
