"""What a layer keeps, against published counts: Korthikanti et al. 2022, and torch 2.13's own trackers."""

from dataclasses import replace

import pytest

from models import DEEPSEEK_V3, GPT3, LLAMA_7B, LLAMA_8B, LLAMA_70B
from outlay.engines.tables import engine, kernel_set
from outlay.job import Job
from outlay.layer import unpadded
from outlay.layout.axes import ALONE, Layout
from outlay.layout.sizes import sizes
from outlay.model.blocks import head_rows, rows
from outlay.model.gradients import passing
from outlay.model.model import Model
from outlay.model.modules import checkpoints
from outlay.sums import split_moves, sum_freed, sum_kept

GIB = 2**30


def tape(model: Model, kernels: str, layout: Layout = ALONE, seq: int = 4096, selective: bool = False) -> float:
    """Bytes that the last kind of layer keeps of one sequence on one rank."""
    them, block = kernel_set(kernels), model.blocks[-1]
    here = sizes(model, block, Job(seq, 1), layout, unpadded(engine("fsdp2")), them)
    found = rows(model, block, them)
    freed = sum_freed(checkpoints(found, ("core_attn",), them), here, 0, 0) if selective else 0
    return float(sum_kept(split_moves(found)[0], here) - freed)


def once(model: Model, kernels: str, layout: Layout = ALONE, seq: int = 4096) -> dict[str, float]:
    """Bytes that the head keeps, row by row."""
    them = kernel_set(kernels)
    here = sizes(model, model.blocks[-1], Job(seq, 1), layout, unpadded(engine("fsdp2")), them)
    return {row.name: float(row.kept(here)) for row in split_moves(head_rows(model, them))[0]}


def test_a_llama_70b_layer_keeps_274_696_bytes_a_token_in_megatrons_kernels() -> None:
    assert tape(LLAMA_70B, "transformer_engine", seq=8192) / 8192 == 274_696


def test_a_gpt3_layer_keeps_34_h_and_5_a_s_a_token_in_unfused_kernels_and_its_norm_statistics() -> None:
    s, h, a = 2048, 12288, 96
    assert tape(GPT3, "megatron_local", seq=s) / s == 34 * h + 5 * a * s + 16


def test_selective_recompute_frees_the_5_a_s_of_the_attention_core_and_nothing_else() -> None:
    s, h = 2048, 12288
    assert tape(GPT3, "megatron_local", seq=s, selective=True) / s == 34 * h + 16


def test_a_gpt3_layer_keeps_34_h_and_4_a_a_token_where_attention_is_fused() -> None:
    assert tape(GPT3, "transformer_engine", seq=2048) / 2048 == 34 * 12288 + 4 * 96 + 16


def test_sequence_parallelism_divides_the_whole_tape_in_megatron_and_plain_tensor_parallelism_does_not() -> None:
    h, a, s, t = 12288, 96, 2048, 8
    with_sp = tape(GPT3, "megatron_local", replace(ALONE, tp=t, sp=True), s)
    without = tape(GPT3, "megatron_local", replace(ALONE, tp=t), s)
    assert with_sp / s == (34 * h + 5 * a * s + 16) / t
    assert without / s == h * (10 + 24 / t) + 5 * a * s / t + 16


def test_a_latent_attention_layer_keeps_what_each_of_its_low_rank_steps_needs() -> None:
    h, ql, kl, rope, nope, v, a = 7168, 1536, 512, 64, 128, 128, 128
    attention = 8 * h + 16 + 4 * ql + 2 * (kl + rope) + 2 * kl + a * (4 * (nope + rope) + 4 * v) + 4 * a
    experts = 8 * (2 * h + 6 * 2048) + 6 * 2048 + 13 * 256 + 8 * 8
    assert tape(DEEPSEEK_V3, "transformer_engine") / 4096 == attention + experts


@pytest.mark.parametrize(("model", "published"), [(LLAMA_7B, 19.317), (LLAMA_8B, 22.536)])
def test_torchs_tape_of_32_layers_and_the_logits_is_as_tracked(model: Model, published: float) -> None:
    kept = 32 * tape(model, "pytorch") + sum(once(model, "pytorch").values())
    assert round(kept / GIB, 3) == published


def test_torchs_unfused_norm_keeps_fp32_copies() -> None:
    kept = 32 * tape(LLAMA_7B, "pytorch_composite") + sum(once(LLAMA_7B, "pytorch_composite").values())
    assert round(kept / GIB, 3) == 25.411


def test_full_checkpointing_keeps_the_input_of_each_layer_and_the_logits() -> None:
    inputs = 32 * 2 * 4096 * 4096
    assert round((inputs + sum(once(LLAMA_7B, "pytorch").values())) / GIB, 3) == 1.551


def test_torchs_tensor_parallel_run_kept_6_397_gib_with_logits_whole_on_every_rank() -> None:
    layout = replace(ALONE, tp=8)
    layers, ends = 32 * tape(LLAMA_7B, "pytorch", layout), once(LLAMA_7B, "pytorch", layout)
    whole_logits = 8 * ends["loss"]  # that run gathered them; here each rank keeps its part of the vocabulary
    assert round(layers / GIB, 3) == 5.847
    assert round((layers + ends["final_norm"] + ends["head"] + whole_logits) / GIB, 3) == 6.397


def test_torchs_sequence_parallel_run_keeps_gathered_inputs_unpadded() -> None:
    layout = replace(ALONE, tp=8, sp=True)
    layers, ends = 32 * tape(LLAMA_7B, "pytorch", layout), once(LLAMA_7B, "pytorch", layout)
    assert round(layers / GIB, 3) == 4.096
    assert round((layers + ends["final_norm"] + ends["head"]) / GIB, 3) == 4.131  # the run summed: no logits kept


def test_the_attention_core_makes_gradients_of_q_k_and_v_from_that_of_its_output() -> None:
    """Llama-3.1-8B: 32 heads of queries and of outputs, 8 of keys and of values, 128 wide, 2 bytes each."""
    them, block = kernel_set("pytorch"), LLAMA_8B.blocks[-1]
    here = sizes(LLAMA_8B, block, Job(4096, 1), ALONE, unpadded(engine("fsdp2")), them)
    (core,) = (row for row in rows(LLAMA_8B, block, them) if row.name == "attention")

    made = float(passing(core, here)) - float(core.backward_workspace(here))
    assert made == 4096 * 2 * 128 * (32 + 8 + 8 + 32)
