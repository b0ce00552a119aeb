"""Our parameters against the models that transformers builds, for real files and for random small configs."""

import json
from pathlib import Path
from typing import Any

import pytest
from param_oracle import CASES, class_defaults, layer_types, random_config

from outlay.model import catalogue
from outlay.model.families import FAMILIES, RENAMED, WRAPPERS
from outlay.model.huggingface import read_config
from outlay.undivided import parameters
from outlay.verify.comparisons.parameters import parameters_built, unread

CONFIGS = Path(__file__).parent.parent / "configs"
UNKNOWN = {"nemotron-nas"}  # transformers has no class of it
COUNTED = {*FAMILIES, *RENAMED, *WRAPPERS}
WHOLE = {path.stem: json.loads(path.read_text()) for path in sorted(CONFIGS.glob("*.json"))}
FILES = {name: config for name, config in WHOLE.items() if config.get("model_type") in COUNTED - UNKNOWN}
KNOWN = [name for name in catalogue.names() if catalogue.load(name).family not in UNKNOWN]
OWN = {"nemotron-nas", "step3p7_text"}  # families that transformers has no class for by itself
FRESH = [kind for kind in FAMILIES if kind in CASES]


def test_there_are_files_and_families_to_compare() -> None:
    assert len(FILES) > 10
    assert len(catalogue.names()) > 40


def counted(config: dict[str, Any]) -> int:
    """What we count: the sum of the operation rows, and what a class allocates without ever reading it."""
    model = read_config(config)
    return parameters(model).total + unread(model)


@pytest.mark.parametrize("name", FILES)
def test_a_whole_file_has_the_parameters_that_are_built(name: str) -> None:
    assert counted(FILES[name]) == parameters_built(FILES[name])


@pytest.mark.parametrize("name", KNOWN)
def test_a_model_of_the_catalogue_has_the_parameters_that_are_built(name: str) -> None:
    config = catalogue.entry(name).config

    assert counted(config) == parameters_built(config)


@pytest.mark.parametrize("kind", FRESH)
def test_fresh_small_configs_have_the_parameters_that_are_built(kind: str) -> None:
    built: dict[int, int] = {}
    for seed in range(12):
        config = random_config(kind, seed)
        try:
            built[seed] = parameters_built(config)
        except Exception:  # the class refuses some combinations of switches
            continue
        assert counted(config) == built[seed], config
        if len(built) == 3:
            break
    assert built


DEFAULTS = [(kind, name) for kind, family in FAMILIES.items() if kind not in OWN for name in family.defaults]
# Fields that a class takes as an argument and turns into others: the whole default model is their test.
ARGUMENTS = {
    "window_period", "full_period", "index_period", "index_offset", "expert_period", "first_expert_layer",
    "router_bias", "global_head_dim", "tied", "gating",
}  # fmt: skip
# Fields that follow from others here, and have a number of their own in the class: it must agree with those.
FOLLOW = {("mamba2", "scan_head_dim"), ("zamba2", "layers"), ("nemotron_h", "layers"), ("opt", "without_final_norm")}


@pytest.mark.parametrize(("kind", "name"), DEFAULTS)
def test_a_default_is_that_of_the_class(kind: str, name: str) -> None:
    family = FAMILIES[kind]
    stands, holds = class_defaults(kind, family.keys_of(name))
    ours = family.defaults[name]

    if ours is None:
        assert (kind, name) in FOLLOW or all(value in ("auto", []) for value in stands)
    elif not stands and not holds:
        assert name in ARGUMENTS
    else:
        first = (stands or holds)[0]  # under the first key that the class has, as it stands there
        assert first in (ours, _listed(ours)) or (name == "gating" and str(first).lower() == ours)


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("kind", ["gpt_oss", "gemma2", "olmo3", "qwen2", "qwen3"])
def test_the_rule_of_sliding_layers_is_that_of_the_class(kind: str) -> None:
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 9, "vocab_size": 100}
    config = sizes | {"num_attention_heads": 8, "num_key_value_heads": 4, "use_sliding_window": True}
    config |= {"sliding_window": 16, "max_window_layers": 5}
    model = read_config(config | {"model_type": kind})

    spans = ["sliding_attention" if model.blocks[i].attention.window else "full_attention" for i in model.pattern]
    assert spans == layer_types(kind, config)
