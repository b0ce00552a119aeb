"""Families of dense decoders like Llama with LayerNorm, or with attention and feed-forward side by side."""

from collections.abc import Mapping

from .builders import decoder, dense, grouped, layer_norms, parallel, switched
from .dense import BIAS, BIASES, ONE_SWITCH, PLAIN, PLAIN_MLP, SLIDING, SQUARE, one_switch
from .family import Family

BIASED_MLP = dense(gated=False, bias=True)
NORMED_HEADS = switched("query_key_norm", grouped(head_norm="head"), grouped())
STABLE = switched("query_key_norm", grouped(head_norm="heads", out_bias=False), grouped(out_bias=False))

LAYER_NORMED: Mapping[str, Family] = {
    "cohere": Family(
        {**PLAIN, **BIAS, "tied": True, "query_key_norm": False},
        parallel(switched("query_key_norm", grouped(head_norm="heads"), grouped())),
        layer_norms(norm_weights=1),
        keys={"query_key_norm": ("use_qk_norm",)},
    ),
    "cohere2": Family(
        {**PLAIN, **BIAS, **SLIDING, "tied": True, "window_period": 4}, parallel(), layer_norms(norm_weights=1)
    ),
    "jais2": Family(
        {**PLAIN, "attention_bias": True, "mlp_bias": True}, decoder(feed_forward=PLAIN_MLP), layer_norms()
    ),
    "nemotron": Family({**PLAIN, **BIASES}, decoder(feed_forward=PLAIN_MLP), layer_norms()),
    "olmo": Family({**PLAIN, **BIAS}, decoder(), layer_norms(norm_weights=0)),
    "persimmon": Family(
        {"tied": False, "query_key_norm": True},
        decoder(
            NORMED_HEADS, BIASED_MLP
        ),
        layer_norms(),
        fixed={**SQUARE, "attention_bias": True},
    ),
    "phi": Family(
        {**PLAIN, "query_key_norm": False},
        parallel(
            NORMED_HEADS, BIASED_MLP
        ),
        layer_norms(head_bias=True),
        fixed={"attention_bias": True},
    ),
    "stablelm": Family(
        {**PLAIN, **BIAS, "kv_heads": 32, "query_key_norm": False, "parallel": False},
        switched("parallel", parallel(STABLE), decoder(STABLE)),
        layer_norms(),
        fixed=SQUARE,
        keys={"attention_bias": ("use_qkv_bias",)},
    ),
    "starcoder2": Family(
        {**PLAIN, "tied": True, "attention_bias": True, "kv_heads": 2, "window": None},
        decoder(feed_forward=one_switch(gated=False)),
        layer_norms(),
        keys={**ONE_SWITCH, "residual_dropout": ("residual_dropout",)},
    ),
}  # fmt: skip
