"""What LLaMA-Factory refuses, and what does not do what it seems to. Source: hparams/parser.py, finetuning_args.py."""

import re
from collections.abc import Collection
from typing import Any

from ..fine_tuning.reading import Reading, unknown_keys
from ..fine_tuning.sharding import Sharding, check_deepspeed
from .megatron import MEGATRON_KEYS, SURE

STAGES = ("pt", "sft", "rm", "ppo", "dpo", "kto")
KINDS = ("lora", "oft", "freeze", "full")
OF_LORA = ("use_dora", "use_rslora", "pissa_init", "loraplus_lr_ratio")
PROJECTED = ("use_galore", "use_apollo", "use_badam")
OF_STAGE_3 = re.compile(r"z(?:ero)?[-_]?3|stage[-_]?3", re.IGNORECASE)


def check(read: Reading, shared: Sharding, own: tuple[Any, Any, Any], known: Collection[str]) -> None:
    """Every finding in arguments that have been read. `own`: micro-batch, accumulation and precision."""
    at = read.at
    megatron = shared.engine == "megatron"
    rule = "LLaMA-Factory stops at an argument that it does not have"
    unknown_keys(read, {*known, *(MEGATRON_KEYS if megatron else ())}, "LLF001", rule)
    if at.flag("fp16") and at.flag("bf16"):
        read.find(
            "LLF003", "fp16", "both fp16 and bf16 are true", "at most one of them is true", "both", "leave fp16 out"
        )
    if megatron:
        _backend(read)
    else:
        _precision(read, shared)
        if shared.engine == "deepspeed":
            names = ("micro_batch", "steps", "precision")
            check_deepspeed(read, "deepspeed", shared, dict(zip(names, own, strict=True)), "LLF009")
        _memory(read)
    _methods(read)


def _backend(read: Reading) -> None:
    path = "use_mca" if "use_mca" in read.at.held else next(name for name in SURE if name in read.at.held)
    rule = "the Megatron backend starts by the environment alone: without USE_MCA=1 its arguments are refused"
    read.find(
        "LLF007", path, "Megatron's arguments need USE_MCA=1", rule, path, "USE_MCA=1 llamafactory-cli train", False
    )


def _precision(read: Reading, shared: Sharding) -> None:
    at = read.at
    if not at.flag("pure_bf16") or not read.has("deepspeed"):
        return
    stage, text = shared.layout.get("zero"), read.text("deepspeed")
    named = stage is None and bool(OF_STAGE_3.search(text))
    if stage == 3 or named:
        rule = "pure_bf16 does not go with ZeRO-3"
        got = "stage 3" if stage == 3 else f"by its name {text[:60]} is of stage 3"
        fix = "bf16: true, or another stage"
        read.find("LLF002", "pure_bf16", "pure_bf16 under ZeRO-3", rule, got, fix, serious=stage == 3)


def _memory(read: Reading) -> None:
    at = read.at
    said = at.held.get("gradient_checkpointing")
    if said is not None and at.switch("gradient_checkpointing", True) is False:
        rule = "it is on unless disable_gradient_checkpointing is true"
        fix = "disable_gradient_checkpointing: true"
        read.find(
            "LLF012", "gradient_checkpointing", "layers are recomputed all the same", rule, "false", fix, serious=False
        )


def _methods(read: Reading) -> None:
    """Kinds of fine-tuning, and what belongs to one of them alone."""
    at, kind = read.at, read.text("finetuning_type", "lora").lower()
    stage = read.text("stage", "sft").lower()
    if stage not in STAGES:
        read.find("LLF008", "stage", f"stage {stage[:40]} is none", f"one of {', '.join(STAGES)}", stage[:60], "sft")
    if kind not in KINDS:
        rule = f"one of {', '.join(KINDS)}"
        read.find("LLF008", "finetuning_type", f"finetuning_type {kind[:40]} is none", rule, kind[:60], "lora")
    if read.has("quantization_bit") and kind not in ("lora", "oft"):
        rule, fix = "weights in 4 or 8 bit are trained with lora or oft alone", "finetuning_type: lora"
        read.find("LLF004", "quantization_bit", f"quantised weights with {kind[:40]}", rule, kind[:60], fix)
    for name in OF_LORA:
        if kind != "lora" and read.has(name):
            rule, fix = f"{name} is for finetuning_type lora alone", "finetuning_type: lora"
            read.find("LLF005", name, f"{name} with {kind[:40]}", rule, kind[:60], fix)
    for name in PROJECTED:
        if at.flag(name) and kind == "lora":
            rule, fix = "LoRA does not go with GaLore, APOLLO or BAdam", "finetuning_type: full"
            read.find("LLF005", name, f"{name} with lora", rule, "lora", fix)
        if at.flag(name) and name != "use_badam" and read.has("deepspeed"):
            rule, fix = "GaLore and APOLLO do not go with DeepSpeed", "leave deepspeed out"
            read.find("LLF014", name, f"{name} with DeepSpeed", rule, "deepspeed", fix)
    if at.flag("neat_packing") and stage != "sft":
        rule, fix = "neat_packing is for stage sft alone", "packing: true"
        read.find("LLF006", "neat_packing", f"neat_packing in stage {stage[:40]}", rule, stage[:60], fix)
