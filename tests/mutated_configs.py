"""Real config.json files with a few changes each, and what must hold of them: a model that counts, or a refusal."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from outlay.errors import InputError
from outlay.model.huggingface import read_config
from outlay.undivided import parameters

FILES = [
    json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parent / "configs").glob("*.json"))
]  # fmt: skip
WRONG = (None, True, False, "", "4096", "llama", [], [1], [1, -1], ["full_attention"], {}, {"a": 1}, 0, 1, 2, 3, 7)
FAR = (-1, -(10**9), 10**9, 10**12, 10**30, 0.5, 4096.0, float("nan"), float("inf"), 1e308)
OTHER_NAMES = ("hidden_size", "n_embd", "num_hidden_layers", "num_experts", "intermediate_size", "layer_types", "x")
PAIRS: tuple[dict[str, Any], ...] = (
    {"num_attention_heads": 7, "head_dim": None},
    {"num_key_value_heads": 3},
    {"num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 5},
    {"hidden_size": 64, "n_embd": 128, "d_model": 32},
    {"num_hidden_layers": 3, "n_layer": 4},
    {"layer_types": ["full_attention", "sliding_attention"], "num_hidden_layers": 3},
    {"model_type": "mixtral"},
    {"model_type": "deepseek_v4"},
    {"model_type": "nemotron_h", "hybrid_override_pattern": "M*-E"},
)


def _objects(value: Any) -> list[dict[str, Any]]:
    """Every object in a config that has keys, itself first; one of each list."""
    if isinstance(value, list):
        return _objects(value[0]) if value else []
    if not isinstance(value, dict) or not value:
        return []
    return [value, *(found for inner in value.values() for found in _objects(inner))]


@st.composite
def mutated_configs(draw: st.DrawFn) -> dict[str, Any]:
    """One real file with one to three changes."""
    config: dict[str, Any] = deepcopy(draw(st.sampled_from(FILES)))
    for _ in range(draw(st.integers(1, 3))):
        _change(draw, config)
    return config


def _change(draw: st.DrawFn, config: dict[str, Any]) -> None:
    found = _objects(config)
    if not found:
        return
    where = draw(st.sampled_from(found))
    key = draw(st.sampled_from(sorted(where)))
    how = draw(st.sampled_from(["delete", "wrong", "far", "rename", "pair", "list"]))
    if how == "delete":
        del where[key]
    elif how == "wrong":
        where[key] = deepcopy(draw(st.sampled_from(WRONG)))
    elif how == "far":
        where[key] = draw(st.sampled_from(FAR))
    elif how == "rename":
        where[draw(st.sampled_from(OTHER_NAMES))] = where.pop(key)
    elif how == "pair":
        where |= deepcopy(draw(st.sampled_from(PAIRS)))
    else:
        where[key] = [where[key]] * draw(st.integers(0, 3))


def check_mutated(config: dict[str, Any]) -> str:
    """A model whose parameters count, or a refusal whose faults each name a field and a way out."""
    try:
        model = read_config(config)
    except InputError as error:
        for fault in error.faults:
            assert fault.code.startswith("MOD")
            assert all((fault.what, fault.rule, fault.got, fault.fix))
            assert (fault.what + fault.rule + fault.got + fault.fix).isprintable()
        return "refused"
    counted = parameters(model)
    assert 0 < counted.active <= counted.total
    assert isinstance(counted.total, int)
    return "read"
