"""Adapters, frozen parts, other models on the same accelerators, and documents of unequal length."""

from collections.abc import Callable
from typing import Any

import pytest

from models import LLAMA_7B, LLAMA_8B, MIXTRAL
from outlay import Beside, Bill, InputError, Job, Layout, Packing, count, load_cluster, load_model
from outlay.engines.tables import engine
from outlay.job import recipe_of
from outlay.layout.sizes import mean_keys
from outlay.model.model import Model
from outlay.undivided import backward_flops, sequence_flops, state_of

CARD = load_cluster("1xa100-sxm-80")
FOUR = load_cluster("4xrtx4090")
LINEAR = ("attention", "feed_forward")


def bill(model: Model, cluster: Any = CARD, seq: int = 2048, batch: int = 8, more: Any = None, **fields: Any) -> Bill:
    return count(model, Job(seq, batch, precision="bf16", **fields), cluster, Layout(**(more or {})))


def trained(model: Model, **fields: Any) -> int:
    job = Job(2048, 1, precision="bf16", **fields)
    return state_of(model, recipe_of(job, engine("megatron"), CARD.accelerator), job).trained


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


def test_fully_sharded_frozen_weights_are_gathered_like_others() -> None:
    cluster = load_cluster("8xh100-sxm")
    found = bill(LLAMA_8B, cluster, adapter="lora", more={"zero": 3})
    (sent,) = (each.bytes for each in found.traffic if each.axis == "dp")

    assert sent > 2 * 2 * 8_030_261_248 * 7 / 8  # gathered for the forward and for the backward pass


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


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"adapter": "lora", "adapter_targets": ("q_proj", "query")}, "JOB007"),
    ({"adapter": "lora", "adapter_targets": ("experts",)}, "JOB007"),
    ({"frozen": ("router",)}, "JOB007"),
    ({"frozen": ("embedding", "layers", "head")}, "JOB008"),
    ({"frozen_format": "nf4"}, "JOB008"),
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


Ask = Callable[..., tuple[int, str, str]]


def test_a_search_goes_through_layouts_of_adapters() -> None:
    from outlay import plan

    job = Job(2048, 64, precision="bf16", adapter="lora")
    found = plan(LLAMA_8B, job, load_cluster("8xh100-sxm"), "megatron", width="lean")

    best = found.best[0]
    assert best.bill.step.seconds == count(LLAMA_8B, job, load_cluster("8xh100-sxm"), best.layout).step.seconds
    assert best.bill.layout.tp == 1
