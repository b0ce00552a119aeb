"""Derivations of whole bills: each ends in the bill's own figure, and each printed line can be computed again."""

from collections.abc import Iterator
from dataclasses import replace
from math import isclose

import pytest

from models import DEEPSEEK_V3, GPT3, LLAMA_8B, LLAMA_70B
from outlay import Cluster, InputError, Job, Layout, Model, count, explain_count, load_cluster
from outlay.bill import case_of, load
from outlay.derivation import Step
from outlay.ladder import QUANTITIES, derive, rungs
from units import evaluate

QUESTIONS = {
    "llama-3.1-70b": (LLAMA_70B, Job(8192, 512), load_cluster("64xh100-sxm"), Layout(tp=8, pp=4), "megatron"),
    "gpt3-175b": (
        GPT3, Job(2048, 1536), load_cluster("1024xa100-sxm-80"),
        Layout(tp=8, pp=16, vpp=2, recompute="full", recompute_layers=4), "megatron-2022",
    ),
    "deepseek-v3": (
        DEEPSEEK_V3, Job(4096, 15360), load_cluster("2048xh100-sxm"),
        Layout(pp=16, ep=64, split=(4,) * 15 + (1,)), "megatron",
    ),
}  # fmt: skip


def flat(step: Step) -> Iterator[Step]:
    """A derivation's lines, the outermost first."""
    yield step
    for inner in step.steps:
        yield from flat(inner)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_derivation_ends_in_the_figure_of_the_bill(name: str) -> None:
    bill = count(*QUESTIONS[name])
    bytes_of = {item.axis: item.bytes for item in bill.traffic}
    assert bill.violations == ()
    assert explain_count("memory", *QUESTIONS[name]).value == bill.memory.peak_bytes
    assert explain_count("step", *QUESTIONS[name]).value == bill.step.seconds
    assert explain_count("bubble", *QUESTIONS[name]).value == bill.bubble.share
    assert isclose(explain_count("traffic", *QUESTIONS[name]).value, sum(bytes_of.values()), rel_tol=1e-12)
    for axis in bytes_of:
        assert explain_count(f"traffic.{axis}", *QUESTIONS[name]).value == bytes_of[axis]
    for item in bill.memory.items:
        if item.name != "buffers":
            assert explain_count(f"memory.{item.name}", *QUESTIONS[name]).value == item.value


def failing(cluster: Cluster) -> Cluster:
    """The same cluster, with a storage and with failures."""
    return replace(cluster, storage_bandwidth=1e11, mtbf_seconds=1.8e8, restart_seconds=600.0)


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_a_printed_line_computed_again_agrees_within_five_parts_in_ten_thousand(name: str, quantity: str) -> None:
    model, job, cluster, *rest = QUESTIONS[name]
    at = load(case_of(model, job, failing(cluster), *rest)[0])
    seen = 0
    for step in flat(derive(quantity, at)):
        again, printed = evaluate(next(iter(step.lines())))
        assert isclose(again, printed, rel_tol=5e-4, abs_tol=1e-12), next(iter(step.lines()))
        seen += 1
    assert seen >= 1


@pytest.mark.parametrize("model", [LLAMA_70B, GPT3, DEEPSEEK_V3], ids=lambda model: model.name)
def test_the_refined_rung_is_the_derivation_and_the_coarse_one_is_the_textbooks(model: Model) -> None:
    at = load(case_of(*QUESTIONS[model.name])[0])
    ladder = {rung.name: rung.value for rung in rungs("memory.activations", at)}
    assert ladder["refined"] == derive("memory.activations", at).value
    assert 0.1 < ladder["coarse"] / ladder["refined"] < 10
    assert ladder["simulated"] is ladder["measured"] is None


def test_the_mock_ups_activations_are_22_5_gb_and_the_textbook_says_13_4() -> None:
    at = load(case_of(*QUESTIONS["llama-3.1-70b"])[0])
    coarse, refined = (rung.value for rung in rungs("memory.activations", at)[:2])
    assert coarse == 4 * 20 * 8192 * 8192 * 10 * 2 / 8
    assert refined == 22_503_096_320


def test_a_quantity_that_cannot_be_explained_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        explain_count("memory.activation", *QUESTIONS["llama-3.1-70b"])
    assert caught.value.faults[0].code == "EXP001"
    assert caught.value.faults[0].fix == "memory.activations"


def test_the_textbooks_state_of_a_frozen_model_is_its_weights() -> None:
    """Adapters train 0.5 % of the parameters; 2 bytes of each of the others stay."""
    job = Job(sequence_length=4096, global_batch=8, adapter="lora")
    at = load(case_of(LLAMA_8B, job, load_cluster("8xh100-sxm"), Layout(zero=0))[0])
    share = 41_943_040 / 8_030_261_248  # of rank 16 on all matrices of layers, as peft counts them
    coarse, refined = (rung.value for rung in rungs("memory", at)[:2])
    tape = rungs("memory.activations", at)[0].value

    assert coarse is not None and refined is not None and tape is not None
    assert coarse - tape == pytest.approx(8_030_261_248 * (2 + 14 * share), rel=1e-3)
    assert 0.5 < coarse / refined < 2
