"""axolotl's YAML: read as people write it, written with comments. Checked against axolotl 0.19.0."""

import re
from dataclasses import replace
from typing import Any

from ...job import AUTO, Job
from ...layout.axes import Layout
from ..fine_tuning.adapters import adapted, targets_of
from ..fine_tuning.keys import keys_of
from ..fine_tuning.reading import (
    Reading,
    batched,
    check_layer_class,
    found_of,
    misspelled_keys,
    model_of,
    narrow,
    optimizer_of,
    sized,
)
from ..fine_tuning.sharding import Sharding, deepspeed_of, fsdp_of
from ..fine_tuning.text import hold
from ..fine_tuning.writing import HELD
from ..setting import Found
from ..source import text_of
from .rules import check
from .write import RELEASE, write

ENGINE, ENGINES = "hf_trainer", ("hf_trainer", "deepspeed", "deepspeed-liger")
COMMENTS = True
KEYS = keys_of(__name__)
OPTIMIZERS = {"muon": "muon", "ao_adamw_8bit": "adam8bit", "optimi_adamw": "adam", "flash_adamw": "adam"}
OTHERS = (
    "ao_adamw_4bit", "ao_adamw_fp8", "adopt_adamw", "adamc", "came_pytorch", "dion", "sinkgd", "polora", "flash_adam",
    "flash_sgd", "flash_sgdw", "flash_lion", "q_galore_adamw8bit",
)  # fmt: skip
FRAMEWORK, LIKE = "axolotl", "base_model or micro_batch_size"
OF_ITS_OWN = re.compile(r"^[\"']?(micro_batch_size|sequence_len|datasets|sample_packing|val_set_size)[\"']?\s*:", re.M)
# Settings that are read for what they are, and change no count.
_UNCOUNTED = """
    model_type tf32 bfloat16 float16 flash_attention sdp_attention attn_implementation pad_to_sequence_len
    lora_alpha lora_dropout optim_args gradient_checkpointing_kwargs
    gradient_checkpointing_kwargs.use_reentrant ddp sequence_parallel_degree heads_k_stride
    ring_attn_func fp8_config fp8_enable_fsdp_float8_all_gather fsdp_version fsdp_config.fsdp_version
"""


def is_of(text: str) -> bool:
    """Whether a text is YAML with axolotl's name of the model and another key of its own."""
    return bool(re.search(r"^[\"']?base_model[\"']?\s*:", text, re.M)) and bool(OF_ITS_OWN.search(text))


def read(content: bytes) -> Found:
    """What axolotl's YAML says. Raises InputError (FMT002, FMT003, FMT004, FMT005) with line and column."""
    read = Reading(hold(text_of(content), KEYS, FRAMEWORK, LIKE))
    at = read.at
    misspelled_keys(read, KEYS, "AXO015", "axolotl reads no such key, and says nothing of it")
    read.unknown({})
    model = model_of(read, "base_model")
    shared = _sharding(read)
    layout = _layout(read, shared)
    job = _job(read, shared)
    micro, steps = _steps(read)
    job = replace(job, sequence_length=at.count("sequence_len", 512))
    _say(read, shared)
    check_layer_class(read, "fsdp_config.transformer_layer_cls_to_wrap", "AXO014", model)
    check(read, shared, layout, micro)
    read.ignore(_UNCOUNTED)
    layout = replace(layout, micro_batch=micro)
    read.held.ranks = _ranks(read, layout) or read.held.ranks
    layout = sized(layout, read.held.ranks)
    batch, each = batched(read, micro, steps, layout)
    engine = "deepspeed-liger" if _liger(read) and shared.engine == "deepspeed" else shared.engine
    return found_of(read, FRAMEWORK, model, replace(job, global_batch=batch), layout, engine, each)


def _sharding(read: Reading) -> Sharding:
    if read.has("deepspeed"):
        return deepspeed_of(read, "deepspeed")
    if read.has("fsdp") or read.has("fsdp_config"):
        version = read.at.count("fsdp_version", 1) or 1
        found = fsdp_of(read, "AXO013", version)
        if read.at.flag("fsdp_config.offload_params"):
            found = replace(found, layout=found.layout | {"offload_optimizer": 1.0, "offload_parameters": 1.0})
        return found
    return Sharding(layout={"zero": 0})


def _layout(read: Reading, shared: Sharding) -> Layout:
    at = read.at
    tp = at.count("tensor_parallel_size", 1) or 1
    cp = at.count("context_parallel_size", 0) or at.count("sequence_parallel_degree", 1) or 1
    copies = at.count("dp_replicate_size", 1) or 1
    shards = at.count("dp_shard_size", AUTO) or AUTO
    kind = "ring" if cp > 1 else AUTO
    fields: dict[str, Any] = {"tp": tp, "cp": cp, "cp_kind": kind, "dp_replicate": copies, "dp_shard": shards}
    return Layout(**fields | shared.layout, pp=1, schedule="1f1b", **_recompute(read, shared))


def _recompute(read: Reading, shared: Sharding) -> dict[str, Any]:
    """Recompute of every layer, and what of the kept inputs goes to the host."""
    said = read.text("gradient_checkpointing", "false").lower()
    whole = said not in ("false", "none", "no") or shared.reruns
    moved = read.text("activation_offloading", "false").lower() not in ("false", "none", "no") or "offload" in said
    if read.at.flag("activation_offloading") or moved:
        read.note("activation offloading: all inputs of recomputed layers leave for the host")
    if read.has("selective_checkpointing"):
        read.note("selective_checkpointing keeps the output of attention: counted as recompute of whole layers")
    return {"recompute": "full" if whole else "none", "offload_activations": 1.0 if moved and whole else 0.0}


def _precision(read: Reading) -> Any:
    """bf16 is auto by default: bf16 where the card has it."""
    brain, half = read.text("bf16", "auto").lower(), read.at.flag("fp16")
    if read.at.flag("fp8"):
        return "fp8_rowwise" if read.text("fp8_config.recipe").startswith("rowwise") else "fp8_tensorwise"
    if brain in ("true", "full") or read.at.flag("bfloat16"):
        return "bf16"
    if brain == "auto" and not half:
        read.note("bf16 is auto: bf16 where the card has it, else fp16")
        return AUTO
    return "fp16" if half or read.at.flag("float16") else "fp32"


def _job(read: Reading, shared: Sharding) -> Job:
    precision = shared.precision or _precision(read)
    optimizer = optimizer_of(read, "optimizer", "", OPTIMIZERS | dict.fromkeys(OTHERS, "adam"))
    types = shared.types(precision) | _adapter(read)
    if "adapter" not in types and shared.engine == "hf_trainer" and precision in (AUTO, "bf16") and shared.fsdp != 1:
        read.note("weights are loaded in bf16, and trained so without DeepSpeed or FSDP1: gradients and moments too")
        types |= narrow(optimizer)
    return Job(precision=precision, optimizer=optimizer, **types)


def _adapter(read: Reading) -> dict[str, Any]:
    at, kind = read.at, read.text("adapter").lower()
    four, eight = at.flag("load_in_4bit"), at.flag("load_in_8bit")
    rank = at.count("lora_r", 0)
    if not kind or kind == "none":
        return {}
    if kind not in ("lora", "qlora"):
        read.note(f"adapter {kind[:40]} is not counted: read as lora")
    if not rank:
        read.lacks("adapter_rank", "adapter without lora_r")
    targets = targets_of(read, "lora_target_modules", at.flag("lora_target_linear"))
    if read.has("lora_modules_to_save"):
        read.note(f"lora_modules_to_save {', '.join(read.words('lora_modules_to_save'))[:80]}: not counted as trained")
    bits = 4 if four or kind == "qlora" else 8 if eight else 16
    return adapted("dora" if at.flag("peft_use_dora") else "lora", rank or 16, targets, bits)


def _steps(read: Reading) -> tuple[Any, Any]:
    """Micro-batch and accumulation: `batch_size` sets neither, since accumulation is 1 by itself."""
    micro = read.at.count("micro_batch_size", 1)
    steps = read.at.count("gradient_accumulation_steps", 1)
    whole = read.at.count("batch_size", 0)
    if whole and "gradient_accumulation_steps" not in read.at.held:
        rule = "axolotl 0.19 accumulates over gradient_accumulation_steps, which is 1 unless it is given"
        fix = f"gradient_accumulation_steps: {max(1, whole // (micro or 1))}"
        read.find("AXO002", "batch_size", "batch_size does not set the batch", rule, f"batch_size {whole}", fix, False)
    return micro or 1, steps or 1


def _say(read: Reading, shared: Sharding) -> None:
    if read.at.flag("sample_packing"):
        read.note("packed: sequences are full; give --packing mean=.. for documents of a known length")
    else:
        read.note("not packed: every sequence is counted at sequence_len")
    if read.has("rl"):
        read.note(f"rl {read.text('rl')[:20]}: the training of one model is counted, without a reference or rollouts")
    if read.has("unfrozen_parameters"):
        read.note("unfrozen_parameters: all parameters are counted as trained")
    if _liger(read) and shared.engine == "hf_trainer":
        read.note("Liger kernels are counted with DeepSpeed alone; here eager ones are")


def _liger(read: Reading) -> bool:
    return "ligerplugin" in read.text("plugins").lower()


def _ranks(read: Reading, layout: Layout) -> int:
    """The ranks where every degree of data parallelism is given."""
    if layout.dp_shard is AUTO or "dp_replicate_size" not in read.at.held:
        return 0
    return int(layout.tp * layout.cp * layout.dp_shard * layout.dp_replicate)


__all__ = ["COMMENTS", "ENGINE", "ENGINES", "HELD", "RELEASE", "is_of", "read", "write"]
