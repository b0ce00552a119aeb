"""What a file rests on and does not hold is asked for under a name that can be given."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from outlay.formats import bridge, megatron
from outlay.formats.bridge.names import FLAGS
from outlay.formats.megatron.lacking import FIELDS
from outlay.formats.setting import Found
from outlay.job import Job
from outlay.layout.axes import Layout
from outlay.layout.complete import flag
from test_cli import run

RUN = "torchrun --nnodes 2 --nproc-per-node 8 "
GPT = (
    "pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --vocab-size 32000 "
    "--micro-batch-size 1 --global-batch-size 64 --bf16 --num-experts 8 --moe-router-topk 2 "
)
RECIPE = "run_recipe.py --recipe qwen3_30b_a3b_pretrain_config train.micro_batch_size=1 model.seq_length=4096 "
OURS = {one.name for kind in (Layout, Job) for one in fields(kind)} | {"model"}


def asked(read: Callable[[bytes], Found], text: str) -> list[str]:
    return [one.field for one in read(text.encode()).missing]


@pytest.mark.parametrize("name", sorted(megatron.KNOWN))
def test_an_unset_variable_of_megatron_is_asked_for_once_as_a_field_of_ours(name: str) -> None:
    found = asked(megatron.read, f"{RUN}{GPT}--{name.replace('_', '-')} $NOT_SET\n")

    assert set(found) <= OURS and len(found) == len(set(found))


@pytest.mark.parametrize("path", sorted(FLAGS))
def test_an_unset_variable_of_the_bridge_is_asked_for_once_as_a_field_of_ours(path: str) -> None:
    found = asked(bridge.read, f"{RUN}{RECIPE}{path}=$NOT_SET\n")

    assert set(found) <= OURS and len(found) == len(set(found))


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ("--recompute-granularity $RG", "recompute"),
        ("--num-query-groups $GROUPS", "model"),
        ("--optimizer-offload-fraction $SHARE --optimizer-cpu-offload", "offload_optimizer"),
        ("--exp-avg-dtype $TYPE --use-precision-aware-optimizer", "moment_dtype"),
    ],
)
def test_what_is_asked_for(words: str, field: str) -> None:
    assert asked(megatron.read, f"{RUN}{GPT}{words}\n") == [field]


def test_a_model_of_which_a_size_is_not_known_is_no_model() -> None:
    assert megatron.read(f"{RUN}{GPT}--num-query-groups $GROUPS\n".encode()).model is None
    assert megatron.read(f"{RUN}{GPT}".encode()).model is not None


def test_a_named_precision_that_is_not_known_is_asked_for() -> None:
    assert asked(bridge.read, f"{RUN}{RECIPE}mixed_precision=$KIND\n") == ["precision"]


def test_the_length_of_the_run_may_stay_open() -> None:
    found = megatron.read(f"{RUN}{GPT}--train-iters $STEPS\n".encode())

    assert found.missing == () and found.job.tokens == 0
    assert any("$STEPS" in note for note in found.notes)


def test_every_field_that_is_asked_for_has_a_flag_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    _, text, _ = run(capsys, "convert", "--help")

    assert [field for field in FIELDS.values() if flag(field) not in text] == []


def test_the_flag_that_is_asked_for_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.sh"
    file.write_text(f"{RUN}{GPT}--recompute-granularity $RG --train-iters $STEPS\n")
    command = ("convert", str(file), "megatron", "--on", "16xh100-sxm")

    code, _, err = run(capsys, *command)
    assert code == 2 and err.count("FMT006") == 1 and "--recompute VALUE" in err

    code, out, err = run(capsys, *command, "--recompute", "full")
    assert code == 0 and "--recompute-granularity full" in out and "FMT006" not in err


@pytest.mark.parametrize(
    ("read", "text", "zero"),
    [
        (megatron.read, f"{RUN}{GPT}--use-megatron-fsdp --use-distributed-optimizer", 0),
        (megatron.read, f"{RUN}{GPT}--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads", 2),
        (bridge.read, f"{RUN}{RECIPE}ddp.use_megatron_fsdp=true", 3),
        (bridge.read, f"{RUN}{RECIPE}ddp.use_megatron_fsdp=true ddp.data_parallel_sharding_strategy=no_shard", 0),
    ],
)
def test_what_fsdp_shards_where_no_strategy_is_said(read: Callable[[bytes], Found], text: str, zero: int) -> None:
    """Megatron-LM's parser takes no_shard by itself; every pre-training recipe of the bridge starts from ZeRO-3."""
    found = read(text.encode())

    assert found.layout.zero == zero
    assert any("no_shard" in note for note in found.notes) == (read is megatron.read and zero == 0)
