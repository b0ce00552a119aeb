"""A config.json as transformers takes it: its language model, fewer layers, and the model that its class builds.

Nothing has data: a model stands on the meta device, or inside a fake mode that is already open.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...model.families import FAMILIES, RENAMED, WRAPPERS
from ...model.huggingface import read_config

if TYPE_CHECKING:
    from torch import nn

Config = Mapping[str, Any]

# A padding token outside the vocabulary is refused by the class; which one it is changes no count. Nor does rotation.
DROPPED = {"model_type", "auto_map", "quantization_config", "rope_scaling", "rope_parameters", "pad_token_id"}
THINKERS = {"qwen2_5_omni": "qwen2_5_omni_thinker", "qwen3_omni_moe": "qwen3_omni_moe_thinker"}
HOW = {"attn_implementation": "eager", "experts_implementation": "batched_mm"}  # experts as torch's counter sees them
BESIDE = ("visual", "vision", "audio", "projector")  # in the names of what stands beside a language model


def text_fields(config: Config) -> tuple[str, dict[str, Any]]:
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


def built(config: Config, **how: Any) -> "nn.Module":
    """The model that transformers builds from a config, on the device and in the mode that are set. Loads torch.

    Where a language model has a class inside its wrapper alone, that wrapper; a flat file is the wrapper's text.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
    from transformers.utils import logging

    logging.set_verbosity_error()
    kind, fields = text_fields(config)
    settings = AutoConfig.for_model(kind, **{"pad_token_id": 0, **fields})
    if type(settings) in AutoModelForCausalLM._model_mapping:
        return AutoModelForCausalLM.from_config(settings, **how)
    named = config["model_type"]
    wrapper = named if named in WRAPPERS else next(name for name, held in WRAPPERS.items() if held.text == named)
    text = fields if settings.model_type == wrapper else settings
    tied = fields.get("tie_word_embeddings", getattr(settings, "tie_word_embeddings", False))
    whole = AutoConfig.for_model(THINKERS.get(wrapper, wrapper), text_config=text, tie_word_embeddings=tied)
    return AutoModelForImageTextToText.from_config(whole, **how)


def with_layers(config: Config, layers: int) -> dict[str, Any] | None:
    """The same config with its first layers alone, widths kept; None where it cannot be cut so.

    What is listed layer by layer is cut too.
    """
    model = read_config(config)
    made = dict(config)
    part = made["text_config"] = dict(config["text_config"]) if "text_config" in config else made
    if part is made:
        del made["text_config"]
    keys = FAMILIES[model.family].keys_of("layers")
    part.update({key: layers for key in keys if key in part} or {keys[0]: layers})
    for key, value in part.items():
        if isinstance(value, list) and len(value) == model.layers:
            part[key] = value[:layers]
    cut = read_config(made)
    kept = [model.blocks[at] for at in model.pattern[:layers]]
    return made if [cut.blocks[at] for at in cut.pattern] == kept else None
