"""Families that have both attention and recurrent parts."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..model import Sublayer
from ..parts import AnyPart, Experts, FeedForward
from ..parts.mamba import Mamba2
from ..parts.recurrent import RecurrentUnit
from ..parts.short_conv import ShortConv
from .builders import Maker, decoder, dense, grouped, sparse
from .dense import BIAS, PLAIN
from .family import Facts, Family, Field
from .recurrent import MAMBA, MAMBA2, RANK, mamba, mamba2, shared_equally

RECURRENT_TYPES = ("linear_attention", "mamba")  # words for a layer with a recurrent part, the second an older one
FULL = ("full_attention", "attention")
TYPES = Field(("layer_types",), "kinds", nullable=True, words=(*RECURRENT_TYPES, *FULL))
BLOCK_TYPES = ("layers_block_type", "layer_types")

Rule = Callable[[Facts, int], bool]


def either(full: Rule, attention: Maker, recurrent: Maker) -> Maker:
    """Attention in the layers that a list names; without one, in those that a rule of the class does."""

    def make(facts: Facts, layer: int) -> AnyPart:
        listed = facts.layer_types
        chosen = full(facts, layer) if listed is None else listed[layer] in FULL
        return (attention if chosen else recurrent)(facts, layer)

    return make


# --- Nemotron-H: one mixer a layer ----------------------------------------------------------------------------------


def _pattern_length(values: Mapping[str, Any]) -> int:
    """as many as the pattern names"""
    return len(values["layer_types"])


def _nemotron_mamba(facts: Facts, layer: int) -> Mamba2:
    shared_equally(facts.scan_heads, facts.groups, "recurrent heads", "groups")
    return Mamba2(
        facts.scan_heads, facts.scan_head_dim, facts.state, facts.groups, facts.chunk, facts.taps, facts.conv_bias,
        facts.scan_bias, facts.scan_bias,
    )  # fmt: skip


NEMOTRON: Mapping[str, Maker] = {
    "M": _nemotron_mamba,
    "*": grouped(qkv_bias=False, out_bias=False),
    "-": dense(gated=False),
}
LETTERS = {"linear_attention": "M", "mamba": "M", "full_attention": "*", "attention": "*", "mlp": "-", "moe": "E"}


def _nemotron_experts(facts: Facts, layer: int) -> Experts:
    bias = facts.mlp_bias
    return Experts(
        facts.experts, facts.active, facts.expert_width, gated=False, shared_width=facts.shared_width, shared_bias=bias,
        latent_width=facts.latent_width or 0, latent_bias=bias,
    )  # fmt: skip


def _nemotron(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
    word = facts.layer_types[layer]
    maker = NEMOTRON.get(LETTERS.get(word, word), _nemotron_experts)
    return (Sublayer((maker(facts, layer),)),)


# --- Jamba, Bamba, Falcon-H1, Granite: Mamba beside or between attention --------------------------------------------


def _jamba_mixer(facts: Facts, layer: int) -> AnyPart:
    full = layer % facts.attention_period == facts.attention_offset
    return (grouped() if full else mamba("weights", apart=True))(facts, layer)


def _jamba_feed_forward(facts: Facts, layer: int) -> AnyPart:
    if facts.experts > 1 and layer % facts.expert_step == facts.expert_offset:
        return Experts(facts.experts, facts.active, facts.width)
    return FeedForward(facts.width)


def _bamba_mixer(facts: Facts, layer: int) -> AnyPart:
    return (grouped() if layer in (facts.attention_layers or ()) else mamba2())(facts, layer)


def _falcon_h1(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
    """Attention and Mamba-2 read one norm and are added, then a feed-forward part."""
    mixer = mamba2(normed=facts.scan_norm, out_bias=facts.out_bias)(facts, layer)
    return Sublayer((grouped()(facts, layer), mixer)), Sublayer((dense()(facts, layer),))


def _granite_feed_forward(facts: Facts, layer: int) -> AnyPart:
    """Experts beside a dense part that is called shared, or that part alone."""
    if not facts.experts:
        return FeedForward(facts.shared_width)
    return Experts(facts.experts, facts.active, facts.width, shared_width=facts.shared_width)


def _never(facts: Facts, layer: int) -> bool:
    return False


# --- LFM2: short convolutions ---------------------------------------------------------------------------------------


def _lfm2_mixer(facts: Facts, layer: int) -> AnyPart:
    if facts.layer_types is None:
        full = facts.attention_layers is None or layer in facts.attention_layers
    else:
        full = facts.layer_types[layer] == "full_attention"
    short = ShortConv(facts.hidden, facts.taps, facts.conv_bias)
    return grouped(head_norm="head")(facts, layer) if full else short


def _lfm2_feed_forward(facts: Facts, layer: int) -> FeedForward:
    """Two thirds of the width in the file, rounded up to a multiple, unless that is switched off."""
    if not facts.adjusts_width:
        return FeedForward(facts.width)
    width, unit = int(facts.width_factor * int(2 * facts.width / 3)), facts.width_unit
    return FeedForward(-(-width // unit) * unit)


# --- RecurrentGemma -------------------------------------------------------------------------------------------------


def _recurrent_gemma(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
    """Two recurrent layers, then one with a window; the feed-forward part has half the width in the file."""
    kinds = facts.mixers
    width = facts.mixer_width or facts.hidden
    shared_equally(width, facts.heads, "channels", "recurrent heads")
    unit = RecurrentUnit(width, facts.heads, facts.taps)
    local = kinds[layer % len(kinds)] == "attention"
    mixer = replace(grouped()(facts, layer), window=facts.window, out_bias=True) if local else unit
    return Sublayer((mixer,)), Sublayer((FeedForward(facts.width // 2, bias=True),))


# --- the families ---------------------------------------------------------------------------------------------------

HYBRID = {**PLAIN, "kv_heads": 8}
HYBRIDS: Mapping[str, Family] = {
    "nemotron_h": Family(
        {
            **MAMBA2, "layers": None, "kv_heads": 8, "head_dim": 128, "mlp_bias": False, "groups": 8, "state": 128,
            "chunk": 128, "scan_head_dim": 64, "experts": 8, "active": 2, "expert_width": 7688, "shared_width": 7688,
            "latent_width": None,
        },
        _nemotron,
        core=("hidden", "heads", "width", "vocab"),
        required=("layer_types",),
        fixed={"layers": None, "tied": False},
        keys={
            "conv_bias": ("mamba_conv_bias", "use_conv_bias"), "scan_bias": ("use_bias",),
            "shared_width": ("moe_shared_expert_intermediate_size",),
        },
        own={
            "layer_types": Field((*BLOCK_TYPES, "hybrid_override_pattern"), "pattern", words=(*LETTERS, *"M*-E")),
            "latent_width": Field(("moe_latent_size",), nullable=True),
        },
        derived={"layers": _pattern_length},
    ),
    "jamba": Family(
        {
            **HYBRID, **MAMBA, "experts": 16, "active": 2, "expert_step": 2, "expert_offset": 1, "attention_period": 8,
            "attention_offset": 4,
        },
        decoder(_jamba_mixer, _jamba_feed_forward),
        keys={
            "conv_bias": ("mamba_conv_bias",), "scan_bias": ("mamba_proj_bias",),
            "expert_step": ("expert_layer_period",),
        },
        own={
            "expert_offset": Field(("expert_layer_offset",), "count"),
            "attention_period": Field(("attn_layer_period",)),
            "attention_offset": Field(("attn_layer_offset",), "count"),
        },
        derived=RANK,
    ),
    "bamba": Family(
        {**HYBRID, **BIAS, **MAMBA2, "mlp_bias": False, "attention_layers": None}, decoder(_bamba_mixer),
    ),
    "falcon_h1": Family(
        {
            **HYBRID, **BIAS, **MAMBA2, "mlp_bias": False, "scan_width": 1024, "scan_norm": False, "out_bias": False,
        },
        _falcon_h1,
        own={
            "scan_width": Field(("mamba_d_ssm",), nullable=True),
            "scan_norm": Field(("mamba_rms_norm",), "switch"),
            "out_bias": Field(("projectors_bias",), "switch"),
        },
    ),
    "granitemoehybrid": Family(
        {
            **PLAIN, **BIAS, **MAMBA2, "experts": 8, "active": 2, "shared_width": 1024, "layer_types": None,
        },
        decoder(either(_never, grouped(), mamba2()), _granite_feed_forward),
        keys={"shared_width": ("shared_intermediate_size",)},
        own={
            "layer_types": replace(TYPES, keys=BLOCK_TYPES[::-1]),
            "experts": Field(("num_local_experts",), "count"),
        },
    ),
    "lfm2": Family(
        {
            **HYBRID, "tied": True, "conv_bias": False, "taps": 3, "layer_types": None, "attention_layers": None,
            "adjusts_width": True, "width_unit": 256, "width_factor": 1.0,
        },
        decoder(_lfm2_mixer, _lfm2_feed_forward),
        keys={
            "tied": ("tie_embedding", "tie_word_embeddings"), "width": ("block_ff_dim", "intermediate_size"),
            "conv_bias": ("conv_bias",), "attention_layers": ("full_attn_idxs",),
        },
        own={
            "layer_types": replace(TYPES, words=("conv", "full_attention")),
            "adjusts_width": Field(("block_auto_adjust_ff_dim",), "switch"),
            "width_unit": Field(("block_multiple_of",)),
            "width_factor": Field(("block_ffn_dim_multiplier",), "share"),
        },
    ),
    "lfm2_moe": Family(
        {
            **HYBRID, "tied": True, "conv_bias": False, "taps": 3, "experts": 32, "active": 4, "expert_width": 1792,
            "first_expert_layer": 2,
        },
        decoder(_lfm2_mixer, sparse()),
        required=("layer_types",),
        keys={
            "tied": ("tie_embedding", "tie_word_embeddings"), "conv_bias": ("conv_bias",),
            "first_expert_layer": ("num_dense_layers",),
        },
        own={"layer_types": replace(TYPES, words=("conv", "full_attention"), nullable=False)},
    ),
    "recurrent_gemma": Family(
        {
            **PLAIN, **BIAS, "tied": True, "window": 2048, "mixer_width": None,
            "mixers": ("recurrent", "recurrent", "attention"), "taps": 4,
        },
        _recurrent_gemma,
        keys={"window": ("attention_window_size", "sliding_window")},
        own={
            "mixers": Field(("block_types",), "cycle", words=("recurrent", "attention")),
            "mixer_width": Field(("lru_width",), nullable=True),
        },
    ),
}  # fmt: skip
