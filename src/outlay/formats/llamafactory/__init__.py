"""LLaMA-Factory's YAML: arguments of transformers with its own, or of Megatron-Core. Checked against 0.9.5."""

import re
from dataclasses import replace
from typing import Any

from ...engines.engine import MEGATRON
from ...job import AUTO, Beside, Job
from ...layout.axes import Layout
from ...model.model import Model
from ...undivided import parameters
from ..fine_tuning.adapters import adapted, targets_of
from ..fine_tuning.keys import keys_of
from ..fine_tuning.reading import Reading, batched, check_layer_class, found_of, model_of, narrow, optimizer_of, sized
from ..fine_tuning.sharding import Sharding, deepspeed_of, fsdp_of, unsharded
from ..fine_tuning.text import hold
from ..fine_tuning.writing import HELD
from ..setting import Found
from ..source import text_of
from .megatron import MEGATRON_KEYS, is_megatron, megatron_of
from .rules import check
from .write import RELEASE, write

ENGINE, ENGINES = "hf_trainer", ("hf_trainer", "deepspeed", "deepspeed-liger", *MEGATRON)
COMMENTS = True
KEYS = keys_of(__name__)
FRAMEWORK, LIKE = "LLaMA-Factory", "finetuning_type or cutoff_len"
_OWN = "stage|finetuning_type|cutoff_len|template|dataset_dir|use_mca|pure_bf16|lora_target|flash_attn"
OF_ITS_OWN = re.compile(rf"(?:^[\"']?|\s--)(?:{_OWN})[\"']?(?:\s*:|[ =])", re.M)
MODEL = re.compile(r"(?:^[\"']?|\s--)model_name_or_path[\"']?(?:\s*:|[ =])", re.M)
FIELDS = {
    "per_device_train_batch_size": "micro_batch",
    "gradient_accumulation_steps": "global_batch",
    "model_name_or_path": "model",
    "cutoff_len": "sequence_length",
    "deepspeed": "zero",
    "lora_rank": "adapter_rank",
}
_UNCOUNTED = """
    do_train
    flash_attn lora_alpha lora_dropout use_reentrant_gc stage template use_rslora double_quantization quantization_type
    quantization_method loraplus_lr_ratio pissa_init gradient_checkpointing disable_gradient_checkpointing
    galore_target optim_args
"""


def is_of(text: str) -> bool:
    """Whether a text has LLaMA-Factory's name of the model and an argument of its own."""
    return "llamafactory-cli" in text or (bool(MODEL.search(text)) and bool(OF_ITS_OWN.search(text)))


def read(content: bytes) -> Found:
    """What LLaMA-Factory's arguments say. Raises InputError (FMT002 .. FMT005) with line and column."""
    read = Reading(hold(text_of(content), KEYS | MEGATRON_KEYS, FRAMEWORK, LIKE))
    at = read.at
    read.unknown(FIELDS)
    model = model_of(read, "model_name_or_path")
    micro = at.count("per_device_train_batch_size", 8) or 8
    steps = at.count("gradient_accumulation_steps", 1) or 1
    length = at.count("cutoff_len", 2048) or 2048
    if is_megatron(read):
        check(read, Sharding("megatron"), (micro, steps, AUTO), KEYS)
        read.ignore(_UNCOUNTED)
        return megatron_of(read, FRAMEWORK, model, micro, steps, length)
    shared = _sharding(read)
    job = replace(_job(read, shared, model), sequence_length=length)
    layout = Layout(pp=1, micro_batch=micro, schedule="1f1b", **{"tp": 1, "cp": 1} | shared.layout, **_recompute(read))
    check_layer_class(read, "fsdp_config.transformer_layer_cls_to_wrap", "LLF013", model)
    check(read, shared, (micro, steps, job.precision), KEYS)
    _say(read, shared)
    read.ignore(_UNCOUNTED)
    layout = sized(layout, read.held.ranks)
    batch, each = batched(read, micro, steps, layout)
    engine = "deepspeed-liger" if at.flag("enable_liger_kernel") and shared.engine == "deepspeed" else shared.engine
    return found_of(read, FRAMEWORK, model, replace(job, global_batch=batch), layout, engine, each)


def _sharding(read: Reading) -> Sharding:
    if read.has("deepspeed"):
        return deepspeed_of(read, "deepspeed")
    if read.has("fsdp"):
        one = read.at.held.get("fsdp_config")
        if one is not None and isinstance(one.value, str):
            read.note(f"fsdp_config {one.value[:100]} is another file, which is not read: its defaults are taken")
        return fsdp_of(read, "LLF010")
    if not read.held.accelerate:
        read.note(
            "no deepspeed and no fsdp here: DDP is counted; accelerate launch may start FSDP by a file of its own"
        )
    return unsharded(read)


def _recompute(read: Reading) -> dict[str, Any]:
    """All layers run again unless that is switched off; `gradient_checkpointing` of transformers has no say."""
    off = read.at.flag("disable_gradient_checkpointing")
    return {"recompute": "none" if off else "full"}


def _job(read: Reading, shared: Sharding, model: Model | None) -> Job:
    at = read.at
    kind = read.text("finetuning_type", "lora").lower()
    half, brain, pure = at.flag("fp16"), at.flag("bf16"), at.flag("pure_bf16")
    precision: Any = "bf16" if brain or pure else "fp16" if half else "fp32"
    if at.flag("fp8"):
        precision = "fp8"
    if precision == "fp32" and kind in ("lora", "oft"):
        read.note("neither bf16 nor fp16: frozen weights are multiplied in the type of the checkpoint, bf16 as counted")
        precision = "bf16"
    optimizer = optimizer_of(read, "optim", "LLF011")
    for name, ours in (("use_galore", "galore"), ("use_adam_mini", "adam_mini"), ("use_muon", "muon")):
        optimizer = ours if at.flag(name) else optimizer
    types = shared.types(precision) | _trained(read, kind)
    if pure and kind == "full" and shared.engine == "hf_trainer" and not (shared.fsdp and brain):
        types |= narrow(optimizer)
    rank: dict[str, Any] = {"galore_rank": at.count("galore_rank", 16) or 16} if optimizer == "galore" else {}
    return Job(precision=precision, optimizer=optimizer, beside=_beside(read, kind, model), **types, **rank)


def _trained(read: Reading, kind: str) -> dict[str, Any]:
    at = read.at
    if kind == "freeze":
        layers = at.count("freeze_trainable_layers", 2)
        read.note(
            f"freeze of all but {layers} layers is not counted: all layers are counted as trained, an upper bound"
        )
        return {}
    if kind not in ("lora", "oft"):
        return {}
    if kind == "oft":
        read.note("oft is not counted: read as lora")
    bits = at.count("quantization_bit", 16) or 16
    if bits not in (4, 8, 16):
        read.note(f"quantization_bit {bits} is counted as 8")
    double = at.switch("double_quantization", True) is not False
    rank = at.count("lora_rank", 8) or 8
    if read.has("additional_target"):
        read.note(f"additional_target {read.text('additional_target')[:80]}: not counted as trained")
    targets = targets_of(read, "lora_target", "lora_target" not in at.held)
    return adapted("dora" if at.flag("use_dora") else "lora", rank, targets, bits if bits in (4, 16) else 8, double)


def _beside(read: Reading, kind: str, model: Model | None) -> tuple[Beside, ...]:
    """The reference model of preference training: the same model again, or the adapters switched off."""
    stage = read.text("stage", "sft").lower()
    if stage in ("pt", "sft"):
        return ()
    read.note(f"stage {stage[:10]}: the training of one model is counted; pairs and rollouts are not")
    alone = read.text("pref_loss", "sigmoid").lower() in ("orpo", "simpo")
    if stage not in ("dpo", "kto") or alone or model is None or (kind == "lora" and not read.has("ref_model")):
        return ()
    return (Beside(model.name, "reference", float(parameters(model).total)),)


def _say(read: Reading, shared: Sharding) -> None:
    at, stage = read.at, read.text("stage", "sft").lower()
    if at.flag("packing") or at.flag("neat_packing") or (stage == "pt" and "packing" not in at.held):
        read.note("packed: sequences are full; give --packing mean=.. for documents of a known length")
    else:
        read.note("not packed: every sequence is counted at cutoff_len")
    if at.flag("enable_liger_kernel") and shared.engine == "hf_trainer":
        read.note("Liger kernels are counted with DeepSpeed alone; here eager ones are")


__all__ = ["COMMENTS", "ENGINE", "ENGINES", "HELD", "RELEASE", "is_of", "read", "write"]
