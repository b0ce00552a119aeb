"""What an engine cannot do, and its own rules: one row a rule, by its facts or by its name."""

from typing import Any

from ..engines.engine import MEGATRON
from .predicates import (
    groups_deal,
    has_axis,
    has_cp_kind,
    has_recompute,
    has_schedule,
    kv_heads,
    longest_stage,
    recompute_part,
    scan_groups,
    scan_heads,
    shards_deal_experts,
    spelled,
)
from .rule import Rule
from .stages import chunk_sizes

TORCH = ("fsdp2", "fsdp2-uncompiled", "fsdp2-torchtitan")
MAXTEXT = ("maxtext", "maxtext-gpu")
DEEPSPEED = ("deepspeed", "deepspeed-liger", "megatron_deepspeed")
# Those that cut layers themselves, and can count embedding and head as a layer each: partition_method
# type:transformer|embedding (bigscience-workshop/bigscience train/tr11-176B-ml).
COUNT_ENDS = ("megatron_deepspeed", "megatron_deepspeed-2021")
# Those whose schedules are all that they run. Forks of Megatron and of torch run others.
OWN_SCHEDULES = (*DEEPSPEED, "nanotron", *MAXTEXT)


def no_axis(code: str, axis: str, name: str) -> Rule:
    """The rule that an engine has an axis of parallelism, if the layout has."""
    return Rule(
        code,
        f"the engine has no {name}",
        f"{axis} is 1 with an engine that has no {name}",
        axis,
        lambda at: has_axis(at, axis),
        lambda at: f"{axis} {getattr(at.layout, axis)}, {at.engine.name}",
    )


def with_ends(at: Any) -> bool:
    """Whether a split is that of embedding and head as a layer each, and the engine can count them so."""
    sizes = chunk_sizes(at.model.layers, at.layout.pp, at.layout.vpp, counts_ends=True)
    return at.engine.name in COUNT_ENDS and list(at.layout.split) == sizes


ENGINE_RULES: tuple[Rule, ...] = (
    no_axis("LAY026", "tp", "tensor parallelism"),
    no_axis("LAY027", "cp", "context parallelism"),
    no_axis("LAY028", "pp", "pipeline"),
    no_axis("LAY029", "ep", "expert parallelism"),
    no_axis("LAY030", "etp", "tensor parallelism inside an expert"),
    Rule(
        "LAY031",
        "a pipeline does not go with this ZeRO stage",
        "DeepSpeed: with pp > 1, ZeRO-0 and ZeRO-1 alone: gradients accumulate over the micro-batches, ZeRO-2 would"
        " reduce them in each, and ZeRO-3 would gather the weights in each too",
        "zero",
        lambda at: (at.layout.pp == 1) | (at.layout.zero <= at.engine.zero_with_pp),
        lambda at: f"zero {at.layout.zero}, pp {at.layout.pp:,}",
    ),
    Rule(
        "LAY032",
        "tensor parallelism does not go with this ZeRO stage",
        "DeepSpeed: with AutoTP, ZeRO-0 to ZeRO-2",
        "zero",
        lambda at: (at.layout.tp == 1) | (at.layout.zero <= at.engine.zero_with_tp),
        lambda at: f"zero {at.layout.zero}, tp {at.layout.tp:,}",
    ),
    Rule(
        "LAY033",
        "the engine does not run this schedule",
        "DeepSpeed: 1f1b; nanotron: 1f1b and gpipe (afab); MaxText: gpipe, and looped_bfs with repeats",
        "schedule",
        has_schedule,
        lambda at: f"{at.layout.schedule}, {at.engine.name}",
        OWN_SCHEDULES,
    ),
    Rule(
        "LAY034",
        "the engine's context parallelism is of another kind",
        "DeepSpeed: ulysses; nanotron: ring; torchtitan: all_gather or ring; others: all",
        "cp_kind",
        has_cp_kind,
        lambda at: f"{at.layout.cp_kind}, {at.engine.name}",
    ),
    Rule(
        "LAY035",
        "the engine cuts the layers itself",
        "DeepSpeed, nanotron and MaxText take no --split; Megatron-DeepSpeed the one that counts both ends as a layer",
        "split",
        lambda at: at.engine.splits_layers or not at.layout.split or with_ends(at),
        lambda at: f"{len(at.layout.split)} numbers, {at.engine.name}",
    ),
    Rule(
        "LAY036",
        "fewer key/value heads than tp",
        "nanotron: tp is at most the key/value heads",
        "tp",
        lambda at: at.layout.tp <= min(kv_heads(at), default=at.layout.tp),
        lambda at: f"{spelled(kv_heads(at))} key/value heads, tp {at.layout.tp:,}",
        ("nanotron",),
    ),
    Rule(
        "LAY037",
        "too few micro-batches for 1F1B",
        "nanotron: 1F1B needs pp - 1 micro-batches",
        "global_batch",
        lambda at: (at.layout.schedule != "1f1b") | (at.micro_batches >= at.layout.pp - 1),
        lambda at: f"{at.micro_batches:.6g} micro-batches, {at.layout.pp:,} stages",
        ("nanotron",),
    ),
    Rule(
        "LAY038",
        "the pipeline does not divide the layers",
        "MaxText: stages x repeats x layers a stage = layers, so pp x vpp must divide them",
        "pp",
        lambda at: at.model.layers % (at.layout.pp * at.layout.vpp) == 0,
        lambda at: f"{at.model.layers} layers / ({at.layout.pp:,} x {at.layout.vpp:,})",
        MAXTEXT,
    ),
    Rule(
        "LAY039",
        "the pipeline does not divide the micro-batches",
        "MaxText: num_pipeline_microbatches is a multiple of the stages",
        "global_batch",
        lambda at: at.micro_batches % at.layout.pp == 0,
        lambda at: f"{at.micro_batches:.6g} micro-batches / pp {at.layout.pp:,}",
        MAXTEXT,
    ),
    Rule(
        "LAY040",
        "copies without shards",
        "Accelerate: with tp or cp, dp_replicate > 1 needs dp_shard > 1",
        "dp_shard",
        lambda at: (at.layout.dp_replicate == 1) | (at.layout.tp * at.layout.cp == 1) | (at.layout.dp_shard > 1),
        lambda at: f"dp_replicate {at.layout.dp_replicate:,}, tp {at.layout.tp:,}, cp {at.layout.cp:,}",
        ("hf_trainer",),
    ),
    Rule(
        "LAY041",
        "tp and cp do not divide the sequence",
        "torchtitan: with sp and cp > 1, 2 x tp x cp must divide the sequence",
        "cp",
        lambda at: (at.layout.cp == 1) | (at.job.sequence_length % (2 * at.layout.sliced * at.layout.cp) == 0),
        lambda at: f"{at.job.sequence_length:,} tokens / (2 x {at.layout.sliced:,} x {at.layout.cp:,})",
        ("fsdp2-torchtitan",),
    ),
    Rule(
        "LAY060",
        "experts are dealt beyond a group of shards",
        "torchtitan: ep divides dp_shard x cp x tp, as copies hold whole sets of experts",
        "ep",
        shards_deal_experts,
        lambda at: f"tp {at.layout.tp}, cp {at.layout.cp}, dp_shard {at.layout.dp_shard}; ep {at.layout.ep}",
        ("fsdp2-torchtitan",),
    ),
    Rule(
        "LAY045",
        "context parallelism is for attention alone",
        "in a model with recurrent layers cp is 1: DeepSpeed, the transformers Trainer and torchtitan hand on no state;"
        " MaxText gathers the sequence on every rank; nanotron has no such layer",
        "cp",
        lambda at: (at.layout.cp == 1) | (at.engine.scan_context != "none") | (not scan_heads(at)),
        lambda at: f"cp {at.layout.cp:,}, {at.engine.name}",
    ),
    Rule(
        "LAY046",
        "the groups of Mamba-2 cannot be dealt",
        "Megatron-Core: tp must divide the groups, and cp divide those of a rank or be a multiple of them",
        "tp",
        groups_deal,
        lambda at: f"{spelled(scan_groups(at))} groups, tp {at.layout.tp:,}, cp {at.layout.cp:,}",
        MEGATRON,
    ),
    Rule(
        "LAY043",
        "the engine does not recompute this part of the layers",
        "the transformers Trainer: every n-th layer, so layers / n rounded up; nanotron, MaxText: all layers or none",
        "recompute_layers",
        recompute_part,
        lambda at: f"{at.layout.recompute_layers:,} of {longest_stage(at)} layers, {at.engine.name}",
    ),
    Rule(
        "LAY044",
        "the engine does not have this kind of recompute",
        "the transformers Trainer and nanotron recompute whole layers: none, full",
        "recompute",
        has_recompute,
        lambda at: f"{at.layout.recompute}; {at.engine.name} has {', '.join(at.engine.recomputes)}",
    ),
)
