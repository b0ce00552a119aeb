"""How much work a search does: guards that do not depend on the machine, and that show which formula broke its axes."""

import cProfile
import pstats
from collections import Counter
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from element_operations import Counted, Work
from models import DEEPSEEK_V3, GPT3, LLAMA_70B
from outlay import Job, Layout, Model, count, load_cluster
from outlay.layout.axes import joined
from outlay.search.blocks import CELLS, Grid, Hoisted, count_block, hoist, mapped
from outlay.search.options import choice, groups
from outlay.search.plan import asked
from outlay.search.rows import legal_rows
from outlay.search.space import declare

QUESTIONS = {
    "gpt3-175b": (GPT3, Job(2048, 1536), "1024xa100-sxm-80"),
    "deepseek-v3": (DEEPSEEK_V3, Job(4096, 15360), "2048xh100-sxm"),
}


def seen(record: Any) -> Any:
    """The same record with arrays that count what is done with them; texts stay as they are."""
    changed = {}
    for field in fields(record):
        part = getattr(record, field.name)
        changed[field.name] = part.view(Counted) if isinstance(part, np.ndarray) and part.dtype.kind != "U" else part
    return changed


def work_of_a_block(model: Model, job: Job, on: str) -> tuple[Work, int]:
    """The work of one full block of a wide space, and how many layouts it counts."""
    case, _ = asked(model, job, load_cluster(on), "megatron")
    space = declare(model, case.job, case.cluster, case.engine)
    grid = Grid(case, space, legal_rows(case, space))
    key, members = max(groups(grid.keys), key=lambda group: len(group[1]))
    some = choice(key, space)
    ids = members[: CELLS // some.cells]
    costs = hoist(case, grid.rows.layout)
    counted = Hoisted(mapped(costs.table, lambda array: array.view(Counted)), costs.index)
    rows = joined(grid.rows.layout, **seen(grid.rows.layout))
    Counted.work = Work()
    count_block(case, counted, rows, ids, replace(some, **seen(some)))
    return Counted.work, len(ids) * some.cells


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_layout_takes_few_element_operations_and_a_block_few_array_calls(name: str) -> None:
    work, layouts = work_of_a_block(*QUESTIONS[name])
    assert layouts > CELLS / 2
    assert 2 < work.elements / layouts <= 25
    assert 300 < work.calls <= 1500


def test_few_operations_run_over_every_axis() -> None:
    work, layouts = work_of_a_block(*QUESTIONS["deepseek-v3"])
    assert sum(times for size, times in work.by_size.items() if size == layouts) <= 4


def test_the_guard_sees_a_formula_that_mixes_all_axes_early() -> None:
    Counted.work = Work()
    rows = np.ones((1, 1, 100)).view(Counted)
    option = np.ones((5, 1, 1)).view(Counted)
    other = np.ones((1, 7, 1)).view(Counted)
    separate = rows * 2 + (option * 2 + other * 2)
    few = Counted.work.elements
    mixed = (rows + option + other) * 2 * 2 * 2
    assert separate.shape == mixed.shape
    assert Counted.work.elements - few > few


def test_the_inventory_is_walked_once_for_each_distinct_combination() -> None:
    case, _ = asked(GPT3, Job(2048, 1536), load_cluster("1024xa100-sxm-80"), "megatron")
    space = declare(GPT3, case.job, case.cluster, case.engine)
    rows = legal_rows(case, space)
    costs = hoist(case, rows.layout)
    assert costs.index.size == len(rows)
    assert costs.index.max() + 1 < len(rows) / 5


def test_a_bill_counts_each_stage_and_each_pass_once_and_shares_the_costs_of_layers_with_its_like() -> None:
    job, on = Job(8192, 512), load_cluster("64xh100-sxm")
    count(LLAMA_70B, job, on, Layout(tp=8, pp=4, zero=1))
    watch = cProfile.Profile()
    watch.runcall(count, LLAMA_70B, job, on, Layout(tp=8, pp=4, zero=2, overlap_dp=False))
    calls = Counter[str]()
    for (_, _, name), (_, times, *_) in pstats.Stats(watch).stats.items():  # type: ignore[attr-defined]
        calls[name] += times

    assert calls["model_costs"] == 0
    assert calls["allocated_bytes"] == 4  # stages
    assert calls["pass_seconds"] <= 2 * 3 + 2  # the three stages that can be slowest, twice; the whole model, twice
    assert sum(calls.values()) < 16_000  # of Python functions, in all
