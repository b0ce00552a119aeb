"""Megatron-Bridge: overrides, YAML and Python as people hold them, what it refuses, and what comes back of a layout."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.errors import InputError
from outlay.formats import bridge
from outlay.formats.known import format_of, read
from outlay.formats.setting import Found
from outlay.formats.source import place_of
from outlay.job import AUTO
from outlay.model.catalogue import find
from outlay.undivided import parameters
from test_format_fuzz import BOMBS, CODES, broken, outcome
from test_format_round_trip import SOME, back, differences, legal

SCRIPT = """#!/bin/bash
TP=4
NNODES=${SLURM_NNODES:-2}
torchrun --nproc_per_node=8 --nnodes $NNODES scripts/training/run_recipe.py \\
  --recipe llama31_70b_pretrain_config \\
  model.tensor_model_parallel_size=$TP model.pipeline_model_parallel_size=2 model.sequence_parallel=True \\
  +model.virtual_pipeline_model_parallel_size=5 'model.recompute_modules=[core_attn, mlp]' \\
  model.recompute_granularity=selective model.seq_length=8192 dataset.sequence_length=8192 \\
  train.global_batch_size=128 train.micro_batch_size=1 train.train_iters=100 mixed_precision=bf16_with_mxfp8_mixed \\
  optimizer.lr=3e-4 logger.log_interval=1
"""
YAML = """model:
  _target_: megatron.bridge.models.gpt_provider.GPTModelProvider
  num_layers: 32
  hidden_size: 4096
  ffn_hidden_size: 14336
  num_attention_heads: 32
  num_query_groups: 8
  gated_linear_unit: true
  add_bias_linear: false
  normalization: RMSNorm
  position_embedding_type: rope
  share_embeddings_and_output_weights: false
  hidden_dropout: 0.0
  attention_dropout: 0.0
  vocab_size: 128256
  seq_length: 4096
  pipeline_model_parallel_size: 2
  pipeline_model_parallel_layout: [[embedding, decoder], [decoder, decoder, loss]]
train: {micro_batch_size: 2, global_batch_size: 64}
ddp:
  use_distributed_optimizer: false
optimizer: {use_distributed_optimizer: false, optimizer: adam}
mixed_precision:
  fp16: true
  params_dtype: torch.float16
"""
PYTHON = """from megatron.bridge.recipes.llama import llama3_8b_pretrain_config

cfg = llama3_8b_pretrain_config()  # the recipe
cfg.model.tensor_model_parallel_size = 2
cfg.model.sequence_parallel = True
cfg.model.context_parallel_size = int(os.environ["CP"])
cfg.model.recompute_modules = [
    "core_attn",  # cheap
    "mlp",
]
cfg.model.recompute_granularity = "selective"
cfg.model.seq_length = 8_192
cfg.mixed_precision = bf16_with_fp8_current_scaling_mixed()
cfg.mixed_precision.grad_reduce_in_fp32 = False
cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap=True, overlap_grad_reduce=False)
cfg.train.global_batch_size = 512
"""
SAMPLES = {"script": SCRIPT, "yaml": YAML, "python": PYTHON}


def bridge_of(text: str) -> Found:
    return bridge.read(text.encode())


def codes(text: str) -> list[tuple[str, bool]]:
    return [(one.code, one.serious) for one in bridge_of(text).findings]


def test_overrides_behind_a_recipe_are_read_with_the_recipes_model() -> None:
    found = read(SCRIPT.encode())

    assert (found.framework, found.form, found.engine, found.ranks) == (
        "megatron-bridge",
        "a shell script",
        "megatron",
        16,
    )
    assert found.model == find("llama-3.1-70b")
    at, job = found.layout, found.job
    assert (at.tp, at.pp, at.vpp, at.sp, at.dp_shard, at.zero, at.overlap_dp) == (4, 2, 5, True, 2, 1, True)
    assert (at.recompute, at.recompute_modules) == ("selective", ("core_attn", "mlp"))
    assert (job.precision, job.gather_dtype, job.tokens) == ("mxfp8", "fp8", 100 * 128 * 8192)
    assert [one.name for one in found.kept] == ["optimizer.lr", "logger.log_interval"]
    assert found.findings == () and found.missing == ()


def test_yaml_of_sections_is_read_with_its_own_model() -> None:
    found = read(YAML.encode())

    assert (found.framework, found.form) == ("megatron-bridge", "YAML")
    assert found.model is not None
    assert parameters(found.model).total == parameters(find("llama-3.1-8b")).total == 8_030_261_248
    assert (found.layout.zero, found.job.precision) == (0, "fp16")
    assert found.layout.split == (1, 2) and found.layout.vpp == 1
    assert found.kept == ()


def test_lines_of_python_are_read_and_none_is_run() -> None:
    found = read(PYTHON.encode())

    assert (found.framework, found.form) == ("megatron-bridge", "Python")
    assert found.model == find("llama-3-8b")
    at, job = found.layout, found.job
    assert (at.tp, at.sp, at.overlap_tp, at.overlap_dp) == (2, True, True, False)
    assert at.recompute_modules == ("core_attn", "mlp")
    assert (job.precision, job.gradient_dtype, job.sequence_length) == ("fp8_tensorwise", "bf16", 8192)
    assert at.cp is AUTO and [one.field for one in found.missing] == ["cp"]
    assert "it stands in code, which is not run" in found.missing[0].why


def test_lines_that_are_pasted_without_a_command_are_read() -> None:
    found = read(b"model.tensor_model_parallel_size=8\nmodel.seq_length=4096 train.global_batch_size=64\n")

    assert (found.form, found.layout.tp, found.job.global_batch) == ("key=value words", 8, 64)
    assert [one.field for one in found.missing] == ["model"]


def test_flags_of_the_performance_script_are_read() -> None:
    line = "python scripts/performance/setup_experiment.py -m llama -mr llama3_70b -ng 64 -tp 2 -pp 4 -vp 5 -cp 1"
    found = bridge_of(f"{line} -gb 128 -mb 1 -c fp8_mx -g h100 model.seq_length=8192\n")

    assert found.model == find("llama-3-70b") and found.ranks == 64
    assert (found.layout.tp, found.layout.pp, found.layout.vpp, found.layout.dp_shard) == (2, 4, 5, 8)
    assert (found.job.precision, found.job.global_batch) == ("mxfp8", 128)


def test_what_is_left_out_is_as_recipes_have_it() -> None:
    found = bridge_of("model.tensor_model_parallel_size=2 model.sequence_parallel=true model.seq_length=2048\n")

    assert (found.layout.zero, found.layout.overlap_dp, found.job.precision) == (1, True, "bf16")
    assert any("bf16_mixed" in note for note in found.notes)
    assert found.job.global_batch is AUTO


@pytest.mark.parametrize(
    ("name", "precision", "gather"),
    [
        ("bf16_mixed", "bf16", AUTO),
        ("fp16-mixed", "fp16", AUTO),
        ("null", "fp32", AUTO),
        ("bf16_with_fp8_delayed_scaling_mixed", "fp8_delayed", "fp8"),
        ("bf16_with_fp8_subchannel_scaling_mixed", "fp8_blockwise", AUTO),
        ("nemotron_h_bf16_with_fp8_current_scaling_mixed", "fp8_tensorwise", "fp8"),
        ("bf16_with_nvfp4_mixed", "nvfp4", AUTO),
    ],
)
def test_named_precisions_are_those_of_its_source(name: str, precision: str, gather: str | None) -> None:
    job = bridge_of(f"model.seq_length=2048 mixed_precision={name}\n").job

    assert (job.precision, job.gather_dtype) == (precision, gather)


def test_layers_on_the_host_are_a_share_of_the_activations() -> None:
    line = "run.py --recipe llama31_8b_pretrain_config model.seq_length=2048 model.cpu_offloading_num_layers=8"

    assert bridge_of(f"{line} model.cpu_offloading=true\n").layout.offload_activations == 8 / 32
    assert bridge_of(f"{line}\n").layout.offload_activations is AUTO


PLANTED = [
    ("model.seq_length=4096 dataset.seq_length=2048", "BRG001", True),
    ("train.tensor_model_parallel_size=4 model.seq_length=1", "BRG002", True),
    ("model.tensor_model_paralel_size=4 model.seq_length=1", "BRG003", False),
    ("train.train_iters=5 train.train_samples=9 model.seq_length=1", "BRG004", True),
    ("mixed_precision=bf16_mixd model.seq_length=1", "BRG005", True),
    ("mixed_precision.fp8=hybrid mixed_precision.fp4=e2m1 model.seq_length=1", "BRG005", True),
    ("model.recompute_granularity=full model.seq_length=1", "BRG006", True),
    ("model.recompute_granularity=selective model.recompute_num_layers=1 model.seq_length=1", "BRG006", True),
    ("model.recompute_granularity=selective model.recompute_method=block model.seq_length=1", "BRG006", False),
    ("model.recompute_granularity=selective model.recompute_modules=[core_atn] model.seq_length=1", "BRG006", True),
    ("model.recompute_modules=[core_attn] model.seq_length=1", "BRG006", False),
    ("model.cpu_offloading=1 model.cpu_offloading_num_layers=2 model.pipeline_model_parallel_size=2", "BRG007", True),
    ("model.moe_flex_dispatcher_backend=deepep model.num_moe_experts=8", "BRG008", False),
    ("model.sequence_parallel=true model.seq_length=1", "BRG009", True),
    ("model.pipeline_model_parallel_size=2 model.virtual_pipeline_model_parallel_size=2"
     " 'model.pipeline_model_parallel_layout=Et|tL'", "BRG010", True),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "serious"), PLANTED)
def test_what_megatron_bridge_refuses_is_found(text: str, code: str, serious: bool) -> None:
    assert (code, serious) in codes(text + "\n")
    assert len(codes(text + "\n")) == 1


def test_a_finding_has_its_place() -> None:
    (one,) = bridge_of(SCRIPT.replace("dataset.sequence_length=8192", "dataset.sequence_length=4096")).findings

    assert (one.line, one.column) == place_of(SCRIPT, SCRIPT.index("dataset.sequence_length"))


@SOME
@given(st.data())
def test_overrides_come_back_as_they_were_written(data: st.DataObject) -> None:
    run = legal(data, "megatron")

    written = bridge.write(run)
    found = bridge.read(written.text.encode())

    assert bridge.is_of(written.text)
    assert differences(run, back(run, found, "megatron"), written) == []
    assert found.ranks == run.cluster.ranks
    assert found.missing == () and found.kept == () and found.findings == ()
    assert found.model is not None
    same = replace(run.model, name="", family="", notes=(), blocks=())
    assert replace(found.model, name="", family="", notes=(), blocks=()) == same
    assert [block.parts for block in found.model.blocks] == [block.parts for block in run.model.blocks]


@pytest.mark.parametrize("name", SAMPLES)
def test_hundreds_of_broken_files_are_read_or_refused(name: str) -> None:
    chance, sample = random.Random(11), SAMPLES[name].encode()
    said = [outcome(bridge.read, broken(sample, chance)) for _ in range(350)]

    assert outcome(bridge.read, sample) == "read"
    assert {one for one in said if one != "read" and not CODES.fullmatch(one)} == set()
    assert 20 < said.count("read") < 330


MORE_BOMBS = {
    "python brackets": b"cfg.model.tensor_model_parallel_size = (((((((((\n" * 20_000,
    "python lines": b"cfg.model.seq_length = 1\n" * 40_000,
    "overrides": b"x " + b"model.seq_length=1 " * 15_000,
    "layout": b"model.seq_length=1 'model.pipeline_model_parallel_layout=" + b"(t|)*999999" * 300 + b"'",
    "call": b"cfg.comm_overlap = CommOverlapConfig(" + b"a=(" * 9_000,
}


@pytest.mark.parametrize("name", [*BOMBS, *MORE_BOMBS])
def test_a_bomb_ends_at_once(name: str) -> None:
    import time

    before = time.perf_counter()

    assert outcome(bridge.read, {**BOMBS, **MORE_BOMBS}[name]) in ("read", "FMT002", "FMT003", "FMT004", "FMT005")
    assert time.perf_counter() - before < 10


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"model.seq_length=4096 \\\n  model.tensor_model_parallel_size=x", "line 2 column 3"),
        (b"model:\n  seq_length: 1\n  seq_length: 2\n", "line 3 column 3"),
        (b"model:\n  tensor_model_parallel_size: two\ntrain: {}\n", "line 2 column 3"),
        (b"cfg.model.seq_length = 5\r\ncfg.model.context_parallel_size = 1.5", "line 2 column 5"),
        (b"model.seq_length=4096 'x", "line 1 column 23"),
    ],
)
def test_an_error_says_its_line_and_column(content: bytes, place: str) -> None:
    with pytest.raises(InputError) as error:
        bridge.read(content)

    assert error.value.faults[0].got.startswith(place + ":")


def test_its_name_finds_it_and_other_files_are_not_taken_for_it() -> None:
    assert format_of("Megatron-Bridge") is bridge
    for text in ("--num-layers 2 --seq-length=4", "model:\n  num_layers: 2\n", '{"train_batch_size": 1}', "train: 3\n"):
        assert not bridge.is_of(text)
