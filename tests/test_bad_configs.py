"""Configs that cannot be read: each is refused with what, rule, got and fix, all faults at once, never a traceback."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from mutated_configs import check_mutated, mutated_configs
from outlay.model.huggingface import read_config
from test_huggingface import CONFIGS, DEEPSEEK, LLAMA, codes, faults, llama


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert codes(tmp_path / "none.json") == codes(str(tmp_path / "none")) == codes("") == ["MOD001"]


def test_a_folder_without_a_config_is_refused(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path)

    assert fault.code == "MOD001"


def test_a_path_that_is_not_a_plain_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")

    assert codes(tmp_path / "pipe.json") == codes("a" * 5000) == codes("null\0character") == ["MOD001"]


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b'{"hidden_size": }', b"\xff\xfe{}", b'"text"', b"[]", b"3", b"null", b"[" * 100_000,
        b'{"hidden_size": ' + b"9" * 5000 + b"}",
    ],
    ids=range(10),
)  # fmt: skip
def test_what_is_not_one_json_object_is_refused(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(text)

    assert codes(text) == codes(tmp_path / "config.json") == ["MOD002"]


def test_a_file_far_larger_than_a_config_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(json.dumps(LLAMA).encode() + b" " * 2**24)
    (fault,) = faults(tmp_path)

    assert (fault.code, fault.got) == ("MOD002", "more than 16,777,216 bytes")


@pytest.mark.parametrize("source", [None, 3, [LLAMA], object()], ids=["none", "number", "list", "object"])
def test_a_source_of_another_kind_is_refused(source: Any) -> None:
    assert codes(source) == ["MOD002"]


def test_a_byte_order_mark_does_no_harm() -> None:
    assert read_config(b"\xef\xbb\xbf" + json.dumps(LLAMA).encode()).hidden == 64


@pytest.mark.parametrize(
    "value", ["true", '"64"', "0", "-64", "64.5", "NaN", "Infinity", "1e400", "[64]", "{}", "1000000001", "9" * 400]
)
@pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "vocab_size", "max_position_embeddings"])
def test_a_size_that_is_no_whole_number_in_range_is_refused(key: str, value: str) -> None:
    text = json.dumps(llama(**{key: "HERE"})).replace('"HERE"', value)
    (fault,) = faults(text)

    assert fault.code == "MOD005"
    assert fault.what.startswith(key)


def test_a_whole_number_written_as_a_float_is_that_number() -> None:
    assert read_config(llama(hidden_size=64.0)).hidden == 64


def test_a_model_of_a_million_layers_is_refused_before_it_is_built() -> None:
    assert codes(llama(num_hidden_layers=1_000_000)) == ["MOD005"]


def test_a_switch_that_is_not_true_or_false_is_refused() -> None:
    assert codes(llama(tie_word_embeddings="yes", attention_bias=1)) == ["MOD005", "MOD005"]


def test_a_dropout_that_is_no_share_is_refused() -> None:
    assert codes(llama(attention_dropout=1.5)) == codes(llama(attention_dropout=float("nan"))) == ["MOD005"]


def test_missing_fields_are_named_together() -> None:
    (fault,) = faults({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 100})

    assert fault.code == "MOD004"
    assert fault.what == "2 fields are missing from config.json"
    assert fault.rule == "a llama-type model needs num_hidden_layers and intermediate_size"
    assert fault.fix == "add num_hidden_layers and intermediate_size to the file"


def test_missing_fields_that_a_part_holds_are_pointed_at() -> None:
    top = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 100}
    (fault,) = faults(top | {"text_config": LLAMA})

    assert fault.code == "MOD004"
    assert fault.got == "keys: hidden_size, num_attention_heads, vocab_size, text_config {6 keys}"
    assert fault.fix == "the language model seems to be under text_config: --part text_config"
    assert read_config(top | {"text_config": LLAMA}, part="text_config").layers == 4


def test_the_wrong_part_is_answered_with_the_right_one() -> None:
    (fault,) = faults(CONFIGS / "qwen3-vl-30b-a3b.json", part="vision_config")

    assert fault.code == "MOD004"
    assert "--part text_config" in fault.fix


def test_a_model_whose_layers_differ_in_shape_is_not_counted_as_llama() -> None:
    (fault,) = faults(CONFIGS / "nemotron-super-49b.json", family="llama")

    assert "intermediate_size" in fault.rule


def test_heads_that_do_not_divide_the_hidden_size_need_a_head_dim() -> None:
    (fault,) = faults(llama(num_attention_heads=7))

    assert (fault.code, fault.got) == ("MOD006", "64 / 7")
    assert read_config(llama(num_attention_heads=7, head_dim=8)).blocks[0].attention.head_dim == 8


def test_key_value_heads_divide_the_attention_heads() -> None:
    assert codes(llama(num_key_value_heads=3)) == codes(llama(num_key_value_heads=16)) == ["MOD006"]


def test_a_token_is_not_sent_to_more_experts_than_there_are() -> None:
    assert codes(DEEPSEEK | {"num_experts_per_tok": 9}) == ["MOD006"]
    experts = read_config(DEEPSEEK | {"num_experts_per_tok": 8}).blocks[-1].experts
    assert experts and experts.active == 8


def test_layer_types_name_every_layer_and_only_known_kinds() -> None:
    base = llama(model_type="qwen3", num_key_value_heads=4)

    assert codes(base | {"layer_types": ["full_attention"] * 3}) == ["MOD006"]
    assert codes(base | {"layer_types": ["linear_attention"] * 4}) == ["MOD005"]
    assert codes(base | {"layer_types": "full_attention"}) == ["MOD005"]
    assert read_config(base | {"layer_types": ["full_attention"] * 9}).layers == 4


def test_a_layer_list_that_is_no_list_of_layers_is_refused() -> None:
    base = llama(model_type="qwen3_moe", num_key_value_heads=4)

    assert codes(base | {"mlp_only_layers": [0, True]}) == codes(base | {"mlp_only_layers": 3}) == ["MOD005"]
    assert codes(base | {"decoder_sparse_step": 0}) == ["MOD005"]


def test_two_keys_for_one_field_must_agree() -> None:
    gpt2 = llama(model_type="gpt2", n_embd=128)

    assert codes(gpt2) == ["MOD006"]
    assert read_config(gpt2 | {"n_embd": 64}).hidden == 64


def test_deepseek_v2_says_how_many_experts_a_token_is_sent_to() -> None:
    config = {key: value for key, value in DEEPSEEK.items() if key != "num_experts_per_tok"}

    assert codes(config | {"model_type": "deepseek_v2"}) == ["MOD004"]


def test_every_fault_of_a_file_is_found_at_once() -> None:
    config = llama(hidden_size=-1, num_key_value_heads=3, tie_word_embeddings=0, head_dim=1.5)
    del config["vocab_size"]

    assert codes(config) == ["MOD004", "MOD005", "MOD005", "MOD005", "MOD006"]


def test_a_text_of_the_user_is_shown_escaped_and_short() -> None:
    (fault,) = faults(llama(model_type="\x1b[31m" + "x" * 100))

    assert "\x1b" not in fault.what + fault.got
    assert len(fault.what) < 100


# --- real files, changed ----------------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(mutated_configs())
def test_a_real_config_that_is_changed_is_a_model_or_a_refusal_that_names_a_field(config: dict[str, Any]) -> None:
    check_mutated(config)
