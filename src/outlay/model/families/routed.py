"""Families of decoders with grouped-query attention, experts of a width of their own, and dense layers among them."""

from collections.abc import Mapping
from typing import Any

from ..parts import Attention
from .builders import decoder, dense, grouped, mixture, slides, sparse
from .dense import BIAS, PLAIN
from .family import Facts, Family, Field

ROUTED = {"experts": ("n_routed_experts", "num_local_experts", "num_experts")}
LEADING = {"first_expert_layer": 1}
TYPES = {"feed_forward_types": None}


def _glm_attention(facts: Facts, layer: int) -> Attention:
    """Biases stand on queries, keys and values alone; a switch adds norms of heads."""
    norms = "head" if facts.head_norm else "none"
    return grouped(head_norm=norms, out_bias=False)(facts, layer)


def _qwen2_attention(facts: Facts, layer: int) -> Attention:
    """Every second layer below `max_window_layers` slides, unless a list says which."""
    listed = facts.layer_types is not None
    slid = slides(facts, layer) if listed else bool(facts.window) and layer % 2 == 0 and layer < facts.window_end
    sizes = facts.heads, facts.kv_heads, facts.head_dim, facts.head_dim
    return Attention(*sizes, window=facts.window if slid else 0, qkv_bias=facts.attention_bias)


def _ernie_experts(facts: Facts, layer: int) -> bool:
    last = facts.last_expert_layer
    inside = facts.first_expert_layer <= layer <= (facts.layers - 1 if last == -1 else last)
    return bool(inside and (layer + 1) % facts.expert_step == 0)


def _ernie_feed_forward(facts: Facts, layer: int) -> Any:
    """Experts in a range of layers; what corrects their choice is a parameter."""
    return (mixture(router_bias=True) if _ernie_experts(facts, layer) else dense())(facts, layer)


def _ernie_ends(facts: Facts) -> dict[str, Any]:
    return {"head_bias": facts.attention_bias}


def _gated_attention(facts: Facts, layer: int) -> Attention:
    """A gate for every value of the output."""
    return grouped(head_norm="head", gate_width=facts.head_dim)(facts, layer)


ROUTERS: Mapping[str, Family] = {
    "qwen3_moe": Family(
        {
            **PLAIN, **BIAS, "kv_heads": 4, "window_switch": False, "window": 4096, "width": 6144,
            "experts": 128, "active": 8, "expert_width": 768, "expert_step": 1, "dense_layers": None,
        },
        decoder(grouped(head_norm="head"), sparse()),
    ),
    "qwen2_moe": Family(
        {**PLAIN, "attention_bias": True, "kv_heads": 16, "window_switch": False, "window": 4096, "window_end": 28,
         "layer_types": None, "experts": 60, "active": 4, "expert_width": 1408, "shared_width": 5632,
         "expert_step": 1, "dense_layers": None},
        decoder(_qwen2_attention, sparse(mixture(shared_gate=True))),
        keys={"attention_bias": ("qkv_bias",), "shared_width": ("shared_expert_intermediate_size",)},
        own={"window_end": Field(("max_window_layers",), "count")},
    ),
    "glm4_moe": Family(
        {**PLAIN, **BIAS, **LEADING, "kv_heads": 8, "head_norm": False, "experts": 128, "active": 8,
         "expert_width": 1408, "shared_experts": 1, "mtp_layers": 1},
        decoder(_glm_attention, sparse()), keys=ROUTED,
    ),
    "sarvam_moe": Family(
        {**PLAIN, **BIAS, **LEADING, "kv_heads": 4, "head_dim": 64, "head_norm": True, "experts": 128, "active": 6,
         "expert_width": 1024, "shared_experts": 1},
        decoder(_glm_attention, sparse()), keys={**ROUTED, "attention_bias": ("attention_bias", "use_qkv_bias")},
    ),
    "solar_open": Family(
        {**PLAIN, **BIAS, "kv_heads": 8, "head_dim": 128, "experts": 128, "active": 8, "expert_width": 1280,
         "shared_experts": 1},
        decoder(_glm_attention, mixture()), core=("hidden", "layers", "heads", "vocab"), fixed={"width": 0},
        keys=ROUTED,
    ),
    "dots1": Family(
        {**PLAIN, **BIAS, "kv_heads": 32, "window": 4096, "first_sliding": 62, "layer_types": None,
         "expert_width": 1408, "first_expert_layer": 0},
        decoder(grouped(head_norm="head"), sparse()),
        required=("experts", "active", "shared_experts"), keys=ROUTED,
    ),
    "exaone_moe": Family(
        {**PLAIN, **LEADING, **TYPES, "kv_heads": 32, "window": 4096, "window_period": 4, "layer_types": None,
         "experts": 64, "active": 8, "expert_width": 1024, "shared_experts": 1},
        decoder(grouped(head_norm="head"), sparse()),
    ),
    "hy_v3": Family(
        {**PLAIN, **BIAS, **TYPES, "mlp_bias": False, "kv_heads": 8, "head_dim": 128, "experts": 192, "active": 8,
         "expert_width": 1536, "shared_experts": 1},
        decoder(grouped(head_norm="head"), sparse()), fixed=LEADING,
    ),
    "mellum": Family(
        {**PLAIN, **BIAS, **TYPES, "kv_heads": 4, "head_dim": 128, "window": 1024, "layer_types": None,
         "experts": 64, "active": 8, "expert_width": 896},
        decoder(grouped(period=1, head_norm="head"), sparse()),
    ),
    "ernie4_5_moe": Family(
        {**PLAIN, **BIAS, **LEADING, "tied": True, "kv_heads": 4, "mlp_bias": False, "experts": 64, "active": 6,
         "expert_width": 1536, "shared_experts": 2, "last_expert_layer": -1, "expert_step": 1},
        decoder(feed_forward=_ernie_feed_forward), _ernie_ends,
        keys={"attention_bias": ("use_bias",), "mlp_bias": ("use_bias",),
              "experts": ("moe_num_experts", "num_experts"), "active": ("moe_k", "num_experts_per_tok"),
              "shared_experts": ("moe_num_shared_experts",), "first_expert_layer": ("moe_layer_start_index",),
              "expert_step": ("moe_layer_interval",)},
        own={"last_expert_layer": Field(("moe_layer_end_index",), "place")},
    ),
    "afmoe": Family(
        {**PLAIN, **BIAS, **LEADING, "head_dim": 128, "window": 1024, "window_period": 4, "layer_types": None,
         "experts": 64, "active": 6, "expert_width": 1408, "shared_experts": 2},
        decoder(_gated_attention, sparse(mixture(router_bias=True)), norms="both"),
        keys={"first_expert_layer": ("num_dense_layers",), "window_period": ("global_attn_every_n_layers",)},
    ),
}  # fmt: skip
