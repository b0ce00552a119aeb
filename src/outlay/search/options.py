"""Options of each row: what constrains nothing, trimmed to what makes a difference there."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from math import ceil, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..layout.case import Case
from ..layout.predicates import longest_stage, most_zero
from ..layout.rules import rules_of
from .space import Space

Array = NDArray[Any]
AXES = 6  # recompute, overlap_tp, zero and its shard group, offload, overlap_dp; rows last, for long inner loops


@dataclass(frozen=True)
class Choice:
    """One list of options, each an array along its own axis before the rows."""

    recompute: Array
    recomputed: Array  # parts of a stage's layers, recomputed in full
    parts: int  # that a stage's layers are divided into
    overlap_tp: Array
    zero: Array
    hybrid: Array  # shards stay inside a scale-up domain
    offload_optimizer: Array
    overlap_dp: Array

    def at(self, cell: int) -> "Choice":
        """One value of each list: the options of one cell."""
        kind, overlap_tp, zero, offload, overlap_dp = np.unravel_index(cell, self.shape)
        return Choice(
            self.recompute.flat[kind], self.recomputed.flat[kind], self.parts, self.overlap_tp.flat[overlap_tp],
            self.zero.flat[zero], self.hybrid.flat[zero], self.offload_optimizer.flat[offload],
            self.overlap_dp.flat[overlap_dp],
        )  # fmt: skip

    @property
    def shape(self) -> tuple[int, ...]:
        """Options along each axis before the rows."""
        lists = (self.recompute, self.overlap_tp, self.zero, self.offload_optimizer, self.overlap_dp)
        return tuple(part.size for part in lists)

    @property
    def cells(self) -> int:
        """Layouts a row."""
        return prod(self.shape)


def along(place: int, values: list[Any]) -> Array:
    """Values along one axis of a block."""
    array = np.asarray(values)
    return (array.astype(float) if array.dtype.kind in "iu" else array).reshape(
        [-1 if place == i else 1 for i in range(AXES)]
    )


def hybrid_shard(case: Case) -> Array:
    """dp_shard where shards stay inside a scale-up domain: the most data-parallel ranks that fit beside tp and cp."""
    at = case.layout
    near = np.floor(case.cluster.inside.size / (at.tp * at.cp))
    shard: Array = np.minimum(at.dp_shard, np.maximum(near, 1))
    return shard


@cache
def _no_copies_alone(engine: str) -> bool:
    """Whether an engine wants shards wherever it has copies."""
    return any(rule.code == "LAY040" for rule in rules_of(engine))


def keys(case: Case, space: Space) -> Array:
    """One number a row; rows with the same number have the same options. `case.layout` holds the rows."""
    at = case.layout
    held = longest_stage(case)
    parts = np.minimum(held, space.parts)
    experts = case.model.experts > 0
    replicas = (at.replicas > 1) | ((at.edp > 1) & experts)
    hidden = (at.tp > 1) & ((at.sliced > 1) | (not case.engine.overlap_needs_sp))
    shard = hybrid_shard(case)
    least = 2 if _no_copies_alone(case.engine.name) else 1
    hybrid = (at.dp_shard % shard == 0) & (shard < at.dp_shard) & (shard * at.cp > 1) & (shard >= least)
    copies = at.dp_shard / shard
    whole = (not experts) | (at.edp <= copies) | (at.edp % copies == 0)
    hybrid = hybrid & whole
    key: Array = (parts * 32 + most_zero(case) * 8 + hidden * 4 + replicas * 2 + hybrid).astype(int)
    return key


def _recompute(space: Space, parts: int) -> list[tuple[str, float]]:
    """Kinds of recompute, and under `full` how many `parts` of a stage's layers: each another number of layers.

    Where there is no module to recompute, `selective` is `none`.
    """
    plain = [(kind, 0.0) for kind, part in space.recompute if not part]
    plain = plain if space.recompute_modules else plain[:1]
    wanted = [part / space.parts for _, part in space.recompute if part]
    counts = sorted({ceil(share * parts - 1e-9) for share in wanted})
    return [*plain, *(("full", float(count)) for count in counts)]


@lru_cache(maxsize=256)
def _lists(parts: int, recompute: tuple[Any, ...], zero: tuple[Any, ...], rest: tuple[Any, ...]) -> Choice:
    overlap_tp, overlap_dp, offload = rest
    return Choice(
        recompute=along(0, [kind for kind, _ in recompute]),
        recomputed=along(0, [count for _, count in recompute]),
        parts=parts,
        overlap_tp=along(1, overlap_tp),
        zero=along(2, [float(stage) for stage, _ in zero]),
        hybrid=along(2, [inside for _, inside in zero]),
        offload_optimizer=along(3, offload),
        overlap_dp=along(4, overlap_dp),
    )


def choice(key: int, space: Space) -> Choice:
    """The options of rows with this key: one value of those that change nothing, and none that the engine has not."""
    parts, most, hidden, replicas, hybrid = key // 32, key // 8 % 4, key & 4, key & 2, key & 1
    runs = [pair for pair in space.zero if pair[0] <= most]
    zero = [pair for pair in runs if hybrid or not pair[1]] or runs[:1]
    return _lists(
        parts,
        tuple(_recompute(space, parts)),
        tuple(zero if replicas else zero[:1]),
        (
            tuple(space.overlap_tp) if hidden else (False,),
            tuple(space.overlap_dp if replicas else space.overlap_dp[:1]),
            tuple(space.offload_optimizer),
        ),
    )


def merged(found: Array, space: Space) -> Array:
    """Keys that offer the same options become one: fewer groups, larger blocks."""
    first: dict[str, int] = {}
    same = {int(key): first.setdefault(repr(vars(choice(int(key), space))), int(key)) for key in np.unique(found)}
    table = np.zeros(int(found.max()) + 1 if found.size else 1, int)
    for key, kept in same.items():
        table[key] = kept
    return table[found]


def groups(found: Array) -> Iterator[tuple[int, Array]]:
    """Each list of options, and the rows that take it."""
    for key in np.unique(found):
        yield int(key), np.flatnonzero(found == key)
