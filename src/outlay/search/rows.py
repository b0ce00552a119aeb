"""The legal rows: degrees that constrain each other, their product filtered once by the rules, schedule by schedule."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..layout.axes import ALONE, Layout, joined
from ..layout.case import Case
from ..layout.predicates import most_zero, no_empty_chunk
from ..layout.rules import Rule, rules_of
from ..schedule.laws import SCHEDULES
from .space import DEGREES, Space

Array = NDArray[Any]

# A search may cut layers unevenly, and says so in the split of what it finds: these rules ask about a split as given.
OF_A_SPLIT = ("LAY009", "LAY010", "LAY011")
OF_A_SCHEDULE = ("LAY012", "LAY013", "LAY014", "LAY015", "LAY023", "LAY033", "LAY037")
EVEN = Rule("LAY010", "a chunk has no layer", "every chunk holds a layer", "pp", no_empty_chunk, lambda _: "")


@dataclass(frozen=True)
class Rows:
    """The distinct legal rows, each with its schedule, as one layout of flat arrays; what rules rejected; disguises."""

    layout: Layout
    rejected: Mapping[str, int]  # layouts that each rule was the first to reject

    def __len__(self) -> int:
        return int(np.size(self.layout.tp))


def _product(space: Space, ranks: int) -> Layout:
    """All combinations of degrees, each an array along its own axis; data-parallel ranks are what is left."""
    cells = {}
    for place, name in enumerate(DEGREES):
        values = np.asarray(space.degrees[name])
        shape = [-1 if place == other else 1 for other in range(len(DEGREES))]
        cells[name] = (values.astype(float) if values.dtype.kind in "iu" else values).reshape(shape)
    left = np.floor(ranks / (cells["tp"] * cells["cp"] * cells["pp"]))
    least = min((stage for stage, _ in space.zero), default=0)  # a row that runs none of the ZeRO stages is illegal
    fixed = {"zero": least, "recompute_modules": space.recompute_modules}
    return joined(ALONE, **(cells | {"dp_shard": np.maximum(left, 1)} | fixed))


def _filtered(case: Case, rules: list[Rule], shape: tuple[int, ...], weight: int) -> tuple[Array, dict[str, int]]:
    """Which cells obey all rules, and how many layouts each rule was the first to reject."""
    legal = np.ones(shape, bool)
    left, rejected = legal.size, {}
    for rule in rules:
        obeyed = rule.legal(case)
        if np.all(obeyed):
            continue
        legal &= obeyed
        now = int(np.count_nonzero(legal))
        if now < left:
            rejected[rule.code] = (left - now) * weight
        left = now
    return legal, rejected


def _flat(layout: Layout, legal: Array) -> Layout:
    """The legal cells, as flat arrays."""
    places = np.unravel_index(np.flatnonzero(legal), legal.shape)
    picked = {}
    for place, name in enumerate(DEGREES):
        picked[name] = getattr(layout, name).ravel()[places[place]]
    shard = np.asarray(layout.dp_shard)
    varies = tuple(place if size > 1 else 0 for place, size in zip(places, shard.shape, strict=True))
    return joined(layout, **picked, dp_shard=np.broadcast_to(shard[varies], places[0].shape))


def legal_rows(case: Case, space: Space) -> Rows:
    """Filter the product of degrees by every rule; the rules of a schedule are asked of the few rows that are left."""
    rules = [rule for rule in rules_of(case.engine.name) if rule.code not in OF_A_SPLIT]
    degrees = [rule for rule in rules if rule.code not in OF_A_SCHEDULE] + [EVEN]
    every = joined(_product(space, case.cluster.ranks), accumulate_whole=case.engine.accumulates_whole)
    product = replace(case, layout=every)
    shape = tuple(len(space.degrees[name]) for name in DEGREES)
    legal, rejected = _filtered(product, degrees, shape, len(space.schedules) * space.options)
    rows = _flat(product.layout, legal)
    most = np.broadcast_to(most_zero(replace(case, layout=rows)), np.shape(rows.tp))
    places, names = [], []
    for schedule in space.schedules:
        asked = replace(case, layout=joined(rows, schedule=schedule), schedule=SCHEDULES[schedule])
        of_schedule = [rule for rule in rules if rule.code in OF_A_SCHEDULE]
        legal, more = _filtered(asked, of_schedule, np.shape(rows.tp), space.options)
        places.append(np.flatnonzero(legal & ~disguised(rows, schedule, space)))
        more |= above_zero(most[places[-1]], space)
        rejected |= {code: rejected.get(code, 0) + count for code, count in more.items()}
        names.append(np.full(places[-1].size, schedule))
    index = np.concatenate(places)
    kept = joined(taken(rows, index), schedule=np.concatenate(names))
    return Rows(kept, rejected)


def above_zero(most: Array, space: Space) -> dict[str, int]:
    """Layouts of some rows whose ZeRO stage is above the `most` that the engine runs beside the rest of each row."""
    above = sum(int(np.count_nonzero(most < stage)) for stage, _ in space.zero)
    each = space.options // max(1, len(space.zero))
    return {"LAY031": above * each} if above else {}


def disguised(rows: Layout, schedule: str, space: Space) -> Array:
    """Rows that are another row under another name: sp without tp, GPipe without a pipeline, a kind of exchange
    between ranks of which there is one."""
    same: Array = np.asarray(rows.sp) & (np.asarray(rows.tp) == 1)
    same = same | ((schedule == "gpipe") & (np.asarray(rows.pp) == 1))
    for name, axis in (("cp_kind", rows.cp), ("moe_dispatch", rows.ep)):
        kinds = space.degrees[name]
        if len(kinds) > 1:
            same = same | ((np.asarray(getattr(rows, name)) != kinds[0]) & (np.asarray(axis) == 1))
    return same


def taken(layout: Layout, index: Array | int) -> Layout:
    """Some rows of a layout of flat arrays, or one."""
    picked = {f.name: getattr(layout, f.name) for f in fields(Layout)}
    return Layout.grid(**{name: part[index] if isinstance(part, np.ndarray) else part for name, part in picked.items()})
