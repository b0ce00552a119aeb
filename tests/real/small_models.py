"""Configs of small models, whose real steps take seconds: each family with what it adds, widths of one's own choice."""

from typing import Any

Config = dict[str, Any]


def llama(hidden: int, layers: int, **more: Any) -> Config:
    """Two queries or more a key, a feed-forward part twice as wide."""
    return {
        "model_type": "llama", "vocab_size": 1024, "hidden_size": hidden, "num_hidden_layers": layers,
        "intermediate_size": 2 * hidden, "num_attention_heads": hidden // 32, "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
    } | more  # fmt: skip


def mixtral(hidden: int, layers: int, **more: Any) -> Config:
    """The same with four experts, of which two work."""
    experts = {"num_local_experts": 4, "num_experts_per_tok": 2}
    return llama(hidden, layers, model_type="mixtral", **experts | more)


def deepseek(layers: int) -> Config:
    """Latent attention; the first layer dense, those after it of experts with a shared one beside them."""
    latent = {"kv_lora_rank": 32, "q_lora_rank": 64, "qk_nope_head_dim": 24, "qk_rope_head_dim": 8, "v_head_dim": 16}
    experts = {
        "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "first_k_dense_replace": 1,
        "n_group": 1, "topk_group": 1, "n_shared_experts": 1,
    }  # fmt: skip
    return llama(256, layers, model_type="deepseek_v3", num_key_value_heads=8, **latent, **experts)


def gpt2(hidden: int, layers: int) -> Config:
    """Without dropout."""
    return {
        "model_type": "gpt2", "vocab_size": 1024, "n_embd": hidden, "n_layer": layers, "n_head": hidden // 32,
        "n_positions": 1024, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
    }  # fmt: skip
