"""A list of unrelated layouts, counted in blocks: for databases and tables, where nothing is shared."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..layer import ModelCosts
from ..layout.axes import Layout
from ..layout.case import Case
from ..layout.stages import candidates, whole
from ..memory.peak import peak
from ..schedule.laws import among
from ..stage import stage_costs
from ..step.total import step_seconds
from .blocks import hoist
from .rows import taken

Floats = NDArray[np.float64]
ROWS = 8_000  # of a block: its arrays stay in the cache


def count_list(case: Case, layouts: Layout, rows: int = ROWS) -> tuple[Floats, Floats]:
    """Peak and step of every layout of a list: `layouts` holds flat arrays of one length; no rule is asked."""
    length = np.size(layouts.tp)
    peaks, seconds = np.empty(length), np.empty(length)
    costs = hoist(case, layouts) if length else None
    for start in range(0, length, rows):
        ids = np.arange(start, min(start + rows, length))
        assert costs is not None
        peaks[ids], seconds[ids] = _count(case, taken(layouts, ids), costs.at(ids))
    return peaks, seconds


def _count(case: Case, layout: Layout, costs: ModelCosts) -> tuple[Floats, Floats]:
    asked = replace(case, layout=layout, schedule=among(np.asarray(layout.schedule)))
    found = candidates(case.model, layout, case.engine.counts_ends)
    stages = tuple(stage_costs(stage, costs) for stage in found)
    time = step_seconds(stages, stage_costs(whole(case.model), costs, layout.pp), asked)
    return np.asarray(peak(stages, asked)), np.asarray(time)
