"""A block: rows times options, counted at once. Costs of layers are computed once for each distinct combination."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..formula import ceil
from ..layer import ModelCosts, model_costs
from ..layout.axes import Layout, joined
from ..layout.case import Case
from ..layout.predicates import longest_stage
from ..layout.stages import chunk_sizes
from ..memory.hosted import OFFLOADS, hosted
from ..memory.peak import Stages, peak
from ..quantities import Count
from .combinations import combinations
from .coupled import illegal_cells
from .options import AXES, Choice, choice, groups, keys, shard_within
from .rows import Rows, taken
from .space import Space
from .split.stacked import counted

Array = NDArray[Any]
CELLS = 400_000  # of a block: small enough for the cache, large enough that calls do not matter
ROWS = 6_000  # of a block, where each has few options
OF_COSTS = ("tp", "cp", "ep", "etp", "micro_batch", "sp", "cp_kind", "moe_dispatch", "graphs", "loss_chunks")


def mapped(record: Any, change: Any) -> Any:
    """The same record with every array in it changed, also those of the records inside it."""
    if isinstance(record, np.ndarray):
        return change(record)
    if isinstance(record, tuple):
        return tuple(mapped(part, change) for part in record)
    if is_dataclass(record) and not isinstance(record, type):
        return type(record)(*(mapped(getattr(record, f.name), change) for f in fields(record)))
    return record


def single(array: Array) -> Any:
    """One number where all are the same: what does not vary is then free."""
    return array.item(0) if array.size and (array == array.item(0)).all() else array


@dataclass(frozen=True)
class Hoisted:
    """Costs of layers for every distinct combination of what they depend on, and which one each row uses."""

    table: ModelCosts
    index: Array

    def at(self, ids: Array | slice) -> ModelCosts:
        """The costs of some rows."""
        index = self.index[ids]

        def pick(array: Array) -> Array:
            return array[index] if array.shape[0] > 1 else array

        costs: ModelCosts = mapped(self.table, pick)
        return costs


def hoist(case: Case, rows: Layout) -> Hoisted:
    """Walk the inventory once, over the distinct combinations among the rows."""
    ends = [rows.apart] if case.model.tied else []
    first, index = combinations([*ends, *(getattr(rows, name) for name in OF_COSTS)], np.size(rows.tp))
    table = model_costs(case.model, case.job, case.cluster, taken(rows, first), case.engine)
    return Hoisted(mapped(table, single), index)


@dataclass(frozen=True)
class Block:
    """The counts of a block, rows along the last axis: peaks broadcast against seconds."""

    rows: Array
    peaks: Array  # without end where a cell is no layout of the engine
    seconds: Array
    rejected: Mapping[str, int]  # cells that are none, by rule


@dataclass(frozen=True)
class Grid:
    """A space with its legal rows: what a search goes through."""

    case: Case
    space: Space
    rows: Rows

    @cached_property
    def keys(self) -> Array:
        """For each row, the key of its options."""
        return keys(replace(self.case, layout=self.rows.layout), self.space) if len(self.rows) else np.empty(0, int)

    @cached_property
    def groups(self) -> list[tuple[Choice, Array]]:
        """Lists of options, and the rows that take them."""
        return list(groups(self.keys, self.space))

    @cached_property
    def alike(self) -> tuple["Grid", ...]:
        """This grid, and the same rows with each other choice of modules recomputed: their rows are numbered on."""
        space, at = replace(self.space, other_modules=()), self.rows.layout
        others = [
            Grid(
                self.case,
                replace(space, recompute=(("selective", 0),), recompute_modules=names),
                Rows(joined(at, recompute_modules=names), {}),
            )
            for names in self.space.other_modules
        ]
        return self, *others

    @cached_property
    def layouts(self) -> int:
        """How many distinct legal layouts there are."""
        return sum(int(each.cells.sum()) for each in self.alike)

    @cached_property
    def cells(self) -> Array:
        """Options of each row."""
        found = np.zeros(len(self.rows), int)
        for some, members in self.groups:
            found[members] = some.cells
        return found

    @cached_property
    def hoisted(self) -> Hoisted:
        """Costs of layers that the rows need."""
        return hoist(self.case, self.rows.layout)

    def pieces(self, cells: int = CELLS, only: Array | None = None) -> Iterator[tuple[Array, Choice]]:
        """All rows, or some, in pieces that take the same lists of options."""
        some_groups = self.groups if only is None else groups(self.keys[only], self.space)
        for some, members in some_groups:
            each = max(1, min(cells // some.cells, ROWS))
            for start in range(0, len(members), each):
                here = slice(start, start + each)
                yield members[here] if only is None else only[members[here]], some.of(here)

    def blocks(self, cells: int = CELLS) -> Iterator[Block]:
        """Every legal layout once, block by block."""
        for place, each in enumerate(self.alike):
            yield from each.own_blocks(cells, start=place * len(self.rows))

    def own_blocks(self, cells: int = CELLS, only: Array | None = None, start: int = 0) -> Iterator[Block]:
        """Those of one choice of modules, of all rows or of some, which are numbered from `start` on."""
        for ids, some in self.pieces(cells, only):
            yield Block(ids + start, *count_block(self.case, self.hoisted, self.rows.layout, ids, some))

    def layouts_at(self, rows: Sequence[int], cells: Sequence[int]) -> list[Layout]:
        """Layouts of some rows and cells, as Python numbers; an uneven pipeline says its split."""
        return [
            self.alike[row // len(self.rows)]._layouts([row % len(self.rows)], [cell])[0]
            for row, cell in zip(rows, cells, strict=True)
        ]

    def _layouts(self, rows: Sequence[int], cells: Sequence[int]) -> list[Layout]:
        chosen = [choice(key, self.space).at(cell) for key, cell in zip(self.keys[rows].tolist(), cells, strict=True)]
        some = Choice(**{each.name: np.asarray([getattr(one, each.name) for one in chosen]) for each in fields(Choice)})
        found = with_options(self.case, taken(self.rows.layout, np.asarray(rows)), some)
        columns = {each.name: _numbers(getattr(found, each.name), len(rows)) for each in fields(Layout)}
        return [self._one(dict(zip(columns, values, strict=True))) for values in zip(*columns.values(), strict=True)]

    def _one(self, picked: dict[str, Any]) -> Layout:
        """One layout with fields that a row does not have."""
        picked |= {"split": (), "keep_gathered": self.case.layout.keep_gathered}
        if picked["recompute"] != "selective":
            picked["recompute_modules"] = ()
        told = self.case.engine.splits_layers and not self.case.engine.counts_ends
        if told and self.case.model.layers % (picked["pp"] * picked["vpp"]):
            picked["split"] = tuple(chunk_sizes(self.case.model.layers, picked["pp"], picked["vpp"]))
        return Layout(**picked)


@dataclass(frozen=True)
class Several(Layout):
    """The layouts of a block: whichever data-parallel ranks shard, there are as many of them as the row has."""

    dp: Count = 1  # one number a row; of a layout it follows from two fields


def with_options(case: Case, rows: Layout, some: Choice) -> Layout:
    """Rows times options: the layouts of a block, as one layout of broadcastable arrays."""
    at = replace(case, layout=rows)
    shard = shard_within(at, some.domains)
    changed = {
        "dp_shard": shard,
        "dp_replicate": rows.dp_shard / shard,
        "recompute": some.recompute,
        "recompute_layers": ceil(some.recomputed * longest_stage(at) / some.parts),
        "overlap_tp": some.overlap_tp,
        "overlap_ep": some.overlap_ep,
        "zero": some.zero,
        "offload_optimizer": some.offload_optimizer,
        "offload_parameters": some.offload_parameters,
        "offload_activations": some.offload_activations,
        "overlap_dp": some.overlap_dp,
    }
    picked = {each.name: getattr(rows, each.name) for each in fields(Layout)}
    return Several.grid(**(picked | changed), dp=rows.dp)


def count_block(
    case: Case, hoisted: Hoisted, rows: Layout, ids: Array, some: Choice
) -> tuple[Array, Array, Mapping[str, int]]:
    """Peak and step of some rows times options, and how many of them break a rule."""
    shape = (*some.shape, len(ids))
    block = replace(case, layout=with_options(case, taken(rows, ids), some))
    asked, stages, seconds = counted(block, hoisted.at(ids), AXES)
    peaks, (illegal, rejected) = _peaks(stages, asked), illegal_cells(block, shape)
    peaks = peaks if illegal is None else np.where(illegal, np.inf, peaks)
    return peaks, np.broadcast_to(seconds, shape), rejected


def _peaks(stages: Stages, case: Case) -> Array:
    """Peaks of a block; without end where offload needs more host memory than there is (LAY042)."""
    peaks, there = np.asarray(peak(stages, case)), case.cluster.host_bytes
    if there is None or not any(np.any(getattr(case.layout, name)) for name in OFFLOADS):
        return peaks
    return np.where(hosted(stages, case) <= there, peaks, np.inf)


def _numbers(value: Any, length: int) -> list[Any]:
    """A field of some layouts, as Python values; whole numbers as whole numbers."""
    plain = value.tolist() if isinstance(value, np.ndarray) else [value] * length
    return [int(one) if isinstance(one, float) and one == int(one) else one for one in plain]
