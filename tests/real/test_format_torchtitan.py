"""Exported scripts of torchtitan in torchtitan 0.3.0's own code, and what it refuses against what `outlay check` finds.

Its ConfigManager parses the options, ParallelDims takes the degrees, torch the schedule. Not part of `make test-real`:
`sh tests/frameworks.sh torchtitan` makes its environment and runs this file there.
"""

import dataclasses
import importlib
import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import torch

from forty_layouts import QUESTIONS, Question, run_for
from outlay.formats import torchtitan as form
from outlay.formats.torchtitan.registry import Configuration, configurations
from outlay.model.catalogue import find
from outlay.undivided import parameters

WHY = "torchtitan 0.3.0 is not here: sh tests/frameworks.sh torchtitan"
CONFIG = pytest.importorskip("torchtitan.config", reason=WHY)
pytestmark = pytest.mark.filterwarnings("ignore")
NEEDS_TORCHAO = ("llama3_405b",)


@pytest.fixture(scope="module")
def manager() -> Any:
    return CONFIG.ConfigManager()


@pytest.fixture
def converters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Converters that leave a model as it is: theirs need torchao and a card."""
    quantization = importlib.import_module("torchtitan.components.quantization")
    for name in ("Float8LinearConverter", "MXFP8LinearConverter", "NVFP4LinearConverter"):
        monkeypatch.setattr(getattr(quantization, name), "__init__", lambda self, config: None)
        monkeypatch.setattr(getattr(quantization, name), "convert", lambda self, config: config)


def options_of(script: str, folder: Path) -> list[str]:
    """What bash hands to torchtitan.train; a function that the script writes is in the folder."""
    shell = "torchrun() { printf '%s\\0' \"$@\"; }\n" + script
    done = subprocess.run(["bash", "-c", shell], cwd=folder, capture_output=True, check=True)
    words = done.stdout.decode().split("\0")[:-1]
    return words[words.index("torchtitan.train") + 1 :]


def parsed(manager: Any, options: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(folder))
    sys.modules.pop("outlay_run", None)
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        try:
            return manager.parse_args(options)
        except SystemExit:
            raise ValueError(said.getvalue()) from None


def judged(made: Any, ranks: int) -> tuple[int, int]:
    """What torchtitan makes of a configuration when it starts, without cards: data-parallel ranks, and stages."""
    dims = importlib.import_module("torchtitan.distributed").ParallelDims.from_config(made.parallelism, ranks)
    pipes = importlib.import_module("torchtitan.distributed.pipeline_parallel")
    training, at = made.training, made.parallelism
    each = (dims.tp if at.enable_sequence_parallel else 1) * (2 * dims.cp if dims.cp > 1 else 1)
    if training.seq_len % each:  # Trainer.__init__, once its process groups stand
        raise ValueError(f"Training sequence length must be divisible by {each}")
    dp, stages = dims.dp_replicate * dims.dp_shard, 1
    whole = training.global_batch_size if training.global_batch_size > 0 else training.local_batch_size * dp
    assert whole % (training.local_batch_size * dp) == 0  # the same
    if dims.pp > 1:
        stages, layers, first, last = pipes._get_pipeline_metadata(dims, at, made.model_spec.model)
        parts = at.module_fqns_per_model_part
        parts = parts or pipes._generate_llm_fqn_per_model_part(stages, layers, first, last)
        assert sorted(name for part in parts for name in part) == sorted(
            ["tok_embeddings", "norm", "lm_head", *(f"layers.{one}" for one in range(layers))]
        )
        stages = len(parts)
        for rank in range(dims.pp):
            pipes._get_pp_rank_to_stage_indices_mapping(rank, dims.pp, at.pipeline_parallel_schedule, stages)
    assert (dims.dp_shard * dims.cp * dims.tp) % dims.ep == 0  # build_mesh, which makes process groups
    return dp, stages


WRITTEN = [one for one in QUESTIONS if run_for(one, form) is not None]


@pytest.mark.usefixtures("converters")
@pytest.mark.parametrize("question", WRITTEN, ids=lambda one: one.name)
def test_torchtitan_takes_what_is_exported(
    manager: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: Question
) -> None:
    run = run_for(question, form)
    assert run is not None
    written = form.write(run)
    lost = {one.path.partition(".")[2] for one in written.lost}
    if any(one.path == "model" for one in written.lost):
        monkeypatch.setenv("MODULE", "llama3")
        monkeypatch.setenv("CONFIG", "llama3_8b")

    made = parsed(manager, options_of(written.text, tmp_path), tmp_path, monkeypatch)

    at, layout = made.parallelism, run.layout
    assert made.training.seq_len == run.job.sequence_length
    assert made.training.global_batch_size == run.job.global_batch
    assert (at.tensor_parallel_degree, at.context_parallel_degree) == (layout.tp, layout.cp)
    assert (at.pipeline_parallel_degree, at.expert_parallel_degree) == (layout.pp, layout.ep)
    assert (made.activation_checkpoint is None) == (layout.recompute == "none")
    if any(one.path == "model" for one in written.lost):
        return  # its layers are not those of the configuration that stands in
    dp, stages = judged(made, question.ranks)
    assert dp == layout.dp
    assert stages == layout.pp * layout.vpp
    if layout.pp > 1:
        classes = importlib.import_module("torch.distributed.pipelining.schedules")
        assert classes.get_schedule_class(at.pipeline_parallel_schedule)
        assert made.training.local_batch_size // at.pipeline_parallel_microbatch_size == run.micro_batches
    else:
        assert made.training.local_batch_size == layout.micro_batch
    assert ("offload_optimizer" in lost) or made.training.enable_cpu_offload == (layout.offload_optimizer == 1)


def test_enough_questions_are_written() -> None:
    assert len(WRITTEN) >= 15


@pytest.mark.parametrize("one", configurations(), ids=lambda one: one.name)
def test_the_table_of_configurations_is_theirs(one: Configuration) -> None:
    if one.name in NEEDS_TORCHAO:
        pytest.skip("torchao is not here")
    made = getattr(importlib.import_module(f"torchtitan.models.{one.module}.config_registry"), one.name)()
    policies = {"SelectiveAC.Config": "selective", "FullAC.Config": "full"}

    assert (made.model_spec.flavor, made.training.seq_len, made.training.steps) == (one.flavor, one.sequence, one.steps)
    assert made.training.local_batch_size == one.local_batch
    assert policies[type(made.activation_checkpoint).__qualname__] == one.recompute
    assert made.parallelism.tensor_parallel_degree == one.tp
    assert made.parallelism.expert_parallel_degree == one.ep
    assert made.parallelism.pipeline_parallel_schedule == one.schedule
    assert made.training.disable_cuda_graphs != one.graphs
    assert (made.compile.enable, tuple(made.compile.components)) == (one.compile, one.components)
    assert made.loss.num_chunks == 8
    plain = CONFIG.ParallelismConfig
    changed = {"tensor_parallel_degree", "expert_parallel_degree", "pipeline_parallel_schedule"}
    for each in dataclasses.fields(plain):
        if each.name not in changed:
            assert getattr(made.parallelism, each.name) == getattr(plain(), each.name), each.name


@pytest.mark.parametrize("one", configurations(), ids=lambda one: one.name)
def test_a_flavor_has_the_parameters_of_its_model(one: Configuration) -> None:
    spec = importlib.import_module(f"torchtitan.models.{one.module}").model_registry(one.flavor)
    with torch.device("meta"):
        built = spec.model.build()

    assert sum(each.numel() for each in built.parameters()) == parameters(find(one.model)).total


GOOD = """torchrun --nnodes 4 --nproc_per_node 8 -m torchtitan.train --module llama3 --config llama3_8b
--training.local_batch_size 8 --training.global_batch_size 64 --training.disable_cuda_graphs --training.seq_len 4096
--parallelism.tensor_parallel_degree 2 --parallelism.pipeline_parallel_degree 4 --compile.enable
--parallelism.pipeline_parallel_schedule Interleaved1F1B activation_checkpoint:full""".replace("\n", " ")
PLANTED = [
    ("--training.disable_cuda_graphs ", "", "TTN005"),
    ("--parallelism.tensor_parallel_degree 2", "--parallelism.tensor_parallel_degree 3", "TTN001"),
    ("--training.seq_len 4096", "--training.seq_len 4095", "TTN004"),
    ("global_batch_size 64", "global_batch_size 65", "TTN002"),
    ("--compile.enable", "--parallelism.pipeline_parallel_microbatch_size 3 --compile.enable", "TTN003"),
    ("Interleaved1F1B", "Interleaved", "TTN007"),
    ("Interleaved1F1B", "1F1B --parallelism.pipeline_parallel_layers_per_stage 4", "TTN006"),
    ("Interleaved1F1B", "Interleaved1F1B --parallelism.pipeline_parallel_layers_per_stage 9", "TTN006"),
    ("--compile.enable", "--parallelism.pipeline_parallel_layers_per_stage 5 --compile.enable", "TTN006"),
    ("--compile.enable", "--compile.enable_async_tensor_parallel", "TTN008"),
    (
        "--compile.enable ",
        "--compile.enable_async_tensor_parallel --compile.enable --compile.components loss ",
        "TTN008",
    ),
    ("--compile.enable ", "--parallelism.tensor_parallel_size 4 --compile.enable ", "TTN009"),
    ("--compile.enable ", "--compile.enable True ", "TTN009"),
    ("--compile.enable ", "--parallelism.enable_loss_parallel --compile.enable ", "TTN009"),
    ("activation_checkpoint:full", "activation_checkpoint:full --training.max_norm 2", "TTN009"),
    ("activation_checkpoint:full", "activation_checkpoint:half", "TTN009"),
]


@pytest.mark.parametrize(("old", "new", "code"), PLANTED)
def test_what_torchtitan_refuses_is_found(
    manager: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, code: str
) -> None:
    judged(parsed(manager, options_of(GOOD, tmp_path), tmp_path, monkeypatch), 32)
    assert [one for one in form.read(GOOD.encode()).findings if one.serious] == []
    broken = GOOD.replace(old, new)
    assert broken != GOOD

    with pytest.raises((ValueError, AssertionError)):
        judged(parsed(manager, options_of(broken, tmp_path), tmp_path, monkeypatch), 32)
    found = [one.code for one in form.read(broken.encode()).findings if one.serious]

    assert code in found
