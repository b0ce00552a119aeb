"""Families whose layers have parts of their own: compressed keys and several streams, dynamic masks, mixed heads."""

from collections.abc import Mapping
from math import isqrt
from typing import Any

from ..model import Block, Sublayer
from ..parts import AnyPart, Attention, CompressedAttention, Experts, FeedForward
from ..parts.doge import DynamicMask, ProductKeys
from ..parts.steps import Scaling
from ..parts.streams import HyperConnection
from ..parts.zaya import ConvolvedHeads, RouterNetwork
from .builders import ESTIMATED, grouped, mixture, step
from .family import Facts, Family, Field

# --- DeepSeek-V4 ------------------------------------------------------------------------------------------------------

RATIOS = {"0": "sliding_attention", "4": "compressed_sparse_attention", "128": "heavily_compressed_attention"}
COMPRESSED = tuple(RATIOS.values())


def _compression(facts: Facts, layer: int) -> str:
    """The kind of attention of a layer: by its list, by the older list of ratios, or by the rule of the class."""
    if facts.layer_types is not None:
        return str(facts.layer_types[layer])
    if facts.ratios is not None:
        return RATIOS[facts.ratios[layer]]
    return COMPRESSED[1] if layer >= 2 and layer % 2 else COMPRESSED[2]


def _compressed(facts: Facts, layer: int) -> CompressedAttention:
    kind = _compression(facts, layer)
    common = facts.heads, facts.head_dim, facts.query_rank, facts.out_groups, facts.out_rank, facts.window
    if kind == "sliding_attention":
        return CompressedAttention(*common)
    if kind == "heavily_compressed_attention":
        return CompressedAttention(*common, rate=facts.heavy_rate)
    return CompressedAttention(
        *common, rate=facts.sparse_rate, overlap=True, index_heads=facts.index_heads, index_dim=facts.index_dim,
        selected=facts.selected,
    )  # fmt: skip


def _deepseek_v4_layer(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
    parts: tuple[tuple[str, AnyPart], ...] = (
        ("attention", _compressed(facts, layer)),
        ("feed_forward", mixture()(facts, layer)),
    )
    return tuple(
        sublayer
        for name, part in parts
        for sublayer in (
            step(HyperConnection(name, facts.streams, "collapse")),
            Sublayer((part,), adds=False),
            step(HyperConnection(name, facts.streams, "expand")),
        )
    )


def _deepseek_v4_ends(facts: Facts) -> dict[str, Any]:
    """A list of ratios that goes on behind the last layer says what the prediction modules have."""
    further = range(facts.layers, len(facts.ratios or ()))[: facts.mtp_layers]
    return {
        "streams": facts.streams,
        "after": (HyperConnection("head", facts.streams, "head"),),
        "mtp_blocks": tuple(Block("prediction", _deepseek_v4_layer(facts, layer)) for layer in further),
    }


# --- Doge and Zaya ----------------------------------------------------------------------------------------------------


def _doge_layer(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
    mask = DynamicMask(facts.kv_heads, facts.head_dim, facts.attention_bias)
    plain = FeedForward(facts.width, bias=facts.mlp_bias)
    tables = (ProductKeys(facts.experts, isqrt(facts.experts), facts.active),) if facts.has_experts else ()
    return (
        step(mask),
        Sublayer((grouped(head_norm="head")(facts, layer),)),
        step(Scaling("attention_residual", 1)),
        Sublayer((plain, *tables)),
        step(Scaling("feed_forward_residual", 1)),
    )


def _zaya_layer(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
    """Scales and shifts of the stream and of each output stand at every sum: four vectors."""
    sliding = facts.layer_types is not None and facts.layer_types[layer] == "hybrid_sliding"
    bias, taps = facts.attention_bias, (facts.channel_taps, facts.head_taps)
    attention = Attention(
        facts.heads, facts.kv_heads, facts.head_dim, facts.head_dim, window=facts.window if sliding else 0,
        qkv_bias=bias, out_bias=bias, head_norm="bare",
    )  # fmt: skip
    experts = Experts(facts.experts, facts.active, facts.expert_width, router_width=facts.router_width, spare=1)
    return (
        step(ConvolvedHeads(facts.heads, facts.kv_heads, facts.head_dim, *taps)),
        Sublayer((attention,)),
        step(Scaling("attention_residual", 4)),
        step(RouterNetwork(facts.router_width, carries=layer > 0)),
        Sublayer((experts,)),
        step(Scaling("feed_forward_residual", 4)),
    )


def _zaya_ends(facts: Facts) -> dict[str, Any]:
    return {"before": (Scaling("embedding", 2),), "head_bias": facts.head_bias}


# --- the table --------------------------------------------------------------------------------------------------------

V4_FIELDS = {
    "layer_types": Field(("layer_types",), "kinds", nullable=True, words=COMPRESSED),
    "ratios": Field(("compress_ratios",), "kinds", nullable=True, words=tuple(RATIOS)),
    "sparse_rate": Field(("compress_rate_csa", "compress_rates.compressed_sparse_attention")),
    "heavy_rate": Field(("compress_rate_hca", "compress_rates.heavily_compressed_attention")),
    "out_groups": Field(("o_groups",)),
    "out_rank": Field(("o_lora_rank",)),
    "index_heads": Field(("index_n_heads",)),
    "index_dim": Field(("index_head_dim",)),
    "selected": Field(("index_topk",)),
    "streams": Field(("hc_mult",)),
    "expert_width": Field(("moe_intermediate_size", "intermediate_size")),
    "experts": Field(("n_routed_experts", "num_local_experts", "num_experts")),
}

ODD: Mapping[str, Family] = {
    "deepseek_v4": Family(
        {"tied": False, "head_dim": 512, "query_rank": 1024, "expert_width": 2048, "experts": 256, "active": 6,
         "layer_types": None, "ratios": None, "sparse_rate": 4, "heavy_rate": 128, "window": 128, "out_groups": 8,
         "out_rank": 1024, "index_heads": 64, "index_dim": 128, "selected": 512, "streams": 4, "mlp_bias": False,
         "mtp_layers": 1},
        _deepseek_v4_layer, _deepseek_v4_ends,
        core=("hidden", "layers", "heads", "vocab"), fixed={"shared_experts": 1, "kv_heads": 1}, own=V4_FIELDS,
        notes=(f"compressed attention and hyper-connections: {ESTIMATED}",
               "multi-token prediction modules: counted without the hyper-connection behind each"),
    ),
    "doge": Family(
        {"tied": False, "kv_heads": None, "head_dim": None, "attention_bias": False, "mlp_bias": False,
         "window": None, "has_experts": False, "experts": 16384, "active": 64},
        _doge_layer,
        own={"has_experts": Field(("is_moe",), "switch")},
        notes=("dynamic mask: attention is counted over every key that the causal mask leaves",),
    ),
    "zaya": Family(
        {"tied": True, "kv_heads": 2, "head_dim": 128, "attention_bias": False, "expert_width": 2048, "experts": 16,
         "active": 1, "layer_types": None, "window": None, "router_width": 256, "channel_taps": 2, "head_taps": 2,
         "head_bias": False},
        _zaya_layer, _zaya_ends,
        core=("hidden", "layers", "heads", "vocab"),
        own={"layer_types": Field(("layer_types",), "kinds", nullable=True, words=("hybrid", "hybrid_sliding")),
             "router_width": Field(("router_hidden_size",)), "channel_taps": Field(("cca_time0",)),
             "head_taps": Field(("cca_time1",)), "head_bias": Field(("lm_head_bias",), "switch")},
        notes=(f"convolved heads and the router's network: {ESTIMATED}",
               "residual stream: counted in the type of the activations; the class keeps it in fp32",
               "the choice of the router that no expert stands behind: counted as if no token took it"),
    ),
}  # fmt: skip
