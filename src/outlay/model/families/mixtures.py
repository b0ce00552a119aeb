"""Families with grouped-query attention and experts on every layer: the one width of a file is that of an expert."""

from collections.abc import Mapping
from typing import Any

from ..model import Sublayer
from ..parts import Attention, Experts, FeedForward
from .builders import decoder, grouped, layer_norms, mixture, parallel, sparse
from .dense import BIAS, PLAIN
from .family import Facts, Family, Field

EXPERT_WIDTH = {"expert_width": ("intermediate_size",)}  # the key of a dense width holds the width of an expert
SOLE_WIDTH: dict[str, Any] = {"required": ("expert_width",), "fixed": {"width": 0}, "keys": EXPERT_WIDTH}
EIGHT = {**PLAIN, **BIAS, "experts": 8, "active": 2}


def _olmoe_attention(facts: Facts, layer: int) -> Attention:
    """Its norms are as wide as the hidden vector, whatever the width of a head."""
    return grouped(head_norm="all", norm_width=facts.hidden // facts.heads)(facts, layer)


def _hunyuan_experts(facts: Facts, layer: int) -> Experts:
    """One shared expert as wide as the others; the experts a token is sent to may differ by layer."""
    active = facts.active if isinstance(facts.active, int) else facts.active[layer]
    return Experts(facts.experts, active, facts.expert_width, shared_width=facts.expert_width)


def _plain_layer_norms(facts: Facts) -> dict[str, Any]:
    return {"norm": "layer"}


def _phimoe_ends(facts: Facts) -> dict[str, Any]:
    return layer_norms(head_bias=facts.head_bias)(facts)


def _jetmoe_layer(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
    """A mixture of attention heads, then a mixture of experts: each sends a token to as many."""
    heads = facts.active * facts.kv_heads
    attention = Attention(
        heads, facts.kv_heads, facts.head_dim, facts.head_dim, experts=facts.experts, active=facts.active
    )  # fmt: skip
    experts = Experts(facts.experts, facts.active, facts.expert_width, out_bias=True)
    return Sublayer((attention,)), Sublayer((experts,))


def _cohere_dense(facts: Facts, layer: int) -> FeedForward:
    return FeedForward(facts.dense_width or facts.expert_width)


def _cohere_attention(facts: Facts, layer: int) -> Attention:
    """Leading dense layers have a period of their own."""
    first = facts.first_expert_layer
    place = layer - first if layer >= first else layer
    period = facts.window_period if layer >= first else facts.dense_period
    full = (place + 1) % period == 0 if facts.layer_types is None else facts.layer_types[layer] == "full_attention"
    return Attention(
        facts.heads, facts.kv_heads, facts.head_dim, facts.head_dim, window=0 if full else facts.window,
        qkv_bias=facts.attention_bias, out_bias=facts.attention_bias,
    )  # fmt: skip


def _cohere_ends(facts: Facts) -> dict[str, Any]:
    return {"norm": "layer" if facts.rms is None else "rms"}


MIXTURES: Mapping[str, Family] = {
    "mixtral": Family(
        {**PLAIN, "kv_heads": 8, "window": None, "experts": 8, "active": 2}, decoder(feed_forward=mixture()),
        **SOLE_WIDTH,
    ),
    "gpt_oss": Family(
        {**PLAIN, "attention_bias": True, "kv_heads": 8, "head_dim": 64, "window": 128, "layer_types": None,
         "experts": 128, "active": 4},
        decoder(grouped(period=2, sinks=True), mixture(expert_bias=True, clamped=True, router_bias=True)),
        **SOLE_WIDTH,
    ),
    "granitemoe": Family(EIGHT, decoder(feed_forward=mixture()), **SOLE_WIDTH),
    "granitemoeshared": Family({**EIGHT, "shared_width": 0}, decoder(feed_forward=mixture()), **SOLE_WIDTH),
    "granitemoe_swa": Family(
        {**EIGHT, "shared_width": 0, "window": 128, "layer_types": None},
        decoder(grouped(period=4, place=0, sinks=True), mixture()),
        **SOLE_WIDTH,
    ),
    "olmoe": Family(
        {**PLAIN, **BIAS, "experts": 64, "active": 8}, decoder(_olmoe_attention, mixture()), **SOLE_WIDTH
    ),
    "flex_olmo": Family(
        {**PLAIN, **BIAS, "experts": 7, "active": 5}, decoder(grouped(head_norm="all"), mixture(), norms="after"),
        **SOLE_WIDTH,
    ),
    "phimoe": Family(
        {**PLAIN, **BIAS, "kv_heads": 8, "window": None, "experts": 16, "active": 2, "head_bias": False},
        decoder(feed_forward=mixture()), _phimoe_ends,
        own={"head_bias": Field(("lm_head_bias",), "switch")}, **SOLE_WIDTH,
    ),
    "minimax_m2": Family(
        {**PLAIN, "kv_heads": 8, "head_dim": 128, "experts": 256, "active": 8},
        decoder(grouped(head_norm="all"), mixture()),
        **SOLE_WIDTH,
    ),
    "aria_text": Family(
        {**PLAIN, **BIAS, "mlp_bias": False, "experts": 8, "active": 2, "shared_experts": 2},
        decoder(feed_forward=mixture()),
        required=("expert_width",), fixed={"width": 0},
        keys={**EXPERT_WIDTH, "experts": ("moe_num_experts",), "active": ("moe_topk",),
              "shared_experts": ("moe_num_shared_experts",)},
    ),
    "hunyuan_v1_moe": Family(
        {**PLAIN, **BIAS, "experts": 1, "active": 1},
        decoder(grouped(head_norm="head"), _hunyuan_experts),
        own={"active": Field(("moe_topk", "num_experts_per_tok"), "sizes")}, **SOLE_WIDTH,
    ),
    "dbrx": Family(
        {"tied": False, "kv_heads": 1, "experts": 4, "active": 1, "expert_width": 3584, "attention_dropout": 0.0},
        decoder(feed_forward=mixture()), _plain_layer_norms,
        fixed={"width": 0, "head_dim": None},
        keys={"hidden": ("d_model", "hidden_size"), "layers": ("n_layers", "num_hidden_layers"),
              "heads": ("n_heads", "num_attention_heads"), "kv_heads": ("attn_config.kv_n_heads",),
              "experts": ("ffn_config.moe_num_experts",), "active": ("ffn_config.moe_top_k",),
              "expert_width": ("ffn_config.ffn_hidden_size",), "attention_dropout": ("attn_config.attn_pdrop",),
              "trained_length": ("max_seq_len", "max_position_embeddings")},
    ),
    "jetmoe": Family(
        {"tied": True, "kv_heads": 16, "head_dim": 128, "experts": 8, "active": 2}, _jetmoe_layer,
        required=("expert_width",), core=("hidden", "layers", "vocab"),
        keys={**EXPERT_WIDTH, "head_dim": ("kv_channels", "head_dim")},
    ),
    "cohere2_moe": Family(
        {**PLAIN, **BIAS, "tied": True, "head_dim": 128, "window": 4096, "layer_types": None, "window_period": 4,
         "dense_period": 1, "experts": 8, "active": 2, "shared_experts": 0, "dense_width": None, "rms": None,
         "feed_forward_types": None, "first_expert_layer": 0},
        parallel(_cohere_attention, sparse(otherwise=_cohere_dense)), _cohere_ends,
        own={"dense_period": Field(("prefix_dense_sliding_window_pattern",)), "rms": Field(("rms_norm_eps",), "share"),
             "dense_width": Field(("prefix_dense_intermediate_size",), nullable=True)},
        **SOLE_WIDTH,
    ),
}  # fmt: skip
