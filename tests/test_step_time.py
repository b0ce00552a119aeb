"""Step time: published steps, and the laws that its terms obey."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import DEEPSEEK_V3, LLAMA_8B, LLAMA_70B, MIXTRAL
from outlay import Bill, Job, Layout, count, load_cluster, load_model
from outlay.bill import case_of, load
from outlay.cluster.efficiency import attention_time, small_waste
from outlay.cluster.network import all_to_all_time, copies_share, group
from outlay.engines.rates import rates
from outlay.engines.recipe import Recipe
from outlay.engines.tables import engine, kernel_set, precision
from outlay.job import recipe_of

H100 = "h100-sxm"


def bill(
    name: str, on: str, batch: int, seq: int, how: str = "megatron-0.15", number: str = "bf16", **axes: Any
) -> Bill:
    """One bill."""
    job = Job(sequence_length=seq, global_batch=batch, precision=number)  # type: ignore[arg-type]
    return count(load_model(name), job, load_cluster(on), Layout(**axes), how)


# Steps that NVIDIA published for its recipes (NVIDIA/dgxc-benchmarking v24.11.1 to v25.05.05), in seconds.
NVIDIA = [
    ("llama-3.1-8b", "16xh100-sxm", 256, "bf16", {"cp": 2}, 13.00),
    ("llama-3.1-8b", "64xh100-sxm", 1024, "bf16", {"cp": 2}, 13.08),
    ("llama-3.1-70b", "64xh100-sxm", 128, "bf16", {"tp": 4, "pp": 4, "vpp": 5, "cp": 2}, 14.72),
    ("llama-3.1-70b", "1024xh100-sxm", 2048, "bf16", {"tp": 4, "pp": 4, "vpp": 5, "cp": 2}, 14.92),
    ("llama-3.1-70b", "512xh100-sxm", 1024, "fp8", {"tp": 4, "pp": 4, "vpp": 5, "cp": 2}, 10.76),
    ("llama-3.1-8b", "64xh100-sxm", 1024, "fp8", {"cp": 2}, 9.64),
    ("llama-3.1-405b", "512xgb200", 256, "bf16", {"tp": 4, "pp": 8, "vpp": 8, "cp": 2}, 9.508),
    ("llama-3.1-405b", "256xgb200", 128, "fp8", {"tp": 4, "pp": 8, "vpp": 8, "cp": 2}, 6.183),
]


@pytest.mark.parametrize(("name", "on", "batch", "number", "axes", "seconds"), NVIDIA)
def test_a_step_of_a_dense_model_takes_what_nvidia_measured(
    name: str, on: str, batch: int, number: str, axes: dict[str, Any], seconds: float
) -> None:
    found = bill(name, on, batch, 8192, number=number, overlap_tp=axes.get("tp", 1) > 1, zero=1, **axes)
    split = found.layout.split if name == "llama-3.1-405b" else ()

    assert found.step.seconds == pytest.approx(seconds, rel=0.05), split


# Steps of MosaicML's llm-foundry (its benchmarking README): 7B on 8 A100 80 GB, 30B on 128 H100.
MOSAIC = [
    ("mpt-7b", "8xa100-sxm-80", 96, 6, "none", 5.295),
    ("mpt-30b", "128xh100-sxm", 1024, 8, "full", 7.451),
]


@pytest.mark.parametrize(("name", "on", "batch", "micro", "recompute", "seconds"), MOSAIC)
def test_a_step_under_fsdp_takes_what_mosaicml_measured(
    name: str, on: str, batch: int, micro: int, recompute: str, seconds: float
) -> None:
    found = bill(name, on, batch, 2048, "fsdp2-llm-foundry", micro_batch=micro, zero=3, recompute=recompute)

    assert found.step.seconds == pytest.approx(seconds, rel=0.05)


# torchtitan of 2024 on 64 A100 without a compiler (its docs/performance.md): tokens a second and card.
@pytest.mark.parametrize(
    ("name", "seq", "micro", "recompute", "rate"),
    [("llama-3-70b", 8192, 1, "full", 331), ("llama-2-13b", 4096, 2, "none", 2162)],
)
def test_a_step_without_a_compiler_takes_what_torchtitan_measured(
    name: str, seq: int, micro: int, recompute: str, rate: float
) -> None:
    found = bill(name, "64xa100-sxm-80", 64 * micro, seq, "fsdp2-2024", micro_batch=micro, zero=3, recompute=recompute)

    assert found.step.tokens_per_second_per_device == pytest.approx(rate, rel=0.05)


# --- laws -----------------------------------------------------------------------------------------------------------


@given(st.integers(1, 64), st.integers(1, 16))
def test_copies_that_share_a_way_are_as_many_as_the_domains_that_chance_reaches(domains: int, copies: int) -> None:
    random = np.random.default_rng(7)
    drawn = random.integers(0, domains, (4000, copies))
    reached = np.mean([len(set(row)) for row in drawn.tolist()])

    assert float(copies_share(domains, copies)) * copies == pytest.approx(reached, rel=0.05)


def test_one_copy_to_each_node_takes_no_longer_and_changes_nothing_inside_one() -> None:
    cluster = load_cluster("64xh100-sxm")
    for ranks in (2, 8, 16, 64):
        here = group(ranks, 1, cluster)
        every, shared = float(all_to_all_time(1e9, here)), float(all_to_all_time(1e9, here, 8))
        assert shared < every if ranks > 8 else shared == every


@given(st.floats(0, 500), st.floats(1, 1e5), st.floats(0, 500), st.floats(1, 1e6))
def test_a_multiply_wastes_less_the_deeper_and_fuller_it_is(
    depth: float, inner: float, half: float, rows: float
) -> None:
    waste = float(small_waste(depth, inner, half, rows))

    assert waste >= float(small_waste(depth, 2 * inner, half, rows)) >= 0
    assert waste >= float(small_waste(depth, inner, half, 2 * rows)) >= 0
    assert 1 / (1 + float(small_waste(0, inner, half, rows))) == pytest.approx(rows / (rows + half))


def recipe(card: str) -> Recipe:
    """Bytes of a plain run."""
    job = Job(sequence_length=4096, global_batch=8, precision="bf16")
    return recipe_of(job, engine("megatron"), load_cluster(card).accelerator)


def test_few_heads_leave_a_device_idle() -> None:
    here = rates(
        load_cluster(f"8x{H100}").accelerator, precision("bf16"), kernel_set("transformer_engine"), recipe("8xh100-sxm")
    )
    times = [float(attention_time(1e12, 0, here.attention, blocks, here)) for blocks in (32, 128, 512, 2048, 1e9)]

    assert times == sorted(times, reverse=True)
    assert times[-1] == pytest.approx(1e12 / (989.4e12 * 0.57), rel=0.01)


def test_fewer_bits_make_multiplies_faster_and_casts_take_some_of_it() -> None:
    half, eight = (bill("llama-3.1-70b", "64xh100-sxm", 128, 8192, number=how, tp=4, pp=4) for how in ("bf16", "fp8"))

    assert 1.15 < half.step.seconds / eight.step.seconds < 2


def test_what_is_captured_in_graphs_the_host_does_not_launch() -> None:
    job = Job(sequence_length=4096, global_batch=2048, precision="bf16")
    on = load_cluster("256xgb200")
    times = [
        count(DEEPSEEK_V3, job, on, Layout(pp=4, ep=32, split=(16, 16, 16, 13), graphs=graphs)).step.seconds
        for graphs in ("full", "partial", "none")
    ]
    assert times == sorted(times) and times[0] < times[-1]


def test_a_rank_with_one_expert_has_no_numbers_to_read_back() -> None:
    job = Job(sequence_length=1024, global_batch=64, precision="bf16")
    alone, two = (
        count(MIXTRAL, job, load_cluster("8xh100-sxm"), Layout(ep=ep), "megatron").step.seconds for ep in (8, 4)
    )
    assert alone < two


def test_a_small_layer_takes_what_the_host_needs_to_launch_it() -> None:
    """vTrain's profiled layers on A100, forward, recompute and backward: 3.0 to 3.4 ms however small they are."""
    small = {"hidden_size": 512, "num_hidden_layers": 24, "num_attention_heads": 8, "intermediate_size": 2048}
    model = load_model({"model_type": "llama", "vocab_size": 1024, **small})
    step = {
        (graphs, batch): count(
            model, Job(sequence_length=512, global_batch=batch, precision="bf16"), load_cluster("1xa100-sxm-80"),
            Layout(recompute="full", graphs=graphs), "megatron",
        ).step.seconds
        for graphs in ("none", "full") for batch in (8, 16)
    }  # fmt: skip
    launched, captured = ((step[graphs, 16] - step[graphs, 8]) / 8 / 24 for graphs in ("none", "full"))

    assert 3.0e-3 < launched < 3.4e-3
    assert captured < 1e-3


def test_what_has_no_backward_pass_launches_none() -> None:
    found = [
        count(
            LLAMA_8B, Job(sequence_length=128, global_batch=8, precision="bf16", frozen=frozen),
            load_cluster("8xh100-sxm"), Layout(), "megatron",
        ).step
        for frozen in ((), ("embedding", "layers"))
    ]  # fmt: skip
    trained, frozen = (next(item.value for item in step.items if item.name == "arithmetic") for step in found)

    assert trained >= 32 * (1.1e-3 + 1.0e-3)
    assert 32 * 1.1e-3 <= frozen < 32 * (1.1e-3 + 1.0e-3)


def test_the_host_launches_behind_the_exchange_of_a_layer() -> None:
    job, on = Job(sequence_length=128, global_batch=8, precision="bf16"), load_cluster("8xa100-sxm-80")
    found = count(LLAMA_8B, job, on, Layout(tp=8, sp=False, micro_batch=1), "megatron")
    arithmetic = next(item.value for item in found.step.items if item.name == "arithmetic")
    exchange = next(item.seconds for item in found.traffic if item.axis == "tp")
    host = 8 * 32 * (1.1e-3 + 1.0e-3 + 4 * 56e-6)  # two all-reduces a pass

    assert arithmetic < host <= arithmetic + exchange < 1.1 * host


@pytest.mark.parametrize(
    ("hidden", "layers", "heads", "stages", "micro", "forward", "inputs"),
    [
        (2304, 22, 24, 8, 6, 18.53, 18.09),
        (4096, 30, 32, 8, 3, 29.82, 29.50),
        (5120, 46, 40, 16, 1, 11.33, 11.27),
        (6144, 62, 48, 32, 1, 10.41, 10.22),
    ],
)
def test_passes_through_zero_bubbles_stages_take_what_its_profile_says(
    hidden: int, layers: int, heads: int, stages: int, micro: int, forward: float, inputs: float
) -> None:
    """arXiv:2401.10241, Table 9, in ms: a stage has a share of the layers and of two more, for embedding and head."""
    shape = {"n_embd": hidden, "n_layer": layers, "n_head": heads, "n_positions": 1024, "vocab_size": 32_000}
    job = Job(sequence_length=1024, global_batch=micro, precision="fp16")
    layout = Layout(micro_batch=micro, recompute="none")
    case = case_of(
        load_model({"model_type": "gpt2", **shape}), job, load_cluster("1xa100-sxm-80"), layout, "zero_bubble"
    )
    layer = load(case[0]).whole.layers[0].costs

    counted = 1e3 * float(layer.forward + layer.input_gradient) * (layers + 2) / stages
    assert counted == pytest.approx(forward + inputs, rel=0.03)


def test_graphs_that_change_nothing_are_said_to() -> None:
    job = Job(sequence_length=1024, global_batch=64, precision="bf16")
    found = count(LLAMA_8B, job, load_cluster("8xh100-sxm"), Layout(graphs="full"), "fsdp2")

    assert any("graphs change nothing here" in text for text in found.assumptions)
    assert found.step.seconds == count(LLAMA_8B, job, load_cluster("8xh100-sxm"), Layout(), "fsdp2").step.seconds


@pytest.mark.parametrize("nodes", [1, 2, 8, 64])
def test_stragglers_cost_a_share_for_each_doubling_of_nodes(nodes: int) -> None:
    job = Job(sequence_length=8192, global_batch=64 * nodes, precision="bf16")
    found = count(LLAMA_70B, job, load_cluster(f"{8 * nodes}xh100-sxm"), Layout(tp=8, dp_shard=nodes), "megatron")
    items = {item.name: item.value for item in found.step.items}
    work = sum(value for name, value in items.items() if name in ("arithmetic", "tensor", "context", "expert"))

    assert items.get("stragglers", 0.0) == pytest.approx(0.004 * np.log2(nodes) * work)
