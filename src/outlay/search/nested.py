"""A list of layouts along two axes, so that what recurs in it is counted once: rows, and the members of each.

A row is all that a layout has but its options: degrees, schedule, micro-batch, ZeRO stage. Formulas then see what they
see in a search: arrays of rows, and arrays of options before them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..layout.axes import Layout
from .combinations import combinations

Array = NDArray[Any]
OPTIONS = (
    "recompute", "recompute_layers", "overlap_tp", "overlap_dp",
    "offload_optimizer", "offload_parameters", "offload_activations",
)  # fmt: skip
LEAST = 0.8  # members of a row, over those of the largest in its block
MOST = 8_000  # rows of a block: their arrays stay in the cache
SPARE = 10_000  # cells up to which one block is cheaper than two


@dataclass(frozen=True)
class Rows:
    """The rows of a list, those with most members first."""

    order: Array  # places in the list, row by row
    start: Array  # of each row, in `order`
    members: Array  # of each row

    @property
    def first(self) -> Array:
        """The place of one layout of each row."""
        places: Array = self.order[self.start]
        return places

    def blocks(self, cells: int) -> Iterator[tuple[slice, Array]]:
        """Some rows, and the places of their layouts in the list, along (members, rows): about so many cells.

        Where a row has fewer than the largest of its block, its last is counted again, and comes out the same.
        """
        begin = 0
        while begin < len(self.members):
            tall = int(self.members[begin])
            alike = int(np.searchsorted(-self.members, -LEAST * tall, side="right"))
            end = min(max(alike, begin + SPARE // tall), begin + max(1, min(cells // tall, MOST)))
            here = slice(begin, end)
            member = np.minimum(np.arange(tall)[:, None], self.members[here] - 1)
            yield here, self.order[self.start[here] + member]
            begin = end


def rows_of(layouts: Layout) -> Rows:
    """Sort a list by row, and in a row by what formulas choose between: a choice that seldom changes takes less."""
    every = (getattr(layouts, each.name) for each in fields(Layout) if each.name not in OPTIONS)
    _, row = combinations(every, np.size(layouts.tp))
    chosen = (layouts.selective, layouts.recompute_layers > 0, layouts.overlap_tp, layouts.overlap_dp)
    order = np.lexsort([*(np.broadcast_to(each, row.shape) for each in chosen[::-1]), compact(row)])
    members = np.bincount(row)
    start, most = np.cumsum(members) - members, np.argsort(-members, kind="stable")
    return Rows(order, start[most], members[most])


def compact(numbers: Array) -> Array:
    """The same numbers in as few bits as they need: NumPy sorts 16 bits without a comparison."""
    return numbers.astype(np.min_scalar_type(numbers.max(initial=0)))


def nested(layouts: Layout, places: Array) -> Layout:
    """The layouts at some places of a list: options along both axes, all else along the rows."""
    picked = {each.name: getattr(layouts, each.name) for each in fields(Layout)}
    return Layout.grid(**{
        name: values[places if name in OPTIONS else places[0]] if isinstance(values, np.ndarray) else values
        for name, values in picked.items()
    })  # fmt: skip
