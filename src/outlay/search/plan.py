"""plan(): every layout of a space counted, the best of them ranked, and what makes the answer one to act on."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..bill import Bill, case_of, count
from ..cluster.accelerator import Cluster
from ..engines.engine import Engine
from ..engines.tables import kernel_set
from ..errors import InputError
from ..job import AUTO, Job
from ..layout.axes import Layout
from ..layout.case import Case
from ..layout.module_rules import misnamed
from ..model.model import Model
from ..model.modules import modules_of
from ..shown import Shown
from .best import Best
from .best import Found as Kept
from .blocks import Block, Grid
from .empty import Emptied, emptied
from .fitting import limits
from .frontier import Frontier
from .narrow import narrow
from .progress import Progress
from .promising import promising
from .rows import legal_rows
from .space import Space, Width, declare


@dataclass(frozen=True)
class Ranked:
    """One layout of the answer, with the time and peak that the search counted; its bill is made when it is read."""

    layout: Layout
    seconds: float
    peak_bytes: float
    case: Case = field(repr=False, compare=False)

    @cached_property
    def bill(self) -> Bill:
        """The same layout, item by item."""
        case = self.case
        return count(case.model, case.job, case.cluster, self.layout, case.engine)


@dataclass(frozen=True)
class FrontierPoint:
    """A layout that no other beats on both memory and time."""

    peak_bytes: float
    seconds: float
    layout: Layout
    fits: bool


@dataclass(frozen=True)
class Baseline:
    """The best of a plainer kind of layout, for comparison; None where the kind has no legal layout."""

    name: str
    ranked: Ranked | None


@dataclass(frozen=True)
class Rejection:
    """How many layouts a rule was the first to reject."""

    rule: str
    count: int


@dataclass(frozen=True)
class Search:
    """What was searched: space = illegal + duplicates + legal; legal = counted + pruned; counted holds did_not_fit."""

    space: int
    illegal: int
    duplicates: int
    legal: int
    pruned: int
    counted: int
    did_not_fit: int
    seconds: float
    layouts_per_second: float
    proved: bool
    gap: float  # of the best time over the least it could be; 0 where all was counted


@dataclass(frozen=True)
class Plan(Shown):
    """The ranked answer."""

    model: Model
    job: Job
    cluster: Cluster
    engine: Engine
    space: Space
    best: tuple[Ranked, ...]
    frontier: tuple[FrontierPoint, ...]
    baselines: tuple[Baseline, ...]
    rejected: tuple[Rejection, ...]
    search: Search
    smallest: Ranked | None  # where nothing fits: the layout that needs least
    emptied: Emptied | None  # where no layout is legal: why
    assumptions: tuple[str, ...]


@dataclass
class Found:
    """What a search has kept so far."""

    best: Best
    frontier: Frontier
    least: Best  # the smallest peak, whatever its time
    counted: int = 0  # cells of blocks, also those that are no layout
    rejected: Counter[str] = field(default_factory=Counter)  # of these, by rule
    whole: bool = False

    def look(self, block: Block) -> None:
        """Keep what is best in a block."""
        self.best.offer(block.peaks, block.seconds, block.rows)
        self.frontier.offer(block.peaks, block.seconds, block.rows)
        if not self.best.found:
            self.least.offer(*_turned(block.peaks, block.seconds), block.rows)
        self.counted += block.seconds.size
        self.rejected.update(block.rejected)


def sweep(grid: Grid, most: int, progress: Progress | None = None, prune: bool = False) -> Found:
    """Count every layout block by block, or with `prune` those of rows that could be among the best.

    Ctrl-C keeps what was found.
    """
    bounds = limits(grid.case)
    found = Found(Best(most, bounds.fits), Frontier(bounds.tight), Best(1, np.inf))
    try:
        for block in promising(grid, found.best, found.least) if prune else grid.blocks():
            found.look(block)
            if progress:
                progress(found.counted, 0 if prune else grid.layouts, found.best.fastest, partial(_first, grid, found))
        found.whole = True
        if progress and prune:  # nobody knew before that it was the last
            progress(found.counted, found.counted, found.best.fastest, partial(_first, grid, found))
    except KeyboardInterrupt:
        pass
    return found


def _turned(peaks: Any, seconds: Any) -> tuple[Any, Any]:
    """Seconds and peaks with their roles exchanged, to look for the least peak."""
    return seconds, np.broadcast_to(peaks, seconds.shape)


def asked(model: Model, job: Job, cluster: Cluster, engine: Engine | str) -> tuple[Case, tuple[str, ...]]:
    """The case that a search varies, its job complete, and what was assumed of the job."""
    batch: tuple[str, ...] = ()
    if job.global_batch is AUTO:
        job = replace(job, global_batch=cluster.ranks)
        batch = (f"GLOBAL BATCH {cluster.ranks:,}: ONE SEQUENCE A CARD (--batch)",)
    case, assumptions = case_of(model, job, cluster, Layout(), engine)
    of_layout = case_of(model, case.job, cluster, Layout(), engine)[1]
    said = (text for text in assumptions if text not in of_layout or text.startswith("engine"))
    return case, (*batch, *said, *model.notes)


def plan(
    model: Model,
    job: Job,
    cluster: Cluster,
    engine: Engine | str = "megatron",
    *,
    width: Width = "wide",
    best: int = 20,
    progress: Progress | None = None,
    **narrowed: tuple[Any, ...],
) -> Plan:
    """The best layouts of a declared space, proved in the refined objective.

    `narrowed` keeps only these values of a field: `tp=(1, 2, 4, 8)`. Raises InputError for what cannot be read.
    """
    start = time.perf_counter()
    case, assumptions = asked(model, job, cluster, engine)
    space = narrow(declare(model, case.job, cluster, case.engine, width), **narrowed)
    had = modules_of(model, kernel_set(case.engine.kernels))
    faults = [*misnamed(space.recompute_modules, had, model, case.engine, "--recompute-modules")]
    if faults:
        raise InputError(*faults)
    grid = Grid(case, space, legal_rows(case, space))
    found = sweep(grid, best, progress, prune=width == "full")
    seconds = time.perf_counter() - start
    kept = _ranked(grid, found.best.found)
    least = [] if kept else _ranked(grid, [_turned_back(each) for each in found.least.found])
    return Plan(
        model=model, job=case.job, cluster=cluster, engine=case.engine, space=space, best=kept,
        frontier=_frontier(grid, found.frontier),
        baselines=baselines(case, width),
        rejected=tuple(Rejection(*each) for each in _rejected(grid, found).items()),
        search=_search(grid, found, seconds),
        smallest=least[0] if least else None,
        emptied=None if len(grid.rows) else emptied(case, space, grid.rows),
        assumptions=assumptions,
    )  # fmt: skip


def _turned_back(least: Kept) -> Kept:
    return replace(least, seconds=least.peak, peak=least.seconds)


def _ranked(grid: Grid, found: Sequence[Kept]) -> tuple[Ranked, ...]:
    layouts = grid.layouts_at([each.row for each in found], [each.cell for each in found])
    return tuple(Ranked(at, each.seconds, each.peak, grid.case) for at, each in zip(layouts, found, strict=True))


def _frontier(grid: Grid, frontier: Frontier) -> tuple[FrontierPoint, ...]:
    fits, points = limits(grid.case).fits, frontier.found()
    layouts = grid.layouts_at([point.row for point in points], [point.cell for point in points])
    return tuple(
        FrontierPoint(point.peak, point.seconds, layout, point.peak <= fits)
        for point, layout in zip(points, layouts, strict=True)
    )


def _rejected(grid: Grid, found: Found) -> Counter[str]:
    return Counter(grid.rows.rejected) + found.rejected


def _search(grid: Grid, found: Found, seconds: float) -> Search:
    illegal, broken = _rejected(grid, found).total(), found.rejected.total()
    counted = found.counted - broken
    return Search(
        space=grid.space.size,
        illegal=illegal,
        duplicates=grid.space.size - illegal - (grid.layouts - broken),
        legal=grid.layouts - broken,
        pruned=grid.layouts - found.counted,
        counted=counted,
        did_not_fit=counted - found.best.fitting,
        seconds=seconds,
        layouts_per_second=counted / seconds,
        proved=found.whole,
        gap=0.0 if found.whole else float("inf"),
    )


PLAIN: dict[str, tuple[Any, ...]] = {"tp": (1,), "cp": (1,), "pp": (1,), "ep": (1,), "etp": (1,), "vpp": (1,)}
KINDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "data parallel": PLAIN | {"zero": (0,), "hybrid": (False,)},
    "FSDP": PLAIN | {"zero": (3,), "hybrid": (False,)},
    "best without a pipeline": {"pp": (1,), "vpp": (1,)},
}


def baselines(case: Case, width: Width) -> tuple[Baseline, ...]:
    """Plain data parallel, FSDP, and the best without a pipeline, whatever narrows the plan itself."""
    space = declare(case.model, case.job, case.cluster, case.engine, width)
    prune = width == "full"
    return tuple(Baseline(name, _best_of(case, narrow(space, **kind), prune)) for name, kind in KINDS.items())


def _best_of(case: Case, space: Space, prune: bool) -> Ranked | None:
    """The fastest that fits; where none does, the one that needs least."""
    if not space.zero:
        return None
    return first_of(Grid(case, space, legal_rows(case, space)), prune)


def first_of(grid: Grid, prune: bool = False) -> Ranked | None:
    """The fastest of a grid that fits; where none does, the one that needs least; None where it holds none."""
    return _first(grid, sweep(grid, 1, prune=prune))


def _first(grid: Grid, found: Found) -> Ranked | None:
    kept = found.best.found or [_turned_back(each) for each in found.least.found]
    return next(iter(_ranked(grid, kept[:1])), None)


def ranked_by(bill: Bill, case: Case) -> Ranked:
    """A layout that was billed already, among those of a case."""
    return Ranked(bill.layout, bill.step.seconds, bill.memory.peak_bytes, case)
