"""Our parameters against the models that transformers builds, for real files and for random small configs."""

import json
from pathlib import Path
from typing import Any

import pytest
from param_oracle import class_default, layer_types, parameters_built, random_config

from closed_forms import model_parameters
from outlay.model import catalogue
from outlay.model.families import FAMILIES, RENAMED, WRAPPERS
from outlay.model.huggingface import read_config
from outlay.model.model import Model

CONFIGS = Path(__file__).parent.parent / "configs"
COUNTED = {*FAMILIES, *RENAMED, *WRAPPERS}
WHOLE = {path.stem: json.loads(path.read_text()) for path in sorted(CONFIGS.glob("*.json"))}
FILES = {name: config for name, config in WHOLE.items() if config.get("model_type") in COUNTED}
RANDOM = [(kind, seed) for kind in FAMILIES for seed in range(5)]


def test_there_are_files_and_families_to_compare() -> None:
    assert len(FILES) > 10
    assert len(catalogue.names()) > 40


def counts(config: dict[str, Any]) -> set[int]:
    """What we count: the closed form, and the sum of the operation rows."""
    model = read_config(config)
    return {model_parameters(model), *row_totals(model)}


def row_totals(model: Model) -> list[int]:
    try:
        from outlay.undivided import parameters
    except ImportError:
        return []
    return [parameters(model).total]


@pytest.mark.parametrize("name", FILES)
def test_a_whole_file_has_the_parameters_that_are_built(name: str) -> None:
    assert counts(FILES[name]) == {parameters_built(FILES[name])}


@pytest.mark.parametrize("name", catalogue.names())
def test_a_model_of_the_catalogue_has_the_parameters_that_are_built(name: str) -> None:
    config = catalogue.entry(name).config

    assert counts(config) == {parameters_built(config)}


@pytest.mark.parametrize(("kind", "seed"), RANDOM, ids=[f"{kind}-{seed}" for kind, seed in RANDOM])
def test_a_random_small_config_has_the_parameters_that_are_built(kind: str, seed: int) -> None:
    config: dict[str, Any] = random_config(kind, seed)

    assert counts(config) == {parameters_built(config)}


DEFAULTS = [(kind, name) for kind, family in FAMILIES.items() for name in family.defaults]


@pytest.mark.parametrize(("kind", "name"), DEFAULTS)
def test_a_default_is_that_of_the_class(kind: str, name: str) -> None:
    family = FAMILIES[kind]

    assert class_default(kind, family.keys_of(name)) == family.defaults[name]


@pytest.mark.parametrize("kind", ["gpt_oss", "gemma2", "olmo3", "qwen2", "qwen3"])
def test_the_rule_of_sliding_layers_is_that_of_the_class(kind: str) -> None:
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 9, "vocab_size": 100}
    config = sizes | {"num_attention_heads": 8, "num_key_value_heads": 4, "use_sliding_window": True}
    config |= {"sliding_window": 16, "max_window_layers": 5}
    model = read_config(config | {"model_type": kind})

    spans = ["sliding_attention" if model.blocks[i].attention.window else "full_attention" for i in model.pattern]
    assert spans == layer_types(kind, config)
