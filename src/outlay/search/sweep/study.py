"""A sweep: many questions in one fixed order, cut into parts that any process can answer by itself.

A question is one choice of every axis of a study. Axes that share nothing come first: each choice of them is a
*context*. The axes after them are layouts, which are counted together over a grid, and last the price. Nothing here
reads or writes a file: what a part holds depends on the study and the part's number alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from math import prod
from typing import Any, Literal

from ...job import Job
from ...layout.axes import NOT_VARIED, Layout

Kind = Literal["count", "plan"]

SITE = ("model", "on", "engine", "profile", "space")  # what is trained, where, by what, and how much is searched
JOB = tuple(field.name for field in fields(Job))
ALONE = (*NOT_VARIED, "accumulate_whole", "split")  # fields of a layout that a grid does not vary
GRID = tuple(field.name for field in fields(Layout) if field.name not in ALONE)
BEST = "best"  # of a split: the one that is sought for each layout
ONE_BY_ONE = ("split", "batch_rampup")  # that no grid counts: each layout has a bill of its own

MOST_LAYOUTS, MOST_CONTEXTS = 50_000, 256  # of a part that counts layouts together
PLANS, BILLS, PARTS = 16, 500, 256  # of a part at most where each is counted alone; fewer where parts would be few


@dataclass(frozen=True)
class Axis:
    """One thing that varies: its name, its values, and each as the study writes it."""

    name: str
    values: tuple[Any, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Limit:
    """What an answer has to keep to: a column of it, and both ends."""

    name: str
    low: float
    high: float


@dataclass(frozen=True)
class Run:
    """Questions of one context that follow each other: from `start` to before `stop` of those it has."""

    context: int
    start: int
    stop: int


def order(kind: Kind) -> tuple[str, ...]:
    """The names of all axes, in the order in which they vary: the first slowest."""
    layout = (*ALONE, *GRID) if kind == "count" else (*(f.name for f in fields(Layout)), "hybrid")
    return (*SITE, *JOB, *layout, "price")


@dataclass(frozen=True)
class Study:
    """All questions: axes in their order, the price last; and the limits of an answer."""

    kind: Kind
    axes: tuple[Axis, ...]
    limits: tuple[Limit, ...] = ()

    @cached_property
    def outer(self) -> tuple[Axis, ...]:
        """The axes of a context."""
        inner = (*GRID, "price") if self.kind == "count" else ("price",)
        return tuple(axis for axis in self.axes if axis.name not in inner)

    @cached_property
    def grid(self) -> tuple[Axis, ...]:
        """The axes of the layouts that one context counts together."""
        return tuple(axis for axis in self.axes[len(self.outer) :] if axis.name != "price")

    @cached_property
    def prices(self) -> tuple[float | None, ...]:
        """Dollars an hour of one accelerator; None is the price that the cluster has by itself."""
        return self.axes[-1].values

    @cached_property
    def together(self) -> int:
        """Questions of one context."""
        return prod(len(axis.values) for axis in self.axes[len(self.outer) :])

    @cached_property
    def questions(self) -> int:
        """All questions."""
        return prod(len(axis.values) for axis in self.axes)

    @cached_property
    def by_grid(self) -> bool:
        """Whether layouts are counted together."""
        return self.kind == "count" and not any(axis.name in ONE_BY_ONE for axis in self.axes)

    @cached_property
    def part_questions(self) -> int:
        """Questions of a part, seconds of work: whole contexts where they are small; of all prices in any case."""
        prices = len(self.prices)
        if not self.by_grid:
            alone = self.questions // prices
            return prices * max(1, min(alone // PARTS, BILLS if self.kind == "count" else PLANS))
        if self.together > MOST_LAYOUTS:
            return max(1, MOST_LAYOUTS // prices) * prices
        return self.together * max(1, min(MOST_LAYOUTS // self.together, MOST_CONTEXTS))

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return -(-self.questions // self.part_questions)

    def span(self, part: int) -> range:
        """The questions of a part."""
        return range(part * self.part_questions, min((part + 1) * self.part_questions, self.questions))

    def runs(self, part: int) -> Iterator[Run]:
        """The same, context by context."""
        at, end = self.span(part).start, self.span(part).stop
        while at < end:
            context, start = divmod(at, self.together)
            stop = min(self.together, start + end - at)
            yield Run(context, start, stop)
            at += stop - start

    def places(self, context: int) -> dict[str, int]:
        """Which value of each of its axes a context has."""
        found = {}
        for axis in reversed(self.outer):
            context, found[axis.name] = divmod(context, len(axis.values))
        return {axis.name: found[axis.name] for axis in self.outer}

    def picked(self, context: int) -> dict[str, Any]:
        """The values of a context."""
        places = self.places(context)
        return {axis.name: axis.values[places[axis.name]] for axis in self.outer}

    def texts(self, context: int) -> dict[str, str]:
        """The same, as the study writes them."""
        places = self.places(context)
        return {axis.name: axis.texts[places[axis.name]] for axis in self.outer}

    def varied(self) -> tuple[str, ...]:
        """The names of the axes with several values."""
        return tuple(axis.name for axis in self.axes if len(axis.values) > 1)
