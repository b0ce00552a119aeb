"""Best and frontier of a space of millions, against a plain sort of all its cells."""

from dataclasses import replace

import numpy as np
import pytest

from models import GPT3
from outlay import Job, load_cluster
from outlay.bill import load
from outlay.memory.peak import peak
from outlay.schedule.laws import SCHEDULES
from outlay.search.blocks import Grid
from outlay.search.fitting import limits
from outlay.search.frontier import staircase
from outlay.search.narrow import narrow
from outlay.search.plan import asked, sweep
from outlay.search.rows import legal_rows
from outlay.search.space import declare
from outlay.step.total import step_seconds


@pytest.fixture(scope="module")
def grid() -> Grid:
    case, _ = asked(GPT3, Job(2048, 1536), load_cluster("1024xa100-sxm-80"), "megatron")
    space = narrow(declare(GPT3, case.job, case.cluster, case.engine), schedule=("1f1b", "gpipe", "interleaved"))
    return Grid(case, space, legal_rows(case, space))


def test_best_20_and_frontier_of_three_million_layouts_are_those_of_a_sort_of_all(grid: Grid) -> None:
    found, bounds = sweep(grid, 20), limits(grid.case)
    peaks, seconds = [], []
    for block in grid.blocks(300_000):
        peaks.append(np.broadcast_to(block.peaks, block.seconds.shape).ravel())
        seconds.append(block.seconds.ravel())
    all_peaks, all_seconds = np.concatenate(peaks), np.concatenate(seconds)

    assert all_seconds.size == found.counted == grid.layouts > 3_000_000
    fitting = np.sort(all_seconds[all_peaks <= bounds.fits])
    assert found.best.fitting == fitting.size
    assert [each.seconds for each in found.best.found] == fitting[:20].tolist()
    may_fit = all_peaks <= bounds.tight
    points = np.zeros((int(may_fit.sum()), 4))
    points[:, 0], points[:, 1] = all_peaks[may_fit], all_seconds[may_fit]
    expected = staircase(points)[:, :2]
    assert np.array_equal(np.array([(point.peak, point.seconds) for point in found.frontier.found()]), expected)


def test_the_kept_layouts_cost_by_themselves_what_the_search_found(grid: Grid) -> None:
    found = sweep(grid, 20)
    for each in (*found.best.found, *found.frontier.found()):
        (layout,) = grid.layouts_at([each.row], [each.cell])
        at = load(replace(grid.case, layout=layout, schedule=SCHEDULES[layout.schedule]))
        assert float(peak(at.stages, at.case)) == pytest.approx(each.peak, rel=1e-12)
        assert float(step_seconds(at.stages, at.whole, at.case)) == pytest.approx(each.seconds, rel=1e-12)
