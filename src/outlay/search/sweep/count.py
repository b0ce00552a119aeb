"""Layouts of a sweep, counted together over a grid: the figures of `count()`, a row a layout."""

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cluster.efficiency import counted_rate
from ...formula import maximum
from ...layer import ModelCosts
from ...layout.axes import Layout
from ...layout.case import Case
from ...layout.complete import layout_defaults
from ...layout.rules import rules_of
from ...layout.stages import candidates, distinct, whole
from ...memory.activations import activation_bytes
from ...memory.blocks import ends_moment
from ...memory.hosted import hosted
from ...memory.peak import Stages, allocated_bytes, held_activations
from ...memory.states import beside_bytes, fresh_bytes, unit_bytes
from ...schedule.laws import SCHEDULES, among
from ...stage import StageCosts, stage_costs
from ...step.compute import flops_share
from ...step.total import step_seconds, time_band
from ...undivided import backward_flops, sequence_flops, state_of
from ...whole_run import DAY, HOUR
from ..blocks import hoist
from ..rows import taken
from .rows import CUT, Columns, Words
from .study import ALONE, Axis

Array = NDArray[Any]
DRIVING = ("tp", "cp", "pp", "vpp", "dp_replicate", "schedule", "recompute")  # what the default of another may rest on
VERDICTS = ("fits", "tight", "does_not_fit", "impossible", None)
HOST = "LAY042"  # needs the stages, so no table has it
ROWS = 8_000  # of a block: its arrays stay in the cache
FIGURES = ("peak_bytes", "peak_low_bytes", "peak_high_bytes", "seconds")


def values_of(axis: Axis) -> Array:
    """The values of an axis: numbers as floats, as a grid has them."""
    values = np.asarray(axis.values)
    return values.astype(float) if values.dtype.kind in "iu" else values


def completed(case: Case, fixed: dict[str, Any], axes: Sequence[Axis], places: Sequence[Array]) -> Layout:
    """The layouts with every field filled as `count()` fills it: `places` says which value of each axis each has."""
    size = len(places[0]) if axes else 1
    given = {axis.name: values_of(axis)[place] for axis, place in zip(axes, places)}
    code = np.zeros(size, int)
    for axis, place in zip(axes, places):
        if axis.name in DRIVING:
            _, code = distinct(code * len(axis.values) + place)
    first, index = distinct(code)
    made = []
    for row in first.tolist():
        one = {axis.name: axis.values[place[row]] for axis, place in zip(axes, places) if axis.name in DRIVING}
        made.append(layout_defaults(case.model, case.cluster, Layout(**fixed, **one), case.engine))
    filled = {field.name: _column([each[field.name] for each in made], index) for field in fields(Layout)
              if field.name not in ALONE}  # fmt: skip
    alone = {name: next((each[name] for each in made if each[name]), made[0][name]) for name in ALONE}
    return Layout.grid(**filled | alone | fixed | given)


def _column(values: list[Any], index: Array) -> Array:
    array = np.asarray(values)
    return (array.astype(float) if array.dtype.kind in "iu" else array)[index]


def broken_rules(case: Case, layouts: Layout) -> tuple[tuple[str, ...], Array]:
    """The different sets of rules that layouts break, the empty one first, and which of them each layout has."""
    size = np.size(layouts.tp)
    code, sets = np.zeros(size, int), [""]
    schedule = np.asarray(layouts.schedule)
    for name in np.unique(schedule).tolist():
        rows = np.flatnonzero(schedule == name)
        asked = replace(case, layout=taken(layouts, rows), schedule=SCHEDULES[name])
        for rule in rules_of(case.engine.name):
            breaks = ~np.broadcast_to(np.asarray(rule.legal(asked), bool), rows.shape)
            if breaks.any():
                code[rows] = _joined(code[rows], breaks, rule.code, sets)
    return tuple(sets), code


def _joined(code: Array, breaks: Array, rule: str, sets: list[str]) -> Array:
    """The same sets, with one rule more for those that break it."""
    table = np.arange(len(sets))
    for before in np.unique(code[breaks]).tolist():
        held = sets[before].split()
        joined = " ".join([*held, rule] if rule not in held else held)
        if joined not in sets:
            sets.append(joined)
        table[before] = sets.index(joined)
    return np.where(breaks, table[code], code)


def figures(case: Case, layout: Layout, costs: ModelCosts) -> tuple[Array, ...]:
    """Peak, both ends of its band, step, and bytes on the host, of legal layouts: `layout` holds flat arrays."""
    asked = replace(case, layout=layout, schedule=among(np.asarray(layout.schedule)))
    found = candidates(case.model, layout, case.engine.counts_ends)
    stages = tuple(stage_costs(stage, costs) for stage in found)
    time = step_seconds(stages, stage_costs(whole(case.model), costs, layout.pp), asked)
    peaks, low, high = _memory(stages, asked, np.shape(layout.tp))
    return peaks, low, high, np.asarray(time), np.asarray(hosted(stages, asked))


def _memory(stages: Stages, case: Case, shape: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """The peak of the worst stage, and its least and largest: buffers as the engine's band has them, and activations
    of unequal chunks as if they were equal."""
    engine = case.engine
    each = np.stack([np.broadcast_to(allocated_bytes(stage, case), shape) for stage in stages])
    loose = np.stack([np.broadcast_to(_unsure(stage, case), shape) for stage in stages])
    worst = np.argmax(each, axis=0)[None]
    allocated = np.take_along_axis(each, worst, 0)[0]
    less = np.take_along_axis(loose, worst, 0)[0]
    peaks = allocated + engine.workspace_bytes + engine.slack_share * allocated
    low = allocated - less + engine.workspace_low + engine.slack_low * allocated
    return peaks, low, allocated + engine.workspace_high + engine.slack_high * allocated


def _unsure(stage: StageCosts, case: Case) -> Any:
    """How much less the activations of unequal chunks may be, where they stand at the peak."""
    if not np.any(np.asarray(stage.unevenness) > 1):
        return 0.0
    later = maximum(fresh_bytes(stage, case), unit_bytes(stage, case), ends_moment(stage, case))
    more = activation_bytes(stage, case) * (1 - 1 / maximum(stage.unevenness, 1))
    return np.where(held_activations(stage, case) <= later, 0, more)


def verdicts(case: Case, layout: Layout, low: Array, high: Array) -> Array:
    """The place of each layout's verdict in VERDICTS."""
    usable = usable_bytes(case)
    state = state_of(case.model, case.recipe, case.job)
    moved = state.weights * layout.offload_parameters + state.optimizer * layout.offload_optimizer
    resident = state.bytes + beside_bytes(case) * case.cluster.ranks - moved
    never = resident > case.cluster.ranks * usable if usable > 0 else True
    straddles = np.where(high <= usable, 0, np.where(low <= usable, 1, 2))
    found: Array = np.where(never, 3, straddles)
    return found


def usable_bytes(case: Case) -> float:
    """Memory of one accelerator that a layout may take."""
    at = case.cluster.accelerator
    return at.memory_bytes - at.context_bytes - case.job.reserved_bytes


def rates(case: Case, seconds: Array) -> Columns:
    """What a step's time makes of tokens, of the accelerators' rate and of the whole run."""
    job, ranks, band = case.job, case.cluster.ranks, float(time_band(case))
    tokens = job.global_batch * job.sequence_length
    flops = sequence_flops(case.model, job) * job.global_batch + backward_flops(case.model, job) * job.global_batch
    rate = counted_rate(case.cluster.accelerator, job.number)
    steps = np.ceil(job.tokens / tokens) if job.tokens else np.nan
    return {
        "seconds": seconds,
        "seconds_low": seconds * (1 - band),
        "seconds_high": seconds * (1 + band),
        "tokens_per_second": tokens * job.useful_share / seconds,
        "tokens_per_second_per_device": tokens * job.useful_share / seconds / ranks,
        "mfu": np.asarray(flops_share(flops * job.useful_share, seconds, ranks, rate)),
        "days": steps * seconds / DAY,
        "accelerator_hours": steps * seconds * ranks / HOUR,
    }


def count_layouts(case: Case, fixed: dict[str, Any], axes: Sequence[Axis], places: Sequence[Array]) -> Columns:
    """The rows of some layouts of one context. `case` is complete but for them."""
    layouts = completed(case, fixed, axes, places)
    size = np.size(layouts.tp)
    sets, code = broken_rules(case, layouts)
    found = {name: np.full(size, np.nan) for name in FIGURES}
    held = np.zeros(size)
    legal = np.flatnonzero(code == 0)
    costs = hoist(case, taken(layouts, legal)) if legal.size else None
    for start in range(0, legal.size, ROWS):
        ids = legal[start : start + ROWS]
        assert costs is not None
        some = figures(case, taken(layouts, ids), costs.at(np.arange(start, start + len(ids))))
        for name, values in zip(FIGURES, some):
            found[name][ids] = values
        held[ids] = some[-1]
    there = case.cluster.host_bytes
    breaks = held > (np.inf if there is None else there)
    if breaks.any():
        names = list(sets)
        code = _joined(code, breaks, HOST, names)
        sets = tuple(names)
        for name in FIGURES:
            found[name][breaks] = np.nan
    return _rows(case, layouts, found, Words((None, *sets[1:]), code), code == 0)


def _rows(case: Case, layouts: Layout, found: dict[str, Array], broken: Words, legal: Array) -> Columns:
    place = verdicts(case, layouts, found["peak_low_bytes"], found["peak_high_bytes"])
    cut: Columns = {name: _field(getattr(layouts, name)) for name in CUT}
    more: Columns = {name: _field(getattr(layouts, name)) for name in ("dp",)}
    return cut | more | {
        "micro_batches": case.job.global_batch / np.asarray(layouts.dp * layouts.micro_batch),
        "verdict": Words(VERDICTS, np.where(legal, place, len(VERDICTS) - 1)),
        "broken": broken,
        **{name: found[name] for name in FIGURES[:3]},
        "usable_bytes": np.where(legal, usable_bytes(case), np.nan),
        **rates(case, found["seconds"]),
    }  # fmt: skip


def _field(values: Any) -> Any:
    """A field of layouts as a column."""
    array = np.asarray(values)
    if array.dtype.kind != "U" or array.ndim == 0:
        return array.item() if array.ndim == 0 else array
    words, index = np.unique(array, return_inverse=True)
    return Words(tuple(words.tolist()), index)
