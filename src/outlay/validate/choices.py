"""Published choices: the layout that a paper or a team took, beside the best of what its engine had then."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from ..bill import Bill, count
from ..cluster.accelerator import Cluster
from ..cluster.catalogue import cluster
from ..errors import Fault, InputError, nearest, quoted
from ..job import Job
from ..layout.axes import Layout
from ..layout.case import Case
from ..model.catalogue import load
from ..search.blocks import Grid
from ..search.narrow import narrow
from ..search.plan import asked, sweep
from ..search.rows import legal_rows
from ..search.space import DEGREES, Space, Width, declare

SAME = 1e-9  # relative: two counts of one layout
NOT_SEARCHED = ("overlap_ep", "graphs")  # what a search does not go through, and a published layout may have
KEPT = 50  # fastest layouts that are counted again where the published one has such a switch
Report = Callable[[int, int], None]  # choices done, choices in all


@dataclass(frozen=True)
class Narrowing:
    """What an engine and release had at a time, as values of a search's fields, and the same in words."""

    says: str
    width: Width = "wide"
    space: Mapping[str, tuple[Any, ...]] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Choice:
    """One published layout: the facts, and where they are from."""

    name: str
    model: str  # of the catalogue
    on: str
    engine: str
    narrowing: str  # its key
    source: str
    job: Mapping[str, Any] = field(hash=False)
    layout: Mapping[str, Any] = field(hash=False)
    nic_gbit: float = 0  # Gb/s an accelerator between nodes; 0: the catalogue's
    step_seconds: float = 0  # published; 0: not published
    step_from: str = ""  # the figure that it is derived from, where it is not printed
    stands_for: str = ""  # what of the run is not counted, and what stands in its place
    reading: str = ""  # what the difference means


@dataclass(frozen=True)
class Compared:
    """A published layout, counted, and the best of its space."""

    choice: Choice
    says: str  # the narrowing in words
    published: Bill
    best: Bill | None  # the fastest that fits for sure, the published one among them; None where none does
    inside: bool  # the published layout is one of those that were searched
    legal: int  # layouts that were searched

    @property
    def ratio(self) -> float | None:
        """Seconds of the best over those of the published layout."""
        return self.best.step.seconds / self.published.step.seconds if self.best else None


@dataclass(frozen=True)
class Choices:
    """All choices, or those done before it was stopped."""

    rows: tuple[Compared, ...]
    total: int

    @property
    def stopped(self) -> bool:
        """Whether choices are missing, because the comparison was stopped."""
        return len(self.rows) < self.total


@cache
def _table() -> dict[str, Any]:
    text = files("outlay.validate.table").joinpath("choices.toml").read_text("utf-8")
    table: dict[str, Any] = _frozen(tomllib.loads(text))
    return table


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(each) for key, each in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


@cache
def choices() -> tuple[Choice, ...]:
    """Every published choice of the table."""
    return tuple(Choice(**entry) for entry in _table()["choice"])


def narrowing_of(choice: Choice) -> Narrowing:
    """What its engine had at its time."""
    return Narrowing(**_table()["narrowing"][choice.narrowing])


def chosen(words: Sequence[str]) -> tuple[Choice, ...]:
    """The choices whose name holds one of some words; all of them without a word. Raises InputError (VAL010)."""
    found = tuple(each for each in choices() if any(word.lower() in each.name.lower() for word in words))
    missing = [word for word in words if not any(word.lower() in each.name.lower() for each in choices())]
    if missing:
        names = [each.name for each in choices()]
        rule, fix = f"words of: {'; '.join(names)}", f"such as {(nearest(missing[0], names) or names)[0]}"
        raise InputError(Fault("VAL010", "there is no such published choice", rule, quoted(missing[0]), fix))
    return found if words else choices()


def compare_choices(words: Sequence[str] = (), report: Report | None = None) -> Choices:
    """Count every published layout and search beside it. `report` is called after each. Ctrl-C keeps what is done."""
    wanted, rows = chosen(words), list[Compared]()
    try:
        for choice in wanted:
            rows.append(compared(choice))
            if report:
                report(len(rows), len(wanted))
    except KeyboardInterrupt:
        pass
    return Choices(tuple(rows), len(wanted))


def where(choice: Choice) -> Cluster:
    """The cluster of a choice, with the network that its source states."""
    found = cluster(choice.on)
    if not choice.nic_gbit:
        return found
    network = replace(found.top, bandwidth=choice.nic_gbit * 1e9 / 8)
    return replace(found, spine=network) if found.spine else replace(found, outside=network)


def published(choice: Choice) -> Bill:
    """The bill of the published layout."""
    return count(load(choice.model), Job(**choice.job), where(choice), Layout(**choice.layout), choice.engine)


def compared(choice: Choice) -> Compared:
    """The published layout, and the best of the space that its engine had then."""
    bill, narrowing = published(choice), narrowing_of(choice)
    case, _ = asked(bill.model, bill.job, bill.cluster, choice.engine)
    space = narrow(declare(case.model, case.job, case.cluster, case.engine, narrowing.width), **narrowing.space)
    grid = Grid(case, space, legal_rows(case, space))
    found = [bill, *fastest(grid, bill)]
    fitting = [each for each in found if each.memory.verdict == "fits" and not each.violations]
    best = min(fitting, key=lambda each: each.step.seconds, default=None)
    return Compared(choice, narrowing.says, bill, best, holds(case, space, bill), grid.layouts)


def fastest(grid: Grid, bill: Bill) -> list[Bill]:
    """The fastest layouts of a grid, each with the switches of the published one that are not searched, and without.

    A layout need not take them: without expert parallelism there is no exchange to hide.
    """
    more = {name: getattr(bill.layout, name) for name in NOT_SEARCHED}
    plain = all(value in (False, "none") for value in more.values())
    swept = sweep(grid, 1 if plain else KEPT)
    if not swept.whole:  # a search that was stopped is not an answer
        raise KeyboardInterrupt
    found = swept.best.found
    layouts = grid.layouts_at([each.row for each in found], [each.cell for each in found])
    both = dict.fromkeys(each for layout in layouts for each in (replace(layout, **more), layout))
    return [count(bill.model, bill.job, bill.cluster, each, bill.engine) for each in both]


def holds(case: Case, space: Space, bill: Bill) -> bool:
    """Whether a space has a layout: with its degrees and kinds, one of the same time and the same peak."""
    at = replace(bill.layout, overlap_ep=False, graphs="none")
    if bill.violations or any(getattr(at, name) not in space.degrees[name] for name in DEGREES):
        return False
    kinds = {"schedule": at.schedule, "recompute": at.recompute, "zero": at.zero}
    had = {"recompute": dict(space.recompute), "schedule": space.schedules, "zero": dict(space.zero)}
    if any(kind not in had[name] for name, kind in kinds.items()):
        return False
    pinned = {name: getattr(at, name) for name in DEGREES} | kinds
    alone = narrow(space, **{name: (value,) for name, value in pinned.items()})
    grid = Grid(case, alone, legal_rows(case, alone))
    plain = count(bill.model, bill.job, bill.cluster, at, bill.engine)
    for block in grid.blocks():
        same = np.isclose(block.seconds, plain.step.seconds, rtol=SAME, atol=0)
        if np.any(same & np.isclose(block.peaks, plain.memory.peak_bytes, rtol=SAME, atol=0)):
            return True
    return False
