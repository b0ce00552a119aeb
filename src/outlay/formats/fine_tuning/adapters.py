"""Adapters as PEFT takes them: rank, targets, and the bits that frozen weights are kept in."""

from collections.abc import Mapping
from typing import Any

from ...engines.tables import kernel_set
from ...job import Job
from ...layout.training_rules import matrices
from ...model.trained import TARGETS
from ..setting import Run
from .reading import Reading

USUAL = Job().adapter_targets
ALL = ("all", "all-linear", "all_linear")
MATRICES = frozenset(name for names in TARGETS.values() for name in names)
# What PEFT takes where no target is named: q_proj and v_proj of Llama, Mistral, Qwen, Gemma. Source: peft 0.21,
# utils/constants.py, TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING.
OF_PEFT = ("q_proj", "v_proj")


def targets_of(read: Reading, path: str, everything: bool = False) -> tuple[str, ...]:
    """The matrices with an adapter; what PEFT takes by itself where none is named."""
    said = read.words(path)
    if everything or any(word in ALL for word in said):
        return USUAL
    known = tuple(dict.fromkeys(word for word in said if word in MATRICES))
    other = [word for word in said if word not in MATRICES]
    if other:
        read.note(f"adapters on {', '.join(other)[:100]} are not counted")
    if not said:
        read.note(f"{path} is not given: PEFT's q_proj and v_proj are taken, as it does for Llama, Qwen and Mistral")
    return known or OF_PEFT


def adapted(kind: str, rank: int, targets: tuple[str, ...], bits: int = 16, double: bool = True) -> dict[str, Any]:
    """The fields of a job with adapters beside weights of so many bits; 4 is NF4, its scales quantised or not."""
    if bits == 4:
        kept = {} if double and kind != "dora" else {"frozen_format": "nf4_double" if double else "nf4"}
        kind = "qlora" if kind == "lora" else kind
    else:
        kept = {8: {"frozen_format": "int8"}, 32: {"frozen_format": "32bit"}}.get(bits, {})
    return {"adapter": kind, "adapter_rank": rank, "adapter_targets": targets} | kept


FORMATS: Mapping[str, int] = {"nf4": 4, "nf4_double": 4, "int8": 8, "16bit": 16}


def bits_of(job: Job) -> int:
    """The bits of a frozen weight as bitsandbytes loads it, 0 where it has no such format."""
    kept = job.frozen_format or ("nf4_double" if job.adapter == "qlora" else "16bit")
    return FORMATS.get(kept, 0)


def named_targets(run: Run) -> list[str] | None:
    """Targets by the names of a checkpoint, those the model has; None where they are all linears that PEFT finds."""
    targets = tuple(run.job.adapter_targets)
    if targets == USUAL:
        return None
    has = matrices(run.model, kernel_set(run.engine.kernels))
    named = (name for word in targets for name in TARGETS.get(word, (word,)))
    return [name for name in dict.fromkeys(named) if name in has]
