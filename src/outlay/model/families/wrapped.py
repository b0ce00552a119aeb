"""Language models that exist inside wrappers alone: the layers of another family, with class defaults of their own."""

from collections.abc import Mapping

from .builders import decoder, grouped, sparse
from .family import Family

HEADS = {"tied": False, "head_dim": None}
SQUARE = {"head_dim": None}  # heads share the hidden size, whatever the file says
LATE = {"window_switch": False, "layer_types": None}
QWEN2 = decoder(grouped(qkv_bias=True))
QWEN2_VL = Family({"tied": False, **LATE, "kv_heads": 8, "window": 4096, "first_sliding": 80}, QWEN2, fixed=SQUARE)
ROUTED = {"experts": ("n_routed_experts", "num_local_experts", "num_experts")}

WRAPPED: Mapping[str, Family] = {
    "qwen2_vl_text": QWEN2_VL,
    "qwen2_5_vl_text": QWEN2_VL,
    "qwen2_5_omni_text": Family(
        {**HEADS, **LATE, "tied": True, "kv_heads": 4, "window": 32768, "first_sliding": 28}, QWEN2
    ),
    "qwen3_omni_moe_text": Family(
        {**HEADS, "attention_bias": False, "kv_heads": 4, "width": 18944, "experts": 128, "active": 8,
         "expert_width": 768, "expert_step": 1, "dense_layers": None},
        decoder(grouped(head_norm="head"), sparse()),
    ),
    "glm4v_text": Family(
        {"tied": False, "kv_heads": 2}, decoder(grouped(out_bias=False), norms="both"),
        fixed={**SQUARE, "attention_bias": True},
    ),
    "glm4v_moe_text": Family(
        {**HEADS, "attention_bias": True, "kv_heads": 8, "first_expert_layer": 1, "experts": 128, "active": 8,
         "expert_width": 1408, "shared_experts": 1},
        decoder(grouped(out_bias=False), sparse()),
        keys=ROUTED,
    ),
}  # fmt: skip
