"""A list of layouts, counted in blocks: for databases and tables. What recurs in the list is counted once."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..layout.axes import Layout
from ..layout.case import Case
from ..memory.peak import peak
from .blocks import hoist
from .nested import nested, rows_of
from .rows import taken
from .split.stacked import counted

Floats = NDArray[np.float64]
CELLS = 50_000  # of a block: its arrays stay in the cache


def count_list(case: Case, layouts: Layout, cells: int = CELLS) -> tuple[Floats, Floats]:
    """Peak and step of every layout of a list: `layouts` holds flat arrays of one length; no rule is asked."""
    length = np.size(layouts.tp)
    peaks, seconds = np.empty(length), np.empty(length)
    rows = rows_of(layouts)
    costs = hoist(case, taken(layouts, rows.first)) if length else None
    for here, places in rows.blocks(cells):
        assert costs is not None
        block = replace(case, layout=nested(layouts, places))
        asked, stages, time = counted(block, costs.at(here), places.ndim)
        peaks[places], seconds[places] = peak(stages, asked), time
    return peaks, seconds
