"""What the words in the cells of a row mean: precision, sharding, recompute, schedule.

Words that mean nothing here are a reason to skip the row, never a guess.
"""

import re
from dataclasses import dataclass

from ..errors import quoted
from ..model.modules import MODULES
from .read import Skip


@dataclass(frozen=True)
class Sharding:
    """What `zero_or_fsdp` says. `zero` -1: nothing is said."""

    zero: int = -1
    fsdp: bool = False
    group: int = 0  # ranks of one shard group, where said
    hybrid: bool = False  # shards inside a node, copies between nodes
    slices: bool = False  # shards inside a slice, copies between slices
    offload_optimizer: float = 0.0
    offload_parameters: float = 0.0


@dataclass(frozen=True)
class Recompute:
    """What `recompute` says. `kind` empty: nothing is said."""

    kind: str = ""  # none, selective, full
    share: float = 1.0  # of the layers, under full
    modules: tuple[str, ...] = ()  # under selective; empty: the engine's own
    note: str = ""


@dataclass(frozen=True)
class Adapter:
    """What the remarks say of adapters. `kind` empty: everything is trained. `rank` 0: nothing is said."""

    kind: str = ""  # lora, qlora
    rank: int = 0
    frozen_format: str = ""


@dataclass(frozen=True)
class Order:
    """What `schedule` says. `name` empty: nothing is said."""

    name: str = ""
    note: str = ""


def has(pattern: str, text: str) -> bool:
    """Whether a pattern stands in a text, whatever the capitals."""
    return re.search(pattern, text, re.IGNORECASE) is not None


def precision_of(text: str, remarks: str = "") -> str:
    """The product's name of a precision; empty where nothing is said. A mixed one is named by its matrix multiplies.

    Which recipe of fp8 it is may stand in the remarks, as the name of a configuration: CS is current scaling.
    """
    if not text:
        return ""
    found = next((name for name, pattern in PRECISIONS if has(pattern, text)), "")
    if not found:
        reason = "counted" if has(r"int8|int4|nf4|mxfp4", text) else "known"
        raise Skip(f"precision {quoted(text)} is not {reason}")
    recipes = (name for name, pattern in RECIPES if found == "fp8" and has(pattern, f"{text} {remarks}"))
    return next(recipes, found)


RECIPES = (
    ("mxfp8", r"\bmxfp8|_FP8_MX"),
    ("fp8_tensorwise", r"tensorwise|current scaling|_FP8_CS|float8 linear"),
    ("fp8_rowwise", r"row-?wise"),
    ("fp8_blockwise", r"blockwise|sub-?channel|_FP8_SC"),
    ("fp8_delayed", r"delayed|_FP8_DS"),
)
PRECISIONS = (
    ("nvfp4", r"nvfp4"),
    ("fp8", r"fp8|float8"),
    ("bf16", r"bf16|bfloat|16-bit"),
    ("fp16", r"fp16|float16|half"),
    ("fp32", r"fp32|float32|tf32"),
)


def sharding_of(text: str, remarks: str = "") -> Sharding:
    """ZeRO stage or FSDP mode. FSDP with CPU offload keeps weights, gradients and optimizer on the host."""
    stage = re.search(r"zero-?\s?([0-3])", text, re.IGNORECASE)
    if stage:
        full = has(r"full cpu offload", text)
        return Sharding(
            int(stage[1]),
            offload_optimizer=float(full or has(r"opt(imizer)?-offload", text)),
            offload_parameters=float(full or has(r"param(eter)?s?-offload", text)),
        )
    if has(r"fsdp.*across", text):
        return Sharding(3, True, slices=True)
    if not has(r"fsdp|hsdp|full_shard|shard_grad_op", text):
        if text and not has(r"^(none|no|ddp|-)$", text):
            raise Skip(f"sharding {quoted(text)} is not known")
        return Sharding(0) if text else Sharding()
    offloaded = float(has(r"(?<!optimizer )\bCPU offload", remarks))
    group = re.search(r"fsdp=(\d+)", text, re.IGNORECASE)
    kept = has(r"shard_grad_op|not resharded", text)
    return Sharding(
        2 if kept else 3, True, int(group[1]) if group else 0, has(r"hsdp|hybrid", text),
        offload_optimizer=offloaded, offload_parameters=offloaded,
    )  # fmt: skip


def recompute_of(text: str) -> Recompute:
    """Which activations are computed again."""
    if not text or has(r"none stated|not stated", text):
        return Recompute()
    if has(r"^(none|no|off|0|false|no ac)$|sets none", text):
        return Recompute("none")
    if has(r"^(save_qkv_proj|qkv_proj_offloaded)$", text):
        return Recompute("full", note=f"{text} keeps queries, keys and values: they are counted as computed again")
    if found := re.search(r"^full in (\d+) % of layers$", text):
        return Recompute("full", int(found[1]) / 100)
    if has(r"every other", text):
        return Recompute("full", 0.5)
    if has(r"^(full|uniform|yes|true|block)\b", text):
        return Recompute("full")
    if has(r"^minimal$", text):
        return Recompute("selective", note="minimal remat keeps every matrix product: the attention core is recomputed")
    if has(r"selective \(?(attention|core|attention core)\b|^selective$|core.attn", text):
        return Recompute("selective")
    if has(r"selective \(?(per )?op\b|selective \(llama3_8b.toml default", text):
        return Recompute("selective", modules=("all_but_other_matrices",))
    if modules := tuple(name for name in MODULES if has(rf"\b{name}\b", text)):
        return Recompute("selective", modules=modules)
    raise Skip(f"recompute {quoted(text)} is not counted")


def schedule_of(text: str) -> Order:
    """The order of the pipeline's passes."""
    if not text or has(r"^no(ne| pipeline)?$", text):
        return Order()
    plain, barrier = re.subn(r" with all-reduce optimizer synchronisation$", "", text)
    if plain in SEARCHED:
        name, limit = SEARCHED[plain]
        waits = "; the wait of all ranks before the optimizer is not counted" if barrier else ""
        return Order(name, f"{plain} is found by a search under a limit of {limit}, and is counted as {name}{waits}")
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


# Qi et al. 2024, arXiv:2401.10241, section 4: the scheduler fills a limit of memory, p or 2 p of M_B on every rank,
# which is what the orders written by hand hold at most. ZB-V is the order of two chunks a rank.
SEARCHED = {
    "ZB-1p": ("zb_h1", "p micro-batches"),
    "ZB-2p": ("zb_h2", "2 p micro-batches"),
    "ZB-V": ("zbv", "p micro-batches"),
}


def sequence_parallel_of(text: str) -> str:
    """on, off, or empty where a row's remarks say nothing of sequence parallelism."""
    if has(r"(without|no) sequence.parallel|sequence.parallel\w*\s*[=:]?\s*(off|false|no)\b", text):
        return "off"
    return "on" if has(r"sequence.parallel|\bSP when TP", text) else ""


CONTEXT_KINDS = {"a2a": "ulysses", "p2p": "ring", "allgather": "all_gather", "all_gather": "all_gather"}


def context_kind_of(text: str) -> str:
    """How context-parallel ranks exchange keys and values, where remarks name Megatron's cp_comm_type; else empty."""
    found = re.search(r"\bcp_comm_type\s*[=:]\s*(\w+)", text, re.IGNORECASE)
    return CONTEXT_KINDS.get(found[1].lower(), "") if found else ""


def graphs_of(text: str) -> str:
    """CUDA graphs: of a step, or of parts of a layer; as much where tokens are dropped, for no size is read back."""
    if has(r"cuda_graph_(impl|scope)=full_iteration", text):
        return "full"
    return "partial" if has(r"cuda_graph_impl=transformer_engine|tokendrop", text) else ""


def dispatch_of(text: str) -> str:
    """How tokens reach experts, where a dispatcher that sends one copy to each node is named."""
    return "deduplicated" if has(r"deepep|hybridep", text) else ""


def network_of(text: str) -> float:
    """Gb/s a node that a row's remarks give for the network between nodes; 0 where they say nothing."""
    found = re.search(r"inter-?node (?:network )?(\d+) ?Gb(?:/s|ps)", text, re.IGNORECASE)
    return float(found[1]) if found else 0.0


def slices_of(text: str) -> int:
    """Slices of a pod that a run went over; 0 where its remarks say nothing."""
    found = re.search(r"(\d+) slices? of", text, re.IGNORECASE)
    return int(found[1]) if found else 0


def case_of(text: str) -> str:
    """The name that a source gives a run, by which readings rank by rank find it; empty where there is none."""
    found = re.search(r"\bcase=([\w.+-]+)", text)
    return found[1] if found else ""


def longest_of(text: str) -> int:
    """Tokens of the longest sample, where batches are padded to it; 0 where the remarks say nothing."""
    found = re.search(r"longest sample (\d+) tokens", text, re.IGNORECASE)
    return int(found[1]) if found else 0


def expert_cut_of(text: str) -> int:
    """Expert-tensor ranks; 0 where the remarks say nothing."""
    found = re.search(r"\bETP=(\d+)", text)
    return int(found[1]) if found else 0


def experts_of(text: str) -> tuple[int, int]:
    """Experts of a layer and experts a token is sent to, where all of a model are alike; 0 where nothing is said."""
    found = re.search(r"MoE (\d+) experts topk (\d+)", text)
    experts, active = (int(found[1]), int(found[2])) if found else (0, 0)
    return (experts, active) if 0 < active <= experts else (0, 0)


def dense_layers_of(text: str) -> int | None:
    """Leading layers without experts of a model whose layers were cut; None where the remarks say nothing."""
    found = re.search(r"layers trimmed.*\bdense_layers=(\d+)", text)
    return int(found[1]) if found else None


def optimizer_of(text: str) -> str:
    """The product's name of an optimizer; Adam where nothing else is said."""
    return next((name for name in ("muon", "adafactor", "lion") if has(rf"\b{name}\b", text)), "adam")


def adapter_of(text: str) -> Adapter:
    """Adapters that a row's name and remarks state."""
    if has(r"=\s*adapter\b", text):
        raise Skip("LLaMA-Adapter is not counted")
    if not has(r"\bQ?LoRA\b", text):
        return Adapter()
    rank = re.search(r"\bLoRA r(\d+)", text, re.IGNORECASE)
    formats = (("nf4_double", r"nf4-dq|\bQLoRA\b"), ("nf4", r"bnb\.nf4"))
    kept = next((name for name, pattern in formats if has(pattern, text)), "")
    return Adapter("qlora" if kept else "lora", int(rank[1]) if rank else 0, kept)
