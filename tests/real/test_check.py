"""The findings of `outlay check` beside the frameworks' own refusals: DeepSpeed's, and Megatron-LM's where it is there.

How megatron-core is installed by hand stands in test_formats.py.
"""

import shlex
import sys
import typing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from outlay.formats import deepspeed, megatron
from outlay.formats.edited import edited
from outlay.formats.json_comments import read_json
from outlay.formats.shell import read_script

CASES = Path(__file__).parent.parent / "check_cases"
LATE = {"MEG009", "MEG010", "MEG011", "MEG013", "MEG020", "MEG024"}  # found behind the parser
_NO_GPU = """
    --transformer-impl local --no-rope-fusion --no-masked-softmax-fusion --no-gradient-accumulation-fusion
    --no-persist-layer-norm --tokenizer-type NullTokenizer --lr 1e-4 --mock-data --train-iters 10
"""


@pytest.mark.parametrize(
    "text",
    [
        '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}',
        '{"train_batch_size": 8, "elasticity": {"enabled": true}}',
        '{"train_batch_size": 8, "amp": {"enabled": true}, "zero_optimization": {"stage": 1}}',
        '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "mics_shard_size": 8}}',
        '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "zeropp_loco_param": {}}}',
        '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "overlap_com": true}}',
        '{"train_batch_size": 8, "zero_optimization": {"stage": 2, "cpu_offload_params": true}}',
        '{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_max_live_parameters": 1e9}}',
        '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3}',
        '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2}',
    ],
)
def test_deepspeed_refuses_what_is_an_error_and_takes_the_corrected_file(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    config = pytest.importorskip("deepspeed.runtime.config")
    monkeypatch.setattr(config.dist, "get_world_size", lambda *_: 8)
    monkeypatch.setattr(config.dist, "get_rank", lambda *_: 0)

    def refused(content: str) -> bool:
        try:
            config.DeepSpeedConfig(read_json(content).plain())
        except Exception:
            return True
        return False

    content = f"// deepspeed --num_gpus 8 train.py\n{text}".encode()
    findings = deepspeed.read(content).findings
    mends = [one for one in findings if one.edits]

    assert refused(text) is any(one.serious for one in findings)
    if mends:
        assert not refused(edited(content, mends).decode().partition("\n")[2])


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
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1")
    return pytest.importorskip("megatron.training.arguments")


def taken(parser: Any, monkeypatch: pytest.MonkeyPatch, content: bytes, ranks: int) -> str:
    """Empty where Megatron-LM takes a script, else what it says."""
    for name, value in {"WORLD_SIZE": str(ranks), "RANK": "0", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    (words,) = [found for found in read_script(content.decode()).commands if any(".py" in one.text for one in found)]
    texts = [one.text for one in words]
    end = next(index for index, text in enumerate(texts) if text.endswith(".py"))
    given = [text for text in texts[end + 1 :] if not text.startswith("$")]
    monkeypatch.setattr(sys, "argv", ["pretrain_gpt.py", *given, *shlex.split(_NO_GPU)])
    try:
        args = parser.validate_args(parser.parse_args())
        parser.core_transformer_config_from_args(args)
    except (Exception, SystemExit) as error:
        return f"{type(error).__name__}: {error}"
    return ""


SCRIPTS = sorted(path for path in CASES.glob("*.sh") if "pretrain_gpt.py" in path.read_text())


@pytest.mark.filterwarnings("ignore")  # of its own: what a setting is worth, not what it breaks
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_megatron_refuses_what_is_an_error_of_its_start(
    parser: Any, monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    content = path.read_bytes()
    found = megatron.read(content)
    codes = {one.code for one in found.findings if one.serious}
    said = taken(parser, monkeypatch, content, found.ranks)

    assert bool(said) is bool(codes - LATE), (codes, said)
    errors = [one for one in found.findings if one.serious and one.code not in LATE]
    if errors and all(one.edits for one in errors):
        assert taken(parser, monkeypatch, edited(content, errors), found.ranks) == ""


def test_the_calculator_of_micro_batches_stops_where_a_batch_cannot_be_shared(parser: Any) -> None:
    from megatron.core.num_microbatches_calculator import ConstantNumMicroBatchesCalculator

    model = "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --vocab-size 512 --seq-length 64"
    for ranks, micro, batch in ((r, m, b) for r in (1, 2, 4, 6) for m in (1, 2, 3) for b in (1, 4, 6, 12, 24, 30)):
        text = f"torchrun --nproc-per-node {ranks} p.py {model} --micro-batch-size {micro} --global-batch-size {batch}"
        findings = {one.code for one in megatron.read(text.encode()).findings}
        try:
            ConstantNumMicroBatchesCalculator(batch, micro, ranks, False, 0)
            refused = False
        except AssertionError:
            refused = True

        assert ("MEG008" in findings) is refused, text


class ReachedError(Exception):
    """The schedule went on behind its checks."""


def test_the_interleaved_schedule_stops_where_rounds_are_not_whole(
    parser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from megatron.core.pipeline_parallel import schedules

    zeros = torch.zeros
    monkeypatch.setattr(torch, "zeros", lambda *sizes, device=None, **how: zeros(*sizes, **how))
    model = "--num-layers 16 --hidden-size 64 --num-attention-heads 4 --vocab-size 512 --seq-length 64"

    def refused(pp: int, group: int, micro_batches: int) -> bool:
        asked = iter((None, ReachedError))  # the type of the model is asked for before the checks and behind them

        def kind(*_: object) -> None:
            if error := next(asked):
                raise error

        monkeypatch.setattr(schedules, "get_model_type", kind)
        settings = SimpleNamespace(
            overlap_p2p_comm=True, batch_p2p_comm=False, finalize_model_grads_func=None, timers=None,
            no_sync_func=None, grad_sync_func=None, param_sync_func=None, microbatch_group_size_per_vp_stage=group,
        )  # fmt: skip
        ranks = SimpleNamespace(size=lambda: pp, rank=lambda: 0)
        chunks = [torch.nn.Module(), torch.nn.Module()]
        monkeypatch.setattr(schedules, "get_model_config", lambda _: settings)
        try:
            schedules.forward_backward_pipelining_with_interleaving(
                forward_step_func=None, data_iterator=[None, None], model=chunks, num_microbatches=micro_batches,
                seq_length=64, micro_batch_size=1, forward_only=True,
                p2p_communicator=SimpleNamespace(config=settings, pp_group=ranks),
                pg_collection=SimpleNamespace(tp=ranks, cp=ranks),
            )  # fmt: skip
        except ReachedError:
            return False
        except (ValueError, RuntimeError):
            return True
        raise AssertionError

    found = set()
    for pp, group, batch in ((p, g, m) for p in (2, 4) for g in (0, 2, 3, 4, 6, 8) for m in range(1, 15)):
        flag = f"--microbatch-group-size-per-virtual-pipeline-stage {group}" if group else ""
        text = f"torchrun --nproc-per-node {pp} p.py {model} --pipeline-model-parallel-size {pp} {flag}"
        text += f" --num-virtual-stages-per-pipeline-rank 2 --micro-batch-size 1 --global-batch-size {batch}"
        codes = {one.code for one in megatron.read(text.encode()).findings}
        found |= codes

        assert bool(codes & {"MEG009", "MEG010"}) is refused(pp, group or pp, batch), text
    assert found == {"MEG009", "MEG010"}


def test_the_scatter_of_a_sequence_stops_where_it_cannot_be_cut(parser: Any) -> None:
    from megatron.core.tensor_parallel.mappings import _split_along_first_dim

    model = "--num-layers 4 --hidden-size 64 --num-attention-heads 24 --kv-channels 4 --vocab-size 512"
    for tp, length in ((tp, length) for tp in (2, 3, 4, 8) for length in (12, 24, 30, 64, 100)):
        text = f"x {model} --tensor-model-parallel-size {tp} --sequence-parallel --seq-length {length}"
        group = SimpleNamespace(size=lambda tp=tp: tp, rank=lambda: 0)
        try:
            _split_along_first_dim(torch.empty(length, 1), group)
            refused = False
        except AssertionError:
            refused = True

        assert ("MEG011" in {one.code for one in megatron.read(text.encode()).findings}) is refused, text
