"""Expected X GB, got Y GB: questions of public threads about memory, and what outlay says is in the difference."""

from math import isclose
from typing import Any

import pytest

from models import LLAMA_7B, LLAMA_8B, loaded
from outlay import Bill, Job, Layout, Model, count, load_cluster, load_model, parameters
from outlay.engines.engine import Engine
from outlay.engines.tables import engine as engine_of
from outlay.memory.activations import group_tapes, kept_entries
from outlay.memory.states import state_bytes
from outlay.model.huggingface import read_config
from outlay.schedule.flight import hold_interleaved, hold_staircase
from outlay.undivided import sequence_flops

GB, GIB, MIB = 1e9, 2**30, 2**20
LLAMA_3_8B = load_model("llama-3-8b")


def gpt(hidden: int, layers: int, heads: int, positions: int = 2048) -> Model:
    """A GPT of a width and depth, feed-forward four times as wide."""
    shape = {"n_embd": hidden, "n_layer": layers, "n_head": heads, "n_positions": positions, "vocab_size": 50257}
    return read_config({"model_type": "gpt2", **shape})


def mpt(hidden: int, layers: int, heads: int) -> Model:
    """An MPT of llm-foundry: its vocabulary has 50,368 rows."""
    shape = {"d_model": hidden, "n_layers": layers, "n_heads": heads, "expansion_ratio": 4}
    return read_config({"model_type": "mpt", "vocab_size": 50368, "max_seq_len": 2048, **shape})


def bill(
    model: Model, on: str, seq: int = 4096, batch: int = 64, engine: str | Engine = "megatron", **axes: object
) -> Bill:
    """The bill of a layout; number types as the engine keeps them."""
    types = {name: axes.pop(name) for name in ("reduce_dtype", "precision", "bytes_per_parameter") if name in axes}
    return count(model, Job(seq, batch, **types), load_cluster(on), Layout(**axes), engine)  # type: ignore[arg-type]


def items(found: Bill) -> dict[str, float]:
    """The parts of the peak."""
    return {item.name: item.value for item in found.memory.items}


# --- does it fit ----------------------------------------------------------------------------------------------------


def test_logits_of_a_125m_model_are_larger_than_its_state_and_it_trains_on_16_gb_where_350m_does_not() -> None:
    """mosaicml/llm-foundry issue 117: 13.55 GB reserved; 350M failed where it asked for 1.54 GiB, a copy of logits."""
    small, large = (
        bill(mpt(*shape), "1xv100-sxm2-16", 2048, 8, "fsdp2-llm-foundry", micro_batch=8, precision="fp16")
        for shape in ((768, 12, 12), (1024, 24, 16))
    )
    one_copy = 8 * 2048 * 50368 * 2
    assert isclose(one_copy, 1.54 * GIB, rel_tol=0.005)
    assert items(small)["backward"] == one_copy
    assert items(small)["logits"] + one_copy > small.memory.state_bytes
    assert small.memory.reserved_bytes < 13.55 * GB
    assert (small.memory.verdict, large.memory.verdict) == ("fits", "does_not_fit")


def test_what_350m_had_allocated_where_it_failed_is_its_weights_and_its_tape() -> None:
    """mosaicml/llm-foundry issue 117: 13.53 GiB allocated in the first step, before there is any optimizer state."""
    found = items(bill(mpt(1024, 24, 16), "1xv100-sxm2-16", 2048, 8, "fsdp2-llm-foundry", micro_batch=8))
    assert isclose(found["weights"] + found["activations"], 13.53 * GIB, rel_tol=0.02)


@pytest.mark.parametrize(
    ("name", "cut", "seq", "gigabytes"), [("qwen2.5-32b", 1, 20_000, 12.2), ("qwen3-4b", 2, 65_536, 19.9)]
)
def test_one_fp32_copy_of_the_logits_of_a_long_sequence(name: str, cut: int, seq: int, gigabytes: float) -> None:
    """huggingface/accelerate issue 3647; THUDM/slime issue 1522: two to three of them live at once."""
    away = {"offload_parameters": 1.0, "offload_optimizer": 1.0}
    found = items(bill(load_model(name), "4xh200-sxm", seq, 4 // cut, "fsdp2", tp=cut, recompute="full", **away))
    kept = found["logits"] - 2 * seq * load_model(name).hidden * (1 + 1 / cut)  # inputs of final norm and head
    assert isclose(kept, gigabytes * GB, rel_tol=0.005)


def test_two_to_three_copies_of_the_logits_of_20_000_tokens_stand_in_the_trainer_and_none_with_a_fused_head() -> None:
    """huggingface/accelerate issue 3647: the other trainer's chunked cross entropy."""
    axes = {"zero": 3, "recompute": "full", "offload_optimizer": 1.0, "offload_parameters": 1.0}
    model = load_model("qwen2.5-32b")
    eager, fused = (bill(model, "4xa100-sxm-80", 20_000, 4, name, **axes) for name in ("hf_trainer", "deepspeed-liger"))
    copy = 4 * 20_000 * 152_064
    assert 2 < (items(eager)["logits"] + items(eager)["backward"]) / copy < 3.5  # with inputs and a gathered layer
    assert items(fused).get("logits", 0.0) == 0
    chunked = bill(model, "4xa100-sxm-80", 20_000, 4, "fsdp2", loss_chunks=8, **axes)
    assert eager.memory.peak_bytes - chunked.memory.peak_bytes > 20 * GB
    assert eager.memory.peak_bytes - fused.memory.peak_bytes > 20 * GB


def test_a_whole_model_as_one_unit_of_fsdp_is_gathered_whole_and_so_are_its_gradients() -> None:
    """huggingface/accelerate issue 3239: 13.5 GB of weights in bf16, 27 GB in fp32, and gradients of the same size."""
    axes = {"zero": 3, "recompute": "full", "offload_parameters": 1.0, "offload_optimizer": 1.0}
    unit, wrapped = (
        bill(LLAMA_7B, "8xl40s", 2048, 8, "hf_trainer", gather_unit=unit, reduce_dtype="bf16", **axes)
        for unit in ("model", "layer")
    )
    single = bill(LLAMA_7B, "8xl40s", 2048, 8, "hf_trainer", gather_unit="model", precision="fp32", **axes)
    assert [round(items(unit)[name] / GB, 1) for name in ("gathered", "unit")] == [13.5, 13.5]
    assert [round(items(single)[name] / GB) for name in ("gathered", "unit")] == [27, 27]
    assert single.memory.verdict == "does_not_fit"
    assert wrapped.memory.peak_bytes < unit.memory.peak_bytes / 6


def test_one_unit_needs_the_same_on_any_number_of_ranks() -> None:
    """huggingface/accelerate issue 3239: sharding does not lower the peak."""
    axes = {"zero": 3, "recompute": "full", "offload_parameters": 1.0, "offload_optimizer": 1.0}
    two, many = (
        bill(LLAMA_7B, f"{ranks}xl40s", 2048, ranks, "hf_trainer", gather_unit="model", **axes) for ranks in (2, 64)
    )
    assert two.memory.allocated_bytes == many.memory.allocated_bytes


def test_a_micro_batch_is_never_smaller_than_one_sequence_and_context_parallelism_halves_its_logits() -> None:
    """THUDM/slime issue 1522: 65,536 tokens on a card whatever the dynamic batch."""
    model = load_model("qwen3-4b")
    one, cut = (bill(model, "4xh200-sxm", 65_536, 2, "fsdp2", tp=2, cp=cp, recompute="full") for cp in (1, 2))
    assert isclose(items(one)["logits"], 2 * items(cut)["logits"], rel_tol=1e-9)


# --- expected X GB, got Y GB ----------------------------------------------------------------------------------------


def test_16_bytes_of_2_35_billion_parameters_are_37_6_gb_which_is_35_0_gib() -> None:
    """NVIDIA/Megatron-LM issue 188: "35 GB" was expected and 37.9 seen."""
    wall = state_bytes(2.35e9, 16)
    assert (round(wall / GB, 1), round(wall / GIB, 1)) == (37.6, 35.0)


def test_kept_scores_are_the_16_gb_that_an_estimate_without_them_missed() -> None:
    """NVIDIA/Megatron-LM issue 525: GPT-2 large on 32 GB, 23.3 GB expected; micro-batch 4 assumed."""
    model = gpt(1280, 36, 20, 1024)
    assert isclose(parameters(model).total, 774e6, rel_tol=0.001)
    kept, again = (
        bill(model, "1xv100-sxm2-32", 1024, 4, "megatron-2022", micro_batch=4, recompute=kind)
        for kind in ("none", "selective")
    )
    scores = 5 * 20 * 1024**2 * 4 * 36
    assert isclose(items(kept)["activations"] - items(again)["activations"], scores, rel_tol=1e-9)
    assert (kept.memory.verdict, again.memory.verdict) == ("does_not_fit", "fits")
    assert isclose(again.memory.peak_bytes, 23.3 * GB, rel_tol=0.01)


def test_7_b_on_8_cards_holds_50_5_gb_of_state_and_a_micro_batch_of_2_is_too_much() -> None:
    """NVIDIA/Megatron-LM issue 597: activations 36.5 GB by the form of a GPT, 18 for one sequence."""
    two, one = (bill(LLAMA_7B, "8xa100-sxm-80", 4096, 128, micro_batch=size) for size in (2, 1))
    again = bill(LLAMA_7B, "8xa100-sxm-80", 4096, 128, micro_batch=2, recompute="full")
    assert round(two.memory.state_bytes / GB, 1) == 50.5
    assert isclose(two.memory.activation_bytes, 36.5 * GB, rel_tol=0.06)
    assert isclose(one.memory.activation_bytes, 18 * GB, rel_tol=0.06)
    assert isclose(two.memory.allocated_bytes, 88 * GB, rel_tol=0.03)
    assert [found.memory.verdict for found in (two, one, again)] == ["does_not_fit", "fits", "fits"]


def test_7_b_over_tp_8_takes_what_was_measured_of_it() -> None:
    """NVIDIA/Megatron-LM pull request 482: 28.8 GB on H800, sequences of 4,096 tokens assumed."""
    found = bill(LLAMA_7B, "8xh800-sxm", 4096, 128, tp=8, micro_batch=4)
    assert round(found.memory.state_bytes / GB, 1) == 15.2
    assert isclose(found.memory.activation_bytes, 9.1 * GB, rel_tol=0.06)
    assert isclose(found.memory.peak_bytes, 28.8 * GB, rel_tol=0.07)


def test_scores_of_one_layer_are_1024_mib_behind_the_softmax_and_1536_behind_the_dropout() -> None:
    """NVIDIA/Megatron-LM issue 965: 32 heads, 4,096 tokens, one sequence, attention unfused."""
    shape = {"hidden_size": 3072, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 8192}
    rest = {"model_type": "phi3", "vocab_size": 32064, "max_position_embeddings": 4096}
    freed = {}
    for dropout in (0.0, 0.1):
        model = read_config({**rest, **shape, "attention_dropout": dropout})
        kept, again = (
            bill(model, "1xa100-sxm-80", 4096, 1, "megatron-2022", recompute=kind) for kind in ("none", "selective")
        )
        freed[dropout] = (kept.memory.activation_bytes - again.memory.activation_bytes) / 32
        assert items(kept)["backward"] > 2 * 1024 * MIB  # the gradients before and after the softmax
        assert kept.memory.verdict == "does_not_fit"
    assert freed == {0.0: 1024 * MIB, 0.1: (1024 + 1536) * MIB}


def test_recompute_of_a_fused_attention_core_saves_nothing_and_of_an_unfused_one_70_percent() -> None:
    """NVIDIA/Megatron-LM issue 1225: 80 of 34 + 80 bytes were expected, 25.52 GB went to 24.94."""
    model = gpt(2048, 24, 16)  # 5 a s / h = 80
    saved = {}
    for name in ("megatron", "megatron-2022"):
        none, again = (
            bill(model, "1xa100-sxm-80", 2048, 1, name, recompute=kind).memory for kind in ("none", "selective")
        )
        saved[name] = 1 - again.activation_bytes / none.activation_bytes
    assert saved["megatron"] < 0.01
    assert isclose(saved["megatron-2022"], 80 / (34 + 80), rel_tol=0.005)


@pytest.mark.parametrize("group", [1, 2, 4, 8, 16, 32])
def test_groups_of_k_layers_keep_an_input_in_k_and_hold_k_tapes_at_once(group: int) -> None:
    """NVIDIA/Megatron-LM issue 1226: uniform recompute, 32 layers."""
    found = items(bill(LLAMA_7B, "8xa100-sxm-80", 4096, 8, recompute="full", recompute_group=group))
    alone = items(bill(LLAMA_7B, "8xa100-sxm-80", 4096, 8, recompute="full"))
    entry = 2 * 4096 * 4096
    assert found["activations"] == 32 / group * entry
    assert found["recomputed"] + entry == group * (alone["recomputed"] + entry)


def test_the_best_group_is_the_root_of_the_layers_over_the_inputs_that_a_tape_is_worth() -> None:
    """NVIDIA/Megatron-LM issue 1226: near sqrt(L) by the textbook, where a layer keeps its input alone."""
    held = {}
    for group in (1, 2, 4, 8, 16, 32):
        found = items(bill(LLAMA_7B, "8xa100-sxm-80", 4096, 8, recompute="full", recompute_group=group))
        held[group] = found["activations"] + found.get("recomputed", 0.0)
    tape = bill(LLAMA_7B, "8xa100-sxm-80", 4096, 8).memory.activation_bytes / (32 * 2 * 4096 * 4096)
    assert 1 <= (32 / tape) ** 0.5 <= 2
    assert min(held, key=held.__getitem__) in (1, 2)


def test_the_last_group_of_a_chunk_may_be_shorter() -> None:
    """Megatron-Core's transformer_block.py: 40 layers of a stage in two chunks, groups of 6: four inputs a chunk."""
    axes = {"tp": 8, "pp": 2, "vpp": 2, "recompute": "full"}
    at = loaded(load_model("llama-3-70b"), "16xh200-sxm", batch=32, recompute_group=6, **axes)
    stage, layout = at.stages[0], at.case.layout
    assert kept_entries(stage, layout) == pytest.approx(8 * 2 * 4096 * 8192 / 8)
    assert group_tapes(stage, layout) == 6 * stage.largest_tape


@pytest.mark.parametrize("kind", ["none", "selective", "full"])
def test_the_first_of_two_stages_holds_two_micro_batches_and_the_second_one(kind: str) -> None:
    """NVIDIA/Megatron-LM issue 307: 13 B; nodes at 70 % and 50 %, and nearly alike with full recompute."""
    found = bill(gpt(5120, 40, 40), "56xa100-sxm-80", 2048, 1792, tp=2, pp=2, micro_batch=4, recompute=kind)
    first, second = (rank.peak_bytes / found.memory.usable_bytes for rank in found.memory.ranks)
    assert (found.derived.micro_batches, found.memory.worst_rank.stage) == (32, 0)
    assert [hold_staircase(rank, 2, 1, 32, 2) for rank in (0, 1)] == [2, 1]
    expected = (0.33, 0.33) if kind == "full" else (0.70, 0.50)
    assert first == pytest.approx(expected[0], abs=0.06)
    assert second == pytest.approx(expected[1], abs=0.06)


def test_recompute_of_a_fused_core_saves_no_memory_of_30_b_with_experts_and_takes_2_percent_longer() -> None:
    """NVIDIA-NeMo/Megatron-Bridge pull request 3880: 42.21 s became 42.92, and 61.35 GB 63.14."""
    model = load_model("qwen3-30b-a3b")
    none, again = (bill(model, "16xh100-sxm", 4096, 1024, ep=16, recompute=kind) for kind in ("none", "selective"))
    assert isclose(none.memory.peak_bytes, again.memory.peak_bytes, rel_tol=0.001)
    assert isclose(again.step.seconds / none.step.seconds, 42.92 / 42.21, abs_tol=0.015)


@pytest.mark.parametrize(("chunks", "overhead"), [(5, 1.15), (10, 1.075)])
def test_interleaving_holds_1_and_p_minus_1_over_p_v_of_a_pipeline_in_flight(chunks: int, overhead: float) -> None:
    """NVIDIA-NeMo/Megatron-Bridge pull request 3107: 80 layers on 4 stages; 5 chunks ran out of memory, 10 did not."""
    assert hold_interleaved(0, 4, chunks, 64, 4) / 4 == pytest.approx(overhead)
    axes = {"tp": 4, "pp": 4}
    plain, cut = (bill(load_model("llama-3-70b"), "32xh100-sxm", 4096, 32, vpp=v, **axes) for v in (1, chunks))
    first = [loaded(load_model("llama-3-70b"), "32xh100-sxm", batch=32, vpp=v, **axes) for v in (1, chunks)]
    assert len({at.stages[0].kept for at in first}) == 1
    assert cut.memory.ranks[0].peak_bytes > plain.memory.ranks[0].peak_bytes
    assert items(cut)["activations"] == pytest.approx(overhead * 4 * first[0].stages[0].kept, rel=1e-9)


@pytest.mark.parametrize(("kept", "reserved"), [(True, 68.5), (False, 61.9)])
def test_gathered_inputs_that_wait_are_6_gib_of_8_b_over_tp_4(kept: bool, reserved: float) -> None:
    """huggingface/nanotron pull request 208, which gives no batch: 16,384 tokens on a rank assumed."""
    found = bill(LLAMA_3_8B, "4xa100-sxm-80", 4096, 4, "nanotron", tp=4, micro_batch=4, keep_gathered=kept)
    assert isclose(found.memory.reserved_bytes, reserved * GIB, rel_tol=0.01)


def test_gathering_again_costs_the_3_percent_of_throughput_that_was_measured() -> None:
    """huggingface/nanotron pull request 208: 3,525 and 3,427 tokens a second and card, nothing overlapped."""
    kept, again = (
        bill(LLAMA_3_8B, "4xa100-sxm-80", 4096, 4, "nanotron", tp=4, micro_batch=4, keep_gathered=keep)
        for keep in (True, False)
    )
    assert kept.step.seconds / again.step.seconds == pytest.approx(3427 / 3525, abs=0.01)


@pytest.mark.parametrize("zero", [2, 3])
def test_gradients_that_are_not_scattered_while_they_accumulate_stand_whole(zero: int) -> None:
    """pytorch/pytorch issue 160320; huggingface/accelerate pull request 2531: 4 P bytes instead of 4 P / N."""
    each, last = (
        bill(LLAMA_8B, "8xh100-sxm", 2048, 32, "fsdp2", zero=zero, accumulate_whole=whole) for whole in (False, True)
    )
    total = 4 * parameters(LLAMA_8B).total
    assert (items(each)["gradients"], items(last)["gradients"]) == (total / 8, total)


def test_26_b_on_16_cards_holds_3_25_gb_of_gradients_or_52() -> None:
    """meta-pytorch/tnt pull request 1057: 2 bytes a gradient, 16 cards; 48 % of a card's memory more."""
    shape = {"hidden_size": 6144, "num_hidden_layers": 56, "num_attention_heads": 48, "intermediate_size": 16384}
    model = read_config({"model_type": "llama", "vocab_size": 32000, "max_position_embeddings": 4096, **shape})
    share = 26e9 / parameters(model).total
    job = Job(2048, 64, gradient_dtype="bf16", reduce_dtype="bf16")
    each, last = (
        items(count(model, job, load_cluster("16xh100-sxm"), Layout(zero=3, accumulate_whole=whole), "fsdp2"))
        for whole in (False, True)
    )
    assert each["gradients"] * share / GB == pytest.approx(3.25)
    assert last["gradients"] * share / GB == pytest.approx(52)


def test_gradients_that_wait_whole_have_the_type_that_they_are_reduced_in() -> None:
    """torch 2.13, _fsdp_param.py: to_accumulated_grad_if_needed casts each one to reduce_dtype."""
    bf16, fp32 = (
        bill(LLAMA_3_8B, "8xh100-sxm", 2048, 32, "fsdp2", reduce_dtype=kind, accumulate_whole=True)
        for kind in ("bf16", "fp32")
    )
    assert items(bf16)["gradients"] / GB == pytest.approx(16.06, abs=0.005)
    assert items(fp32)["gradients"] / GB == pytest.approx(32.12, abs=0.005)


def test_the_trainer_reduces_in_the_type_of_its_matrices_once_gradients_are_sharded() -> None:
    """accelerate 1.15, set_mixed_precision: param_dtype and reduce_dtype are the same; DDP reduces in fp32."""
    sharded, wide = (
        bill(LLAMA_8B, "8xh100-sxm", 2048, 8, "hf_trainer", zero=3, reduce_dtype=kind).traffic[-1].bytes
        for kind in (None, "fp32")
    )
    copies, same = (
        bill(LLAMA_8B, "8xh100-sxm", 2048, 8, "hf_trainer", zero=0, reduce_dtype=kind).traffic[-1].bytes
        for kind in (None, "fp32")
    )
    assert sharded < 0.76 * wide
    assert copies == same


def test_one_unit_holds_no_more_where_nothing_is_sharded() -> None:
    for axes in ({"zero": 0}, {"zero": 3, "dp_replicate": 8, "dp_shard": 1}):
        layers, unit = (
            bill(LLAMA_8B, "8xh200-sxm", 4096, 8, "fsdp2", gather_unit=kind, **axes).memory.peak_bytes
            for kind in ("layer", "model")
        )
        assert layers == unit


def test_torchtitan_does_not_reshard_with_a_pipeline() -> None:
    """pytorch/torchtitan llama3/parallelize.py: reshard_after_forward is not pp_enabled, unless a policy is given."""
    zero = {
        (engine, pp): bill(LLAMA_8B, "16xh100-sxm", 4096, 64, engine, pp=pp).layout.zero
        for engine in ("fsdp2", "fsdp2-torchtitan")
        for pp in (1, 2)
    }
    assert zero == {("fsdp2", 1): 3, ("fsdp2", 2): 3, ("fsdp2-torchtitan", 1): 3, ("fsdp2-torchtitan", 2): 2}


def test_with_one_micro_batch_there_is_nothing_to_accumulate() -> None:
    each, last = (bill(LLAMA_8B, "8xh100-sxm", 2048, 8, "fsdp2", accumulate_whole=whole) for whole in (False, True))
    assert each.memory.items == last.memory.items
    assert each.step.seconds == last.step.seconds


def test_scattering_once_instead_of_each_time_spares_traffic() -> None:
    """pytorch/torchtitan pull request 1710: memory against a reduce-scatter a micro-batch."""
    each, last = (
        bill(LLAMA_8B, "8xh100-sxm", 2048, 32, "fsdp2", accumulate_whole=whole).traffic[-1] for whole in (False, True)
    )
    assert each.bytes - last.bytes == pytest.approx(3 * 4 * parameters(LLAMA_8B).total * 7 / 8)


def test_the_trainer_accumulates_whole_unless_told_and_says_so() -> None:
    """huggingface/accelerate pull request 2531: sync_each_batch is False by default."""
    usual = bill(LLAMA_8B, "8xh100-sxm", 2048, 32, "hf_trainer", zero=3)
    told = bill(LLAMA_8B, "8xh100-sxm", 2048, 32, "hf_trainer", zero=3, accumulate_whole=False)
    assert items(usual)["gradients"] == 4 * items(told)["gradients"]  # all of 8 shards, in bf16 and not fp32
    assert any("accumulate whole true (--accumulate-whole)" in said for said in usual.assumptions)
    assert not any("accumulate" in said for said in told.assumptions)


@pytest.mark.parametrize("pp", [2, 4, 8])
def test_each_stage_holds_as_many_micro_batches_as_there_are_stages_from_it_on(pp: int) -> None:
    """deepspeedai/DeepSpeed issue 4477; sail-sg/zero-bubble issue 8: the first stage uses most at equal parameters."""
    assert [hold_staircase(rank, pp, 1, 64, pp) for rank in range(pp)] == [pp - rank for rank in range(pp)]
    peaks = [
        rank.peak_bytes for rank in bill(LLAMA_7B, f"{pp}xh200-sxm", 4096, 64, "deepspeed", pp=pp).memory.ranks[:-1]
    ]
    assert peaks == sorted(peaks, reverse=True)


def test_16_b_with_experts_fits_8_cards_with_half_of_the_batch_and_not_with_the_whole() -> None:
    """pytorch/torchtitan issue 1789: 29.3 GiB of state; SelectiveAC, the loss alone compiled. With half of the batch
    73.32 GiB are reserved; 1.394 s a step at 11,758 tokens/s are 16,390 tokens, so that half is 4 sequences."""
    model = load_model("deepseek-v2-lite")
    again: dict[str, Any] = {"recompute": "selective", "recompute_modules": ("all_but_other_matrices",)}
    whole, half, full = (
        bill(model, "8xh100-sxm", 4096, 8 * size, "fsdp2-uncompiled", ep=8, micro_batch=size, **kind).memory
        for size, kind in ((8, again), (4, again), (4, {"recompute": "full"}))
    )
    assert whole.unsharded_state_bytes / 8 / GIB == pytest.approx(29.3, abs=0.05)
    assert whole.verdict == "does_not_fit"
    assert full.verdict == "fits"
    assert full.reserved_bytes < 73.32 * GIB < half.peak_band_bytes[1]
    assert half.reserved_bytes / GIB == pytest.approx(73.32, rel=0.04)


def reserved(found: Bill, tokens: float, cut: int = 1) -> float:
    """What torch's allocator keeps of an eager loss: its first fp32 copy of the logits is freed, its block is not used.

    Whole logits alone: of those that tensor parallelism cuts, all copies stand at once.
    """
    return found.memory.allocated_bytes + (4 * tokens * 128_256 if cut == 1 else 0)


MISSED = pytest.mark.xfail(strict=True, reason="2.1 GiB of what torch reserves are not found: counted 6.5 % low")


@pytest.mark.parametrize(("tp", "measured"), [pytest.param(1, 32.07, marks=MISSED), (2, 20.70)])
def test_8_b_with_full_recompute_and_an_eager_loss_reserves_what_was_measured(tp: int, measured: float) -> None:
    """pytorch/torchtitan pull request 3429: 8 H100, sequences of 8,192 tokens, one a rank assumed."""
    found = bill(LLAMA_3_8B, "8xh100-sxm", 8192, 8 // tp, "fsdp2-uncompiled", tp=tp, recompute="full")
    assert found.memory.unsharded_state_bytes / 8 / GIB == pytest.approx(14.96, abs=0.01)
    assert 0.95 * measured < reserved(found, 8192, tp) / GIB < measured


@pytest.mark.parametrize(("tp", "measured"), [(1, 52.44), (2, 30.92)])
def test_selective_recompute_of_operations_lies_between_full_and_none(tp: int, measured: float) -> None:
    """pytorch/torchtitan pull request 3429: its default keeps the outputs of matrices."""
    none, full = (
        bill(LLAMA_3_8B, "8xh100-sxm", 8192, 8 // tp, "fsdp2-uncompiled", tp=tp, recompute=kind).memory.reserved_bytes
        for kind in ("none", "full")
    )
    assert full < measured * GIB < none


@pytest.mark.parametrize(("cp", "seq", "measured"), [(1, 32, 83.9), (2, 64, 84.2), (4, 128, 84.0), (8, 256, 84.5)])
def test_32768_tokens_on_a_rank_reserve_the_same_whatever_the_sequence_is_cut_into(
    cp: int, seq: int, measured: float
) -> None:
    """pytorch/torchtitan, benchmark document, tables 2 and 6: 8 H100 of 96 GB, full recompute, eager loss."""
    found = bill(LLAMA_8B, "8xh100-sxm", seq * 1024, 8 // cp, "fsdp2-uncompiled", cp=cp, recompute="full")
    assert reserved(found, 32_768) / GIB == pytest.approx(measured, rel=0.05)


@pytest.mark.parametrize(("seq", "gigaflops"), [(32, 96.6), (256, 457)])
def test_attention_is_most_of_the_work_at_256k_tokens(seq: int, gigaflops: float) -> None:
    """pytorch/torchtitan, benchmark document: 6 x 7.50 billion + 12 L h s, attention counted in full."""
    job = Job(seq * 1024, 1, attention_flops="full")
    assert 3 * sequence_flops(LLAMA_8B, job) / (seq * 1024) == pytest.approx(gigaflops * 1e9, rel=0.005)


def test_an_optimizer_over_4_data_parallel_ranks_is_a_quarter_and_that_is_what_the_estimate_was_too_high_by() -> None:
    """aliyun/aicb pull request 36: 24.4 GB estimated, 21 seen by nvidia-smi; tp 8 on 32 cards, attention unfused."""
    shape = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 10880}
    model = read_config({"model_type": "llama", "vocab_size": 50257, "max_position_embeddings": 4096, **shape})
    whole, cut = (
        bill(model, "32xa100-sxm-80", 4096, 4, "megatron-2022", tp=8, zero=zero, bytes_per_parameter="18")
        for zero in (0, 1)
    )
    assert items(whole)["optimizer"] == 4 * items(cut)["optimizer"]
    assert whole.memory.peak_bytes == pytest.approx(24.4 * GB, rel=0.02)
    assert cut.memory.device_bytes < 21 * GB < whole.memory.device_bytes


def test_with_all_state_on_the_host_two_more_cards_change_nothing() -> None:
    """deepspeedai/DeepSpeed issue 4093: 13 GB on 2 cards and on 4; the estimate of 0.77 GB is of state alone."""
    two, four = (
        bill(
            load_model("gpt-j-6b"), f"{cards}xa100-sxm-40", 2048, cards, "deepspeed", zero=3,
            offload_optimizer=1.0, offload_parameters=1.0,
        ).memory
        for cards in (2, 4)
    )  # fmt: skip
    assert two.items == four.items
    assert two.state_bytes == 0
    assert two.allocated_bytes > 5 * 0.77 * GIB


# --- what an estimate leaves out ------------------------------------------------------------------------------------

ESTIMATED = 2851e6, 32e6, 8  # parameters, those of the largest layer, cards of one node


def test_deepspeeds_own_estimates_are_sums_of_a_few_terms() -> None:
    """deepspeedai/DeepSpeed pull request 965: its GB are GiB, and activations, buffers and slack are not in them."""
    whole, layer, cards = ESTIMATED
    said = {
        15.93: 4 * whole + 16 * whole / cards,
        5.31: 2 * whole,
        0.12: 4 * layer,
        0.78: 4 * layer + 2 * whole / cards,
        71.69: 1.5 * 18 * whole,
        127.45: 1.5 * 32 * whole,
        63.7: 1.5 * 16 * whole,
    }
    assert [round(amount / GIB, 2) for amount in said.values()] == pytest.approx([*said], abs=0.05)


def test_zero_2_with_the_optimizer_on_the_host_leaves_the_weights_and_zero_3_a_shard_of_them() -> None:
    """deepspeedai/DeepSpeed pull request 965: 2 P = 5.31 GiB; 2 P / 8 and one gathered layer."""
    model = load_model("phi-2")
    whole = parameters(model).total
    second, third = (
        items(bill(model, "8xa100-sxm-80", 2048, 8, "deepspeed", zero=zero, offload_optimizer=1.0)) for zero in (2, 3)
    )
    assert [second[name] for name in ("weights", "gradients", "optimizer")] == [2 * whole, 0, 0]
    assert [third[name] for name in ("weights", "gradients", "optimizer")] == [2 * whole / 8, 0, 0]
    assert engine_of("deepspeed").gathered_blocks == 2
