"""torchtitan: what is written comes back, and what people paste is read, from a command line to a job file of 2024."""

import random
from typing import Any

import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from outlay.bill import case_of
from outlay.engines.tables import engine
from outlay.errors import InputError
from outlay.formats import torchtitan
from outlay.formats.known import read as read_any
from outlay.formats.setting import Found, Run
from outlay.formats.torchtitan.layout import weighted
from outlay.job import Job
from outlay.layout.axes import Layout
from outlay.layout.rules import rules_of
from outlay.layout.stages import chunk_sizes
from test_format_fuzz import BOMBS, CODES, broken, outcome
from test_format_round_trip import JOBS, SOME, back, cluster_of, differences, model_of

COMMAND = b"""#!/bin/bash
#SBATCH --nodes=4
NGPU=8
MODULE="llama3" CONFIG="llama3_8b"
torchrun --nproc_per_node=${NGPU} -m torchtitan.train --module llama3 --config llama3_8b \\
  --training.local_batch_size 8 --training.global-batch-size=64 --training.seq_len 4096 \\
  --training.disable_cuda_graphs --parallelism.tensor_parallel_degree 2 --compile.enable \\
  --parallelism.pipeline_parallel_degree 4 --parallelism.pipeline_parallel_schedule Interleaved1F1B \\
  "$@" activation_checkpoint:full
"""
FUNCTION = b'''"""A registry of one's own."""
from torchtitan.components.quantization import Float8LinearConverter
from torchtitan.models.llama3 import model_registry


def llama3_70b_mine() -> Trainer.Config:
    compile_config = CompileConfig(enable=True, enable_async_tensor_parallel=True)
    model_spec = model_registry("70B", converters=[Float8LinearConverter.Config(filter_fqns=["lm_head"])])
    return Trainer.Config(
        loss=ChunkedLossWrapper.Config(num_chunks=4, loss_fn=CrossEntropyLoss.Config()),
        model_spec=model_spec,
        training=TrainingConfig(local_batch_size=2, seq_len=8192, steps=3000),
        parallelism=ParallelismConfig(tensor_parallel_degree=8, data_parallel_replicate_degree=2),
        activation_checkpoint=FullAC.Config(),
        compile=compile_config,
    )
'''
JOB_FILE = b"""# llama 3.1 8B, of 2024
[job]
dump_folder = "./outputs"
[model]
name = "llama3"
flavor = "8B"
converters = ["float8"]
[training]
batch_size = 4
seq_len = 8192
data_parallel_shard_degree = -1
tensor_parallel_degree = 8
compile = true
[experimental]
context_parallel_degree = 2
context_parallel_rotate_method = "alltoall"
enable_async_tensor_parallel = true
[activation_checkpoint]
mode = "selective"  # ["none", "selective", "full"]
selective_ac_option = "op"
[float8]
enable_fsdp_float8_all_gather = true
"""


def codes(found: Found) -> list[str]:
    return sorted({one.code for one in found.findings})


FEW = settings(SOME, max_examples=80)
ORDERS = {1: ["1f1b", "gpipe", "zb_h1"], 2: ["interleaved", "looped_bfs", "interleaved_zb", "zbv"], 3: ["interleaved"]}
MODELS = ["llama-3.1-8b", "qwen3-8b", "qwen3-30b-a3b", "deepseek-v2-lite", "deepseek-v3", "mixtral-8x7b"]


@st.composite
def layouts(draw: st.DrawFn, layers: int, experts: bool) -> dict[str, Any]:
    pp, powers = draw(st.sampled_from([1, 1, 2, 4])), st.sampled_from([1, 1, 2, 4])
    vpp = draw(st.sampled_from([1, 2, 2, 3])) if pp > 1 else 1
    made: dict[str, Any] = {
        "tp": draw(powers), "cp": draw(st.sampled_from([1, 1, 2])), "pp": pp, "vpp": vpp,
        "sp": draw(st.booleans()), "zero": draw(st.sampled_from([0, 2, 3, 3])), "micro_batch": draw(powers),
        "dp_replicate": draw(st.sampled_from([1, 1, 2, 4])), "cp_kind": draw(st.sampled_from(["all_gather", "ring"])),
        "graphs": draw(st.sampled_from(["none", "none", "partial", "full"])) if pp == 1 and not experts else "none",
        "loss_chunks": draw(st.sampled_from([1, 8])), "overlap_tp": draw(st.booleans()),
        "overlap_dp": draw(st.sampled_from([True, True, False])),
        "offload_optimizer": draw(st.sampled_from([0.0, 0.0, 1.0, 0.5])),
        "offload_parameters": draw(st.sampled_from([0.0, 0.0, 1.0])),
    }  # fmt: skip
    if pp > 1:
        made["schedule"] = draw(st.sampled_from(ORDERS[vpp]))
        if draw(st.booleans()):
            each, rest = divmod(layers, pp * vpp)
            made["split"] = (*[each + 1] * rest, *[each] * (pp * vpp - rest))
    if experts:
        made |= {"ep": draw(st.sampled_from([1, 2, 8])), "moe_dispatch": draw(st.sampled_from(DISPATCH))}
    how = draw(st.sampled_from(["none", "full", "full", "all_but_other_matrices", "all_but_matrices", "core_attn"]))
    if how in ("none", "full"):
        return made | {"recompute": how} | ({"recompute_group": draw(st.integers(1, 2))} if how == "full" else {})
    return made | {"recompute": "selective", "recompute_modules": (how,)}


DISPATCH = ["all_to_all", "deduplicated", "all_gather"]


def legal(data: st.DataObject) -> Run:
    """A generated run that breaks no rule of torchtitan, with every field filled."""
    model = model_of(data.draw(st.sampled_from(MODELS), "model"))
    ranks = data.draw(st.sampled_from([8, 16, 64]), "ranks")
    layout = Layout(**data.draw(layouts(model.layers, model.experts > 0), "layout"))
    job = Job(global_batch=data.draw(st.sampled_from([256, 512]), "batch"), **data.draw(JOBS, "job"))
    driver = data.draw(st.sampled_from(["fsdp2-torchtitan", "fsdp2-torchtitan", "fsdp2-uncompiled"]), "engine")
    try:
        case, _ = case_of(model, job, cluster_of(ranks), layout, driver)
    except InputError:  # an engine without the module, precision or optimizer
        reject()
    assume(all(bool(rule.legal(case)) for rule in (*rules_of(driver), *rules_of("fsdp2-torchtitan"))))
    return Run(case.model, case.job, case.cluster, case.layout, case.engine)


@FEW
@given(st.data())
def test_what_torchtitan_holds_comes_back(data: st.DataObject) -> None:
    run = legal(data)

    written = torchtitan.write(run)
    found = torchtitan.read(written.text.encode())

    assert differences(run, back(run, found, run.engine.name), written) == []
    assert found.engine == run.engine.name
    assert found.kept == () and found.ranks == run.cluster.ranks
    assert bool(found.missing) == any(one.path == "model" for one in written.lost)
    assert [one for one in found.findings if one.serious] == []


def test_a_field_that_is_dropped_in_silence_is_found() -> None:
    case, _ = case_of(
        model_of("llama-3.1-8b"), Job(2048, 64), cluster_of(16), Layout(tp=2, micro_batch=2), "fsdp2-torchtitan"
    )
    run = Run(case.model, case.job, case.cluster, case.layout, case.engine)
    written = torchtitan.write(run)

    for option in ("tensor_parallel_degree 2", "seq_len 2048", "local_batch_size 2", "num_chunks 1", "cuda_graphs"):
        text = "\n".join(line for line in written.text.split("\n") if option not in line)
        assert text != written.text
        assert differences(run, back(run, torchtitan.read(text.encode()), "fsdp2-torchtitan"), written)


def test_a_command_line_is_read() -> None:
    found = read_any(COMMAND)

    assert found.framework == "fsdp2-torchtitan" and found.ranks == 32
    at, job = found.layout, found.job
    assert (at.tp, at.pp, at.vpp, at.dp_shard, at.zero, at.schedule) == (2, 4, 2, 4, 2, "interleaved")
    assert (at.micro_batch, job.global_batch, job.sequence_length) == (1, 64, 4096)
    assert (at.recompute, at.loss_chunks, at.graphs) == ("full", 8, "none")
    assert found.model is not None and found.model.name == "llama-3.1-8b"
    assert found.findings == () and found.missing == ()
    assert any("runs 2 times a step" in note for note in found.notes)  # 64 sequences, 8 x 4 data-parallel ranks


def test_a_configuration_stands_under_the_command_line() -> None:
    """torchtitan/models/llama3/config_registry.py: llama3_70b has tp 8, FullAC, 8 sequences of 8,192."""
    found = torchtitan.read(b"NGPU=8 NNODES=4 MODULE=llama3 CONFIG=llama3_70b ./run_train.sh --training.seq_len 4096")

    assert (found.layout.tp, found.layout.recompute, found.layout.micro_batch) == (8, "full", 8)
    assert (found.job.sequence_length, found.job.global_batch, found.ranks) == (4096, 32, 32)
    assert found.layout.graphs == "full"  # CUDA graphs are on unless told otherwise


def test_a_function_is_read_and_not_run() -> None:
    found = read_any(FUNCTION)

    at, job = found.layout, found.job
    assert found.form == "a function of the registry" and found.engine == "fsdp2-torchtitan"
    assert (at.tp, at.dp_replicate, at.dp_shard, at.recompute, at.loss_chunks) == (8, 2, None, "full", 4)
    assert (job.precision, job.sequence_length, at.micro_batch, at.overlap_tp) == ("fp8_rowwise", 8192, 2, True)
    assert found.model is not None and found.model.name == "llama-3.1-70b"
    assert [one.field for one in found.missing] == ["global_batch"]


def test_a_function_changes_another_one() -> None:
    text = (
        b"from torchtitan.models.deepseek_v3 import model_registry\n\n\ndef mine():\n    config = deepseek_v3_16b()\n"
        b"    config.model_spec = model_registry('16B', moe_comm_backend='hybridep')\n"
        b"    config.parallelism.expert_parallel_degree = 4\n    config.activation_checkpoint = None\n"
        b"    config.training.local_batch_size = SIZE * 2\n    return config\n"
    )
    found = torchtitan.read(b"x = Trainer.Config\n" + text)

    assert (found.layout.ep, found.layout.moe_dispatch, found.layout.recompute) == (4, "deduplicated", "none")
    assert found.job.sequence_length == 4096  # of the other one
    assert found.engine == "fsdp2-uncompiled"  # it compiles the loss alone
    assert found.missing[0].field == "micro_batch" and "computed, not run" in found.missing[0].why


def test_a_job_file_is_read_by_the_names_of_its_time() -> None:
    found = read_any(JOB_FILE)

    at, job = found.layout, found.job
    assert (at.tp, at.cp, at.cp_kind, at.overlap_tp, at.micro_batch) == (8, 2, "ring", True, 4)
    assert (at.recompute, at.recompute_modules) == ("selective", ("all_but_other_matrices",))
    assert (job.precision, job.sequence_length) == ("fp8_tensorwise", 8192)
    assert found.model is not None and found.model.name == "llama-3.1-8b"
    assert codes(found) == ["TTN010", "TTN011"] and not any(one.serious for one in found.findings)
    old = next(one for one in found.findings if one.what == "training.batch_size is an old name")
    assert (old.line, old.column, old.fix) == (9, 1, "--training.local_batch_size")


def test_every_second_layer_is_recomputed_by_default_in_a_job_file() -> None:
    found = torchtitan.read(b'[model]\nname = "llama3"\nflavor = "8B"\n[training]\nlocal_batch_size = 1\n')

    assert (found.layout.recompute, found.layout.recompute_layers) == ("full", 16)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (b"--training.disable_cuda_graphs ", b"", "TTN005"),
        (b"tensor_parallel_degree 2", b"context_parallel_degree 3 --training.seq_len 4092", "TTN001"),
        (b"seq_len 4096", b"seq_len 4097", "TTN004"),
        (b"batch-size=64", b"batch-size=65", "TTN002"),
        (b"local_batch_size 8", b"local_batch_size 8 --parallelism.pipeline_parallel_microbatch_size 3", "TTN003"),
        (b"Interleaved1F1B", b"Interleaved", "TTN007"),
        (b"Interleaved1F1B", b"1F1B --parallelism.pipeline_parallel_layers_per_stage 4", "TTN006"),
        (b"--compile.enable", b"--compile.enable_async_tensor_parallel", "TTN008"),
        (b"--compile.enable", b"--parallelism.tensor_parallel_degre 2", "TTN009"),
        (b"8b \\", b"8b --parallelism.expert_parallel_degree 3 \\", ""),
    ],
)
def test_planted_errors_are_found(old: bytes, new: bytes, code: str) -> None:
    found = torchtitan.read(COMMAND.replace(old, new))

    assert [one.code for one in found.findings if one.serious] == ([code] if code else [])
    assert all(one.line > 3 for one in found.findings)


def test_experts_share_the_ranks_out() -> None:
    text = b"NGPU=8 MODULE=deepseek_v3 CONFIG=deepseek_v3_16b ./run_train.sh --parallelism.expert_parallel_degree 3"

    assert [one.code for one in torchtitan.read(text).findings] == ["TTN012"]


def test_a_variable_that_is_not_set_is_asked_for() -> None:
    found = torchtitan.read(COMMAND.replace(b"tensor_parallel_degree 2", b"tensor_parallel_degree $TP"))

    assert found.layout.tp is None and [one.field for one in found.missing] == ["tp", "global_batch"][:1]
    assert "line 7" in found.missing[0].why and "does not set TP" in found.missing[0].why


def test_a_configuration_that_is_not_known_is_said() -> None:
    found = torchtitan.read(b"x -m torchtitan.train --module mine --config big --parallelism.tensor_parallel_degree 2")

    assert [one.field for one in found.missing] == ["model", "global_batch"] or [
        one.field for one in found.missing
    ] == ["global_batch", "model"]
    assert any("read as torchtitan's own defaults" in note for note in found.notes)


def test_files_of_others_are_not_claimed() -> None:
    for text in (
        "def main():\n    return ParallelismConfig(tp_size=2)\n",  # of Accelerate
        '[job]\nsequence_length = 4096\n[model]\nname = "x"\n',
        "accelerate launch --module train --config_file a.yaml\n",
        "python pretrain_gpt.py --num-layers 2\n",
    ):
        assert not torchtitan.is_of(text)


@pytest.mark.parametrize(("layers", "chunks"), [(32, 4), (61, 8), (80, 16), (28, 4)])
def test_ends_that_count_as_a_layer_each_are_what_the_engine_has(layers: int, chunks: int) -> None:
    assert engine("fsdp2-torchtitan").counts_ends
    assert list(weighted(layers, chunks, 1, 1)) == chunk_sizes(layers, chunks, 1, (), counts_ends=True)


SAMPLES: dict[str, bytes] = {"command": COMMAND, "function": FUNCTION, "job file": JOB_FILE}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_thousand_broken_files_are_read_or_refused(name: str) -> None:
    chance, found = random.Random(11), dict[str, int]()

    for _ in range(400):
        said = outcome(torchtitan.read, broken(SAMPLES[name], chance))
        found[said] = found.get(said, 0) + 1

    assert outcome(torchtitan.read, SAMPLES[name]) == "read"
    assert {said for said in found if said != "read" and not CODES.fullmatch(said)} == set()
    assert found["read"] > 10 and sum(found.values()) - found["read"] > 10


DEEP: dict[str, bytes] = {
    "parentheses": b"def f() -> Trainer.Config:\n    return " + b"(" * 50_000,
    "minus": b"def f() -> Trainer.Config:\n    return " + b"-" * 100_000 + b"1",
    "lists": b"def f() -> Trainer.Config:\n    return Trainer.Config(training=" + b"[" * 150 + b"]" * 150 + b")",
    "calls": b"def f() -> Trainer.Config:\n    return Trainer.Config(a=" + b"A(a=" * 90 + b"1" + b")" * 91,
    "dots": b"def f() -> Trainer.Config:\n    c" + b".a" * 20_000 + b" = 1\n",
    "itself": b"def f() -> Trainer.Config:\n    a = b\n    b = a\n    return Trainer.Config(training=a)",
    "tables": b"[model]\n[training]\nseq_len = 2\n" + b"".join(b"[a%s]\n" % (b".a" * n) for n in range(200)),
    "arrays": b"[model]\n[training]\nseq_len = " + b"[" * 100_000,
    "digits": b"[model]\n[training]\nseq_len = " + b"9" * 10_000,
    "chunks": b"--parallelism.module_fqns_per_model_part " + b"a,b " * 9_000,
    "layers": b"--module llama3 --config llama3_8b --parallelism.pipeline_parallel_degree 999999999999"
    b" --parallelism.pipeline_parallel_layers_per_stage 1 --training.disable_cuda_graphs",
}  # fmt: skip


@pytest.mark.parametrize("name", [*DEEP, *BOMBS])
def test_a_bomb_ends_at_once(name: str) -> None:
    text: Any = DEEP.get(name) or BOMBS[name]

    assert outcome(torchtitan.read, text) in ("read", "FMT002", "FMT003", "FMT004", "FMT005")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"def f() -> Trainer.Config:\n    return (1", "line 2 column 12"),
        (b"[model]\n[training]\nseq_len = = 2\n", "line 3 column 11"),
        (b"[model]\n[training]\nseq_len = 2\nseq_len = 3\n", "line 4 column 12"),
        (b"x --training.seq_len 2\\\n --training.steps 'a", "line 2 column 19"),
        (b"x --training.local_batch_size 2\n", ""),
        (b"--training.seq_len x1\n", "line 1 column 1"),
    ],
)
def test_an_error_says_its_line_and_column(content: bytes, place: str) -> None:
    if not place:
        assert torchtitan.read(content).layout.micro_batch == 2
        return
    with pytest.raises(InputError) as error:
        read_any(content)

    assert error.value.faults[0].got.startswith(place + ":")
