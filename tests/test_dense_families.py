"""Families of dense decoders: what each class reads, what it ignores, and what it takes where a file is silent."""

import json
from pathlib import Path
from typing import Any

import pytest

from outlay.errors import Fault, InputError
from outlay.job import Job
from outlay.model.families import CORE, FAMILIES
from outlay.model.families.classic import CLASSIC
from outlay.model.families.dense import DENSE, GEMMAS, GLMS
from outlay.model.families.layer_normed import LAYER_NORMED
from outlay.model.families.others import OTHERS
from outlay.model.families.reshaped import RESHAPED
from outlay.model.huggingface import read_config
from outlay.model.model import Model
from outlay.undivided import layer_flops, parameters

KINDS = [*DENSE, *GEMMAS, *GLMS, *LAYER_NORMED, *CLASSIC, *RESHAPED]
NAS: dict[str, Any] = json.loads((Path(__file__).parent / "configs" / "nemotron-super-49b.json").read_text())
SMALL = {"vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 8}
USUAL = SMALL | {"intermediate_size": 96}
GPT = {"vocab_size": 100, "n_embd": 64, "n_layer": 2, "n_head": 8, "n_positions": 32}
MPT = {"vocab_size": 100, "d_model": 64, "n_layers": 2, "n_heads": 8}
FALCON = SMALL | {"ffn_hidden_size": 96}
OPT = SMALL | {"ffn_dim": 96, "max_position_embeddings": 32}
NEW = {"new_decoder_architecture": True, "num_kv_heads": 2}
LLAMA_VISION = {
    "vocab_size": 128256, "hidden_size": 8192, "num_hidden_layers": 100, "num_attention_heads": 64,
    "num_key_value_heads": 8, "intermediate_size": 28672, "cross_attention_layers": [*range(3, 100, 5)],
    "max_position_embeddings": 131072,
}  # fmt: skip


def read(kind: str, fields: dict[str, Any]) -> Model:
    return read_config({"model_type": kind} | fields)


def total(kind: str, fields: dict[str, Any]) -> int:
    return parameters(read(kind, fields)).total


def refused(kind: str, fields: dict[str, Any]) -> list[Fault]:
    with pytest.raises(InputError) as caught:
        read(kind, fields)
    return list(caught.value.faults)


def noted(kind: str, fields: dict[str, Any]) -> str:
    return "; ".join(read(kind, fields).notes)


# --- sizes that a class reads, or does not: totals are what transformers 5.24.0 builds -------------------------------


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"num_kv_heads": 2}, 49792),  # one head of keys, as multi_query is true
        ({"num_kv_heads": 2, "multi_query": False}, 64128),  # as many as attention heads
        (NEW, 52096),
        ({"new_decoder_architecture": True}, 64384),
        (NEW | {"num_ln_in_parallel_attn": 1}, 51840),
        ({"parallel_attn": False}, 50048),
        ({"bias": True}, 50400),
    ],
)
def test_falcon_counts_its_key_heads_in_the_new_architecture_only(changed: dict[str, Any], expected: int) -> None:
    assert total("falcon", FALCON | changed) == expected


def test_falcon_has_one_norm_for_two_parts_or_one_each() -> None:
    layers = {name: read("falcon", FALCON | changed).blocks[0].sublayers for name, changed in FALCONS.items()}

    assert {name: (len(layer), layer[0].own_norms) for name, layer in layers.items()} == {
        "old": (1, False), "new": (1, True), "new with one norm": (1, False), "in turn": (2, False),
    }  # fmt: skip


FALCONS = {
    "old": {},
    "new": NEW,
    "new with one norm": NEW | {"num_ln_in_parallel_attn": 1},
    "in turn": {"parallel_attn": False},
}


def test_mpt_is_four_times_as_wide_whatever_its_expansion_ratio_says() -> None:
    assert total("mpt", MPT | {"expansion_ratio": 2}) == total("mpt", MPT) == 105024
    assert "expansion_ratio 2: this family does not read it" in noted("mpt", MPT | {"expansion_ratio": 2})
    assert "expansion_ratio" not in noted("mpt", MPT | {"expansion_ratio": 4})


def test_mpt_reads_the_dropout_inside_its_attention_config() -> None:
    dropped = MPT | {"attn_config": {"attn_pdrop": 0.1}}

    assert read("mpt", dropped).dropout and not read("mpt", MPT).dropout
    assert "attn_config" not in noted("mpt", dropped)


def test_opt_and_biogpt_have_two_positions_more_than_they_say() -> None:
    assert read("opt", OPT).positions == 34
    assert total("opt", OPT) == total("biogpt", USUAL | {"max_position_embeddings": 32}) == 67392


def test_opt_with_norms_after_has_no_final_norm_and_may_have_a_narrow_embedding() -> None:
    narrow = {"word_embed_proj_dim": 16, "do_layer_norm_before": False}

    assert total("opt", OPT | narrow) == 64512
    assert total("opt", OPT | {"_remove_final_layer_norm": True}) == 67264


def test_stablelm_ignores_the_head_dim_of_the_file_and_says_so() -> None:
    wide = USUAL | {"num_key_value_heads": 8, "head_dim": 32}

    assert total("stablelm", wide) == total("stablelm", USUAL | {"num_key_value_heads": 8}) == 83072
    assert "head_dim 32: this family does not read it" in noted("stablelm", wide)
    assert "head_dim" not in noted("granite", wide)


def test_gemma_has_wide_heads_and_a_tied_head_where_the_file_is_silent() -> None:
    model = read("gemma", USUAL | {"num_key_value_heads": 8})

    assert parameters(model).total == 1092160
    assert model.tied
    assert {"tie_word_embeddings true: default of gemma, not in the file",
            "head_dim 256: default of gemma, not in the file"} <= {*model.notes}  # fmt: skip


def test_a_model_with_one_head_of_keys_says_why() -> None:
    assert total("gpt_bigcode", GPT) == 93984
    assert "num_key_value_heads 1: one for all heads, as multi_query says" in noted("gpt_bigcode", GPT)


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        ("internlm3", USUAL | {"qkv_bias": True, "bias": True}, 381376),
        ("ernie4_5", USUAL | {"use_bias": True, "attention_bias": False}, 374976),
        ("helium", USUAL | {"num_key_value_heads": 8, "head_dim": 8, "attention_bias": True}, 83136),
        ("seed_oss", USUAL, 580416),
    ],
)
def test_biases_stand_where_the_switch_of_the_class_puts_them(kind: str, fields: dict[str, Any], expected: int) -> None:
    assert total(kind, fields) == expected


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        ("apertus", USUAL, 70500),  # two learned numbers in each activation
        ("bitnet", USUAL | {"num_key_value_heads": 8}, 83072),  # norms before the last matrices
        ("diffllama", USUAL, 82816),  # four vectors a layer weigh the difference of two softmaxes
        ("hyperclovax", USUAL, 83008),  # norms before and after
        ("gpt_neox_japanese", SMALL | {"intermediate_multiple_size": 2}, 72640),  # one bias, in the last layer
        ("openai-gpt", GPT, 108416),  # no final norm
        ("gpt-sw3", GPT, 108544),
        ("modernbert-decoder", USUAL, 80612),  # a matrix and a norm before the head
        ("modernbert-decoder", USUAL | {"num_hidden_layers": 1}, 45668),  # the first layer has one norm less
    ],
)
def test_what_a_family_has_beside_a_usual_layer_is_counted(kind: str, fields: dict[str, Any], expected: int) -> None:
    assert total(kind, fields) == expected


def test_nanochat_and_olmo_have_norms_without_parameters() -> None:
    for kind in ("nanochat", "olmo"):
        assert not [one for one in parameters(read(kind, USUAL)).components if "norm" in one.name]


# --- which layers see a window --------------------------------------------------------------------------------------


def spans(kind: str, fields: dict[str, Any]) -> list[int]:
    model = read(kind, USUAL | {"num_hidden_layers": 8, "num_key_value_heads": 8} | fields)
    found = [model.blocks[place].attention for place in model.pattern]
    return [attention.window for attention in found if attention]


def test_a_period_may_be_a_number_or_a_text() -> None:
    asked = {"sliding_window": 16}

    assert spans("exaone4", asked) == [16, 16, 16, 0] * 2
    assert spans("exaone4", asked | {"sliding_window_pattern": "LLLG"}) == [16, 16, 16, 0] * 2
    assert spans("exaone4", asked | {"sliding_window_pattern": 2}) == [16, 0] * 4
    assert spans("exaone4", asked | {"sliding_window_pattern": None}) == [0] * 8
    assert spans("exaone4", {"sliding_window": None}) == [0] * 8


@pytest.mark.parametrize("pattern", ["LGLG", "GLLL", "", "X", 0, -4, 1.5, True, [4]])
def test_a_period_that_is_none_is_refused_by_its_name(pattern: object) -> None:
    (fault,) = refused("exaone4", USUAL | {"num_key_value_heads": 8, "sliding_window_pattern": pattern})

    assert (fault.code, fault.what) == ("MOD005", "sliding_window_pattern cannot be used")


def test_ministral3_slides_everywhere_or_nowhere() -> None:
    listed = {"num_key_value_heads": 8, "layer_types": ["full_attention"] * 8}

    assert spans("ministral3", listed | {"sliding_window": 16}) == [16] * 8
    assert spans("ministral3", listed) == [0] * 8


def test_the_window_of_modernbert_is_half_of_what_it_calls_local() -> None:
    assert spans("modernbert-decoder", {"local_attention": 128}) == [0, 64, 64, 0, 64, 64, 0, 64]


def test_smollm3_slides_where_it_has_no_rotary_positions_and_only_when_switched_on() -> None:
    asked = {"sliding_window": 16, "no_rope_layers": [1, 0, 0, 1, 1, 1, 1, 0]}

    assert spans("smollm3", asked | {"use_sliding_window": True}) == [0, 16, 16, 0, 0, 0, 0, 16]
    assert spans("smollm3", asked) == [0] * 8


@pytest.mark.parametrize("listed", [4, "1010", [1, 0, 2, 1, 1, 1, 1, 1], [True] * 8, [[1]] * 8])
def test_a_list_of_rotary_layers_that_is_none_is_refused(listed: object) -> None:
    (fault,) = refused("smollm3", USUAL | {"num_hidden_layers": 8, "no_rope_layers": listed})

    assert (fault.code, fault.what) == ("MOD005", "no_rope_layers cannot be used")


NEO = {"vocab_size": 100, "hidden_size": 64, "num_layers": 6, "num_heads": 8, "max_position_embeddings": 32}


def test_gpt_neo_repeats_its_kinds_of_layer() -> None:
    model = read("gpt_neo", NEO | {"attention_types": [[["global"], 2], [["local", "global"], 2]], "window_size": 16})
    windows = [block.attention.window for block in model.blocks if block.attention]

    assert [windows[place] for place in model.pattern] == [0, 0, 16, 0, 16, 0]
    assert "attention_types [6 items]: global and local in turn" in noted("gpt_neo", NEO)


@pytest.mark.parametrize(
    "types",
    ["global", [["global", "local"]], [["global", 6]], [[["near"], 6]], [[["global"], -1]], [[["global"], "6"]],
     [[["global"], 10**9]], [[["global"] * 1000, 1000]], [3], [None], {"global": 6}],
)  # fmt: skip
def test_kinds_of_layer_that_cannot_be_repeated_are_refused(types: object) -> None:
    (fault,) = refused("gpt_neo", NEO | {"attention_types": types})

    assert (fault.code, fault.what) == ("MOD005", "attention_types cannot be used")


def test_kinds_of_layer_for_fewer_layers_than_there_are_contradict_the_file() -> None:
    (fault,) = refused("gpt_neo", NEO | {"attention_types": [[["global", "local"], 2]]})

    assert (fault.code, fault.got) == ("MOD006", "4 entries, 6 layers")


# --- differential attention and images ------------------------------------------------------------------------------


def cores(kind: str) -> float:
    """FLOPs that grow with the square of the sequence: what is left when the rest is taken away."""
    model = read(kind, USUAL)
    one, two = (layer_flops(model, Job(sequence_length=length, global_batch=1), ())[0] for length in (512, 1024))
    return two - 2 * one


def test_differential_attention_multiplies_its_scores_with_twice_the_values() -> None:
    assert cores("diffllama") == pytest.approx(1.5 * cores("llama"), rel=1e-12)


def test_llama_vision_has_its_published_language_model() -> None:
    """Counted from the tensors that transformers builds; the two files of the vision tower are not in it."""
    model = read("mllama_text_model", LLAMA_VISION)

    assert parameters(model).total == 87_666_865_192
    assert [model.blocks[kind].name for kind in model.pattern].count("cross_attention") == 20
    assert any("tokens of images" in note for note in model.notes)


def test_llama_vision_never_ties_its_head_which_has_fewer_rows_than_its_embedding() -> None:
    tied = LLAMA_VISION | {"tie_word_embeddings": True}

    assert total("mllama_text_model", tied) == 87_666_865_192


def test_the_language_model_of_llama_vision_is_found_in_its_wrapper() -> None:
    whole = {"model_type": "mllama", "text_config": LLAMA_VISION, "vision_config": {"hidden_size": 1280}}
    model = read_config(whole)

    assert (model.family, parameters(model).total) == ("mllama_text_model", 87_666_865_192)
    assert "vision_config: not counted" in model.notes


# --- blocks that were cut to size -----------------------------------------------------------------------------------


def test_nemotron_super_has_its_published_size_and_eight_kinds_of_block() -> None:
    model = read_config(NAS)

    assert parameters(model).total == 49_867_145_216
    assert len(model.blocks) == 8
    assert sum(model.blocks[place].attention is not None for place in model.pattern) == 49


def cut(attention: dict[str, Any] | None = None, ffn: dict[str, Any] | None = None) -> dict[str, Any]:
    """Two blocks of the family: the second as asked."""
    usual = {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 1.5}}
    own = {"attention": attention or usual["attention"], "ffn": ffn or usual["ffn"]}
    return SMALL | {"block_configs": [usual, own]}


def test_a_block_may_lack_a_part_or_have_one_matrix_in_its_place() -> None:
    full = total("nemotron-nas", cut())
    heads = 2 * 64 * 8 * (8 + 2)
    width = 3 * 64 * 256  # 2/3 x 1.5 x 64, rounded up to 256

    assert full - total("nemotron-nas", cut(attention={"no_op": True})) == heads + 64
    assert full - total("nemotron-nas", cut(ffn={"no_op": True})) == width + 64
    assert full - total("nemotron-nas", cut(ffn={"replace_with_linear": True})) == width - 64 * 64
    assert full - total("nemotron-nas", cut(attention={"replace_with_linear": True})) == heads - 64 * 64


def test_a_block_may_lack_both_parts() -> None:
    assert total("nemotron-nas", cut({"no_op": True}, {"no_op": True})) < total("nemotron-nas", cut())


@pytest.mark.parametrize(
    ("blocks", "name"),
    [
        (cut(attention={"n_heads_in_group": 3}), "block_configs[1].attention.n_heads_in_group"),
        (cut(attention={"n_heads_in_group": None}), "block_configs[1].attention.n_heads_in_group"),
        (cut(attention={"no_op": "yes"}), "block_configs[1].attention.no_op"),
        (cut(attention={"n_heads_in_group": 4, "window_length": 0}), "block_configs[1].attention.window_length"),
        (cut(ffn={"ffn_mult": "2"}), "block_configs[1].ffn.ffn_mult"),
        (cut(ffn={"ffn_mult": float("nan")}), "block_configs[1].ffn.ffn_mult"),
        (cut(ffn={"ffn_mult": 1e300}), "block_configs[1].ffn.ffn_mult"),
        (SMALL | {"block_configs": [{}, {}]}, "block_configs[0].attention"),
        (SMALL | {"block_configs": [1, 2]}, "block_configs"),
    ],
)
def test_a_block_that_cannot_be_built_is_refused_by_its_name(blocks: dict[str, Any], name: str) -> None:
    (fault,) = refused("nemotron-nas", blocks)

    assert (fault.code, fault.what) == ("MOD005", f"{name} cannot be used")


def test_fewer_blocks_than_layers_contradict_the_file() -> None:
    (fault,) = refused("nemotron-nas", cut() | {"num_hidden_layers": 3})

    assert fault.code == "MOD006"


# --- bad input, by the name of the key ------------------------------------------------------------------------------


def given(kind: str) -> dict[str, Any]:
    """A file of a family with the fields that it must give, each under the family's own key."""
    family = FAMILIES[kind]
    sizes = {"hidden": 64, "layers": 2, "heads": 8, "width": 96, "vocab": 100, "kv_heads": 8, "head_dim": 8}
    own = {"cross_layers": [1], "block_configs": cut()["block_configs"], "attention_types": [[["global", "local"], 1]]}
    names = [name for name in (*family.core, *family.defaults, *family.required) if name not in family.fixed]
    return {family.keys_of(name)[0]: (sizes | own)[name] for name in names if name in sizes | own}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_without_its_sizes_is_refused_by_the_keys_of_its_family(kind: str) -> None:
    family = FAMILIES[kind]
    needed = [name for name in CORE if name in family.core and name not in {*family.defaults, *family.fixed}]
    (fault,) = refused(kind, {key: value for key, value in given(kind).items() if key in family.keys_of("vocab")})

    assert fault.code == "MOD004"
    assert all(family.keys_of(name)[0] in fault.rule for name in needed if name != "vocab")


@pytest.mark.parametrize("kind", KINDS)
def test_a_null_a_text_and_a_zero_are_no_size(kind: str) -> None:
    key = FAMILIES[kind].keys_of("hidden")[0]

    assert [fault.code for fault in refused(kind, given(kind) | {key: None})] == ["MOD004"]
    for value in ("64", 0, -64, True, [64]):
        assert "MOD005" in [fault.code for fault in refused(kind, given(kind) | {key: value})]


@pytest.mark.parametrize("kind", KINDS)
def test_heads_that_do_not_divide_the_hidden_size_are_refused_where_nothing_else_gives_their_width(kind: str) -> None:
    family = FAMILIES[kind]
    own = {key: value for key, value in given(kind).items() if key not in ("head_dim", "num_key_value_heads")}
    if family.defaults.get("head_dim"):
        assert read(kind, own | {"head_dim": 8, "num_key_value_heads": 1, "num_attention_heads": 7}).layers == 2
        return
    (fault, *_) = refused(kind, own | {family.keys_of("heads")[0]: 7, "num_key_value_heads": 1})

    assert fault.code in ("MOD005", "MOD006")
    assert ("head_dim" in fault.fix) == ("head_dim" in family.reads() and fault.code == "MOD006")


def test_two_keys_for_one_field_must_agree() -> None:
    (fault,) = refused("mpt", MPT | {"hidden_size": 128})

    assert (fault.code, fault.what) == ("MOD006", "d_model and hidden_size disagree")
    assert read("mpt", MPT | {"hidden_size": 64}).hidden == 64


def test_an_activation_with_other_parameters_is_refused() -> None:
    (fault,) = refused("apertus", USUAL | {"hidden_act": "silu"})

    assert (fault.code, fault.what) == ("MOD005", "hidden_act cannot be used")


# --- models that are no decoders ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bert", "roberta", "t5", "bart", "whisper", "modernbert", "BERT"])
def test_an_encoder_is_refused_with_the_reason(kind: str) -> None:
    (fault,) = refused(kind, USUAL)

    assert (fault.code, fault.what) == ("MOD003", f'models of type "{kind.lower()}" are not counted')
    assert "outlay counts decoder-only language models" in fault.rule
    assert "encoder" in fault.rule
    assert fault.fix


def test_an_encoder_may_still_be_read_as_a_decoder_that_is_named() -> None:
    assert read_config({"model_type": "bert"} | USUAL, family="llama").family == "llama"


def test_no_type_is_counted_and_refused() -> None:
    assert not {*OTHERS} & {*FAMILIES}
