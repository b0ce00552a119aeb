"""Peaks of published runs, stage by stage: max_memory_allocated on eight B200, Megatron-Core with TransformerEngine.

Source: MooreThreads/SimuMax @4dcaae5, docs/b200/b200_release_v1.2_summary.json: layers cut, one sequence a micro-batch.
"""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from outlay import Job, Layout, load_cluster
from outlay.bill import case_of, load
from outlay.layer import model_costs
from outlay.memory.peak import allocated_bytes
from outlay.memory.states import library_bytes
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
def test_what_every_stage_allocates_is_what_was_measured_within_one_part_in_a_thousand(
    model: Model, axes: dict[str, int], sequence: int, published: tuple[float, ...]
) -> None:
    replicas = axes.get("dp_shard", 1)
    job = Job(sequence_length=sequence, global_batch=4 * replicas, precision="bf16")
    loaded = load(case_of(model, job, B200S, Layout(**axes), "megatron")[0])  # type: ignore[arg-type]
    counted = [float(allocated_bytes(stage, loaded.case)) / MIB for stage in loaded.every]

    assert counted == pytest.approx(list(published), rel=1e-3)


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
def test_what_a_stage_of_experts_allocates_is_what_was_measured_within_three_parts_in_a_thousand(
    kind: str, axes: dict[str, int], published: tuple[float, ...]
) -> None:
    job = Job(sequence_length=4096, global_batch=4 * axes["dp_shard"], precision="bf16")
    loaded = load(case_of(latent(kind, 4), job, B200S, Layout(**axes), "megatron")[0])  # type: ignore[arg-type]
    counted = [float(allocated_bytes(stage, loaded.case)) / MIB for stage in loaded.every]

    assert counted == pytest.approx(list(published), rel=3e-3)


# --- what TransformerEngine and Megatron-Core hold beside the tapes ---------------------------------------------------

# DeepSeek-V3 with four layers on eight ranks, ep 8: every [out, in] of a matrix with a gradient, by hand. Fused up and
# gate matrices; the shared expert is as wide as a routed one, so that their matrices have the same two shapes.
LATENT = {(1536, 7168), (24576, 1536), (576, 7168), (32768, 512), (7168, 16384)}
DENSE = LATENT | {(2 * 18432, 7168), (7168, 18432)}
ROUTED = LATENT | {(2 * 2048, 7168), (7168, 2048)}
HEAD = {(129_280, 7168)}


def loaded_v3(**axes: int) -> Any:
    job = Job(sequence_length=4096, global_batch=32, precision="bf16")
    return load(case_of(latent("V3", 4), job, B200S, Layout(dp_shard=8 // axes.get("pp", 1), **axes), "megatron")[0])


def test_a_tensor_stands_for_the_gradients_of_each_distinct_shape_on_a_rank_whatever_layer_has_it() -> None:
    def values(shapes: set[tuple[int, int]]) -> int:
        return sum(out * ins for out, ins in shapes)

    (whole,), (first, last) = loaded_v3(ep=8).every, loaded_v3(ep=4, pp=2).every

    assert whole.shapes == values(DENSE | ROUTED | HEAD)
    assert first.shapes == values(DENSE | ROUTED)
    assert last.shapes == values(ROUTED | HEAD)


def test_shapes_that_only_some_layouts_of_a_grid_have_in_common_are_shared_there() -> None:
    # a shared expert is cut by tp and a routed one by etp: 2048 wide, they have one shape where both are cut alike
    job = Job(sequence_length=4096, global_batch=32, precision="bf16")
    case, _ = case_of(latent("V3", 4), job, B200S, Layout(ep=8, dp_shard=8), "megatron")
    tp, etp = np.array([1.0, 2.0, 2.0]), np.array([1.0, 1.0, 2.0])
    rows = Layout.grid(**{f.name: getattr(case.layout, f.name) for f in fields(Layout)} | {"tp": tp, "etp": etp})
    costs = model_costs(case.model, job, case.cluster, rows, case.engine)
    routed = sum(shapes.values for shapes in costs.shapes if 1 in shapes.parts)
    alone = [model_costs(case.model, job, case.cluster, replace(case.layout, tp=int(t), etp=int(e)), case.engine)
             for t, e in zip(tp, etp, strict=True)]  # fmt: skip

    assert routed.tolist() == [sum(one.values for one in each.shapes if 1 in one.parts) for each in alone]
    assert routed[1] - routed[2] == 3 * 7168 * 2048  # whole matrices of an expert beside the halves of the shared one


def test_routed_copies_on_both_sides_of_both_exchanges_stand_in_the_forward_pass() -> None:
    # MoELayer.forward: permuted, dispatched, the experts' output and what came back, 8 copies a token; and the outputs
    # of the shared expert and of the layer
    (stage,) = loaded_v3(ep=8).every
    copies = 4 * (2 * 7168 * 4096 * 8) + 2 * (2 * 7168 * 4096)

    assert stage.largest_backward == copies


HOPPER, BEFORE = 2**25, 2**23 + 2**17  # cuBLAS under torch 2.10: 32 MiB on Hopper, else 2 x 4 MiB and 8 x 16 KiB


@pytest.mark.parametrize(
    ("accelerator", "held", "grouped"),
    [
        ("b200", 2 * BEFORE + 2**25 + 1024, 4 * (2**25 + 1024)), ("h100-sxm", 2 * HOPPER + 2**25 + 1024, None),
        ("a100-sxm-80", 2 * BEFORE + 2**22, 4 * 2**22), ("rtx4090", 2 * BEFORE + 2**22, None),
        ("mi300x", 2 * 2**27 + 2**25, 4 * 2**25), ("tpu-v5p", 0, 0),
    ],
)  # fmt: skip
def test_workspaces_are_those_of_the_accelerators_generation(accelerator: str, held: int, grouped: int | None) -> None:
    case, _ = case_of(L70B, Job(4096, 8), load_cluster(f"8x{accelerator}"), Layout(dp_shard=8), "megatron")

    assert case.workspaces.held == held
    assert grouped is None or case.workspaces.grouped == grouped


def test_workspaces_of_grouped_multiplies_are_those_of_a_stage_with_experts() -> None:
    loaded = loaded_v3(ep=8)
    dense = load(case_of(L70B, Job(4096, 8), B200S, Layout(dp_shard=8), "megatron")[0])

    more = library_bytes(loaded.every[0], loaded.case) - library_bytes(dense.every[0], dense.case)
    assert more == 4 * (2**25 + 1024)


def test_before_torch_2_workspaces_were_not_the_allocators() -> None:
    case, _ = case_of(L70B, Job(4096, 8, precision="fp16"), load_cluster("8xa100-sxm-80"), Layout(), "megatron-2022")

    assert (case.workspaces.held, case.workspaces.grouped) == (0, 0)
