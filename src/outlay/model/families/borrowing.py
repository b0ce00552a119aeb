"""Gemma 3n and Gemma 4: layers that borrow keys, inputs of a layer's own, streams, experts beside a dense part."""

from collections.abc import Mapping
from typing import Any

from ...errors import Fault, InputError
from ..model import Sublayer
from ..parts import AnyPart, Attention, Experts, FeedForward
from ..parts.per_layer import PerLayerInput, PerLayerTable
from ..parts.steps import LowRank, Normed
from ..parts.streams import AltUp, StreamProjections
from .builders import ESTIMATED, slides, step
from .family import Facts, Family, Field


def _gemma_attention(facts: Facts, layer: int, full: bool) -> Attention:
    """The last layers borrow keys and values; full layers of Gemma 4 have heads of another width and number."""
    width = (facts.get("global_head_dim") or facts.head_dim) if full else facts.head_dim
    shared = full and bool(facts.get("keys_are_values"))
    heads = facts.get("global_kv_heads") if shared else None
    bias = facts.attention_bias
    return Attention(
        facts.heads, heads or facts.kv_heads, width, width, window=0 if full else facts.window, qkv_bias=bias,
        out_bias=bias, head_norm="head", values="keys" if shared else "projected",
        borrowed=layer >= facts.layers - facts.borrowing,
    )  # fmt: skip


def _per_layer_table(facts: Facts) -> tuple[AnyPart, ...]:
    width = facts.input_width
    return (PerLayerTable(facts.input_vectors, facts.layers, width),) if width else ()


def _gemma4_layer(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
    last = layer == facts.layers - 1  # sees all keys, whatever its list says
    attention = _gemma_attention(facts, layer, full=last or not slides(facts, layer, period=6))
    wide = 2 if facts.wide_borrowers and attention.borrowed else 1
    inputs = (Sublayer((PerLayerInput(facts.input_width),), "after"),) if facts.input_width else ()
    return (
        Sublayer((attention,), "both"),
        *_gemma4_feed_forward(facts, FeedForward(wide * facts.width)),
        *inputs,
    )


def _gemma4_feed_forward(facts: Facts, plain: FeedForward) -> tuple[Sublayer, ...]:
    """A dense part; or beside it experts, each of the two between norms of its own, and a norm of their sum."""
    if not facts.get("has_experts"):
        return (Sublayer((plain,), "both"),)
    missing = [key for name, key in EXPERT_KEYS.items() if not facts.get(name)]
    if missing:
        raise InputError(_no_experts(missing))
    experts = Experts(facts.experts, facts.active, facts.expert_width)
    return (
        step(Normed("router", choices=facts.experts)),
        Sublayer((plain, experts), "both", own_norms=True),
        step(Normed("feed_forward_sum")),
    )


EXPERT_KEYS = {"experts": "num_experts", "active": "top_k_experts", "expert_width": "moe_intermediate_size"}


def _no_experts(missing: list[str]) -> Fault:
    return Fault(
        "MOD004", f"{len(missing)} field{'s are' if missing[1:] else ' is'} missing from config.json",
        f'a gemma4_text-type model with "enable_moe_block": true needs {" and ".join(missing)}',
        "nothing, or null", f"add {' and '.join(missing)} to the file",
    )  # fmt: skip


def _gemma4_ends(facts: Facts) -> dict[str, Any]:
    return {"before": _per_layer_table(facts)}


def _gemma3n_layer(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
    """One stream goes through attention, a learned residual beside it, and the dense part; all are then corrected."""
    width = facts.width if isinstance(facts.width, int) else facts.width[layer]
    return (
        step(AltUp(facts.streams, "predict")),
        Sublayer(
            (_gemma_attention(facts, layer, not slides(facts, layer, period=5)), LowRank(facts.laurel_rank)), "both"
        ),
        Sublayer((FeedForward(width),), "both"),
        step(AltUp(facts.streams, "correct")),
        Sublayer((PerLayerInput(facts.input_width),), "after"),
    )


def _gemma3n_ends(facts: Facts) -> dict[str, Any]:
    further = (facts.streams - 1) * facts.hidden
    return {
        "streams": facts.streams,
        "before": (*_per_layer_table(facts), StreamProjections(further, "spread")),
        "after": (StreamProjections(further, "join"),),
    }


BORROWING = {"borrowing": Field(("num_kv_shared_layers",), "count", nullable=True)}
INPUTS = {
    "input_width": Field(("hidden_size_per_layer_input",), "count", nullable=True),
    "input_vectors": Field(("vocab_size_per_layer_input",)),
}
GEMMA4 = {
    "tied": True, "attention_bias": False, "kv_heads": 4, "head_dim": 256, "layer_types": None, "borrowing": 0,
    "keys_are_values": False, "global_head_dim": 512, "global_kv_heads": None, "wide_borrowers": False,
}  # fmt: skip
GEMMA4_OWN = {
    **BORROWING,
    "keys_are_values": Field(("attention_k_eq_v",), "switch"),
    "global_head_dim": Field(("global_head_dim",)),
    "global_kv_heads": Field(("num_global_key_value_heads",), nullable=True),
    "wide_borrowers": Field(("use_double_wide_mlp",), "switch"),
}
VALUE_NORM = "the norm of the values, which has no weights: not counted"
PER_LAYER = "per-layer inputs: what a pipeline sends of them from stage to stage is not counted"
GEMMA4_EXPERTS = {
    "has_experts": Field(("enable_moe_block",), "switch"),
    "experts": Field(("num_experts",), "count", nullable=True),
    "active": Field(("top_k_experts",), "count", nullable=True),
    "expert_width": Field(("moe_intermediate_size",), "count", nullable=True),
}

BORROWERS: Mapping[str, Family] = {
    "gemma4_text": Family(
        {**GEMMA4, "window": 512, "input_width": 256, "input_vectors": 262144, "has_experts": False, "experts": None,
         "active": None, "expert_width": None},
        _gemma4_layer, _gemma4_ends,
        own={**GEMMA4_OWN, **INPUTS, **GEMMA4_EXPERTS},
        notes=(VALUE_NORM, PER_LAYER),
    ),
    "gemma4_unified_text": Family(
        {**GEMMA4, "window": 1024}, _gemma4_layer,
        fixed={"input_width": 0}, own={**GEMMA4_OWN, **INPUTS},
        notes=(VALUE_NORM,),
    ),
    "gemma3n_text": Family(
        {"tied": True, "attention_bias": False, "kv_heads": 2, "head_dim": 256, "window": 512, "layer_types": None,
         "borrowing": 15, "input_width": 256, "input_vectors": 262144, "streams": 4, "laurel_rank": 64,
         "width": 16384},
        _gemma3n_layer, _gemma3n_ends,
        own={**BORROWING, **INPUTS,
             "input_width": Field(("hidden_size_per_layer_input",)),
             "width": Field(("intermediate_size",), "sizes"),
             "streams": Field(("altup_num_inputs",)),
             "laurel_rank": Field(("laurel_rank",))},
        notes=(VALUE_NORM, PER_LAYER, f"alternating updates: {ESTIMATED}",
               "activation sparsity: counted as if no activation were zero"),
    ),
}  # fmt: skip
