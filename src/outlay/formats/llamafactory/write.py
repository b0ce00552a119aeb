"""A layout as LLaMA-Factory's YAML, and what that cannot say."""

from ...engines.engine import MEGATRON
from ..fine_tuning.adapters import bits_of, named_targets
from ..fine_tuning.reading import OURS
from ..fine_tuning.writing import (
    Entries,
    Trainer,
    accumulation,
    axis_losses,
    deepspeed_entries,
    fsdp_config,
    memory_losses,
    model_entries,
    packing_entries,
    type_losses,
    yaml_of,
)
from ..leaving_out import lost
from ..setting import Run, Written
from .write_megatron import write_megatron

RELEASE = "LLaMA-Factory 0.9.5"
FACTORY = Trainer(
    "LLaMA-Factory",
    RELEASE,
    "FORCE_TORCHRUN=1 NNODES={nodes} NPROC_PER_NODE={each} llamafactory-cli train config.yaml",
    "Which tuning of the model, data (dataset, template), output_dir, learning rate and length are yours.",
    fsdp=(),
    deepspeed=("tp", "ep", "etp"),
    own=("galore_rank",),
)
BY_SWITCH = {"galore": "use_galore", "adam_mini": "use_adam_mini", "muon": "use_muon"}


def write(run: Run) -> Written:
    """The arguments as YAML, with what they cannot say in its first comments."""
    if run.engine.name in MEGATRON:
        return write_megatron(run, RELEASE, FACTORY.yours)
    task = (*model_entries(run, "model_name_or_path"), *_task(run), *_trained(run), *_precision(run))
    return yaml_of(run, FACTORY, (*task, *_cut(run), *_memory(run), *type_losses(run, _pure(run))))


def _task(run: Run) -> Entries:
    job = run.job
    yield from (("stage", "sft"), ("do_train", True))
    yield "cutoff_len", job.sequence_length
    yield "per_device_train_batch_size", int(run.layout.micro_batch)
    yield "gradient_accumulation_steps", accumulation(run, FACTORY)
    if job.optimizer == "galore" and job.adapter != "none":
        yield lost(run, "optimizer", "LoRA does not go with GaLore: adam is written")
    elif job.optimizer in BY_SWITCH:
        yield BY_SWITCH[job.optimizer], True
        yield from [("galore_rank", job.galore_rank)] if job.optimizer == "galore" else []
    elif job.optimizer == "momentum":
        yield from (("optim", "sgd"), ("optim_args", "momentum=0.9"))
    else:
        yield "optim", OURS.get(job.optimizer, OURS["adam"])
    yield from packing_entries(run, "packing")


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
        yield from deepspeed_entries(run, FACTORY)
        return
    if at.zero:
        yield from (("fsdp", True), ("fsdp_config", fsdp_config(run)))
    yield from axis_losses(run, FACTORY.fsdp, "it has no such axis without the Megatron backend")


def _memory(run: Run) -> Entries:
    at = run.layout
    if at.recompute != "full":
        yield "disable_gradient_checkpointing", True
    elif at.recompute_layers < run.model.layers:
        yield lost(run, "recompute_layers", "all layers or none")
    if at.offload_activations:
        yield lost(run, "offload_activations", "it has no setting for it")
    yield from memory_losses(run)
