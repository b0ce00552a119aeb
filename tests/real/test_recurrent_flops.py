"""Model FLOPs of recurrent parts against torch's counter; every difference between code and kernel is a named term."""

import os
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM

from outlay.job import Job
from outlay.model.huggingface import read_config
from outlay.undivided import sequence_flops

pytestmark = pytest.mark.filterwarnings("ignore")
TOKENS = 256

STATES = {"vocab_size": 512, "hidden_size": 256, "num_hidden_layers": 2, "eos_token_id": 2, "pad_token_id": 0}
BASE = STATES | {"num_attention_heads": 8, "intermediate_size": 512, "max_position_embeddings": 4096, "bos_token_id": 1}
TWO = BASE | {"num_key_value_heads": 2}
MIXED = {"layer_types": ["linear_attention", "full_attention"]}
CONVOLUTIONS = {"layer_types": ["conv", "full_attention"]}
HYBRID = {"num_hidden_layers": 3, "layers_block_type": ["linear_attention", "hybrid", "hybrid"]}
MAMBA2 = {"mamba_n_heads": 8, "mamba_n_groups": 2, "mamba_d_state": 16, "mamba_chunk_size": 64}
DELTA = MIXED | {
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 24,
}  # fmt: skip
GATED = TWO | DELTA | {"head_dim": 64}
SHARED = {
    "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "shared_expert_intermediate_size": 64,
}  # fmt: skip
FOUR = {"num_local_experts": 4, "num_experts_per_tok": 2}
KIMI = BASE | {
    "kv_lora_rank": 32, "qk_nope_head_dim": 24, "qk_rope_head_dim": 8, "v_head_dim": 16, "num_local_experts": 8,
    "num_experts_per_tok": 2, "moe_intermediate_size": 128, "n_shared_experts": 1, "n_group": 1, "topk_group": 1,
    "num_key_value_heads": 8, "first_k_dense_replace": 1,
}  # fmt: skip
NEMOTRON = {key: value for key, value in TWO.items() if key != "num_hidden_layers"} | {
    "head_dim": 64, "hybrid_override_pattern": "M-*E", "mamba_num_heads": 8, "mamba_head_dim": 16, "n_groups": 2,
    "ssm_state_size": 16, "chunk_size": 64, "n_routed_experts": 4, "num_experts_per_tok": 2,
    "moe_intermediate_size": 128, "moe_shared_expert_intermediate_size": 64,
}  # fmt: skip


def convolution(channels: int, taps: int = 4) -> int:
    """It runs over the padding too: taps - 1 tokens more."""
    return 2 * taps * channels * (taps - 1)


def selective_scan(channels: int, states: int = 16) -> int:
    """Element-wise steps are no products: only the readout is one, of the 9 a channel and state and 2 a channel."""
    return convolution(channels) - (7 * channels * states + 2 * channels) * TOKENS


def chunked_scan(head_dim: int, heads: int = 8, states: int = 16, groups: int = 2, chunk: int = 64) -> int:
    """Groups are spread over their heads before C B', and states pass from every chunk to every later one at once."""
    spread = 2 * chunk * states * (heads - groups) * TOKENS
    between = 2 * (TOKENS // chunk + 1) ** 2 * heads * states * head_dim
    return spread + between + convolution(heads * head_dim + 2 * groups * states)


def delta_rule(heads: int, key: int, value: int, channels: int, chunk: int = 64) -> int:
    """Triangles are solved, where kernels invert them and multiply by keys and values; a solve is not counted."""
    return convolution(channels) - 2 * heads * chunk * (key + value) * TOKENS


# Each config, and what torch counts more, or less, in the plain code than the kernels of its recurrent parts multiply.
CASES: dict[str, tuple[dict[str, Any], int]] = {
    "mamba": (STATES, 2 * selective_scan(512)),
    "falcon_mamba": (STATES, 2 * selective_scan(512)),
    "jamba": (TWO | FOUR | {"attn_layer_period": 2, "attn_layer_offset": 1}, selective_scan(512)),
    "zamba": (BASE | HYBRID | {"n_mamba_heads": 2, "num_key_value_heads": 8}, 3 * selective_scan(512)),
    "mamba2": (
        STATES | {"num_heads": 8, "head_dim": 64, "n_groups": 2, "state_size": 16, "chunk_size": 64},
        2 * chunked_scan(64),
    ),
    "nemotron_h": (NEMOTRON, chunked_scan(16)),
    "bamba": (TWO | MAMBA2 | {"attn_layer_indices": [1]}, chunked_scan(64)),
    "falcon_h1": (TWO | MAMBA2 | {"mamba_d_ssm": 128}, 2 * chunked_scan(16)),
    "granitemoehybrid": (TWO | MAMBA2 | FOUR | MIXED | {"shared_intermediate_size": 128}, chunked_scan(64)),
    "zamba2": (
        BASE | HYBRID | {
            "n_mamba_heads": 8, "mamba_d_state": 16, "mamba_ngroups": 2, "chunk_size": 64, "adapter_rank": 16,
            "use_shared_attention_adapter": True,
        },
        3 * chunked_scan(64),
    ),
    "qwen3_next": (GATED | SHARED, delta_rule(4, 16, 24, 160)),
    "qwen3_5_text": (GATED, delta_rule(4, 16, 24, 160)),
    "qwen3_5_moe_text": (GATED | SHARED, delta_rule(4, 16, 24, 160)),
    "olmo_hybrid": (TWO | DELTA, delta_rule(4, 16, 24, 160)),
    "kimi_linear": (KIMI | MIXED | {"linear_num_heads": 4, "linear_head_dim": 16}, delta_rule(4, 16, 16, 192)),
    "bailing_hybrid": (KIMI | {"head_dim": 16, "layer_group_size": 2}, delta_rule(8, 16, 16, 384)),
    "minimax": (TWO | FOUR | MIXED | {"block_size": 64}, 0),
    "lfm2": (TWO | CONVOLUTIONS, convolution(256, taps=3)),
    "lfm2_moe": (TWO | SHARED | CONVOLUTIONS | {"num_dense_layers": 1}, convolution(256, taps=3)),
    "recurrent_gemma": (TWO | {"lru_width": 128, "block_types": ["recurrent", "attention"]}, convolution(128)),
    "rwkv": (STATES, 0),
}  # fmt: skip


def counted(kind: str, config: dict[str, Any]) -> int:
    """FLOPs of a forward pass. Experts run as batched multiplies, the one form of them that the counter sees."""
    how = {"attn_implementation": "eager", "experts_implementation": "batched_mm"}
    with FakeTensorMode():
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **config), dtype=torch.bfloat16, **how)
        with FlopCounterMode(display=False) as counter:
            model(input_ids=torch.zeros(1, TOKENS, dtype=torch.long), use_cache=False)
    return int(counter.get_total_flops())


@pytest.mark.parametrize("kind", CASES)
def test_the_forward_pass_has_the_flops_that_torch_counts_but_for_what_its_kernels_do_otherwise(kind: str) -> None:
    config, otherwise = CASES[kind]
    job = Job(sequence_length=TOKENS, global_batch=1, attention_flops="full")

    assert sequence_flops(read_config(config | {"model_type": kind}), job) + otherwise == counted(kind, config)
