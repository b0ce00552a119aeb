"""Families with multi-head latent attention (MLA). Their number of key/value heads says nothing."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..model import Sublayer
from ..parts import Attention, Experts
from .builders import decoder, dense, has_experts, latent, sparse
from .family import Facts, Family, Field
from .routed import TYPES

LATENT = {
    "tied": False, "attention_bias": False, "query_rank": 1536, "latent_rank": 512, "nope_dim": 128, "rope_dim": 64,
    "value_dim": 128,
}  # fmt: skip
ROUTED = {"experts": ("n_routed_experts", "num_experts", "num_local_experts")}
RANKED = {"query_rank": Field(("q_lora_rank",))}  # an indexer reads the low-rank queries, so that they are there
INDEX = {"index_heads": 64, "index_dim": 128, "selected": 2048}
USES = ("full", "shared")
LETTERS = ("F", "S")  # an indexer of its own, or the selection of the layer before


def _indexed(facts: Facts, layer: int) -> Attention:
    """An indexer on every layer."""
    return replace(
        latent(facts, layer), index_heads=facts.index_heads, index_dim=facts.index_dim, selected=facts.selected
    )  # fmt: skip


def _glm_indexed(facts: Facts, layer: int) -> Attention:
    """An indexer on some layers; those between them use the selection of the one before."""
    if facts.indexed is not None:
        own = facts.indexed[layer] == "full"
    elif facts.index_pattern is not None:
        own = facts.index_pattern[layer] in ("F", "full")
    else:
        own = max(layer - facts.index_offset + 1, 0) % max(facts.index_period, 1) == 0
    found = _indexed(facts, layer)
    return found if own else replace(found, index_heads=0, index_dim=0)


def _axk1_layer(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
    """A norm behind the experts."""
    listed = facts.feed_forward_types is not None
    experts = has_experts(facts, layer) and (listed or layer % facts.expert_period == 0)
    first, second = decoder(latent, sparse() if experts else dense())(facts, layer)
    return first, replace(second, norms="both" if experts else "before")


def _longcat_layer(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
    """Two layers in one, and experts that run beside the second: they read what the first dense part reads."""
    attention, plain = latent(facts, layer), dense()(facts, layer)
    experts = Experts(
        facts.experts, facts.active, facts.expert_width, router_bias=facts.router_bias, spare=facts.spare or 0
    )  # fmt: skip
    return Sublayer((attention,)), Sublayer((plain, experts)), Sublayer((attention,)), Sublayer((plain,))


def _share_of_hidden(values: Mapping[str, Any]) -> int:
    """hidden size / attention heads"""
    return int(values["hidden"] // values["heads"])


LATENTS: Mapping[str, Family] = {
    "deepseek_v2": Family(
        {**LATENT, "mlp_bias": False, "experts": 64, "expert_width": 1407, "shared_experts": 2,
         "first_expert_layer": 0},
        decoder(latent, sparse()),
        required=("active",), keys=ROUTED,
    ),
    "deepseek_v3": Family(
        {**LATENT, "experts": 256, "active": 8, "expert_width": 2048, "shared_experts": 1, "first_expert_layer": 3,
         "mtp_layers": 1},
        decoder(latent, sparse()),
        keys=ROUTED,
    ),
    "deepseek_v32": Family(
        {**LATENT, **INDEX, **TYPES, "experts": 256, "active": 8, "expert_width": 2048, "shared_experts": 1,
         "first_expert_layer": 3},
        decoder(_indexed, sparse()),
        keys=ROUTED, own=RANKED,
    ),
    "glm_moe_dsa": Family(
        {**LATENT, **INDEX, **TYPES, "query_rank": 2048, "nope_dim": 192, "value_dim": 256, "index_heads": 32,
         "indexed": None, "index_pattern": None, "index_period": 1, "index_offset": 2, "experts": 256, "active": 8,
         "expert_width": 2048, "shared_experts": 1, "first_expert_layer": 3},
        decoder(_glm_indexed, sparse()),
        keys=ROUTED,
        own={**RANKED, "indexed": Field(("indexer_types",), "kinds", nullable=True, words=USES),
             "index_pattern": Field(("index_topk_pattern",), "kinds", nullable=True, words=(*LETTERS, *USES)),
             "index_period": Field(("index_topk_freq",), "count"),
             "index_offset": Field(("index_skip_topk_offset",), "count")},
    ),
    "axk1": Family(
        {**LATENT, **TYPES, "experts": 192, "active": 8, "expert_width": 2048, "shared_experts": 1,
         "first_expert_layer": 1, "expert_period": 1},
        _axk1_layer,
        keys=ROUTED, own={"expert_period": Field(("moe_layer_freq",))},
    ),
    "glm4_moe_lite": Family(
        {**LATENT, **TYPES, "query_rank": 768, "nope_dim": 192, "value_dim": 256, "experts": 64, "active": 4,
         "expert_width": 1536, "shared_experts": 1},
        decoder(latent, sparse()),
        fixed={"first_expert_layer": 1}, keys=ROUTED,
    ),
    "sarvam_mla": Family(
        {**LATENT, "query_rank": None, "experts": 128, "active": 8, "expert_width": 2048, "shared_experts": 1,
         "first_expert_layer": 1},
        decoder(latent, sparse()),
        keys=ROUTED,
    ),
    "minicpm3": Family(
        {**LATENT, "tied": True, "mlp_bias": False, "query_rank": 768, "latent_rank": 256, "nope_dim": 64,
         "rope_dim": 32, "value_dim": None},
        decoder(latent, dense()),
        derived={"value_dim": _share_of_hidden},
    ),
    "youtu": Family({**LATENT, "tied": True}, decoder(latent, dense())),
    "longcat_flash": Family(
        {**LATENT, "experts": 512, "active": 12, "expert_width": 2048, "spare": 256, "router_bias": False},
        _longcat_layer,
        keys={"layers": ("num_layers",), "width": ("ffn_hidden_size", "intermediate_size"),
              "experts": ("n_routed_experts", "num_local_experts"), "active": ("moe_topk", "num_experts_per_tok"),
              "expert_width": ("expert_ffn_hidden_size", "moe_intermediate_size")},
        own={"spare": Field(("zero_expert_num",), "count", nullable=True),
             "router_bias": Field(("router_bias",), "switch")},
        notes=("a token may choose experts that do nothing: every choice is counted as a real one",),
    ),
}  # fmt: skip
