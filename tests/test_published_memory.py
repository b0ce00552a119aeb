"""Peaks of published runs, stage by stage: max_memory_allocated on eight B200, Megatron-Core with TransformerEngine.

Source: MooreThreads/SimuMax @4dcaae5, docs/b200/b200_release_v1.2_summary.json: layers cut, one sequence a micro-batch.
"""

import pytest

from outlay import Job, Layout, load_cluster
from outlay.bill import case_of, load
from outlay.memory.peak import allocated_bytes
from outlay.model.huggingface import read_config
from outlay.model.model import Model, decoder_block
from outlay.model.parts import Attention, FeedForward

MIB = 2**20
B200S = load_cluster("8xb200")


def llama(layers: int, hidden: int, heads: int, kv_heads: int, width: int) -> Model:
    """A Llama with so many layers left."""
    block = decoder_block("dense", Attention(heads, kv_heads, hidden // heads, hidden // heads), FeedForward(width))
    return Model("llama", "llama", hidden, 128_256, (block,), (0,) * layers)


L70B, L405B = llama(12, 8192, 64, 8, 28672), llama(4, 16384, 128, 16, 53248)
RUNS = [
    (L70B, {"tp": 2, "dp_shard": 4}, 4096, (62136.25,)),
    (L405B, {"tp": 8}, 4096, (39499.85,)),
    (L405B, {"tp": 4, "dp_shard": 2}, 4096, (54158.11,)),
    (L405B, {"tp": 2, "dp_shard": 4}, 4096, (83549.63,)),
    (L405B, {"pp": 2, "dp_shard": 4}, 4096, (88688.76, 89173.09)),
    (L405B, {"tp": 2, "cp": 4, "cp_kind": "ulysses"}, 32768, (89113.74,)),
    (L405B, {"cp": 8, "cp_kind": "ulysses"}, 32768, (142557.48,)),
    (L405B, {"tp": 2, "cp": 4, "cp_kind": "ulysses"}, 131072, (120962.37,)),
]
NAMES = ["70B tp2", "405B tp8", "405B tp4", "405B tp2", "405B pp2", "405B tp2 cp4", "405B cp8", "405B tp2 cp4 128k"]


@pytest.mark.parametrize(("model", "axes", "sequence", "published"), RUNS, ids=NAMES)
def test_what_every_stage_allocates_is_what_was_measured_within_two_parts_in_a_thousand(
    model: Model, axes: dict[str, int], sequence: int, published: tuple[float, ...]
) -> None:
    replicas = axes.get("dp_shard", 1)
    job = Job(sequence_length=sequence, global_batch=4 * replicas, precision="bf16")
    loaded = load(case_of(model, job, B200S, Layout(**axes), "megatron")[0])  # type: ignore[arg-type]
    counted = [float(allocated_bytes(stage, loaded.case)) / MIB for stage in loaded.every]

    assert counted == pytest.approx(list(published), rel=2e-3)


def latent(kind: str, layers: int) -> Model:
    """DeepSeek-V2 or V3 with so many layers left, the first of them dense."""
    sizes = {
        "V2": {"hidden_size": 5120, "vocab_size": 102_400, "intermediate_size": 12288, "n_routed_experts": 160,
               "num_experts_per_tok": 6, "moe_intermediate_size": 1536, "n_shared_experts": 2},
        "V3": {"hidden_size": 7168, "vocab_size": 129_280, "intermediate_size": 18432, "n_routed_experts": 256,
               "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1},
    }  # fmt: skip
    ranks = {"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64}
    more = {"v_head_dim": 128, "num_attention_heads": 128, "num_key_value_heads": 128, "num_hidden_layers": layers}
    ends = {"first_k_dense_replace": 1, "num_nextn_predict_layers": 0, "max_position_embeddings": 4096}
    return read_config({"model_type": "deepseek_v3", **sizes[kind], **ranks, **more, **ends})


EXPERTS = [
    ("V2", {"ep": 8, "dp_shard": 8}, (46726.2,)),
    ("V2", {"ep": 4, "pp": 2, "dp_shard": 4}, (32342.7, 45774.6)),
    ("V3", {"ep": 8, "dp_shard": 8}, (106801.2,)),
    ("V3", {"ep": 4, "pp": 2, "dp_shard": 4}, (72948.3, 116736.5)),
]


@pytest.mark.parametrize(("kind", "axes", "published"), EXPERTS, ids=[f"{row[0]} {len(row[2])}" for row in EXPERTS])
def test_what_a_stage_of_experts_allocates_is_what_was_measured_within_two_percent(
    kind: str, axes: dict[str, int], published: tuple[float, ...]
) -> None:
    job = Job(sequence_length=4096, global_batch=4 * axes["dp_shard"], precision="bf16")
    loaded = load(case_of(latent(kind, 4), job, B200S, Layout(**axes), "megatron")[0])  # type: ignore[arg-type]
    counted = [float(allocated_bytes(stage, loaded.case)) / MIB for stage in loaded.every]

    assert counted == pytest.approx(list(published), rel=2e-2)
