"""Options of each row: what constrains nothing, trimmed to what makes a difference there."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from itertools import pairwise, product
from math import ceil, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..layout.axes import joined
from ..layout.case import Case
from ..layout.predicates import longest_stage, most_zero
from ..layout.rules import rules_of
from .coupled import rules_of_options
from .space import Space

Array = NDArray[Any]
# Recompute, exchange hidden in a pass, zero and its shard group, offload, overlap_dp; rows last, for long inner loops.
AXES = 6


OF_AXES = (
    ("recompute", "recomputed"),
    ("overlap_tp", "overlap_ep"),
    ("zero", "domains"),
    ("offload_optimizer", "offload_parameters", "offload_activations"),
    ("overlap_dp",),
)


@dataclass(frozen=True)
class Choice:
    """One list of options, each an array along its own axis before the rows."""

    recompute: Array
    recomputed: Array  # parts of a stage's layers, recomputed in full
    parts: Any  # that a stage's layers are divided into: one number, or one a row
    overlap_tp: Array
    overlap_ep: Any  # one value where no layout of the space has another; so also below
    zero: Array
    domains: Array  # scale-up domains in which shards stay; 0: in all
    offload_optimizer: Array
    offload_parameters: Any
    offload_activations: Any
    overlap_dp: Array

    def at(self, cell: int) -> "Choice":
        """One value of each list: the options of one cell."""
        places = np.unravel_index(cell, self.shape)
        axis = {name: place for place, names in enumerate(OF_AXES) for name in names}
        every = {each.name: getattr(self, each.name) for each in fields(self)}
        lists = {name: part for name, part in every.items() if name in axis and isinstance(part, np.ndarray)}
        return replace(self, **{name: part.flat[places[axis[name]]] for name, part in lists.items()})

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


def shard_within(case: Case, domains: Any) -> Array:
    """dp_shard where shards stay inside some scale-up domains: the most data-parallel ranks that fit beside tp and cp.

    Of 0 domains it is the row's own.
    """
    at = case.layout
    near = np.floor(domains * case.cluster.inside.size / (at.tp * at.cp))
    shard: Array = np.where(domains, np.minimum(at.dp_shard, np.maximum(near, 1)), at.dp_shard)
    return shard


def _shards_within(case: Case, domains: int, fewer: int) -> Array:
    """Rows whose shards can stay inside so many domains, and are others than those inside `fewer` of them."""
    at, experts = case.layout, case.model.experts > 0
    shard = shard_within(case, domains)
    least = 2 if _no_copies_alone(case.engine.name) else 1
    other = shard > shard_within(case, fewer) if fewer else True
    can = (at.dp_shard % shard == 0) & (shard < at.dp_shard) & (shard * at.cp > 1) & (shard >= least) & other
    copies = at.dp_shard / shard
    whole: Array = can & ((not experts) | (at.edp <= copies) | (at.edp % copies == 0))
    return whole


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
    key = ((parts * 4 + most_zero(case)) * 2 + hidden) * 2 + replicas
    key = key * 2 + (at.ep > 1)
    key = key * 2 + (_leaves(case, "parameters") if len(space.offload_parameters) > 1 else 0)
    for fewer, domains in pairwise((0, *space.domains)):
        key = key * 2 + _shards_within(case, domains, fewer)
    whole: Array = np.asarray(key).astype(int)
    return whole


def _leaves(case: Case, what: str) -> Any:
    """Rows that can move something to the host under some of their options."""
    kindest = joined(case.layout, zero=most_zero(case), recompute="none", **{f"offload_{what}": 1.0})
    asked = replace(case, layout=kindest)
    able: Any = True
    for rule in rules_of_options(case.engine.name):
        able = able & rule.legal(asked)
    return able


def _recompute(space: Space, parts: int) -> list[tuple[str, float]]:
    """Kinds of recompute, and under `full` how many `parts` of a stage's layers: each another number of layers.

    Where there is no module to recompute, `selective` is `none`.
    """
    plain = [(kind, 0.0) for kind, part in space.recompute if not part]
    plain = plain if space.recompute_modules else plain[:1]
    wanted = [part / space.parts for _, part in space.recompute if part]
    counts = sorted({ceil(share * parts - 1e-9) for share in wanted})
    return [*plain, *(("full", float(count)) for count in counts)]


@dataclass(frozen=True)
class Lists:
    """The values along each axis."""

    parts: int
    recompute: tuple[tuple[str, float], ...]
    hidden: tuple[tuple[bool, bool], ...]  # of tensor and expert parallelism
    zero: tuple[tuple[int, int], ...]
    offload: tuple[tuple[float, float, float], ...]
    overlap_dp: tuple[bool, ...]
    one_overlap_ep: bool  # every layout of the space has the same; so also below
    one_offload: tuple[bool, bool]  # of parameters, of activations


def _column(place: int, rows: Sequence[Sequence[Any]], column: int, one: bool) -> Any:
    """One column of the values along an axis; one value where all layouts of the space have the same."""
    values = [row[column] for row in rows]
    return values[0] if one else along(place, values)


@lru_cache(maxsize=256)
def _choice(lists: Lists) -> Choice:
    return Choice(
        recompute=_column(0, lists.recompute, 0, False),
        recomputed=_column(0, lists.recompute, 1, False),
        parts=lists.parts,
        overlap_tp=_column(1, lists.hidden, 0, False),
        overlap_ep=_column(1, lists.hidden, 1, lists.one_overlap_ep),
        zero=_column(2, lists.zero, 0, False),
        domains=_column(2, lists.zero, 1, False),
        offload_optimizer=_column(3, lists.offload, 0, False),
        offload_parameters=_column(3, lists.offload, 1, lists.one_offload[0]),
        offload_activations=_column(3, lists.offload, 2, lists.one_offload[1]),
        overlap_dp=along(4, lists.overlap_dp),
    )


def lists(key: int, space: Space) -> Lists:
    """The options of rows with this key: one value of those that change nothing, and none that the engine has not."""
    count = len(space.domains)
    within = [domains for place, domains in enumerate(reversed(space.domains)) if key >> place & 1]
    key >>= count
    key, leaves = key >> 1, key & 1
    parts, most, hidden, replicas, deals = key // 32, key // 8 % 4, key & 4, key & 2, key & 1
    runs = [pair for pair in space.zero if pair[0] <= most]
    zero = [pair for pair in runs if not pair[1] or pair[1] in within] or [(runs[0][0], 0)]
    parameters = space.offload_parameters if leaves else space.offload_parameters[:1]
    exchange = product(space.overlap_tp if hidden else (False,), space.overlap_ep if deals else (False,))
    return Lists(
        parts=parts,
        recompute=tuple(_recompute(space, parts)),
        hidden=tuple(exchange),
        zero=tuple(zero if replicas else zero[:1]),
        offload=tuple(product(space.offload_optimizer, parameters, space.offload_activations)),
        overlap_dp=tuple(space.overlap_dp if replicas else space.overlap_dp[:1]),
        one_overlap_ep=space.overlap_ep == (False,),
        one_offload=(len(space.offload_parameters) == 1, len(space.offload_activations) == 1),
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
