"""Exported arguments in transformers' own TrainingArguments and parser, and what those refuse beside `check`.

The Trainer wants accelerate: where it is not installed these are skipped.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from transformers import HfArgumentParser, TrainingArguments

import outlay
from outlay.formats import trainer
from outlay.formats.fine_tuning.models import LAYERS
from outlay.formats.fine_tuning.python_calls import calls_in
from outlay.formats.setting import Run

pytestmark = pytest.mark.filterwarnings("ignore")
RUNS: list[tuple[int, str, dict[str, Any], dict[str, Any]]] = [
    (8, "hf_trainer", {}, {"zero": 0}),
    (8, "hf_trainer", {"bytes_per_parameter": "8"}, {"zero": 0, "recompute": "full"}),
    (8, "hf_trainer", {}, {"zero": 3, "recompute": "full", "recompute_layers": 16, "micro_batch": 2}),
    (8, "hf_trainer", {}, {"zero": 2, "offload_optimizer": 1.0, "offload_parameters": 1.0}),
    (8, "hf_trainer", {"precision": "fp16", "optimizer": "adafactor"}, {"zero": 3, "gather_unit": "model"}),
    (16, "hf_trainer", {}, {"zero": 3, "dp_replicate": 2, "tp": 2}),
    (16, "hf_trainer", {}, {"zero": 3, "cp": 2}),
    (8, "hf_trainer", {"optimizer": "momentum", "precision": "fp32"}, {"zero": 0}),
    (8, "hf_trainer", {"adapter": "lora"}, {"zero": 0, "recompute": "full", "offload_activations": 1.0}),
    (8, "deepspeed", {}, {"zero": 1}),
    (16, "deepspeed", {}, {"zero": 3, "offload_optimizer": 1.0, "offload_parameters": 1.0}),
    (8, "deepspeed", {"precision": "fp16"}, {"zero": 2, "tp": 2}),
    (8, "deepspeed", {"optimizer": "lion", "gradient_dtype": "fp32"}, {"zero": 1}),
]


def run_of(ranks: int, driver: str, job: dict[str, Any], layout: dict[str, Any]) -> Run:
    task, cluster = outlay.Job(sequence_length=2048, global_batch=64, **job), outlay.load_cluster(f"{ranks}xh100-sxm")
    bill = outlay.count(outlay.load_model("llama-3.1-8b"), task, cluster, outlay.Layout(**layout), driver)
    assert not bill.violations
    return Run(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)


def arguments_of(made: dict[str, Any]) -> TrainingArguments:
    """TrainingArguments of what is written, on a machine without a GPU."""
    parallel = pytest.importorskip("accelerate.parallelism_config")
    own = {field.name for field in dataclasses.fields(TrainingArguments)}
    kept = {name: value for name, value in made.items() if name in own}
    if isinstance(kept.get("parallelism_config"), dict):
        kept["parallelism_config"] = parallel.ParallelismConfig(**kept["parallelism_config"])
    return TrainingArguments(**kept, use_cpu=True)


@pytest.mark.parametrize(("ranks", "driver", "job", "layout"), RUNS)
def test_the_trainer_takes_what_is_exported(
    ranks: int, driver: str, job: dict[str, Any], layout: dict[str, Any]
) -> None:
    run = run_of(ranks, driver, job, layout)

    read = arguments_of(calls_in(trainer.write(run).text).value.plain())

    assert read.per_device_train_batch_size == run.layout.micro_batch
    assert read.gradient_accumulation_steps == run.micro_batches
    assert read.activation_checkpointing == (run.layout.recompute == "full")
    assert (read.bf16, read.fp16) == (run.job.precision == "bf16", run.job.precision == "fp16")
    assert bool(read.deepspeed) == (driver == "deepspeed")
    sharded = driver == "hf_trainer" and run.layout.zero > 0
    assert bool(read.fsdp) == sharded
    assert not sharded or read.fsdp_plugin_args["reshard_after_forward"] == (run.layout.zero == 3)
    cut = read.parallelism_config
    assert (cut.tp_size if cut else 1) == (run.layout.tp if driver == "hf_trainer" else 1)
    assert not cut or (cut.dp_replicate_size, cut.cp_size) == (run.layout.dp_replicate, run.layout.cp)
    if driver == "deepspeed":
        assert read.hf_deepspeed_config.mismatches == []
        assert read.hf_deepspeed_config.config["train_micro_batch_size_per_gpu"] == run.layout.micro_batch


@pytest.mark.parametrize(
    ("made", "code"),
    [
        ({"bf16": True, "fp16": True}, "TRN001"),
        ({"optim": "adamw_8bitt"}, "TRN002"),
        ({"fsdp": "hybrid_shard auto_wrap"}, "TRN003"),
        ({"fsdp": "full_shard wrap"}, "TRN003"),
        ({"fsdp": True, "fsdp_config": {"auto_wrap_policy": "LAYERS"}}, "TRN003"),
    ],
)
def test_what_the_trainer_refuses_is_an_error_here(made: dict[str, Any], code: str) -> None:
    pytest.importorskip("accelerate")
    whole = {"output_dir": "out", "per_device_train_batch_size": 2} | made

    with pytest.raises(ValueError, match=r"."):
        TrainingArguments(**json.loads(json.dumps(whole)), use_cpu=True)

    found = trainer.read(yaml.safe_dump(whole).encode())
    assert code in [one.code for one in found.findings if one.serious]


@pytest.mark.parametrize("name", ["max_seq_length", "evaluation_strategy", "packing", "lora_r", "per_device_batch"])
def test_a_name_that_the_class_does_not_have_is_an_error_here(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        TrainingArguments(**{"output_dir": "out", name: "1"})

    found = trainer.read(f'args = TrainingArguments(output_dir="out", bf16=True, {name}="1")'.encode())
    assert "TRN009" in [one.code for one in found.findings if one.serious]


def test_deepspeeds_own_numbers_are_held_against_those_of_the_trainer() -> None:
    section = {"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}, "fp16": {"enabled": True}}

    read = arguments_of({"per_device_train_batch_size": 2, "bf16": True, "deepspeed": section})

    assert len(read.hf_deepspeed_config.mismatches) == 2
    text = yaml.safe_dump({"per_device_train_batch_size": 2, "bf16": True, "deepspeed": section})
    found = trainer.read(text.encode())
    assert [one.code for one in found.findings] == ["TRN005", "TRN005"]


def test_flags_and_yaml_are_read_as_transformers_reads_them(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    flags = "--per_device_train_batch_size 2 --gradient_accumulation_steps=4 --bf16 --use_cpu --gradient_checkpointing"
    made = {
        "per_device_train_batch_size": 2, "gradient_accumulation_steps": 4, "bf16": True, "use_cpu": True,
        "gradient_checkpointing": True,
    }  # fmt: skip
    (tmp_path / "args.yaml").write_text(yaml.safe_dump(made))
    parser = HfArgumentParser(TrainingArguments)

    (one,) = parser.parse_args_into_dataclasses(args=flags.split(), look_for_args_file=False)
    (two,) = parser.parse_yaml_file(str(tmp_path / "args.yaml"))
    first = trainer.read(f"torchrun --nproc_per_node 8 train.py {flags}\n".encode())
    second = trainer.read((tmp_path / "args.yaml").read_bytes())

    for read, found in ((one, first), (two, second)):
        assert found.accumulated == read.per_device_train_batch_size * read.gradient_accumulation_steps == 8
        assert found.job.precision == "bf16" and read.bf16
        assert (found.layout.recompute == "full") == read.activation_checkpointing
    assert first.ranks == 8 and first.job.global_batch == 64


def test_the_arguments_of_the_trainer_are_those_that_are_known_here() -> None:
    own = {field.name for field in dataclasses.fields(TrainingArguments) if field.init}

    assert own | trainer.OF_TRL <= trainer.KEYS
    assert trainer.KEYS - own - trainer.OF_TRL == trainer.OF_MODEL - own


def test_layers_that_fsdp_wraps_are_those_of_transformers() -> None:
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CLASSES

    for kind, layer in LAYERS.items():
        assert layer in getattr(transformers, CLASSES[kind])._no_split_modules
