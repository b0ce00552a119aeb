"""Rows that a large search passes over hold none of the best: their bounds are bounds, and the answer stays."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models import DEEPSEEK_V3, LLAMA_8B, LLAMA_70B, MIXTRAL
from outlay import Job, Model, load_cluster, plan
from outlay.layout.case import Case
from outlay.search.blocks import Grid
from outlay.search.narrow import narrow
from outlay.search.plan import asked, first_of, sweep
from outlay.search.promising import least_peaks, least_seconds
from outlay.search.rows import legal_rows
from outlay.search.space import declare

QUESTIONS: tuple[tuple[Model, str, int, int], ...] = (
    (LLAMA_8B, "8xa100-sxm-80", 2048, 24),
    (LLAMA_70B, "32xh100-sxm", 4096, 64),
    (MIXTRAL, "16xh100-sxm", 2048, 32),
    (DEEPSEEK_V3, "64xh200-sxm", 2048, 64),
)
ENGINES = ("megatron", "fsdp2", "deepspeed", "hf_trainer", "maxtext")


def few_of(random: np.random.Generator, values: tuple[Any, ...], most: int) -> tuple[Any, ...]:
    """The first and a few others of some values, in their order."""
    kept = random.choice(len(values), min(len(values), int(random.integers(1, most + 1))), replace=False)
    return tuple(values[index] for index in sorted({0, *kept}))


def full_grid(seed: int) -> Grid:
    """A random question, and a random part of its full space, of some hundred thousand layouts at most."""
    random = np.random.default_rng(seed)
    model, on, seq, batch = QUESTIONS[seed % len(QUESTIONS)]
    engine = ENGINES[seed // len(QUESTIONS) % len(ENGINES)]
    case, _ = asked(model, Job(seq, batch), load_cluster(on), engine)
    space = declare(model, case.job, case.cluster, case.engine, "full")
    lists = {name: few_of(random, values, 2) for name, values in space.degrees.items()}
    space = narrow(space, **lists, schedule=few_of(random, space.schedules, 2))
    return Grid(case, space, legal_rows(case, space))


def smaller(grid: Grid) -> Grid:
    """The same question on accelerators with a tenth of the memory, where little fits or nothing."""
    one = grid.case.cluster.accelerator
    cluster = replace(grid.case.cluster, accelerator=replace(one, memory_bytes=one.memory_bytes / 10))
    case: Case = replace(grid.case, cluster=cluster)
    return Grid(case, grid.space, legal_rows(case, grid.space))


@pytest.mark.parametrize("seed", range(50))
def test_the_best_20_of_a_full_space_are_the_same_with_rows_passed_over(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outlay.search.promising.SLAB", 20_000)
    for grid in (full_grid(seed), smaller(full_grid(seed))):
        whole, quick = sweep(grid, 20), sweep(grid, 20, prune=True)
        assert quick.best.found == whole.best.found
        assert first_of(grid, prune=True) == first_of(grid)
        assert quick.counted <= whole.counted == grid.layouts


@pytest.mark.parametrize("seed", range(50, 70))
def test_no_layout_of_a_row_is_faster_or_smaller_than_its_bounds(seed: int) -> None:
    grid = full_grid(seed)
    assert len(grid.rows)
    seconds = least_seconds(grid)
    for each in grid.alike:
        peaks = least_peaks(each)
        for block in each.own_blocks():
            axes = tuple(range(block.seconds.ndim - 1))
            assert (block.seconds.min(axis=axes) >= seconds[block.rows] * (1 - 1e-12)).all()
            wide = np.broadcast_to(block.peaks, block.seconds.shape)
            assert (wide.min(axis=axes) >= peaks[block.rows] * (1 - 1e-12)).all()


def test_rows_are_passed_over_and_the_numbers_of_the_search_add_up() -> None:
    question = (LLAMA_70B, Job(8192, 512), load_cluster("64xh100-sxm"))
    found = plan(*question, width="full")
    search = found.search
    assert search.pruned > search.counted > 0 and search.proved and search.gap == 0
    assert search.space == search.illegal + search.duplicates + search.legal
    assert search.legal == search.counted + search.pruned
    assert found.best[0].seconds <= plan(*question).best[0].seconds
