"""Exported YAML in Accelerate 1.15.0's own code, up to the plugins that a launched script makes; nothing is launched.

load_config_from_file, _validate_launch_command, the environment of the launcher, then FullyShardedDataParallelPlugin,
ParallelismConfig, DeepSpeedPlugin and MegatronLMPlugin, which read that environment.
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from forty_layouts import QUESTIONS, Question, run_for
from outlay.formats import accelerate as form
from outlay.formats.setting import Found

pytest.importorskip("accelerate")
LAUNCH = importlib.import_module("accelerate.commands.launch")
ENVIRONMENTS = importlib.import_module("accelerate.utils.launch")
PLUGINS = importlib.import_module("accelerate.utils.dataclasses")
pytestmark = pytest.mark.filterwarnings("ignore")
Launch = Callable[[str], SimpleNamespace]


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launch:
    """What Accelerate makes of a file, as the launcher and then the script on each rank have it."""
    monkeypatch.setattr(ENVIRONMENTS, "is_fp8_available", lambda: True)  # a matter of the machine
    monkeypatch.setattr(ENVIRONMENTS, "is_port_in_use", lambda _: False)

    def launch(text: str) -> SimpleNamespace:
        (tmp_path / "accelerate.yaml").write_text(text)
        words = ["--config_file", str(tmp_path / "accelerate.yaml"), "--main_process_ip", "10.0.0.1", "train.py"]
        args = LAUNCH.launch_command_parser().parse_args(words)
        args, defaults, mixed = LAUNCH._validate_launch_command(args)
        if args.use_deepspeed:
            fields = [*defaults.deepspeed_config, *(["mixed_precision"] if mixed else [])]
            args.deepspeed_fields_from_accelerate_config = ",".join(fields)
            _, environment = ENVIRONMENTS.prepare_deepspeed_cmd_env(args)
        else:
            environment = ENVIRONMENTS.prepare_multi_gpu_env(args)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return plugins(args, environment)

    return launch


def plugins(args: Any, environment: dict[str, str]) -> SimpleNamespace:
    """What `Accelerator()` makes of the environment before it makes process groups."""
    made = SimpleNamespace(args=args, environment=environment, fsdp=None, sizes=None, deepspeed=None, megatron=None)
    types = PLUGINS.DistributedType
    kind = types.MULTI_GPU
    if args.use_fsdp:
        made.fsdp, kind = PLUGINS.FullyShardedDataParallelPlugin(), types.FSDP
    if args.use_deepspeed:
        made.deepspeed, kind = PLUGINS.DeepSpeedPlugin(), types.DEEPSPEED
    if args.use_megatron_lm:
        made.megatron, kind = PLUGINS.MegatronLMPlugin(), types.MEGATRON_LM
    if args.use_parallelism_config:
        made.sizes = importlib.import_module("accelerate.parallelism_config").ParallelismConfig()
        wrapped = made.fsdp is not None and made.fsdp.fsdp_version == 2
        one = SimpleNamespace(multi_device=kind == types.MULTI_GPU, num_processes=int(args.num_processes))
        one.is_fsdp2, one.distributed_type, one.is_main_process = wrapped, kind, True
        made.sizes._validate_accelerator(one)
    return made


WRITTEN = [one for one in QUESTIONS if run_for(one, form) is not None]


@pytest.mark.parametrize("question", WRITTEN, ids=lambda one: one.name)
def test_accelerate_takes_what_is_exported(launched: Launch, question: Question) -> None:
    run = run_for(question, form)
    assert run is not None
    written = form.write(run)
    lost = {one.path.partition(".")[2] for one in written.lost}

    made = launched(written.text)

    at = run.layout
    assert made.args.num_processes == question.ranks
    if made.fsdp is not None:
        assert made.fsdp.fsdp_version == 2
        assert "zero" in lost or made.fsdp.reshard_after_forward == (at.zero == 3)
        assert made.fsdp.activation_checkpointing == (at.recompute == "full")
        assert (made.sizes.tp_size, made.sizes.cp_size) == (at.tp, at.cp)
        assert (made.sizes.dp_replicate_size, made.sizes.dp_shard_size) == (at.dp_replicate, at.dp_shard)
    if made.deepspeed is not None:
        assert made.deepspeed.zero_stage == at.zero
        assert made.deepspeed.gradient_accumulation_steps == run.micro_batches
        assert made.deepspeed.offload_optimizer_device == ("cpu" if at.offload_optimizer else "none")
    if made.megatron is not None:
        given = made.megatron.megatron_lm_default_args
        assert (given["tensor_model_parallel_size"], given["pipeline_model_parallel_size"]) == (at.tp, at.pp)
        assert (given["context_parallel_size"], given["expert_model_parallel_size"]) == (at.cp, at.ep)
        assert given["num_micro_batches"] == run.micro_batches
        assert given["recompute_granularity"] == "full" and ("recompute" in lost) == (at.recompute != "full")
        assert given["use_distributed_optimizer"] == (at.zero > 0)


def test_enough_questions_are_written_of_every_kind() -> None:
    kinds = [form.read(form.write(run).text.encode()).engine for one in WRITTEN if (run := run_for(one, form))]

    assert len(kinds) > 25 and {kind: kinds.count(kind) > 3 for kind in set(kinds)} == dict.fromkeys(
        ("hf_trainer", "deepspeed", "megatron"), True
    )


GOOD = """compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_machines: 2
num_processes: 16
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_reshard_after_forward: true
  fsdp_state_dict_type: SHARDED_STATE_DICT
  fsdp_activation_checkpointing: true
parallelism_config:
  parallelism_config_dp_replicate_size: 2
  parallelism_config_dp_shard_size: 4
  parallelism_config_tp_size: 2
  parallelism_config_cp_size: 1
"""
FILED = """distributed_type: DEEPSPEED
num_processes: 8
deepspeed_config:
  deepspeed_config_file: ds.json
  zero3_init_flag: true
"""
PLANTED = [
    ("num_processes: 16", "num_processes: 12", "ACC001"),
    ("dp_shard_size: 4", "dp_shard_size: 1", "ACC002"),
    ("dp_shard_size: 4", "dp_shard_size: 0", "ACC002"),
    ("cp_size: 1", "cp_size: 2\n  parallelism_config_sp_size: 2", "ACC002"),
    ("num_machines: 2", "num_machines: 2\nmax_steps: 2", "ACC003"),
    ("mixed_precision: bf16", "mixed_precision: bfloat16", "ACC006"),
    ("mixed_precision: bf16", "mixed_precision: no", "ACC006"),
    ("distributed_type: FSDP", "distributed_type: FSDP2", "ACC007"),
    ("distributed_type: FSDP\n", "", "ACC007"),
    ("TRANSFORMER_BASED_WRAP", "LAYER_WRAP", "ACC007"),
    ("SHARDED_STATE_DICT", "LOCAL_STATE_DICT", "ACC007"),
    ("reshard_after_forward: true", "reshard_after_forward: FULL_SHARD", "ACC007"),
    ("cp_size: 1", "cp_size: 1\n  parallelism_config_cp_backend: ring", "ACC007"),
    ("fsdp_version: 2", "fsdp_version: 1\n  fsdp_cpu_ram_efficient_loading: false\n  fsdp_sync_module_states: false",
     "ACC008"),
    ("activation_checkpointing: true", "activation_checkpointing_offload: true", "ACC009"),
    ("fsdp_version: 2", "fsdp_version: 2\n  fsdp_sync_module_states: false", "ACC010"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "code"), PLANTED)
def test_what_accelerate_refuses_is_found(launched: Launch, old: str, new: str, code: str) -> None:
    launched(GOOD)
    assert serious(form.read(GOOD.encode())) == []
    broken = GOOD.replace(old, new)
    assert broken != GOOD

    with pytest.raises((ValueError, KeyError, AttributeError)):
        launched(broken)

    assert code in serious(form.read(broken.encode()))


def serious(found: Found) -> list[str]:
    return [one.code for one in found.findings if one.serious]


def test_keys_beside_a_file_of_deepspeed_are_refused(
    launched: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}}')
    monkeypatch.chdir(tmp_path)
    assert launched(FILED).deepspeed.zero_stage == 3
    assert serious(form.read(FILED.encode())) == []

    for more in ("  zero_stage: 2\n", "  gradient_clipping: 1.0\n", "mixed_precision: bf16\n"):
        with pytest.raises(ValueError, match="deepspeed_config_file"):
            launched(FILED + more)
        assert serious(form.read((FILED + more).encode())) == ["ACC011"]


def test_megatrons_plugin_recomputes_all_and_cuts_the_sequence_unless_told(launched: Launch) -> None:
    """What is read where the file is silent is what the plugin takes by itself."""
    text = "distributed_type: MEGATRON_LM\nmixed_precision: bf16\nnum_processes: 8\nmegatron_lm_config:\n"
    text += "  megatron_lm_tp_degree: 2\n  megatron_lm_recompute_activations: true\n"

    given = launched(text).megatron.megatron_lm_default_args
    found = form.read(text.encode())

    assert (given["context_parallel_size"], given["recompute_granularity"], given["recompute_num_layers"]) == (
        2,
        "full",
        1,
    )
    assert (found.layout.cp, found.layout.recompute, found.layout.recompute_group) == (2, "full", 1)
    assert [one.code for one in found.findings] == ["ACC012", "ACC012"]


def test_what_passes_in_silence_is_warned_of(launched: Launch) -> None:
    for old, new, code in (
        ("fsdp_version: 2", "fsdp_version: 2\n  fsdp_sharding_strategy: NO_SHARD", "ACC005"),
        ("fsdp_version: 2", "fsdp_version: 2\n  fsdp_backward_prefetch: BACKWARD_POST", "ACC005"),
        ("fsdp_version: 2", "fsdp_version: 2\n  fsdp_ofload_params: true", "ACC004"),
        ("num_machines: 2", "num_machines: 3", "ACC014"),
        ("num_machines: 2", "num_machines: 2\ndeepspeed_config:\n  zero_stage: 3", "ACC016"),
    ):
        made = launched(GOOD.replace(old, new))
        assert made.fsdp.reshard_after_forward is True

        found = form.read(GOOD.replace(old, new).encode())
        assert [(one.code, one.serious) for one in found.findings] == [(code, False)]
