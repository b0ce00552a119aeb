"""A list along two axes: every layout once at least, and what stands along the first axis differs in options alone."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from outlay.layout.axes import ALONE, Layout, joined
from outlay.search.combinations import combinations
from outlay.search.nested import OPTIONS, nested, rows_of


def some_list(seed: int, length: int = 500) -> Layout:
    """A list in which some rows recur often and most seldom."""
    draw = np.random.default_rng(seed)

    def often(values: list[Any]) -> Any:
        return np.asarray(values)[np.minimum(draw.geometric(0.5, length), len(values)) - 1]

    return joined(
        ALONE, tp=often([1.0, 2.0, 4.0, 8.0]), pp=often([1.0, 2.0, 4.0]), zero=often([0.0, 1.0, 3.0]),
        schedule=often(["1f1b", "gpipe"]), micro_batch=often([1.0, 2000.0]), recompute=often(["none", "selective"]),
        sp=draw.random(length) < 0.1, overlap_tp=draw.random(length) < 0.5, offload_optimizer=draw.random(length),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cells", [1, 7, 100, 100_000])
def test_every_layout_of_a_list_stands_in_a_block_of_its_row(seed: int, cells: int) -> None:
    layouts = some_list(seed)
    rows = rows_of(layouts)
    seen = np.zeros(layouts.tp.size, int)
    for here, places in rows.blocks(cells):
        assert places.shape[0] == 1 or places.size <= cells or places.shape[1] == 1
        assert places.shape[1] == here.stop - here.start or here.stop > len(rows.members)
        assert places.shape[0] == rows.members[here].max()
        seen[places] += 1
        for each in fields(Layout):
            values = getattr(layouts, each.name)
            if isinstance(values, np.ndarray) and each.name not in OPTIONS:
                assert (values[places] == values[rows.first[here]]).all()
            if isinstance(values, np.ndarray):
                wide = np.broadcast_to(getattr(nested(layouts, places), each.name), places.shape)
                assert (wide == values[places]).all()
    assert seen.min() >= 1


@pytest.mark.parametrize("seed", range(4))
def test_combinations_are_those_that_sorting_finds(seed: int) -> None:
    layouts = some_list(seed)
    every = [getattr(layouts, each.name) for each in fields(Layout)]
    first, index = combinations(every, layouts.tp.size)
    spelled = list(zip(*(values.tolist() for values in every if isinstance(values, np.ndarray)), strict=True))
    assert len(first) == len(set(spelled))
    assert [spelled[first[at]] for at in index.tolist()] == spelled
    assert all(index[at] == place for place, at in enumerate(first.tolist()))


def test_combinations_of_numbers_that_are_negative_or_not_whole_are_told_apart() -> None:
    first, index = combinations([np.asarray([0.5, -1.0, 0.5, 1e9, 0.25]), 3.0], 5)
    assert len(first) == 4
    assert index[0] == index[2]
