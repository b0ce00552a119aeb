"""A layout as LLaMA-Factory's YAML, and what that cannot say."""

from ...engines.engine import MEGATRON
from ..fine_tuning.adapters import bits_of, named_targets
from ..fine_tuning.reading import OURS
from ..fine_tuning.writing import (
    HELD,
    REASONS,
    Entries,
    accumulation,
    axes_of,
    axis_losses,
    deepspeed_section,
    fsdp_config,
    gathered,
    launch_of,
    memory_losses,
    model_entries,
    narrow_types,
    type_losses,
    yaml_text,
)
from ..leaving_out import left_out, lost
from ..setting import Run, Written
from .write_megatron import write_megatron

RELEASE = "LLaMA-Factory 0.9.5"
LAUNCH = "FORCE_TORCHRUN=1 NNODES={nodes} NPROC_PER_NODE={each} llamafactory-cli train config.yaml"
YOURS = "Which tuning of the model, data (dataset, template), output_dir, learning rate and length are yours."
BY_SWITCH = {"galore": "use_galore", "adam_mini": "use_adam_mini", "muon": "use_muon"}


def write(run: Run) -> Written:
    """The arguments as YAML, with what they cannot say in its first comments."""
    if run.engine.name in MEGATRON:
        return write_megatron(run, RELEASE, YOURS)
    entries = (*model_entries(run, "model_name_or_path"), *_task(run), *_trained(run), *_precision(run), *_cut(run))
    made, gone = gathered((*entries, *_memory(run), *_types(run)))
    gone += left_out(run, run.engine.name, {*HELD, "galore_rank"}, REASONS)
    text = yaml_text(run, RELEASE, launch_of(run, LAUNCH), YOURS, made, gone)
    return Written(text, "config.yaml", tuple(gone))


DEEPSPEED_AXES, FSDP_AXES = ("tp", "ep", "etp"), ()  # that it has


def _task(run: Run) -> Entries:
    job = run.job
    yield from (("stage", "sft"), ("do_train", True))
    yield "cutoff_len", job.sequence_length
    yield "per_device_train_batch_size", int(run.layout.micro_batch)
    yield "gradient_accumulation_steps", accumulation(run, axes_of(run, FSDP_AXES, DEEPSPEED_AXES))
    if job.optimizer == "galore" and job.adapter != "none":
        yield lost(run, "optimizer", "LoRA does not go with GaLore: adam is written")
    elif job.optimizer in BY_SWITCH:
        yield BY_SWITCH[job.optimizer], True
        yield from [("galore_rank", job.galore_rank)] if job.optimizer == "galore" else []
    elif job.optimizer == "momentum":
        yield from (("optim", "sgd"), ("optim_args", "momentum=0.9"))
    else:
        yield "optim", OURS.get(job.optimizer, OURS["adam"])
    if job.packing is not None:
        yield "packing", not job.packing.padded
        yield lost(run, "packing", "how long the documents are is in the data")


def _trained(run: Run) -> Entries:
    job = run.job
    if job.adapter == "none":
        yield "finetuning_type", "full"
        return
    yield "finetuning_type", "lora"
    yield "lora_rank", job.adapter_rank
    named = named_targets(run)
    yield "lora_target", "all" if named is None else ",".join(named)
    yield from [("use_dora", True)] if job.adapter == "dora" else []
    bits = bits_of(job)
    yield from [("quantization_bit", bits)] if bits in (4, 8) else []
    yield from [("double_quantization", False)] if job.frozen_format == "nf4" else []
    if not bits:
        yield lost(run, "frozen_format", "weights load in 16 bit, int8 or NF4")


def _precision(run: Run) -> Entries:
    how = run.job.precision
    if how == "fp8":
        yield from (("bf16", True), ("fp8", True))
    elif how in ("bf16", "fp16"):
        yield ("pure_bf16" if _pure(run) else how), True
    elif how == "fp32" and run.job.adapter != "none":
        yield lost(run, "precision", "frozen weights are multiplied in the type of the checkpoint")
    elif how != "fp32":
        yield "bf16", True
        yield lost(run, "precision", "it has bf16, fp16 and fp8: bf16 is written")


def _pure(run: Run) -> bool:
    """Whether weights, gradients and moments are all in bf16."""
    job = run.job
    bare = job.adapter == "none" and run.engine.name == "hf_trainer"
    return bare and job.precision == "bf16" and job.master_dtype == "none"


def _cut(run: Run) -> Entries:
    at = run.layout
    if run.engine.name != "hf_trainer":
        section, gone = deepspeed_section(run)
        yield from gone
        yield "deepspeed", section
        yield from axis_losses(run, DEEPSPEED_AXES, "DeepSpeed under LLaMA-Factory has no such axis")
        return
    if at.zero:
        yield from (("fsdp", True), ("fsdp_config", fsdp_config(run)))
    yield from axis_losses(run, FSDP_AXES, "it has no such axis without the Megatron backend")


def _memory(run: Run) -> Entries:
    at = run.layout
    if at.recompute != "full":
        yield "disable_gradient_checkpointing", True
    elif at.recompute_layers < run.model.layers:
        yield lost(run, "recompute_layers", "all layers or none")
    if at.offload_activations:
        yield lost(run, "offload_activations", "it has no setting for it")
    yield from memory_losses(run)


def _types(run: Run) -> Entries:
    return type_losses(run, narrow_types(run) if _pure(run) else None)
