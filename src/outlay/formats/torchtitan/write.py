"""A run as a script of torchtitan: the command line, and a function of the registry for what options cannot say."""

from collections.abc import Iterator
from math import ceil
from typing import Any, TypeAlias

from ...job import AUTO, types_of
from ...layout.stages import chunk_layers
from ..leaving_out import cards_of, left_out, lost
from ..setting import Lost, Run, Written
from ..stage_layout import module_names
from .layout import NAMES, SINGLE
from .registry import Configuration, of_model

RELEASE = "torchtitan 0.3"
DRIVER = "fsdp2-torchtitan"
_NAMES = """
    tp cp pp vpp ep sp zero dp_replicate dp_shard micro_batch schedule split cp_kind moe_dispatch recompute
    recompute_modules recompute_layers recompute_group loss_chunks overlap_tp graphs offload_optimizer
    offload_parameters sequence_length global_batch tokens precision optimizer frozen_format
"""
HELD = frozenset(_NAMES.split())
REASONS = {
    "adapter": "LoRAConverter stands in a function of one's own, with the names of its layers",
    "frozen": "what is frozen is set in code",
    "packing": "the data set packs, in code",
    "etp": "0.3 has no degree for it: experts borrow the ranks of tp",
    "overlap_dp": "FSDP2 gathers ahead and scatters behind by itself",
    "offload_activations": "no policy of activation checkpointing offloads",
    "accumulate_whole": "every micro-batch scatters its gradients",
}
PRECISIONS = {
    "fp8_rowwise": "Float8LinearConverter", "mxfp8": "MXFP8LinearConverter", "nvfp4": "NVFP4LinearConverter",
}  # fmt: skip
BY_ROWS = ("fp8", "fp8_delayed", "fp8_tensorwise", "fp8_blockwise")  # float8 with other scales
FILTERS = {"fp8_rowwise": 'filter_fqns=["lm_head", "router.gate"], ', "mxfp8": "", "nvfp4": 'fqns=["layers"], '}
COMPILED = ("fsdp2-torchtitan", "fsdp2")
NAME = "outlay_run"
Options: TypeAlias = Iterator[tuple[str, Any] | Lost]  # an option with its value, None for a switch; or what is lost


def write(run: Run) -> Written:
    """The script, with what it cannot say in its first comment."""
    base = of_model(run.model)
    made = [*_batch(run), *_cut(run), *_pipeline(run), *_memory(run), *_state(run)]
    gone = [one for one in made if isinstance(one, Lost)]
    gone += left_out(run, DRIVER, HELD, REASONS)
    if base is None:
        gone.insert(0, Lost("model", run.model.name, f"{RELEASE} brings no configuration of its sizes"))
    elif run.model.mtp_layers:
        why = "the configuration has no multi-token prediction: num_mtp_layers and MTPLoss bring it, in a function"
        gone.insert(0, Lost("model.mtp_layers", f"{run.model.mtp_layers}", why))
    function, more = _function(run, base)
    gone += more
    lines = ["#!/bin/bash", _comment(f"{RELEASE}. Written by outlay for {run.model.name} on {run.cluster.name}.")]
    lines += [_comment(f"NOT IN THIS FILE: {one}") for one in gone]
    lines += ["# Data, tokenizer and learning rate are those of the configuration: add your own behind these options."]
    notes = (f"{base.name} reads chats: its data loader is yours to replace",) if base and base.chats else ()
    lines += [_comment(note) for note in notes]
    each, nodes = cards_of(run.cluster)
    lines += ["", f"NNODES={nodes}", f"NGPU={each}", *function, ""]
    named = '--module "${MODULE}" --config "${CONFIG}"'
    if base is not None:
        named = f"--module {NAME} --config {NAME}" if function else f"--module {base.module} --config {base.name}"
    lines += [
        'torchrun --nnodes "$NNODES" --nproc-per-node "$NGPU" --node-rank "${NODE_RANK:-0}" \\',
        '  --master-addr "${MASTER_ADDR:-localhost}" --master-port "${MASTER_PORT:-29500}" \\',
        f"  -m torchtitan.train {named} \\",
    ]
    lines += [f"  --{path}{_value(value)} \\" for path, value in (one for one in made if not isinstance(one, Lost))]
    lines += [f'  "$@" activation_checkpoint:{POLICIES[run.layout.recompute]}', ""]
    return Written("\n".join(lines), "train.sh", tuple(gone), notes)


POLICIES = {"none": "none", "selective": "selective", "full": "full"}


def _comment(text: str) -> str:
    """A comment of one line, whatever a name in it holds: what stands behind a line's end would be run."""
    return "# " + "".join(letter if letter.isprintable() else "?" for letter in text)


def _value(value: Any) -> str:
    return "" if value is None else f" {value}"


def _switch(path: str, on: bool) -> tuple[str, None]:
    section, _, name = path.partition(".")
    return (path if on else f"{section}.no-{name}"), None


def _function(run: Run, base: Configuration | None) -> tuple[list[str], list[Lost]]:
    """The here document of a function, where the configuration has other converters or another exchange of tokens."""
    precision, at = "fp8_rowwise" if run.job.precision in BY_ROWS else run.job.precision, run.layout
    wanted = precision if precision in PRECISIONS else "bf16"
    apart = at.ep > 1 and at.moe_dispatch == "deduplicated"
    if base is None:
        gone = [lost(run, "precision", "its converter stands in your registry")] if wanted != "bf16" else []
        other = at.ep > 1 and at.moe_dispatch != "all_to_all"
        return [], gone + ([lost(run, "moe_dispatch", "your registry says how tokens travel")] if other else [])
    has_backend = apart and base.module in ("deepseek_v3", "qwen3", "gpt_oss")
    gone = [lost(run, "moe_dispatch", "its model has no such exchange")] if apart and not has_backend else []
    if at.ep > 1 and at.moe_dispatch == "all_gather":
        gone.append(lost(run, "moe_dispatch", "tokens are exchanged all to all"))
    if wanted == base.precision and not has_backend:
        return [], gone
    compiled = run.engine.name in COMPILED
    names = [f'"{base.flavor}"', *(['moe_comm_backend="deepep"'] if has_backend else [])]
    imports = [f"from torchtitan.models.{base.module} import model_registry"]
    imports += [f"from torchtitan.models.{base.module}.config_registry import {base.name}"]
    if wanted != "bf16":
        imports.insert(0, f"from torchtitan.components.quantization import {PRECISIONS[wanted]}")
        given = f"{FILTERS[wanted]}model_compile_enabled={compiled}"
        names.append(f"converters=[{PRECISIONS[wanted]}.Config({given})]")
    body = [f"    config = {base.name}()", "    config.model_spec = model_registry("]
    body += [f"        {name}," for name in names] + ["    )", "    return config"]
    return ["", f"cat > {NAME}.py <<'PY'", *imports, "", "", f"def {NAME}():", *body, "PY"], gone


def _batch(run: Run) -> Options:
    at, job = run.layout, run.job
    local = job.global_batch // at.dp if at.pp > 1 else at.micro_batch
    yield "training.local_batch_size", int(local)
    yield "training.global_batch_size", int(job.global_batch)
    if at.pp > 1:
        yield "parallelism.pipeline_parallel_microbatch_size", int(at.micro_batch)
    yield "training.seq_len", int(job.sequence_length)
    if job.tokens:
        each = job.global_batch * job.sequence_length
        yield "training.steps", ceil(job.tokens / each)
        if ceil(job.tokens / each) * each != job.tokens:
            yield lost(run, "tokens", f"whole steps: {ceil(job.tokens / each):,} of {each:,} tokens")


def _cut(run: Run) -> Options:
    at = run.layout
    copies, shards = (at.dp, 1) if not at.zero else (at.dp_replicate, at.dp_shard)
    yield "parallelism.data_parallel_replicate_degree", int(copies)
    yield "parallelism.data_parallel_shard_degree", int(shards)
    yield "parallelism.tensor_parallel_degree", int(at.tp)
    yield "parallelism.context_parallel_degree", int(at.cp)
    yield "parallelism.pipeline_parallel_degree", int(at.pp)
    yield "parallelism.expert_parallel_degree", int(at.ep) if run.model.experts else 1
    if at.ep > 1 and not run.model.experts:
        yield lost(run, "ep", "the model has no experts")
    yield _switch("parallelism.enable_sequence_parallel", bool(at.sp) or at.tp == 1)
    if at.sp and at.tp == 1:
        yield lost(run, "sp", "with tp 1 there is nothing to cut")
    yield "parallelism.fsdp_reshard_after_forward", "never" if at.zero == 2 else "always"
    if at.cp > 1 and at.cp_kind != "all_gather":
        yield lost(run, "cp_kind", "0.3 gathers keys and values")
    yield from _copies(run)


def _copies(run: Run) -> Options:
    """What FSDP2 makes of copies and shards, where that is another thing than was counted."""
    at = run.layout
    if not at.zero and at.dp_replicate > 1:
        yield lost(run, "dp_replicate", "without shards copies are one thing")
        yield lost(run, "dp_shard", "the same")
    if not at.zero and (at.cp > 1 or at.dp == 1):
        yield lost(run, "zero", "weights are sharded over context-parallel ranks" if at.cp > 1 else "nothing is copied")
        if at.dp_replicate == 1 and at.dp > 1:
            yield from (lost(run, name, "copies are written") for name in ("dp_replicate", "dp_shard"))
    if at.zero and at.dp_shard * at.cp == 1 and at.dp_replicate > 1:
        yield lost(run, "zero", "one shard: every rank keeps a copy")
        yield from (lost(run, name, "the same") for name in ("dp_replicate", "dp_shard"))


def _pipeline(run: Run) -> Options:
    at, layers = run.layout, run.model.layers
    if at.pp == 1:
        return
    name = NAMES[at.schedule]
    yield "parallelism.pipeline_parallel_schedule", name
    usual = 1 if name.lower() in SINGLE else 2
    if at.split or at.vpp != usual:
        chunks = chunk_layers(layers, at.pp, at.vpp, tuple(at.split or ()), True, bool(at.folded))
        parts = module_names([len(chunk) for chunk in chunks])
        yield "parallelism.module_fqns_per_model_part", " ".join(",".join(part) for part in parts)


def _memory(run: Run) -> Options:
    at = run.layout
    yield "loss.num_chunks", int(at.loss_chunks)
    moved = min(at.offload_optimizer, at.offload_parameters)
    if moved == 1:
        yield "training.enable_cpu_offload", None
    for name in ("offload_optimizer", "offload_parameters"):
        if getattr(at, name) not in (0, 1) or (getattr(at, name) and moved < 1):
            yield lost(run, name, "weights, gradients and optimizer leave together, all of them, or nothing does")
    yield _switch("training.disable_cuda_graphs", at.graphs != "full")
    if at.graphs == "partial":
        yield lost(run, "graphs", "the whole of forward and backward is captured, or nothing")
    if at.recompute == "selective" and tuple(at.recompute_modules) != ("all_but_other_matrices",):
        yield lost(run, "recompute_modules", "SelectiveAC runs all again but every other matrix multiply and attention")
    if at.recompute == "full":
        held = max(map(len, chunk_layers(run.model.layers, at.pp, 1, (), True)))
        if at.recompute_layers < held:
            yield lost(run, "recompute_layers", "FullAC runs every layer again")
        if at.recompute_group > 1:
            yield lost(run, "recompute_group", "each layer runs again by itself")


def _state(run: Run) -> Options:
    job, compiled = run.job, run.engine.name in COMPILED
    yield _switch("compile.enable", compiled)
    if compiled:
        yield "compile.components", "model,loss"
    asynchronous = bool(run.layout.overlap_tp and run.layout.tp > 1 and compiled)
    yield _switch("compile.enable_async_tensor_parallel", asynchronous)
    if run.layout.overlap_tp and run.layout.tp > 1 and not compiled:
        yield lost(run, "overlap_tp", "asynchronous tensor parallelism needs the compiler")
    wide = job.precision == "fp32"
    yield "training.mixed_precision_param", "float32" if wide else "bfloat16"
    if job.precision in BY_ROWS:
        yield lost(run, "precision", "its float8 has a scale a row: fp8_rowwise is written")
    elif job.precision not in ("bf16", "fp32", *PRECISIONS):
        yield lost(run, "precision", "it has bf16, fp32, rowwise fp8, mxfp8 and nvfp4: bf16 is written")
    if job.optimizer != "adam":
        yield lost(run, "optimizer", "AdamW stands in the configuration; DistMuon needs a function of one's own")
    yield from _types(run)


def _types(run: Run) -> Options:
    """Types of the state, where they are not those of FSDP2: fp32 shards, gradients and moments."""
    job, kept = run.job, types_of(run.job, run.engine)
    types = kept.master, kept.gradients, kept.moments
    plain = (kept.more_gradients, kept.more_optimizer, kept.apart) == (0, 0, False) and job.optimizer == "adam"
    if types == ("bf16", "bf16", "bf16") and plain and job.precision == "bf16":
        yield "training.dtype", "bfloat16"
    elif types == ("fp32", "fp32", "bf16") and plain:
        yield "optimizer.implementation", "fused_opt_states_bf16"
    elif types != ("fp32", "fp32", "fp32") or kept.apart or kept.more_gradients or kept.more_optimizer:
        yield lost(run, "bytes_per_parameter", "it keeps fp32 shards, gradients and moments, or all of them in bf16")
    if job.reduce_dtype not in ("usual", AUTO, "fp32"):
        yield lost(run, "reduce_dtype", "gradients are sent in fp32")
    if job.gather_dtype not in (AUTO, "fp32" if job.precision == "fp32" else "bf16"):
        yield lost(run, "gather_dtype", "weights are gathered in the type of the multiplies")
