"""How an Accelerate run is cut, by its type: wrapped by FSDP, under DeepSpeed, under Megatron-LM, or copied.

Source: huggingface/accelerate 1.15.0, utils/launch.py, utils/dataclasses.py and parallelism_config.py, with the
defaults of the launcher and of its plugins.
"""

from typing import Any

from ...job import AUTO, Job
from ...layout.axes import Layout
from ..sections import Sections
from ..setting import FALSE, Missing
from .keys import Held

STRATEGIES = ("full_shard", "shard_grad_op", "no_shard", "hybrid_shard", "hybrid_shard_zero2")
STAGES = {"full_shard": 3, "shard_grad_op": 2, "no_shard": 0, "hybrid_shard": 3, "hybrid_shard_zero2": 2}
COMMUNICATION = {"allgather": "all_gather", "alltoall": "ring"}
IN_SCRIPT = "the script sets it, not this file"
FSDP, DEEPSPEED, MEGATRON = (
    f"{section}_config.{prefix}"
    for section, prefix in (("fsdp", "fsdp_"), ("deepspeed", ""), ("megatron_lm", "megatron_lm_"))
)
SIZES = {
    name: f"parallelism_config.parallelism_config_{name}_size"
    for name in ("dp_replicate", "dp_shard", "tp", "cp", "sp")
}


def layout_of(held: Held) -> tuple[Layout, list[Missing]]:
    """The layout, and what the file leaves to others."""
    ways = {"FSDP": _wrapped, "DEEPSPEED": _deepspeed, "MEGATRON_LM": _megatron}
    layout, missing = ways.get(held.kind, _copied)(held)
    return layout, [
        Missing("model", IN_SCRIPT),
        *(Missing(name, IN_SCRIPT) for name in ("sequence_length", "micro_batch", "global_batch")),
        *missing,
    ]


def sizes_of(at: Sections) -> dict[str, Any]:
    """The sizes of a parallelism_config, 1 where it does not say one."""
    return {name: at.count(path, 1) or AUTO for name, path in SIZES.items()}


def processes(at: Sections) -> Any:
    """Ranks of all machines; AUTO where the launcher's line gives them."""
    one = at.ask("num_processes")
    return AUTO if one is None or one.value in (None, -1) else at.count("num_processes", AUTO) or AUTO


def _kind_of_context(at: Sections, sizes: dict[str, Any]) -> Any:
    way = at.word("parallelism_config.parallelism_config_cp_comm_strategy", "allgather")
    return "ulysses" if (sizes["sp"] or 1) > 1 else COMMUNICATION.get(way, "all_gather")


def _wrapped(held: Held) -> tuple[Layout, list[Missing]]:
    at, ranks, machines = held.at, processes(held.at), held.at.count("num_machines", 1) or 1
    sizes, given = sizes_of(at), "parallelism_config" in at.held
    strategy = _strategy(at) if held.version == 1 else "full_shard"
    reshards = _reshards(at)
    zero = STAGES[strategy] if held.version == 1 else 3 if reshards else 2
    copies, shards = sizes["dp_replicate"], sizes["dp_shard"]
    if not given:
        copies = machines if strategy.startswith("hybrid") else 1
        shards = max(1, ranks // copies) if ranks else AUTO
    wraps = at.word(f"{FSDP}auto_wrap_policy", "no_wrap")
    offload = 1.0 if at.flag(f"{FSDP}offload_params") else 0.0
    again = at.flag(f"{FSDP}activation_checkpointing")
    away = 1.0 if again and at.flag(f"{FSDP}activation_checkpointing_offload") else 0.0
    if wraps == "no_wrap":
        held.notes.append("no fsdp_auto_wrap_policy: nothing is wrapped by itself, the whole model is gathered at once")
    if not again:
        held.notes.append("recompute may be switched on in the script too (gradient_checkpointing): --recompute full")
    layout = Layout(
        tp=sizes["tp"], cp=(sizes["cp"] or 1) * (sizes["sp"] or 1), pp=1, ep=1, etp=1, vpp=1,
        cp_kind=_kind_of_context(at, sizes), dp_replicate=copies, dp_shard=shards, zero=zero,
        gather_unit="model" if wraps == "no_wrap" else "layer", recompute="full" if again else "none",
        offload_optimizer=offload, offload_parameters=offload, offload_activations=away,
    )  # fmt: skip
    return layout, []


def _reshards(at: Sections) -> bool:
    """Whether weights are scattered again behind the forward pass; what is neither is a finding."""
    one = at.ask(f"{FSDP}reshard_after_forward")
    return one is None or str(one.value).strip().lower() not in (*FALSE, "n", "f")


def _strategy(at: Sections) -> str:
    """The sharding strategy of FSDP1: a name, or its number from 1."""
    one = at.ask(f"{FSDP}sharding_strategy")
    text = str(one.value).strip().lower() if one is not None and one.value is not None else "full_shard"
    named = STRATEGIES[int(text) - 1] if text in "12345" and text else text
    return named if named in STRATEGIES else "full_shard"


def _copied(held: Held) -> tuple[Layout, list[Missing]]:
    at, ranks, sizes = held.at, processes(held.at), sizes_of(held.at)
    parts = [sizes["tp"], sizes["cp"], sizes["sp"]]
    ranks = 1 if held.kind == "NO" else ranks
    inner = 1 if AUTO in parts else parts[0] * parts[1] * parts[2]
    layout = Layout(
        tp=sizes["tp"], cp=(sizes["cp"] or 1) * (sizes["sp"] or 1), pp=1, ep=1, etp=1, vpp=1,
        cp_kind=_kind_of_context(at, sizes), dp_replicate=1,
        dp_shard=max(1, ranks // inner) if ranks else AUTO, zero=0,
    )  # fmt: skip
    return layout, []


def _deepspeed(held: Held) -> tuple[Layout, list[Missing]]:
    at, ranks, sizes = held.at, processes(held.at), sizes_of(held.at)
    inner = (sizes["tp"] or 1) * (sizes["sp"] or 1)
    file = at.ask(f"{DEEPSPEED}deepspeed_config_file")
    missing, steps = list[Missing](), at.count(f"{DEEPSPEED}gradient_accumulation_steps", 0)
    zero: Any = at.count(f"{DEEPSPEED}zero_stage", 2)
    if file is not None and file.value:
        zero = AUTO
        why = f"it stands in {str(file.value)[:60]}, a file of DeepSpeed: `outlay check` reads that too"
        missing.append(Missing("zero", why))
    elif zero is not AUTO and zero > 3:
        at.wrong(f"{DEEPSPEED}zero_stage", "0 to 3")
        zero = 2
    if steps:
        held.notes.append(f"gradient_accumulation_steps {steps}: so many micro-batches of each rank make a step")
    held.notes.append("recompute is switched on in the script (gradient_checkpointing): --recompute full where it is")
    away = {name: at.word(f"{DEEPSPEED}offload_{name}_device", "none") in ("cpu", "nvme") for name in OFFLOADS}
    layout = Layout(
        tp=sizes["tp"], cp=sizes["sp"], pp=1, ep=1, etp=1, vpp=1, cp_kind="ulysses", dp_replicate=1,
        dp_shard=max(1, ranks // inner) if ranks else AUTO, zero=zero, schedule="1f1b",
        overlap_dp=AUTO if zero is AUTO else zero == 3,
        offload_optimizer=1.0 if away["optimizer"] else 0.0, offload_parameters=1.0 if away["param"] else 0.0,
    )  # fmt: skip
    return layout, missing


OFFLOADS = ("optimizer", "param")


def _megatron(held: Held) -> tuple[Layout, list[Missing]]:
    at, ranks = held.at, processes(held.at)
    tp, pp = (at.count(f"{MEGATRON}{name}_degree", 1) or AUTO for name in ("tp", "pp"))
    cp = at.count(f"{MEGATRON}context_parallel_size", 2) or AUTO  # the plugin's own default is 2
    ep, etp = (at.count(f"{MEGATRON}expert_{name}_parallel_size", 1) or AUTO for name in ("model", "tensor"))
    inner = tp * pp * cp if AUTO not in (tp, pp, cp) else 0
    method = at.word(f"{MEGATRON}recompute_method", "uniform")
    count = at.count(f"{MEGATRON}recompute_num_layers", 1) or 1
    at.word(f"{MEGATRON}recompute_granularity", "full")
    again: dict[str, Any] = {"recompute_layers": count} if method == "block" else {"recompute_group": count}
    at.flag(f"{MEGATRON}recompute_activations")
    steps = at.count(f"{MEGATRON}num_micro_batches", 1)
    held.notes.append(f"megatron_lm_num_micro_batches {steps}: so many micro-batches of each rank make a step")
    last = at.count(f"{MEGATRON}decoder_last_pipeline_num_layers", 0)
    if last:
        held.notes.append(f"the last stage has {last} layers: give --split, which needs the model")
    fsdp = at.flag(f"{MEGATRON}use_custom_fsdp")
    at.flag(f"{MEGATRON}use_precision_aware_optimizer")
    layout = Layout(
        tp=tp, pp=pp, cp=cp, ep=ep, etp=etp, vpp=1, cp_kind="ring", schedule="1f1b",
        sp=at.flag(f"{MEGATRON}sequence_parallelism") and (tp or 1) > 1, dp_replicate=1,
        dp_shard=max(1, ranks // inner) if ranks and inner else AUTO,
        zero=3 if fsdp else int(at.flag(f"{MEGATRON}use_distributed_optimizer")), recompute="full", **again,
        offload_optimizer=1.0 if at.flag(f"{MEGATRON}optimizer_cpu_offload") else 0.0,
        overlap_dp=False,
    )  # fmt: skip
    return layout, []


def job_of(held: Held) -> Job:
    """The precision: all else is the script's."""
    at = held.at
    mixed = at.word("mixed_precision", "fp16" if at.flag("fp16") else "no")
    precision: Any = {"no": "fp32", "bf16": "bf16", "fp16": "fp16"}.get(mixed, "fp32")
    if held.kind == "DEEPSPEED" and "deepspeed_config.deepspeed_config_file" in at.held:
        precision = AUTO if "mixed_precision" not in at.held else precision
    if mixed == "fp8":
        precision = _eight(at)
    return Job(precision=precision)


def _eight(at: Sections) -> Any:
    backend = at.word("fp8_config.fp8_backend", "")
    blocks = at.flag("fp8_config.fp8_use_mxfp8_block_scaling")
    at.asked.update(path for path in at.held if path.startswith("fp8_config."))
    if blocks:
        return "mxfp8"
    return {"te": "fp8_delayed", "ao": "fp8_tensorwise"}.get(backend, "fp8")
