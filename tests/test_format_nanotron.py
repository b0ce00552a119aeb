"""nanotron's YAML: its own example read, what its loader refuses, and what comes back of a layout."""

import random
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.bill import case_of, count
from outlay.errors import InputError
from outlay.formats import nanotron
from outlay.formats.known import read
from outlay.formats.setting import Found, Run
from outlay.formats.source import place_of
from outlay.job import AUTO, Job
from outlay.layout.axes import Layout
from outlay.layout.rules import rules_of
from outlay.model.catalogue import find
from outlay.undivided import parameters
from test_format_fuzz import BOMBS, CODES, broken, outcome
from test_format_round_trip import SOME, back, cluster_of, differences, model_of

# examples/config_tiny_llama.yaml of huggingface/nanotron, with one of its two stages of data.
TINY = """checkpoints:
  checkpoint_interval: 10
  checkpoints_path: /fsx/checkpoints
  checkpoints_path_is_shared_file_system: false
  resume_checkpoint_path: null
  save_initial_state: false
data_stages:
- data:
    dataset:
      dataset_overwrite_cache: false
      hf_dataset_or_datasets: stas/openwebtext-10k
      hf_dataset_splits: train
      text_column_name: text
    num_loading_workers: 1
    seed: 42
  name: Stable Training Stage
  start_training_step: 1
general:
  benchmark_csv_path: null
  consumed_train_samples: null
  ignore_sanity_checks: true
  project: debug
  run: tiny_llama_%date_%jobid
  seed: 42
  step: null
lighteval: null
logging:
  iteration_step_info_interval: 1
  log_level: info
  log_level_replica: info
model:
  ddp_bucket_cap_mb: 25
  dtype: bfloat16
  init_method:
    std: 0.025
  make_vocab_size_divisible_by: 1
  model_config:
    bos_token_id: 1
    eos_token_id: 2
    hidden_act: silu
    hidden_size: 16
    initializer_range: 0.02
    intermediate_size: 64
    is_llama_config: true
    max_position_embeddings: 256
    num_attention_heads: 4
    num_hidden_layers: 2
    num_key_value_heads: 4
    pad_token_id: null
    pretraining_tp: 1
    rms_norm_eps: 1.0e-05
    rope_scaling: null
    tie_word_embeddings: true
    use_cache: true
    vocab_size: 256
optimizer:
  accumulate_grad_in_fp32: true
  clip_grad: 1.0
  learning_rate_scheduler:
    learning_rate: 0.0003
    lr_decay_starting_step: null
    lr_decay_steps: 13
    lr_decay_style: cosine
    lr_warmup_steps: 2
    lr_warmup_style: linear
    min_decay_lr: 1.0e-05
  optimizer_factory:
    adam_beta1: 0.9
    adam_beta2: 0.95
    adam_eps: 1.0e-08
    name: adamW
    torch_adam_is_fused: true
  weight_decay: 0.01
  zero_stage: 0
parallelism:
  dp: 2
  expert_parallel_size: 1
  pp: 2
  pp_engine: 1f1b
  tp: 2
  tp_linear_async_communication: true
  tp_mode: REDUCE_SCATTER
profiler: null
tokenizer:
  tokenizer_max_length: null
  tokenizer_name_or_path: gpt2
  tokenizer_revision: null
tokens:
  batch_accumulation_per_replica: 1
  limit_test_batches: 0
  limit_val_batches: 0
  micro_batch_size: 2
  sequence_length: 256
  train_steps: 15
  val_check_interval: -1
"""


def nanotron_of(text: str) -> Found:
    return nanotron.read(text.encode())


def test_the_example_of_its_own_is_read() -> None:
    found = read(TINY.encode())

    assert (found.framework, found.engine, found.ranks, found.missing) == ("nanotron", "nanotron", 8, ())
    at, job = found.layout, found.job
    assert (at.tp, at.sp, at.pp, at.dp_shard, at.zero, at.schedule, at.recompute) == (2, True, 2, 2, 0, "1f1b", "none")
    assert (at.micro_batch, at.overlap_tp, at.keep_gathered, at.cp, at.ep) == (2, True, False, 1, 1)
    assert (job.global_batch, job.sequence_length, job.tokens) == (4, 256, 15 * 4 * 256)
    assert (job.precision, job.optimizer, job.gradient_dtype) == ("bf16", "adam", AUTO)
    assert found.findings == ()
    assert found.model is not None
    # 256 x 16 embedding, tied; 2 x (4 x 16 x 16 + 3 x 16 x 64 + 2 x 16) and the last norm
    assert parameters(found.model).total == 256 * 16 + 2 * (4 * 256 + 3 * 1024 + 32) + 16


@pytest.mark.parametrize(
    ("without", "field", "value"),
    [
        ("  pp_engine: 1f1b\n", "schedule", "gpipe"),  # AllForwardAllBackward
        ("  tp_mode: REDUCE_SCATTER\n", "sp", False),  # ALL_REDUCE
        ("  tp_linear_async_communication: true\n", "overlap_tp", False),
    ],
)
def test_what_is_left_out_has_nanotrons_default(without: str, field: str, value: object) -> None:
    assert getattr(nanotron_of(TINY.replace(without, "")).layout, field) == value


def test_a_head_without_groups_of_its_own_has_a_key_and_a_value() -> None:
    found = nanotron_of(TINY.replace("    num_key_value_heads: 4\n", ""))

    assert found.model is not None and found.model.blocks[0].attention is not None
    assert found.model.blocks[0].attention.kv_heads == 4


def test_gradients_that_accumulate_in_16_bit_leave_no_master() -> None:
    job = nanotron_of(TINY.replace("accumulate_grad_in_fp32: true", "accumulate_grad_in_fp32: false")).job

    assert (job.master_dtype, job.gradient_dtype, job.moment_dtype) == ("none", "bf16", "bf16")


def test_experts_are_read_in_the_layers_that_have_them() -> None:
    experts = (
        "\n    moe_config:\n      num_experts: 4\n      top_k: 2\n      layers: [1]\n      enable_shared_expert: true"
    )
    found = nanotron_of(TINY.replace("    vocab_size: 256", "    vocab_size: 256" + experts))

    assert found.model is not None and [block.experts is not None for block in found.model.blocks] == [False, True]
    assert found.model.pattern == (0, 1)
    made = found.model.blocks[1].experts
    assert made is not None and (made.experts, made.active, made.expert_width, made.shared_width) == (4, 2, 64, 64)


PLANTED = [
    ("  tp: 2", "  tp: 3", "NAN001", True),
    ("num_key_value_heads: 4", "num_key_value_heads: 1", "NAN002", True),
    ("num_key_value_heads: 4", "num_key_value_heads: 3", "NAN001", True),
    ("pp_engine: 1f1b", "pp_engine: interleaved", "NAN003", True),
    ("tp_mode: REDUCE_SCATTER", "tp_mode: RING", "NAN003", True),
    ("dtype: bfloat16", "dtype: bf16", "NAN003", True),
    ("  dp: 2", "  dp: 2\n  vpp: 2", "NAN004", True),
    ("  micro_batch_size: 2", "  micro_batch_size: 2\n  global_batch: 2", "NAN004", True),
    ("tokens:", "zero:\n  stage: 1\ntokens:", "NAN004", True),
    ("  init_method:\n    std: 0.025\n", "", "NAN005", True),
    ("  weight_decay: 0.01\n", "", "NAN005", True),
    ("    vocab_size: 256", "    vocab_size: 256\n    moe_config: {num_experts: 2, top_k: 4}", "NAN006", True),
    ("zero_stage: 0", "zero_stage: 3", "NAN007", False),
]  # fmt: skip


@pytest.mark.parametrize(("good", "bad", "code", "serious"), PLANTED)
def test_what_nanotron_refuses_is_found(good: str, bad: str, code: str, serious: bool) -> None:
    assert TINY.count(good) == 1
    found = nanotron_of(TINY.replace(good, bad))

    assert [(one.code, one.serious) for one in found.findings] == [(code, serious)]


def test_a_finding_has_its_place_and_what_was_meant() -> None:
    text = TINY.replace("recompute", "").replace("  dp: 2", "  dp: 2\n  recompute_layers: true")
    (one,) = nanotron_of(text).findings

    assert (one.line, one.column) == place_of(text, text.index("recompute_layers"))
    assert one.fix == "did you mean recompute_layer?"


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    pp = draw(st.sampled_from([1, 1, 2, 4]))
    return Layout(
        tp=draw(st.sampled_from([1, 1, 2, 4])),
        sp=draw(st.sampled_from([AUTO, False, True])),
        keep_gathered=draw(st.booleans()),
        cp=draw(st.sampled_from([1, 1, 2])),
        pp=pp,
        ep=draw(st.sampled_from([1, 1, 2])),
        dp_replicate=draw(st.sampled_from([1, 1, 1, 2])),
        zero=draw(st.sampled_from([0, 1])),
        micro_batch=draw(st.sampled_from([1, 2])),
        schedule=draw(st.sampled_from(["1f1b", "gpipe"])) if pp > 1 else AUTO,
        recompute=draw(st.sampled_from(["none", "full"])),
        overlap_tp=draw(st.booleans()),
        overlap_dp=draw(st.sampled_from([True, True, False])),
        moe_dispatch=draw(st.sampled_from(["all_to_all", "all_gather"])),
    )


MODELS = st.sampled_from(
    ["llama-3.1-8b", "llama-2-13b", "mixtral-8x7b", "qwen2.5-7b", "qwen1.5-moe-a2.7b", "gpt3-175b"]
)
JOBS = st.fixed_dictionaries(
    {
        "sequence_length": st.sampled_from([1024, 2048]),
        "tokens": st.sampled_from([0.0, 2048e6, 1e9 + 1]),
        "precision": st.sampled_from(["bf16", "bf16", "fp16", "fp32"]),
        "optimizer": st.sampled_from(["adam", "adam", "sgd"]),
    },
    optional={
        "bytes_per_parameter": st.sampled_from(["16", "18", "8"]),
        "master_dtype": st.sampled_from(["none", "fp32"]),
        "moment_dtype": st.just("bf16"),
        "gradient_dtype": st.sampled_from(["bf16", "fp32"]),
        "attention_flops": st.just("full"),
        "reserved_bytes": st.just(1e9),
    },
)


@SOME
@given(st.data())
def test_a_configuration_comes_back_as_it_was_written(data: st.DataObject) -> None:
    model, layout = model_of(data.draw(MODELS)), data.draw(layouts())
    cluster = cluster_of(data.draw(st.sampled_from([8, 16, 64])))
    job = Job(global_batch=data.draw(st.sampled_from([256, 512])), **data.draw(JOBS))
    try:
        case, _ = case_of(model, job, cluster, layout, "nanotron")
    except InputError:
        return
    if not all(bool(rule.legal(case)) for rule in rules_of("nanotron")):
        return
    run = Run(case.model, case.job, case.cluster, case.layout, case.engine)

    written = nanotron.write(run)
    found = read(written.text.encode())

    assert found.framework == "nanotron"
    assert differences(run, back(run, found, "nanotron"), written) == []
    assert found.ranks == run.cluster.ranks
    if any(one.path == "model" for one in written.lost):
        assert [one.field for one in found.missing] == ["model"]
        return
    assert found.missing == () and found.findings == () and found.model is not None
    assert parameters(found.model).total == parameters(run.model).total
    assert [block.parts for block in found.model.blocks] == [block.parts for block in run.model.blocks]
    plain: dict[str, Any] = {"name": "", "family": "", "notes": (), "blocks": (), "trained_length": 0}
    assert replace(found.model, **plain) == replace(run.model, **plain)
    assert found.model.trained_length == run.model.trained_length or not run.model.trained_length


def test_a_key_that_is_dropped_in_silence_is_found() -> None:
    bill = count(
        find("llama-3.1-8b"), Job(2048, 64), cluster_of(16), Layout(tp=2, pp=2, zero=1, recompute="full"), "nanotron"
    )
    run = Run(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)
    written = nanotron.write(run)

    for line in (
        "  tp_mode: REDUCE_SCATTER\n",
        "  pp_engine: 1f1b\n",
        "  zero_stage: 1\n",
        "  recompute_layer: true\n",
    ):
        found = nanotron_of(written.text.replace(line, ""))
        assert differences(run, back(run, found, "nanotron"), written)


@pytest.mark.parametrize("name", ["qwen3-8b", "gemma-2-27b", "deepseek-v3", "gpt3-175b"])
def test_a_model_that_nanotron_does_not_build_is_lost_whole(name: str) -> None:
    bill = count(find(name), Job(1024, 64), cluster_of(64), Layout(), "nanotron")
    written = nanotron.write(Run(bill.model, bill.job, bill.cluster, bill.layout, bill.engine))

    assert [one.value for one in written.lost if one.path == "model"] == [name]
    assert "model_config" not in written.text


def test_a_thousand_broken_files_are_read_or_refused() -> None:
    chance, sample = random.Random(5), TINY.encode()
    said = [outcome(nanotron.read, broken(sample, chance)) for _ in range(1000)]

    assert outcome(nanotron.read, sample) == "read"
    assert {one for one in said if one != "read" and not CODES.fullmatch(one)} == set()
    assert 50 < said.count("read") < 950


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_at_once(name: str) -> None:
    before = time.perf_counter()

    assert outcome(nanotron.read, BOMBS[name]) in ("read", "FMT002", "FMT003", "FMT004", "FMT005")
    assert time.perf_counter() - before < 10


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"parallelism:\n  tp: 2\n  tp: 4\n", "line 3 column 3"),
        (b"parallelism:\r\n  dp: two\r\n  tp: 1\r\n", "line 2 column 3"),
        (b"parallelism:\n  tp: &a 2\n", "line 2 column 7"),
        (b"\xef\xbb\xbfparallelism:\n  tp: 1.5\n", "line 2 column 3"),
        (b"parallelism:\n  tp: 1\nmodel:\n  model_config:\n    hidden_size: 30\n", "line 5 column 5"),
    ],
)
def test_an_error_says_its_line_and_column(content: bytes, place: str) -> None:
    with pytest.raises(InputError) as error:
        nanotron.read(content)

    assert error.value.faults[0].got.startswith(place + ":")


def test_other_files_are_not_taken_for_it() -> None:
    for text in ("parallelism: {tp: 2}", "--tp 2", "model:\n  tp: 2\n", '{"parallelism": 1}'):
        assert not nanotron.is_of(text)
