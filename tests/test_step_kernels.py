"""Kernels that one model or engine runs and others do not: published steps, and what each of them adds."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from models import MIXTRAL
from outlay import Bill, Job, Layout, count, load_cluster, load_model
from outlay.bill import case_of, load
from outlay.cluster.efficiency import narrow_share
from outlay.engines.rates import rates
from outlay.engines.tables import engine, kernel_set, precision
from outlay.job import recipe_of
from outlay.layer import LayerCosts
from outlay.model.blocks import rows
from outlay.model.operations import Linear
from outlay.model.parts.mamba import Mamba2
from outlay.model.scan import Scan
from outlay.validate.question import fuller_middle, question_of
from outlay.validate.read import HEADER, read
from outlay.validate.table import source_of

GPT_OSS, OTHER = "gpt-oss-120b", "fsdp2-uncompiled"


def step(name: str, on: str, how: str, job: dict[str, Any], **axes: Any) -> Bill:
    """One bill."""
    return count(load_model(name), Job(**job), load_cluster(on), Layout(**axes), how)


# --- published steps ------------------------------------------------------------------------------------------------

# NVIDIA-NeMo/Megatron-Bridge, performance summary of 26.06 and 26.04.01: seconds a step.
BRIDGE = [
    (GPT_OSS, "64xgb300", 1280, 4096, {"ep": 16, "graphs": "full", "overlap_ep": True}, 2.47, 0.05),
    (GPT_OSS, "64xb300", 1280, 4096, {"ep": 8, "graphs": "partial"}, 4.42, 0.22),
    ("nemotron-3-nano-30b-a3b", "8xb300", 512, 8192, {"ep": 8, "graphs": "partial"}, 14.05, 0.1),
]


@pytest.mark.parametrize(("name", "on", "batch", "seq", "axes", "seconds", "within"), BRIDGE)
def test_a_step_with_experts_takes_what_nvidia_measured(
    name: str, on: str, batch: int, seq: int, axes: dict[str, Any], seconds: float, within: float
) -> None:
    job = {"sequence_length": seq, "global_batch": batch, "precision": "mxfp8", "gradient_dtype": "bf16"}
    found = step(name, on, "megatron", job, micro_batch=4, moe_dispatch="deduplicated", **axes)

    assert found.step.seconds == pytest.approx(seconds, rel=within)


def test_a_step_of_maxtext_on_gpus_takes_what_nvidia_measured() -> None:
    """NVIDIA/dgxc-benchmarking, Llama3 70B in bf16 on 128 H100: 15.56 s; its exchange hides under its kernels."""
    job = {"sequence_length": 8192, "global_batch": 256, "precision": "bf16"}
    beside, after = (
        step("llama-3-70b", "128xh100-sxm", how, job, micro_batch=2, zero=3) for how in ("maxtext-gpu", "maxtext")
    )
    data = [{item.name: item.value for item in found.step.items}["data"] for found in (beside, after)]

    assert beside.step.seconds == pytest.approx(15.56, rel=0.05)
    assert 9 * data[0] == pytest.approx(data[1])


def test_attention_of_torch_on_hopper_takes_what_torchtitan_measured() -> None:
    """Llama-3.1-8B in float8 on 32 H200, every second matrix again: 10,938 tokens a second and card (Trainy)."""
    job = {"sequence_length": 8192, "global_batch": 64, "precision": "fp8"}
    again = {"recompute": "selective", "recompute_modules": ("all_but_other_matrices",)}
    found = step("llama-3.1-8b", "32xh200-sxm", "fsdp2-torchtitan", job, micro_batch=2, zero=3, **again)

    assert found.step.tokens_per_second_per_device == pytest.approx(10_938, rel=0.08)


# --- kernels ----------------------------------------------------------------------------------------------------------


def test_narrow_heads_run_as_much_slower_as_they_were_measured_to() -> None:
    """cuDNN on H100 at 4,096 tokens, TFLOP/s in heads of 64 and of 128 (arXiv:2407.08608, figures 5 and 6)."""
    forward, back = kernel_set("transformer_engine").narrow_on("h100-sxm")

    assert 1 / float(narrow_share(64, forward)) == pytest.approx(408 / 609, rel=0.01)
    assert 1 / float(narrow_share(64, back)) == pytest.approx(417 / 499, rel=0.01)
    assert kernel_set("transformer_engine").narrow_on("a100-sxm-80") == (0, 0)  # not measured: taken alike


@pytest.mark.parametrize(("heads", "ratio"), [(64, 1), (32, 1), (128, 609 / 408)])
def test_half_as_wide_heads_take_longer_on_hopper(heads: int, ratio: float) -> None:
    """Attention of a layer 8,192 wide: in 128 heads of 64, 64 of 128, 32 of 256, against 64 of 128."""
    plain, other = (
        load_model({"model_type": "llama", "hidden_size": 8192, "num_hidden_layers": 1, "num_attention_heads": count,
                    "intermediate_size": 8192, "vocab_size": 1024})
        for count in (64, heads)
    )  # fmt: skip
    job = Job(sequence_length=16384, global_batch=1, precision="bf16")
    on = load_cluster("1xh100-sxm").accelerator
    speed = rates(on, precision("bf16"), kernel_set("transformer_engine"), recipe_of(job, engine("megatron"), on))
    cores = []
    for model in (plain, other):
        core = next(
            row for row in rows(model, model.blocks[0], kernel_set("transformer_engine")) if row.name == "attention"
        )
        here = {"value": 2, "T": 16384, "multiply_add": 2, "keys": 8192, "span": 16384, "q": 8192, "o": 8192,
                "heads": 8192 / core.width, "in_ring": 1}  # fmt: skip
        cores.append(float(core.forward(here, speed)))

    assert cores[1] / cores[0] == pytest.approx(ratio, rel=0.03)


def test_the_scan_of_mamba_2_takes_what_it_was_measured_to() -> None:
    """H100, 128 heads of 64, one group, state 128: 12.6 to 12.9 million tokens a second (vLLM pull request 27299)."""
    frame: Any = SimpleNamespace(norm="rms", norm_weights=1, dropout=False)
    part = Mamba2(heads=128, head_dim=64, state=128, groups=1, chunk=256)
    kernels, on = kernel_set("transformer_engine"), load_cluster("8xh100-sxm").accelerator
    scan = next(row for row in part.rows(frame, kernels, False) if isinstance(row, Scan))
    widths = {
        name: sum(piece.units * piece.width for piece in pieces)
        for name, pieces in part.dimensions().items()
        if name in ("scan_moves", "scan_work")
    }
    tokens = 8192
    here = {"value": 2, "T": tokens, "multiply_add": 2, **widths}
    recipe = recipe_of(Job(sequence_length=tokens, global_batch=1, precision="bf16"), engine("megatron"), on)
    seconds = float(scan.forward(here, rates(on, precision("bf16"), kernels, recipe)))

    assert tokens / seconds == pytest.approx(12.75e6, rel=0.05)


def layer(name: str, how: str, **more: Any) -> LayerCosts:
    """The costs of a model's first layer on one card."""
    job = Job(sequence_length=4096, global_batch=1, precision="bf16")
    case = case_of(load_model(name), job, load_cluster("1xh200-sxm"), Layout(recompute="full", **more), how)[0]
    return load(case).whole.layers[0].costs


@pytest.mark.parametrize("how", ["maxtext", "fsdp2"])
def test_a_compiler_leaves_out_of_what_runs_again_the_matrix_that_nobody_reads(how: str) -> None:
    costs = layer("llama-3.1-8b", how)
    on = load_cluster("1xh200-sxm").accelerator
    down = 2 * 4096 * 14336 * 4096 / (on.bf16_flops * on.matmul_share)  # of 4,096 tokens, from 14,336 values to 4,096

    assert costs.forward - costs.whole_again == pytest.approx(down, rel=0.02)


@pytest.mark.parametrize("how", ["megatron", "fsdp2-2024", "fsdp2-llm-foundry", "hf_trainer"])
def test_others_run_a_whole_layer_again(how: str) -> None:
    costs = layer("llama-3.1-8b", how)

    assert costs.whole_again == costs.forward


def test_a_matrix_whose_output_is_normed_runs_again() -> None:
    """Gemma 2 norms what a part gives before it is added: the norm's gradient reads it."""
    costs = layer("gemma-2-9b", "maxtext")

    assert costs.whole_again == costs.forward


def test_only_experts_that_are_cut_off_and_have_biases_pay_for_it() -> None:
    found = {
        name: {row.name for row in rows(model, model.blocks[0], kernel_set("transformer_engine"))}
        for name, model in (("oss", load_model(GPT_OSS)), ("mixtral", MIXTRAL))
    }

    assert {"expert_clamp", "expert_bias"} <= found["oss"]
    assert not {"expert_clamp", "expert_bias"} & found["mixtral"]


def test_one_expert_is_multiplied_as_any_matrix_is() -> None:
    on = load_cluster("8xh100-sxm").accelerator
    recipe = recipe_of(Job(sequence_length=4096, global_batch=1, precision="bf16"), engine("megatron"), on)
    speed = rates(on, precision("bf16"), kernel_set("transformer_engine"), recipe)
    plain, expert = (Linear("up", "X", "hidden", "wide", copies=copies) for copies in ("one", "E"))

    def times(row: Linear, experts: int) -> list[float]:
        here = {"value": 2, "multiply_add": 2, "X": 2048, "hidden": 4096, "wide": 14336, "one": 1, "E": experts}
        return [float(each(here, speed)) for each in (row.forward, row.input_gradient, row.weight_gradient)]

    assert times(expert, 1) == times(plain, 1)
    assert all(two > 2 * one for one, two in zip(times(plain, 1), times(expert, 2), strict=True))


# --- what sources say -------------------------------------------------------------------------------------------------

LIBAI = {
    "source": "LiBai vs Megatron-LM benchmark", "model": "GPT-2 nl24 h1024", "layers": "24", "hidden": "1024",
    "heads": "16", "kv_heads": "16", "ffn": "4096", "seq_len": "1024", "accelerator": "V100", "n_accel": "4",
    "precision": "fp16", "tp": "1", "pp": "4", "dp": "1", "micro_batch": "32", "global_batch": "256",
    "schedule": "1F1B", "recompute": "full",
}  # fmt: skip


def asked(row: dict[str, str], folder: Path) -> Any:
    """What is counted of a row."""
    path = folder / "rows.csv"
    path.write_text(",".join(HEADER) + "\n" + ",".join(f'"{row.get(name, "")}"' for name in HEADER) + "\n", "utf-8")
    run = read(path)[0]
    return question_of(run, source_of(run.cells))


@pytest.mark.parametrize(
    ("layers", "stages", "held"),
    [(24, 4, (6, 7, 7, 4)), (48, 8, (6, 6, 7, 7, 7, 7, 7, 1)), (24, 2, ()), (25, 4, ())],
)
def test_libai_gives_middle_stages_more_layers(layers: int, stages: int, held: tuple[int, ...]) -> None:
    """Oneflow-Inc/libai, libai/utils/distributed.py: 24 layers on four stages are dealt as 27 would be."""
    assert fuller_middle(layers, stages) == held
    assert not held or sum(held) == layers


def test_of_one_page_each_framework_deals_its_layers_by_itself(tmp_path: Path) -> None:
    other = {"libai": "framework=LiBai/OneFlow", "megatron": "framework=Megatron-LM"}
    split = {name: asked(LIBAI | {"other": text}, tmp_path).layout.split for name, text in other.items()}

    assert split == {"libai": (6, 7, 7, 4), "megatron": ()}


def test_a_page_that_names_no_recipe_is_read_by_the_release_before(tmp_path: Path) -> None:
    row = {
        "source": "NVIDIA Megatron-Bridge performance summary", "model": "DeepSeekV3", "seq_len": "4096",
        "accelerator": "GB200", "n_accel": "256", "precision": "MXFP8", "tp": "1", "pp": "4", "vpp": "4", "cp": "1",
        "ep": "64", "micro_batch": "1", "global_batch": "4096", "layers": "61", "hidden": "7168",
    }  # fmt: skip
    later, before = (asked(row | {"other": f"container={release}"}, tmp_path) for release in ("26.08", "26.02"))

    assert (later.layout.graphs, later.layout.overlap_ep) == ("full", True)
    assert later.layout.recompute_modules == ("mla_up_proj",)
    assert before.layout.graphs != "full" and not before.layout.overlap_ep
    assert later.job.gradient_dtype == before.job.gradient_dtype == "bf16"  # ddp.grad_reduce_in_fp32 is False


@pytest.mark.parametrize(("card", "graphs"), [("GB200", "full"), ("H100-80GB-SXM (DGX)", "none")])
def test_grok_ran_as_graphs_where_its_script_says_so(card: str, graphs: str, tmp_path: Path) -> None:
    row = {
        "source": "NVIDIA DGX Cloud benchmarking recipes", "model": "Grok1 314b", "layers": "64", "hidden": "6144",
        "heads": "48", "kv_heads": "8", "ffn": "32768", "vocab": "131072", "seq_len": "8192", "n_accel": "128",
        "accelerator": card, "tp": "4", "pp": "1", "cp": "1", "ep": "8", "micro_batch": "1", "global_batch": "256",
        "precision": "BF16", "other": "ETP=4; MoE 8 experts topk 2",
    }  # fmt: skip
    found = asked(row, tmp_path).layout.graphs

    assert (found or "none") == graphs


def test_flops_that_run_again_leave_out_what_nobody_reads() -> None:
    """Llama-3.1-8B: 2 x 14,336 x 4,096 a token and layer of the pass that runs again."""
    job = {"sequence_length": 4096, "global_batch": 8, "precision": "bf16"}
    compiled, eager = (step("llama-3.1-8b", "8xh200-sxm", how, job, recompute="full").step for how in ("fsdp2", OTHER))
    rate = 8 * load_cluster("8xh200-sxm").accelerator.bf16_flops
    more = [(one.hfu - one.mfu) * one.seconds * rate for one in (compiled, eager)]

    assert more[1] - more[0] == pytest.approx(32 * 8 * 4096 * 2 * 14336 * 4096, rel=1e-6)
