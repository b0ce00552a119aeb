"""Families with experts whose attention differs from layer to layer in more than its window."""

from collections.abc import Mapping
from typing import Any

from ..model import Block
from ..parts import AnyPart, Attention, Experts, FeedForward
from .builders import decoder, dense, grouped, has_experts, mixture, sparse
from .dense import BIAS, PLAIN
from .family import Facts, Family, Field
from .mixtures import EXPERT_WIDTH
from .routed import ROUTED, TYPES

CHUNKS = ("full_attention", "chunked_attention")
BLOCKS = ("full_attention", "minimax_m3_sparse")


def _slid(facts: Facts, layer: int, otherwise: bool = False) -> bool:
    """Whether a layer slides: by the list, as far as it goes."""
    listed = facts.layer_types or ()
    return bool(listed[layer] == "sliding_attention") if layer < len(listed) else otherwise


def _llama4_attention(facts: Facts, layer: int) -> Attention:
    """Layers with positions see their own chunk, and have norms without weights; every so many sees all."""
    rotated = bool(facts.rotated[layer]) if facts.rotated else (layer + 1) % facts.unrotated_period != 0
    chunked = rotated if facts.layer_types is None else facts.layer_types[layer] == "chunked_attention"
    return grouped(
        chunk=(facts.chunk or 0) if chunked else 0, head_norm="bare" if facts.head_norm and rotated else "none"
    )(facts, layer)


def _llama4_feed_forward(facts: Facts, layer: int) -> AnyPart:
    """A shared expert as wide as a routed one; dense layers have a width of their own."""
    listed = facts.expert_layers
    experts = has_experts(facts, layer) if listed is None else layer in listed
    if not experts:
        return FeedForward(facts.width)
    return Experts(facts.experts, facts.active, facts.expert_width, shared_width=facts.expert_width)


def _mimo_attention(facts: Facts, layer: int) -> Attention:
    """Sliding layers have twice the key/value heads, and sinks; one layer in six sees all, the first too."""
    slid = _slid(facts, layer, otherwise=layer > 0 and (layer + 1) % 6 != 0)
    window = facts.keys_before + 1 if facts.keys_before else facts.window
    return Attention(
        facts.heads, facts.kv_heads * (2 if slid else 1), facts.head_dim, facts.value_dim,
        window=window if slid else 0, sinks=slid, qkv_bias=facts.attention_bias,
    )  # fmt: skip


def _laguna_attention(facts: Facts, layer: int) -> Attention:
    """Query heads by layer, and a gate a head."""
    bias = facts.attention_bias
    listed = facts.layer_heads or facts.heads
    heads = listed if isinstance(listed, int) else listed[layer]
    return Attention(
        heads, facts.kv_heads, facts.head_dim, facts.head_dim, window=facts.window if _slid(facts, layer) else 0,
        gate_width=1 if facts.gating in ("true", "per-head") else facts.head_dim,
        head_norm="head", qkv_bias=bias, out_bias=bias,
    )  # fmt: skip


def _step_attention(facts: Facts, layer: int) -> Attention:
    """A scalar gate a head; sliding layers may have more query heads."""
    slid, bias = _slid(facts, layer), facts.attention_bias
    heads = (facts.sliding_heads or facts.heads) if slid else facts.heads
    return Attention(
        heads, facts.kv_heads, facts.head_dim, facts.head_dim, window=facts.window if slid else 0, gate_width=1,
        head_norm="head", qkv_bias=bias, out_bias=bias,
    )  # fmt: skip


def _step_feed_forward(facts: Facts, layer: int) -> AnyPart:
    """Experts by one list or the other, else behind three dense layers; modules behind the last layer are dense."""
    listed = facts.feed_forward_types or ()
    after = facts.first_expert_layer <= layer < facts.layers
    experts = after if facts.expert_layers is None else layer in facts.expert_layers
    if layer < len(listed):
        experts = listed[layer] == "sparse"
    return (mixture() if experts else dense())(facts, layer)


STEP = decoder(_step_attention, _step_feed_forward)


def _step_ends(facts: Facts) -> dict[str, Any]:
    """Lists go on behind the last layer with the layers of the prediction modules."""
    places = range(facts.layers, facts.layers + facts.mtp_layers)
    return {"mtp_blocks": tuple(Block("prediction", STEP(facts, place)) for place in places)}


def _m3_attention(facts: Facts, layer: int) -> Attention:
    """Sparse layers have an indexer that selects blocks of keys for each group of heads."""
    sizes = facts.heads, facts.kv_heads, facts.head_dim, facts.head_dim
    flags = facts.sparse_flags or ()
    indexed = bool(flags[layer]) if flags else False
    if facts.layer_types is not None:
        indexed = facts.layer_types[layer] == "minimax_m3_sparse"
    if not indexed:
        return Attention(*sizes, head_norm="head")
    return Attention(
        *sizes, head_norm="head", index_heads=facts.index_heads, index_dim=facts.index_dim,
        selected=facts.blocks * facts.block_size, index_block=facts.block_size,
    )  # fmt: skip


def _m3_feed_forward(facts: Facts, layer: int) -> AnyPart:
    experts = not facts.expert_flags or bool(facts.expert_flags[layer])
    if facts.feed_forward_types is not None:
        experts = facts.feed_forward_types[layer] == "sparse"
    return (mixture() if experts else dense())(facts, layer)


PATTERNED: Mapping[str, Family] = {
    "llama4_text": Family(
        {**PLAIN, **BIAS, "kv_heads": 8, "head_dim": 128, "width": 16384, "experts": 16, "active": 1, "head_norm": True,
         "layer_types": None, "chunk": 8192, "rotated": None, "unrotated_period": 4, "expert_step": 1,
         "expert_layers": None},
        decoder(_llama4_attention, _llama4_feed_forward),
        required=("expert_width",),
        keys={**EXPERT_WIDTH, "width": ("intermediate_size_mlp",), "expert_step": ("interleave_moe_layer_step",)},
        own={"layer_types": Field(("layer_types",), "kinds", nullable=True, words=CHUNKS),
             "chunk": Field(("attention_chunk_size",), nullable=True), "rotated": Field(("no_rope_layers",), "flags"),
             "unrotated_period": Field(("no_rope_layer_interval",)),
             "expert_layers": Field(("moe_layers",), "numbers", nullable=True)},
    ),
    "mimo_v2_flash": Family(
        {**PLAIN, **BIAS, **TYPES, "kv_heads": 4, "head_dim": 192, "value_dim": 128, "window": 129,
         "keys_before": None, "layer_types": None, "experts": 256, "active": 8, "expert_width": 2048},
        decoder(_mimo_attention, sparse()), fixed={"first_expert_layer": 1}, keys=ROUTED,
        own={"keys_before": Field(("sliding_window_size",))},
    ),
    "laguna": Family(
        {**PLAIN, **BIAS, **TYPES, "kv_heads": 8, "head_dim": 128, "window": 512, "layer_types": None,
         "layer_heads": None, "gating": "true", "experts": 256, "active": 8, "expert_width": 512, "shared_width": 512},
        decoder(_laguna_attention, sparse(mixture(router_bias=True))), fixed={"first_expert_layer": 1},
        own={"layer_heads": Field(("num_attention_heads_per_layer",), "sizes", nullable=True),
             "gating": Field(("gating",), "word", words=("true", "false", "per-head", "per-element"))},
    ),
    "step3p7_text": Family(
        {**PLAIN, **BIAS, **TYPES, "mlp_bias": False, "kv_heads": 8, "head_dim": 128, "window": None,
         "layer_types": None, "sliding_heads": None, "first_expert_layer": 3, "expert_layers": None, "experts": 288,
         "active": 8, "expert_width": 1280, "shared_width": 1280},
        STEP, _step_ends,
        keys={"kv_heads": ("num_key_value_heads", "num_attention_groups"),
              "active": ("num_experts_per_tok", "moe_top_k"),
              "experts": ("n_routed_experts", "moe_num_experts", "num_local_experts", "num_experts")},
        own={"sliding_heads": Field(
                 ("num_sliding_attention_heads", "attention_other_setting.num_attention_heads"), nullable=True),
             "expert_layers": Field(("moe_layers_enum",), "numbers", nullable=True)},
    ),
    "minimax_m3_vl_text": Family(
        {**PLAIN, **TYPES, "kv_heads": 4, "head_dim": 128, "width": 12288, "layer_types": None, "experts": 128,
         "active": 4, "shared_width": 3072, "expert_flags": None, "sparse_flags": None, "index_heads": 4,
         "index_dim": 128, "blocks": 16, "block_size": 128},
        decoder(_m3_attention, _m3_feed_forward),
        required=("expert_width",),
        keys={**EXPERT_WIDTH, "width": ("dense_intermediate_size",), "shared_width": ("shared_intermediate_size",),
              "index_heads": ("index_n_heads", "sparse_attention_config.sparse_num_index_heads"),
              "index_dim": ("index_head_dim", "sparse_attention_config.sparse_index_dim")},
        own={"layer_types": Field(("layer_types",), "kinds", nullable=True, words=BLOCKS),
             "expert_flags": Field(("moe_layer_freq",), "flags", nullable=True),
             "sparse_flags": Field(("sparse_attention_config.sparse_attention_freq",), "flags", nullable=True),
             "blocks": Field(("index_topk_blocks", "sparse_attention_config.sparse_topk_blocks")),
             "block_size": Field(("index_block_size", "sparse_attention_config.sparse_block_size"))},
    ),
}  # fmt: skip
