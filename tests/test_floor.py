"""No step is faster than physics: FLOPs at the specified rate, bytes at the specified bandwidths."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from models import GPT3, LLAMA_70B, layouts
from outlay import Bill, Cluster, Job, Layout, Model, count, load_cluster
from outlay.bill import case_of, load
from outlay.cluster.efficiency import counted_rate
from outlay.layout.case import Case
from outlay.step.compute import updated_parameters

CARDS = ("h100-sxm", "a100-sxm-80", "b200", "gb200", "mi300x", "tpu-v5p", "trn2")
VALUE = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "fp4": 0.5, "fp32": 4.0}  # bytes of a weight as it is multiplied


def flops_floor(bill: Bill) -> float:
    """Model FLOPs of the step over what all accelerators can do: without recompute, attention over the keys seen."""
    return bill.step.model_flops / (bill.cluster.ranks * counted_rate(bill.cluster.accelerator, bill.job.number))


def memory_floors(bill: Bill, case: Case) -> Iterator[float]:
    """On every stage: each micro-batch reads the weights of its layers twice, the optimizer reads and writes its state.

    Weights of experts are left out, since a micro-batch may reach few of them, and so is state in host memory.
    """
    card = bill.cluster.accelerator
    for stage in load(case).every:
        weights = sum(float(held.layers) * float(held.costs.dense_parameters) for held in stage.layers)
        read = 2 * VALUE[bill.job.number] * weights * bill.derived.micro_batches
        state = 2 * case.recipe.master * float(updated_parameters(stage, case)) * (1 - bill.layout.offload_optimizer)
        yield (read + state) / card.memory_bandwidth


def wire_floors(bill: Bill) -> Iterator[float]:
    """On every axis: what one rank sends at the bandwidth of its link, or of the fastest where it may use several."""
    cluster = bill.cluster
    links = [cluster.inside, cluster.outside, *([cluster.spine] if cluster.spine else [])]
    fastest = max(link.bandwidth for link in links)
    named = {link.name: link.bandwidth for link in links}
    for item in bill.traffic:
        yield item.bytes / (named[item.link] if item.axis in ("tp", "cp", "pp") else fastest)


def below_the_floor(bill: Bill, case: Case) -> list[str]:
    """Which floors a step lies below."""
    seconds = bill.step.seconds * (1 + 1e-9)
    found = ["FLOPs"] if seconds < flops_floor(bill) else []
    found += ["memory"] if seconds < max(memory_floors(bill, case)) else []
    return found + (["wire"] if any(seconds < floor for floor in wire_floors(bill)) else [])


def counted(model: Model, job: Job, cluster: Cluster, layout: Layout, engine: str) -> tuple[Bill, Case]:
    return count(model, job, cluster, layout, engine), case_of(model, job, cluster, layout, engine)[0]


@given(layouts(), st.sampled_from(CARDS))
@settings(max_examples=150, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow], deadline=None)
def test_no_legal_layout_is_faster_than_its_accelerators_and_its_links(
    question: tuple[Model, Job, Cluster, Layout, str], card: str
) -> None:
    model, job, cluster, layout, engine = question
    bill, case = counted(model, job, load_cluster(f"{cluster.ranks}x{card}"), layout, engine)
    assume(not bill.violations)
    assert below_the_floor(bill, case) == []
    assert bill.step.mfu <= bill.step.hfu * (1 + 1e-12) <= 1


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
@pytest.mark.parametrize("micro_batch", [1, 16])
def test_large_matrices_in_one_domain_stay_above_the_floor(card: str, precision: Any, micro_batch: int) -> None:
    """Where a step comes nearest to it: few exchanges, wide matrices, long micro-batches."""
    for model in (LLAMA_70B, GPT3):
        bill, case = counted(
            model, Job(2048, 8 * micro_batch, precision=precision), load_cluster(f"8x{card}"),
            Layout(dp_shard=8, zero=3, micro_batch=micro_batch), "megatron",
        )  # fmt: skip
        assert below_the_floor(bill, case) == []


def test_the_low_end_of_the_band_does_not_cross_the_floor_either() -> None:
    bill, _ = counted(GPT3, Job(2048, 256), load_cluster("8xh100-sxm"), Layout(dp_shard=8, micro_batch=16), "megatron")
    assert bill.step.band_seconds[0] > flops_floor(bill)


PLANTED = {
    "FLOPs": {"matmul_share": 3.0, "attention_share": 3.0, "attention_back_share": 3.0},
    "memory": {"memory_bandwidth": 3.35e12 / 1e3},
}


@pytest.mark.parametrize("floor", PLANTED)
def test_an_accelerator_that_cannot_be_is_seen(floor: str) -> None:
    """Kernels at three times the specified rate; or a bill held against a memory that is a thousand times slower."""
    cluster = load_cluster("8xh100-sxm")
    wrong = replace(cluster, accelerator=replace(cluster.accelerator, **PLANTED[floor]))
    layout = Layout(dp_shard=8, micro_batch=4)
    bill, case = counted(LLAMA_70B, Job(2048, 32), wrong if floor == "FLOPs" else cluster, layout, "megatron")
    assert floor in below_the_floor(replace(bill, cluster=wrong), case)


def test_a_link_that_cannot_be_is_seen() -> None:
    cluster = load_cluster("16xh100-sxm")
    inside, outside = (replace(link, bandwidth=1e9) for link in (cluster.inside, cluster.outside))
    slow = replace(cluster, inside=inside, outside=outside)
    bill, case = counted(LLAMA_70B, Job(2048, 32), cluster, Layout(tp=8, dp_shard=2), "megatron")
    assert below_the_floor(bill, case) == []
    assert below_the_floor(replace(bill, cluster=slow), case) == ["wire"]
