"""Families with experts or latent attention: which field means what, and which layer has which part."""

import json
from pathlib import Path
from typing import Any

import pytest

from outlay import Job, Layout, count, load_cluster
from outlay.engines.tables import kernel_set
from outlay.errors import InputError
from outlay.layout.sizes import mean_keys, on_rank
from outlay.model.blocks import rows
from outlay.model.huggingface import read_config
from outlay.model.model import Model
from outlay.model.parts import Attention, Experts
from outlay.undivided import parameters, plain_sizes, sequence_flops
from test_families import bare

CONFIGS = Path(__file__).parent / "configs"
SMALL = {
    "vocab_size": 512,
    "hidden_size": 64,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "intermediate_size": 96,
}


def real(name: str, **changed: Any) -> Model:
    """A published config, from its file."""
    return read_config(json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8")) | changed)


def small(kind: str, **fields: Any) -> Model:
    return read_config(SMALL | {"model_type": kind} | fields)


def attentions(model: Model) -> list[Attention]:
    """The attention of each layer, in order."""
    found = [model.blocks[kind].attention for kind in model.pattern]
    return [attention for attention in found if attention]


def experts(model: Model) -> Experts:
    return next(block.experts for block in model.blocks if block.experts)


def sparse_layers(model: Model) -> list[int]:
    """Which layers have experts."""
    return [layer for layer, kind in enumerate(model.pattern) if model.blocks[kind].experts]


def each(model: Model, row: str, layer: int = -1) -> int:
    """Parameters of one operation of a layer; 0 where the layer has none of that name."""
    block = model.blocks[model.pattern[layer]]
    found = [one for one in rows(model, block, kernel_set("transformer_engine")) if one.name == row]
    return sum(int(one.parameters(plain_sizes(model, block))) for one in found)


# Totals and active parameters as transformers 5.24.0 builds the language model of each file.
@pytest.mark.parametrize(
    ("name", "total", "active"),
    [
        ("dbrx-132b-nxd", 131_596_523_520, 36_469_708_800),
        ("deepseek-v3.2", 671_877_929_216, 38_403_807_488),
        ("glm-4.5-assembled", 360_017_556_480, 33_679_733_760),
        ("glm-5", 743_911_199_232, 41_784_709_632),
        ("llama-4-maverick-17b-128e", 400_711_848_960, 17_184_691_200),
        ("llama-4-scout-17b-16e", 107_769_861_120, 17_172_894_720),
        ("mimo-v2-flash", 308_778_768_832, 15_445_924_288),
        ("minimax-m2.5", 228_689_748_992, 11_030_537_216),
        ("step-3.7-flash", 195_844_496_640, 10_875_690_240),
    ],
)
def test_published_configs_have_the_parameters_of_the_published_models(name: str, total: int, active: int) -> None:
    counted = parameters(real(name))

    assert (counted.total, counted.active) == (total, active)


# The first three stand beside the checkpoints; the others are what transformers' MtpModel builds of small configs.
@pytest.mark.parametrize(
    ("model", "mtp"),
    [
        (real("deepseek-v3"), 11_610_067_968),
        (real("deepseek-v3.2"), 11_624_027_392),
        (real("glm-5"), 9_952_920_320),
        (
            read_config({
                "model_type": "glm4_moe", "vocab_size": 512, "hidden_size": 256, "num_hidden_layers": 6,
                "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 512, "head_dim": 32,
                "n_routed_experts": 8, "moe_intermediate_size": 64, "first_k_dense_replace": 3, "use_qk_norm": True,
                "num_nextn_predict_layers": 2,
            }),
            1_481_344,
        ),
    ],
)  # fmt: skip
def test_prediction_modules_stand_beside_the_model(model: Model, mtp: int) -> None:
    assert parameters(model).mtp == mtp


def test_the_prediction_modules_of_step_are_dense() -> None:
    fields = {"num_nextn_predict_layers": 2, "num_attention_heads": 8, "head_dim": 8, "sliding_window": 8}
    kinds = ["full_attention", "sliding_attention"] * 4
    model = small("step3p7_text", layer_types=kinds, num_sliding_attention_heads=4, **fields)

    assert [block.attention.heads for block in model.mtp_blocks if block.attention] == [8, 4]
    assert not any(block.experts for block in model.mtp_blocks)


SOLE = ["mixtral", "gpt_oss", "granitemoe", "granitemoeshared", "granitemoe_swa", "olmoe", "flex_olmo", "phimoe",
        "minimax_m2", "aria_text", "hunyuan_v1_moe", "jetmoe", "cohere2_moe"]  # fmt: skip


@pytest.mark.parametrize("kind", SOLE)
def test_intermediate_size_is_the_width_of_an_expert(kind: str) -> None:
    assert experts(bare(kind, intermediate_size=96)).expert_width == 96


def test_llama4_has_three_widths_under_two_keys() -> None:
    model = small("llama4_text", intermediate_size=96, intermediate_size_mlp=160, interleave_moe_layer_step=2)
    mixed, plain = experts(model), model.blocks[0].feed_forward

    assert (mixed.expert_width, mixed.shared_width, plain and plain.width) == (96, 96, 160)


@pytest.mark.parametrize(
    ("kind", "fields", "layers"),
    [
        ("deepseek_v3", {"first_k_dense_replace": 2}, [2, 3, 4, 5]),
        ("glm4_moe", {"first_k_dense_replace": 4}, [4, 5]),
        ("glm4_moe_lite", {"first_k_dense_replace": 4}, [1, 2, 3, 4, 5]),  # a key that its class does not have
        ("llama4_text", {"interleave_moe_layer_step": 2}, [1, 3, 5]),
        ("llama4_text", {"interleave_moe_layer_step": 2, "moe_layers": [0, 5]}, [0, 5]),
        ("axk1", {"first_k_dense_replace": 1, "moe_layer_freq": 2}, [2, 4]),
        ("qwen2_moe", {"decoder_sparse_step": 2, "mlp_only_layers": [3]}, [1, 5]),
        ("exaone_moe", {"mlp_layer_types": ["dense", "sparse"] * 3}, [1, 3, 5]),
        ("cohere2_moe", {"first_k_dense_replace": 2, "head_dim": 8}, [2, 3, 4, 5]),
        ("ernie4_5_moe", {"moe_layer_interval": 2, "moe_layer_end_index": 4}, [1, 3]),
        ("ernie4_5_moe", {"moe_layer_start_index": 3, "moe_layer_end_index": -1}, [3, 4, 5]),
        ("step3p7_text", {}, [3, 4, 5]),
        ("step3p7_text", {"moe_layers_enum": "1, 4"}, [1, 4]),
        ("minimax_m3_vl_text", {"moe_layer_freq": [0, 0, 1, 1, 1, 0]}, [2, 3, 4]),
        ("afmoe", {"num_dense_layers": 5}, [5]),
    ],
)
def test_each_rule_says_which_layers_are_dense(kind: str, fields: dict[str, Any], layers: list[int]) -> None:
    assert sparse_layers(small(kind, num_key_value_heads=4, **fields)) == layers


def test_a_list_longer_than_the_model_is_cut_and_a_shorter_one_is_refused() -> None:
    kinds = ["dense", "sparse", "dense"] * 3

    assert sparse_layers(small("hy_v3", mlp_layer_types=kinds)) == [1, 4]
    with pytest.raises(InputError, match="mlp_layer_types is shorter than the model"):
        small("hy_v3", mlp_layer_types=kinds[:5])


@pytest.mark.parametrize(
    ("kind", "is_parameter"),
    [("ernie4_5_moe", 1), ("afmoe", 1), ("laguna", 1), ("deepseek_v3", 0), ("glm4_moe", 0), ("minimax_m2", 0)],
)
def test_what_corrects_the_choice_of_experts_is_a_parameter_or_a_buffer(kind: str, is_parameter: int) -> None:
    model = bare(kind)
    choices = experts(model).experts

    assert each(model, "router") == choices * (model.hidden + is_parameter)


def test_a_shared_expert_has_a_gate_of_its_own_in_qwen2_alone() -> None:
    assert each(bare("qwen2_moe"), "shared_gate") == 2048
    assert each(bare("glm4_moe"), "shared_gate") == 0


@pytest.mark.parametrize(
    ("fields", "own"),
    [
        ({}, [0, 1, 2, 3, 4, 5]),
        ({"index_topk_freq": 3}, [0, 1, 4]),
        ({"index_topk_freq": 3, "index_skip_topk_offset": 1}, [0, 3]),
        ({"index_topk_pattern": "FSSFSF"}, [0, 3, 5]),
        ({"index_topk_pattern": ["full", "shared", "full", "full", "shared", "full"]}, [0, 2, 3, 5]),
        ({"indexer_types": ["full", "shared", "shared", "full", "shared", "shared"]}, [0, 3]),
    ],
)
def test_glm_selects_keys_on_every_layer_with_an_indexer_on_some(fields: dict[str, Any], own: list[int]) -> None:
    layers = attentions(small("glm_moe_dsa", **fields))

    assert [place for place, attention in enumerate(layers) if attention.index_heads] == own
    assert {attention.selected for attention in layers} == {2048}


def test_a_pattern_shorter_than_the_model_is_refused() -> None:
    with pytest.raises(InputError, match="index_topk_pattern is shorter than the model"):
        small("glm_moe_dsa", index_topk_pattern="FS")


def test_deepseek_v32_has_an_indexer_on_every_layer_and_v3_on_none() -> None:
    assert all(attention.index_heads == 64 for attention in attentions(bare("deepseek_v32")))
    assert not any(attention.selected for attention in attentions(bare("deepseek_v3")))


def test_selected_keys_wait_as_four_bytes_each_and_never_more_than_there_are() -> None:
    model = bare("deepseek_v32")
    block = model.blocks[-1]
    choices = [row for row in rows(model, block, kernel_set("transformer_engine")) if row.name == "index_choices"]
    kept = [
        choices[0].kept(plain_sizes(model, block, Job(sequence_length=length, global_batch=1)))
        for length in (1024, 8192)
    ]  # fmt: skip

    assert kept == [1024 * 4 * 1024, 8192 * 4 * 2048]


def test_selection_makes_the_core_grow_with_the_sequence_and_no_longer_with_its_square() -> None:
    model, plain = bare("deepseek_v32"), bare("deepseek_v3")
    block = model.blocks[-1]
    job = Job(sequence_length=131_072, global_batch=1, attention_flops="causal")

    assert plain_sizes(model, block, job)["counted_keys"] == mean_keys(131_072, 2048) == 2048 - 2048 * 2047 / 262_144
    assert sequence_flops(model, job) < sequence_flops(plain, job)


@pytest.mark.parametrize("kind", ["deepseek_v32", "glm_moe_dsa", "axk1", "sarvam_mla", "youtu", "minicpm3"])
def test_key_value_heads_and_head_dim_say_nothing_under_latent_attention(kind: str) -> None:
    assert bare(kind, num_key_value_heads=2, head_dim=48).blocks == bare(kind).blocks


def test_llama4_cuts_the_sequence_where_it_has_positions_and_norms_heads_there_without_weights() -> None:
    model = real("llama-4-scout-17b-16e")
    rotated = [layer % 4 != 3 for layer in range(48)]

    assert [attention.chunk == 8192 for attention in attentions(model)] == rotated
    assert [attention.head_norm == "bare" for attention in attentions(model)] == rotated
    assert each(model, "q_norm", layer=0) == 0


def test_a_list_of_layers_without_positions_may_be_empty() -> None:
    assert small("llama4_text", no_rope_layers=[]).pattern == small("llama4_text").pattern
    with pytest.raises(InputError, match="no_rope_layers"):
        small("llama4_text", no_rope_layers=[1, 2, 3, 0, 1, 1])


def test_a_chunk_has_the_keys_of_a_sequence_of_its_length() -> None:
    model = real("llama-4-scout-17b-16e")
    job = Job(sequence_length=32_768, global_batch=1, attention_flops="causal")

    assert plain_sizes(model, model.blocks[0], job)["counted_keys"] == 4096.5
    assert plain_sizes(model, model.blocks[1], job)["counted_keys"] == 16_384.5


def test_sliding_layers_of_mimo_have_sinks_and_twice_the_key_value_heads() -> None:
    found = attentions(real("mimo-v2-flash"))

    assert {(one.window > 0, one.sinks, one.kv_heads) for one in found} == {(False, False, 4), (True, True, 8)}
    assert {(one.head_dim, one.value_dim) for one in found} == {(192, 128)}
    assert [place for place, one in enumerate(found) if not one.window] == [0, 5, 11, 17, 23, 29, 35, 41, 47]
    assert max(one.window for one in found) == 129  # 128 keys before its own


def test_step_gates_each_head_and_its_sliding_layers_may_have_more_heads() -> None:
    kinds = ["full_attention", "sliding_attention"] * 3
    fields = {"attention_other_setting": {"num_attention_heads": 16}, "sliding_window": 512}
    model = small("step3p7_text", layer_types=kinds, **fields)

    assert [one.heads for one in attentions(model)] == [8, 16] * 3
    assert [each(model, "gate", layer) for layer in (0, 1)] == [64 * 8, 64 * 16]


def test_laguna_gates_heads_or_values_and_has_heads_by_layer() -> None:
    heads = [8, 16, 8, 16, 8, 8]
    model = small("laguna", num_attention_heads_per_layer=heads)

    assert [one.heads for one in attentions(model)] == heads
    assert each(model, "gate") == 64 * 8
    assert each(small("laguna", gating="per-element"), "gate") == 64 * 8 * 128


def test_minimax_m3_selects_blocks_of_keys_where_a_list_says_so() -> None:
    kinds = ["full_attention", "minimax_m3_sparse"] * 3
    listed = small("minimax_m3_vl_text", layer_types=kinds)
    freq = {"sparse_attention_freq": [0, 1] * 3, "sparse_topk_blocks": 8}
    older = small("minimax_m3_vl_text", sparse_attention_config=freq)

    assert [one.selected for one in attentions(listed)] == [0, 16 * 128] * 3
    assert [one.selected for one in attentions(older)] == [0, 1024] * 3
    assert not any(one.selected for one in attentions(small("minimax_m3_vl_text", moe_layer_freq=[])))


def test_longcat_counts_no_expert_behind_a_choice_that_does_nothing() -> None:
    """Its report says 560 B; what transformers allocates and never reads is no parameter of the model."""
    model = bare("longcat_flash")

    assert parameters(model).total == 560_664_958_976
    assert each(model, "router") == (512 + 256) * 6144
    assert [len(one.parts) for one in model.blocks[0].sublayers] == [1, 2, 1, 1]


def test_jetmoe_sends_each_token_to_pairs_of_query_and_output_projections() -> None:
    model = bare("jetmoe")
    attention = attentions(model)[0]
    pairs = 2 * 8 * 2048 * 2048

    assert (attention.heads, attention.kv_heads) == (2 * 16, 16)
    assert each(model, "pair_q") + each(model, "pair_proj") == pairs
    idle = 6 * (2 * 2048 * 2048 + 3 * 2048 * 5632)
    assert parameters(model).total - parameters(model).active == 12 * idle


def test_hunyuan_may_choose_more_experts_on_some_layers() -> None:
    model = small("hunyuan_v1_moe", num_experts=4, moe_topk=[1, 2, 1, 2, 1, 4])

    assert [part.active for kind in model.pattern if (part := model.blocks[kind].experts)] == [1, 2, 1, 2, 1, 4]
    with pytest.raises(InputError, match="more experts than there are"):
        small("hunyuan_v1_moe", num_experts=2, moe_topk=[1, 2, 1, 2, 1, 4])


def test_the_norms_of_olmoe_are_as_wide_as_the_hidden_vector() -> None:
    assert each(small("olmoe", head_dim=40), "q_norm") == 64
    assert each(small("flex_olmo", head_dim=40), "q_norm") == 8 * 40


def test_a_norm_follows_the_experts_of_axk1_alone() -> None:
    model = small("axk1")

    assert [model.blocks[kind].sublayers[1].norms for kind in model.pattern] == ["before"] + ["both"] * 5


# What tensor parallelism cuts, and what every rank has whole. Source: Megatron-LM, duplicated MLA down projections.
@pytest.mark.parametrize(
    ("kind", "name", "over"),
    [
        ("deepseek_v32", "q_rank", 1),
        ("deepseek_v32", "latent", 1),
        ("deepseek_v32", "index_q", 1),
        ("deepseek_v32", "index_dim", 1),
        ("deepseek_v32", "q", 8),
        ("deepseek_v32", "kv_up", 8),
        ("deepseek_v32", "router", 1),
        ("laguna", "gate", 8),
        ("jetmoe", "pairs", 1),
        ("jetmoe", "pair", 8),
        ("minimax_m2", "k", 8),
        ("llama4_text", "shared", 8),
        ("llama4_text", "expert", 1),
    ],
)
def test_tensor_parallelism_cuts_heads_and_widths_and_copies_what_is_low_rank(kind: str, name: str, over: int) -> None:
    parts = [part for part in bare(kind).parts if name in part.dimensions()]
    whole, cut = (on_rank(parts[0].dimensions()[name], Layout(tp=tp, etp=1, ep=1)) for tp in (1, 8))

    assert whole == over * cut > 0


@pytest.mark.parametrize(
    "kind", ["deepseek_v32", "glm_moe_dsa", "llama4_text", "mimo_v2_flash", "longcat_flash", "laguna"]
)
def test_a_layout_with_every_axis_keeps_less_on_a_rank_than_the_model_alone(kind: str) -> None:
    """Each row has a size on every layout, and no rank holds more than its share and what is copied."""
    model, job = bare(kind), Job(sequence_length=4096, global_batch=64)
    bill = count(model, job, load_cluster("64xh100-sxm"), Layout(tp=4, pp=2, ep=8, etp=1, micro_batch=1, zero=1))

    assert 0 < bill.memory.state_bytes < bill.memory.unsharded_state_bytes / 8
