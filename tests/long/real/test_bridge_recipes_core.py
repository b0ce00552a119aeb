"""The recipe configurations of Megatron-Bridge through megatron-core's own classes: it refuses those that break a rule.

Needs megatron-core (0.16.1 tried: `pip install --no-deps megatron-core==0.16.1`) beside torch; seconds.
"""

import re
import warnings
from collections import Counter
from typing import Any

import pytest

from outlay.formats import bridge
from outlay.formats.setting import Found
from test_bridge_recipes import MODELS, broken, family_of, overrides, read

pytestmark = pytest.mark.filterwarnings("ignore")
warnings.filterwarnings("ignore")
core = pytest.importorskip("megatron.core.transformer.transformer_config")
blocks = pytest.importorskip("megatron.core.transformer.transformer_block")
torch = pytest.importorskip("torch")


def fields(row: dict[str, str], found: Found) -> tuple[bool, dict[str, Any]]:
    """Whether the attention is latent, and the fields of megatron-core's class for one recipe."""
    assert found.model is not None
    at, model, text = found.layout, found.model, overrides(row)
    attention = next((block.attention for block in model.blocks if block.attention), None)
    latent = attention is not None and attention.latent_rank > 0
    said: dict[str, Any] = {
        "num_layers": model.layers,
        "hidden_size": model.hidden,
        "num_attention_heads": attention.heads if attention else 64,
        "tensor_model_parallel_size": at.tp,
        "pipeline_model_parallel_size": at.pp,
        "context_parallel_size": at.cp,
        "sequence_parallel": bool(at.sp),
        "pipeline_dtype": torch.bfloat16,
        "params_dtype": torch.bfloat16,
        "bf16": True,
        "add_bias_linear": False,
    }
    layout = re.search("parallel_layout=([^']+)'", text)
    optional = {
        "num_query_groups": attention.kv_heads if attention and not latent else None,
        "virtual_pipeline_model_parallel_size": int(row["vpp"]) if row["vpp"] else None,
        "pipeline_model_parallel_layout": layout[1] if layout else None,
        "mtp_num_layers": 1 if layout and "m" in layout[1] else None,
        "account_for_embedding_in_pipeline_split": "account_for" in text or None,
        "account_for_loss_in_pipeline_split": "account_for" in text or None,
        "recompute_num_layers": int(row["recompute"]) if row["recompute"] else None,
        "recompute_method": "block" if row["recompute"] else None,
        "recompute_granularity": "full" if row["recompute"] else "selective" if row["modules"] else None,
        "recompute_modules": row["modules"].strip("[]").split() if row["modules"] else None,
        "cpu_offloading": bool(row["offload"]) or None,
        "cpu_offloading_num_layers": int(row["offload"]) if row["offload"] else None,
    }
    if model.experts:
        said |= {"num_moe_experts": model.experts, "moe_ffn_hidden_size": 512, "moe_grouped_gemm": True}
        said |= {"expert_model_parallel_size": int(row["ep"]), "expert_tensor_parallel_size": int(row["etp"] or at.tp)}
        said |= {"moe_token_dispatcher_type": "flex" if row["flex"] else "alltoall"}
    return latent, said | {name: value for name, value in optional.items() if value is not None}


def refusal(row: dict[str, str], found: Found) -> str:
    """What megatron-core says against a recipe; empty where it takes it."""
    latent, said = fields(row, found)
    kind = core.MLATransformerConfig if latent else core.TransformerConfig
    try:
        config = kind(**said)
        if "pipeline_model_parallel_layout" not in said:  # which the class has checked, and which needs a group else
            for rank in range(found.layout.pp):
                for chunk in range(int(row["vpp"])) if row["vpp"] else (None,):
                    blocks.get_num_layers_to_build(config, vp_stage=chunk, pp_rank=rank)
    except (AssertionError, ValueError) as error:
        return " ".join(str(error).split())
    return ""


def test_megatron_core_refuses_the_recipes_that_break_a_rule_and_no_other() -> None:
    said = Counter[tuple[str, bool]]()
    for row, found in read():
        if family_of(row["recipe"]) in MODELS and family_of(row["recipe"]) != "DEEPSEEK_V4_PRO":
            said[refusal(row, found)[:52], bool(broken(row, found))] += int(row["rows"])

    assert said == {
        ("", False): 1162,
        ("num_layers should be divisible by pipeline_model_par", True): 16,
        ("num_layers_per_pipeline_rank 20 should be divisible ", True): 4,
    }


PLANTED: dict[str, dict[str, Any]] = {
    "model.recompute_granularity=full": {"recompute_granularity": "full"},
    "model.recompute_granularity=full model.recompute_method=uniform": {
        "recompute_granularity": "full", "recompute_method": "uniform",
    },
    "model.recompute_granularity=selective model.recompute_num_layers=1": {
        "recompute_granularity": "selective", "recompute_num_layers": 1,
    },
    "model.recompute_granularity=selective model.recompute_modules=[core_atn]": {
        "recompute_granularity": "selective", "recompute_modules": ["core_atn"],
    },
    "model.cpu_offloading=true model.cpu_offloading_num_layers=2 model.pipeline_model_parallel_size=2": {
        "cpu_offloading": True, "cpu_offloading_num_layers": 2, "pipeline_model_parallel_size": 2,
        "pipeline_dtype": torch.bfloat16,
    },
    "model.cpu_offloading=true model.cpu_offloading_num_layers=2 model.recompute_granularity=selective": {
        "cpu_offloading": True, "cpu_offloading_num_layers": 2, "recompute_granularity": "selective",
    },
    "model.sequence_parallel=true": {"sequence_parallel": True},
    "model.pipeline_model_parallel_size=2 model.virtual_pipeline_model_parallel_size=2"
    " 'model.pipeline_model_parallel_layout=Et*4|t*4L'": {
        "pipeline_model_parallel_size": 2, "virtual_pipeline_model_parallel_size": 2,
        "pipeline_model_parallel_layout": "Et*4|t*4L", "pipeline_dtype": torch.bfloat16,
    },
    "model.pipeline_model_parallel_size=2 model.num_layers_in_first_pipeline_stage=2"
    " 'model.pipeline_model_parallel_layout=Et*4|t*4L'": {
        "pipeline_model_parallel_size": 2, "num_layers_in_first_pipeline_stage": 2,
        "pipeline_model_parallel_layout": "Et*4|t*4L", "pipeline_dtype": torch.bfloat16,
    },
}  # fmt: skip


@pytest.mark.parametrize("text", PLANTED)
def test_what_is_found_in_a_configuration_is_what_megatron_core_refuses(text: str) -> None:
    sizes = {"num_layers": 8, "hidden_size": 64, "num_attention_heads": 8}
    with pytest.raises((AssertionError, ValueError)):
        core.TransformerConfig(**sizes | PLANTED[text])

    assert core.TransformerConfig(**sizes) is not None
    said = bridge.read(f"{text} model.seq_length=64\n".encode()).findings
    assert said and all(one.serious and one.code.startswith("BRG") for one in said)
