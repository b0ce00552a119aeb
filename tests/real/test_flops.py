"""Model FLOPs against torch's own counter, on the model code of transformers."""

import os
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count
from transformers import AutoConfig, AutoModelForCausalLM

from outlay.job import Job
from outlay.model.huggingface import read_config
from outlay.model.model import Model
from outlay.model.operations import Attention
from outlay.undivided import sequence_flops

pytestmark = pytest.mark.filterwarnings("ignore")
TOKENS = 256


def flash(q: Any, k: Any, v: Any, *rest: Any, **more: Any) -> int:
    return sdpa_flop_count(q, k, v)


def flash_backward(grad: Any, q: Any, k: Any, v: Any, *rest: Any, **more: Any) -> int:
    return sdpa_backward_flop_count(grad, q, k, v)


# The counter does not know the fused attention of CPUs; its formulas for that of GPUs serve.
FUSED = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: flash,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: flash_backward,
}

BASE = {
    "vocab_size": 512, "hidden_size": 256, "num_hidden_layers": 3, "num_attention_heads": 8, "intermediate_size": 512,
    "max_position_embeddings": 4096, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
GROUPS = BASE | {"num_key_value_heads": 2}
LATENT = BASE | {
    "kv_lora_rank": 32, "qk_nope_head_dim": 24, "qk_rope_head_dim": 8, "v_head_dim": 16, "n_routed_experts": 8,
    "num_experts_per_tok": 2, "moe_intermediate_size": 128, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
    "num_key_value_heads": 8,
}  # fmt: skip
SPARSE = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "mlp_only_layers": [1]}
GPT2 = {"vocab_size": 512, "n_embd": 256, "n_layer": 3, "n_head": 8, "bos_token_id": 1, "eos_token_id": 2}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": GROUPS,
    "gpt2": GPT2,
    "gpt_neox": BASE,
    "bloom": {"vocab_size": 512, "hidden_size": 256, "n_layer": 3, "n_head": 8},
    "qwen3": GROUPS | {"head_dim": 64},
    "gemma2": GROUPS | {"head_dim": 64},
    "olmo3": GROUPS,
    "mixtral": GROUPS | {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen3_moe": GROUPS | SPARSE | {"head_dim": 32},
    "gpt_oss": GROUPS | {"head_dim": 64, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 512},
    "deepseek_v2": LATENT | {"q_lora_rank": None, "n_shared_experts": 2},
    "deepseek_v3": LATENT | {"q_lora_rank": 64, "n_shared_experts": 1},
}
FLASH = ["llama", "qwen3", "mixtral"]  # their heads are as wide for values as for keys, as fused attention wants


@dataclass(frozen=True)
class Counted:
    """FLOPs of a forward and a backward pass as torch counts them, and the config that was built."""

    forward: int
    backward: int
    config: dict[str, Any]

    @property
    def model(self) -> Model:
        return read_config(self.config)


def counted(kind: str, attention: str = "eager", **more: Any) -> Counted:
    """Run a model without data. Experts run as batched multiplies, the one form of them that the counter sees."""
    config = AutoConfig.for_model(kind, **(CONFIGS[kind] | more))
    how = {"attn_implementation": attention, "experts_implementation": "batched_mm"}
    with FakeTensorMode():
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, **how)
        tokens = torch.zeros(1, TOKENS, dtype=torch.long)
        with FlopCounterMode(display=False, custom_mapping=FUSED) as ahead:
            logits = model(input_ids=tokens, use_cache=False).logits
        with FlopCounterMode(display=False, custom_mapping=FUSED) as back:
            logits.float().sum().backward()
    return Counted(ahead.get_total_flops(), back.get_total_flops(), config.to_dict())


def ours(model: Model) -> float:
    return sequence_flops(model, Job(sequence_length=TOKENS, global_batch=1, attention_flops="full"))


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_forward_pass_has_the_flops_that_torch_counts(kind: str) -> None:
    real = counted(kind)

    assert ours(real.model) == real.forward
    assert real.backward == 2 * real.forward


@pytest.mark.parametrize("kind", FLASH)
def test_fused_attention_has_the_same_and_its_backward_pass_recomputes_the_scores(kind: str) -> None:
    """Five products for two: 2.5 times the core's forward FLOPs, and twice the rest."""
    plain, fused = counted(kind), counted(kind, "sdpa")
    core = plain.forward - ours_without_core(plain.model)

    assert fused.forward == plain.forward
    assert fused.backward == 2 * (plain.forward - core) + Attention("core", True, 0, 0, 0).back * core


def ours_without_core(model: Model) -> float:
    """Linear in the tokens: what is left of two sequence lengths when what grows with their square is taken away."""
    one, two = (
        sequence_flops(model, Job(sequence_length=s, global_batch=1, attention_flops="full"))
        for s in (TOKENS, 2 * TOKENS)
    )
    return (4 * one - two) / 2


def test_layers_with_a_window_are_counted_by_the_keys_they_see() -> None:
    """An unfused layer multiplies all the keys and then masks them: that much more torch counts in such layers."""
    window = 64
    kinds = ["sliding_attention", "full_attention", "sliding_attention"]
    real = counted("gpt_oss", sliding_window=window, layer_types=kinds)
    scores = 2 * 2 * TOKENS * (TOKENS - window) * 8 * 64  # two products, each 2 FLOPs, over 8 heads of 64

    assert real.forward - ours(real.model) == 2 * scores


@pytest.mark.parametrize("kind", ["llama", "mixtral"])
def test_causal_counting_takes_half_of_the_attention_and_the_diagonal(kind: str) -> None:
    model = counted(kind).model
    causal = sequence_flops(model, Job(sequence_length=TOKENS, global_batch=1, attention_flops="causal"))
    core = ours(model) - ours_without_core(model)

    assert ours(model) - causal == core * (1 - (TOKENS + 1) / (2 * TOKENS))
