"""What transformers builds: parameters of a config's model on the meta device, tied ones once, buffers never."""

import os
import random
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

from outlay.model.families import RENAMED, WRAPPERS

logging.set_verbosity_error()


def parameters_built(config: dict[str, Any]) -> int:
    """Parameters of the language model that transformers builds from a config, wrapper or not."""
    kind, fields = text_fields(config)
    # A padding token outside the vocabulary is refused by the class; which one it is changes no count.
    settings = AutoConfig.for_model(kind, **{"pad_token_id": 0, **fields})
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(settings)
    return sum(weight.numel() for weight in model.parameters())


def text_fields(config: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The language model's type, as transformers knows it, and its fields; the tie flag is that of the whole."""
    part = config.get("text_config", config)
    fields = {key: value for key, value in part.items() if key not in DROPPED}
    kind = part["model_type"]
    if part is not config:
        wrapper = WRAPPERS[config["model_type"]]
        fields["tie_word_embeddings"] = config.get("tie_word_embeddings", wrapper.tied)
    return RENAMED.get(kind, kind), fields


DROPPED = {"model_type", "auto_map", "quantization_config", "rope_scaling", "rope_parameters", "pad_token_id"}


def class_default(kind: str, keys: tuple[str, ...]) -> Any:
    """What a class takes for a field that a file leaves out, under any of its keys; None where it derives it."""
    settings = type(AutoConfig.for_model(kind))
    return next((value for key in keys if (value := getattr(settings, key, None)) is not None), None)


def layer_types(kind: str, fields: dict[str, Any]) -> list[str]:
    """The kind of attention of each layer, by the rule of the class."""
    return list(AutoConfig.for_model(kind, **fields).layer_types)


def random_config(kind: str, seed: int) -> dict[str, Any]:
    """A small config of a family: random sizes, switches that flip, keys that are sometimes left out."""
    draw = random.Random(f"{kind} {seed}")
    heads = draw.choice([4, 8])
    config = {"model_type": kind, "vocab_size": draw.randrange(300, 900)} | _sizes(kind, draw, heads)
    if draw.random() < 0.5:
        config["tie_word_embeddings"] = draw.random() < 0.5
    for switch in SWITCHES.get(kind, ()):
        if draw.random() < 0.6:
            config[switch] = draw.random() < 0.5
    return config


SWITCHES = {
    "llama": ("attention_bias", "mlp_bias"),
    "qwen3": ("attention_bias",),
    "qwen3_moe": ("attention_bias",),
    "deepseek_v2": ("attention_bias", "mlp_bias"),
    "deepseek_v3": ("attention_bias",),
    "gpt_oss": ("attention_bias",),
    "gemma2": ("attention_bias",),
    "olmo3": ("attention_bias",),
    "gpt_neox": ("attention_bias", "use_parallel_residual"),
}


def _sizes(kind: str, draw: random.Random, heads: int) -> dict[str, Any]:
    hidden, layers, width = heads * draw.choice([16, 24, 40]), draw.randrange(2, 6), 8 * draw.randrange(5, 30)
    if kind == "gpt2":
        inner = {"n_inner": draw.choice([None, width])}
        return {"n_embd": hidden, "n_layer": layers, "n_head": heads, "n_positions": 64, **inner}
    if kind == "bloom":
        return {"hidden_size": hidden, "n_layer": layers, "n_head": heads}
    sizes = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads}
    sizes |= {"intermediate_size": width, "max_position_embeddings": 64}
    if kind == "gpt_neox":
        return sizes
    return sizes | _attention(kind, draw, heads) | _experts(kind, draw)


def _attention(kind: str, draw: random.Random, heads: int) -> dict[str, Any]:
    if kind.startswith("deepseek"):
        dims = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
        return {dim: 8 * draw.randrange(1, 5) for dim in dims} | {"q_lora_rank": draw.choice([None, 24])}
    found: dict[str, Any] = {"num_key_value_heads": draw.choice([1, 2, heads])}
    if draw.random() < 0.6:
        found["head_dim"] = draw.choice([16, 32])
    return found


def _experts(kind: str, draw: random.Random) -> dict[str, Any]:
    if kind in ("mixtral", "gpt_oss"):
        return {"num_local_experts": draw.choice([4, 6]), "num_experts_per_tok": 2}
    if kind == "qwen3_moe":
        rule = {"decoder_sparse_step": draw.choice([1, 2]), "mlp_only_layers": draw.choice([[], [1]])}
        return {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8 * draw.randrange(3, 9), **rule}
    if kind.startswith("deepseek"):
        routed = {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": draw.choice([1, 2])}
        first = {"first_k_dense_replace": draw.choice([0, 1, 2]), "n_group": 1, "topk_group": 1}
        return routed | first | {"moe_intermediate_size": 8 * draw.randrange(3, 9)}
    return {}
