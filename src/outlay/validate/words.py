"""What the words in the cells of a row mean: precision, sharding, recompute, schedule.

Words that mean nothing here are a reason to skip the row, never a guess.
"""

import re
from dataclasses import dataclass

from ..errors import quoted
from .read import Skip


@dataclass(frozen=True)
class Sharding:
    """What `zero_or_fsdp` says. `zero` -1: nothing is said."""

    zero: int = -1
    fsdp: bool = False
    group: int = 0  # ranks of one shard group, where said
    hybrid: bool = False  # shards inside a node, copies between nodes
    offload_optimizer: float = 0.0
    offload_parameters: float = 0.0


@dataclass(frozen=True)
class Recompute:
    """What `recompute` says. `kind` empty: nothing is said."""

    kind: str = ""  # none, selective (the attention core), full
    share: float = 1.0  # of the layers, under full
    note: str = ""


@dataclass(frozen=True)
class Order:
    """What `schedule` says. `name` empty: nothing is said."""

    name: str = ""


def has(pattern: str, text: str) -> bool:
    """Whether a pattern stands in a text, whatever the capitals."""
    return re.search(pattern, text, re.IGNORECASE) is not None


def precision_of(text: str) -> str:
    """bf16, fp16, fp8 or fp32; empty where nothing is said. A mixed recipe is named by its matrix multiplies."""
    if not text:
        return ""
    if has(r"fp4|int8|int4|nf4", text):
        raise Skip(f"precision {quoted(text)} is not counted")
    found = next((name for name, pattern in PRECISIONS if has(pattern, text)), "")
    if not found:
        raise Skip(f"precision {quoted(text)} is not known")
    return found


PRECISIONS = (
    ("fp8", r"fp8|float8"),
    ("bf16", r"bf16|bfloat|16-bit"),
    ("fp16", r"fp16|float16|half"),
    ("fp32", r"fp32|float32|tf32"),
)


def sharding_of(text: str) -> Sharding:
    """ZeRO stage or FSDP mode."""
    stage = re.search(r"zero-?\s?([0-3])", text, re.IGNORECASE)
    if stage:
        full = has(r"full cpu offload", text)
        return Sharding(
            int(stage[1]),
            offload_optimizer=float(full or has(r"opt(imizer)?-offload", text)),
            offload_parameters=float(full or has(r"param(eter)?s?-offload", text)),
        )
    if not has(r"fsdp|hsdp|full_shard|shard_grad_op", text):
        if text and not has(r"^(none|no|ddp|-)$", text):
            raise Skip(f"sharding {quoted(text)} is not known")
        return Sharding(0) if text else Sharding()
    if has(r"across slices", text):
        raise Skip(f"sharding {quoted(text)} is not known")
    group = re.search(r"fsdp=(\d+)", text, re.IGNORECASE)
    kept = has(r"shard_grad_op|not resharded", text)
    return Sharding(2 if kept else 3, True, int(group[1]) if group else 0, has(r"hsdp|hybrid", text))


def recompute_of(text: str) -> Recompute:
    """Which activations are computed again."""
    if not text or has(r"none stated|not stated", text):
        return Recompute()
    if has(r"^(none|no|off|0|false|no ac)$|sets none", text):
        return Recompute("none")
    if has(r"every other", text):
        return Recompute("full", 0.5)
    if has(r"^(full|uniform|yes|true|block)\b", text):
        return Recompute("full")
    if has(r"selective \(?(attention|core|attention core)\b|^selective$|core.attn", text):
        return Recompute("selective")
    modules = re.search(r"modules=(\S+)", text)
    if modules and not has(r"\bmlp\b", modules[1]):
        return Recompute("none", note=f"recompute of {modules[1]} is not counted")
    raise Skip(f"recompute {quoted(text)} is not counted")


def schedule_of(text: str) -> Order:
    """The order of the pipeline's passes."""
    if not text or has(r"^no(ne| pipeline)?$", text):
        return Order()
    if has(r"zb|zero.?bubble|dual|variant|synchroni|chimera|hanayo", text):
        raise Skip(f"schedule {quoted(text)} is not counted")
    if has(r"non-interleaved", text):
        return Order("1f1b")
    if has(r"interleav|1f1b-i", text):
        return Order("interleaved")
    if has(r"1f1b", text):
        return Order("1f1b")
    if has(r"gpipe|f-then-b|fill.?drain", text):
        return Order("gpipe")
    raise Skip(f"schedule {quoted(text)} is not known")


def sequence_parallel_of(text: str) -> str:
    """on, off, or empty where a row's remarks say nothing of sequence parallelism."""
    if has(r"(without|no) sequence.parallel|sequence.parallel\w*\s*[=:]?\s*(off|false|no)\b", text):
        return "off"
    return "on" if has(r"sequence.parallel|\bSP when TP", text) else ""


def network_of(text: str) -> float:
    """Gb/s a node that a row's remarks give for the network between nodes; 0 where they say nothing."""
    found = re.search(r"inter-?node (?:network )?(\d+) ?Gb(?:/s|ps)", text, re.IGNORECASE)
    return float(found[1]) if found else 0.0
