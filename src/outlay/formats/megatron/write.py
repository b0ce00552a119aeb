"""Layout and task as the flags of Megatron-LM, and what they cannot say."""

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any, TypeAlias

from ...job import Job, types_of
from ...layout.stages import chunk_sizes, stage_layers
from ..leaving_out import cards_of, left_out, lost
from ..pipeline_layout import print_layout
from ..setting import Lost, Run, Setting
from .layout import CP_KINDS, DEGREES, DISPATCH, MODULES, RECIPES
from .model import flags_of_model

Flags: TypeAlias = Iterator[tuple[str, Any] | Lost]  # a flag with its value, () for a switch; or what is lost

_NAMES = """
    tp cp pp vpp ep etp sp zero dp_replicate dp_shard micro_batch schedule split cp_kind moe_dispatch recompute
    recompute_modules recompute_layers recompute_group overlap_tp overlap_ep overlap_dp graphs offload_optimizer
    sequence_length global_batch tokens precision optimizer expert_capacity pad_to_capacity batch_rampup
    frozen_format
"""
HELD = frozenset(_NAMES.split())
REASONS = {
    "adapter": "adapters are not part of its arguments",
    "frozen": "what is frozen is set in code",
    "packing": "it packs by its data set, not by a flag",
    "loss_chunks": "the output layer runs once",
    "offload_activations": "it offloads whole layers or modules (--cpu-offloading-num-layers), not a share",
    "gather_unit": "Megatron-FSDP gathers by its units",
}
OPTIMIZERS: Mapping[str, Mapping[str, Any]] = {
    "adam": {"optimizer": "adam"}, "sgd": {"optimizer": "sgd", "sgd-momentum": 0},
    "momentum": {"optimizer": "sgd", "sgd-momentum": 0.9}, "muon": {"optimizer": "muon"},
    "lion": {"optimizer": "lion"},
}  # fmt: skip
FSDP = {2: "optim_grads", 3: "optim_grads_params"}
NAMES = {ours: name for name, ours in CP_KINDS.items()}
DISPATCHERS = {ours: name for name, ours in DISPATCH.items()}
FP8 = {ours: name for name, ours in RECIPES.items()} | {"fp8": ""}


def flags_of_run(run: Run) -> tuple[list[Setting], list[Lost]]:
    """All flags, in the order of model, cut, batch, memory, types; and what is lost."""
    model, why = flags_of_model(run.model, run.job.sequence_length)
    missing = [Lost("model", run.model.name, f"{why}: its flags are not written")] if why else []
    made = [*_cut(run), *_pipeline(run), *_sharding(run), *_recompute(run), *_task(run.job, run), *_state(run)]
    flags = [Setting(f"--{one[0]}", _values(one[1])) for one in made if not isinstance(one, Lost)]
    gone = [one for one in made if isinstance(one, Lost)]
    return [*model, *flags], [*missing, *gone, *left_out(run, "megatron", HELD, REASONS)]


def _values(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, tuple | list) else (str(value),)


def _cut(run: Run) -> Flags:
    at = run.layout
    for name, long in DEGREES.items():
        if name != "ep" or run.model.experts:
            yield long.replace("_", "-"), int(getattr(at, name))
    if run.model.experts:
        yield "expert-tensor-parallel-size", int(at.etp)
        yield "moe-token-dispatcher-type", DISPATCHERS[at.moe_dispatch]
    if at.sp and at.tp > 1:
        yield "sequence-parallel", ()
    elif at.sp:
        yield lost(run, "sp", "with tp 1 there is nothing to cut")
    if at.cp > 1:
        yield "cp-comm-type", NAMES[at.cp_kind]
    if at.overlap_tp and at.tp > 1 and at.sp:
        yield "tp-comm-overlap", ()
    yield from _experts_overlap(run)
    if at.graphs == "full":
        yield from (("cuda-graph-impl", "full_iteration"), ("no-check-for-nan-in-loss-and-grad", ()))
    elif at.graphs == "partial":
        modules = ("attn", "moe_router") if run.model.experts else ("attn",)
        yield from (("cuda-graph-impl", "transformer_engine"), ("cuda-graph-modules", modules))


def _experts_overlap(run: Run) -> Flags:
    at = run.layout
    if not at.overlap_ep or at.ep == 1:
        return
    chunked = at.pp == 1 or at.vpp > 1
    if at.moe_dispatch != "all_gather" and at.recompute != "full" and chunked:
        yield "overlap-moe-expert-parallel-comm", ()
    else:
        yield lost(run, "overlap_ep", "it needs no all-gather of tokens, no full recompute, and chunks with pp > 1")


def _pipeline(run: Run) -> Flags:
    at, layers = run.layout, run.model.layers
    split = tuple(at.split or ())
    folded = bool(at.folded)
    if folded or at.schedule not in ("1f1b", "interleaved"):
        yield lost(run, "schedule", "it runs 1F1B, interleaved with chunks")
    even = layers % (at.pp * at.vpp) == 0
    if split and folded:
        yield lost(run, "split", "its chunks stand in another order there")
    elif split or not even:
        yield (
            "pipeline-model-parallel-layout",
            print_layout(chunk_sizes(layers, at.pp, at.vpp, split), run.model.mtp_layers),
        )
        return
    if at.vpp > 1:
        yield "num-virtual-stages-per-pipeline-rank", int(at.vpp)


def _sharding(run: Run) -> Flags:
    at = run.layout
    if at.zero:
        yield "use-distributed-optimizer", ()
    if at.zero > 1:
        yield from (("use-megatron-fsdp", ()), ("data-parallel-sharding-strategy", FSDP[int(at.zero)]))
        yield "ckpt-format", "fsdp_dtensor"
    if at.dp_replicate > 1 and at.zero:
        yield "num-distributed-optimizer-instances", int(at.dp_replicate)
    elif at.dp_replicate > 1:
        yield lost(run, "dp_replicate", "without ZeRO copies and shards are the same thing")
        yield lost(run, "dp_shard", "the same")
    if at.overlap_dp:
        yield "overlap-grad-reduce", ()
        yield from [("overlap-param-gather", ())] if at.zero else []


def _recompute(run: Run) -> Flags:
    at = run.layout
    if at.recompute == "none":
        return
    if at.recompute == "selective":
        known = tuple(name for name in at.recompute_modules if name in MODULES)
        if known:
            yield from (("recompute-granularity", "selective"), ("recompute-modules", known))
        if known != tuple(at.recompute_modules):
            yield lost(run, "recompute_modules", f"its modules are {', '.join(MODULES)}")
        if not known:
            yield lost(run, "recompute", "the same")
        return
    yield "recompute-granularity", "full"
    held = max(map(len, stage_layers(run.model.layers, at.pp, at.vpp, tuple(at.split or ()), False, bool(at.folded))))
    if at.recompute_layers >= held:
        yield from (("recompute-method", "uniform"), ("recompute-num-layers", int(at.recompute_group)))
        return
    each = ceil(at.recompute_layers / at.vpp)
    yield from (("recompute-method", "block"), ("recompute-num-layers", each))
    if each * at.vpp != at.recompute_layers:
        yield lost(run, "recompute_layers", f"it counts layers of one chunk: {each} of each of {at.vpp}")
    if at.recompute_group > 1:
        yield lost(run, "recompute_group", "layers run again one by one where a part of a stage does")


def _task(job: Job, run: Run) -> Flags:
    yield "seq-length", job.sequence_length
    yield "micro-batch-size", int(run.layout.micro_batch)
    yield "global-batch-size", job.global_batch
    if job.batch_rampup:
        yield "rampup-batch-size", job.batch_rampup
    if job.tokens:
        samples = ceil(job.tokens / job.sequence_length)
        yield "train-samples", samples
        if samples * job.sequence_length != job.tokens:
            yield lost(run, "tokens", f"whole sequences: {samples:,} of {job.sequence_length:,} tokens")
    if job.optimizer in OPTIMIZERS:
        yield from OPTIMIZERS[job.optimizer].items()
    else:
        yield lost(run, "optimizer", "it has adam, sgd, lion and muon: adam is written")
    if job.expert_capacity and run.model.experts:
        yield "moe-expert-capacity-factor", job.expert_capacity
    elif job.expert_capacity:
        yield lost(run, "expert_capacity", "the model has no experts")
    if job.pad_to_capacity and job.expert_capacity:
        yield "moe-pad-expert-input-to-capacity", ()
    elif job.pad_to_capacity:
        yield lost(run, "pad_to_capacity", "without a capacity there is nothing to pad to")


def _state(run: Run) -> Flags:
    """Precision, and the types of the state where they are not those that Megatron-LM takes by itself."""
    job, at = run.job, run.layout
    if job.precision in FP8 or job.precision == "mxfp8":
        yield from (("bf16", ()), ("fp8-format", "hybrid"))
        yield from [("fp8-recipe", FP8[job.precision])] if FP8[job.precision] else []
    elif job.precision == "nvfp4":
        yield from (("bf16", ()), ("fp4-format", "e2m1"), ("fp4-recipe", "nvfp4"))
    elif job.precision in ("bf16", "fp16"):
        yield job.precision, ()
    if job.gather_dtype == "fp8":
        yield from (
            [("fp8-param-gather", ())] if at.zero else [lost(run, "gather_dtype", "it needs the distributed optimizer")]
        )
    adam, offloads = job.optimizer == "adam", at.offload_optimizer > 0
    if offloads and adam and at.zero:
        yield from (("optimizer-cpu-offload", ()), ("optimizer-offload-fraction", at.offload_optimizer))
    elif offloads:
        yield lost(run, "offload_optimizer", "it needs adam and the distributed optimizer")
    yield from _types(run, aware=adam and at.zero > 0, offloads=offloads and adam and at.zero > 0)


def _types(run: Run, aware: bool, offloads: bool) -> Flags:
    """`aware`: the precision-aware optimizer can run, which all types but gradients in 16 bit need."""
    kept, job = types_of(run.job, run.engine), run.job
    types = kept.master, kept.gradients, kept.moments
    own = (kept.more_gradients, kept.more_optimizer, kept.apart) == (0, 0, True)
    aware = aware and kept.gradients in ("fp32", "bf16") and kept.master in ("fp32", "fp16", "remainder")
    sent = "fp32"
    if job.precision == "fp32":
        wide = not job.fixed and types[1:] == ("fp32", "fp32")
        yield from [] if wide else [lost(run, "bytes_per_parameter", "in fp32 it keeps 16 bytes, 4 of each kind")]
    elif job.precision == "fp16":
        sent = "fp16" if own and types[1] == "fp16" else "fp32"
        yield from [("accumulate-allreduce-grads-in-fp32", ())] if sent == "fp32" else []
        if not own or types != ("fp32", sent, "fp32"):
            yield lost(run, "bytes_per_parameter", "in fp16 master and moments are fp32, gradients that or fp16")
    elif not own or (types != ("fp32", "fp32", "fp32") and types != ("fp32", "bf16", "fp32") and not aware):
        yield lost(run, "bytes_per_parameter", "types other than its own need adam and the distributed optimizer")
    elif types == ("fp32", "bf16", "fp32") and not offloads:
        sent = "bf16"
        yield "grad-reduce-in-bf16", ()
    elif types != ("fp32", "fp32", "fp32") or offloads:
        sent = types[1]
        yield from _aware(run, types, offloads)
    if job.fixed and job.precision not in ("bf16", "fp16", "fp32"):
        yield lost(
            run, "bytes_per_parameter", "beside the weights it keeps quantised copies, which a named recipe leaves out"
        )
    yield from _wire(run, sent)


def _aware(run: Run, types: tuple[str, str, str], offloads: bool) -> Flags:
    master, gradients, moments = types
    yield from (("use-precision-aware-optimizer", ()), ("main-grads-dtype", gradients))
    yield "main-params-dtype", "fp16" if master == "fp16" else "fp32"
    yield from (("exp-avg-dtype", moments), ("exp-avg-sq-dtype", moments))
    if (master == "remainder") == offloads and master != "fp16":
        yield lost(run, "master_dtype", "on the device it keeps the 16 bits that bf16 lacks, on the host fp32")


def _wire(run: Run, gradients: str) -> Flags:
    if run.job.reduce_dtype not in ("usual", None, gradients):
        yield lost(run, "reduce_dtype", f"gradients are sent as they accumulate, {gradients}")


def launch_lines(run: Run) -> tuple[list[str], list[str]]:
    """Nodes and cards as variables, and the command that starts one process a card."""
    each, nodes = cards_of(run.cluster)
    fsdp = run.layout.zero > 1
    before = [f"NNODES={nodes}", f"GPUS_PER_NODE={each}"]
    before += [] if fsdp else ["export CUDA_DEVICE_MAX_CONNECTIONS=1"]
    after = [
        'torchrun --nnodes "$NNODES" --nproc-per-node "$GPUS_PER_NODE" --node-rank "${NODE_RANK:-0}" \\',
        '  --master-addr "${MASTER_ADDR:-localhost}" --master-port "${MASTER_PORT:-6000}" \\',
        '  pretrain_gpt.py "${ARGS[@]}" "$@"',
    ]
    return before, after
