"""Families of dense decoders with grouped-query attention, after Llama."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..model import Sublayer
from ..parts import Attention, FeedForward
from ..parts.cross_attention import CrossAttention
from .builders import Maker, always, decoder, dense, grouped, switched
from .family import Facts, Family, Field

PLAIN = {"tied": False, "kv_heads": None, "head_dim": None}
BIAS = {"attention_bias": False}
BIASES = {**BIAS, "mlp_bias": False}
LATE = {"window_switch": False, "window": 4096, "first_sliding": 28, "layer_types": None}
SLIDING = {"window": 4096, "layer_types": None}
ONE_SWITCH = {"attention_bias": ("use_bias",)}  # of every bias of a layer
SQUARE = {"head_dim": None}  # heads share the hidden size, whatever the file says


def one_switch(*, gated: bool) -> Maker:
    """A feed-forward part with biases where the attention has them."""

    def make(facts: Facts, layer: int) -> FeedForward:
        return FeedForward(facts.width, gated, bias=facts.attention_bias)

    return make


def _with_sub_norm(facts: Facts, layer: int) -> Attention:
    """The norm before the output projection is as wide as the hidden vector."""
    return replace(grouped()(facts, layer), out_norm=facts.hidden // facts.heads)


def _sliding_without_positions(facts: Facts, layer: int) -> Attention:
    """Layers without rotary positions are those that slide, unless listed."""
    attention = grouped()(facts, layer)
    rotates = facts.rotary_layers[layer] if facts.rotary_layers else (layer + 1) % facts.rotary_period
    slides = attention.window if facts.layer_types else not rotates
    return replace(attention, window=facts.window if slides else 0)


def _mllama(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
    if layer not in facts.cross_layers:
        return decoder()(facts, layer)
    crossed = CrossAttention(facts.heads, facts.kv_heads, facts.head_dim)
    return Sublayer((crossed,)), Sublayer((FeedForward(facts.width, scaled=True),))


def _no_layer_slides(values: Mapping[str, Any]) -> int:
    """no layer slides"""
    return 1


PLAIN_MLP = dense(gated=False)

DENSE: Mapping[str, Family] = {
    "llama": Family({**PLAIN, **BIASES}, decoder()),
    "mistral": Family({**PLAIN, "kv_heads": 8, "window": 4096}, decoder()),
    "qwen2": Family({**PLAIN, **LATE, "kv_heads": 32}, decoder(grouped(qkv_bias=True))),
    "qwen3": Family(
        {**PLAIN, **BIAS, **LATE, "kv_heads": 32, "head_dim": 128}, decoder(grouped(head_norm="head"))
    ),
    "phi3": Family({**PLAIN, "window": None}, decoder()),
    "arcee": Family({**PLAIN, **BIASES}, decoder(feed_forward=PLAIN_MLP)),
    "apertus": Family(
        {**PLAIN, **BIAS, "activation": "xielu"},
        decoder(grouped(head_norm="head"), dense(gated=False, learned=2)),
        own={"activation": Field(("hidden_act",), "word", words=("xielu",))},
    ),
    "bitnet": Family({**PLAIN, **BIAS, "kv_heads": 5}, decoder(_with_sub_norm, dense(inner_norm=True))),
    "cwm": Family(
        {**PLAIN, "mlp_bias": False, "kv_heads": 8, "head_dim": 128, "window": 8192, "layer_types": None},
        decoder(grouped(period=4, place=0)),
    ),
    "diffllama": Family({**PLAIN, **BIAS}, decoder(grouped(differential=True))),
    "ernie4_5": Family(
        {**PLAIN, **BIAS, "tied": True, "kv_heads": 2, "head_dim": 128},
        decoder(feed_forward=one_switch(gated=True)),
        keys=ONE_SWITCH,
    ),
    "exaone": Family({**PLAIN, **BIASES, "kv_heads": 8}, decoder()),
    "exaone4": Family(
        {**PLAIN, **SLIDING, "kv_heads": 32, "window_period": 4},
        decoder(grouped(head_norm="head"), norms="after"),
        own={"window_period": Field(("sliding_window_pattern",), "period", nullable=True, words=("L", "G"))},
        derived={"window_period": _no_layer_slides},
    ),
    "granite": Family({**PLAIN, **BIASES}, decoder()),
    "granite_swa": Family(
        {**PLAIN, **BIASES, "tied": True, "kv_heads": 4, "window": 128, "layer_types": None},
        decoder(grouped(period=4, place=0, sinks=True)),
    ),
    "helium": Family({**PLAIN, **BIASES, "kv_heads": 20, "head_dim": 128}, decoder(grouped(out_bias=False))),
    "hunyuan_v1_dense": Family({**PLAIN, **BIAS}, decoder(grouped(head_norm="head"))),
    "hyperclovax": Family(
        {**PLAIN, **BIASES, "post_norms": True},
        switched("post_norms", decoder(norms="both"), decoder()),
        own={"post_norms": Field(("use_post_norm",), "switch")},
    ),
    "internlm3": Family(
        {**PLAIN, **BIASES, "kv_heads": 2, "head_dim": 128},
        decoder(),
        keys={"attention_bias": ("attention_bias", "qkv_bias"), "mlp_bias": ("mlp_bias", "bias")},
    ),
    "iquestcoder": Family({**PLAIN, **BIASES, "kv_heads": 8, "head_dim": 128}, decoder()),
    "ministral": Family({**PLAIN, **SLIDING, "kv_heads": 8}, decoder()),
    "ministral3": Family({**PLAIN, "kv_heads": 8, "head_dim": 128, "window": None}, decoder()),
    "nanochat": Family(
        {**PLAIN, **BIAS},
        decoder(grouped(head_norm="bare"), PLAIN_MLP),
        always(norm_weights=0, embedding_norm=True),
    ),
    "olmo2": Family({**PLAIN, **BIAS}, decoder(grouped(head_norm="all"), norms="after")),
    "olmo3": Family(
        {**PLAIN, **BIAS, **SLIDING}, decoder(grouped(period=4, head_norm="all"), norms="after")
    ),
    "seed_oss": Family(
        {**PLAIN, "attention_bias": True, "mlp_bias": False, "out_bias": False, "kv_heads": 8, "head_dim": 128,
         "residual_dropout": 0.1, "attention_dropout": 0.1},
        decoder(switched("out_bias", grouped(out_bias=True), grouped(out_bias=False))),
        keys={"residual_dropout": ("residual_dropout",)},
        own={"out_bias": Field(("attention_out_bias",), "switch")},
    ),
    "smollm3": Family(
        {**PLAIN, **BIASES, "tied": True, "kv_heads": 4, "window_switch": False, "window": None, "layer_types": None,
         "rotary_layers": None, "rotary_period": 4},
        decoder(_sliding_without_positions),
        own={"rotary_layers": Field(("no_rope_layers",), "flags", nullable=True),
             "rotary_period": Field(("no_rope_layer_interval",))},
    ),
    "mllama_text_model": Family(
        {**PLAIN, "kv_heads": 8},
        _mllama,
        always(spare_vectors=8),
        required=("cross_layers",),
        fixed={**SQUARE, "tied": False},
        keys={"attention_dropout": ("dropout",)},
        own={"cross_layers": Field(("cross_attention_layers",), "numbers")},
        notes=("cross-attention: its keys are tokens of images; FLOPs and bytes of those are not counted",),
    ),
}  # fmt: skip

GEMMA = {**PLAIN, **BIAS, "tied": True, "head_dim": 256}

GEMMAS: Mapping[str, Family] = {
    "gemma": Family({**GEMMA, "kv_heads": 16}, decoder()),
    "gemma2": Family({**GEMMA, **SLIDING, "kv_heads": 4}, decoder(grouped(period=2), norms="both")),
    "gemma3_text": Family(
        {**GEMMA, **SLIDING, "kv_heads": 4, "window_period": 6}, decoder(grouped(head_norm="head"), norms="both")
    ),
    "vaultgemma": Family({**GEMMA, **SLIDING, "kv_heads": 4}, decoder(grouped(period=2))),
}  # fmt: skip

GLM = {**PLAIN, "attention_bias": True, "kv_heads": 2, "head_dim": 128}

GLMS: Mapping[str, Family] = {
    "glm": Family(GLM, decoder(grouped(out_bias=False))),
    "glm4": Family(GLM, decoder(grouped(out_bias=False), norms="both")),
}
