"""A block: rows times options, counted at once. Costs of layers are computed once for each distinct combination."""

from collections.abc import Iterator
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
from ..layout.stages import candidates, chunk_sizes, distinct, whole
from ..memory.hosted import hosted
from ..memory.peak import Stages, peak
from ..schedule.laws import among
from ..stage import stage_costs
from ..step.total import step_seconds
from .options import Choice, choice, groups, hybrid_shard, keys, merged
from .rows import Rows, taken
from .space import Space

Array = NDArray[Any]
CELLS = 400_000  # of a block: small enough for the cache, large enough that calls do not matter
OF_COSTS = ("tp", "cp", "ep", "etp", "micro_batch", "sp", "cp_kind", "moe_dispatch")


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

    def at(self, ids: Array) -> ModelCosts:
        """The costs of some rows."""
        index = self.index[ids]

        def pick(array: Array) -> Array:
            return array[index] if array.shape[0] > 1 else array

        costs: ModelCosts = mapped(self.table, pick)
        return costs


def numbered(values: Array) -> tuple[int, Array]:
    """How many distinct values there are, and a number from 0 on for each: one comparison a value, for a few values."""
    place, left, size = np.zeros(values.shape, int), np.ones(values.shape, bool), 0
    while left.any():
        here = values == values[np.argmax(left)]
        place[here] = size
        left &= ~here
        size += 1
    return size, place


def hoist(case: Case, rows: Layout) -> Hoisted:
    """Walk the inventory once, over the distinct combinations among the rows."""
    code = np.asarray(rows.apart, int) if case.model.tied else np.zeros(np.shape(rows.tp), int)
    for name in OF_COSTS:
        size, place = numbered(np.broadcast_to(getattr(rows, name), code.shape))
        _, code = distinct(code * size + place)  # stays small: combinations that occur
    first, index = distinct(code)
    table = model_costs(case.model, case.job, case.cluster, taken(rows, first), case.engine)
    return Hoisted(mapped(table, single), index)


@dataclass(frozen=True)
class Block:
    """The counts of a block, rows along the last axis: peaks broadcast against seconds."""

    rows: Array
    peaks: Array
    seconds: Array


@dataclass(frozen=True)
class Grid:
    """A space with its legal rows: what a search goes through."""

    case: Case
    space: Space
    rows: Rows

    @cached_property
    def keys(self) -> Array:
        """For each row, the key of its options."""
        if not len(self.rows):
            return np.empty(0, int)
        return merged(keys(replace(self.case, layout=self.rows.layout), self.space), self.space)

    @cached_property
    def layouts(self) -> int:
        """How many distinct legal layouts there are."""
        return sum(len(members) * choice(key, self.space).cells for key, members in groups(self.keys))

    def blocks(self, cells: int = CELLS) -> Iterator[Block]:
        """Every legal layout once, block by block."""
        hoisted = hoist(self.case, self.rows.layout) if len(self.rows) else None
        for key, members in groups(self.keys):
            some = choice(key, self.space)
            each = max(1, cells // some.cells)
            for start in range(0, len(members), each):
                ids = members[start : start + each]
                assert hoisted is not None
                yield Block(ids, *count_block(self.case, hoisted, self.rows.layout, ids, some))

    def layout_at(self, row: int, cell: int) -> Layout:
        """One layout, as Python numbers; an uneven pipeline says its split."""
        some = choice(int(self.keys[row]), self.space).at(cell)
        one = with_options(self.case, taken(self.rows.layout, row), some)
        picked = {f.name: _number(getattr(one, f.name)) for f in fields(Layout)} | {"split": ()}
        picked["keep_gathered"] = self.case.layout.keep_gathered
        if picked["recompute"] != "selective":
            picked["recompute_modules"] = ()
        told = self.case.engine.splits_layers and not self.case.engine.counts_ends
        if told and self.case.model.layers % (picked["pp"] * picked["vpp"]):
            picked["split"] = tuple(chunk_sizes(self.case.model.layers, picked["pp"], picked["vpp"]))
        return Layout(**picked)


def with_options(case: Case, rows: Layout, some: Choice) -> Layout:
    """Rows times options: the layouts of a block, as one layout of broadcastable arrays."""
    at = replace(case, layout=rows)
    shard = np.where(some.hybrid, hybrid_shard(at), rows.dp_shard)
    changed = {
        "dp_shard": shard,
        "dp_replicate": rows.dp_shard / shard,
        "recompute": some.recompute,
        "recompute_layers": ceil(some.recomputed * longest_stage(at) / some.parts),
        "overlap_tp": some.overlap_tp,
        "zero": some.zero,
        "offload_optimizer": some.offload_optimizer,
        "overlap_dp": some.overlap_dp,
    }
    return joined(rows, **changed)


def count_block(case: Case, hoisted: Hoisted, rows: Layout, ids: Array, some: Choice) -> tuple[Array, Array]:
    """Peak and step of some rows times options."""
    layout = with_options(case, taken(rows, ids), some)
    asked = replace(case, layout=layout, schedule=among(np.asarray(layout.schedule)))
    costs = hoisted.at(ids)
    found = candidates(case.model, layout, case.engine.counts_ends)
    stages = tuple(stage_costs(stage, costs) for stage in found)
    seconds = step_seconds(stages, stage_costs(whole(case.model), costs, layout.pp), asked)
    return _peaks(stages, asked), np.broadcast_to(seconds, (*some.shape, len(ids)))


def _peaks(stages: Stages, case: Case) -> Array:
    """Peaks of a block; without end where offload needs more host memory than there is (LAY042)."""
    peaks, there = np.asarray(peak(stages, case)), case.cluster.host_bytes
    if there is None or not np.any(case.layout.offload_optimizer):
        return peaks
    return np.where(hosted(stages, case) <= there, peaks, np.inf)


def _number(value: Any) -> Any:
    """A field of one layout, as a Python value; whole numbers as whole numbers."""
    plain = value.item() if isinstance(value, np.ndarray | np.generic) else value
    return int(plain) if isinstance(plain, float) and plain == int(plain) else plain
