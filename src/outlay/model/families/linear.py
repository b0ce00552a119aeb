"""Families that have both attention and linear attention: Gated DeltaNet, KDA, lightning attention."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..model import Sublayer
from ..parts import Attention, Experts
from ..parts.delta import DeltaNet
from ..parts.lightning import Lightning
from .builders import decoder, grouped, latent, mixture, sparse
from .dense import BIAS, PLAIN
from .family import Facts, Family
from .hybrids import TYPES, either
from .recurrent import TRAINED, delta


def _every(facts: Facts, layer: int) -> bool:
    return bool((layer + 1) % facts.full_period == 0)


# --- Qwen3-Next and Qwen3.5: three layers of Gated DeltaNet, one of attention with an output gate -------------------


def _gated(facts: Facts, layer: int) -> Attention:
    """Attention whose query projection is twice as wide: half of it is an output gate."""
    gate = {"gate_width": facts.head_dim, "gate_bias": facts.attention_bias}
    return grouped(head_norm="head", **gate)(facts, layer)


QWEN = either(_every, _gated, delta)
QWEN_EXPERTS = mixture(shared_gate=True)

# --- MiniMax, Kimi Linear, Bailing, OLMo: linear attention ----------------------------------------------------------


def _lightning(facts: Facts, layer: int) -> Lightning:
    return Lightning(facts.heads, facts.head_dim, facts.chunk)


def _even(facts: Facts, layer: int) -> bool:
    return layer % 2 == 0


def _whole_experts(facts: Facts, layer: int) -> Experts:
    return Experts(facts.experts, facts.active, facts.expert_width)


def _kimi_full(facts: Facts, layer: int) -> bool:
    """Layers that `linear_attn_config` names, the first is 1; else every fourth after the first."""
    if facts.attention_layers is not None:
        return layer + 1 in facts.attention_layers
    return layer > 0 and layer % 4 == 0


def _kimi_delta(facts: Facts, layer: int) -> DeltaNet:
    heads, wide = facts.delta_value_heads, facts.delta_value_dim
    return DeltaNet(heads, heads, wide, wide, facts.taps, "channel", "low_rank")


def _bailing_delta(facts: Facts, layer: int) -> DeltaNet:
    return DeltaNet(facts.heads, facts.heads, facts.head_dim, facts.head_dim, facts.taps, "channel", "full")


def _bailing_latent(facts: Facts, layer: int) -> Attention:
    """Latent attention with one output gate a head."""
    return replace(latent(facts, layer), gate_width=1)


def _olmo_full(facts: Facts, layer: int) -> bool:
    """Every fourth; the last one where there are fewer."""
    return layer % 4 == 3 or (facts.layers < 4 and layer == facts.layers - 1)


OLMO = either(_olmo_full, grouped(head_norm="all"), delta)


def _olmo(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
    """Norms before the parts of a recurrent layer, behind those of another."""
    mixer = OLMO(facts, layer)
    return decoder(OLMO, norms="after" if isinstance(mixer, Attention) else "before")(facts, layer)


def _as_heads(values: Mapping[str, Any]) -> int:
    """as many as attention heads"""
    return int(values["heads"])


def _key_dim(values: Mapping[str, Any]) -> int:
    """3/4 of hidden size / key heads"""
    return int(0.75 * values["hidden"] / values["delta_key_heads"])


def _value_dim(values: Mapping[str, Any]) -> int:
    """twice the width of a key"""
    return int(2 * values["delta_key_dim"])


# --- the families ---------------------------------------------------------------------------------------------------

DELTA = {
    "delta_key_heads": 16, "delta_value_heads": 32, "delta_key_dim": 128, "delta_value_dim": 128, "taps": 4,
    "layer_types": None, "full_period": 4,
}  # fmt: skip
QWEN_KEYS = {"mtp_layers": ("mtp_num_hidden_layers",), "shared_width": ("shared_expert_intermediate_size",)}
KIMI = {
    **BIAS, "query_rank": None, "latent_rank": 512, "nope_dim": 128, "rope_dim": 64, "value_dim": 128,
    "shared_experts": 1, "active": 8, "layer_types": None, "feed_forward_types": None, "taps": 4, "tied": False,
}  # fmt: skip
KIMI_KEYS = {
    "experts": ("num_local_experts", "num_experts"),
    "active": ("num_experts_per_tok", "num_experts_per_token"),
    "trained_length": TRAINED,
}

LINEAR: Mapping[str, Family] = {
    "qwen3_next": Family(
        {
            **PLAIN, **BIAS, **DELTA, "kv_heads": 2, "head_dim": 256, "experts": 512, "active": 10, "expert_width": 512,
            "shared_width": 512, "expert_step": 1, "dense_layers": None,
        },
        decoder(QWEN, sparse(QWEN_EXPERTS)),
        keys=QWEN_KEYS, own={"layer_types": TYPES},
    ),
    "qwen3_5_text": Family(
        {**PLAIN, **BIAS, **DELTA, "kv_heads": 4, "head_dim": 256}, decoder(QWEN),
        keys=QWEN_KEYS, own={"layer_types": TYPES},
    ),
    "qwen3_5_moe_text": Family(
        {
            **PLAIN, **BIAS, **DELTA, "kv_heads": 2, "head_dim": 256, "experts": 256, "active": 8, "expert_width": 512,
            "shared_width": 512,
        },
        decoder(QWEN, QWEN_EXPERTS),
        core=("hidden", "layers", "heads", "vocab"),
        keys=QWEN_KEYS, own={"layer_types": TYPES},
    ),
    "minimax": Family(
        {**PLAIN, "kv_heads": 8, "experts": 8, "active": 2, "layer_types": None, "chunk": 256},
        decoder(either(_even, grouped(), _lightning), _whole_experts),
        required=("expert_width",),
        fixed={"width": 0},
        keys={"expert_width": ("intermediate_size",), "chunk": ("block_size",)},
        own={"layer_types": TYPES},
    ),
    "kimi_linear": Family(
        {
            **KIMI, "experts": 256, "expert_width": 1024, "first_expert_layer": 1, "attention_layers": None,
            "delta_value_heads": 32, "delta_value_dim": 128,
        },
        decoder(either(_kimi_full, latent, _kimi_delta), sparse()),
        fixed={"tied": False},
        keys={
            **KIMI_KEYS, "attention_layers": ("linear_attn_config.full_attn_layers",),
            "delta_value_heads": ("linear_attn_config.num_heads", "linear_num_heads"),
            "delta_value_dim": ("linear_attn_config.head_dim", "linear_head_dim"),
            "taps": ("linear_attn_config.short_conv_kernel_size", "linear_conv_kernel_dim"),
        },
        own={"layer_types": TYPES},
    ),
    "bailing_hybrid": Family(
        {
            **KIMI, "experts": 512, "expert_width": 768, "first_expert_layer": 2, "full_period": 6, "head_dim": 128,
            "mtp_layers": 1,
        },
        decoder(either(_every, _bailing_latent, _bailing_delta), sparse()),
        fixed={"tied": False},
        keys=KIMI_KEYS,
        own={"layer_types": TYPES},
    ),
    "olmo_hybrid": Family(
        {
            **PLAIN, **BIAS, "layer_types": None, "taps": 4, "delta_key_heads": None, "delta_value_heads": None,
            "delta_key_dim": None, "delta_value_dim": None,
        },
        _olmo,
        own={"layer_types": TYPES},
        derived={
            "delta_key_heads": _as_heads, "delta_value_heads": _as_heads, "delta_key_dim": _key_dim,
            "delta_value_dim": _value_dim,
        },
    ),
}  # fmt: skip
