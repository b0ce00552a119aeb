"""Advice counts a peak and a time for each change, and no whole bill: it says the same, with less work."""

import cProfile
import pstats
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

import whole_bills
from models import H100S, LLAMA_70B, layouts
from outlay import Bill, Cluster, Job, Layout, Model, count, load_cluster, load_model
from outlay.bill import case_of
from outlay.errors import InputError
from outlay.layer import costs_of, model_costs
from outlay.search.advice import advise
from outlay.search.changed import grown
from outlay.search.faster import faster

Question = tuple[Model, Job, Cluster, Layout, str]
HARD: list[tuple[str, str, Job, dict[str, Any], str]] = [
    ("llama-3.1-70b", "64xh100-sxm", Job(8192, 512), {"tp": 8}, "megatron"),
    ("llama-3.1-70b", "64xh100-sxm", Job(8192, 512), {"tp": 4, "pp": 2}, "megatron"),
    ("llama-3.1-70b", "64xh100-sxm", Job(8192, 512), {}, "megatron"),
    ("llama-3.1-70b", "64xmi300x", Job(8192, 512), {"micro_batch": 4}, "fsdp2"),
    ("llama-3.1-405b", "64xh100-sxm", Job(8192, 64), {"tp": 8, "pp": 2}, "megatron"),
    ("mixtral-8x7b", "16xh100-sxm", Job(4096, 64), {}, "fsdp2"),
    ("mixtral-8x7b", "64xh100-sxm", Job(4096, 512), {"tp": 4, "pp": 2}, "megatron"),
    ("qwen2.5-7b", "1xrtx4090", Job(2048, 8), {}, "megatron"),
    ("llama-3.1-8b", "32xh100-sxm", Job(131_072, 32), {"tp": 8}, "megatron"),
    ("llama-3.1-70b", "32xh100-sxm", Job(8192, 64), {"tp": 8, "pp": 4, "micro_batch": 2}, "megatron"),
    ("gemma-2-27b", "8xh100-sxm", Job(8192, 8), {"tp": 4}, "megatron"),
    ("llama-3.1-8b", "8xa100-sxm-40", Job(4096, 16), {"offload_optimizer": 0.5}, "deepspeed"),
    ("qwen3-0.6b", "8xh100-sxm", Job(32_768, 32), {"tp": 2, "pp": 2, "micro_batch": 2}, "megatron"),
]


def said_alike(bill: Bill) -> bool:
    return advise(bill) == whole_bills.advice(bill) and faster(bill) == whole_bills.faster(bill)


@pytest.mark.parametrize(("model", "on", "job", "axes", "engine"), HARD, ids=[f"{row[0]} {row[3]}" for row in HARD])
def test_advice_is_that_of_whole_bills(model: str, on: str, job: Job, axes: dict[str, Any], engine: str) -> None:
    bill = count(load_model(model), job, load_cluster(on), Layout(**axes), engine)
    assert said_alike(bill)
    assert advise(bill) or faster(bill)


@settings(max_examples=12)
@given(layouts())
def test_advice_of_any_layout_is_that_of_whole_bills(question: Question) -> None:
    try:
        bill = count(*question)
    except InputError:
        return
    assert said_alike(bill)


@settings(max_examples=60)
@given(layouts())
def test_layers_cost_the_same_whatever_lies_beyond_them(question: Question) -> None:
    try:
        case = case_of(*question)[0]
    except InputError:
        return
    costs = model_costs(case.model, case.job, case.cluster, case.layout, case.engine)
    assert costs_of(case) == costs
    larger = replace(case, cluster=grown(case.cluster, 4))
    assert costs_of(larger) == costs


def work_of(bill: Bill) -> Counter[str]:
    """How often each function is called for the advice of a bill, and all of them."""
    watch = cProfile.Profile()
    watch.runcall(advise, bill)
    calls = Counter[str]()
    for (_, _, name), (_, times, *_) in pstats.Stats(watch).stats.items():  # type: ignore[attr-defined]
        calls[name] += times
    return calls


@pytest.mark.parametrize(
    ("axes", "walks", "most"),
    [({"tp": 8}, 6, 165_000), ({}, 11, 250_000), ({"tp": 4, "pp": 2}, 7, 240_000)],
    ids=["tp 8", "data parallel", "tp 4 pp 2"],
)
def test_advice_walks_a_model_once_for_all_changes_that_share_its_costs(
    axes: dict[str, Any], walks: int, most: int
) -> None:
    """A walk for each other tp, cp, micro-batch, choice of modules and kind of training; none for ZeRO stages, deeper
    pipelines, offload or more accelerators."""
    advise(count(LLAMA_70B, Job(8192, 512), H100S, Layout(tp=8, recompute="full")))  # what is read once
    job = Job(8192, 512, reserved_bytes=float(walks))  # its own, so that no walk is kept from elsewhere
    bill = count(LLAMA_70B, job, H100S, Layout(**axes))
    calls = work_of(bill)
    assert bill.memory.verdict == "does_not_fit"
    assert calls["model_costs"] == walks
    assert calls["count"] <= 2  # those of the split that is sought
    assert sum(calls.values()) < most
