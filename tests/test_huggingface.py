"""Reading config.json: what each key means, what is taken by default, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.errors import Fault, InputError
from outlay.model.families import FAMILIES, FIELDS
from outlay.model.huggingface import read_config
from outlay.undivided import parameters

CONFIGS = Path(__file__).parent / "configs"
LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "vocab_size": 100,
}
DEEPSEEK: dict[str, Any] = LLAMA | {"model_type": "deepseek_v3", "n_routed_experts": 8, "num_experts_per_tok": 2}


def faults(source: Any, **options: Any) -> tuple[Fault, ...]:
    """The faults of a source that must be refused; each has its four parts and a code."""
    with pytest.raises(InputError) as caught:
        read_config(source, **options)
    found = caught.value.faults
    assert found
    for fault in found:
        assert fault.code.startswith("MOD")
        assert all((fault.what, fault.rule, fault.got, fault.fix))
        assert (fault.what + fault.rule + fault.got + fault.fix).isprintable()
    return found


def codes(source: Any, **options: Any) -> list[str]:
    return [fault.code for fault in faults(source, **options)]


def llama(**changed: Any) -> dict[str, Any]:
    return LLAMA | changed


# --- what the keys mean ---------------------------------------------------------------------------------------------


def test_a_path_a_folder_a_text_bytes_and_a_dict_give_the_same_model(tmp_path: Path) -> None:
    text = (CONFIGS / "llama-3.1-70b.json").read_text()
    (tmp_path / "config.json").write_text(text)
    path = CONFIGS / "llama-3.1-70b.json"
    sources = [path, str(path), tmp_path, tmp_path / "config.json", text, text.encode(), json.loads(text)]

    models = [read_config(source, name="x") for source in sources]

    assert all(model == models[0] for model in models)
    assert parameters(models[0]).total == 70_553_706_496


def test_a_model_is_named_after_its_file_or_its_folder(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text(json.dumps(LLAMA))

    assert read_config(CONFIGS / "llama-3.1-8b.json").name == "llama-3.1-8b"
    assert read_config(tmp_path / "mine").name == "mine"
    assert read_config(LLAMA).name == "llama"
    assert read_config(LLAMA, name="probe").name == "probe"


def test_key_value_heads_that_are_null_or_absent_are_the_attention_heads() -> None:
    for config in (LLAMA, llama(num_key_value_heads=None)):
        assert read_config(config).blocks[0].attention.kv_heads == 8
    assert read_config(llama(model_type="mistral", num_key_value_heads=None)).blocks[0].attention.kv_heads == 8


def test_a_head_dim_in_the_file_is_used_even_where_it_is_not_hidden_over_heads() -> None:
    assert read_config(llama(head_dim=24)).blocks[0].attention.head_dim == 24
    assert read_config(llama(model_type="qwen2", num_key_value_heads=4, head_dim=24)).blocks[0].attention.head_dim == 24
    assert read_config(LLAMA).blocks[0].attention.head_dim == 8


def test_a_head_dim_absent_takes_the_number_of_the_class_where_it_has_one() -> None:
    assert read_config(llama(model_type="qwen3", num_key_value_heads=4)).blocks[0].attention.head_dim == 128


def test_the_intermediate_size_is_the_width_of_an_expert_in_mixtral_and_gpt_oss() -> None:
    for kind in ("mixtral", "gpt_oss"):
        block = read_config(llama(model_type=kind)).blocks[0]
        assert block.feed_forward is None
        assert block.experts and block.experts.expert_width == 96


def test_gpt_oss_slides_every_other_layer_from_the_first() -> None:
    model = read_config(CONFIGS / "gpt-oss-20b.json")

    assert [model.blocks[kind].attention.window for kind in model.pattern] == [128, 0] * 12
    assert [block.name for block in model.blocks] == ["sliding", "full"]


def test_olmo3_without_a_list_slides_three_layers_of_four() -> None:
    given_list = read_config(CONFIGS / "olmo-3.1-32b.json")
    config = json.loads((CONFIGS / "olmo-3.1-32b.json").read_text())
    by_rule = read_config({key: value for key, value in config.items() if key != "layer_types"})

    assert by_rule.pattern == given_list.pattern == (0, 0, 0, 1) * 16


def test_qwen2_slides_only_when_switched_on_and_only_its_last_layers() -> None:
    base = llama(model_type="qwen2", num_key_value_heads=4, sliding_window=16, max_window_layers=3)

    assert [block.name for block in read_config(base).blocks] == ["dense"]
    on = read_config(base | {"use_sliding_window": True})
    assert [on.blocks[kind].attention.window for kind in on.pattern] == [0, 0, 0, 16]


def test_mistral_slides_on_every_layer_and_a_null_window_is_none() -> None:
    assert read_config(llama(model_type="mistral", sliding_window=16)).blocks[0].attention.window == 16
    assert read_config(llama(model_type="mistral", sliding_window=None)).blocks[0].attention.window == 0


def test_qwen3_moe_mixes_dense_and_expert_layers_by_step_and_by_list() -> None:
    base = llama(model_type="qwen3_moe", num_experts=4, num_experts_per_tok=2, decoder_sparse_step=2)
    model = read_config(base | {"mlp_only_layers": [3]})

    assert [model.blocks[kind].name for kind in model.pattern] == ["dense", "moe", "dense", "dense"]


def test_deepseek_begins_with_dense_layers_and_sums_its_shared_experts() -> None:
    model = read_config(DEEPSEEK | {"n_shared_experts": 2, "moe_intermediate_size": 40, "first_k_dense_replace": 1})

    assert [model.blocks[kind].name for kind in model.pattern] == ["dense", "moe", "moe", "moe"]
    assert model.blocks[1].experts and model.blocks[1].experts.shared_width == 80


def test_latent_attention_without_a_query_rank_projects_straight_from_the_hidden_vector() -> None:
    part = read_config(CONFIGS / "deepseek-v2-lite.json").blocks[0].attention

    assert (part.query_rank, part.latent_rank, part.head_dim, part.rope_dim, part.value_dim) == (0, 512, 128, 64, 128)
    assert part.kv_heads == part.heads == 16


def test_multi_token_prediction_is_announced_and_stays_outside() -> None:
    model = read_config(CONFIGS / "deepseek-v3.json")

    assert model.mtp_layers == 1
    assert model.layers == 61
    assert any("multi-token prediction" in note for note in model.notes)


def test_dropout_is_seen_under_each_of_its_names() -> None:
    gpt2 = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100}

    assert read_config(gpt2).dropout
    assert not read_config(gpt2 | {"resid_pdrop": 0.0, "attn_pdrop": 0}).dropout
    assert read_config(llama(attention_dropout=0.1)).dropout
    assert read_config(llama(model_type="gpt_neox", hidden_dropout=0.1)).dropout
    assert not read_config(LLAMA).dropout


def test_the_trained_length_is_said_under_each_of_its_names() -> None:
    bloom = llama(model_type="bloom")

    assert read_config(llama(max_position_embeddings=2048)).trained_length == 2048
    assert read_config(bloom | {"seq_length": 512}).trained_length == 512
    assert read_config(bloom).trained_length == 0
    gpt2 = read_config(llama(model_type="gpt2", n_positions=256))
    assert (gpt2.trained_length, gpt2.positions) == (256, 256)


def test_each_default_of_the_class_is_said_in_the_notes() -> None:
    notes = read_config(llama(model_type="mistral")).notes

    assert "num_key_value_heads 8: default of mistral, not in the file" in notes
    assert "sliding_window 4096: default of mistral, not in the file" in notes
    assert "tie_word_embeddings false: default of mistral, not in the file" in notes


# --- wrappers and types ---------------------------------------------------------------------------------------------


def test_the_language_model_of_a_wrapper_is_read_and_the_rest_is_announced() -> None:
    model = read_config(CONFIGS / "qwen3-vl-30b-a3b.json")

    assert (model.family, model.layers, model.tied) == ("qwen3_moe", 48, False)
    assert "vision_config: not counted" in model.notes


def test_the_tie_flag_of_a_wrapper_wins_over_the_part() -> None:
    part = llama(model_type="qwen3_vl_text", num_key_value_heads=4, tie_word_embeddings=True)

    assert not read_config({"model_type": "qwen3_vl", "text_config": part}).tied
    assert read_config({"model_type": "qwen3_vl", "tie_word_embeddings": True, "text_config": part}).tied
    assert read_config({"model_type": "kimi_k25", "text_config": DEEPSEEK | {"tie_word_embeddings": False}}).tied
    assert read_config({"model_type": "unheard_of", "text_config": llama(tie_word_embeddings=True)}).tied


@pytest.mark.parametrize("place", ["text_config", "llm_config", "thinker_config.text_config"])
def test_the_usual_places_of_a_language_model_are_tried(place: str) -> None:
    config: dict[str, Any] = LLAMA
    for step in reversed(place.split(".")):
        config = {step: config}

    assert read_config(config).hidden == 64


def test_a_part_without_a_type_is_of_the_type_that_the_whole_names() -> None:
    part = {key: value for key, value in LLAMA.items() if key != "model_type"}

    assert read_config({"model_type": "llama", "text_config": part}).family == "llama"
    wrapped = {"model_type": "qwen3_vl", "text_config": part | {"num_key_value_heads": 8}}
    assert read_config(wrapped).family == "qwen3"
    assert codes({"model_type": "unheard_of", "text_config": part}) == ["MOD003"]


def test_a_width_of_the_whole_is_no_language_model_where_the_type_is_unknown() -> None:
    assert read_config({"model_type": "unheard_of", "hidden_size": 8, "llm_config": LLAMA}).hidden == 64
    assert read_config(llama(text_config={"hidden_size": 8})).hidden == 64


def test_a_part_can_be_named() -> None:
    config = {"model_type": "unheard_of", "inner": {"decoder": LLAMA}}

    assert read_config(config, part="inner.decoder").hidden == 64
    assert codes(config, part="decoder") == ["MOD008"]


def test_mimo_and_kimi_are_read_as_the_families_they_share_layers_with() -> None:
    mimo = read_config(CONFIGS / "mimo-7b.json")

    assert (mimo.family, parameters(mimo).total) == ("qwen2", 7_622_619_136)
    assert any("mimo" in note for note in mimo.notes)
    assert read_config(CONFIGS / "kimi-k2.5.json").family == "deepseek_v3"


def test_an_unknown_type_is_refused_with_a_near_one_and_a_way_out() -> None:
    (fault,) = faults(llama(model_type="unheard_of"))
    assert fault.code == "MOD003"
    assert "--as llama" in fault.fix

    (fault,) = faults(llama(model_type="qwen3-moe"))
    assert "qwen3_moe" in fault.fix
    assert "qwen3_moe" in fault.rule and len(fault.rule) < 150


def test_as_reads_an_unknown_type_as_a_family_and_says_so() -> None:
    model = read_config(llama(model_type="unheard_of"), family="llama")

    assert model.family == "llama"
    assert any("unheard_of" in note for note in model.notes)
    (fault,) = faults(LLAMA, family="lama")
    assert (fault.code, fault.fix) == ("MOD003", "--as llama")


def test_a_config_without_a_type_is_refused_with_its_architecture_as_a_hint() -> None:
    config = {key: value for key, value in LLAMA.items() if key != "model_type"}

    (fault,) = faults(config | {"architectures": ["Qwen3MoeForCausalLM"]})
    assert fault.fix == "--as qwen3_moe"
    assert codes(config) == codes(config | {"model_type": ["llama"]}) == ["MOD003"]


def test_code_named_by_the_config_is_never_run(tmp_path: Path) -> None:
    (tmp_path / "modeling.py").write_text("raise SystemExit('run')")
    (tmp_path / "config.json").write_text(json.dumps(llama(auto_map={"AutoConfig": "modeling.Config"})))

    assert read_config(tmp_path).hidden == 64


# --- anything -------------------------------------------------------------------------------------------------------

KEYS = sorted({key for field in FIELDS.values() for key in field.keys} | {"model_type", "text_config", "rope_scaling"})
leaves = st.none() | st.booleans() | st.integers(-2, 10**10) | st.floats() | st.text(max_size=5)
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))
objects = st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), values, max_size=12)


def layers_or_refusal(source: Any, **options: Any) -> int:
    """How many layers were read, or minus the number of faults. Anything but an InputError fails the test."""
    try:
        return read_config(source, **options).layers
    except InputError as error:
        return -len(error.faults)


@given(objects, st.none() | st.sampled_from([*FAMILIES, "text_config"]), st.none() | st.sampled_from(["text_config"]))
def test_any_object_is_a_model_or_an_input_error(config: dict[str, Any], family: str | None, part: str | None) -> None:
    assert layers_or_refusal(config, family=family, part=part) != 0


@given(st.sampled_from([*FAMILIES]), st.sampled_from(KEYS), values)
def test_any_one_bad_value_in_a_good_config_is_an_input_error_at_worst(kind: str, key: str, value: Any) -> None:
    assert layers_or_refusal(DEEPSEEK | {"model_type": kind, "num_key_value_heads": 4, key: value}) != 0


@given(values | st.binary(max_size=20) | st.text(max_size=20))
def test_any_source_is_an_input_error(source: Any) -> None:
    assert layers_or_refusal(source) < 0
