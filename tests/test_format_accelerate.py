"""Accelerate's YAML: what is written comes back, and what people paste is read, of FSDP, DeepSpeed and Megatron-LM."""

import random
from typing import Any

import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from outlay.bill import case_of
from outlay.errors import InputError
from outlay.formats import accelerate
from outlay.formats.known import read as read_any
from outlay.formats.setting import Found, Run
from outlay.job import Job
from outlay.layout.axes import Layout
from outlay.layout.rules import rules_of
from test_format_fuzz import BOMBS, CODES, broken, outcome
from test_format_round_trip import JOBS, SOME, back, cluster_of, differences, model_of
from test_format_round_trip import legal as legal_elsewhere

FSDP2 = b"""compute_environment: LOCAL_MACHINE
debug: false
distributed_type: FSDP
downcast_bf16: 'no'
fsdp_config:
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_cpu_ram_efficient_loading: true
  fsdp_offload_params: true
  fsdp_reshard_after_forward: false
  fsdp_state_dict_type: SHARDED_STATE_DICT
  fsdp_activation_checkpointing: true
  fsdp_version: 2
machine_rank: 0
mixed_precision: bf16
num_machines: 2
num_processes: 16
parallelism_config:
  parallelism_config_dp_replicate_size: 2
  parallelism_config_dp_shard_size: 4
  parallelism_config_tp_size: 2
"""
FSDP1 = b"""distributed_type: FSDP
fsdp_config:
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_backward_prefetch: BACKWARD_PRE
  fsdp_sharding_strategy: HYBRID_SHARD
  fsdp_use_orig_params: true
mixed_precision: fp16
num_machines: 4
num_processes: 32
"""
DEEPSPEED = b"""distributed_type: DEEPSPEED
deepspeed_config:
  gradient_accumulation_steps: 4
  offload_optimizer_device: cpu
  offload_param_device: none
  zero3_init_flag: true
  zero_stage: 3
mixed_precision: bf16
num_machines: 1
num_processes: 8
"""
MEGATRON = b"""distributed_type: MEGATRON_LM
megatron_lm_config:
  megatron_lm_gradient_clipping: 1.0
  megatron_lm_num_micro_batches: 4
  megatron_lm_pp_degree: 2
  megatron_lm_context_parallel_size: 1
  megatron_lm_recompute_granularity: full
  megatron_lm_sequence_parallelism: true
  megatron_lm_tp_degree: 2
  megatron_lm_use_distributed_optimizer: true
mixed_precision: bf16
num_processes: 8
"""


FEW = settings(SOME, max_examples=80)


@st.composite
def layouts(draw: st.DrawFn) -> dict[str, Any]:
    powers = st.sampled_from([1, 1, 2, 4, 8])
    made: dict[str, Any] = {
        "tp": draw(powers), "cp": draw(st.sampled_from([1, 1, 2])), "zero": draw(st.sampled_from([0, 2, 3, 3])),
        "dp_replicate": draw(powers), "micro_batch": draw(powers), "overlap_dp": draw(st.sampled_from([True, False])),
        "cp_kind": draw(st.sampled_from(["all_gather", "ring", "ulysses"])),
        "gather_unit": draw(st.sampled_from(["layer", "layer", "model"])),
        "recompute": draw(st.sampled_from(["none", "full"])),
        "offload_optimizer": draw(st.sampled_from([0.0, 0.0, 1.0, 0.5])),
        "offload_parameters": draw(st.sampled_from([0.0, 0.0, 1.0])),
        "offload_activations": draw(st.sampled_from([0.0, 0.0, 1.0, 0.5])),
    }  # fmt: skip
    if made["recompute"] == "full":
        made["recompute_group"] = draw(st.integers(1, 2))
    return made


def legal(data: st.DataObject) -> Run:
    """A generated run that breaks no rule of the Trainer, with every field filled."""
    model = model_of(data.draw(st.sampled_from(["llama-3.1-8b", "qwen3-8b", "mixtral-8x7b"]), "model"))
    ranks = data.draw(st.sampled_from([1, 8, 16, 64]), "ranks")
    job = Job(global_batch=data.draw(st.sampled_from([256, 512]), "batch"), **data.draw(JOBS, "job"))
    try:
        case, _ = case_of(model, job, cluster_of(ranks), Layout(**data.draw(layouts(), "layout")), "hf_trainer")
    except InputError:  # an engine without the module, precision or optimizer
        reject()
    assume(all(bool(rule.legal(case)) for rule in rules_of("hf_trainer")))
    return Run(case.model, case.job, case.cluster, case.layout, case.engine)


ASKED = {"model", "sequence_length", "micro_batch", "global_batch"}


@FEW
@given(st.data())
def test_what_accelerate_holds_comes_back(data: st.DataObject) -> None:
    driver = data.draw(st.sampled_from(["hf_trainer", "hf_trainer", "deepspeed", "megatron"]), "engine")
    run = legal(data) if driver == "hf_trainer" else legal_elsewhere(data, driver)

    written = accelerate.write(run)
    found = accelerate.read(written.text.encode())

    assert differences(run, back(run, found, found.engine), written) == []
    assert found.engine == driver and found.ranks == run.cluster.ranks and found.kept == ()
    assert {one.field for one in found.missing} == ASKED
    assert {one.path.partition(".")[2] for one in written.lost} >= ASKED - {"model"}
    assert [one for one in found.findings if one.serious] == []


def test_a_field_that_is_dropped_in_silence_is_found() -> None:
    made = Layout(tp=2, zero=2, dp_replicate=2, recompute="full", gather_unit="layer")
    case, _ = case_of(model_of("llama-3.1-8b"), Job(2048, 64), cluster_of(16), made, "hf_trainer")
    run = Run(case.model, case.job, case.cluster, case.layout, case.engine)
    written = accelerate.write(run)

    for key in ("tp_size", "reshard_after_forward", "activation_checkpointing:", "dp_replicate_size", "auto_wrap"):
        text = "\n".join(line for line in written.text.split("\n") if key not in line)
        assert text != written.text
        assert differences(run, back(run, accelerate.read(text.encode()), "hf_trainer"), written)


def test_fsdp2_is_read() -> None:
    found = read_any(FSDP2)

    at = found.layout
    assert found.framework == "hf_trainer" and found.engine == "hf_trainer" and found.ranks == 16
    assert (at.tp, at.dp_replicate, at.dp_shard, at.zero, at.recompute) == (2, 2, 4, 2, "full")
    assert (at.offload_optimizer, at.offload_parameters, found.job.precision) == (1.0, 1.0, "bf16")
    assert found.findings == () and found.kept == ()
    assert {one.field for one in found.missing} == ASKED


def test_fsdp1_is_read_with_its_own_names() -> None:
    """HYBRID_SHARD shards inside a machine; use_orig_params and backward_prefetch count for nothing."""
    found = read_any(FSDP1)

    at = found.layout
    assert (at.dp_replicate, at.dp_shard, at.zero, at.gather_unit) == (4, 8, 3, "layer")
    assert found.job.precision == "fp16" and found.findings == ()
    assert [one.name.rpartition(".")[2] for one in found.kept] == ["fsdp_backward_prefetch", "fsdp_use_orig_params"]


def test_deepspeed_is_read() -> None:
    found = read_any(DEEPSPEED)

    assert (found.engine, found.layout.zero, found.layout.dp_shard) == ("deepspeed", 3, 8)
    assert (found.layout.offload_optimizer, found.layout.offload_parameters) == (1.0, 0.0)
    assert any("gradient_accumulation_steps 4" in note for note in found.notes)


def test_a_file_of_deepspeed_is_asked_for() -> None:
    text = b"distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: conf/ds.json\nnum_processes: 8\n"
    found = read_any(text)

    assert found.layout.zero is None and found.job.precision is None
    assert [one.why for one in found.missing if one.field == "zero"] == [
        "it stands in conf/ds.json, a file of DeepSpeed: `outlay check` reads that too"
    ]


def test_megatron_is_read() -> None:
    found = read_any(MEGATRON)

    at = found.layout
    assert found.engine == "megatron"
    assert (at.tp, at.pp, at.cp, at.dp_shard, at.sp, at.zero, at.recompute) == (2, 2, 1, 2, True, 1, "full")
    assert found.findings == ()


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        (FSDP2, b"num_processes: 16", b"num_processes: 24", [("ACC001", True, 16)]),
        (FSDP2, b"dp_shard_size: 4", b"dp_shard_size: 1", [("ACC002", True, 18), ("ACC002", True, 18),
                                                          ("ACC001", True, 16)]),
        (FSDP2, b"machine_rank: 0", b"machine_ranks: 0", [("ACC003", True, 13)]),
        (FSDP2, b"fsdp_offload_params", b"fsdp_ofload_params", [("ACC004", False, 8)]),
        (FSDP2, b"  fsdp_version", b"  fsdp_forward_prefetch: true\n  fsdp_version", [("ACC005", False, 12)]),
        (FSDP2, b"mixed_precision: bf16", b"mixed_precision: bfp16", [("ACC006", True, 14)]),
        (FSDP2, b"TRANSFORMER_BASED_WRAP", b"TRANSFORMER", [("ACC007", True, 6)]),
        (FSDP2, b"  fsdp_version: 2\n", b"", [("ACC005", False, 9), ("ACC008", True, 17)]),
        (FSDP1, b"mixed", b"  fsdp_activation_checkpointing_offload: 1\nmixed", [("ACC009", True, 7)]),
        (FSDP2, b"  fsdp_version", b"  fsdp_sync_module_states: no\n  fsdp_version", [("ACC005", False, 12),
                                                                                   ("ACC010", True, 12)]),
        (DEEPSPEED, b"zero_stage: 3", b"deepspeed_config_file: a", [("ACC011", True, 3), ("ACC011", True, 4),
                                                                    ("ACC011", True, 5), ("ACC011", True, 8)]),
        (MEGATRON, b"  megatron_lm_context_parallel_size: 1\n", b"", [("ACC012", False, 3)]),
        (MEGATRON, b"granularity: full", b"granularity: selective", [("ACC013", True, 7)]),
        (FSDP1, b"num_machines: 4", b"num_machines: 5", [("ACC014", False, 9)]),
        (FSDP1, b"num_processes: 32", b"gpu_ids: all", [("ACC015", False, 1)]),
        (FSDP1, b"distributed_type: FSDP", b"distributed_type: MULTI_GPU", [("ACC016", False, 3)]),
        (MEGATRON, b"num_processes: 8", b"num_processes: 6", [("ACC001", True, 12)]),
    ],
)  # fmt: skip
def test_planted_errors_are_found(text: bytes, old: bytes, new: bytes, expected: list[tuple[str, bool, int]]) -> None:
    assert accelerate.read(text).findings == ()

    found = accelerate.read(text.replace(old, new))

    assert [(one.code, one.serious) for one in found.findings] == [(code, serious) for code, serious, _ in expected]
    lines = [one.line for one in found.findings]
    assert all(abs(line - place) <= 1 for line, (_, _, place) in zip(lines, expected, strict=True)), lines


def test_copies_and_one_card_are_read() -> None:
    found = read_any(b"distributed_type: MULTI_GPU\nnum_processes: 8\nmixed_precision: 'no'\n")
    assert (found.layout.zero, found.layout.dp_shard, found.job.precision) == (0, 8, "fp32")

    assert read_any(b"distributed_type: 'NO'\nmixed_precision: bf16\n").ranks == 1


def test_json_is_read_too() -> None:
    found: Found = read_any(
        b'{"compute_environment": "LOCAL_MACHINE", "distributed_type": "MULTI_GPU", "num_processes": 4}'
    )

    assert (found.layout.dp_shard, found.ranks) == (4, 4)


def test_files_of_others_are_not_claimed() -> None:
    for text in ("fsdp_config:\n  fsdp_version: 2\nbase_model: x\n", "num_layers: 2\n", '{"bf16": {"enabled": true}}'):
        assert not accelerate.is_of(text)


SAMPLES = {"fsdp2": FSDP2, "fsdp1": FSDP1, "deepspeed": DEEPSPEED, "megatron": MEGATRON}


@pytest.mark.parametrize("name", SAMPLES)
def test_broken_files_are_read_or_refused(name: str) -> None:
    chance, found = random.Random(13), dict[str, int]()

    for _ in range(300):
        said = outcome(accelerate.read, broken(SAMPLES[name], chance))
        found[said] = found.get(said, 0) + 1

    assert {said for said in found if said != "read" and not CODES.fullmatch(said)} == set()
    assert found["read"] > 10 and sum(found.values()) - found["read"] > 10


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_at_once(name: str) -> None:
    assert outcome(accelerate.read, BOMBS[name]) in ("read", "FMT002", "FMT003", "FMT004", "FMT005")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"distributed_type: FSDP\nnum_processes: 8\nnum_processes: 9\n", "line 3 column 1"),
        (b"distributed_type: FSDP\nfsdp_config: &a\n  fsdp_version: 2\n", "line 2 column 14"),
        (b"distributed_type: FSDP\nfsdp_config: [1, 2\n", "line 3 column 1"),
        (b"\xef\xbb\xbfdistributed_type: FSDP\r\nnum_processes: many\r\n", "line 2 column 1"),
        (b"distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 4\n", "line 3 column 3"),
    ],
)
def test_an_error_says_its_line_and_column(content: bytes, place: str) -> None:
    with pytest.raises(InputError) as error:
        read_any(content)

    assert error.value.faults[0].got.startswith(place + ":")
