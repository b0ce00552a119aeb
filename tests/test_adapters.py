"""Adapters, frozen parts, other models on the same accelerators, and documents of unequal length."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from models import LLAMA_7B, LLAMA_8B, MIXTRAL
from outlay import Beside, Bill, InputError, Job, Layout, Packing, count, load_cluster, load_model
from outlay.engines.tables import engine, kernel_set
from outlay.job import recipe_of
from outlay.ladder import explain_count
from outlay.layer import inventory, passed_back
from outlay.layout.axes import ALONE
from outlay.layout.sizes import mean_keys, sizes
from outlay.layout.training_rules import matrices
from outlay.model.model import Model, with_extra
from outlay.model.operations import Row
from outlay.model.trained import FREEZES
from outlay.sums import split_moves, sum_kept
from outlay.undivided import backward_flops, sequence_flops, state_of

CARD = load_cluster("1xa100-sxm-80")
EIGHT = load_cluster("8xh100-sxm")
FOUR = load_cluster("4xrtx4090")
LINEAR = ("attention", "feed_forward")


def bill(model: Model, cluster: Any = CARD, seq: int = 2048, batch: int = 8, more: Any = None, **fields: Any) -> Bill:
    return count(model, Job(seq, batch, **{"precision": "bf16", **fields}), cluster, Layout(**(more or {})))


def trained(model: Model, **fields: Any) -> int:
    job = Job(2048, 1, precision="bf16", **fields)
    return state_of(model, recipe_of(job, engine("megatron"), CARD.accelerator), job).trained


def moved(of: Bill, axis: str) -> float:
    return sum(each.bytes for each in of.traffic if each.axis == axis)


def took(of: Bill, name: str) -> float:
    return next((each.value for each in of.step.items if each.name == name), 0.0)


def tapes(model: Model, layout: Layout = ALONE, name: str = "fsdp2", **fields: Any) -> dict[str, float]:
    """Bytes that one layer of each kind keeps of a sequence, and each end."""
    job, driver = Job(2048, 8, precision="bf16", **fields), engine(name)
    kernels = kernel_set(driver.kernels)
    found = inventory(model, job, kernels)
    return {
        block.name: float(
            sum_kept(passed_back(split_moves(found[block.name])[0]), sizes(model, block, job, layout, driver, kernels))
        )
        for block in (*model.blocks, *model.ends)
    }


def item(of: Bill, name: str) -> float:
    return next((each.value for each in of.memory.items if each.name == name), 0.0)


# Trainable parameters as PEFT prints them: Alpaca-LoRA (rank 8, q and v; rank 16, all of attention); QLoRA's Guanaco
# (rank 64, every linear); Llama-3-8B with every linear, rank 16.
PUBLISHED = [
    (LLAMA_7B, 8, ("q_proj", "v_proj"), 4_194_304),
    (LLAMA_7B, 16, ("attention",), 16_777_216),
    (LLAMA_7B, 64, LINEAR, 159_907_840),
    (LLAMA_8B, 16, LINEAR, 41_943_040),
]


@pytest.mark.parametrize(("model", "rank", "targets", "published"), PUBLISHED)
def test_adapters_have_the_published_number_of_parameters(
    model: Model, rank: int, targets: tuple[str, ...], published: int
) -> None:
    assert trained(model, adapter="lora", adapter_rank=rank, adapter_targets=targets) == published


def test_dora_adds_a_magnitude_for_every_output() -> None:
    outputs = 32 * (4096 + 2 * 1024 + 4096 + 2 * 14336 + 4096)
    lora = trained(LLAMA_8B, adapter="lora", adapter_targets=LINEAR)

    assert trained(LLAMA_8B, adapter="dora", adapter_targets=LINEAR) == lora + outputs


def test_experts_have_an_adapter_each_where_they_are_asked_for() -> None:
    found = trained(MIXTRAL, adapter="lora", adapter_rank=8, adapter_targets=("experts",))

    assert found == 32 * 8 * 8 * 3 * (4096 + 14336)


def test_a_frozen_model_keeps_two_bytes_a_parameter_and_four_bits_take_their_scales() -> None:
    plain = bill(LLAMA_8B, adapter="lora", adapter_targets=LINEAR)
    four = bill(LLAMA_8B, adapter="qlora", adapter_targets=LINEAR)
    matrices = 32 * (4096 * 4096 * 2 + 4096 * 1024 * 2 + 3 * 4096 * 14336)
    adapters = 2 * 41_943_040

    assert item(plain, "weights") == 2 * 8_030_261_248 + adapters
    assert item(plain, "weights") - item(four, "weights") == pytest.approx(matrices * (2 - 0.5 - 1 / 64 - 1 / 4096))
    assert item(plain, "gradients") == 4 * 41_943_040
    assert item(plain, "optimizer") == 12 * 41_943_040


def test_no_saving_by_freezing_is_worth_more_than_a_factor_of_eight() -> None:
    whole = bill(LLAMA_8B, bytes_per_parameter="16").memory.state_bytes
    frozen = bill(LLAMA_8B, bytes_per_parameter="16", adapter="lora", adapter_rank=1).memory.state_bytes

    assert 7.8 < whole / frozen < 8


def test_frozen_matrices_have_no_weight_gradients() -> None:
    job = Job(2048, 1, precision="bf16")
    frozen = Job(2048, 1, precision="bf16", frozen=("layers", "head"))
    core = 2 * 32 * 2048 * mean_keys(2048, 0) * 2 * 4096  # the attention core's backward pass is what it was
    forward = sequence_flops(LLAMA_7B, job)

    assert backward_flops(LLAMA_7B, job) == 2 * forward
    assert backward_flops(LLAMA_7B, frozen) == forward + core


def test_a_step_of_adapters_is_shorter_and_syncs_little() -> None:
    cluster = load_cluster("8xh100-sxm")
    whole, part = (bill(LLAMA_8B, cluster, adapter=kind, more={"zero": 1}) for kind in ("none", "lora"))

    assert part.step.seconds < 0.8 * whole.step.seconds
    (full,), (little,) = ([each.bytes for each in of.traffic if each.axis == "dp"] for of in (whole, part))
    assert little / full == pytest.approx(41_943_040 / 8_030_261_248, rel=1e-6)


# Frozen weights are gathered for the forward and for the backward pass, the embedding's for the forward pass alone;
# adapters are gathered twice, 2 bytes, and their fp32 gradients scattered.
def test_fully_sharded_frozen_weights_are_gathered_like_others() -> None:
    table, adapters = 128_256 * 4096, 41_943_040
    sent = moved(bill(LLAMA_8B, EIGHT, adapter="lora", more={"zero": 3}), "dp")

    assert sent == (2 * 2 * (8_030_261_248 - table) + 2 * table + (2 * 2 + 4) * adapters) * 7 / 8


def test_qwen3_30b_with_adapters_fits_four_cards_of_24_gb_only_where_its_weights_are_sharded() -> None:
    moe = load_model("qwen3-30b-a3b")
    sharded = bill(moe, FOUR, adapter="lora", adapter_targets=("attention",), batch=4, more={"zero": 3})

    assert 15.2e9 < item(sharded, "weights") < 15.4e9


def test_frozen_parts_may_be_the_embedding_or_a_vision_tower() -> None:
    assert trained(LLAMA_8B, frozen=("embedding",)) == 8_030_261_248 - 128_256 * 4096
    assert trained(LLAMA_8B, frozen=("norms",)) == 8_030_261_248 - 65 * 4096
    assert trained(MIXTRAL, frozen=("experts",)) == 46_702_792_704 - 32 * 8 * 3 * 4096 * 14336


# Qwen2.5-32B beside: 32.76 B parameters, 2 bytes a weight over 8 cards; a critic has all of its state.
def test_models_beside_take_their_weights_or_their_whole_state() -> None:
    cluster = load_cluster("8xh100-sxm")
    reference, critic, engine_of = (
        bill(LLAMA_8B, cluster, more={"zero": 3}, beside=(Beside("other", role, 32_763_876_352.0, ranks),))
        for role, ranks in (("reference", None), ("critic", None), ("inference", 4))
    )

    assert item(reference, "beside") == 2 * 32_763_876_352 / 8
    assert item(critic, "beside") == 18 * 32_763_876_352 / 8
    assert item(engine_of, "beside") == 2 * 32_763_876_352 / 4


def test_a_model_that_stands_there_twice_is_counted_twice() -> None:
    others = tuple(Beside("llama-3.1-8b", role, 8_030_261_248.0) for role in ("reference", "critic"))
    found = bill(LLAMA_8B, load_cluster("8xh100-sxm"), more={"zero": 3}, beside=others)

    assert item(found, "beside") == (2 + 18) * 8_030_261_248 / 8


def test_gpt_oss_120b_in_reinforcement_learning_keeps_26_gb_of_state_and_the_weights_of_its_engine() -> None:
    model = load_model("gpt-oss-120b")
    others = (Beside("gpt-oss-120b", "inference", 116_829_156_672.0, 8),)
    job = Job(4096, 72, precision="bf16", bytes_per_parameter="16", beside=others)
    found = count(model, job, load_cluster("72xh100-sxm"), Layout(zero=3, recompute="full"))

    assert round(found.memory.state_bytes / 1e9) == 26
    assert item(found, "beside") == pytest.approx(234e9 / 8, rel=0.002)


def test_documents_packed_in_a_sequence_see_their_own_tokens() -> None:
    packed = Job(8192, 1, precision="bf16", packing=Packing(1024))
    short = Job(1024, 8, precision="bf16")

    assert sequence_flops(LLAMA_8B, packed) == 8 * sequence_flops(LLAMA_8B, short)


def test_unequal_documents_see_more_than_equal_ones_and_never_more_than_the_sequence() -> None:
    lengths = (256, 256, 2560, 1024)
    mean = sum(lengths) / 4
    spread = (sum((each - mean) ** 2 for each in lengths) / 4) ** 0.5 / mean
    packing = Packing(mean, spread)
    keys = sum(each * (each + 1) / 2 for each in lengths) / sum(lengths)

    assert packing.seen == pytest.approx(sum(each * each for each in lengths) / sum(lengths))
    assert (packing.seen + 1) / 2 == pytest.approx(keys)
    endless = Job(2048, 1, precision="bf16", packing=Packing(2048, 9.0))
    assert sequence_flops(LLAMA_8B, endless) == sequence_flops(LLAMA_8B, Job(2048, 1, precision="bf16"))


def test_padding_is_computed_and_not_counted_as_trained_tokens() -> None:
    plain, padded = bill(LLAMA_8B), bill(LLAMA_8B, packing=Packing(512, padded=True))

    assert padded.step.seconds == plain.step.seconds
    assert padded.step.tokens_per_second == plain.step.tokens_per_second / 4
    assert padded.step.mfu == plain.step.mfu / 4
    assert any("75.0 % of the tokens are padding" in said for said in padded.assumptions)


# Nothing below the first trained weight has a backward pass: 2 FLOPs a parameter and token, and the head's 6.
def test_a_frozen_trunk_has_a_forward_pass_alone() -> None:
    head = 2 * 2048 * 32_000 * 4096
    job = Job(2048, 1, precision="bf16", frozen=("embedding", "layers"))
    frozen = bill(LLAMA_7B, frozen=("embedding", "layers"))

    assert backward_flops(LLAMA_7B, job) == 2 * head
    assert item(frozen, "activations") == item(frozen, "recomputed") == 0
    assert took(frozen, "arithmetic") < 0.4 * took(bill(LLAMA_7B), "arithmetic")
    assert bill(LLAMA_7B, frozen=("embedding", "layers"), more={"recompute": "full"}).step == frozen.step


def test_a_trained_table_or_a_trained_weight_in_a_layer_needs_the_backward_pass_through_all_layers() -> None:
    job = Job(2048, 1, precision="bf16")
    forward = sequence_flops(LLAMA_7B, job)

    for frozen in (("layers",), ("embedding", "attention", "feed_forward"), ("embedding", "attention", "norms")):
        kept = tapes(LLAMA_7B, frozen=frozen)
        assert kept["dense"] > 0
        assert backward_flops(LLAMA_7B, Job(2048, 1, precision="bf16", frozen=frozen)) > forward


def test_a_trained_vision_tower_needs_the_backward_pass_through_a_frozen_model() -> None:
    model = with_extra(LLAMA_7B, 300_000_000)

    assert tapes(model, frozen=("embedding", "layers"))["dense"] > 0
    assert tapes(model, frozen=("embedding", "layers", "extra"))["dense"] == 0


def test_a_frozen_trunk_is_exchanged_forward_alone() -> None:
    frozen = ("embedding", "layers")
    for more, axis in (({"tp": 8, "zero": 1}, "tp"), ({"zero": 3}, "dp")):
        full, part = (moved(bill(LLAMA_8B, EIGHT, more=more, frozen=which), axis) for which in (("norms",), frozen))
        assert 0 < part < 0.6 * full


SEVERAL = ("llama-3.1-8b", "command-r-35b", "falcon-40b", "mixtral-8x7b", "deepseek-v3", "deepseek-v4-flash",
           "qwen1.5-moe-a2.7b", "nemotron-h-56b", "qwen3-next-80b-a3b", "gemma-3n-e4b", "llama-3.2-90b-vision",
           "longcat-flash")  # fmt: skip
CUT = (ALONE, replace(ALONE, tp=2), replace(ALONE, tp=2, sp=True))


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("of", ["megatron", "fsdp2"])
def test_to_freeze_a_part_never_raises_a_tape(name: str, of: str) -> None:
    model = load_model(name)
    for layout in CUT:
        whole = tapes(model, layout, of)
        for part in FREEZES:
            assert all(kept <= whole[kind] for kind, kept in tapes(model, layout, of, frozen=(part,)).items())


# What A reads and what B reads: x of one of the matrices inside a layer, and r values.
@pytest.mark.parametrize("name", SEVERAL)
def test_each_adapter_keeps_its_input_and_its_r_values_whichever_it_is(name: str) -> None:
    model, rank = load_model(name), 2**20
    bare = tapes(model, frozen=("layers",))
    for target in matrices(model, kernel_set("pytorch")):
        found = tapes(model, adapter="lora", adapter_rank=rank, adapter_targets=(target,))
        thin = tapes(model, adapter="lora", adapter_rank=1, adapter_targets=(target,))
        more = {kind: kept - bare[kind] for kind, kept in found.items() if kept > bare[kind]}
        assert more
        for kind, bytes_more in more.items():
            ranks = (found[kind] - thin[kind]) / (rank - 1)  # bytes of one of the r values, of all tokens
            assert ranks >= 2 * 2048
            # Its input on top; what comes out of an attention core or a scan is kept there.
            assert target in ("o_proj", "out_proj") or bytes_more > (rank + 64) * ranks


# command-r: attention and feed-forward read one normed input. Attention's core keeps its output, whoever is frozen.
def test_an_input_that_two_parts_share_is_kept_by_the_one_that_is_trained() -> None:
    model = load_model("command-r-35b")
    for layout in CUT[:2]:
        (whole,), (part,) = ([*tapes(model, layout, frozen=frozen).values()][:1] for frozen in ((), ("attention",)))
        assert part == whole


def test_an_attention_core_keeps_its_output_beside_a_frozen_projection() -> None:
    model, job = LLAMA_8B, Job(2048, 1, precision="bf16", frozen=("layers",))
    kernels = kernel_set("pytorch")
    work = split_moves(inventory(model, job, kernels)["dense"])[0]
    here = sizes(model, model.blocks[0], job, ALONE, engine("fsdp2"), kernels)

    kept = sum_kept(tuple(row for row in work if row.name in ("attention", "qkv", "proj")), here)
    assert kept == 2048 * (2 * (4096 + 2 * 1024 + 4096) + 4 * 32)


def test_a_projection_behind_a_gate_keeps_nothing_where_it_is_frozen() -> None:
    model = load_model("qwen3-next-80b-a3b")
    attends = next(block for block in model.blocks if block.attention)
    trained_kept, frozen_kept = (tapes(model, frozen=frozen)[attends.name] for frozen in ((), ("attention",)))

    assert trained_kept - frozen_kept == 2 * 2048 * (16 * 256 + 2048)  # and the input


@pytest.mark.parametrize(
    ("model", "target", "axis"),
    [(LLAMA_8B, "o_proj", "tp"), (LLAMA_8B, "down_proj", "tp"), (MIXTRAL, "expert_down_proj", "etp"),
     (load_model("deepseek-v4-flash"), "o_proj", "tp"), (load_model("nemotron-h-56b"), "out_proj", "tp")],
)  # fmt: skip
def test_the_values_of_an_adapter_whose_input_is_cut_are_summed(model: Model, target: str, axis: str) -> None:
    more = {"tp": 8, "sp": True, "etp": 8 if model.experts else 1}
    none, one = (
        moved(
            bill(model, EIGHT, batch=1, more=more, adapter="lora", adapter_rank=rank, adapter_targets=(target,)), axis
        )
        for rank in (1, 65)
    )
    layers = sum(any(row.name == f"{target}_a" for row in found(model, target, block)) for block in model.pattern)
    tokens = 2048 * (2 if axis == "etp" else 1)  # each token goes to two experts

    assert one - none == pytest.approx(layers * 64 * 2 * tokens * 2 * 7 / 8)


def found(model: Model, target: str, block: int) -> tuple[Row, ...]:
    job = Job(2048, 1, precision="bf16", adapter="lora", adapter_targets=(target,))
    return inventory(model, job, kernel_set("transformer_engine"))[model.blocks[block].name]


@pytest.mark.parametrize("target", ["q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"])
def test_an_adapter_whose_input_is_whole_needs_no_sum(target: str) -> None:
    plain, wide = (
        moved(bill(LLAMA_8B, EIGHT, more={"tp": 8}, adapter="lora", adapter_rank=rank, adapter_targets=(target,)), "tp")
        for rank in (1, 64)
    )
    assert plain == wide


def test_tensor_parallel_ranks_together_keep_no_less_than_one() -> None:
    eight = tapes(LLAMA_8B, replace(ALONE, tp=8), adapter="lora")
    alone = tapes(LLAMA_8B, adapter="lora")

    assert all(8 * eight[kind] >= alone[kind] for kind in alone)


def test_frozen_weights_have_the_width_of_the_run() -> None:
    single = bill(LLAMA_8B, load_cluster("8xh100-sxm"), adapter="lora", precision="fp32")

    assert item(single, "weights") == 4 * (8_030_261_248 + 41_943_040)


# On Hopper an fp8 weight has two quantised copies, beside the 16-bit one, frozen or not; one in 4 bit has none.
def test_fp8_keeps_copies_of_frozen_matrices_unless_they_are_in_four_bits() -> None:
    inner = 32 * (4096 * 4096 * 2 + 4096 * 1024 * 2 + 3 * 4096 * 14336)
    adapters = 41_943_040
    state = {"bytes_per_parameter": "derived"}
    lora, four = (
        bill(LLAMA_8B, EIGHT, adapter=kind, precision="fp8", more={"zero": 1}, **state) for kind in ("lora", "qlora")
    )

    assert item(lora, "weights") == 2 * 8_030_261_248 + 2 * inner + 2 * adapters  # adapters stay in 16 bit
    assert item(four, "weights") == pytest.approx(2 * (8_030_261_248 - inner) + inner * 0.515869140625 + 2 * adapters)


# 0.516 bytes are read and 2 written of every value of the layers, in the forward and in the backward pass.
def test_four_bit_weights_take_the_time_to_dequantise_them_twice() -> None:
    inner = 32 * (4096 * 4096 * 2 + 4096 * 1024 * 2 + 3 * 4096 * 14336)
    lora, four = (bill(LLAMA_8B, batch=1, adapter=kind) for kind in ("lora", "qlora"))
    card = CARD.accelerator
    moves = inner * (0.515869140625 + 2) / (card.memory_bandwidth * card.memory_share)
    kernels = 32 * 4 * card.launch_seconds

    assert took(four, "arithmetic") - took(lora, "arithmetic") == pytest.approx(2 * (moves + kernels))
    assert item(four, "kernels") - item(lora, "kernels") == 2 * 4096 * 14336  # one matrix at a time


def test_fp8_weights_are_multiplied_as_they_are_in_fp8_and_dequantised_in_bf16() -> None:
    half, fp8, mixed = (
        took(bill(LLAMA_8B, EIGHT, adapter="lora", precision=precision, frozen_format=kept), "arithmetic")
        for precision, kept in (("fp8", "16bit"), ("fp8", "fp8"), ("bf16", "fp8"))
    )
    assert fp8 == half
    assert mixed > took(bill(LLAMA_8B, EIGHT, adapter="lora"), "arithmetic")


def test_offloaded_frozen_weights_are_read_as_they_are_kept() -> None:
    adapters = 41_943_040
    inner = 32 * (4096 * 4096 * 2 + 4096 * 1024 * 2 + 3 * 4096 * 14336)
    table, rest = 128_256 * 4096, 8_030_261_248 - inner
    for kind, each in (("lora", 2), ("qlora", 0.515869140625)):
        found_one = bill(LLAMA_8B, batch=1, adapter=kind, more={"offload_parameters": 1.0})
        read = 2 * (each * inner + 2 * rest) - 2 * table + 2 * 2 * adapters  # the embedding's once
        assert found_one.offload[0].bytes == pytest.approx(read)


def test_four_bit_weights_are_gathered_in_four_bits() -> None:
    inner = 32 * (4096 * 4096 * 2 + 4096 * 1024 * 2 + 3 * 4096 * 14336)
    lora, four = (bill(LLAMA_8B, EIGHT, adapter=kind, more={"zero": 3}) for kind in ("lora", "qlora"))

    assert item(lora, "gathered") - item(four, "gathered") == pytest.approx(
        engine("megatron").gathered_blocks * inner / 32 * (2 - 0.515869140625)
    )
    assert moved(lora, "dp") - moved(four, "dp") == pytest.approx(2 * inner * (2 - 0.515869140625) * 7 / 8)


@pytest.mark.parametrize("part", ["embedding", "head"])
def test_a_table_that_embedding_and_head_share_is_frozen_in_both_and_not_summed(part: str) -> None:
    model = load_model("gemma-7b")
    table = 256_000 * 3072
    more = {"pp": 2, "dp_shard": 4, "zero": 1}
    whole, frozen = (bill(model, EIGHT, more=more, frozen=which, batch=32) for which in ((), (part,)))

    assert trained(model) - trained(model, frozen=(part,)) == table
    assert any("share a table, which is frozen" in said for said in frozen.assumptions)
    summed, none = (tied(model, EIGHT, more, frozen=which) for which in ((), (part,)))
    assert (summed, none) == (4 * table, 0)
    assert whole.step.seconds > frozen.step.seconds


def tied(model: Model, cluster: Any, more: Any, **fields: Any) -> float:
    """The part of a derivation that is a tied embedding's."""
    job = Job(2048, 32, precision="bf16", **fields)
    step = explain_count("traffic.dp", model, job, cluster, Layout(**more), "megatron")
    return next(each.value for each in step.steps if each.name == "tied")


def test_no_part_of_the_traffic_is_negative_where_ends_are_frozen() -> None:
    for driver, fields in product(("fsdp2", "deepspeed"), ({"adapter": "lora"}, {"frozen": ("embedding", "layers")})):
        job = Job(2048, 8, precision="bf16", **fields)
        step = explain_count("traffic.dp", LLAMA_8B, job, EIGHT, Layout(zero=3), driver)
        assert all(each.value >= 0 for each in step.steps)


def test_documents_packed_in_a_sequence_see_their_own_compressed_keys() -> None:
    model = load_model("deepseek-v4-flash")
    packed = Job(8192, 1, precision="bf16", packing=Packing(1024))
    short = Job(1024, 8, precision="bf16")

    assert sequence_flops(model, packed) == pytest.approx(8 * sequence_flops(model, short))
    assert sequence_flops(model, packed) < sequence_flops(model, Job(8192, 1, precision="bf16"))


def test_the_targets_that_are_named_are_those_that_the_model_has() -> None:
    said = " ".join(bill(MIXTRAL, EIGHT, adapter="lora", more={"zero": 3}).assumptions)

    assert "rank 16, on attention; experts have none (--targets experts)" in said


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"adapter": "lora", "adapter_targets": ("q_proj", "query")}, "JOB007"),
    ({"adapter": "lora", "adapter_targets": ("experts",)}, "JOB007"),
    ({"frozen": ("router",)}, "JOB007"),
    ({"frozen": ("embedding", "layers", "head")}, "JOB008"),
    ({"frozen_format": "nf4"}, "JOB008"),
    ({"frozen": ("embedding", "attention", "feed_forward", "norms", "head")}, "JOB008"),
    ({"adapter_rank": 8}, "JOB008"),
    ({"adapter_targets": ("q_proj",)}, "JOB008"),
    ({"adapter": "lora", "frozen": ("norms",)}, "JOB008"),
    ({"packing": Packing(99_999)}, "JOB009"),
    ({"packing": Packing(99_999, padded=True)}, "JOB009"),
    ({"beside": (Beside("other", "reference", 1e9, 64),)}, "JOB009"),
    ({"adapter": "prefix"}, "JOB000"),
    ({"adapter": "lora", "adapter_rank": 0}, "JOB000"),
    ({"adapter_targets": ("x" * 50,)}, "JOB000"),
    ({"packing": Packing(0)}, "JOB000"),
    ({"packing": Packing(float("nan"))}, "JOB000"),
    ({"beside": (Beside("other", "reference", 0.0),)}, "JOB000"),
    ({"beside": (Beside("other", "ghost", 1e9),)}, "JOB000"),
]


@pytest.mark.parametrize(("fields", "code"), WRONG)
def test_what_cannot_be_trained_is_refused_by_name(fields: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        bill(LLAMA_8B, **fields)

    assert {fault.code for fault in caught.value.faults} == {code}


FIXES: list[tuple[dict[str, Any], str]] = [
    ({"adapter": "lora", "adapter_targets": ("query",)}, "--targets q_proj"),
    ({"adapter": "lora", "adapter_targets": ("value",)}, "--targets v_proj"),
    ({"adapter": "lora", "adapter_targets": ("attn",)}, "--targets attention"),
    ({"frozen": ("layer",)}, "--freeze layers"),
    ({"frozen": ("embeddings",)}, "--freeze embedding"),
]


@pytest.mark.parametrize(("fields", "fix"), FIXES)
def test_the_nearest_name_is_proposed_as_a_flag(fields: dict[str, Any], fix: str) -> None:
    with pytest.raises(InputError) as caught:
        bill(LLAMA_8B, **fields)

    assert [fault.fix for fault in caught.value.faults] == [fix]


def test_a_model_without_gates_has_no_matrix_of_one() -> None:
    with pytest.raises(InputError, match="gate_proj"):
        bill(load_model("pythia-6.9b"), adapter="lora", adapter_targets=("gate_proj",))


Ask = Callable[..., tuple[int, str, str]]


def test_a_search_goes_through_layouts_of_adapters() -> None:
    from outlay import plan

    for fields in ({"adapter": "lora"}, {"adapter": "qlora"}, {"frozen": ("embedding", "layers")}):
        job = Job(2048, 64, precision="bf16", **fields)
        best = plan(LLAMA_8B, job, EIGHT, "megatron", width="lean").best[0]
        assert best.bill.step.seconds == pytest.approx(count(LLAMA_8B, job, EIGHT, best.layout).step.seconds, rel=1e-12)
        assert best.bill.layout.tp == 1
