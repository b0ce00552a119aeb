"""Forty questions, as unlike as layouts are, that every format can be asked to write; each is legal for its engine."""

from dataclasses import dataclass, field, fields, replace
from functools import cache
from types import ModuleType
from typing import Any

from outlay.bill import Bill, count
from outlay.cluster.catalogue import clusters
from outlay.errors import InputError
from outlay.formats.setting import Run
from outlay.job import AUTO, Job
from outlay.layout.axes import Layout
from outlay.model.catalogue import find

SEQUENCE, BATCH = 2048, 256


@dataclass(frozen=True)
class Question:
    """One layout of one model under one engine."""

    name: str
    model: str
    engine: str
    ranks: int
    layout: dict[str, Any] = field(hash=False)
    job: dict[str, Any] = field(hash=False, default_factory=dict)


def _megatron(name: str, model: str, ranks: int, layout: dict[str, Any], **job: Any) -> Question:
    return Question(name, model, "megatron", ranks, layout, job)


def _titan(name: str, model: str, ranks: int, layout: dict[str, Any], **job: Any) -> Question:
    return Question(name, model, "fsdp2-torchtitan", ranks, layout, job)


def _trainer(name: str, model: str, ranks: int, layout: dict[str, Any], **job: Any) -> Question:
    return Question(name, model, "hf_trainer", ranks, layout, job)


def _deepspeed(name: str, model: str, ranks: int, layout: dict[str, Any], **job: Any) -> Question:
    return Question(name, model, "deepspeed", ranks, layout, job)


EVEN = (16, 16, 16, 13)
QUESTIONS = (
    _megatron("copies", "llama-3.1-8b", 16, {"zero": 0}),
    _megatron("tensor", "llama-3.1-8b", 16, {"tp": 8}),
    _megatron("pipeline", "llama-3.1-70b", 64, {"tp": 4, "pp": 4, "recompute": "full"}),
    _megatron("chunks", "llama-3.1-70b", 64, {"tp": 4, "pp": 4, "vpp": 5, "overlap_tp": True}),
    _megatron("uneven", "llama-3.1-8b", 16, {"pp": 4, "split": (7, 9, 9, 7)}),
    _megatron("context", "llama-3.1-8b", 16, {"cp": 4, "cp_kind": "ring"}),
    _megatron("ulysses", "qwen3-8b", 16, {"cp": 2, "cp_kind": "ulysses"}),
    _megatron("modules", "llama-3.1-8b", 16, {"tp": 2, "recompute_modules": ("core_attn", "mlp")}),
    _megatron("some layers", "gpt3-175b", 64, {"tp": 8, "pp": 8, "recompute": "full", "recompute_layers": 3}),
    _megatron("experts", "mixtral-8x7b", 32, {"tp": 2, "ep": 8, "etp": 1}),
    _megatron("expert tensor", "mixtral-8x7b", 32, {"tp": 2, "ep": 4, "etp": 2}),
    _megatron("deduplicated", "deepseek-v3", 256, {"ep": 32, "pp": 4, "split": EVEN, "moe_dispatch": "deduplicated"}),
    _megatron("latent", "deepseek-v2-lite", 16, {"tp": 2, "ep": 8, "recompute_modules": ("mla_up_proj", "moe_act")}),
    _megatron("delayed fp8", "llama-3.1-8b", 16, {"tp": 2}, precision="fp8_delayed"),
    _megatron("mxfp8", "llama-3.1-70b", 64, {"tp": 4, "pp": 2}, precision="mxfp8", gather_dtype="fp8"),
    _megatron("fp4", "llama-3.1-8b", 16, {}, precision="nvfp4"),
    _megatron("optimizer away", "llama-3.1-8b", 16, {"tp": 2, "offload_optimizer": 0.5}),
    _megatron("fp16", "gpt3-175b", 64, {"tp": 8, "pp": 4}, precision="fp16"),
    _megatron("muon", "qwen3-8b", 16, {"zero": 0}, optimizer="muon"),
    _megatron("growing batch", "llama-3.1-8b", 16, {"tp": 2}, batch_rampup=(64, 64, 100_000)),
    _titan("shards", "llama-3.1-8b", 16, {}),
    _titan("hybrid", "llama-3.1-8b", 64, {"dp_replicate": 4, "recompute": "full"}),
    _titan("gathered", "qwen3-14b", 32, {"zero": 2, "tp": 2, "overlap_tp": True}),
    _titan("interleaved", "llama-3.1-70b", 64, {"tp": 2, "pp": 4, "vpp": 2, "zero": 2}),
    _titan("zero bubble", "llama-3.1-8b", 32, {"pp": 4, "vpp": 2, "schedule": "zbv", "zero": 2}),
    _titan("long", "llama-3.1-8b", 64, {"cp": 8, "recompute_modules": ("all_but_other_matrices",)}),
    _titan("experts of torchtitan", "deepseek-v2-lite", 32, {"ep": 8, "micro_batch": 2, "loss_chunks": 8}),
    _titan("big experts", "deepseek-v3", 256, {"ep": 32, "pp": 4, "split": EVEN, "zero": 2}),
    _titan("rows in fp8", "llama-3.1-8b", 16, {"tp": 2}, precision="fp8_rowwise"),
    _titan("narrow state", "qwen3-32b", 32, {}, moment_dtype="bf16"),
    _titan("all away", "llama-3.1-8b", 8, {"offload_optimizer": 1.0, "offload_parameters": 1.0}),
    _trainer("plain copies", "llama-3.1-8b", 8, {"zero": 0}),
    _trainer("wrapped", "qwen3-8b", 16, {"zero": 3, "recompute": "full"}),
    _trainer("wrapped long", "llama-3.1-8b", 16, {"zero": 3, "cp": 4, "tp": 2}),
    _trainer("adapters", "llama-3.1-8b", 8, {"zero": 3}, adapter="lora", adapter_rank=32),
    _deepspeed("stage 1", "llama-3.1-8b", 16, {"zero": 1, "micro_batch": 2}),
    _deepspeed("stage 2 on the host", "llama-3.1-8b", 16, {"zero": 2, "offload_optimizer": 1.0}, precision="fp16"),
    _deepspeed("stage 3 on the host", "llama-3.1-70b", 64, {"zero": 3, "offload_optimizer": 0.5}),
    _deepspeed("stages", "llama-3.1-8b", 16, {"zero": 1, "pp": 4, "recompute": "full"}),
    _deepspeed("sequence", "qwen3-8b", 16, {"zero": 3, "cp": 4, "offload_parameters": 1.0}),
)


@cache
def bill_of(question: Question) -> Bill:
    """The bill of a question on B200."""
    (cluster,) = clusters(f"{question.ranks}xb200")
    job = Job(**({"sequence_length": SEQUENCE, "global_batch": BATCH} | question.job))
    return count(find(question.model), job, cluster, Layout(**question.layout), question.engine)


def run_for(question: Question, form: ModuleType) -> Run | None:
    """What a format is asked to write, or None where its framework has a rule against it, as `outlay export` has it."""
    bill = bill_of(question)
    if bill.engine.name not in form.ENGINES:
        foreign = {each.name: AUTO for each in fields(bill.layout) if each.name not in form.HELD}
        try:
            under = count(bill.model, bill.job, bill.cluster, replace(bill.layout, **foreign), form.ENGINE)
        except InputError:
            return None
        if under.violations:
            return None
    return Run(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)
