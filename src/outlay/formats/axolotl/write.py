"""A layout as axolotl's YAML, and what that cannot say."""

from typing import Any

from ..fine_tuning.adapters import bits_of, named_targets
from ..fine_tuning.models import layer_class
from ..fine_tuning.reading import OURS
from ..fine_tuning.writing import (
    Entries,
    Trainer,
    accumulation,
    axis_losses,
    copies_lost,
    deepspeed_entries,
    memory_losses,
    model_entries,
    packing_entries,
    type_losses,
    yaml_of,
)
from ..leaving_out import lost
from ..setting import Run, Written

RELEASE = "axolotl 0.19"
AXOLOTL = Trainer(
    "axolotl",
    RELEASE,
    "torchrun --nnodes {nodes} --nproc-per-node {each} -m axolotl.cli.train config.yaml",
    "Which tuning of the model, data (datasets), learning rate and length of the run are yours.",
    fsdp=("tp", "cp", "dp_replicate"),
    deepspeed=("tp", "ep", "etp"),
)
FP8 = {"fp8": "tensorwise", "fp8_rowwise": "rowwise", "fp8_tensorwise": "tensorwise"}


def write(run: Run) -> Written:
    """The settings as YAML, with what they cannot say in its first comments."""
    task = (*model_entries(run, "base_model"), *_task(run), *_adapter(run), *_precision(run))
    return yaml_of(run, AXOLOTL, (*task, *_cut(run), *_memory(run), *_types(run)))


def _task(run: Run) -> Entries:
    job = run.job
    yield "sequence_len", job.sequence_length
    yield "micro_batch_size", int(run.layout.micro_batch)
    yield "gradient_accumulation_steps", accumulation(run, AXOLOTL)
    if job.optimizer == "muon" and run.engine.name == "hf_trainer":
        yield "optimizer", "muon"
    elif job.optimizer in OURS:
        yield "optimizer", OURS[job.optimizer]
    else:
        yield lost(run, "optimizer", "it has no setting for it here: adam is written")
    yield from packing_entries(run, "sample_packing")


def _adapter(run: Run) -> Entries:
    job = run.job
    if job.adapter == "none":
        return
    bits = bits_of(job)
    yield "adapter", "qlora" if bits == 4 and job.adapter != "dora" else "lora"
    if job.adapter == "dora":
        yield "peft_use_dora", True
    yield from [("load_in_4bit", True)] if bits == 4 else [("load_in_8bit", True)] if bits == 8 else []
    if not bits or job.frozen_format == "nf4":
        yield lost(run, "frozen_format", "it keeps 16 bit, int8, or NF4 with quantised scales")
    yield "lora_r", job.adapter_rank
    named = named_targets(run)
    yield ("lora_target_linear", True) if named is None else ("lora_target_modules", named)


def _precision(run: Run) -> Entries:
    how = run.job.precision
    if how in FP8:
        yield from (("bf16", True), ("fp8", True), ("fp8_config", {"recipe": FP8[how]}))
        yield from [lost(run, "precision", "fp8 is fp8_tensorwise or fp8_rowwise there")] if how == "fp8" else []
    elif how == "fp16":
        yield from (("bf16", False), ("fp16", True))
    elif how == "fp32":
        yield from (("bf16", False), ("fp16", False))
    else:
        yield "bf16", True
        yield from [] if how == "bf16" else [lost(run, "precision", "it has bf16, fp16, fp32 and fp8: bf16 is written")]


def _cut(run: Run) -> Entries:
    at = run.layout
    if run.engine.name != "hf_trainer":
        yield from deepspeed_entries(run, AXOLOTL)
        return
    if at.zero:
        yield "fsdp_version", 2
        yield "fsdp_config", _fsdp(run)
    if at.tp > 1:
        yield "tensor_parallel_size", int(at.tp)
    if at.cp > 1:
        yield from (("context_parallel_size", int(at.cp)), ("attn_implementation", "flash_attention_2"))
        yield from [] if at.cp_kind == "ring" else [lost(run, "cp_kind", "it has ring attention")]
    if at.zero and (at.tp > 1 or at.cp > 1 or at.dp_replicate > 1):
        yield from (("dp_replicate_size", int(at.dp_replicate)), ("dp_shard_size", int(at.dp_shard)))
    elif at.dp_replicate > 1:
        yield from copies_lost(run)
    yield from axis_losses(run, AXOLOTL.fsdp, "it has no such axis")


def _fsdp(run: Run) -> dict[str, Any]:
    at = run.layout
    wrapped = layer_class(run.model)
    policy = "TRANSFORMER_BASED_WRAP" if at.gather_unit == "layer" else ""
    made: dict[str, Any] = {"auto_wrap_policy": policy} if policy else {}
    made |= {"transformer_layer_cls_to_wrap": wrapped} if wrapped and policy else {}
    made |= {"reshard_after_forward": at.zero == 3}
    return made | ({"offload_params": True} if at.offload_optimizer == at.offload_parameters == 1 else {})


def _memory(run: Run) -> Entries:
    at = run.layout
    if at.recompute == "full":
        yield "gradient_checkpointing", True
        if at.recompute_layers < run.model.layers:
            yield lost(run, "recompute_layers", "all layers or none")
    if at.offload_activations == 1 and at.recompute == "full":
        yield "activation_offloading", True
    elif at.offload_activations:
        yield lost(run, "offload_activations", "all inputs of recomputed layers leave, or none")
    yield from memory_losses(run)
    if at.gather_unit != "layer" and at.zero:
        yield lost(run, "gather_unit", "its FSDP wraps each layer")


def _types(run: Run) -> Entries:
    """Without DeepSpeed it trains weights that it loads in bf16."""
    bare = run.job.adapter == "none" and run.job.precision == "bf16"
    return type_losses(run, bare)
