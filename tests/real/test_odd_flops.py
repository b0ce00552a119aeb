"""Model FLOPs of the families with parts of their own against torch's counter; every difference is a named term."""

import os
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM

from outlay.job import Job
from outlay.model.huggingface import read_config
from outlay.undivided import sequence_flops

pytestmark = pytest.mark.filterwarnings("ignore")
TOKENS = 256
WIDE = 512  # a window no narrower than the sequence: unfused attention multiplies what a window hides

BASE = {
    "vocab_size": 512, "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 8,
    "max_position_embeddings": 4096, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
DENSE = BASE | {"num_key_value_heads": 2, "intermediate_size": 512}
GEMMA = DENSE | {
    "num_hidden_layers": 6, "head_dim": 64, "sliding_window": WIDE, "num_kv_shared_layers": 2,
    "layer_types": ["sliding_attention", "full_attention"] * 3, "hidden_size_per_layer_input": 16,
    "vocab_size_per_layer_input": 512,
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "gemma4_text": GEMMA | {
        "global_head_dim": 96, "num_global_key_value_heads": 1, "attention_k_eq_v": True, "enable_moe_block": True,
        "num_experts": 8, "top_k_experts": 2, "moe_intermediate_size": 64,
    },
    "gemma3n_text": GEMMA | {"laurel_rank": 16, "altup_num_inputs": 4, "activation_sparsity_pattern": [0.0] * 6},
    "doge": DENSE | {"is_moe": True, "num_experts": 64, "num_experts_per_tok": 4},
    "zaya": BASE | {
        "num_key_value_heads": 2, "head_dim": 64, "num_experts": 8, "moe_intermediate_size": 64,
        "router_hidden_size": 32,
    },
    "deepseek_v4": BASE | {
        "num_hidden_layers": 3, "head_dim": 64, "moe_intermediate_size": 64, "n_routed_experts": 8,
        "num_experts_per_tok": 2, "q_lora_rank": 64, "o_groups": 2, "o_lora_rank": 32, "index_n_heads": 4,
        "index_head_dim": 32, "index_topk": WIDE, "hc_mult": 4, "sliding_window": WIDE,
        "layer_types": ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"],
    },
}  # fmt: skip

CHANNELS, HEAD, TAPS = (8 + 2) * 64, 64, 2
OURS_LESS = {
    # Two layers: the first convolution begins one token before the sequence, and so does the delayed half of a value.
    "zaya": 2 * (2 * CHANNELS * TAPS + 2 * 256 * 2 * HEAD // 2),
    # The weighted sum over an indexer's heads, which the class writes as a product and a sum.
    "deepseek_v4": -2 * TOKENS * (TOKENS // 4) * 4,
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_forward_pass_has_the_flops_that_torch_counts(kind: str) -> None:
    config = AutoConfig.for_model(kind, **CONFIGS[kind])
    how = {"attn_implementation": "eager", "experts_implementation": "batched_mm"}
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, **how)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(input_ids=torch.zeros(1, TOKENS, dtype=torch.long), use_cache=False)
    read = read_config(config.to_dict() | CONFIGS[kind] | {"model_type": kind})
    ours = sequence_flops(read, Job(sequence_length=TOKENS, global_batch=1, attention_flops="full"))

    assert counter.get_total_flops() - ours == OURS_LESS.get(kind, 0)
