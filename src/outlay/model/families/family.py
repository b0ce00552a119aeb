"""What a family is: the fields that its configs hold, what its class takes by default, and how its layers are built.

A field that a family lists in `defaults` is read from the file; one that it lists in `fixed` is not, whatever the file
says; every other field keeps its neutral value. None means: derived.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ..model import Sublayer

FieldKind = Literal[
    "size", "count", "switch", "share", "kinds", "numbers", "sizes", "word", "text", "objects", "flags", "period",
    "repeats", "place", "cycle", "pattern",
]  # fmt: skip

NEUTRAL: Mapping[str, Any] = {"size": 0, "count": 0, "switch": False, "share": 0.0, "word": "", "text": ""}
"""What a field is where a family does not have it; a list is then None."""


@dataclass(frozen=True)
class Field:
    """A field of a config: the keys that may hold it, in order, what its value must be, and whether null is a value.

    A key with a dot is inside an object. `words` are the values of a word, or of the entries of a list of kinds; of a
    size, words that mean null. A pattern says how many layers there are; a cycle may be shorter than the model.
    """

    keys: tuple[str, ...]
    kind: FieldKind = "size"
    nullable: bool = False
    words: tuple[str, ...] = ()


SPANS = ("full_attention", "sliding_attention")

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
    "shared_width": Field(
        ("shared_expert_intermediate_size", "shared_intermediate_size", "share_expert_dim", "share_expert_dims"),
        "count",
    ),
    "first_expert_layer": Field(("first_k_dense_replace",), "count"),
    "expert_step": Field(("decoder_sparse_step",)),
    "dense_layers": Field(("mlp_only_layers",), "numbers", nullable=True),
    "layer_types": Field(("layer_types",), "kinds", nullable=True, words=SPANS),
    "feed_forward_types": Field(("mlp_layer_types",), "kinds", nullable=True, words=("dense", "sparse")),
    "window_switch": Field(("use_sliding_window",), "switch"),
    "window": Field(("sliding_window",), nullable=True),
    "first_sliding": Field(("max_window_layers",), "count"),
    "window_period": Field(("sliding_window_pattern",)),
    "full_period": Field(("full_attention_interval", "layer_group_size")),
    "attention_layers": Field(("attn_layer_indices",), "numbers", nullable=True),
    "state": Field(("state_size", "mamba_d_state", "ssm_state_size")),
    "expand": Field(("expand", "mamba_expand")),
    "groups": Field(("n_groups", "mamba_n_groups", "mamba_ngroups")),
    "chunk": Field(("chunk_size", "mamba_chunk_size")),
    "step_rank": Field(("time_step_rank", "mamba_dt_rank"), nullable=True, words=("auto",)),
    "scan_heads": Field(("num_heads", "mamba_n_heads", "mamba_num_heads", "n_mamba_heads")),
    "scan_head_dim": Field(("mamba_d_head", "mamba_head_dim"), nullable=True, words=("auto",)),
    "scan_bias": Field(("use_bias", "mamba_proj_bias"), "switch"),
    "taps": Field(
        (
            "conv_kernel",
            "mamba_d_conv",
            "linear_conv_kernel_dim",
            "short_conv_kernel_size",
            "conv1d_width",
            "conv_L_cache",
        )
    ),
    "conv_bias": Field(("use_conv_bias", "mamba_conv_bias"), "switch"),
    "delta_key_heads": Field(("linear_num_key_heads",), nullable=True),
    "delta_value_heads": Field(("linear_num_value_heads",), nullable=True),
    "delta_key_dim": Field(("linear_key_head_dim",), nullable=True),
    "delta_value_dim": Field(("linear_value_head_dim",), nullable=True),
    "attention_bias": Field(("attention_bias",), "switch"),
    "head_norm": Field(("use_qk_norm",), "switch"),
    "index_heads": Field(("index_n_heads",)),
    "index_dim": Field(("index_head_dim",)),
    "selected": Field(("index_topk",)),
    "mlp_bias": Field(("mlp_bias",), "switch"),
    "parallel": Field(("use_parallel_residual",), "switch"),
    "query_key_norm": Field(("qk_layernorm",), "switch"),
    "tied": Field(("tie_word_embeddings",), "switch"),
    "positions": Field(("n_positions", "max_position_embeddings")),
    "trained_length": Field(("n_positions", "max_position_embeddings", "seq_length")),
    "residual_dropout": Field(("hidden_dropout", "resid_pdrop"), "share"),
    "attention_dropout": Field(("attention_dropout", "attn_pdrop"), "share"),
    "mtp_layers": Field(("num_nextn_predict_layers", "num_mtp_layers"), "count"),
}
"""Fields that several families have, under one meaning. A field of one family stands in that family."""

CORE = ("hidden", "layers", "heads", "width", "vocab")
"""Fields that a file must give: a class default here would count another model in silence."""

COMMON = ("trained_length", "residual_dropout", "attention_dropout", "mtp_layers")
"""Fields that every family reads; where the class has no default of its own, the neutral value is no assumption."""


class Facts:
    """A config with every field settled: what the file says, else what the class takes, else what follows.

    A field that the family does not have is neutral: 0, false, or no list.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Keep the settled values, and which of them are asked for."""
        self.values = dict(values)
        self.asked: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        """The value of a field."""
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name) if name in self.values else NEUTRAL.get(FIELDS[name].kind)

    def get(self, name: str) -> Any:
        """The value of a field that the family may not have; None where it has not."""
        self.asked.add(name)
        return self.values.get(name)


Layer: TypeAlias = Callable[[Facts, int], tuple[Sublayer, ...]]


def nothing(facts: Facts) -> dict[str, Any]:
    """A model whose ends are the usual ones: RMS norms, one table, one head."""
    return {}


@dataclass(frozen=True)
class Family:
    """What the configs of one family mean."""

    defaults: Mapping[str, Any]
    layer: Layer  # the sublayers of the layer at a place
    ends: Callable[[Facts], dict[str, Any]] = nothing  # fields of Model that are not the usual ones
    required: tuple[str, ...] = ()  # fields that the file must give beside the core
    core: tuple[str, ...] = CORE
    fixed: Mapping[str, Any] = field(default_factory=dict)
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # fields read under fewer, or other, keys
    own: Mapping[str, Field] = field(default_factory=dict)  # fields that no other family has, or means otherwise
    derived: Mapping[str, Callable[[Mapping[str, Any]], Any]] = field(default_factory=dict)  # where None is left
    notes: tuple[str, ...] = ()  # what the counts of this family leave out, or take as an assumption

    def field(self, name: str) -> Field:
        """A field as this family reads it."""
        return self.own.get(name) or FIELDS[name]

    def keys_of(self, name: str) -> tuple[str, ...]:
        """The keys of config.json under which this family reads a field, the first that is there wins."""
        return self.keys.get(name, self.field(name).keys)

    def reads(self) -> tuple[str, ...]:
        """The fields that this family takes from the file."""
        wanted = dict.fromkeys((*self.core, *self.required, *self.defaults, *COMMON))
        return tuple(name for name in wanted if name not in self.fixed)

    def may_be_null(self, name: str) -> bool:
        """Whether null is a value of the field, and not the same as leaving the key out."""
        return self.field(name).nullable and (name not in self.core or name in self.defaults)
