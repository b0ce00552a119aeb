"""A layout as DeepSpeed's JSON, and what that cannot say."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from ...job import AUTO, types_of
from ..leaving_out import cards_of, left_out, lost
from ..setting import Lost, Run, Written

RELEASE = "deepspeed 0.19"
DRIVER = "deepspeed"
TYPES = {"adam": "AdamW", "lion": "Lion", "muon": "Muon"}
IN_CODE = "it is set in code"
_NAMES = """
    tp cp pp ep etp dp_shard zero micro_batch overlap_dp offload_optimizer offload_parameters global_batch
    precision optimizer recompute recompute_layers recompute_modules recompute_group vpp schedule dp_replicate
    sequence_length frozen_format
"""
HELD = frozenset(_NAMES.split())
REASONS = {
    "split": "PipelineModule(partition_method=..) shares the layers, in code",
    "cp_kind": "sequence_parallel_size is Ulysses",
    "adapter": "adapters are made in code (peft)",
    "frozen": "what is frozen is set in code",
    "packing": "the data set packs, in code",
    "tokens": "how long the run is stands in its script",
    "expert_capacity": "deepspeed.moe takes it in code",
    "pad_to_capacity": "the same",
    "offload_activations": "activation_checkpointing.cpu_checkpointing moves all of what is checkpointed, or nothing",
}


def write(run: Run) -> Written:
    """The configuration as plain JSON, which every reader of DeepSpeed's takes, so without comments."""
    made, gone = _nested((*_of_model(run), *_of_batch(run), *_of_zero(run), *_of_axes(run), *_of_state(run)))
    gone += left_out(run, DRIVER, HELD, REASONS)
    each, nodes = cards_of(run.cluster)
    line = f"deepspeed --num_nodes {nodes} --num_gpus {each} train.py --deepspeed --deepspeed_config ds_config.json"
    notes = (f"{RELEASE}, for {run.model.name} on {run.cluster.name}", f"launch: {line}", *_in_code(run))
    return Written(json.dumps(made, indent=2) + "\n", "ds_config.json", tuple(gone), notes)


def sections_of(run: Run) -> tuple[dict[str, Any], list[Lost]]:
    """ZeRO, its axes and the types of the state: what a trainer that starts DeepSpeed leaves to its file."""
    return _nested((*_of_zero(run), *_of_axes(run), *_of_state(run)))


Entries: TypeAlias = Iterator[tuple[str, Any] | Lost]


def _nested(entries: Iterable[tuple[str, Any] | Lost]) -> tuple[dict[str, Any], list[Lost]]:
    made: dict[str, Any] = {}
    gone: list[Lost] = []
    for one in entries:
        if isinstance(one, Lost):
            gone.append(one)
        else:
            _put(made, *one)
    return made, gone


def _put(made: dict[str, Any], path: str, value: Any) -> None:
    *steps, last = path.split(".")
    for step in steps:
        made = made.setdefault(step, {})
    made[last] = value


def _in_code(run: Run) -> Iterator[str]:
    at = run.layout
    if at.pp > 1:
        yield f"in code: PipelineModule(layers, num_stages={at.pp}), which pipeline.stages only repeats"
    if at.recompute == "full":
        yield "in code: model.gradient_checkpointing_enable()"
    if at.cp > 1:
        yield f"in code: UlyssesSPAttentionHF.register_with_transformers(.., sequence_parallel_size={at.cp})"


def _of_model(run: Run) -> Entries:
    yield Lost("model", run.model.name, IN_CODE)
    yield lost(run, "sequence_length", IN_CODE)


def _of_batch(run: Run) -> Entries:
    yield "train_batch_size", run.job.global_batch
    yield "train_micro_batch_size_per_gpu", int(run.layout.micro_batch)
    yield "gradient_accumulation_steps", run.micro_batches


def _of_zero(run: Run) -> Entries:
    at = run.layout
    yield "zero_optimization.stage", int(at.zero)
    yield "zero_optimization.overlap_comm", bool(at.overlap_dp)
    if at.offload_optimizer and at.zero:
        yield "zero_optimization.offload_optimizer.device", "cpu"
        if at.offload_optimizer < 1 and at.zero == 3:
            yield "zero_optimization.offload_optimizer.ratio", at.offload_optimizer
        elif at.offload_optimizer < 1:
            yield lost(run, "offload_optimizer", "a ratio needs stage 3: all of it leaves")
    elif at.offload_optimizer:
        yield lost(run, "offload_optimizer", "it needs ZeRO")
    if at.offload_parameters and at.zero == 3:
        yield "zero_optimization.offload_param.device", "cpu"
        if at.offload_parameters < 1:
            yield lost(run, "offload_parameters", "all of it leaves, or nothing")
    elif at.offload_parameters:
        yield lost(run, "offload_parameters", "it needs stage 3")
    if at.dp_replicate > 1:
        yield lost(run, "dp_replicate", "it shards over all data-parallel ranks (MiCS is gone)")
        yield lost(run, "dp_shard", "the same")


def _of_axes(run: Run) -> Entries:
    at = run.layout
    if at.tp > 1:
        yield "tensor_parallel.autotp_size", int(at.tp)
    if at.cp > 1:
        yield "sequence_parallel_size", int(at.cp)
    if at.pp > 1:
        yield "pipeline.stages", int(at.pp)
    if run.model.experts and (at.ep > 1 or at.etp > 1):
        yield from (("expert_parallel.enabled", True), ("expert_parallel.autoep_size", int(at.ep)))
        yield "expert_parallel.expert_tensor_parallel_size", int(at.etp)
    elif at.ep > 1 or at.etp > 1:
        yield from (lost(run, name, "the model has no experts") for name in ("ep", "etp"))
    if at.vpp > 1:
        yield lost(run, "vpp", "its pipeline has one chunk a stage")
    if at.schedule != "1f1b":
        yield lost(run, "schedule", "its pipeline runs 1F1B")
    if at.recompute != "none":
        names = ("recompute", "recompute_layers", "recompute_modules", "recompute_group")
        yield from (
            lost(run, name, IN_CODE) for name in names if name == "recompute" or getattr(at, name) not in (0, 1, ())
        )


def _of_state(run: Run) -> Entries:
    job = run.job
    narrow = job.precision if job.precision in ("bf16", "fp16", "fp32") else "bf16"
    if narrow != job.precision:
        yield lost(run, "precision", "it has bf16, fp16 and fp32: bf16 is written")
    if narrow != "fp32":
        yield f"{narrow}.enabled", True
    if job.optimizer in TYPES:
        yield "optimizer.type", TYPES[job.optimizer]
    else:
        yield lost(run, "optimizer", "it is made in code; AdamW is not written")
    yield from _of_types(run, narrow)


def _counts_narrow(run: Run) -> bool:
    """Whether a run in fp32 was counted with other bytes than fp32 has."""
    kept = types_of(run.job, run.engine)
    return run.job.fixed or (kept.gradients, kept.moments) != ("fp32", "fp32")


def _of_types(run: Run, narrow: str) -> Entries:
    """Types of the state. Where they are the engine's own nothing is written."""
    kept = types_of(run.job, run.engine)
    types = kept.master, kept.gradients, kept.moments
    own = (kept.more_gradients, kept.more_optimizer, kept.apart) == (0, 0, True)
    low = narrow != "fp32" and run.layout.zero > 0 and types[:2] == (narrow, narrow)
    if narrow == "fp32":
        yield from (
            [lost(run, "bytes_per_parameter", "in fp32 it keeps 16 bytes, 4 of each kind")]
            if _counts_narrow(run)
            else []
        )
    elif own and low and types[2] in ("fp32", narrow) and not (types[2] == narrow == "fp16"):
        yield f"{narrow}.{narrow}_master_weights_and_grads", True
        yield from [("bf16.bf16_optimizer_states", True)] if types[2] == narrow else []
    elif own and types[0] == "fp32" == types[2] and types[1] in ("fp32", narrow):
        yield from [("data_types.grad_accum_dtype", "fp32")] if types[1] == "fp32" else []
    else:
        yield lost(run, "bytes_per_parameter", "it keeps fp32 master and moments, or all in the type of the weights")
    if run.job.reduce_dtype not in ("usual", AUTO, narrow):
        yield "communication_data_type", run.job.reduce_dtype
    if run.job.gather_dtype not in (AUTO, narrow):
        yield lost(run, "gather_dtype", "weights are gathered in their own type")
