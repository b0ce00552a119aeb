"""A layout as LLaMA-Factory's YAML for its Megatron backend: Megatron's flags by the names that mcore_adapter has."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..fine_tuning.writing import Entries, gathered, launch_of, model_entries, yaml_text
from ..leaving_out import lost
from ..megatron.model import flags_of_model
from ..megatron.write import flags_of_run
from ..setting import Lost, Run, Setting, Written, as_number
from .megatron import MEGATRON_KEYS

LAUNCH = "USE_MCA=1 FORCE_TORCHRUN=1 NNODES={nodes} NPROC_PER_NODE={each} llamafactory-cli train config.yaml"
RENAMED = {"num_virtual_stages_per_pipeline_rank": "virtual_pipeline_model_parallel_size"}
SAID = ("micro_batch_size", "global_batch_size", "seq_length", "no_check_for_nan_in_loss_and_grad")
# Flags that mcore_adapter has no name for, and the fields that go with them.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "use_megatron_fsdp": ("zero",), "num_distributed_optimizer_instances": ("dp_replicate", "dp_shard"),
    "cp_comm_type": ("cp_kind",), "tp_comm_overlap": ("overlap_tp",),
    "overlap_moe_expert_parallel_comm": ("overlap_ep",), "cuda_graph_impl": ("graphs",),
    "use_precision_aware_optimizer": ("bytes_per_parameter", "reduce_dtype"),
    "grad_reduce_in_bf16": ("bytes_per_parameter", "reduce_dtype"), "fp8_param_gather": ("gather_dtype",),
    "fp4_format": ("precision",), "train_samples": ("tokens",), "rampup_batch_size": ("batch_rampup",),
}  # fmt: skip
WITH_THEM = (
    "data_parallel_sharding_strategy", "ckpt_format", "cuda_graph_modules", "main_grads_dtype", "main_params_dtype",
    "exp_avg_dtype", "exp_avg_sq_dtype", "fp4_recipe", "sgd_momentum",
)  # fmt: skip
WHY = "mcore_adapter has no argument for it"


def write_megatron(run: Run, release: str, yours: str) -> Written:
    """The arguments as YAML, with what they cannot say in its first comments."""
    flags, gone = flags_of_run(run)
    of_model = {one.name for one in flags_of_model(run.model, run.job.sequence_length)[0]}
    kept = [one for one in gone if one.path != "model"]
    entries = (*model_entries(run, "model_name_or_path"), *_task(run), *_flags(run, flags, of_model), *_rest(run))
    made, more = gathered(entries)
    named = {one.path for one in more}
    gone = [*more, *(one for one in kept if one.path not in named)]
    text = yaml_text(run, release, launch_of(run, LAUNCH), yours, made, gone)
    return Written(text, "config.yaml", tuple(gone))


def _task(run: Run) -> Entries:
    yield from (("stage", "sft"), ("do_train", True), ("finetuning_type", "full"))
    yield "cutoff_len", run.job.sequence_length
    yield "per_device_train_batch_size", int(run.layout.micro_batch)
    yield "gradient_accumulation_steps", run.micro_batches


def _flags(run: Run, flags: list[Setting], of_model: set[str]) -> Entries:
    held = {one.name.lstrip("-").replace("-", "_"): one for one in flags if one.name not in of_model}
    offloads = "optimizer_cpu_offload" in held
    for name, one in held.items():
        value = _value(one)
        if name in FIELDS and not (name == "cp_comm_type" and value == "p2p"):
            yield from (lost(run, field, WHY) for field in FIELDS[name])
        elif name.startswith("optimizer_") and offloads:
            yield from [lost(run, "offload_optimizer", "it needs the precision-aware optimizer")] * (
                name.count("_") == 2
            )
        elif (name == "recompute_method" and value == "block") or (name == "recompute_num_layers" and _blocks(held)):
            yield from [lost(run, "recompute_layers", "all layers of a stage or none")] * (name == "recompute_method")
        elif name == "moe_token_dispatcher_type" and value == "flex":
            yield name, "alltoall"
            yield lost(run, "moe_dispatch", "it has allgather and alltoall")
        elif name == "optimizer" and (value not in ("adam", "sgd") or run.job.optimizer == "sgd"):
            yield lost(run, "optimizer", "it has adam, and sgd with momentum: adam is written")
        elif name == "recompute_modules":
            yield name, ",".join(one.values)
        elif (kept := RENAMED.get(name, name)) in (*MEGATRON_KEYS, "bf16", "fp16") and name not in (*SAID, *WITH_THEM):
            yield kept, value


def _blocks(held: Mapping[str, Setting]) -> bool:
    return held["recompute_method"].values == ("block",) if "recompute_method" in held else False


def _value(one: Setting) -> Any:
    """A switch, a number or a word."""
    if one.values in ((), ("()",)):
        return True
    text = " ".join(one.values)
    number = as_number(text)
    return text if number is None else number


def _rest(run: Run) -> Iterator[Lost]:
    """What is trained in part, which the backend has no argument for here."""
    if run.job.adapter != "none":
        for name in ("adapter", "adapter_rank", "adapter_targets", "frozen_format"):
            yield lost(run, name, "adapters on the Megatron backend are not written")
