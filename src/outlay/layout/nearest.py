"""Ways out of a broken rule: the values of one field that obey it, and the nearest layouts that obey all."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..schedule.laws import SCHEDULES, among
from .axes import Layout, joined
from .case import Case
from .degrees import divisors
from .predicates import longest_stage
from .rules import Rule, rules_of

CHOICES: dict[str, tuple[Any, ...]] = {
    "sp": (False, True), "overlap_tp": (False, True), "zero": (0, 1, 2, 3), "gather_unit": ("layer", "model"),
    "keep_gathered": (False, True), "accumulate_whole": (False, True),
    "precision": ("bf16", "fp16", "fp8", "mxfp8", "nvfp4", "fp32"), "schedule": tuple(SCHEDULES),
    "cp_kind": ("ring", "all_gather", "ulysses"), "recompute": ("none", "selective", "full"),
    "optimizer": ("adam", "sgd", "momentum", "adam8bit", "adafactor", "lion", "muon", "adam_mini", "galore"),
}  # fmt: skip
MOST = 8
SHORT, SAID = 4, 3  # values that the line of a fix lists whole, and of more those next to the present one
CHUNKED = ("interleaved", "looped_bfs", "interleaved_zb", "zbv", "dualpipe_v")  # schedules of several chunks a rank


def _with(case: Case, axis: str, value: Any) -> Case:
    """The case with one field changed, and the data-parallel ranks that then remain."""
    if axis in ("sequence_length", "global_batch", "precision", "optimizer"):
        return replace(case, job=replace(case.job, **{axis: value}))
    layout = replace(case.layout, **{axis: value})
    if axis in ("tp", "cp", "pp", "dp_replicate"):
        layout = replace(
            layout, dp_shard=max(1, case.cluster.ranks // (layout.tp * layout.cp * layout.pp * layout.dp_replicate))
        )
    return replace(case, layout=layout)


def _range(case: Case, axis: str) -> list[Any]:
    """Values of a field worth trying, in order."""
    if axis in CHOICES:
        return list(CHOICES[axis])
    if axis == "global_batch":
        step = case.layout.dp * case.layout.micro_batch
        below = int(case.job.global_batch // step)
        return [int(step * times) for times in range(max(1, below - case.layout.pp), below + case.layout.pp + 2)]
    if axis == "sequence_length":
        return [case.model.positions]
    if axis == "recompute_layers":
        return list(range(case.model.layers + 1))
    most = {"tp": 1024, "pp": case.model.layers, "vpp": case.model.layers, "dp_shard": 10**7}.get(axis, 1024)
    return list(range(1, most + 1)) if most <= 1024 else list(divisors(case.cluster.ranks))


def _near(values: list[Any], now: Any) -> list[Any]:
    """The few values closest to the present one, and the least, in order."""
    if len(values) <= MOST or not isinstance(now, int | float):
        return values[:MOST]
    return sorted({values[0], *sorted(values, key=lambda value: abs(value - now))[: MOST // 2]})


def legal_values(rule: Rule, case: Case, also: tuple[str, ...] = ()) -> list[Any]:
    """Values of the rule's field that obey every rule of that field, and those `also` named; few if there are many."""
    if rule.axis == "split":
        return []
    rules = [each for each in rules_of(case.engine.name) if each.axis == rule.axis or each.code in also]
    tried = {value: _with(case, rule.axis, value) for value in _range(case, rule.axis)}
    legal = [value for value, at in tried.items() if all(bool(each.legal(at)) for each in rules)]
    return _near(legal, _now(rule, case))


def _now(rule: Rule, case: Case) -> Any:
    """The present value of the rule's field."""
    return getattr(case.layout, rule.axis, None) or getattr(case.job, rule.axis, None)


def few(rule: Rule, case: Case, values: list[Any]) -> list[Any]:
    """Of the values that obey a rule, those to say in a line: numbers next to the present one, on both sides."""
    now = _now(rule, case)
    if len(values) <= SHORT or not isinstance(now, int | float) or isinstance(now, bool):
        return values
    below, above = [value for value in values if value < now], [value for value in values if value >= now]
    return [below[-1], above[0]] if below and above else (below[-SAID:] or above[:SAID])


def _axes(case: Case) -> dict[str, list[int]]:
    """Degrees among which the nearest legal layouts are sought."""
    at, ranks = case.layout, case.cluster.ranks
    experts = case.model.experts
    small = [1, 2, 4, 8, 16, 32, 64]
    return {
        "tp": sorted(set(divisors(ranks, 64)) | {at.tp}),
        "cp": sorted({at.cp, *small}) if at.cp > 1 else [1],
        "pp": [d for d in divisors(ranks, 128) if d <= case.model.layers],
        "vpp": sorted({1, at.vpp}),
        "ep": sorted(set(divisors(experts, 256)) | {1}) if experts else [1],
        "etp": sorted({1, at.etp}),
        "micro_batch": sorted({1, at.micro_batch}),
        "dp_replicate": sorted({1, at.dp_replicate}),
    }


def _grid(case: Case) -> Layout:
    """All combinations of those degrees, as one layout of arrays; data-parallel ranks are what remains."""
    axes = _axes(case)
    cells = dict(zip(axes, (part.ravel() for part in np.meshgrid(*axes.values(), indexing="ij")), strict=True))
    left = case.cluster.ranks // (cells["tp"] * cells["cp"] * cells["pp"] * cells["dp_replicate"])
    kept = case.layout.schedule
    plain, chunked = ("1f1b", kept) if kept in CHUNKED else (kept, "interleaved")
    changed = {
        "dp_shard": np.maximum(left, 1),
        "sp": (cells["tp"] > 1) & bool(case.layout.sp or case.layout.tp == 1),
        "schedule": np.where(cells["vpp"] > 1, chunked, plain),
        "recompute_layers": 0,
        "split": (),
    }
    found = joined(case.layout, **(cells | changed))
    if case.layout.recompute != "full":
        return found
    return joined(found, recompute_layers=longest_stage(replace(case, layout=found)))


def nearest_layouts(case: Case, most: int = 3) -> list[dict[str, int]]:
    """The closest layouts that obey every rule, by how often a degree is doubled or halved."""
    grid = _grid(case)
    legal = np.ones(np.shape(grid.tp), bool)
    tried = replace(case, layout=grid, schedule=among(np.asarray(grid.schedule)))
    for rule in rules_of(case.engine.name):
        legal = legal & rule.legal(tried)
    names = ("tp", "cp", "pp", "vpp", "ep", "etp", "dp_replicate", "dp_shard", "micro_batch")
    now = {name: getattr(case.layout, name) for name in names}
    far = sum(abs(np.log2(getattr(grid, name) / now[name])) * (0.5 if name == "dp_shard" else 1) for name in names)
    order = [int(index) for index in np.argsort(np.where(legal, far, np.inf), kind="stable")[:most] if legal[index]]
    shown = [
        name
        for name in names
        if name in ("tp", "pp", "dp_shard") or np.any(getattr(grid, name)[legal] > 1) or now[name] > 1
    ]
    return [
        {
            name: int(getattr(grid, name)[index])
            for name in shown
            if name in ("tp", "pp") or getattr(grid, name)[index] > 1 or now[name] > 1
        }
        for index in order
    ]
