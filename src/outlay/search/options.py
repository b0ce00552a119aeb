"""Options of each row: what constrains nothing, trimmed to what makes a difference there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
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
    parts: Any  # that a stage's layers are divided into: one number, or one a row
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

    def of(self, rows: slice) -> "Choice":
        """The options of some of the rows."""
        every = {each.name: getattr(self, each.name) for each in fields(self)}
        along_rows = (name for name, part in every.items() if np.ndim(part) and part.shape[-1] > 1)
        return replace(self, **{name: every[name][..., rows] for name in along_rows})

    @property
    def shape(self) -> tuple[int, ...]:
        """Options along each axis before the rows."""
        lists = (self.recompute, self.overlap_tp, self.zero, self.offload_optimizer, self.overlap_dp)
        return tuple(part.shape[place] for place, part in enumerate(lists))

    @property
    def cells(self) -> int:
        """Layouts a row."""
        return prod(self.shape)


def along(place: int, values: Sequence[Any]) -> Array:
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


Lists = tuple[int, tuple[tuple[str, float], ...], tuple[tuple[int, bool], ...], tuple[tuple[Any, ...], ...]]


@lru_cache(maxsize=256)
def _choice(lists: Lists) -> Choice:
    parts, recompute, zero, (overlap_tp, overlap_dp, offload) = lists
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


def lists(key: int, space: Space) -> Lists:
    """The options of rows with this key: one value of those that change nothing, and none that the engine has not."""
    parts, most, hidden, replicas, hybrid = key // 32, key // 8 % 4, key & 4, key & 2, key & 1
    runs = [pair for pair in space.zero if pair[0] <= most]
    zero = [pair for pair in runs if hybrid or not pair[1]] or runs[:1]
    return (
        parts,
        tuple(_recompute(space, parts)),
        tuple(zero if replicas else zero[:1]),
        (
            tuple(space.overlap_tp) if hidden else (False,),
            tuple(space.overlap_dp if replicas else space.overlap_dp[:1]),
            tuple(space.offload_optimizer),
        ),
    )


def choice(key: int, space: Space) -> Choice:
    """The same as arrays, each along an axis of its own."""
    return _choice(lists(key, space))


def groups(found: Array, space: Space) -> Iterator[tuple[Choice, Array]]:
    """Lists of options, and the rows that take them.

    Rows whose lists are of equal lengths go together, so that groups are few and blocks large: where their values
    differ, the array of an option also runs along the rows.
    """
    alike: dict[tuple[int, ...], list[int]] = {}
    for key in np.unique(found).tolist():
        alike.setdefault(choice(key, space).shape, []).append(key)
    for keys_alike in alike.values():
        members = np.flatnonzero(np.isin(found, keys_alike))
        which = np.searchsorted(keys_alike, found[members])
        yield beside([choice(key, space) for key in keys_alike], which), members


def beside(choices: list[Choice], which: Array) -> Choice:
    """Lists of equal lengths as one: where they differ, an array also runs along the rows, which take one each."""

    def joint(name: str) -> Any:
        every = [np.asarray(getattr(each, name)) for each in choices]
        if all(np.array_equal(each, every[0]) for each in every):
            return getattr(choices[0], name)
        return np.stack(every, axis=-1)[..., which].reshape(*every[0].shape[:-1], -1)

    return Choice(**{each.name: joint(each.name) for each in fields(Choice)})
