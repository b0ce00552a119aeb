"""The laws that a bill uses for its schedule, against the schedule's own order run pass by pass."""

from itertools import product

import numpy as np
import pytest

from outlay import Job, Layout, count, load_cluster, load_model
from outlay.bill import case_of, load
from outlay.schedule.laws import FOLDED, SCHEDULES, among
from outlay.schedule.orders import facts, order
from outlay.schedule.timeline import simulate
from outlay.schedule.times import Times
from outlay.simulated import simulated

RANKS = (2, 3, 4, 8)
INSIDE = ((2, 2, 2), (2, 4, 2), (4, 6, 2), (10, 12, 8), (4, 4, 2), (2, 6, 2))  # B >= F >= W, and W no more than either
OUTSIDE = ((2, 2, 4), (6, 4, 2), (4, 2, 4), (2, 4, 6))
EVERYWHERE = ("gpipe", "1f1b", "interleaved", "looped_bfs", "zb_h1", "zb_h2")  # exact whatever F, B and W


def pipelines(name: str) -> list[tuple[int, int, int]]:
    law = SCHEDULES[name]
    found = []
    for pp, vpp in product(RANKS, (1, 2, 3)):
        least = int(law.least(pp))
        found += [(pp, vpp, M) for M in sorted({least, least + 1, 2 * pp, 3 * pp, 5 * pp}) if law.legal(pp, vpp, M)]
    return found


def makespan(name: str, pp: int, vpp: int, micro_batches: int, passes: tuple[int, int, int], send: int = 0) -> float:
    return simulate(order(name, pp, micro_batches, vpp), Times(*passes, send=send)).makespan


def counted(name: str, pp: int, vpp: int, micro_batches: int, passes: tuple[int, int, int]) -> float:
    F, B, W = (vpp * each for each in passes)
    parts = SCHEDULES[name].parts(F, B, W, pp, vpp)
    return micro_batches * (F + B + W) + (pp - 1) * (F + B + W) / parts


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_closed_form_gives_the_makespan_of_the_order_where_it_is_said_to_hold(name: str) -> None:
    passes = INSIDE + OUTSIDE if name in EVERYWHERE else INSIDE
    asked = list(product(pipelines(name), passes))
    assert len(asked) > 50
    for line, times in asked:
        assert counted(name, *line, times) == pytest.approx(makespan(name, *line, times), rel=1e-12), (line, times)


@pytest.mark.parametrize("name", sorted(set(SCHEDULES) - set(EVERYWHERE)))
def test_elsewhere_it_is_a_bound_and_not_always_met(name: str) -> None:
    spare = [counted(name, *at, times) - makespan(name, *at, times) for at in pipelines(name) for times in OUTSIDE]
    assert min(spare) >= -1e-9
    assert max(spare) > 0


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_rank_holds_at_its_peak_what_the_law_says(name: str) -> None:
    for pp, vpp, micro_batches in pipelines(name):
        held = simulate(order(name, pp, micro_batches, vpp), Times(2, 4, 2)).peak_in_flight
        law = [SCHEDULES[name].in_flight(rank, pp, vpp, micro_batches, pp) for rank in range(pp)]
        assert list(held) == pytest.approx(law), (pp, vpp, micro_batches)


@pytest.mark.parametrize("name", SCHEDULES)
def test_short_messages_lengthen_a_step_by_the_exposed_hops(name: str) -> None:
    """1F1B and DualPipeV pay in every micro-batch: exact where P divides M, within two hops elsewhere."""
    for pp, vpp, micro_batches in pipelines(name):
        times = (200, 400, 200)
        line = (pp, vpp, micro_batches)
        extra = makespan(name, *line, times, send=1) - makespan(name, *line, times)
        said = SCHEDULES[name].hops(*line)
        exact = name not in ("1f1b", "dualpipe_v") or micro_batches % pp == 0
        assert abs(extra - said) <= (1e-9 if exact else 2), line


def test_several_schedules_at_once_answer_as_each_alone() -> None:
    names = np.array(sorted(SCHEDULES))
    law = among(names)
    for name, each in zip(names, np.asarray(law.parts(2.0, 3.0, 1.0, 4, 2)), strict=True):
        assert each == SCHEDULES[str(name)].parts(2.0, 3.0, 1.0, 4, 2)
    for name, each in zip(names, np.asarray(law.in_flight(1, 4, 2, 32, 4)), strict=True):
        assert each == SCHEDULES[str(name)].in_flight(1, 4, 2, 32, 4)


def test_a_law_and_its_order_agree_on_where_stages_stand() -> None:
    assert set(FOLDED) == {name for name in SCHEDULES if facts(name).placement == "folded"}


LLAMA, ON, JOB = load_model("llama-3-70b"), load_cluster("64xh100-sxm"), Job(8192, 128)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_bill_is_near_its_own_simulation_and_never_far_below(name: str) -> None:
    """Closed forms take stages as equal; the head makes the last one heavier, by less than a layer here."""
    layout = Layout(tp=8, pp=4, vpp=2 if SCHEDULES[name].fits(4, 2) else 1, schedule=name)
    bill = count(LLAMA, JOB, ON, layout)
    assert not bill.violations
    case, _ = case_of(LLAMA, JOB, ON, layout)
    assert simulated(load(case)).seconds == pytest.approx(bill.step.seconds, rel=0.02)


@pytest.mark.parametrize("name", FOLDED)
def test_a_folded_pipeline_has_both_ends_on_its_first_rank(name: str) -> None:
    layout = Layout(tp=8, pp=4, schedule=name)
    case, said = case_of(LLAMA, JOB, ON, layout)
    assert case.layout.vpp == 2 and any("vpp 2" in text for text in said)
    stages = load(case).every
    assert [stage.head for stage in stages] == [1, 0, 0, 0]
    assert stages[0].ends[0].layers == 1
    assert sum(stage.differentiated for stage in stages) == 80
    assert "traffic.tied" not in {item.axis for item in count(LLAMA, JOB, ON, layout).traffic}


def test_too_few_micro_batches_for_a_schedule_are_a_rule_with_a_way_out() -> None:
    bill = count(LLAMA, Job(8192, 8), ON, Layout(tp=8, pp=4, schedule="zb_h2"))
    assert [each.code for each in bill.violations] == ["LAY023"]
    assert "zb_h2: 4 micro-batches, pp 4" in bill.violations[0].got
