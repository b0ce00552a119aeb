"""A layout with its chunks where another order of passes has them, and why some orders stand on no layout."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from ...layout.axes import Layout
from ...layout.case import Case
from ...layout.rules import rules_of
from ...layout.stages import chunk_sizes
from ...schedule.laws import SCHEDULES
from ...schedule.orders import facts
from ..rows import EVEN, OF_A_SCHEDULE

MOST_WAYS = 3  # that an order is sought for
UNLIKE = {
    "seq1f1b": "its passes are of slices of a sequence",
    "bpipe": "it moves activations to other ranks while they wait",
}


class Way(NamedTuple):
    """How the chunks of a pipeline stand: so many a rank, in a loop or on a V."""

    chunks: int
    folded: bool = False

    @property
    def words(self) -> str:
        """In words: two chunks a rank on a V."""
        return (
            "one chunk a rank"
            if self.chunks == 1
            else f"{self.chunks} chunks a rank {'on a V' if self.folded else 'in a loop'}"
        )

    @property
    def place(self) -> str:
        """The placement by its name in a search."""
        return "snake" if self.folded else "loop"


def unlike(name: str) -> str:
    """Why a schedule cannot run on the stages of a layout as they are counted; an empty text where it can."""
    known = facts(name)
    if known.copies > 1:
        return "it holds two copies of the weights"
    if known.asynchronous(2):
        return "its gradients are of weights that have changed since"
    return UNLIKE.get(name, "")


def way_of(name: str, layout: Layout) -> Way:
    """How the chunks of a layout stand under a schedule: as many as the layout has, where the schedule takes them."""
    known = facts(name)
    chunks = 1 if known.chunks == "one" else 2 if known.chunks in ("two", "even") else max(2, int(layout.vpp))
    return Way(chunks, known.placement in ("folded", "snake"))


def ways(layout: Layout) -> tuple[Way, ...]:
    """The ways that an order is sought for: one chunk a rank, a V, and a loop of as many as the layout has."""
    return Way(1), Way(2, True), Way(max(2, int(layout.vpp)))


def standing(case: Case, way: Way) -> Case | None:
    """The case with its chunks so, under a schedule whose laws know where they stand.

    The layers are cut as they are; as the engine cuts them; or with embedding and head as a layer each. None where no
    such cut obeys every rule that is not of the schedule.
    """
    name: Any = "1f1b" if way.chunks == 1 else "zbv" if way.folded else "interleaved"
    for split in _splits(case, way):
        layout = replace(case.layout, vpp=way.chunks, schedule=name, split=split)
        made = replace(case, layout=layout, schedule=SCHEDULES[name])
        if _stands(made):
            return made
    return None


def _splits(case: Case, way: Way) -> Iterator[tuple[int, ...]]:
    at = case.layout
    split = tuple(at.split or ())
    if way == (int(at.vpp), bool(at.folded)) or len(split) == at.pp * way.chunks or _shared(split, at, way):
        yield split
    yield ()
    yield tuple(chunk_sizes(case.model.layers, int(at.pp), way.chunks, counts_ends=True))


def _shared(split: tuple[int, ...], at: Layout, way: Way) -> bool:
    """Whether it gives the layers of each stage, and its chunks can share them."""
    return len(split) == at.pp and not any(share % way.chunks for share in split)


def _stands(case: Case) -> bool:
    rules = [rule for rule in rules_of(case.engine.name) if rule.code not in OF_A_SCHEDULE]
    return all(bool(rule.legal(case)) for rule in (*rules, EVEN))
