"""A layout as MaxText's YAML, and what that cannot say."""

from collections.abc import Iterator
from math import gcd, nextafter
from typing import Any, TypeAlias

from ...job import types_of, wire_of
from ..leaving_out import left_out, lost
from ..setting import Lost, Run, Written
from .keys import STATE
from .models import MUON, PADDED, name_of

RELEASE = "maxtext 0.2.5"
_NAMES = """
    tp cp cp_kind pp vpp ep etp dp_replicate dp_shard zero micro_batch schedule recompute recompute_layers
    recompute_modules loss_chunks offload_optimizer offload_parameters offload_activations sequence_length global_batch
    tokens precision optimizer expert_capacity pad_to_capacity frozen_format
"""
HELD = frozenset(_NAMES.split())
REASONS = {
    "split": "stages have equal layers",
    "sp": "activations are cut along tensor, as its rules say",
    "adapter": "adapters are not part of this file",
    "frozen": "trainable_parameters_mask names parameters, not parts",
    "packing": "it packs by its data set",
}
TORCH = {ours: name for name, ours in STATE.items()}
OPTIMIZERS = {"adam": "adamw", "sgd": "sgd", "muon": "muon"}
FORMATS = {
    "bf16": "", "fp16": "", "fp32": "", "fp8": "fp8", "fp8_delayed": "te_fp8_delayedscaling",
    "fp8_tensorwise": "te_fp8_currentscaling", "mxfp8": "te_mxfp8", "nvfp4": "te_nvfp4",
}  # fmt: skip
Entries: TypeAlias = Iterator[tuple[str, Any] | Lost]


def write(run: Run) -> Written:
    """The configuration as YAML over base.yml, with what it cannot say in its first comment."""
    tpu = run.cluster.accelerator.vendor == "Google"
    made = [*_mesh(run), *_pipeline_and_batch(run), *_memory(run), *_context(run, tpu), *_task(run, tpu), *_state(run)]
    gone = [one for one in made if isinstance(one, Lost)]
    driver = "maxtext" if tpu else "maxtext-gpu"
    gone += left_out(run, driver, HELD, REASONS)
    model = name_of(run.model)
    if not model:
        gone.insert(0, Lost("model", run.model.name, "MaxText has no model of this name and size"))
    elif model in PADDED:
        gone.insert(0, Lost("model.vocab", f"{run.model.vocab:,}", f"its {model} has {PADDED[model]:,}"))
    lines = [_comment(f"{RELEASE}. Written by outlay for {run.model.name} on {run.cluster.name}.")]
    lines += [_comment(f"NOT IN THIS FILE: {one}") for one in gone]
    lines += ["# Data, tokenizer, learning rate and output are yours.", 'base_config: "base.yml"']
    lines += [f'model_name: "{model}"'] if model else []
    lines += [f"hardware: {'tpu' if tpu else 'gpu'}"]
    lines += [f"{one[0]}: {_shown(one[1])}" for one in made if not isinstance(one, Lost)]
    start = "python3 -m maxtext.trainers.pre_train.train run.yml run_name=NAME base_output_directory=PATH"
    return Written("\n".join(lines) + "\n", "run.yml", tuple(gone), (f"launch: {start}",))


def _comment(text: str) -> str:
    return "# " + "".join(letter if letter.isprintable() else "?" for letter in text)


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else f"{value}"


def _mesh(run: Run) -> Entries:
    """The axes, all inside one slice: data for copies, fsdp for shards, of which experts take their own."""
    at = run.layout
    ep = gcd(int(at.ep), int(at.dp_shard))
    sharded = at.zero == 3
    if ep != at.ep:
        yield lost(run, "ep", f"the expert axis is a part of the shards: {ep} is written")
    if at.etp > 1:
        yield lost(run, "etp", "experts are cut over tensor as all else")
    if at.zero == 2:
        yield lost(run, "zero", "it shards the optimizer over data, or all over fsdp: all is written")
    if not sharded and at.zero < 2 and (at.cp > 1 or ep > 1):
        why = "weights are cut over context and expert whatever else is"
        yield from (lost(run, name, why) for name in ("zero", "dp_replicate", "dp_shard"))
    elif at.zero < 2 and at.dp_replicate > 1:
        why = "without shards of weights, copies and shards are one axis"
        yield from (lost(run, name, why) for name in ("dp_replicate", "dp_shard"))
    elif at.zero >= 2 and at.dp_shard == at.cp == 1:
        yield lost(run, "zero", "one rank has nothing to shard")
        if at.dp_replicate > 1:
            yield from (lost(run, name, "the same") for name in ("dp_replicate", "dp_shard"))
    shards = int(at.dp_shard) // ep
    fsdp = shards if at.zero >= 2 else 1
    yield "ici_data_parallelism", int(at.dp_replicate) * (1 if at.zero >= 2 else shards)
    yield "ici_fsdp_parallelism", fsdp
    yield from (("ici_tensor_parallelism", int(at.tp)), ("ici_context_parallelism", int(at.cp)))
    yield from (("ici_expert_parallelism", ep), ("ici_pipeline_parallelism", int(at.pp)), ("dcn_data_parallelism", 1))
    if at.zero == 1:
        yield "shard_optimizer_over_data", True


def _pipeline_and_batch(run: Run) -> Entries:
    at, job = run.layout, run.job
    several = run.micro_batches
    devices = int(at.world)
    passes = several if at.pp == 1 else 1
    yield "per_device_batch_size", batch_of_a_device(job.global_batch // passes, devices)
    yield "gradient_accumulation_steps", passes
    if at.pp == 1:
        return
    yield "num_layers_per_pipeline_stage", run.model.layers // int(at.pp * at.vpp)
    yield from (("num_pipeline_repeats", int(at.vpp)), ("num_pipeline_microbatches", several))
    yield "pipeline_parallel_layers", run.model.layers
    yield "scan_layers", True
    if at.schedule not in ("gpipe", "looped_bfs"):
        yield lost(run, "schedule", "its backward pass is the reverse of the whole forward pass")


def batch_of_a_device(whole: int, devices: int) -> float:
    """The batch of a device such that devices x it, cut to a whole number, is the batch again."""
    each = whole / devices
    while int(devices * each) < whole:
        each = nextafter(each, 2 * each)
    return each


def _memory(run: Run) -> Entries:
    at = run.layout
    moved = at.offload_activations
    if at.recompute == "none":
        yield "remat_policy", "minimal_with_context"
        yield lost(run, "recompute", "minimal_with_context keeps most: norms and activations run again")
    elif at.recompute == "selective":
        yield "remat_policy", "minimal_offloaded" if moved == 1 else "minimal"
        if tuple(at.recompute_modules) != ("core_attn",):
            yield lost(run, "recompute_modules", "minimal runs attention again, and what is between matrices")
    else:
        yield "remat_policy", "custom" if moved == 1 else "full"
        yield from [("decoder_layer_input", "offload")] if moved == 1 else []
    if moved not in (0, 1) or (moved and at.recompute == "none"):
        yield lost(run, "offload_activations", "it moves all of what a policy keeps, or nothing")
    for name, key in (("optimizer", "optimizer_memory_host_offload"), ("parameters", "parameter_memory_host_offload")):
        share = getattr(at, f"offload_{name}")
        if share:
            yield key, True
        if share not in (0, 1):
            yield lost(run, f"offload_{name}", "all of it leaves, or nothing")
    if at.loss_chunks > 1:
        yield "num_vocab_tiling", int(at.loss_chunks)


def _context(run: Run, tpu: bool) -> Entries:
    at = run.layout
    if at.cp == 1:
        return
    square = run.job.sequence_length % int(at.cp * at.cp) == 0 and at.cp % 2 == 0
    kind = at.cp_kind
    if kind == "ulysses" and not tpu:
        yield lost(run, "cp_kind", "Ulysses is of TPUs: all_gather is written")
        kind = "all_gather"
    if kind == "ring" and tpu and not square:
        yield lost(run, "cp_kind", "a ring of TPUs needs cp even and its square in the sequence: all_gather is written")
        kind = "all_gather"
    yield "context_parallel_strategy", kind
    if tpu and kind != "all_gather":
        yield from (("attention", "flash"), ("use_tokamax_splash", True), ("use_jax_splash", False))
        yield from [("context_parallel_load_balance", False)] if kind == "ulysses" else [("packing", False)]


def _task(run: Run, tpu: bool) -> Entries:
    job = run.job
    yield "max_target_length", job.sequence_length
    step = job.global_batch * job.sequence_length
    if job.tokens:
        steps = max(1, round(job.tokens / step))
        yield "steps", steps
        if steps * step != job.tokens:
            yield lost(run, "tokens", f"whole steps: {steps:,} of {step:,} tokens")
    named = FORMATS.get(job.precision, "")
    several = run.layout.pp == 1 and run.micro_batches > 1
    why = "it has no such numbers" if job.precision not in FORMATS else ""
    why = why or ("TransformerEngine is of GPUs" if named.startswith("te_") and tpu else "")
    why = why or ("these 8 bits do not go with gradient accumulation" if several and named in REFUSED else "")
    if why:
        yield lost(run, "precision", f"{why}: bf16 is written")
    yield "dtype", TORCH.get(job.precision, "bfloat16")
    yield "quantization", "" if why else named
    untried = job.optimizer == "muon" and not (name_of(run.model) or "default").startswith(MUON)
    if job.optimizer in OPTIMIZERS and not untried:
        yield "opt_type", OPTIMIZERS[job.optimizer]
    elif untried:
        yield lost(run, "optimizer", "it has Muon for other families: adamw is written")
    else:
        yield lost(run, "optimizer", "it has adamw, adam_pax, sgd and muon: adamw is written")
    if job.expert_capacity and run.model.experts:
        yield from (("capacity_factor", float(job.expert_capacity)), ("sparse_matmul", False), ("megablox", False))
        if not job.pad_to_capacity:
            yield lost(run, "pad_to_capacity", "it pads experts to their capacity")
    elif job.expert_capacity:
        yield from (lost(run, name, "the model has no experts") for name in ("expert_capacity", "pad_to_capacity"))


REFUSED = ("fp8", "te_fp8_delayedscaling")


def _state(run: Run) -> Entries:
    """Types of weights, moments and gradients: moments have the type of the weights."""
    kept = types_of(run.job, run.engine)
    own = (kept.more_gradients, kept.more_optimizer, kept.apart) == (0, 0, False) and kept.master == kept.moments
    if not own or kept.master not in TORCH or kept.gradients not in TORCH:
        yield lost(
            run, "bytes_per_parameter", "moments have the type of the weights, which are the master, or mu_dtype"
        )
    elif (kept.master, kept.gradients) != ("fp32", "fp32"):
        yield from (("weight_dtype", TORCH[kept.master]), ("grad_dtype", TORCH[kept.gradients]))
    reduced, gathered = wire_of(run.job, run.engine)
    if reduced != "fp32":
        yield lost(run, "reduce_dtype", "gradients are summed as XLA places them, in fp32 by grad_dtype")
    if gathered not in (run.job.precision, "bf16"):
        yield lost(run, "gather_dtype", "weights are gathered in the type of the multiplies")
