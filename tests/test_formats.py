"""Files that people hold: scripts, logs, YAML and JSON of Megatron-LM and DeepSpeed, with each framework's defaults."""

import pytest

from outlay.errors import InputError
from outlay.formats import deepspeed, megatron
from outlay.formats.arithmetic import evaluate
from outlay.formats.json_comments import read_json
from outlay.formats.known import format_of, read
from outlay.formats.megatron.model import pattern_of
from outlay.formats.pipeline_layout import ends_counted, ends_given, parse_layout, print_layout
from outlay.formats.setting import Found
from outlay.formats.shell import read_script
from outlay.job import AUTO
from outlay.model.catalogue import find
from outlay.undivided import parameters

GPT3 = """#!/bin/bash
# Runs the "175B" parameter model
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=16
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
CHECKPOINT_PATH=$1 #<Specify path>
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
    --master_addr $MASTER_ADDR
)
GPT_MODEL_ARGS=(
    --num-layers 96
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
    --attention-backend auto # Can use (flash/fused/unfused/local)
)
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size 1536
    --rampup-batch-size 16 16 5859375
    --train-iters 500000
    --fp16
    --lr 6.0e-5
)
MODEL_PARALLEL_ARGS=(
\t--tensor-model-parallel-size 8
\t--pipeline-model-parallel-size 16
)
DATA_ARGS=( --data-path $DATA_PATH --vocab-size 50257 )
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \\
    ${GPT_MODEL_ARGS[@]} \\
    ${TRAINING_ARGS[@]} \\
    ${MODEL_PARALLEL_ARGS[@]} \\
    ${DATA_ARGS[@]}
"""
LLAMA = """
--num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64 --group-query-attention
--num-query-groups 8 --swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope
--untie-embeddings-and-output-weights --seq-length 8192 --max-position-embeddings 131072 --vocab-size 128256
--hidden-dropout 0 --attention-dropout 0 --bf16 --micro-batch-size 1
"""


def megatron_of(text: str) -> Found:
    return megatron.read(text.encode())


def test_the_published_script_of_a_175_billion_model_is_read() -> None:
    found = megatron_of(GPT3)

    assert found.form == "a shell script" and found.ranks == 128
    assert found.model is not None
    assert parameters(found.model).total == parameters(find("gpt3-175b")).total
    assert (found.layout.tp, found.layout.pp, found.layout.dp_shard, found.layout.zero) == (8, 16, 1, 0)
    assert found.job.precision == "fp16" and found.job.gradient_dtype == "fp16"
    assert found.job.batch_rampup == (16, 16, 5_859_375)
    assert found.job.tokens == 500_000 * 1536 * 2048
    assert [one.name for one in found.kept] == ["--attention-backend", "--lr", "--data-path"]


def test_lines_of_flags_are_read_as_they_are_pasted() -> None:
    found = megatron_of(LLAMA)

    assert found.model is not None and found.form == "flags"
    assert parameters(found.model).total == parameters(find("llama-3.1-70b")).total == 70_553_706_496


@pytest.mark.parametrize(
    ("without", "total"),
    [
        ("--group-query-attention", 80 * (8192 * 7 * 1024 * 2)),  # a key and a value head for each head
        ("--untie-embeddings-and-output-weights", -128256 * 8192),  # tied
        ("--swiglu", -80 * 8192 * 28672),  # two matrices
        ("--ffn-hidden-size 28672", 80 * 3 * 8192 * (21824 - 28672)),  # int(4 h x 2/3 / 64) x 64
    ],
)
def test_what_is_left_out_has_the_default_of_the_parser(without: str, total: int) -> None:
    found = megatron_of(LLAMA.replace(without, ""))

    assert found.model is not None
    assert parameters(found.model).total - 70_553_706_496 == total


def test_the_expert_tensor_degree_is_that_of_all_else_by_itself() -> None:
    text = LLAMA + "--num-experts 8 --tensor-model-parallel-size 4 --expert-model-parallel-size 2 --sequence-parallel\n"

    assert megatron_of(text).layout.etp == 4
    assert megatron_of(text + "--expert-tensor-parallel-size 1").layout.etp == 1
    assert megatron_of(text).layout.moe_dispatch == "all_gather"


def test_sequence_parallelism_without_tensor_parallelism_does_nothing_and_is_said() -> None:
    found = megatron_of(LLAMA + "--sequence-parallel")

    assert found.layout.sp is False
    assert [(one.code, one.serious, one.line) for one in found.findings] == [("MEG001", False, 6)]


def test_a_log_holds_what_the_run_took() -> None:
    lines = ["  num_layers ......... 32", "  hidden_size ........ 4096", "  num_attention_heads  ....... 32"]
    more = ["  group_query_attention .... True", "  num_query_groups ... 8", "  bf16 ....... True", "  fp8 ..... None"]
    rest = ["  padded_vocab_size .. 128256", "  seq_length ... 8192", "  world_size ..... 64", "  swiglu .... True"]
    text = "\n".join(
        [
            "[rank0] setting up",
            "---- arguments ----",
            *(f"0:{line}" for line in lines + more + rest),
            "---- end of arguments ----",
        ]
    )

    found = megatron_of(text)

    assert (found.form, found.ranks) == ("the arguments of a log", 64)
    assert found.model is not None and found.model.blocks[0].attention is not None
    assert (found.model.blocks[0].attention.kv_heads, found.model.vocab) == (8, 128256)
    assert found.layout.dp_shard == 64 and found.job.sequence_length == 8192


def test_a_log_of_muon_has_its_own_distributed_optimizer() -> None:
    lines = ["  optimizer ... muon", "  use_distributed_optimizer ... False", "  num_layers ... 2"]

    assert megatron_of("\n".join(lines)).layout.zero == 0
    assert megatron_of("\n".join([*lines, "  use_layer_wise_distributed_optimizer ... True"])).layout.zero == 1


def test_yaml_of_the_core_classes_is_read() -> None:
    text = """
model_parallel:
  tensor_model_parallel_size: 2
  virtual_pipeline_model_parallel_size: 4
  pipeline_model_parallel_size: 2
language_model:
  num_layers: 32
  hidden_size: 4096
  num_attention_heads: 32
  recompute_modules: [core_attn, moe_act]
  recompute_granularity: selective
  num_moe_experts: 8
vocab_size: 32000
seq_length: 4096
"""
    found = megatron_of(text)

    assert (found.form, found.layout.tp, found.layout.vpp, found.layout.schedule) == ("YAML", 2, 4, "interleaved")
    assert found.layout.recompute_modules == ("core_attn", "moe_act")
    assert found.model is not None and found.model.experts == 8


def test_what_a_variable_or_a_command_would_say_is_missing_by_name() -> None:
    line = LLAMA.replace("\n", " ")
    found = megatron_of(line + "--tensor-model-parallel-size $TP --global-batch-size $(cat size)")
    first, second = len(line) + 1, len(line) + 34

    assert {one.field: one.why for one in found.missing} == {
        "tp": f"--tensor-model-parallel-size $TP (line 1 column {first}): the file does not set TP",
        "global_batch": f"--global-batch-size $(cat size) (line 1 column {second}): $(cat size) is not run",
    }
    assert found.layout.tp is AUTO and found.job.global_batch is AUTO


def test_of_a_flag_that_stands_twice_the_last_counts_and_a_near_name_is_proposed() -> None:
    found = megatron_of(LLAMA + "--micro-batch-size 4 --tensor-model-paralel-size 8")

    assert found.layout.micro_batch == 4
    assert any("--micro-batch-size stands twice" in note for note in found.notes)
    assert [(one.code, one.fix) for one in found.findings] == [("MEG005", "did you mean tensor_model_parallel_size?")]
    assert [one.name for one in found.kept] == ["--tensor-model-paralel-size"]


@pytest.mark.parametrize(
    ("flags", "chunks"),
    [
        (
            "--pipeline-model-parallel-layout 'Et*3|(tt|)*37,tt*1,t|L' --pipeline-model-parallel-size 39",
            [3, *[2] * 37, 3, 0],
        ),
        ("--pipeline-model-parallel-layout 'Et*19|t*20|t*20|t*21L'", [19, 20, 20, 21]),
        ("--decoder-first-pipeline-num-layers 14", [14, 22, 22, 22]),
        ("--decoder-first-pipeline-num-layers 17 --decoder-last-pipeline-num-layers 21", [17, 21, 21, 21]),
    ],
)
def test_uneven_stages(flags: str, chunks: list[int]) -> None:
    if flags.endswith("39"):
        with pytest.raises(InputError):
            megatron_of(LLAMA + flags)
        return
    found = megatron_of(LLAMA + "--pipeline-model-parallel-size 4 " + flags)

    assert list(found.layout.split) == chunks


def test_layout_strings_and_ends() -> None:
    assert parse_layout("Ettt|(tt|)*29,m|L") == [3, *[2] * 29, 0, 0]  # of Megatron-LM's own documentation
    assert parse_layout(print_layout([0, 3, 1, 2], mtp=1)) == [0, 3, 1, 2]
    assert [parse_layout(print_layout(sizes)) for sizes in ([5], [1, 1], [2, 2, 2, 0])] == [[5], [1, 1], [2, 2, 2, 0]]
    assert parse_layout("tE|L") is None and parse_layout("(t|)*999999") is None
    assert ends_counted(30, 4, 2, embedding=True, loss=True) == [3, 4, 4, 4, 4, 4, 4, 3]
    assert ends_counted(31, 4, 2, embedding=True, loss=True) is None
    assert ends_given(30, 4, 2, first=6, last=0) == [3, 4, 4, 4, 3, 4, 4, 4]
    assert ends_given(30, 4, 1, first=6, last=7) is None


def test_lists_of_expert_layers() -> None:
    assert pattern_of("([0]*3+[1]*58)") == [0] * 3 + [1] * 58
    assert pattern_of("([1]+[0]*2)*4") == [1, 0, 0] * 4
    assert pattern_of("[0,1,1]") == [0, 1, 1]
    assert pattern_of("__import__('os')") is None


def test_arithmetic_of_a_shell() -> None:
    values = {"A": "8", "B": "-3", "C": "x"}.get

    assert evaluate("$A * (2 + ${B}) / 3 % 5", values) == -2  # cut towards zero, as a shell cuts
    assert (
        evaluate("A / 0", values) is None and evaluate("C + 1", values) is None and evaluate("A ** 2", values) is None
    )


def test_words_of_a_shell() -> None:
    script = read_script('A=(1 "2 3")\nB="$A"\nx \'$A\' "${A[@]}" ${A[*]} a\\ b "c"d ${U:-e f} >log 2>&1 # end\n')

    (words,) = script.commands
    assert [word.text for word in words] == ["x", "$A", "1", "2 3", "1", "2", "3", "a b", "cd", "e", "f"]


# --- DeepSpeed ------------------------------------------------------------------------------------------------------


TWO = '"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 3'


def deepspeed_of(text: str) -> Found:
    return deepspeed.read(text.encode())


def test_a_trainers_file_with_auto_asks_for_what_the_trainer_knows() -> None:
    found = deepspeed_of(
        '{"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"}}'
    )

    assert [one.field for one in found.missing] == ["model", "sequence_length", "global_batch", "micro_batch"]
    assert found.job.precision is AUTO


def test_the_launcher_gives_the_third_number_of_the_batch() -> None:
    text = f"deepspeed --num_nodes 2 --num_gpus 8 t.py\n{{{TWO}}}"

    assert deepspeed_of(text).job.global_batch == 4 * 3 * 16
    assert deepspeed_of(text).ranks == 16


def test_three_numbers_that_do_not_multiply_out_are_said() -> None:
    text = f'{{"train_batch_size": 100, {TWO}}}\ndeepspeed --num_gpus 8 t.py'

    (finding,) = deepspeed_of(text).findings
    assert (finding.code, finding.serious, finding.line, finding.column) == ("DSP001", True, 1, 22)
    assert finding.got == "100 is not 4 x 3 x 8 data-parallel ranks"


def test_old_names_of_offload_are_known() -> None:
    found = deepspeed_of('{"zero_optimization": {"stage": 3, "cpu_offload": true, "cpu_offload_params": true}}')

    assert (found.layout.offload_optimizer, found.layout.offload_parameters) == (1.0, 1.0)


def test_a_number_may_be_a_text_and_unknown_keys_are_kept() -> None:
    found = deepspeed_of(
        '{"train_batch_size": "64", "gradient_clipping": 1.0, "zero_optimization": {"stage": 2, "x": [1]}}'
    )

    assert found.job.global_batch == 64
    assert {one.name for one in found.kept} == {"gradient_clipping", "zero_optimization.x"}


def test_both_precisions_are_refused() -> None:
    with pytest.raises(InputError) as error:
        deepspeed_of('{"bf16": {"enabled": true},\n "fp16": {"enabled": true}}')

    assert error.value.faults[0].got.startswith("line 2 column 22")


def test_json_as_people_write_it() -> None:
    text = '{\'a\': True, b: None, // c\n "c": [1, 2.5e1, -3,], # d\n /* e */ "d": "\\u00e9\\n",}'

    assert read_json(text).plain() == {"a": True, "b": None, "c": [1, 25.0, -3], "d": "é\n"}


def test_the_format_of_a_file_is_recognised() -> None:
    assert read(GPT3.encode()).framework == "megatron"
    assert read(b'// c\n{"fp16": {"enabled": true}}').framework == "deepspeed"
    assert read(GPT3.encode("utf-16")).framework == "megatron"
    with pytest.raises(InputError) as error:
        format_of("megatrom")
    assert error.value.faults[0].fix == "megatron"
