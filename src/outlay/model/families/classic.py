"""Families after GPT-2: norms with a shift, biases everywhere, two matrices in the feed-forward part."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..model import Sublayer
from ..parts import Attention
from ..parts.projection import Projection
from .builders import decoder, dense, grouped, layer_norms, parallel, switched
from .dense import BIASES, SLIDING, SQUARE, one_switch
from .family import Facts, Family, Field

PLAIN_MLP = dense(gated=False, bias=True)
BARE_MLP = dense(gated=False)
GPT2_KEYS = {"width": ("n_inner",), "residual_dropout": ("resid_pdrop",), "attention_dropout": ("attn_pdrop",)}
GPT2 = {"tied": True, "width": None, "positions": 1024, "residual_dropout": 0.1, "attention_dropout": 0.1}
ALL_BIASED = {**SQUARE, "attention_bias": True}
SPARE_POSITIONS = 2  # vectors of positions that stand before the first token's


def positions(spare: int = 0, **more: Any) -> Callable[[Facts], dict[str, Any]]:
    """Learned positions, and norms with a shift; `more` are fields of Model."""

    def ends(facts: Facts) -> dict[str, Any]:
        return layer_norms(positions=facts.positions + spare, **more)(facts)

    return ends


def _one_key_or_all(values: Mapping[str, Any]) -> Any:
    """one for all heads, as multi_query says; else one a head"""
    return 1 if values.get("multi_query") else values.get("heads")


def _falcon_keys(values: Mapping[str, Any]) -> Any:
    """by multi_query, unless new_decoder_architecture: then by num_kv_heads"""
    if values.get("new_architecture"):
        return values.get("stated_kv_heads") or values.get("heads")
    return _one_key_or_all(values)


def _falcon(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
    """One norm for both parts, or one each; not parallel, only in the old architecture."""
    mlp = one_switch(gated=False)
    if not (facts.parallel or facts.new_architecture):
        return decoder(feed_forward=mlp)(facts, layer)
    norms = facts.parallel_norms or (2 if facts.new_architecture else 1)
    return parallel(feed_forward=mlp, own_norms=norms == 2 or not facts.parallel)(facts, layer)


def _in_turn(values: Mapping[str, Any]) -> tuple[str, ...]:
    """global and local in turn"""
    return tuple(("global", "local")[layer % 2] for layer in range(values.get("layers", 0)))


def _gpt_neo(facts: Facts, layer: int) -> Attention:
    local = facts.attention_types[layer] == "local"
    sizes = facts.heads, facts.heads, facts.head_dim, facts.head_dim
    return Attention(*sizes, window=facts.window if local else 0, out_bias=True)


def _biased_last(facts: Facts, layer: int) -> Attention:
    """Only the last layer has a bias."""
    sizes = facts.heads, facts.heads, facts.head_dim, facts.head_dim
    return Attention(*sizes, out_bias=layer == facts.layers - 1)


def _multiple(values: Mapping[str, Any]) -> int:
    """intermediate_multiple_size x hidden size"""
    return int(values["multiple"] * values["hidden"])


def _as_hidden(values: Mapping[str, Any]) -> Any:
    """as wide as the hidden vector"""
    return values.get("hidden")


def _opt_ends(facts: Facts) -> dict[str, Any]:
    own_width = facts.embedding_width if facts.embedding_width != facts.hidden else 0
    final = facts.norms_before and not facts.without_final_norm
    weights = 2 if facts.affine else 0
    return positions(SPARE_POSITIONS, final_norm=final, norm_weights=weights, embedding_width=own_width)(facts)


def _modernbert_layer(facts: Facts, layer: int) -> tuple[Sublayer, ...]:
    """The window is given for both sides, and half of it is behind; the first layer reads the embedding's norm."""
    attention = grouped(place=0)(facts, layer)
    halved = replace(attention, window=attention.window // 2)
    first = Sublayer((halved,), "none" if layer == 0 else "before")
    return first, Sublayer((dense()(facts, layer),))


def _modernbert_ends(facts: Facts) -> dict[str, Any]:
    return {
        "norm": "layer", "norm_weights": 2 if facts.norm_bias else 1, "embedding_norm": True,
        "head_bias": facts.head_bias, "after": (Projection(facts.head_layer_bias, normed=True, activated=True),),
    }  # fmt: skip


CLASSIC: Mapping[str, Family] = {
    "gpt2": Family(GPT2, decoder(feed_forward=PLAIN_MLP), positions(), fixed=ALL_BIASED, keys=GPT2_KEYS),
    "gpt_bigcode": Family(
        {**GPT2, "kv_heads": None, "multi_query": True},
        decoder(feed_forward=PLAIN_MLP),
        positions(),
        fixed={**ALL_BIASED, "kv_heads": None},
        keys={**GPT2_KEYS, "kv_heads": ("num_key_value_heads",)},
        own={"multi_query": Field(("multi_query",), "switch")},
        derived={"kv_heads": _one_key_or_all},
    ),
    "gpt_neox": Family(
        {"tied": False, "attention_bias": True, "parallel": True},
        switched("parallel", parallel(feed_forward=PLAIN_MLP, own_norms=True), decoder(feed_forward=PLAIN_MLP)),
        layer_norms(),
    ),
    "gpt_neox_japanese": Family(
        {"tied": True, "width": None, "multiple": 4, "attention_dropout": 0.1},
        decoder(_biased_last, BARE_MLP),
        layer_norms(),
        fixed={**SQUARE, "width": None},
        own={"multiple": Field(("intermediate_multiple_size",))},
        derived={"width": _multiple},
    ),
    "bloom": Family(
        {"tied": True},
        decoder(grouped(), PLAIN_MLP),
        layer_norms(embedding_norm=True),
        fixed={**ALL_BIASED, "width": None},
    ),
    "gptj": Family(
        {"tied": False, "width": None},
        parallel(feed_forward=PLAIN_MLP),
        layer_norms(head_bias=True),
        fixed=SQUARE,
        keys=GPT2_KEYS,
    ),
    "codegen": Family(
        {"tied": False, "width": None},
        parallel(feed_forward=PLAIN_MLP),
        layer_norms(head_bias=True),
        fixed=SQUARE,
        keys=GPT2_KEYS,
    ),
    "gpt_neo": Family(
        {"tied": True, "width": None, "positions": 2048, "window": 256, "attention_types": None},
        decoder(_gpt_neo, PLAIN_MLP),
        positions(),
        fixed=SQUARE,
        keys={"layers": ("num_layers", "num_hidden_layers"), "heads": ("num_heads", "num_attention_heads"),
              "window": ("window_size",), "residual_dropout": ("resid_dropout",)},
        own={"attention_types": Field(("attention_types",), "repeats", nullable=True, words=("global", "local"))},
        derived={"attention_types": _in_turn},
    ),
    "falcon": Family(
        {"tied": True, "kv_heads": None, "stated_kv_heads": None, "new_architecture": False, "multi_query": True,
         "parallel": True, "parallel_norms": None, "attention_bias": False, "width": None},
        _falcon,
        layer_norms(),
        fixed={**SQUARE, "kv_heads": None},
        keys={"kv_heads": ("num_kv_heads",), "parallel": ("parallel_attn",), "attention_bias": ("bias",),
              "width": ("ffn_hidden_size",)},
        own={"stated_kv_heads": Field(("num_kv_heads",), nullable=True),
             "new_architecture": Field(("new_decoder_architecture",), "switch"),
             "multi_query": Field(("multi_query",), "switch"),
             "parallel_norms": Field(("num_ln_in_parallel_attn",), nullable=True)},
        derived={"kv_heads": _falcon_keys},
    ),
    "mpt": Family(
        {"tied": True},
        decoder(feed_forward=BARE_MLP),
        layer_norms(norm_weights=1),
        fixed={**SQUARE, "width": None, "expansion": 4},
        own={"expansion": Field(("expansion_ratio",))},
        keys={"hidden": ("d_model", "hidden_size"), "layers": ("n_layers", "num_hidden_layers"),
              "heads": ("n_heads", "num_attention_heads"), "trained_length": ("max_seq_len",),
              "residual_dropout": ("attn_config.attn_pdrop",), "attention_dropout": ("attn_config.attn_pdrop",)},
    ),
    "openai-gpt": Family(
        {"tied": True, "positions": 512, "residual_dropout": 0.1, "attention_dropout": 0.1},
        decoder(feed_forward=PLAIN_MLP, norms="after"),  # of the sum, where `after` is of the output: the same rows
        positions(final_norm=False),
        fixed={**ALL_BIASED, "width": None},
        keys=GPT2_KEYS,
    ),
    "ctrl": Family(
        {"tied": True, "residual_dropout": 0.1},
        decoder(feed_forward=PLAIN_MLP),
        layer_norms(head_bias=True),
        fixed=ALL_BIASED,
        keys={"width": ("dff",)},
    ),
    "biogpt": Family(
        {"tied": True, "positions": 1024, "residual_dropout": 0.1, "attention_dropout": 0.1},
        decoder(feed_forward=PLAIN_MLP),
        positions(SPARE_POSITIONS),
        fixed=ALL_BIASED,
        keys={"residual_dropout": ("hidden_dropout_prob",), "attention_dropout": ("attention_probs_dropout_prob",)},
    ),
    "xglm": Family(
        {"tied": True, "residual_dropout": 0.1, "attention_dropout": 0.1},
        decoder(feed_forward=PLAIN_MLP),
        layer_norms(),
        fixed=ALL_BIASED,
        keys={"hidden": ("d_model", "hidden_size"), "layers": ("num_layers", "num_hidden_layers"),
              "heads": ("attention_heads", "num_attention_heads"), "width": ("ffn_dim",),
              "residual_dropout": ("dropout",)},
    ),
    "opt": Family(
        {"tied": True, "positions": 2048, "attention_bias": True, "norms_before": True, "affine": True,
         "embedding_width": None, "without_final_norm": None, "residual_dropout": 0.1},
        switched("norms_before", decoder(feed_forward=one_switch(gated=False)),
                 decoder(feed_forward=one_switch(gated=False), norms="after")),
        _opt_ends,
        fixed=SQUARE,
        keys={"width": ("ffn_dim",), "attention_bias": ("enable_bias",), "residual_dropout": ("dropout",)},
        own={"norms_before": Field(("do_layer_norm_before",), "switch"),
             "affine": Field(("layer_norm_elementwise_affine",), "switch"),
             "embedding_width": Field(("word_embed_proj_dim",), nullable=True),
             "without_final_norm": Field(("_remove_final_layer_norm",), "switch", nullable=True)},
        derived={"embedding_width": _as_hidden},
    ),
    "modernbert-decoder": Family(
        {**BIASES, **SLIDING, "tied": True, "window": 128, "window_period": 3, "norm_bias": False, "head_bias": True,
         "head_layer_bias": False},
        _modernbert_layer,
        _modernbert_ends,
        fixed=SQUARE,
        keys={"window": ("local_attention",), "window_period": ("global_attn_every_n_layers",),
              "residual_dropout": ("mlp_dropout",)},
        own={"norm_bias": Field(("norm_bias",), "switch"), "head_bias": Field(("decoder_bias",), "switch"),
             "head_layer_bias": Field(("classifier_bias",), "switch")},
    ),
}  # fmt: skip
