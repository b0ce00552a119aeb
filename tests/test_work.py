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
from outlay import Bill, Cluster, Engine, Job, Layout, Model, count, load_cluster
from outlay.layout.axes import joined
from outlay.search.blocks import CELLS, Grid, Hoisted, count_block, hoist, mapped
from outlay.search.frontier import Frontier, staircase
from outlay.search.lists import count_list
from outlay.search.plan import asked, plan
from outlay.search.rows import legal_rows, taken
from outlay.search.space import Width, declare

QUESTIONS = {
    "gpt3-175b": (GPT3, Job(2048, 1536), "1024xa100-sxm-80"),
    "deepseek-v3": (DEEPSEEK_V3, Job(4096, 15360), "2048xh100-sxm"),
}
MOST = {"gpt3-175b": (20, 750), "deepseek-v3": (14, 950)}  # element operations a layout, array calls a block


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
    some, members = max(grid.groups, key=lambda group: len(group[1]))
    here = slice(0, CELLS // some.cells)
    some, ids = some.of(here), members[here]
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
    elements, calls = MOST[name]
    assert 2 < work.elements / layouts <= elements
    assert 300 < work.calls <= calls


def test_few_operations_run_over_every_axis() -> None:
    work, layouts = work_of_a_block(*QUESTIONS["deepseek-v3"])
    assert sum(times for size, times in work.by_size.items() if size >= layouts) <= 4


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


@pytest.mark.parametrize(("width", "most"), [("lean", 1), ("middle", 8)])
def test_a_small_space_takes_few_blocks(width: Width, most: int) -> None:
    case, _ = asked(GPT3, Job(2048, 1536), load_cluster("1024xa100-sxm-80"), "megatron")
    space = declare(GPT3, case.job, case.cluster, case.engine, width)
    grid = Grid(case, space, legal_rows(case, space))
    assert len(set(grid.keys.tolist())) > len(grid.groups)
    assert 0 < sum(1 for _ in grid.blocks()) <= most


def test_a_plan_makes_a_bill_when_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Layout] = []

    def noted(model: Model, job: Job, cluster: Cluster, layout: Layout, engine: Engine) -> Bill:
        made.append(layout)
        return count(model, job, cluster, layout, engine)

    monkeypatch.setattr("outlay.search.plan.count", noted)
    found = plan(LLAMA_70B, Job(8192, 512), load_cluster("64xh100-sxm"), width="lean")
    assert not made
    assert found.best[0].bill is found.best[0].bill
    assert made == [found.best[0].layout]
    for ranked in (*found.best, *(each.ranked for each in found.baselines if each.ranked)):
        assert ranked.seconds == pytest.approx(ranked.bill.step.seconds, rel=1e-12)
        assert ranked.peak_bytes == pytest.approx(ranked.bill.memory.peak_bytes, rel=1e-12)


def work_of_a_list(of_each: int) -> float:
    """Element operations a layout of a list that holds each of some rows so many times, with options of its own."""
    case, _ = asked(LLAMA_70B, Job(8192, 512), load_cluster("64xh100-sxm"), "megatron")
    rows = legal_rows(case, declare(LLAMA_70B, case.job, case.cluster, case.engine)).layout
    draw = np.random.default_rng(1)
    size = 150 * of_each
    layouts = joined(
        taken(rows, np.repeat(np.arange(150), of_each)),
        recompute=np.where(draw.random(size) < 0.5, "none", "selective"),
        zero=draw.integers(0, 4, size).astype(float),
        overlap_tp=draw.random(size) < 0.5,
        overlap_dp=draw.random(size) < 0.5,
        offload_optimizer=draw.random(size),
    )
    Counted.work = Work()
    count_list(case, joined(layouts, **seen(layouts)))
    return Counted.work.elements / size


def test_rows_that_recur_in_a_list_are_counted_once() -> None:
    alone, often = work_of_a_list(1), work_of_a_list(100)
    assert alone > 700
    assert often < 400


def test_of_a_first_block_few_layouts_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def noted(points: Any) -> Any:
        sizes.append(len(points))
        return staircase(points)

    monkeypatch.setattr("outlay.search.frontier.staircase", noted)
    draw = np.random.default_rng(1)
    Frontier(1.0).offer(draw.random((10, 10_000)), draw.random((10, 10_000)), np.arange(10_000))
    assert 0 < sizes[0] < 5_000


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
