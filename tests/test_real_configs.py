"""Fifty-five config.json files of public models: each is read, and has the parameters that transformers builds."""

import json
from pathlib import Path
from typing import Any

import pytest

from outlay import Job
from outlay.model.huggingface import read_config
from outlay.undivided import parameters, sequence_flops
from test_families import table
from test_huggingface import CONFIGS, codes, faults, llama

ROWS = table("real_configs.csv")


def fields(name: str) -> dict[str, Any]:
    """The object in one file."""
    found: dict[str, Any] = json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def test_every_file_has_a_row_and_a_source() -> None:
    files = {path.stem for path in CONFIGS.glob("*.json")}
    sources = Path(CONFIGS / "SOURCES.md").read_text(encoding="utf-8")

    assert files == {row["file"] for row in ROWS}
    assert all(f"| {name}.json |" in sources for name in files)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_a_file_has_the_total_and_the_active_parameters_of_its_model(row: dict[str, str]) -> None:
    counted = parameters(read_config(CONFIGS / f"{row['file']}.json"))

    assert (counted.total, counted.active) == (int(row["total"]), int(row["active"]))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_a_short_sequence_takes_two_flops_for_each_active_matrix_parameter(row: dict[str, str]) -> None:
    """A token alone meets every matrix once; the table of an untied embedding is a lookup, norms are no products.

    A scan works on whole chunks however short the sequence is: 3 % more where most layers have one.
    """
    model = read_config(CONFIGS / f"{row['file']}.json")
    flops = sequence_flops(model, Job(sequence_length=1, global_batch=1)) / 2
    lookup = 0 if model.tied else (model.vocab + model.spare_vectors) * (model.embedding_width or model.hidden)
    active = parameters(model).active - lookup

    assert 0.99 * active < flops < 1.04 * active


# --- where the language model stands ----------------------------------------------------------------------------------


def test_a_language_model_two_levels_deep_is_found() -> None:
    thinker = {"text_config": llama(model_type="qwen2_5_omni_text", num_key_value_heads=4), "vision_config": {}}
    whole = {"model_type": "qwen2_5_omni", "thinker_config": thinker, "talker_config": {"hidden_size": 8}}
    model = read_config(whole)

    assert (model.family, model.hidden, model.tied) == ("qwen2_5_omni_text", 64, False)
    assert "thinker_config.text_config: the language model alone is counted" in model.notes
    assert {"vision_config: not counted", "talker_config: not counted"} <= {*model.notes}


def test_the_nearest_holder_of_a_deep_part_has_its_tie_flag() -> None:
    part = llama(model_type="qwen2_5_omni_text", num_key_value_heads=4)
    thinker = {"tie_word_embeddings": True, "text_config": part}

    assert read_config({"model_type": "qwen2_5_omni", "thinker_config": thinker}).tied
    assert read_config({"model_type": "qwen2_5_omni", "tie_word_embeddings": False, "thinker_config": thinker}).tied


def test_a_language_model_called_llm_config_is_found() -> None:
    model = read_config({"model_type": "ovis", "hidden_size": 8, "llm_config": llama(tie_word_embeddings=True)})

    assert (model.hidden, model.tied) == (64, True)


def test_a_flat_file_of_a_wrapper_is_its_language_model() -> None:
    """The class of transformers would build its default model instead, in silence."""
    model = read_config(CONFIGS / "step-3.7-flash.json")

    assert (model.vocab, model.layers) == (128_896, 45)


# --- what is missing, and what that means -----------------------------------------------------------------------------


def test_key_value_heads_that_are_missing_are_as_many_as_the_heads() -> None:
    attention = read_config(llama()).blocks[0].attention

    assert attention and attention.kv_heads == attention.heads == 8


def test_a_hidden_size_that_is_missing_is_named() -> None:
    config = fields("llama-3.1-8b")
    del config["hidden_size"]
    (fault,) = faults(config)

    assert (fault.code, fault.fix) == ("MOD004", "add hidden_size to the file")


def test_a_hidden_size_that_the_heads_do_not_divide_is_refused() -> None:
    config = fields("llama-2-7b") | {"hidden_size": 4097}
    config.pop("head_dim", None)

    assert codes(config) == ["MOD006"]


def test_bloom_writes_layers_and_heads_under_its_own_names() -> None:
    model = read_config(CONFIGS / "bloom-176b-assembled.json")

    assert model.layers == 70
    assert model.blocks[0].attention and model.blocks[0].attention.heads == 112


def test_a_type_that_is_not_known_is_refused_with_the_nearest_and_a_way_out() -> None:
    (fault,) = faults(llama(model_type="phi4_multimodal"))

    assert fault.code == "MOD003"
    assert "--as" in fault.fix
