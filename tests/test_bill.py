"""One bill: its sums, its worst rank, its verdicts, and what it says of itself."""

import json
from dataclasses import replace
from math import isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import DEEPSEEK_V3, H100S, LLAMA_7B, LLAMA_70B, MIXTRAL, layouts, loaded
from outlay import InputError, Job, Layout, count, load_cluster, load_model, parameters
from outlay.bill import case_of, load
from outlay.memory.peak import peak, peak_of
from outlay.step.traffic import axis_bytes, data_bytes

JOB = Job(sequence_length=8192, global_batch=512)


def test_the_demo_is_the_70b_on_64_accelerators_and_it_fits() -> None:
    bill = count(LLAMA_70B, JOB, H100S, Layout(tp=8, pp=4))
    assert bill.memory.verdict == "fits"
    assert bill.memory.unsharded_state_bytes == 18 * 70_553_706_496
    assert (bill.derived.dp, bill.derived.micro_batches) == (2, 256)
    assert bill.memory.activation_bytes == 4 * 20 * 8192 * 274_696 / 8
    assert (bill.bubble.slots, bill.bubble.useful_slots, bill.bubble.held_slots) == (259, 1024, 1036)
    assert bill.bubble.share == 3 / 259


@settings(max_examples=150)
@given(layouts())
def test_items_add_up_and_none_is_negative(question: tuple) -> None:
    bill = count(*question)
    for amount, items in ((bill.memory.peak_bytes, bill.memory.items), (bill.step.seconds, bill.step.items)):
        assert isclose(sum(item.value for item in items), amount, rel_tol=1e-12)
        assert all(item.value >= 0 for item in items)
        assert all(item.low <= item.value <= item.high for item in items if item.kind == "modelled")
        assert all(item.band for item in items if item.kind == "modelled")
    assert 0 <= bill.bubble.share < 1
    for item in bill.traffic:
        assert item.bytes >= 0
        # Messages of a pipeline wait in a chain over all ranks, which may be longer than what one rank sends.
        assert 0 <= item.exposed_seconds <= item.seconds * (1 + 1e-9) or item.axis == "pp"


@settings(max_examples=150)
@given(layouts())
def test_the_worst_of_three_stages_is_the_worst_of_all(question: tuple) -> None:
    at = load(case_of(*question)[0])
    every = max(float(peak_of(stage, at.case)) for stage in at.every)
    assert isclose(float(peak(at.stages, at.case)), every, rel_tol=1e-12)


@settings(max_examples=100)
@given(layouts())
def test_the_parts_of_a_layout_add_up_to_the_model(question: tuple) -> None:
    model, job, cluster, layout, _ = question
    plain = replace(layout, offload_optimizer=0.0, tp=1, cp=1, ep=1, dp_shard=1)
    cluster = load_cluster(f"{layout.pp}xh100-sxm")
    at = load(case_of(model, job, cluster, plain, "fsdp2")[0])  # fsdp2 pads no vocabulary
    held = sum(float(stage.dense_parameters + stage.expert_parameters) for stage in at.every)
    copied = model.vocab * model.hidden if model.tied and layout.pp > 1 else 0
    assert held == parameters(model).total + copied


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_shards_times_ranks_are_the_stock(zero: int) -> None:
    at = loaded(LLAMA_7B, "8xh100-sxm", "megatron", batch=8, zero=zero)
    alone = loaded(LLAMA_7B, "1xh100-sxm", "megatron", batch=8, zero=zero)
    from outlay.memory.states import gradient_bytes, optimizer_bytes, weight_bytes

    for part, since in ((optimizer_bytes, 1), (gradient_bytes, 2), (weight_bytes, 3)):
        divided = 8 if zero >= since else 1
        assert part(at.stages[0], at.case) * divided == part(alone.stages[0], alone.case)


@settings(max_examples=60)
@given(layouts(), st.sampled_from(["dp_shard", "tp", "pp"]))
def test_more_ranks_never_raise_what_one_rank_holds_of_the_state(question: tuple, axis: str) -> None:
    model, job, cluster, layout, _ = question
    layout = replace(layout, ep=1, vpp=1, schedule="1f1b")
    more = replace(layout, **{axis: 2 * getattr(layout, axis)})
    wide = load_cluster(f"{2 * cluster.ranks}xh100-sxm")
    before = count(model, job, cluster, layout).memory.state_bytes
    after = count(model, job, wide, more).memory.state_bytes
    head = 18 * 2 * model.vocab * model.hidden / layout.tp  # a stage may trade layers for an end of the model
    assert after <= before + (head if axis == "pp" else 0)


def same(one: Layout, other: Layout, model=LLAMA_70B, cluster: str = "64xh100-sxm") -> bool:
    """Whether two layouts cost the same to the last digit."""
    bills = [count(model, JOB, load_cluster(cluster), layout) for layout in (one, other)]
    return bills[0].memory.peak_bytes == bills[1].memory.peak_bytes and bills[0].step == bills[1].step


def test_an_option_without_effect_changes_nothing() -> None:
    flat = Layout(tp=1, pp=4)
    assert same(flat, replace(flat, overlap_tp=True))
    assert same(flat, replace(flat, sp=True))
    assert same(flat, replace(flat, cp_kind="ulysses"))
    assert same(flat, replace(flat, moe_dispatch="all_gather"))
    single = Layout(tp=8, pp=8)
    assert same(single, replace(single, zero=3))
    assert same(single, replace(single, zero=0))
    assert same(single, replace(single, overlap_dp=False))
    alone = Layout(tp=8, pp=1)
    assert same(alone, replace(alone, schedule="gpipe", dp_shard=8)) or alone.pp == 1


def test_what_is_absent_costs_nothing() -> None:
    at = loaded(LLAMA_7B, "1xh100-sxm", batch=4)
    assert axis_bytes(at.stages[0], "tp", at.case) == axis_bytes(at.stages[0], "ep", at.case) == 0
    assert data_bytes(at.stages[0], at.case) == 0
    bill = count(LLAMA_7B, Job(4096, 4), load_cluster("1xh100-sxm"), Layout())
    assert bill.traffic == ()
    assert bill.bubble.share == bill.bubble.seconds == 0
    assert {item.name for item in bill.step.items} == {"arithmetic", "idle", "optimizer", "overhead"}


def test_state_over_all_accelerators_that_is_too_much_is_impossible_and_says_by_what_factor() -> None:
    bill = count(LLAMA_70B, Job(8192, 8), load_cluster("8xh100-sxm"), Layout(tp=8))
    assert bill.memory.verdict == "impossible"
    usable = 81559 * 2**20 - 600 * 2**20
    assert isclose(bill.memory.impossible_factor, 18 * 70_553_706_496 / (8 * usable))


def test_a_layout_that_breaks_a_rule_has_no_verdict() -> None:
    bill = count(LLAMA_70B, Job(8192, 500), H100S, Layout(tp=7, pp=3, dp_shard=3))
    assert bill.memory.verdict is None
    assert {violation.code for violation in bill.violations} >= {"LAY001", "LAY003", "LAY009", "BAT001"}


def test_every_value_out_of_range_is_reported_at_once() -> None:
    with pytest.raises(InputError) as caught:
        count(LLAMA_70B, Job(sequence_length=0, global_batch=-1), H100S, Layout(tp=0, zero=7, schedule="no"))
    assert len(caught.value.faults) == 5
    assert all(fault.rule and fault.got and fault.fix for fault in caught.value.faults)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 8.5, True, "8"])
def test_a_degree_that_is_no_whole_number_is_refused(bad: object) -> None:
    with pytest.raises(InputError):
        count(LLAMA_70B, JOB, H100S, Layout(tp=bad))


def test_what_was_assumed_is_said_and_what_was_given_is_not() -> None:
    bill = count(load_model("mixtral-8x7b"), Job(), H100S, Layout(tp=2, ep=8))
    said = "\n".join(bill.assumptions)
    assert "GLOBAL BATCH 32" in said
    assert "SEQUENCE LENGTH 32,768" in said
    assert "micro batch 1" in said
    assert "tp" not in said.split()
    given = count(MIXTRAL, Job(4096, 64), H100S, Layout(tp=2, ep=8, micro_batch=2))
    assert "BATCH" not in "\n".join(given.assumptions)
    assert "micro batch" not in "\n".join(given.assumptions)


def test_the_same_question_has_the_same_answer() -> None:
    once, again = (count(DEEPSEEK_V3, Job(4096, 2048), load_cluster("256xh100-sxm"), Layout(pp=8, ep=32)) for _ in "12")
    assert json.dumps(once.memory.items, default=vars) == json.dumps(again.memory.items, default=vars)
    assert once.step == again.step
