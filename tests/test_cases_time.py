"""Throughput, days and traffic: questions of public threads, and what outlay says is behind the figure."""

from dataclasses import replace
from math import isclose
from pathlib import Path

import pytest

from outlay import Bill, Cluster, Job, Layout, Model, count, load_cluster, load_model, parameters
from outlay.cluster.catalogue import accelerator
from outlay.model.huggingface import read_config
from outlay.undivided import sequence_flops

TERA, DAY, GB = 1e12, 86_400, 1e9
FULL = {"attention_flops": "full"}  # keys of attention: all, as papers count FLOPs


def gpt(hidden: int, layers: int, heads: int) -> Model:
    """A GPT of a width and depth, feed-forward four times as wide."""
    shape = {"n_embd": hidden, "n_layer": layers, "n_head": heads, "n_positions": 4096, "vocab_size": 50257}
    return read_config({"model_type": "gpt2", **shape})


def mpt(hidden: int, layers: int, heads: int) -> Model:
    """An MPT of llm-foundry: its vocabulary has 50,368 rows."""
    shape = {"d_model": hidden, "n_layers": layers, "n_heads": heads, "expansion_ratio": 4}
    return read_config({"model_type": "mpt", "vocab_size": 50368, "max_seq_len": 2048, **shape})


def bill(model: Model | str, on: str | Cluster, seq: int, batch: int, engine: str = "megatron", **axes: object) -> Bill:
    """The bill of a layout."""
    said = {name: axes.pop(name) for name in ("attention_flops", "precision", "tokens") if name in axes}
    where = load_cluster(on) if isinstance(on, str) else on
    of = load_model(model) if isinstance(model, str) else model
    return count(of, Job(seq, batch, **said), where, Layout(**axes), engine)  # type: ignore[arg-type]


def token_flops(model: Model | str, seq: int) -> float:
    """Model FLOPs of one token, forward and backward, all keys of attention counted."""
    of = load_model(model) if isinstance(model, str) else model
    return 3 * sequence_flops(of, Job(seq, 1, attention_flops="full")) / seq


def rate(found: Bill) -> float:
    """TFLOP/s a card, model FLOPs."""
    return found.step.model_flops / found.step.seconds / found.cluster.ranks / TERA


def networked(on: str, bits_a_node: float, node: int = 8) -> Cluster:
    """A cluster whose nodes have so many bits a second between them, all of it reached."""
    found = load_cluster(on)
    outside = replace(found.outside, bandwidth=bits_a_node / 8 / node, share=1.0)
    return replace(found, inside=replace(found.inside, size=node), outside=outside)


def sent(found: Bill, axis: str) -> tuple[float, float]:
    """Bytes of one rank on an axis in a step, and the time that they take by themselves."""
    (item,) = (each for each in found.traffic if each.axis == axis)
    return item.bytes, item.seconds


# --- throughput and FLOPs -------------------------------------------------------------------------------------------


def test_420_tflops_on_an_h200_are_42_percent_since_the_larger_rate_is_with_sparsity() -> None:
    """NVIDIA/Megatron-LM issue 1565."""
    dense = accelerator("h200-sxm").bf16_flops
    assert isclose(dense, 989.4 * TERA, rel_tol=1e-3)
    assert isclose(420 * TERA / dense, 0.4245, abs_tol=1e-4)


def test_9600_tokens_a_second_of_a_7b_on_h100_are_45_percent() -> None:
    """foundation-model-stack/fms-fsdp issue 89: 6 N + 12 L h s = 46.9 GFLOPs a token; N has the input embedding."""
    ours = token_flops("llama-2-7b", 4096)
    table = 6 * 32000 * 4096  # rows of the input table, which are read and not multiplied
    assert isclose(ours + table, 46.9e9, rel_tol=0.001)
    assert isclose(9600 * ours / accelerator("h100-sxm").bf16_flops, 0.455, abs_tol=0.01)


def test_70b_at_420_and_at_297_tflops_is_the_same_speed_with_recompute_and_a_longer_pipeline() -> None:
    """NVIDIA/Megatron-LM issue 1031: TP8 PP2 on 768 cards, TP8 PP8 with full recompute on 128; batches assumed."""
    readme = bill("llama-3-70b", "768xh100-sxm", 8192, 768, tp=8, pp=2, **FULL)
    user = bill("llama-3-70b", "128xh100-sxm", 8192, 128, tp=8, pp=8, recompute="full", **FULL)
    assert isclose(rate(readme), 420.5, rel_tol=0.05)
    assert isclose(rate(user), 296.5, rel_tol=0.05)
    assert isclose(user.step.hfu / user.step.mfu, 4 / 3, rel_tol=0.005)  # the head does not run again
    assert user.bubble.share == 7 / (64 + 7)


def test_optimizer_state_shrinks_with_data_parallel_ranks_so_2_stages_hold_more_on_128_cards_than_on_768() -> None:
    """The same thread: 6 + 12 / dp bytes a parameter."""
    large, small = (bill("llama-3-70b", on, 8192, 768, tp=8, pp=2) for on in ("768xh100-sxm", "128xh100-sxm"))
    assert (large.derived.dp, small.derived.dp) == (48, 8)
    assert isclose(small.memory.state_bytes / large.memory.state_bytes, (6 + 12 / 8) / (6 + 12 / 48), rel_tol=1e-3)


def test_an_mfu_of_156_percent_counts_each_context_parallel_rank_as_a_replica() -> None:
    """NVIDIA-NeMo/RL issue 1015: 8 B, cp 8, 32,768 tokens; 1545.38 TFLOP/s a rank were printed."""
    dense = accelerator("h100-sxm").bf16_flops / TERA
    assert isclose(1545.38 / dense, 1.562, rel_tol=1e-3)
    found = bill("llama-3-8b", "8xh100-sxm", 32768, 8, cp=8, recompute="full")
    assert found.derived.dp == 1
    assert found.step.tokens_per_second == 8 * found.step.tokens_per_second_per_device
    assert 1545.38 / 8 / dense == pytest.approx(0.195, abs=1e-3)
    assert found.step.mfu < 1


def test_a_meter_made_for_h100_reads_a_third_on_a100() -> None:
    """karpathy/nanochat pull request 147: 23.4 % were 74.1 %."""
    ratio = accelerator("h100-sxm").bf16_flops / accelerator("a100-sxm-80").bf16_flops
    assert isclose(ratio, 3.17, rel_tol=2e-3)
    assert isclose(23.4 * ratio, 74.1, rel_tol=2e-3)


@pytest.mark.parametrize(
    ("shape", "on", "tokens", "mfu"),
    [
        ((4096, 32, 32), "a100-sxm-80", 4641, 0.6423),
        ((5120, 40, 40), "h100-sxm", 4989, 0.4142),
        ((7168, 48, 64), "h100-sxm", 2115, 0.4027),
        ((8192, 80, 64), "a100-sxm-40", 276, 0.3587),
    ],
)
def test_mfu_of_published_mpt_runs(shape: tuple[int, int, int], on: str, tokens: float, mfu: float) -> None:
    """mosaicml/llm-foundry README: (6 N + 12 L d s) / peak. Its N has norms and biases, which multiply nothing."""
    ours = tokens * token_flops(mpt(*shape), 2048) / accelerator(on).bf16_flops
    assert isclose(ours, mfu, rel_tol=0.003)


def test_hfu_is_four_thirds_of_mfu_with_full_checkpointing_and_equal_without() -> None:
    """The same table: 40.27 and 53.69 %."""
    layout = {"micro_batch": 8, "zero": 3, "engine": "fsdp2-llm-foundry"}
    plain, again = (
        bill(mpt(7168, 48, 64), "512xh100-sxm", 2048, 4096, recompute=kind, **layout, **FULL)  # type: ignore[arg-type]
        for kind in ("none", "full")
    )
    assert plain.step.hfu == plain.step.mfu
    assert isclose(again.step.hfu / again.step.mfu, 53.69 / 40.27, rel_tol=0.01)


@pytest.mark.parametrize(
    ("model", "on", "engine", "recompute", "tokens"),
    [
        ("llama-2-7b", "128xa100-sxm-80", "fsdp2-2024", "none", 3700),
        ("llama-2-7b", "128xa100-sxm-80", "fsdp2", "none", 4550),
        ("llama-2-7b", "96xh100-sxm", "fsdp2", "none", 9600),
    ],
)
def test_published_fsdp_throughput_lies_in_the_band(
    model: str, on: str, engine: str, recompute: str, tokens: float
) -> None:
    """foundation-model-stack/fms-fsdp README, eager and compiled: shards in a node of 8, micro-batch 2."""
    ranks = load_cluster(on).ranks
    found = bill(
        model, on, 4096, 2 * ranks, engine, micro_batch=2, zero=3, dp_shard=8, dp_replicate=ranks // 8,
        recompute=recompute,
    )  # fmt: skip
    low, high = found.step.band_seconds
    assert low <= 2 * 4096 / tokens <= high


def test_405b_at_100_tokens_a_second_is_26_percent_and_no_bubble_explains_a_seventh_of_it() -> None:
    """pytorch/torchtitan issue 1558: 512 H100, TP8 PP8 FSDP8. Interleaved zero bubble fell to 13 tokens/s, 3.4 %."""
    flops = token_flops("llama-3.1-405b", 8192)
    assert isclose(flops, 2625e9, rel_tol=1e-3)
    assert isclose(100 * flops / accelerator("h100-sxm").bf16_flops, 0.265, abs_tol=1e-3)
    plain = bill("llama-3.1-405b", "512xh100-sxm", 8192, 256, "fsdp2-torchtitan", tp=8, pp=8, zero=2, recompute="full")
    share = plain.bubble.share
    assert 1 - share > 0.8  # without any bubble the step is at most a fifth shorter: no order can explain a factor 7.7


# --- days -----------------------------------------------------------------------------------------------------------


def test_130b_in_60_days_on_768_a100_ran_at_a_quarter_of_peak() -> None:
    """zai-org/GLM-130B issue 75: 400 B tokens on 96 DGX-A100; 6 N D = 3.12e23 of 25.1 %."""
    spent = 6 * 130e9 * 400e9
    peak = 768 * accelerator("a100-sxm-40").bf16_flops
    assert isclose(spent / (peak * 60 * DAY), 0.251, abs_tol=1e-3)
    shape = {"hidden_size": 12288, "num_hidden_layers": 70, "num_attention_heads": 96, "num_key_value_heads": 96}
    more = {"intermediate_size": 32768, "vocab_size": 150528, "max_position_embeddings": 2048}
    model = read_config({"model_type": "llama", "tie_word_embeddings": True, **shape, **more})
    assert isclose(parameters(model).total, 130e9, rel_tol=0.02)
    found = bill(
        model, "768xa100-sxm-40", 2048, 4224, "megatron_deepspeed", tp=4, pp=8, recompute="full", precision="fp16"
    )
    days = 400e9 / found.step.tokens_per_second / DAY
    assert found.memory.verdict == "fits"
    assert 30 < days < 60  # outlay counts steps that run: not restarts, and a run of 2022 had many


def test_a_2_4b_model_in_14_days_on_160_a100_ran_at_26_percent() -> None:
    """OpenBMB/MiniCPM issue 190: 1.1 T tokens."""
    peak = 160 * accelerator("a100-sxm-80").bf16_flops
    assert isclose(6 * 2.4e9 * 1.1e12 / (peak * 14 * DAY), 0.262, abs_tol=1e-3)


# --- traffic --------------------------------------------------------------------------------------------------------


def test_zero_3_of_80b_over_340_gigabits_moves_480_gb_a_rank_in_11_seconds_a_micro_batch() -> None:
    """deepspeedai/DeepSpeed issue 2928: two gathers and a reduce-scatter of 160 GB, 3.8 s each."""
    model = gpt(10240, 63, 80)
    assert isclose(parameters(model).total, 80e9, rel_tol=0.005)
    found = bill(model, networked("256xa100-sxm-80", 340e9), 2048, 256, "deepspeed", zero=3, recompute="full")
    size, seconds = sent(found, "dp")
    assert found.derived.micro_batches == 1
    assert isclose(size, 3 * 160 * GB, rel_tol=0.01)
    assert isclose(seconds, 11.3, rel_tol=0.02)


def test_gathering_5b_on_one_node_takes_37_ms_so_420_ms_more_are_not_bandwidth() -> None:
    """deepspeedai/DeepSpeed issue 1174: the forward pass took 480 ms under ZeRO-3 and 60 ms under ZeRO-2."""
    model = gpt(4096, 24, 32)
    assert isclose(parameters(model).total, 5e9, rel_tol=0.02)
    found = bill(model, "8xa100-sxm-80", 512, 8, "deepspeed", zero=3)
    size, seconds = sent(found, "dp")
    assert isclose(size / 3, 10 * GB * 7 / 8, rel_tol=0.02)  # two gathers and a reduce-scatter, alike
    steps = 25 * (8.4e-6 + 7 * 3.4e-6)  # one gather a layer, and one of the ends
    assert 0.029 <= seconds / 3 - steps <= 0.038


@pytest.mark.parametrize(("gigabits", "gigabytes"), [(10, 9.2), (25, 9.2)])
def test_zero_3_of_1_5b_on_two_nodes_of_two_cards_waits_for_ethernet(gigabits: float, gigabytes: float) -> None:
    """deepspeedai/DeepSpeed issue 7019: 8.68 s against 2.46 s. Three times 3.1 GB, of which 3/4 leaves a rank of 4."""
    model = gpt(1600, 48, 25)
    found = bill(model, networked("4xa10", gigabits * 1e9, 2), 1024, 4, "deepspeed", zero=3, recompute="full")
    size, alone = sent(found, "dp")
    assert isclose(size, 3 * 3 / 4 * 2 * parameters(model).total, rel_tol=0.03)
    assert isclose(alone, 3 / 4 * gigabytes * GB / (gigabits * 1e9 / 8), rel_tol=0.02)
    assert alone > 0.9 * found.step.seconds


@pytest.mark.parametrize(("sp", "layer"), [(False, 4), (True, 5)])
def test_tensor_parallel_exchange_of_a_layer_is_4_all_reduces_and_with_sequence_parallelism_5(
    sp: bool, layer: int
) -> None:
    """aliyun/aicb issue 30: L 32, h 4096, s 4096, tp 4, dp 2, batch 8: 512; sp gathers two inputs again backward.

    Embedding and head add two a micro-batch, and with sp half of one more. Full recompute adds two a layer.
    """
    plain, again = (
        bill("llama-2-7b", "8xa100-sxm-80", 4096, 8, tp=4, sp=sp, recompute=kind) for kind in ("none", "full")
    )
    one = 2 * 3 / 4 * 4096 * 4096 * 2  # an all-reduce, or an all-gather and a reduce-scatter, around a ring of 4
    found = sent(plain, "tp")[0] / one
    assert plain.derived.micro_batches == 4
    assert isclose(found, 4 * (32 * layer + layer / 2), rel_tol=1e-6)
    assert isclose((sent(again, "tp")[0] - sent(plain, "tp")[0]) / one, 4 * 32 * 2, rel_tol=1e-6)


def test_a_second_node_pays_from_a_bandwidth_that_can_be_counted() -> None:
    """haotian-liu/LLaVA issue 362; QwenLM/Qwen3 issue 773: two nodes were slower than one."""
    one = bill("llama-2-7b", "8xa100-sxm-80", 2048, 128, "deepspeed", zero=3, micro_batch=8, recompute="full")

    def two(gigabits: float) -> float:
        on = networked("16xa100-sxm-80", gigabits * 1e9)
        return bill("llama-2-7b", on, 2048, 128, "deepspeed", zero=3, micro_batch=8, recompute="full").step.seconds

    assert two(10) > one.step.seconds > two(100)
    assert two(10) > two(25) > two(100) > two(1600) > one.step.seconds / 2


def test_16_bytes_of_10b_over_3_gigabytes_a_second_are_53_seconds() -> None:
    """deepspeedai/DeepSpeed issue 2159: state on NVMe, which outlay does not count; the arithmetic of its page."""
    page = (Path(__file__).parent.parent / "docs" / "cases.md").read_text(encoding="utf-8")
    assert round(16 * 10e9 / 3e9) == 53
    assert "53 s a step" in page
