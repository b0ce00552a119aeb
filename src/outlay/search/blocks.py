"""A block: rows times options, counted at once. Costs of layers are computed once for each distinct combination."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..formula import ceil
from ..layer import ModelCosts, model_costs
from ..layout.axes import Layout, joined
from ..layout.case import Case
from ..layout.predicates import longest_stage
from ..layout.stages import candidates, chunk_sizes, whole
from ..memory.peak import peak
from ..schedule.bubble import among
from ..stage import stage_costs
from ..step.total import step_seconds
from .options import Choice, choice, groups, hybrid_shard, keys, merged
from .rows import Rows, taken
from .space import Space

Array = NDArray[Any]
CELLS = 200_000  # of a block: small enough for the cache, large enough that calls do not matter
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


def hoist(case: Case, rows: Layout) -> Hoisted:
    """Walk the inventory once, over the distinct combinations among the rows."""
    columns = [np.unique(getattr(rows, name), return_inverse=True)[1] for name in OF_COSTS]
    columns.append(np.asarray(rows.pp > 1, int) if case.model.tied else np.zeros(np.shape(rows.tp), int))
    _, first, index = np.unique(np.column_stack(columns), axis=0, return_index=True, return_inverse=True)
    table = model_costs(case.model, case.job, case.cluster, taken(rows, first), case.engine)
    return Hoisted(mapped(table, single), index.ravel())


def with_options(case: Case, rows: Layout, some: Choice) -> Layout:
    """Rows times options: the layouts of a block, as one layout of broadcastable arrays."""
    at = replace(case, layout=rows)
    shard = np.where(some.hybrid, hybrid_shard(at), rows.dp_shard)
    changed = {
        "dp_shard": shard,
        "dp_replicate": rows.dp_shard / shard,
        "recompute": some.recompute,
        "recompute_layers": ceil(some.quarters * longest_stage(at)),
        "overlap_tp": some.overlap_tp,
        "zero": some.zero,
        "offload_optimizer": some.offload_optimizer,
        "overlap_dp": some.overlap_dp,
    }
    return joined(rows, **changed)


@dataclass(frozen=True)
class Block:
    """The counts of a block, rows along the last axis: peaks broadcast against seconds."""

    rows: Array
    peaks: Array
    seconds: Array


def count_block(case: Case, hoisted: Hoisted, rows: Layout, ids: Array, some: Choice) -> tuple[Array, Array]:
    """Peak and step of some rows times options."""
    layout = with_options(case, taken(rows, ids), some)
    asked = replace(case, layout=layout, schedule=among(np.asarray(layout.schedule)))
    costs = hoisted.at(ids)
    found = candidates(case.model, layout, case.engine.counts_ends)
    stages = tuple(stage_costs(stage, costs) for stage in found)
    seconds = step_seconds(stages, stage_costs(whole(case.model), costs), asked)
    return np.asarray(peak(stages, asked)), np.broadcast_to(seconds, (*some.shape, len(ids)))


def grouped(case: Case, space: Space, rows: Rows) -> Array:
    """For each row, the key of its options."""
    return merged(keys(replace(case, layout=rows.layout), space), space)


def blocks(case: Case, space: Space, rows: Rows, cells: int = CELLS) -> Iterator[Block]:
    """Every legal layout of the space once, block by block."""
    if not len(rows):
        return
    hoisted = hoist(case, rows.layout)
    for key, members in groups(grouped(case, space, rows)):
        some = choice(key, space)
        each = max(1, cells // some.cells)
        for start in range(0, len(members), each):
            ids = members[start : start + each]
            yield Block(ids, *count_block(case, hoisted, rows.layout, ids, some))


def layouts_of(case: Case, space: Space, rows: Rows) -> int:
    """How many distinct legal layouts the space has, without counting their costs."""
    if not len(rows):
        return 0
    return sum(len(members) * choice(key, space).cells for key, members in groups(grouped(case, space, rows)))


def layout_at(case: Case, space: Space, rows: Rows, row: int, cell: tuple[int, ...]) -> Layout:
    """One layout of the space, as Python numbers; an uneven pipeline says its split."""
    key = int(grouped(case, space, rows)[row])
    block = with_options(case, taken(rows.layout, np.asarray([row])), choice(key, space))
    picked = {f.name: _number(getattr(block, f.name), cell) for f in fields(Layout)} | {"split": ()}
    if case.model.layers % (picked["pp"] * picked["vpp"]) and not case.engine.counts_ends:
        picked["split"] = tuple(chunk_sizes(case.model.layers, picked["pp"], picked["vpp"]))
    return Layout(**picked)


def _number(part: Any, cell: tuple[int, ...]) -> Any:
    """One cell of a field, as a Python value; whole numbers as whole numbers."""
    if not isinstance(part, np.ndarray):
        return int(part) if isinstance(part, float) and part == int(part) else part
    part = part.reshape([1] * (len(cell) + 1 - part.ndim) + list(part.shape))
    index = tuple(min(at, size - 1) for at, size in zip((*cell, 0), part.shape, strict=True))
    value = part[index].item()
    return int(value) if isinstance(value, float) and value == int(value) else value
