"""Zamba and Zamba2: Mamba layers, and an attention block or two that many of them share."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..model import Sublayer
from ..parts import AnyPart, Attention, FeedForward
from ..parts.adapter import Adapter
from ..parts.projection import Projection
from .family import Facts, Family, Field
from .hybrids import RECURRENT_TYPES
from .recurrent import MAMBA, MAMBA2, RANK, mamba, mamba2

SHARED = "hybrid"
USUAL_ZAMBA2 = tuple(
    SHARED if layer in (6, 12, 18, 24, 30, 36, 42, 47, 51) else "linear_attention" for layer in range(54)
)


def _step(part: AnyPart, *, borrowed: bool = False, norms: bool = False, adds: bool = False) -> Sublayer:
    return Sublayer((part,), "before" if norms else "none", adds=adds, borrowed=borrowed)


def _uses(facts: Facts, layers: int) -> int:
    """Uses of shared blocks in the first so many layers."""
    return sum(_is_shared(facts, layer) for layer in range(layers))


def _is_shared(facts: Facts, layer: int) -> bool:
    """By a list; else the third layer, and a period from the fourth on."""
    if facts.layer_types is not None:
        return bool(facts.layer_types[layer] == SHARED)
    return layer == 2 or (layer > 2 and (layer - 3) % facts.attention_period == facts.attention_offset)


def _attention(facts: Facts) -> Attention:
    wide = facts.shared_head_dim
    return Attention(facts.heads, facts.kv_heads, wide, wide, paired=True)


def _zamba(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
    """One block on stream and embedding, whose output passes a matrix of the layer's own; then Mamba."""
    own = Sublayer((mamba(apart=True)(facts, layer),))
    if not _is_shared(facts, layer):
        return (own,)
    later = facts.tied and _uses(facts, layer) > 0
    feed_forward = _step(FeedForward(facts.width), borrowed=later, norms=True)
    return _step(_attention(facts), borrowed=later), feed_forward, _step(Projection(), adds=True), own


def _zamba2(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
    """Blocks in turn, with adapters of each use's own; without tied weights each use has a block of its own."""
    own = Sublayer((mamba2(conv_bias=True)(facts, layer),))
    if not _is_shared(facts, layer):
        return (own,)
    place, blocks = _uses(facts, layer), facts.shared_blocks
    later = facts.tied and place >= blocks
    spare = 0 if facts.tied else len(range(place % blocks, _uses(facts, facts.layers), blocks)) - 1
    adapted = Adapter("attention", facts.rank, facts.heads, facts.shared_head_dim, spare)
    return (
        _step(_attention(facts), borrowed=later),
        *((_step(adapted),) if facts.adapts_attention else ()),
        _step(FeedForward(facts.width, bias=facts.scan_bias), borrowed=later, norms=True),
        _step(Adapter("mlp", facts.rank, facts.width, 2, spare)),
        _step(Projection(), adds=True),
        own,
    )


def _pair_head(values: Mapping[str, Any]) -> int:
    """2 x hidden size / attention heads"""
    return int(2 * values["hidden"] // values["heads"])


def _listed(values: Mapping[str, Any]) -> int:
    """as many as layers_block_type names"""
    return len(values["layer_types"])


TYPES = Field(("layers_block_type", "layer_types"), "kinds", nullable=True, words=(*RECURRENT_TYPES, SHARED))

ZAMBAS: Mapping[str, Family] = {
    "zamba": Family(
        {
            **MAMBA, "tied": True, "kv_heads": 16, "scan_heads": 2, "layer_types": None, "attention_period": 6,
            "attention_offset": 4, "shared_head_dim": None,
        },
        _zamba,
        keys={"scan_heads": ("n_mamba_heads",), "scan_bias": ("mamba_proj_bias",)},
        own={
            "layer_types": TYPES,
            "attention_period": Field(("attn_layer_period",)),
            "attention_offset": Field(("attn_layer_offset",), "count"),
            "shared_head_dim": Field(("attention_head_dim",), nullable=True),
        },
        derived={**RANK, "shared_head_dim": _pair_head},
    ),
    "zamba2": Family(
        {
            **MAMBA2, "tied": True, "kv_heads": None, "width": None, "layers": None, "layer_types": USUAL_ZAMBA2,
            "state": 64, "scan_heads": 8, "shared_blocks": 1, "rank": 128, "adapts_attention": False,
        },
        _zamba2,
        core=("hidden", "heads", "vocab"),
        fixed={"layers": None, "shared_head_dim": None},
        keys={"scan_heads": ("n_mamba_heads",), "scan_bias": ("add_bias_linear",)},
        own={
            "layer_types": replace(TYPES, kind="pattern", nullable=False),
            "shared_head_dim": Field(("attention_head_dim",), nullable=True),
            "shared_blocks": Field(("num_mem_blocks",)),
            "rank": Field(("adapter_rank",)),
            "adapts_attention": Field(("use_shared_attention_adapter",), "switch"),
        },
        derived={"layers": _listed, "shared_head_dim": _pair_head},
    ),
}  # fmt: skip
