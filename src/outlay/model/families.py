"""The model families: which keys of a config.json say what, what each class takes by default, and how a layer is built.

A family is one entry of FAMILIES. A field that a family lists in `defaults` is read from the file; one that it lists in
`fixed` is not, whatever the file says; every other field keeps its neutral value in Facts. None means: derived.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .model import Attention, Block, FeedForward

Kind = Literal["size", "count", "switch", "share", "kinds", "numbers"]


@dataclass(frozen=True)
class Field:
    """A field of a config: the keys that may hold it, in order, what its value must be, and whether null is a value."""

    keys: tuple[str, ...]
    kind: Kind = "size"
    nullable: bool = False


FIELDS: Mapping[str, Field] = {
    "hidden": Field(("hidden_size", "n_embd", "n_embed")),
    "layers": Field(("num_hidden_layers", "n_layer", "num_layers")),
    "heads": Field(("num_attention_heads", "n_head")),
    "vocab": Field(("vocab_size",)),
    "width": Field(("intermediate_size", "n_inner"), nullable=True),
    "kv_heads": Field(("num_key_value_heads",), nullable=True),
    "head_dim": Field(("head_dim",), nullable=True),
    "query_rank": Field(("q_lora_rank",), nullable=True),
    "latent_rank": Field(("kv_lora_rank",)),
    "nope_dim": Field(("qk_nope_head_dim",)),
    "rope_dim": Field(("qk_rope_head_dim",)),
    "value_dim": Field(("v_head_dim",)),
    "experts": Field(("num_local_experts", "num_experts", "n_routed_experts")),
    "active": Field(("num_experts_per_tok", "experts_per_token")),
    "expert_width": Field(("moe_intermediate_size",)),
    "shared_experts": Field(("n_shared_experts", "num_shared_experts"), "count", nullable=True),
    "first_expert_layer": Field(("first_k_dense_replace",), "count"),
    "expert_step": Field(("decoder_sparse_step",)),
    "dense_layers": Field(("mlp_only_layers",), "numbers", nullable=True),
    "layer_types": Field(("layer_types",), "kinds", nullable=True),
    "window_switch": Field(("use_sliding_window",), "switch"),
    "window": Field(("sliding_window",), nullable=True),
    "first_sliding": Field(("max_window_layers",), "count"),
    "attention_bias": Field(("attention_bias",), "switch"),
    "mlp_bias": Field(("mlp_bias",), "switch"),
    "parallel": Field(("use_parallel_residual",), "switch"),
    "tied": Field(("tie_word_embeddings",), "switch"),
    "positions": Field(("n_positions", "max_position_embeddings")),
    "trained_length": Field(("n_positions", "max_position_embeddings", "seq_length")),
    "residual_dropout": Field(("hidden_dropout", "resid_pdrop"), "share"),
    "attention_dropout": Field(("attention_dropout", "attn_pdrop"), "share"),
    "mtp_layers": Field(("num_nextn_predict_layers", "num_mtp_layers"), "count"),
}

CORE = ("hidden", "layers", "heads", "width", "vocab")
"""Fields that a file must give: a class default here would count another model in silence."""

COMMON = ("trained_length", "residual_dropout", "attention_dropout", "mtp_layers")
"""Fields that every family reads; where the class has no default of its own, the neutral value is no assumption."""


@dataclass(frozen=True)
class Facts:
    """A config with every field settled: what the file says, else what the class takes, else what follows."""

    hidden: int
    layers: int
    heads: int
    vocab: int
    width: int
    kv_heads: int
    head_dim: int
    query_rank: int = 0
    latent_rank: int = 0
    nope_dim: int = 0
    rope_dim: int = 0
    value_dim: int = 0
    experts: int = 0
    active: int = 0
    expert_width: int = 0
    shared_experts: int = 0
    first_expert_layer: int = 0
    expert_step: int = 1
    dense_layers: frozenset[int] = frozenset()
    layer_types: tuple[str, ...] | None = None
    window_switch: bool = True
    window: int = 0
    first_sliding: int = 0
    attention_bias: bool = False
    mlp_bias: bool = False
    parallel: bool = False
    tied: bool = False
    positions: int = 0
    trained_length: int = 0
    residual_dropout: float = 0.0
    attention_dropout: float = 0.0
    mtp_layers: int = 0


@dataclass(frozen=True)
class Family:
    """What the configs of one family mean. Flags say what no config of the family can change."""

    defaults: Mapping[str, Any]
    required: tuple[str, ...] = ()  # fields that the file must give beside CORE
    fixed: Mapping[str, Any] = field(default_factory=dict)
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # fields read under fewer, or other, keys
    norm: Literal["rms", "layer"] = "rms"
    norms: Literal["before", "after", "both"] = "before"
    head_norm: Literal["none", "head", "all"] = "none"
    gated: bool = True
    qkv_bias: bool = False  # always, without a switch
    bias: bool = False  # a bias on every dense matrix, always
    sinks: bool = False
    expert_bias: bool = False  # of the experts and of their router
    embedding_norm: bool = False
    sliding_period: int = 0  # every so many layers one sees all keys; 0: all layers are alike

    def keys_of(self, name: str) -> tuple[str, ...]:
        """The keys of config.json under which this family reads a field, the first that is there wins."""
        return self.keys.get(name, FIELDS[name].keys)

    def reads(self) -> tuple[str, ...]:
        """The fields that this family takes from the file."""
        wanted = dict.fromkeys((*CORE, *self.required, *self.defaults, *COMMON))
        return tuple(name for name in wanted if name not in self.fixed)

    def may_be_null(self, name: str) -> bool:
        """Whether null is a value of the field, and not the same as leaving the key out."""
        return FIELDS[name].nullable and (name not in CORE or name in self.defaults)


_PLAIN = {"tied": False, "kv_heads": None, "head_dim": None}
_BIAS = {"attention_bias": False}
_LATE = {"window_switch": False, "window": 4096, "first_sliding": 28, "layer_types": None}
_LATENT = {
    "tied": False, "attention_bias": False, "query_rank": 1536, "latent_rank": 512, "nope_dim": 128, "rope_dim": 64,
    "value_dim": 128,
}  # fmt: skip
_ROUTED = {"experts": ("n_routed_experts", "num_experts", "num_local_experts")}
_EXPERT_WIDTH = {"expert_width": ("intermediate_size",)}  # the key of a dense width holds the width of an expert

FAMILIES: Mapping[str, Family] = {
    "llama": Family({**_PLAIN, **_BIAS, "mlp_bias": False}),
    "mistral": Family({**_PLAIN, "kv_heads": 8, "window": 4096}),
    "qwen2": Family({**_PLAIN, **_LATE, "kv_heads": 32}, qkv_bias=True),
    "qwen3": Family({**_PLAIN, **_BIAS, **_LATE, "kv_heads": 32, "head_dim": 128}, head_norm="head"),
    "mixtral": Family(
        {**_PLAIN, "kv_heads": 8, "window": None, "experts": 8, "active": 2},
        required=("expert_width",), fixed={"width": 0}, keys=_EXPERT_WIDTH,
    ),
    "qwen3_moe": Family(
        {
            **_PLAIN, **_BIAS, "kv_heads": 4, "window_switch": False, "window": 4096, "width": 6144,
            "experts": 128, "active": 8, "expert_width": 768, "expert_step": 1, "dense_layers": None,
        },
        head_norm="head",
    ),
    "deepseek_v2": Family(
        {**_LATENT, "mlp_bias": False, "experts": 64, "expert_width": 1407, "shared_experts": 2,
         "first_expert_layer": 0},
        required=("active",), keys=_ROUTED,
    ),
    "deepseek_v3": Family(
        {**_LATENT, "experts": 256, "active": 8, "expert_width": 2048, "shared_experts": 1, "first_expert_layer": 3,
         "mtp_layers": 1},
        keys=_ROUTED,
    ),
    "gpt_oss": Family(
        {**_PLAIN, "attention_bias": True, "kv_heads": 8, "head_dim": 64, "window": 128, "layer_types": None,
         "experts": 128, "active": 4},
        required=("expert_width",), fixed={"width": 0}, keys=_EXPERT_WIDTH,
        sinks=True, expert_bias=True, sliding_period=2,
    ),
    "gemma2": Family(
        {**_PLAIN, **_BIAS, "tied": True, "kv_heads": 4, "head_dim": 256, "window": 4096, "layer_types": None},
        norms="both", sliding_period=2,
    ),
    "phi3": Family({**_PLAIN, "window": None}),
    "olmo3": Family(
        {**_PLAIN, **_BIAS, "window": 4096, "layer_types": None},
        norms="after", head_norm="all", sliding_period=4,
    ),
    "gpt2": Family(
        {"tied": True, "width": None, "positions": 1024, "residual_dropout": 0.1, "attention_dropout": 0.1},
        fixed={"attention_bias": True},
        keys={"width": ("n_inner",), "residual_dropout": ("resid_pdrop",), "attention_dropout": ("attn_pdrop",)},
        norm="layer", gated=False, bias=True,
    ),
    "gpt_neox": Family(
        {"tied": False, "attention_bias": True, "parallel": True},
        norm="layer", gated=False, bias=True,
    ),
    "bloom": Family(
        {"tied": True},
        fixed={"attention_bias": True, "width": None},
        norm="layer", gated=False, bias=True, embedding_norm=True,
    ),
}  # fmt: skip

RENAMED: Mapping[str, str] = {
    "kimi_k2": "deepseek_v3",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
    "mimo": "qwen2",
}
"""Types with no class of their own here, and the family that has the same layers."""


@dataclass(frozen=True)
class Wrapper:
    """A type that holds a language model beside other parts. Its own tie flag decides, not that of the part."""

    text: str  # the type of its language model, where the part does not say
    tied: bool  # where the top level does not say


WRAPPERS: Mapping[str, Wrapper] = {
    "qwen3_vl": Wrapper("qwen3_vl_text", tied=False),
    "qwen3_vl_moe": Wrapper("qwen3_vl_moe_text", tied=False),
    "kimi_k25": Wrapper("kimi_k2", tied=True),
}


def attention(family: Family, facts: Facts, window: int) -> Attention:
    """Grouped-query attention, or latent attention where the config has a latent rank."""
    bias = facts.attention_bias
    if not facts.latent_rank:
        return Attention(
            facts.heads, facts.kv_heads, facts.head_dim, facts.head_dim, window,
            qkv_bias=bias or family.qkv_bias, out_bias=bias, head_norm=family.head_norm, sinks=family.sinks,
        )  # fmt: skip
    return Attention(
        facts.heads, facts.heads, facts.nope_dim, facts.value_dim, window,
        qkv_bias=bias, out_bias=bias,
        query_rank=facts.query_rank, latent_rank=facts.latent_rank, rope_dim=facts.rope_dim,
    )  # fmt: skip


def dense(family: Family, facts: Facts) -> FeedForward:
    """The feed-forward part of a layer without experts."""
    return FeedForward(facts.width, family.gated, bias=family.bias or facts.mlp_bias)


def mixture(family: Family, facts: Facts) -> FeedForward:
    """The feed-forward part of a layer with experts; all shared experts are one of their summed width."""
    return FeedForward(
        gated=family.gated, bias=facts.mlp_bias, experts=facts.experts, active=facts.active,
        expert_width=facts.expert_width, expert_bias=family.expert_bias, router_bias=family.expert_bias,
        shared_width=facts.shared_experts * facts.expert_width,
    )  # fmt: skip


def slides(family: Family, facts: Facts, layer: int) -> bool:
    """Whether a layer sees a window only: an explicit list beats the rule of the class."""
    if not facts.window or not facts.window_switch:
        return False
    if facts.layer_types is not None:
        return facts.layer_types[layer] == "sliding_attention"
    regular = family.sliding_period == 0 or (layer + 1) % family.sliding_period != 0
    return regular and layer >= facts.first_sliding


def has_experts(facts: Facts, layer: int) -> bool:
    """Whether a layer has experts: after the leading dense ones, every so many, and not among those listed as dense."""
    return (
        facts.experts > 0
        and layer >= facts.first_expert_layer
        and (layer + 1) % facts.expert_step == 0
        and layer not in facts.dense_layers
    )


def blocks(family: Family, facts: Facts) -> tuple[tuple[Block, ...], tuple[int, ...]]:
    """The distinct kinds of layer, in order of appearance, and the kind of each layer."""
    kinds = [(slides(family, facts, i), has_experts(facts, i)) for i in range(facts.layers)]
    seen = tuple(dict.fromkeys(kinds))
    made = tuple(_block(family, facts, kind, seen) for kind in seen)
    return made, tuple(map(seen.index, kinds))


def _block(family: Family, facts: Facts, kind: tuple[bool, bool], seen: tuple[tuple[bool, bool], ...]) -> Block:
    sliding, experts = kind
    name = "moe" if experts else "dense"
    if any(other[0] for other in seen):
        span = "sliding" if sliding else "full"
        name = f"{span}-{name}" if any(other[1] for other in seen) else span
    window = facts.window if sliding else 0
    part = mixture(family, facts) if experts else dense(family, facts)
    return Block(name, attention(family, facts, window), part, family.norms, facts.parallel)
