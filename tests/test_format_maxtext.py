"""MaxText: YAML and key=value as people hold them, its mesh and batch, what it refuses, what comes back of a layout."""

import random
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.bill import case_of, count
from outlay.cluster.accelerator import Cluster
from outlay.cluster.catalogue import clusters
from outlay.errors import InputError
from outlay.formats import maxtext
from outlay.formats.known import read
from outlay.formats.maxtext.models import NAMES, PADDED
from outlay.formats.maxtext.write import batch_of_a_device
from outlay.formats.setting import Found, Run
from outlay.formats.source import place_of
from outlay.job import AUTO, Job
from outlay.layout.axes import Layout
from outlay.layout.rules import rules_of
from outlay.model.catalogue import find, names
from test_format_fuzz import BOMBS, CODES, broken, outcome
from test_format_round_trip import SOME, back, differences, model_of

# src/maxtext/configs/tpu/v5p/128b.sh of maxtext 0.2.5, from `set -e` on and without its comments.
SCRIPT = """set -e
export EXECUTABLE="train" # or train_compile
for ARGUMENT in "$@"; do
    IFS='=' read -r KEY VALUE <<< "$ARGUMENT"
    export "$KEY"="$VALUE"
done
export M_COMPILE_TOPOLOGY=v5p-256
export M_COMPILE_TOPOLOGY_NUM_SLICES=2
python3 -m maxtext.trainers.pre_train.$EXECUTABLE "${MAXTEXT_CONFIGS_DIR:-$PWD/src/maxtext/configs}"/base.yml\\
    steps=15 per_device_batch_size=1 enable_checkpointing=false\\
    remat_policy=minimal model_name=llama3.1-70b\\
    ici_fsdp_parallelism=-1 ici_tensor_parallelism=8\\
    max_target_length=2048 base_output_directory=$OUTPUT_PATH\\
    use_iota_embed=true reuse_example_batch=1\\
    dataset_type=synthetic gcs_metrics=true attention='flash' quantization=""
"""
# src/maxtext/configs/gpu/models/llama3.1_405b.yml of maxtext 0.2.5.
YAML = """base_config: "base.yml"
run_name: "gpu_train_test"
hardware: "gpu"
steps: 10
model_name: "llama3.1-405b"
enable_checkpointing: false
#attention: "cudnn_flash_te"
remat_policy: "full"
use_iota_embed: true
scan_layers: true
dataset_type: "synthetic"
async_checkpointing: false
logits_dot_in_fp32: false
per_device_batch_size: 1.0
max_target_length: 4096
max_segments_per_seq: 32
"""
SMALL = "model_name=llama3.1-8b per_device_batch_size=1"


def maxtext_of(text: str) -> Found:
    return maxtext.read(text.encode())


def codes(text: str) -> list[str]:
    return [one.code for one in maxtext_of(text + "\n").findings]


def test_a_published_script_is_read_with_the_devices_of_its_topology() -> None:
    found = read(SCRIPT.encode())

    assert (found.framework, found.form, found.engine) == ("maxtext", "a shell script", "maxtext")
    assert found.ranks == 256  # v5p-256 has 128 chips a slice, two slices
    assert found.model is not None and found.model.name == "llama-3.1-70b"
    at, job = found.layout, found.job
    assert (at.tp, at.dp_shard, at.dp_replicate, at.zero, at.pp) == (8, 16, 2, 3, 1)
    assert (at.recompute, at.recompute_modules, at.micro_batch) == ("selective", ("core_attn",), 8)
    assert (job.global_batch, job.sequence_length, job.tokens, job.precision) == (256, 2048, 15 * 256 * 2048, "bf16")
    assert found.missing == () and found.findings == ()


def test_yaml_over_base_yml_is_read_with_its_defaults() -> None:
    found = read(YAML.encode())

    assert (found.form, found.engine, found.ranks) == ("YAML", "maxtext-gpu", 0)
    assert found.model is not None and found.model.name == "llama-3.1-405b"
    at = found.layout
    assert (at.zero, at.dp_shard, at.dp_replicate, at.micro_batch, at.recompute) == (3, AUTO, 1, 1, "full")
    assert found.job.global_batch is AUTO and found.missing == ()  # one micro-batch: outlay's own word for it


def test_lines_that_are_pasted_without_a_command_are_read() -> None:
    found = maxtext_of("per_device_batch_size=4\nici_fsdp_parallelism=8 steps=10\n")

    assert (found.form, found.ranks, found.job.global_batch) == ("key=value words", 8, 32)
    assert found.job.tokens == 10 * 32 * 2048
    assert [one.field for one in found.missing] == ["model"]


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("ici_tensor_parallelism=4 ici_tensor_sequence_parallelism=2", "tp", 8),
        ("ici_context_parallelism=4", "cp", 4),
        ("ici_fsdp_parallelism=4 ici_fsdp_transpose_parallelism=2", "dp_shard", 8),
        ("ici_fsdp_parallelism=4 ici_expert_parallelism=2", "dp_shard", 8),  # the batch is cut over experts too
        ("ici_fsdp_parallelism=4 dcn_data_parallelism=2 ici_data_parallelism=2", "dp_replicate", 4),
        ("ici_fsdp_parallelism=1 ici_data_parallelism=8", "zero", 0),
        ("ici_fsdp_parallelism=1 ici_data_parallelism=8 shard_optimizer_over_data=true", "zero", 1),
        ("ici_fsdp_parallelism=1 ici_context_parallelism=2", "zero", 3),  # weights are cut over context
        ("optimizer_memory_host_offload=true", "offload_optimizer", 1.0),
        ("num_vocab_tiling=4", "loss_chunks", 4),
        ("remat_policy=minimal_offloaded", "offload_activations", 1.0),
        ("remat_policy=custom decoder_layer_input=offload", "offload_activations", 1.0),
        ("remat_policy=save_qkv_proj", "recompute", "full"),
        ("per_device_batch_size=0.25 ici_tensor_parallelism=8", "micro_batch", 2),
    ],
)
def test_keys_are_those_of_base_yml(words: str, field: str, value: object) -> None:
    assert getattr(maxtext_of(f"train.py base.yml {SMALL} {words}\n").layout, field) == value


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        ("quantization=te_fp8_currentscaling", "precision", "fp8_tensorwise"),
        ("quantization=fp8", "precision", "fp8"),
        ("dtype=float32", "precision", "fp32"),
        ("opt_type=adam_pax", "optimizer", "adam"),
        ("weight_dtype=bfloat16", "master_dtype", "bf16"),
        ("weight_dtype=bfloat16", "moment_dtype", "bf16"),
        ("mu_dtype=bfloat16", "moment_dtype", AUTO),  # the second moment stays fp32
        ("grad_dtype=bfloat16", "gradient_dtype", "bf16"),
        ("capacity_factor=1.25", "expert_capacity", 1.25),
        ("ici_fsdp_parallelism=8 gradient_accumulation_steps=4", "global_batch", 32),
    ],
)
def test_the_task_is_that_of_its_keys(words: str, field: str, value: object) -> None:
    assert getattr(maxtext_of(f"train.py base.yml {SMALL} {words}\n").job, field) == value


def test_a_pipeline_repeats_over_its_layers_as_maxtext_does() -> None:
    four = "ici_pipeline_parallelism=4 ici_fsdp_parallelism=2"
    alone = maxtext_of(f"train.py base.yml {SMALL} {four}\n")
    whole = maxtext_of(
        f"train.py base.yml {SMALL} {four} num_layers_per_pipeline_stage=8 num_pipeline_microbatches=8\n"
    )

    assert (alone.layout.pp, alone.layout.vpp, alone.layout.schedule) == (4, 8, "looped_bfs")  # 32 = 4 x 1 x 8
    assert (alone.layout.micro_batch, alone.job.global_batch) == (1, 8)  # 8 devices x 1 in 4 micro-batches over 2
    assert (whole.layout.vpp, whole.layout.schedule, whole.job.global_batch) == (1, "gpipe", 8)
    assert [one.code for one in whole.findings] == ["MTX009"]  # half a sequence


def test_what_rests_on_devices_that_are_not_in_the_file_is_asked_for() -> None:
    found = maxtext_of(f"train.py base.yml {SMALL} gradient_accumulation_steps=4\n")
    data = maxtext_of(f"train.py base.yml {SMALL} ici_data_parallelism=-1 ici_fsdp_parallelism=4\n")

    assert [one.field for one in found.missing] == ["global_batch"]
    assert [one.field for one in data.missing] == ["dp_replicate"]
    assert [one.field for one in maxtext_of("x ici_pipeline_parallelism=2 per_device_batch_size=1\n").missing] == [
        "vpp",
        "global_batch",
        "model",
    ]


PLANTED = [
    ("ici_data_parallelism=-1", "MTX001"),
    ("ici_pipeline_parallelism=3 per_device_batch_size=3", "MTX002"),
    ("ici_pipeline_parallelism=4 num_layers_per_pipeline_stage=4 num_pipeline_repeats=4", "MTX002"),
    ("ici_pipeline_parallelism=4 num_pipeline_microbatches=6 per_device_batch_size=6", "MTX003"),
    ("ici_pipeline_parallelism=4 pipeline_delay_activation_forwarding=true num_pipeline_microbatches=4", "MTX003"),
    ("context_parallel_strategy=ulysses ici_context_parallelism=2 hardware=gpu", "MTX004"),
    ("context_parallel_strategy=striped ici_context_parallelism=2", "MTX004"),
    ("context_parallel_strategy=ring ici_context_parallelism=2 max_target_length=2048", "MTX004"),
    ("per_device_batch_sise=2", "MTX005"),
    ("remat_policy=selective", "MTX006"),
    ("quantization=fp9", "MTX007"),
    ("quantization=fp8 gradient_accumulation_steps=2 ici_fsdp_parallelism=8", "MTX007"),
    ("shard_optimizer_over_data=true ici_fsdp_parallelism=4", "MTX008"),
    ("shard_optimizer_over_data=true", "MTX008"),
    ("per_device_batch_size=0.5", "MTX009"),
    ("model_name=mixtral-8x7b opt_type=muon", "MTX011"),
    ("compile_topology=v5p-16 ici_fsdp_parallelism=4", "MTX010"),
    ("compile_topology=v5e-16 compile_topology_num_slices=1 dcn_data_parallelism=2", "MTX010"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "code"), PLANTED)
def test_what_maxtext_refuses_is_found(words: str, code: str) -> None:
    assert code in codes(f"train.py base.yml {SMALL} {words}")
    assert set(codes(f"train.py base.yml {SMALL} {words}")) <= {code, "MTX003", "MTX010"}


def test_the_eight_heads_of_a_model_bound_ulysses() -> None:
    words = (
        "context_parallel_strategy=ulysses attention=flash use_tokamax_splash=true context_parallel_load_balance=false"
    )

    assert codes(f"x {SMALL} {words} ici_context_parallelism=8") == []
    assert codes(f"x {SMALL} {words} ici_context_parallelism=16") == ["MTX004"]  # 8 key/value heads


def test_a_finding_has_its_place() -> None:
    (one,) = maxtext_of(YAML.replace('"full"', '"ful"')).findings

    assert (one.code, one.line, one.column) == ("MTX006", *place_of(YAML, YAML.index("remat_policy")))


def test_every_name_of_a_model_is_one_of_the_catalogue() -> None:
    assert set(NAMES.values()) <= set(names()) and set(PADDED) <= set(NAMES)
    assert len(NAMES) == 50


@st.composite
def layouts(draw: st.DrawFn, experts: bool) -> Layout:
    pp = draw(st.sampled_from([1, 1, 1, 2, 4]))
    kind = draw(st.sampled_from(["none", "full", "full", "selective"]))
    made = {
        "tp": draw(st.sampled_from([1, 1, 2, 4])),
        "cp": draw(st.sampled_from([1, 1, 2])),
        "cp_kind": draw(st.sampled_from(["all_gather", "ring", "ulysses"])),
        "pp": pp,
        "vpp": draw(st.sampled_from([1, 1, 2])) if pp > 1 else 1,
        "ep": draw(st.sampled_from([1, 2, 8])) if experts else 1,
        "dp_replicate": draw(st.sampled_from([1, 1, 2])),
        "zero": draw(st.sampled_from([0, 1, 3, 3, 3])),
        "micro_batch": draw(st.sampled_from([1, 2])),
        "recompute": kind,
        "loss_chunks": draw(st.sampled_from([1, 1, 4])),
        "offload_optimizer": draw(st.sampled_from([0.0, 0.0, 1.0, 0.5])),
        "offload_parameters": draw(st.sampled_from([0.0, 0.0, 1.0])),
        "offload_activations": draw(st.sampled_from([0.0, 0.0, 1.0, 0.5])),
    }
    return Layout(**made, recompute_modules=("core_attn",) if kind == "selective" else AUTO)


MODELS = st.sampled_from(["llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b", "qwen3-30b-a3b", "gpt3-175b", "phi-4"])
JOBS = st.fixed_dictionaries(
    {
        "sequence_length": st.sampled_from([1024, 2048]),
        "tokens": st.sampled_from([0.0, 2048e6, 1e9 + 1]),
        "precision": st.sampled_from(["bf16", "bf16", "fp16", "fp32", "fp8", "fp8_delayed", "mxfp8"]),
        "optimizer": st.sampled_from(["adam", "adam", "sgd", "muon"]),
    },
    optional={
        "master_dtype": st.sampled_from(["fp32", "bf16"]),
        "moment_dtype": st.sampled_from(["fp32", "bf16"]),
        "gradient_dtype": st.sampled_from(["bf16", "fp32"]),
        "expert_capacity": st.just(1.25),
        "pad_to_capacity": st.booleans(),
        "attention_flops": st.just("full"),
        "reserved_bytes": st.just(1e9),
    },
)


@SOME
@given(st.data())
def test_a_configuration_comes_back_as_it_was_written(data: st.DataObject) -> None:
    model = model_of(data.draw(MODELS))
    on, driver = data.draw(st.sampled_from([("tpu-v5p", "maxtext"), ("b200", "maxtext-gpu")]))
    (cluster,) = clusters(f"{data.draw(st.sampled_from([8, 16, 64]))}x{on}")
    layout = data.draw(layouts(model.experts > 0))
    job = Job(global_batch=data.draw(st.sampled_from([256, 512])), **data.draw(JOBS))
    try:
        case, _ = case_of(model, job, cluster, layout, driver)
    except InputError:
        return
    if not all(bool(rule.legal(case)) for rule in rules_of(driver)):
        return
    run = Run(case.model, case.job, case.cluster, case.layout, case.engine)

    written = maxtext.write(run)
    found = read(written.text.encode())

    assert (found.framework, found.engine) == ("maxtext", driver)
    assert differences(run, back(run, found, driver), written) == []
    assert found.ranks == run.cluster.ranks and found.findings == ()
    lost_model = any(one.path == "model" for one in written.lost)
    assert [one.field for one in found.missing] == (["model"] if lost_model else [])
    assert lost_model or (found.model is not None and replace(found.model, notes=()) == replace(run.model, notes=()))


def cluster_of(name: str) -> Cluster:
    return clusters(name)[0]


def test_a_key_that_is_dropped_in_silence_is_found() -> None:
    layout = Layout(tp=2, pp=2, dp_replicate=2, recompute="full", offload_optimizer=1.0)
    bill = count(find("llama-3.1-8b"), Job(2048, 64), cluster_of("16xtpu-v5p"), layout, "maxtext")
    run = Run(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)
    written = maxtext.write(run)

    for key in ("ici_tensor_parallelism", "ici_data_parallelism", "num_pipeline_microbatches", "optimizer_memory"):
        text = "\n".join(line for line in written.text.split("\n") if not line.startswith(key))
        assert differences(run, back(run, maxtext_of(text), "maxtext"), written)


def test_the_batch_of_a_device_makes_the_whole_batch_again() -> None:
    for devices in (3, 7, 12, 24, 96, 1000):
        assert [int(devices * batch_of_a_device(whole, devices)) for whole in range(200)] == [*range(200)]


@pytest.mark.parametrize("name", ["script", "yaml"])
def test_hundreds_of_broken_files_are_read_or_refused(name: str) -> None:
    chance, sample = random.Random(3), {"script": SCRIPT, "yaml": YAML}[name].encode()
    said = [outcome(maxtext.read, broken(sample, chance)) for _ in range(500)]

    assert outcome(maxtext.read, sample) == "read"
    assert {one for one in said if one != "read" and not CODES.fullmatch(one)} == set()
    assert 20 < said.count("read") < 480


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_at_once(name: str) -> None:
    before = time.perf_counter()

    assert outcome(maxtext.read, BOMBS[name]) in ("read", "FMT002", "FMT003", "FMT004", "FMT005")
    assert time.perf_counter() - before < 10


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"per_device_batch_size: 1\nper_device_batch_size: 2\n", "line 2 column 1"),
        (b"max_target_length: 1\r\nici_fsdp_parallelism: x\r\n", "line 2 column 1"),
        (b"x max_target_length=2048 \\\n   ici_tensor_parallelism=1.5\n", "line 2 column 4"),
        (b"x ici_tensor_parallelism=0\n", "line 1 column 3"),
        (b"max_target_length: *a\n", "line 1 column 20"),
    ],
)
def test_an_error_says_its_line_and_column(content: bytes, place: str) -> None:
    with pytest.raises(InputError) as error:
        maxtext.read(content)

    assert error.value.faults[0].got.startswith(place + ":")


def test_other_files_are_not_taken_for_it() -> None:
    for text in ("per_device_train_batch_size: 2", "--remat full", "steps=3 dtype=float32", '{"max_target_length": 1}'):
        assert not maxtext.is_of(text)


def test_slices_that_are_not_counted_are_those_of_the_axes() -> None:
    found = maxtext_of(f"train.py base.yml {SMALL} dcn_data_parallelism=16 ici_fsdp_parallelism=8\n")

    assert (found.ranks, found.layout.dp_replicate, found.layout.dp_shard) == (128, 16, 8)
    assert found.findings == ()


def test_a_file_below_and_variables_of_a_script_are_said() -> None:
    found = maxtext_of(
        "train.py models/gpu/llama2_7b.yml ici_tensor_parallelism=$TP per_device_batch_size=${MB} steps=$N\n"
    )

    assert [one.field for one in found.missing] == ["tp", "micro_batch", "model"]
    assert "the file does not set TP" in found.missing[0].why
    assert "llama2_7b.yml stands under this file: what it says is not read" in found.notes
    assert any(note.startswith("steps $N is not read") for note in found.notes)


def test_a_model_with_other_sizes_is_another_model() -> None:
    found = maxtext_of(f"train.py base.yml {SMALL} override_model_config=true base_num_decoder_layers=4\n")

    assert found.model is None and [one.field for one in found.missing] == ["model"]
