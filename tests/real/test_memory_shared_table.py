"""A table that embedding and head share: three gradients of it at one moment, in torch and in the counts."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from test_memory_sharded import APART, compared, holds, llama
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.profiler import ProfilerActivity, profile

import outlay
from outlay.layout.axes import Layout
from outlay.verify.comparisons.memory import compare_memory
from outlay.verify.comparisons.tracking import tracked_step
from outlay.verify.models.llama import Llama, cross_entropy
from outlay.verify.models.ranks import mesh_of, one_of

pytestmark = pytest.mark.filterwarnings("ignore")
TIED = replace(llama(2, hidden=1024, width=2816, vocab=64000), tied=True)
TABLE = 2 * TIED.vocab * TIED.hidden  # B, in bf16
PEAK = 1e-3


def test_torch_adds_the_two_gradients_of_a_shared_table_in_a_third_on_real_tensors() -> None:
    """What the counts rest on: without modes that watch each operation, memory events of the allocator alone."""
    table = torch.nn.Parameter(torch.ones(2000, 64, dtype=torch.bfloat16))
    tokens = torch.zeros(16, dtype=torch.long)

    def step() -> None:
        torch.nn.functional.linear(torch.nn.functional.embedding(tokens, table) * 1.0, table).sum().backward()
        table.grad = None

    step()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        step()
    events = sorted((one.start_ns(), one.nbytes()) for one in seen.profiler.kineto_results.events() if _is_memory(one))
    standing = most = 0
    for _, size in events:
        standing += size if abs(size) == table.nbytes else 0
        most = max(most, standing)

    assert most == 3 * table.nbytes


def loss_of(model: Llama, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return cross_entropy(model(tokens), targets)


def _is_memory(event: Any) -> bool:
    found: bool = event.name() == "[memory]"
    return found


@pytest.mark.parametrize("axes", [{}, {"tp": 2}, {"tp": 4, "sp": False}], ids=["dp", "tp and sp", "tp"])
def test_a_short_sequence_is_largest_where_the_gradients_of_a_shared_table_are_added(axes: dict[str, Any]) -> None:
    found = compared(TIED, 64, dp_shard=8, **axes)

    holds(found)
    assert found["place of the peak"].note == "counted: ends; torch: ends"


def test_a_long_sequence_is_largest_at_the_loss_as_ever() -> None:
    found = compared(TIED, 2048, dp_shard=8)

    holds(found)
    assert found["place of the peak"].note.startswith("counted: head")


@pytest.mark.parametrize("micro_batches", [2, 3])
def test_beside_a_sum_that_waits_whole_stand_three_more(micro_batches: int) -> None:
    """Of three passes the second is the largest: no layer's sum is scattered yet."""
    found = compared(TIED, 64, APART, micro_batches, dp_shard=8, accumulate_whole=True)

    assert found["peak"].agrees(PEAK), found["peak"]


def test_one_copy_of_all_holds_them_beside_the_gradients_of_all_layers() -> None:
    job = outlay.Job(sequence_length=64, global_batch=1, precision="bf16", bytes_per_parameter="8")
    at = Layout(zero=0, dp_shard=1, micro_batch=1)
    engine, alone = outlay.load_engine("fsdp2-uncompiled"), outlay.load_cluster("1xh100-sxm")
    found = {each.name: each for each in compare_memory(TIED, job, alone, at, engine)}

    assert found["tape"].agrees() and found["gradients"].agrees()
    assert found["peak"].agrees(PEAK), found["peak"]
    assert found["peak"].measured - found["weights"].measured * 4 == pytest.approx(2 * TABLE, rel=1e-3)


@pytest.mark.parametrize(("reduce", "name"), [(torch.float32, "fp32"), (torch.bfloat16, "bf16")])
def test_one_unit_holds_all_gradients_and_two_of_the_table_more(reduce: torch.dtype, name: str) -> None:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduce)
    at = Layout(zero=3, dp_shard=8, micro_batch=1, gather_unit="model")
    job = outlay.Job(sequence_length=16, global_batch=8, precision="bf16", reduce_dtype=name)
    with one_of(8):
        mesh = mesh_of(replace(at, dp_replicate=1, tp=1))["shards"]
        with torch._subclasses.FakeTensorMode():
            model = Llama(TIED.hidden, 2, 8, 8, 2816, TIED.vocab)
            model.head.weight = model.embedding.weight
            fully_shard(model, mesh=mesh, mp_policy=policy)
            tokens = torch.zeros(1, 16, dtype=torch.long)
            step = tracked_step(model, iter(model.layers), loss_of, (tokens, tokens))
    counted = outlay.count(TIED, job, outlay.load_cluster("8xh100-sxm"), at, "fsdp2-uncompiled")
    measured = sum(size for kind, size in step.peak.items() if kind != "Inputs")

    assert counted.memory.allocated_bytes == pytest.approx(measured, rel=2e-3)
