"""What transformers builds: parameters of a config's model on the meta device, tied ones once, buffers never."""

import csv
import json
import os
import random
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
from transformers.utils import logging

from outlay.model.families import RENAMED, WRAPPERS

logging.set_verbosity_error()


def parameters_built(config: dict[str, Any]) -> int:
    """Parameters of the language model that transformers builds from a config, wrapper or not."""
    kind, fields = text_fields(config)
    # A padding token outside the vocabulary is refused by the class; which one it is changes no count.
    settings = AutoConfig.for_model(kind, **{"pad_token_id": 0, **fields})
    if type(settings) not in AutoModelForCausalLM._model_mapping:
        return _built_inside(config["model_type"], settings, fields)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(settings)
    return sum(weight.numel() for weight in model.parameters())


def _built_inside(kind: str, settings: Any, fields: dict[str, Any]) -> int:
    """The same of a language model that has a class inside its wrapper alone; a flat file is the wrapper's text."""
    wrapper = kind if kind in WRAPPERS else next(name for name, held in WRAPPERS.items() if held.text == kind)
    text = fields if settings.model_type == wrapper else settings
    tied = fields.get("tie_word_embeddings", getattr(settings, "tie_word_embeddings", False))
    whole = AutoConfig.for_model(THINKERS.get(wrapper, wrapper), text_config=text, tie_word_embeddings=tied)
    with torch.device("meta"):
        model = AutoModelForImageTextToText.from_config(whole)
    beside = ("visual", "vision", "audio", "projector")
    return sum(weight.numel() for name, weight in model.named_parameters() if not any(part in name for part in beside))


THINKERS = {"qwen2_5_omni": "qwen2_5_omni_thinker", "qwen3_omni_moe": "qwen3_omni_moe_thinker"}


def text_fields(config: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The language model's type, as transformers knows it, and its fields; the tie flag is that of the whole."""
    part = config.get("text_config", config)
    fields = {key: value for key, value in part.items() if key not in DROPPED}
    kind = part["model_type"]
    if kind == "dbrx":  # the class needs it, and it changes no count
        fields["attn_config"] = {"rope_theta": 1e4} | fields["attn_config"]
    if part is not config:
        wrapper = WRAPPERS[config["model_type"]]
        fields["tie_word_embeddings"] = config.get("tie_word_embeddings", wrapper.tied)
    return RENAMED.get(kind, kind), fields


DROPPED = {"model_type", "auto_map", "quantization_config", "rope_scaling", "rope_parameters", "pad_token_id"}


def class_defaults(kind: str, keys: tuple[str, ...]) -> tuple[list[Any], list[Any]]:
    """What a class takes for a field that a file leaves out, under any of its keys: as it stands in the class, and in
    one that was made of nothing."""
    made = AutoConfig.for_model(kind)
    found = ([_at(owner, key) for key in keys] for owner in (type(made), made))
    stands, holds = ([value for value in values if value is not None] for values in found)
    return stands, holds


def _at(owner: Any, key: str) -> Any:
    """A setting, inside an object where the key has a dot; None where there is none, or one a layer."""
    for step in key.split("."):
        try:
            owner = owner.get(step) if isinstance(owner, dict) else getattr(owner, step, None)
        except Exception:  # a setting that each layer has for itself
            return None
    return None if isinstance(owner, property) or callable(owner) else owner


def layer_types(kind: str, fields: dict[str, Any]) -> list[str]:
    """The kind of attention of each layer, by the rule of the class."""
    return list(AutoConfig.for_model(kind, **fields).layer_types)


CASES: dict[str, list[dict[str, Any]]] = {}
for row in csv.DictReader((Path(__file__).parents[1] / "families_cases.csv").read_text(encoding="utf-8").splitlines()):
    CASES.setdefault(row["model_type"], []).append(json.loads(row["fields"]))


def random_config(kind: str, seed: int) -> dict[str, Any]:
    """A fresh small config of a family: one of its known ones with other sizes, switches flipped, layers shuffled."""
    draw = random.Random(f"{kind} {seed}")
    known = CASES[kind]
    config = dict(draw.choice(known)) | {"model_type": kind, "vocab_size": draw.randrange(300, 900)}
    switches = {key for one in known for key, value in one.items() if isinstance(value, bool)}
    for key in sorted({*switches, "tie_word_embeddings"}):
        if draw.random() < 0.5:
            config[key] = draw.random() < 0.5
    for key, value in list(config.items()):
        if key in WIDTHS and isinstance(value, int):
            config[key] = value + 8 * draw.randrange(5)
        if key in SHUFFLED and isinstance(value, list):
            config[key] = draw.sample(value, len(value))
    if config.get("qk_layernorm"):
        config.pop("head_dim", None)  # the class builds norms of another width than its heads, which cannot run
    return config


WIDTHS = {
    "intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size", "n_inner", "ffn_dim",
    "intermediate_size_mlp", "shared_intermediate_size", "moe_shared_expert_intermediate_size",
}  # fmt: skip
SHUFFLED = {"layer_types", "mlp_layer_types"}
