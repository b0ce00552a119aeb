"""Model FLOPs against torch's own counter, on the model code of transformers."""

import os
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    MllamaForCausalLM,
    MllamaTextConfig,
)
from transformers.initialization import no_init_weights

from outlay.job import Job
from outlay.model.huggingface import read_config
from outlay.model.model import Model
from outlay.model.operations import Attention
from outlay.undivided import parameters, sequence_flops
from outlay.verify.comparisons.flops import BY_VALUE, full, run_flops
from outlay.verify.models.configs import HOW

pytestmark = pytest.mark.filterwarnings("ignore")
TOKENS = 256


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
ROUTED = {"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "first_k_dense_replace": 1}
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128}
LOCAL = {"num_local_experts": 4, "num_experts_per_tok": 2}
WIDE = {"sliding_window": 512}  # no narrower than the sequence: unfused attention multiplies what a window hides
INDEXED = {"q_lora_rank": 64, "index_n_heads": 4, "index_head_dim": 16, "index_topk": 512}
SPARSE = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "mlp_only_layers": [1]}
GPT2 = {"vocab_size": 512, "n_embd": 256, "n_layer": 3, "n_head": 8, "bos_token_id": 1, "eos_token_id": 2}
PLAIN = [
    "apertus",
    "arcee",
    "bitnet",
    "cohere2",
    "cwm",
    "diffllama",
    "ernie4_5",
    "exaone",
    "exaone4",
    "glm",
    "glm4",
    "granite",
    "hyperclovax",
    "iquestcoder",
    "jais2",
    "ministral3",
    "nanochat",
    "nemotron",
    "olmo",
    "olmo2",
    "seed_oss",
    "smollm3",
    "starcoder2",
]
DBRX = {
    "vocab_size": 512, "d_model": 256, "n_heads": 8, "n_layers": 3, "max_seq_len": 4096,
    "attn_config": {"kv_n_heads": 2, "rope_theta": 10000.0, "clip_qkv": 8, "model_type": ""},
    "ffn_config": {"ffn_hidden_size": 128, "moe_num_experts": 4, "moe_top_k": 2, "model_type": ""},
}  # fmt: skip
LONGCAT = {key: value for key, value in LATENT.items() if key != "num_hidden_layers"} | {
    "num_layers": 2, "q_lora_rank": 64, "expert_ffn_hidden_size": 128, "moe_topk": 2, "zero_expert_num": 0,
    "head_dim": 8,
}  # fmt: skip
TOWER = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4}
STEP = GROUPS | ROUTED | WIDE | {
    "head_dim": 32, "share_expert_dim": 96, "moe_layers_enum": "1,2", "num_sliding_attention_heads": 4,
    "layer_types": ["full_attention", "sliding_attention", "full_attention"],
}  # fmt: skip
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": GROUPS,
    "gpt2": GPT2,
    "gpt_neox": BASE,
    "bloom": {"vocab_size": 512, "hidden_size": 256, "n_layer": 3, "n_head": 8},
    "qwen3": GROUPS | {"head_dim": 64},
    "gemma2": GROUPS | {"head_dim": 64},
    "olmo3": GROUPS,
    **dict.fromkeys(PLAIN, GROUPS),
    "cohere": GROUPS | {"use_qk_norm": True},
    "gemma": GROUPS | {"head_dim": 64},
    "gemma3_text": GROUPS | {"head_dim": 64},
    "vaultgemma": GROUPS | {"head_dim": 64},
    "granite_swa": GROUPS | WIDE,
    "hunyuan_v1_dense": GROUPS | {"head_dim": 32},
    "helium": GROUPS | {"head_dim": 32},
    "internlm3": GROUPS | {"head_dim": 64},
    "ministral": GROUPS | {"head_dim": 32},
    "persimmon": BASE,
    "phi": GROUPS | {"qk_layernorm": True},
    "stablelm": GROUPS | {"qk_layernorm": True},
    "biogpt": BASE,
    "gptj": GPT2 | {"rotary_dim": 16},
    "codegen": GPT2 | {"rotary_dim": 16},
    "gpt_bigcode": GPT2,
    "openai-gpt": GPT2,
    "ctrl": GPT2 | {"dff": 512},
    "opt": BASE | {"ffn_dim": 512, "word_embed_proj_dim": 128},
    "xglm": {"vocab_size": 512, "d_model": 256, "num_layers": 3, "attention_heads": 8, "ffn_dim": 512},
    "falcon": BASE | {"ffn_hidden_size": 512},
    "gpt_neo": {
        "vocab_size": 512,
        "hidden_size": 256,
        "num_layers": 2,
        "num_heads": 8,
        "window_size": 512,
        "attention_types": [[["global", "local"], 1]],
    },
    "gpt_neox_japanese": BASE,
    "mpt": {"vocab_size": 512, "d_model": 256, "n_layers": 3, "n_heads": 8},
    "modernbert-decoder": BASE | {"local_attention": 1024},
    "mixtral": GROUPS | {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen3_moe": GROUPS | SPARSE | {"head_dim": 32},
    "gpt_oss": GROUPS | {"head_dim": 64, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 512},
    "deepseek_v2": LATENT | {"q_lora_rank": None, "n_shared_experts": 2},
    "deepseek_v3": LATENT | {"q_lora_rank": 64, "n_shared_experts": 1},
    "granitemoe": GROUPS | LOCAL,
    "granitemoeshared": GROUPS | LOCAL | {"shared_intermediate_size": 96},
    "granitemoe_swa": GROUPS | LOCAL | WIDE | {"shared_intermediate_size": 96},
    "olmoe": GROUPS | {"num_experts": 8, "num_experts_per_tok": 2},
    "flex_olmo": GROUPS | {"num_experts": 4, "num_experts_per_tok": 2},
    "phimoe": GROUPS | LOCAL,
    "minimax_m2": GROUPS | LOCAL | {"head_dim": 32},
    "aria_text": GROUPS | {"moe_num_experts": 4, "moe_topk": 2},
    "hunyuan_v1_moe": GROUPS | {"head_dim": 32, "num_experts": 4, "moe_topk": 2},
    "dbrx": DBRX,
    "cohere2_moe": GROUPS
    | WIDE
    | {"head_dim": 32, "num_experts": 4, "num_shared_experts": 1, "first_k_dense_replace": 1},
    "qwen2_moe": GROUPS | SPARSE | {"shared_expert_intermediate_size": 192},
    "glm4_moe": GROUPS | ROUTED | {"head_dim": 32, "use_qk_norm": True},
    "sarvam_moe": GROUPS | ROUTED | {"head_dim": 32},
    "solar_open": GROUPS | ROUTED | {"head_dim": 32},
    "dots1": GROUPS | ROUTED | {"n_shared_experts": 2},
    "exaone_moe": GROUPS | EXPERTS | WIDE,
    "hy_v3": GROUPS | EXPERTS | {"head_dim": 32},
    "mellum": GROUPS | EXPERTS | WIDE | {"head_dim": 32},
    "ernie4_5_moe": GROUPS | {"moe_num_experts": 8, "moe_k": 2, "moe_intermediate_size": 128},
    "afmoe": GROUPS | EXPERTS | WIDE | {"head_dim": 32},
    "mimo_v2_flash": GROUPS | ROUTED | WIDE | {"head_dim": 48, "v_head_dim": 32},
    "laguna": GROUPS
    | EXPERTS
    | WIDE
    | {
        "head_dim": 32,
        "num_attention_heads_per_layer": [8, 4, 8],
        "layer_types": ["full_attention", "sliding_attention", "full_attention"],
    },
    "axk1": LATENT | {"q_lora_rank": 64},
    "glm4_moe_lite": LATENT | {"q_lora_rank": 64},
    "sarvam_mla": LATENT | {"q_lora_rank": None},
    "minicpm3": LATENT | {"q_lora_rank": 64},
    "youtu": LATENT | {"q_lora_rank": 64},
    "jetmoe": GROUPS | LOCAL | {"kv_channels": 32},
    "longcat_flash": LONGCAT,
    "step3p7": {"text_config": STEP, "vision_config": TOWER},
}
EXTRA = {
    "diffllama": 3 * 2 * TOKENS * TOKENS * 256,  # the scores, a second time for the other half of the values
}
"""FLOPs that the code of a class runs beyond those of the model."""

WRAPPED = ["step3p7"]  # their language model is built inside a model of images alone, and gets no image
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
    config = AutoConfig.for_model(kind, **((OTHERS.get(kind) or CONFIGS[kind]) | more))
    family = AutoModelForImageTextToText if kind in WRAPPED else AutoModelForCausalLM
    how = HOW | {"attn_implementation": attention}
    forward, backward = run_flops(
        lambda: family.from_config(config, dtype=torch.bfloat16, **how), TOKENS, kind in BY_VALUE
    )
    return Counted(forward, backward, config.to_dict())


def ours(model: Model) -> float:
    return sequence_flops(model, full(TOKENS))


# Configs whose count differs from torch's in a named term.
OTHERS: dict[str, dict[str, Any]] = {
    "llama4_text": GROUPS | {"head_dim": 32, "num_local_experts": 4, "intermediate_size_mlp": 640,
                             "interleave_moe_layer_step": 2, "attention_chunk_size": 512, "num_hidden_layers": 4},
    "deepseek_v32": LATENT | INDEXED,
    "glm_moe_dsa": LATENT | INDEXED | {"index_topk_freq": 2},
    "minimax_m3_vl_text": GROUPS | LOCAL | {
        "head_dim": 32, "index_n_heads": 2, "index_head_dim": 16, "index_topk_blocks": 4,
        "layer_types": ["full_attention", "minimax_m3_sparse", "minimax_m3_sparse"],
    },
}  # fmt: skip


def test_every_expert_of_llama4_sees_every_token_here() -> None:
    """Routed tokens alone are counted by us: the others are multiplied by a score of zero."""
    real = counted("llama4_text")
    others = 2 * 2 * TOKENS * (4 - 1) * 3 * 256 * 512  # two layers, three experts too many, three matrices

    assert real.forward - ours(real.model) == others
    assert real.backward == 2 * real.forward


INDEX_INPUTS = {  # multiply-adds a token and layer, and those a key
    "deepseek_v32": (3, 64 * 4 * 16 + 256 * 16 + 256 * 4, 4 * 16 + 4),
    "glm_moe_dsa": (2, 64 * 4 * 16 + 256 * 16 + 256 * 4, 4 * 16 + 4),
    "minimax_m3_vl_text": (2, 256 * 2 * 16 + 256 * 16, 2 * 16),
}


@pytest.mark.parametrize("kind", INDEX_INPUTS)
def test_an_indexer_scores_all_keys_and_learns_nothing_from_this_loss(kind: str) -> None:
    real = counted(kind)
    layers, inputs, key = INDEX_INPUTS[kind]

    assert ours(real.model) == real.forward
    assert real.backward == 2 * (real.forward - layers * 2 * TOKENS * (inputs + TOKENS * key))


@pytest.mark.parametrize(("kind", "layers"), [("deepseek_v32", 3), ("glm_moe_dsa", 3)])
def test_sparse_attention_is_counted_by_the_keys_it_selects_on_every_layer(kind: str, layers: int) -> None:
    """Unfused, it multiplies all the keys: also where a layer takes the selection of the one before."""
    real = counted(kind, index_topk=64)
    scores = 2 * TOKENS * (TOKENS - 64) * 8 * (24 + 8 + 16)

    assert real.forward - ours(real.model) == layers * scores


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_forward_pass_has_the_flops_that_torch_counts(kind: str) -> None:
    real = counted(kind)

    assert ours(real.model) + EXTRA.get(kind, 0) == real.forward
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
    one, two = (sequence_flops(model, full(s)) for s in (TOKENS, 2 * TOKENS))
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


def test_cross_attention_is_counted_but_for_the_tokens_of_its_image() -> None:
    """Keys and values of an image, and the scores over them, grow with a length that no config holds."""
    image, crossed = 40, [1, 2]
    sizes = GROUPS | {"num_hidden_layers": 4, "cross_attention_layers": crossed}
    config = MllamaTextConfig(**sizes)
    with FakeTensorMode(), no_init_weights():
        model = MllamaForCausalLM._from_config(config, dtype=torch.bfloat16, attn_implementation="eager")
        tokens, seen = torch.zeros(1, TOKENS, dtype=torch.long), torch.zeros(1, image, 256, dtype=torch.bfloat16)
        with FlopCounterMode(display=False) as ahead:
            model(input_ids=tokens, cross_attention_states=seen, use_cache=False)
    projections, scores = 2 * image * 256 * 2 * 2 * 32, 2 * 2 * TOKENS * image * 256

    counted = read_config({"model_type": "mllama_text_model"} | sizes)
    assert parameters(counted).total == sum(weight.numel() for weight in model.parameters())
    assert ahead.get_total_flops() - ours(counted) == len(crossed) * (projections + scores)
