"""Arguments of the transformers Trainer and of TRL's SFTTrainer: YAML, JSON, a command line, or a call in Python.

Checked against transformers 5.24 and TRL 1.16.
"""

import re
from dataclasses import replace
from math import ceil
from typing import Any

from ...job import AUTO, Job
from ...layout.axes import Layout
from ...model.model import Model
from ..fine_tuning.adapters import adapted, targets_of
from ..fine_tuning.keys import keys_of
from ..fine_tuning.python_calls import is_python
from ..fine_tuning.reading import Reading, batched, check_layer_class, found_of, model_of, narrow, optimizer_of, sized
from ..fine_tuning.sharding import Sharding, deepspeed_of, fsdp_of, unsharded
from ..fine_tuning.text import hold
from ..fine_tuning.writing import HELD
from ..setting import Found
from ..source import text_of
from .rules import check
from .write import RELEASE, write

ENGINE, ENGINES = "hf_trainer", ("hf_trainer", "deepspeed", "deepspeed-liger")
COMMENTS = True
# Of TRL: SFTConfig, ModelConfig and its script. Source: trl 1.16, sft_config.py, model_config.py.
_OF_TRL = """
    activation_offloading assistant_only_loss chat_template_path completion_only_loss dataset_kwargs dataset_num_proc
    dataset_text_field eos_token eval_packing loss_type max_length model_init_kwargs packing packing_strategy
    pad_to_multiple_of pad_token padding_free router_aux_loss_coef shuffle_dataset truncation_mode trust_remote_code
"""
_OF_MODEL = """
    model_name_or_path dtype torch_dtype attn_implementation use_peft lora_r lora_alpha lora_dropout
    lora_target_modules use_rslora use_dora load_in_8bit load_in_4bit bnb_4bit_quant_type use_bnb_nested_quant
    max_seq_length model_max_length block_size deepspeed_config peft_config quantization_config parallelism_config
"""
OF_TRL, OF_MODEL = frozenset(_OF_TRL.split()), frozenset(_OF_MODEL.split())
KEYS = keys_of(__name__) | OF_TRL | OF_MODEL
FRAMEWORK, LIKE = "the transformers Trainer", "per_device_train_batch_size"
SURE = (
    "per_device_train_batch_size", "per_device_eval_batch_size", "num_train_epochs", "gradient_checkpointing_kwargs",
    "activation_checkpointing", "save_strategy", "eval_strategy", "lr_scheduler_type", "dataloader_num_workers",
)  # fmt: skip
_SURE = "|".join(SURE).replace("_", "[-_]")
OF_ITS_OWN = re.compile(rf"(?:^[ \t]*[\"']?|\s--|[{{,]\s*[\"'])(?:{_SURE})\b[\"']?(?:[ \t]*:|[ =\n]|$)", re.M)
FIELDS = {
    "per_device_train_batch_size": "micro_batch",
    "gradient_accumulation_steps": "global_batch",
    "model_name_or_path": "model",
    "max_length": "sequence_length",
    "deepspeed": "zero",
    "deepspeed_config": "zero",
    "fsdp": "zero",
    "bf16": "precision",
    "fp16": "precision",
    "peft_config.r": "adapter_rank",
    "lora_r": "adapter_rank",
}
_UNCOUNTED = """
    gpus_per_node nnodes node_rank master_addr master_port
    attn_implementation lora_alpha lora_dropout optim_args gradient_checkpointing_kwargs activation_checkpointing_kwargs
    activation_checkpointing_kwargs.use_reentrant gradient_checkpointing_kwargs.use_reentrant peft_config
    quantization_config parallelism_config parallelism_config.sp_backend parallelism_config.cp_backend
    parallelism_config.sp_seq_length parallelism_config.sp_attn_implementation model_init_kwargs
    trust_remote_code torch_compile bnb_4bit_quant_type
    quantization_config.bnb_4bit_quant_type quantization_config.bnb_4bit_compute_dtype peft_config.lora_alpha
    peft_config.lora_dropout peft_config.bias peft_config.task_type use_rslora peft_config.use_rslora
"""


def is_of(text: str) -> bool:
    """Whether a text has an argument that is the Trainer's alone, or calls one of its classes of arguments."""
    return is_python(text) or bool(OF_ITS_OWN.search(text))


def read(content: bytes) -> Found:
    """What arguments of a Trainer say. Raises InputError (FMT002, FMT003, FMT004, FMT005) with line and column."""
    read = Reading(hold(text_of(content), KEYS, FRAMEWORK, LIKE))
    at = read.at
    read.unknown(FIELDS)
    trl = _is_trl(read)
    model = model_of(read, "model_name_or_path")
    shared = _sharding(read)
    micro = at.count("per_device_train_batch_size", 8) or 8
    steps = at.count("gradient_accumulation_steps", 1) or 1
    job = replace(_job(read, shared, trl), sequence_length=_length(read, trl))
    layout = replace(_layout(read, shared, trl, model), micro_batch=AUTO if _open(read, "micro_batch") else micro)
    check_layer_class(read, "fsdp_config.transformer_layer_cls_to_wrap", "TRN011", model)
    check(read, shared, (micro, steps, job.precision), (KEYS - OF_MODEL, OF_TRL, OF_MODEL))
    read.ignore(_UNCOUNTED)
    layout = sized(layout, read.held.ranks)
    unknown = _open(read, "micro_batch") or _open(read, "global_batch")
    batch, each = batched(read, AUTO if unknown else micro, steps, layout)
    engine = "deepspeed-liger" if at.flag("use_liger_kernel") and shared.engine == "deepspeed" else shared.engine
    if at.flag("use_liger_kernel") and engine == "hf_trainer":
        read.note("Liger kernels are counted with DeepSpeed alone; here eager ones are")
    return found_of(read, FRAMEWORK, model, replace(job, global_batch=batch), layout, engine, each)


def _open(read: Reading, field: str) -> bool:
    return any(one.field == field for one in read.missing)


def _is_trl(read: Reading) -> bool:
    """Whether TRL's SFTTrainer reads the arguments: by the class, or by an argument of its own."""
    named = any(name.endswith("Config") for name in read.held.calls)
    return named or any(name in OF_TRL or name == "use_peft" for name in read.at.held)


def _sharding(read: Reading) -> Sharding:
    if read.has("deepspeed"):
        return deepspeed_of(read, "deepspeed")
    if read.has("fsdp"):
        one = read.at.held.get("fsdp_config")
        if one is not None and isinstance(one.value, str):
            read.note(f"fsdp_config {one.value[:100]} is another file, which is not read: its defaults are taken")
        return fsdp_of(read, "TRN003")
    return Sharding() if _open(read, "zero") else unsharded(read)


def _length(read: Reading, trl: bool) -> Any:
    """The sequence: TRL's max_length, or what a script calls it."""
    for name in ("max_length", "max_seq_length", "model_max_length", "block_size"):
        if found := read.at.count(name, 0):
            return found
    if "max_length" in read.held.unknown:
        return AUTO
    usual = not read.held.calls or "SFTConfig" in read.held.calls
    if trl and usual and "max_length" not in read.at.held:
        read.note("max_length is TRL's 1,024 where it is not given")
        return 1024
    read.lacks("sequence_length", "TrainingArguments hold no length: the tokenizer or the data set cuts")
    return AUTO


def _layout(read: Reading, shared: Sharding, trl: bool, model: Model | None) -> Layout:
    at, here = read.at, "parallelism_config"
    tp, cp = at.count(f"{here}.tp_size", 1) or 1, at.count(f"{here}.cp_size", 1) or 1
    sp = at.count(f"{here}.sp_size", 1) or 1
    ring = read.text(f"{here}.cp_handler.cp_comm_strategy") == "alltoall"
    kind = "ulysses" if sp > 1 else "ring" if ring else "all_gather"
    fields: dict[str, Any] = {
        "tp": tp, "cp": max(cp, sp), "cp_kind": kind if max(cp, sp) > 1 else AUTO,
        "dp_replicate": at.count(f"{here}.dp_replicate_size", 1) or 1,
        "dp_shard": at.count(f"{here}.dp_shard_size", AUTO) or AUTO,
    }  # fmt: skip
    return Layout(**fields | shared.layout, pp=1, schedule="1f1b", **_recompute(read, shared, trl, model))


def _recompute(read: Reading, shared: Sharding, trl: bool, model: Model | None) -> dict[str, Any]:
    """Recompute of decoder layers, all or every n-th; TRL has it on by itself."""
    at, name = read.at, "activation_checkpointing"
    said = at.switch(name, AUTO)
    said = at.switch("gradient_checkpointing", trl) if said is AUTO else said
    at.ask("gradient_checkpointing")
    if trl and name not in at.held and "gradient_checkpointing" not in at.held:
        read.note("gradient_checkpointing is on: TRL's default")
    every = at.count(f"{name}_kwargs.every_n_layers", 0) or at.count("gradient_checkpointing_kwargs.every_n_layers", 1)
    moved = at.flag("activation_offloading") or at.flag(f"{name}_kwargs.offload")
    whole = said is True or shared.reruns
    made: dict[str, Any] = {
        "recompute": "full" if whole else "none",
        "offload_activations": 1.0 if moved and whole else 0.0,
    }
    if whole and every > 1 and model:
        made["recompute_layers"] = ceil(model.layers / every)
    return made


def _job(read: Reading, shared: Sharding, trl: bool) -> Job:
    at = read.at
    half = at.flag("fp16")
    brain = at.switch("bf16", trl and not half)
    precision: Any = AUTO if _open(read, "precision") else "fp16" if half else "bf16" if brain is True else "fp32"
    if trl and "bf16" not in at.held and not half:
        read.note("bf16 is on: TRL's default")
    kind = read.text("model_init_kwargs.dtype") or read.text("dtype") or read.text("torch_dtype")
    kind = kind.lower().removeprefix("torch.") or ("float32" if trl else "")
    types = shared.types(precision) | _adapter(read, kind)
    bare = "adapter" not in types and shared.engine == "hf_trainer"
    optimizer = optimizer_of(read, "optim", "TRN002")
    if bare and kind in ("bfloat16", "bf16") and precision == "bf16" and not shared.fsdp:
        read.note("weights are loaded in bf16, and trained so without FSDP: gradients and moments too")
        types |= narrow(optimizer)
    elif bare and kind in ("", "auto") and not shared.fsdp:
        read.note("the type in which weights are loaded stands in code: fp32 is counted; --bytes 8 where it is bf16")
    other = [name for name in read.held.calls if name.endswith("Config") and name != "SFTConfig"]
    if other:
        read.note(f"{other[0]}: the training of one model is counted, without a reference, pairs or rollouts")
    if at.flag("packing"):
        read.note("packed: sequences are full; give --packing mean=.. for documents of a known length")
    if read.text("loss_type") == "chunked_nll":
        read.note("loss_type chunked_nll: the logits of all tokens are counted")
    return Job(precision=precision, optimizer=optimizer, **types)


def _adapter(read: Reading, kind: str) -> dict[str, Any]:
    """LoRA of PEFT's LoraConfig, or of TRL's flags."""
    at, here = read.at, "peft_config"
    flags = at.flag("use_peft")
    if here not in at.held and not flags:
        return {}
    rank = at.count(f"{here}.r", 0) or at.count("lora_r", 0) or (8 if here in at.held else 16)
    path = f"{here}.target_modules" if here in at.held else "lora_target_modules"
    bits = {"float32": 32}.get(kind, 16)
    for prefix in ("", "quantization_config."):
        bits = 4 if at.flag(f"{prefix}load_in_4bit") else 8 if at.flag(f"{prefix}load_in_8bit") else bits
    double = at.flag("use_bnb_nested_quant") or at.flag("quantization_config.bnb_4bit_use_double_quant")
    form = "dora" if at.flag("use_dora") or at.flag(f"{here}.use_dora") else "lora"
    return adapted(form, rank, targets_of(read, path), bits, double)


__all__ = ["COMMENTS", "ENGINE", "ENGINES", "HELD", "RELEASE", "is_of", "read", "write"]
