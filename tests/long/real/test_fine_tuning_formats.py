"""Exported files of fine-tuning in the frameworks' own parsers, and what those refuse beside what `check` says.

axolotl and LLaMA-Factory want releases of transformers, peft and trl of their own, so each has an environment of its
own, and each test is skipped where its framework is not. By hand, in an environment with torch and transformers:
pip install --no-deps axolotl==0.19.0, then addict accelerate peft datasets trl pillow; and
pip install --no-deps llamafactory==0.9.5, then accelerate peft datasets trl omegaconf.
"""

import os
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

import outlay
from outlay.formats import axolotl, llamafactory, trainer
from outlay.formats.setting import Run

LLAMA = "llama-3.1-8b"
# ranks, engine, job, layout
RUNS: list[tuple[int, str, dict[str, Any], dict[str, Any]]] = [
    (8, "hf_trainer", {}, {"zero": 0}),
    (8, "hf_trainer", {}, {"zero": 3, "recompute": "full", "micro_batch": 2}),
    (8, "hf_trainer", {}, {"zero": 2, "offload_optimizer": 1.0, "offload_parameters": 1.0}),
    (16, "hf_trainer", {"precision": "fp16"}, {"zero": 3, "dp_replicate": 2}),
    (8, "hf_trainer", {"precision": "fp32", "optimizer": "adafactor"}, {"zero": 3}),
    (8, "hf_trainer", {"optimizer": "lion", "bytes_per_parameter": "derived"}, {"zero": 0}),
    (8, "hf_trainer", {"adapter": "lora", "adapter_rank": 8}, {"zero": 0, "recompute": "full"}),
    (8, "hf_trainer", {"adapter": "qlora", "adapter_targets": ("q_proj", "v_proj")}, {"zero": 0}),
    (8, "hf_trainer", {"adapter": "lora", "frozen_format": "int8"}, {"zero": 0}),
    (8, "hf_trainer", {"adapter": "dora", "adapter_targets": ("attention",)}, {"zero": 3}),
    (8, "deepspeed", {}, {"zero": 1}),
    (8, "deepspeed", {}, {"zero": 2, "recompute": "full"}),
    (16, "deepspeed", {}, {"zero": 3, "offload_optimizer": 1.0, "offload_parameters": 1.0}),
    (8, "deepspeed", {"precision": "fp16", "optimizer": "adam8bit"}, {"zero": 2}),
    (8, "deepspeed", {"adapter": "qlora"}, {"zero": 2, "recompute": "full"}),
    (8, "deepspeed", {"gradient_dtype": "fp32"}, {"zero": 1}),
]


def run_of(ranks: int, driver: str, job: dict[str, Any], layout: dict[str, Any]) -> Run:
    task, cluster = outlay.Job(sequence_length=2048, global_batch=64, **job), outlay.load_cluster(f"{ranks}xh100-sxm")
    bill = outlay.count(outlay.load_model(LLAMA), task, cluster, outlay.Layout(**layout), driver)
    assert not bill.violations
    return Run(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)


def codes(form: Any, made: dict[str, Any]) -> list[str]:
    """The errors that a reading finds."""
    found = form.read(yaml.safe_dump(made).encode())
    return [one.code for one in found.findings if one.serious]


AXOLOTL = {"datasets": [{"path": "x", "type": "alpaca"}], "learning_rate": 1e-4}


def axolotl_of(made: dict[str, Any]) -> Any:
    """axolotl's own reading of settings."""
    config = pytest.importorskip("axolotl.utils.schemas.config")
    return config.AxolotlInputConfig(**(AXOLOTL | made))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("ranks", "driver", "job", "layout"), RUNS)
def test_axolotl_takes_what_is_exported(ranks: int, driver: str, job: dict[str, Any], layout: dict[str, Any]) -> None:
    run = run_of(ranks, driver, job, layout)
    made = yaml.safe_load(axolotl.write(run).text)

    read = axolotl_of(made)

    assert read.micro_batch_size == run.layout.micro_batch
    assert read.gradient_accumulation_steps == run.micro_batches
    assert read.sequence_len == run.job.sequence_length
    assert bool(read.fsdp_config) == (driver == "hf_trainer" and run.layout.zero > 0)
    assert (read.lora_r or 0) == (run.job.adapter_rank if run.job.adapter != "none" else 0)
    assert bool(read.gradient_checkpointing) == (run.layout.recompute == "full")
    known = set(type(read).model_fields)
    assert {*made} <= known == axolotl.KEYS  # it says nothing of a key that it does not have
    assert codes(axolotl, AXOLOTL | made) == []


PLANTED_AXOLOTL: list[tuple[dict[str, Any], str]] = [
    ({"batch_size": 8, "gradient_accumulation_steps": 2}, "AXO001"),
    ({"deepspeed": "zero3.json", "fsdp": ["full_shard"]}, "AXO003"),
    ({"adapter": "qlora", "lora_r": 8}, "AXO004"),
    ({"load_in_4bit": True}, "AXO004"),
    ({"optimizer": "adamw_8bit", "fsdp_version": 2, "fsdp_config": {"reshard_after_forward": True}}, "AXO005"),
    ({"optimizer": "adamw_8bit", "fsdp_version": 1, "fsdp_config": {"offload_params": True}}, "AXO005"),
    ({"optimizer": "muon", "deepspeed": "zero2.json"}, "AXO005"),
    ({"activation_offloading": True}, "AXO006"),
    ({"context_parallel_size": 2}, "AXO007"),
    ({"attn_implementation": "flash"}, "AXO008"),
    ({"gradient_checkpointing": "sometimes"}, "AXO009"),
    ({"fsdp_version": 2, "fsdp_config": {"auto_wrap_policy": "SIZE_BASED_WRAP"}}, "AXO010"),
    (
        {
            "adapter": "qlora", "lora_r": 8, "load_in_4bit": True, "fsdp_version": 2,
            "fsdp_config": {"cpu_ram_efficient_loading": True},
        },
        "AXO016",
    ),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("made", "code"), PLANTED_AXOLOTL)
def test_what_axolotl_refuses_is_an_error_here(made: dict[str, Any], code: str) -> None:
    whole = {"base_model": "meta-llama/Llama-3.1-8B", "sequence_len": 2048, "micro_batch_size": 2} | made

    with pytest.raises(ValueError, match="validation error"):
        axolotl_of(whole)

    assert code in codes(axolotl, AXOLOTL | whole)


LLAMA_FACTORY = {"dataset": "x", "template": "llama3", "output_dir": "out", "use_cpu": True}


def parser_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    """LLaMA-Factory's parser, beside newer releases than it names."""
    monkeypatch.setitem(os.environ, "DISABLE_VERSION_CHECK", "1")
    return pytest.importorskip("llamafactory.hparams.parser")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("ranks", "driver", "job", "layout"), RUNS)
def test_llama_factory_takes_what_is_exported(
    monkeypatch: pytest.MonkeyPatch, ranks: int, driver: str, job: dict[str, Any], layout: dict[str, Any]
) -> None:
    parser = parser_of(monkeypatch)
    run = run_of(ranks, driver, job, layout)
    made = yaml.safe_load(llamafactory.write(run).text)

    model, data, training, tuning, _ = parser._parse_train_args(LLAMA_FACTORY | made)

    assert training.per_device_train_batch_size == run.layout.micro_batch
    assert training.gradient_accumulation_steps == run.micro_batches
    assert data.cutoff_len == run.job.sequence_length
    assert model.disable_gradient_checkpointing == (run.layout.recompute != "full")
    assert (tuning.finetuning_type == "lora") == (run.job.adapter != "none")
    assert tuning.lora_rank == (run.job.adapter_rank if run.job.adapter != "none" else 8)
    assert model.quantization_bit == {"nf4_double": 4, "int8": 8}.get(run.job.frozen_format)
    assert bool(training.deepspeed) == (driver == "deepspeed")
    assert codes(llamafactory, LLAMA_FACTORY | made) == []


PLANTED_LLAMA_FACTORY: list[tuple[dict[str, Any], str]] = [
    ({"lora_ranks": 8}, "LLF001"),
    ({"max_seq_length": 8}, "LLF001"),
    ({"bf16": True, "fp16": True}, "LLF003"),
    ({"finetuning_type": "full", "quantization_bit": 4}, "LLF004"),
    ({"finetuning_type": "full", "use_dora": True}, "LLF005"),
    ({"finetuning_type": "lora", "use_galore": True}, "LLF005"),
    ({"stage": "dpo", "neat_packing": True}, "LLF006"),
    ({"finetuning_type": "all"}, "LLF008"),
    ({"fsdp": "hybrid_shard auto_wrap"}, "LLF010"),
    ({"optim": "adamw_8bitt"}, "LLF011"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("made", "code"), PLANTED_LLAMA_FACTORY)
def test_what_llama_factory_refuses_is_an_error_here(
    monkeypatch: pytest.MonkeyPatch, made: dict[str, Any], code: str
) -> None:
    parser = parser_of(monkeypatch)
    whole = {"model_name_or_path": "meta-llama/Llama-3.1-8B", "stage": "sft"} | made

    with pytest.raises((ValueError, AssertionError)):
        parser.get_train_args(LLAMA_FACTORY | whole)

    assert code in codes(llamafactory, LLAMA_FACTORY | whole)


@pytest.mark.filterwarnings("ignore")
def test_llama_factory_refuses_pure_bf16_under_zero_3(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = parser_of(monkeypatch)
    monkeypatch.setattr(parser, "is_torch_bf16_gpu_available", lambda: True)
    distributed = property(lambda _: parser.ParallelMode.DISTRIBUTED)
    monkeypatch.setattr(parser.TrainingArguments, "parallel_mode", distributed)
    made = {
        "model_name_or_path": "meta-llama/Llama-3.1-8B", "finetuning_type": "full", "pure_bf16": True,
        "deepspeed": {"zero_optimization": {"stage": 3}},
    }  # fmt: skip

    with pytest.raises(ValueError, match="`pure_bf16` is incompatible with DeepSpeed ZeRO-3"):
        parser.get_train_args(LLAMA_FACTORY | made)

    assert codes(llamafactory, LLAMA_FACTORY | made) == ["LLF002"]


@pytest.mark.filterwarnings("ignore")
def test_axolotl_refuses_shards_without_fsdp() -> None:
    distributed = pytest.importorskip("axolotl.utils.distributed")

    with pytest.raises(ValueError, match="without a corresponding fsdp_config"):
        distributed._get_parallel_config_kwargs(8, 1, 1, dp_shard_size=4, dp_replicate_size=None, is_fsdp=False)

    made = {"base_model": "meta-llama/Llama-3.1-8B", "micro_batch_size": 2, "dp_shard_size": 4}
    assert codes(axolotl, AXOLOTL | made) == ["AXO011"]


@pytest.mark.filterwarnings("ignore")
def test_axolotl_does_not_accumulate_for_batch_size() -> None:
    made = {"base_model": "meta-llama/Llama-3.1-8B", "micro_batch_size": 2, "batch_size": 8}

    assert axolotl_of(made).gradient_accumulation_steps == 1
    found = axolotl.read(yaml.safe_dump(AXOLOTL | made).encode())
    assert [one.code for one in found.findings] == ["AXO002"] and found.accumulated == 2


def test_the_arguments_of_llama_factory_are_those_that_are_known_here(monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    parser = parser_of(monkeypatch)

    own = {field.name for each in parser._TRAIN_ARGS for field in dataclasses.fields(each) if field.init}

    assert own == llamafactory.KEYS


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("ranks", "driver", "job", "layout"), RUNS)
def test_trl_takes_what_is_exported(
    tmp_path: Path, ranks: int, driver: str, job: dict[str, Any], layout: dict[str, Any]
) -> None:
    for name in ("trl", "peft", "accelerate"):
        pytest.importorskip(name)
    run = run_of(ranks, driver, job, layout)
    text = trainer.write(run).text.replace("SFTConfig(\n", "SFTConfig(\n    use_cpu=True,\n")
    text = text.partition("quantization_config =")[0]  # bitsandbytes needs a GPU
    text = text.replace("from transformers import BitsAndBytesConfig\n", "")
    (tmp_path / "train.py").write_text(text)

    made = runpy.run_path(str(tmp_path / "train.py"))
    args = made["args"]

    assert args.per_device_train_batch_size == run.layout.micro_batch
    assert args.gradient_accumulation_steps == run.micro_batches
    assert args.max_length == run.job.sequence_length
    assert args.activation_checkpointing == (run.layout.recompute == "full")
    assert (args.bf16, args.fp16) == (run.job.precision == "bf16", run.job.precision == "fp16")
    assert bool(args.fsdp) == (driver == "hf_trainer" and run.layout.zero > 0)
    assert bool(args.deepspeed) == (driver == "deepspeed")
    if args.fsdp:
        assert args.fsdp_plugin_args["reshard_after_forward"] == (run.layout.zero == 3)
    if run.job.adapter != "none":
        assert made["peft_config"].r == run.job.adapter_rank


def test_the_arguments_of_trl_are_those_that_are_known_here() -> None:
    import dataclasses

    trl = pytest.importorskip("trl")

    own = {field.name for field in dataclasses.fields(trl.SFTConfig) if field.init}

    assert own - {field.name for field in dataclasses.fields(trl.SFTConfig.__mro__[2])} == trainer.OF_TRL
