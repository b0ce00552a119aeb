"""Exported files in the frameworks' own code: DeepSpeed's configuration, and Megatron-LM's parser where it is there.

megatron-core 0.19 asks for Python 3.12, so no group installs it. By hand, on 3.11: pip install --no-deps
--ignore-requires-python megatron-core==0.19.2 triton, then einops and packaging; its parser reads all of these.
"""

import dataclasses
import json
import sys
import typing
from typing import Any

import pytest
import torch

import outlay
from forty_layouts import QUESTIONS, Question, run_for
from outlay.formats import deepspeed, megatron
from outlay.formats.leaving_out import completed
from outlay.formats.megatron.write import flags_of_run
from outlay.formats.setting import Run
from outlay.undivided import parameters

JOB = {"sequence_length": 2048, "global_batch": 256}
# What stands in for accelerators and their kernels, and what a layout does not decide.
_NO_GPU = """
    --transformer-impl local --no-rope-fusion --no-masked-softmax-fusion --no-gradient-accumulation-fusion
    --no-persist-layer-norm --tokenizer-type NullTokenizer --train-iters 10 --lr 1e-4 --mock-data
"""
NO_GPU = _NO_GPU.split()


def run_of(model: str, ranks: int, job: dict[str, Any], layout: dict[str, Any], driver: str) -> Run:
    task, cluster = outlay.Job(**(JOB | job)), outlay.load_cluster(f"{ranks}xb200")
    bill = outlay.count(outlay.load_model(model), task, cluster, outlay.Layout(**layout), driver)
    assert not bill.violations
    return Run(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)


@pytest.mark.parametrize(
    ("ranks", "job", "layout"),
    [
        (8, {}, {"zero": 0}),
        (16, {}, {"zero": 1, "tp": 2}),
        (16, {}, {"zero": 1, "pp": 4, "recompute": "full"}),
        (16, {"precision": "fp16"}, {"zero": 2, "offload_optimizer": 1.0}),
        (64, {}, {"zero": 3, "offload_optimizer": 0.5, "offload_parameters": 1.0, "micro_batch": 2}),
        (16, {"optimizer": "lion"}, {"zero": 2, "cp": 2}),
        (16, {"gradient_dtype": "fp32"}, {"zero": 1}),
        (16, {"master_dtype": "bf16", "moment_dtype": "bf16", "gradient_dtype": "bf16"}, {"zero": 2}),
        (16, {"precision": "fp32", "optimizer": "muon"}, {"zero": 1}),
    ],
)
def test_deepspeed_takes_what_is_exported(
    monkeypatch: pytest.MonkeyPatch, ranks: int, job: dict[str, Any], layout: dict[str, Any]
) -> None:
    config = pytest.importorskip("deepspeed.runtime.config")
    run = run_of("llama-3.1-8b", ranks, job, layout, "deepspeed")
    # A pipeline and tensor parallelism are given to DeepSpeed as process groups: their ranks are no data-parallel ones.
    monkeypatch.setattr(config.dist, "get_world_size", lambda *_: ranks // (run.layout.tp * run.layout.pp))
    monkeypatch.setattr(config.dist, "get_rank", lambda *_: 0)

    read = config.DeepSpeedConfig(json.loads(deepspeed.write(run).text))

    assert read.train_batch_size == run.job.global_batch
    assert read.train_micro_batch_size_per_gpu == run.layout.micro_batch
    assert read.gradient_accumulation_steps == run.micro_batches
    assert int(read.zero_optimization_stage) == run.layout.zero
    assert read.bfloat16_config.enabled == (run.job.precision == "bf16")
    offload = read.zero_config.offload_optimizer
    assert (offload.ratio if offload else 0.0) == run.layout.offload_optimizer


FORTY = [one for one in QUESTIONS if run_for(one, deepspeed) is not None]


@pytest.mark.parametrize("question", FORTY, ids=lambda one: one.name)
def test_deepspeed_takes_each_of_forty_unlike_questions(monkeypatch: pytest.MonkeyPatch, question: Question) -> None:
    config = pytest.importorskip("deepspeed.runtime.config")
    run = run_for(question, deepspeed)
    assert run is not None
    monkeypatch.setattr(config.dist, "get_world_size", lambda *_: question.ranks // (run.layout.tp * run.layout.pp))
    monkeypatch.setattr(config.dist, "get_rank", lambda *_: 0)
    written = deepspeed.write(run)

    read = config.DeepSpeedConfig(json.loads(written.text))

    assert read.train_batch_size == run.job.global_batch
    assert read.train_micro_batch_size_per_gpu == run.layout.micro_batch
    assert int(read.zero_optimization_stage) == run.layout.zero


def test_deepspeed_refuses_a_batch_that_does_not_multiply_out(monkeypatch: pytest.MonkeyPatch) -> None:
    config = pytest.importorskip("deepspeed.runtime.config")
    written = json.loads(deepspeed.write(run_of("llama-3.1-8b", 16, {}, {"zero": 2}, "deepspeed")).text)
    monkeypatch.setattr(config.dist, "get_world_size", lambda *_: 16)
    monkeypatch.setattr(config.dist, "get_rank", lambda *_: 0)

    with pytest.raises(AssertionError):
        config.DeepSpeedConfig(written | {"gradient_accumulation_steps": 3})


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Megatron-LM's parser, on a machine without accelerators."""

    import typing_extensions

    if not hasattr(typing, "override"):
        monkeypatch.setattr(typing, "override", typing_extensions.override, raising=False)

    class Card:
        major, minor, total_memory, multi_processor_count, name = 9, 0, 80 << 30, 132, "H100"

    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda *_: Card)
    return pytest.importorskip("megatron.training.arguments")


MEGATRON = [
    ("llama-3.1-8b", {}, {"tp": 2, "pp": 4, "vpp": 2}),
    ("llama-3.1-8b", {}, {"tp": 2, "pp": 2, "split": (15, 17)}),
    ("gpt3-175b", {}, {"tp": 8, "pp": 2, "recompute": "full"}),
    ("mixtral-8x7b", {}, {"tp": 2, "ep": 8, "moe_dispatch": "deduplicated"}),
    ("mixtral-8x7b", {}, {"tp": 2, "ep": 4, "pp": 2, "vpp": 2, "overlap_ep": True}),
    ("deepseek-v3", {}, {"tp": 2, "pp": 4, "ep": 4, "split": (16, 16, 16, 13)}),
    ("deepseek-v2-lite", {}, {"tp": 2, "ep": 8, "recompute_modules": ("core_attn", "mla_up_proj", "moe_act")}),
    ("qwen3-8b", {}, {"cp": 2, "cp_kind": "ulysses", "zero": 0}),
    ("llama-3.1-8b", {}, {"zero": 3, "tp": 2}),
    ("llama-3.1-8b", {}, {"zero": 2, "dp_replicate": 2}),
    ("llama-3.1-8b", {}, {"dp_replicate": 2, "offload_optimizer": 0.5}),
    ("llama-3.1-8b", {}, {"recompute": "full", "recompute_layers": 8, "pp": 2, "vpp": 2}),
    ("llama-3.1-8b", {"precision": "fp8_delayed"}, {"tp": 2, "overlap_tp": True}),
    ("llama-3.1-8b", {"precision": "mxfp8", "gather_dtype": "fp8"}, {"tp": 2}),
    ("llama-3.1-8b", {"precision": "fp16"}, {"tp": 2}),
    ("llama-3.1-8b", {"precision": "fp32", "optimizer": "sgd"}, {"zero": 0}),
    ("llama-3.1-8b", {"gradient_dtype": "bf16"}, {"tp": 2, "graphs": "partial"}),
    ("llama-3.1-8b", {"moment_dtype": "bf16", "master_dtype": "remainder"}, {"tp": 2, "graphs": "full"}),
    ("llama-3.1-8b", {"optimizer": "lion", "batch_rampup": (64, 64, 100_000)}, {"tp": 2}),
    ("llama-3.1-8b", {"optimizer": "muon"}, {"zero": 0}),
]


@pytest.mark.parametrize(("model", "job", "layout"), MEGATRON)
def test_megatron_takes_what_is_exported(
    parser: Any, monkeypatch: pytest.MonkeyPatch, model: str, job: dict[str, Any], layout: dict[str, Any]
) -> None:
    run = run_of(model, 16, job, layout, "megatron")
    connections = {} if run.layout.zero > 1 else {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
    for name, value in ({"WORLD_SIZE": "16", "RANK": "0", "LOCAL_RANK": "0"} | connections).items():
        monkeypatch.setenv(name, value)
    flags, lost = flags_of_run(run)
    monkeypatch.setattr(
        sys, "argv", ["pretrain_gpt.py", *(word for one in flags for word in (one.name, *one.values)), *NO_GPU]
    )

    args = parser.validate_args(parser.parse_args())
    made = parser.core_transformer_config_from_args(args)

    assert lost == []
    assert args.data_parallel_size == run.layout.dp
    assert (args.virtual_pipeline_model_parallel_size or 1) == run.layout.vpp
    assert made.num_layers == run.model.layers
    assert (made.hidden_size, made.sequence_parallel) == (run.model.hidden, run.layout.sp and run.layout.tp > 1)
    assert megatron.read(megatron.write(run).text.encode()).ranks == 16
    printed = ("  {} {} {}".format(name, "." * (48 - len(name)), value) for name, value in sorted(vars(args).items()))
    again = megatron.read("\n".join(printed).encode())  # as Megatron-LM prints its arguments into a log
    assert again.missing == () and again.ranks == 16
    back = completed(run, again.job, again.layout, "megatron")
    skipped = {"split", "moe_dispatch", "cp_kind"} if run.layout.ep == run.layout.cp == 1 else {"split"}
    for one, two in ((run.layout, back.layout), (run.job, back.job)):
        for field in dataclasses.fields(one):
            if field.name not in {*skipped, "bytes_per_parameter", "tokens"}:  # --train-iters is this test's own
                assert getattr(one, field.name) == getattr(two, field.name), field.name
    assert parameters(again.model).total == parameters(run.model).total
