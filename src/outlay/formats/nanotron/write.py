"""A layout as nanotron's YAML, and what that cannot say."""

from collections.abc import Iterator
from typing import Any, TypeAlias

from ...job import types_of, wire_of
from ..leaving_out import cards_of, left_out, lost
from ..setting import Lost, Run, Written
from .model import config_of

RELEASE = "nanotron 2411b02"
DRIVER = "nanotron"
DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
STEPS = 1000  # where the run has no length: nanotron needs one
_NAMES = """
    tp sp keep_gathered cp cp_kind pp vpp ep etp moe_dispatch dp_replicate dp_shard zero micro_batch schedule recompute
    recompute_layers overlap_tp sequence_length global_batch tokens precision optimizer frozen_format
"""
HELD = frozenset(_NAMES.split())
REASONS = {
    "split": "it deals layers by their cost",
    "adapter": "it trains whole models",
    "frozen": "the same",
    "packing": "its data set packs",
}
YOURS = """general:
  project: outlay
  run: run
checkpoints:
  checkpoints_path: checkpoints
  checkpoint_interval: 1000
data_stages:
- name: training
  start_training_step: 1
  data:
    dataset: null
    seed: 42
tokenizer:
  tokenizer_name_or_path: null
logging:
  log_level: info
"""
RATES = """  weight_decay: 0.1
  clip_grad: 1.0
  learning_rate_scheduler:
    learning_rate: 0.0003
    lr_warmup_steps: 0
    lr_warmup_style: linear
    lr_decay_style: cosine
    min_decay_lr: 0.00003
"""
ADAM = """  optimizer_factory:
    name: adamW
    adam_beta1: 0.9
    adam_beta2: 0.95
    adam_eps: 1.0e-08
    torch_adam_is_fused: true
"""
SGD = """  optimizer_factory:
    name: sgd
"""
Entries: TypeAlias = Iterator[tuple[str, Any] | Lost]


def write(run: Run) -> Written:
    """The configuration as YAML, with what it cannot say in its first comment."""
    parts = {"parallelism": [*_cut(run)], "tokens": [*_tokens(run)], "model": [*_model(run)]}
    optimizer = [*_optimizer(run)]
    gone = [one for part in (*parts.values(), optimizer) for one in part if isinstance(one, Lost)]
    gone += left_out(run, DRIVER, HELD, REASONS)
    lines = [_comment(f"{RELEASE}. Written by outlay for {run.model.name} on {run.cluster.name}.")]
    lines += [_comment(f"NOT IN THIS FILE: {one}") for one in gone]
    lines += ["# Data, tokenizer, checkpoints and learning rate are yours.", YOURS.rstrip()]
    for name, part in parts.items():
        lines += [f"{name}:", *_lines(dict(one for one in part if not isinstance(one, Lost)), 1)]
    lines += ["optimizer:", *_lines(dict(one for one in optimizer if not isinstance(one, Lost)), 1)]
    text = "\n".join(lines) + "\n" + (SGD if run.job.optimizer == "sgd" else ADAM) + RATES
    each, nodes = cards_of(run.cluster)
    start = f"CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun --nnodes {nodes} --nproc_per_node {each}"
    return Written(text, "config.yaml", tuple(gone), (f"launch: {start} run_train.py --config-file config.yaml",))


def _comment(text: str) -> str:
    return "# " + "".join(letter if letter.isprintable() else "?" for letter in text)


def _lines(values: dict[str, Any], depth: int) -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield f"{'  ' * depth}{name}:"
            yield from _lines(value, depth + 1)
        else:
            shown = str(value).lower() if isinstance(value, bool) else value
            yield f"{'  ' * depth}{name}: {shown}"


def _cut(run: Run) -> Entries:
    at = run.layout
    yield from (("dp", int(at.dp)), ("pp", int(at.pp)), ("tp", int(at.tp)))
    yield "pp_engine", "afab" if at.schedule == "gpipe" else "1f1b"
    yield "tp_mode", "REDUCE_SCATTER" if at.sp and at.tp > 1 else "ALL_REDUCE"
    yield "tp_linear_async_communication", bool(at.overlap_tp)
    yield "tp_recompute_allgather", not at.keep_gathered
    yield "recompute_layer", at.recompute == "full"
    yield "context_parallel_size", int(at.cp)
    yield "expert_parallel_size", int(at.ep)
    if at.sp and at.tp == 1:
        yield lost(run, "sp", "with tp 1 there is nothing to cut")
    if at.etp > 1:
        yield lost(run, "etp", "it cuts no expert")
    if at.vpp > 1:
        yield lost(run, "vpp", "its pipeline has one chunk a stage")
    if at.schedule not in ("gpipe", "1f1b"):
        yield lost(run, "schedule", "its engines are afab and 1f1b: 1f1b is written")
    if at.cp > 1 and at.cp_kind != "ring":
        yield lost(run, "cp_kind", "its context parallelism is a ring")
    if at.dp_replicate > 1:
        yield lost(run, "dp_replicate", "it shards over all data-parallel ranks")
        yield lost(run, "dp_shard", "the same")
    if at.moe_dispatch == "deduplicated" and run.model.experts:
        yield lost(run, "moe_dispatch", "tokens go to experts by all-to-all, or all-gather")
    if at.zero > 1:
        yield lost(run, "zero", "it shards the optimizer alone: stage 1 is written")
    yield from _recompute(run)


def _recompute(run: Run) -> Entries:
    at = run.layout
    if at.recompute == "selective":
        yield lost(run, "recompute", "recompute_layer is of whole layers: none is written")
        yield lost(run, "recompute_modules", "the same")
    held = run.model.layers / at.pp
    if at.recompute == "full" and at.recompute_layers < held:
        yield lost(run, "recompute_layers", "recompute_layer is of all layers")


def _tokens(run: Run) -> Entries:
    job = run.job
    yield "sequence_length", job.sequence_length
    yield "micro_batch_size", int(run.layout.micro_batch)
    yield "batch_accumulation_per_replica", run.micro_batches
    step = job.global_batch * job.sequence_length
    steps = max(1, round(job.tokens / step)) if job.tokens else STEPS
    yield "train_steps", steps
    if steps * step != job.tokens:
        why = f"the run has a length of whole steps: {steps:,} of {step:,} tokens"
        yield Lost("job.tokens", f"(--tokens {job.tokens:g})", why)


def _model(run: Run) -> Entries:
    config, why = config_of(run.model, run.job.sequence_length)
    if why:
        yield Lost("model", run.model.name, f"{why}: its keys are not written")
    if config.get("moe_config"):
        kind = "allgather" if run.layout.moe_dispatch == "all_gather" else "alltoall"
        config["moe_config"]["token_dispatcher_type"] = kind
    yield "dtype", DTYPES.get(run.job.precision, "bfloat16")
    if run.job.precision not in DTYPES:
        yield lost(run, "precision", "it has bf16, fp16 and fp32: bf16 is written")
    yield "init_method", {"std": 0.02}
    if config:
        yield "model_config", config


def _optimizer(run: Run) -> Entries:
    job = run.job
    yield "zero_stage", min(1, int(run.layout.zero))
    if job.optimizer not in ("adam", "sgd"):
        yield lost(run, "optimizer", "it has adamW and sgd: adamW is written")
    kept = types_of(job, run.engine)
    own = (kept.more_gradients, kept.more_optimizer, kept.apart) == (0, 0, True)
    own = own and not (job.fixed and job.precision not in ("bf16", "fp16"))  # a named recipe has 16-bit weights
    narrow = job.precision if job.precision in DTYPES else "bf16"
    types = kept.master, kept.gradients, kept.moments
    yield "accumulate_grad_in_fp32", not (own and types == ("none", narrow, narrow))
    if not own or types not in (("none", narrow, narrow), ("fp32", "fp32", "fp32")):
        yield lost(run, "bytes_per_parameter", "it keeps fp32 gradients, master and moments, or all as the weights are")
    reduced, gathered = wire_of(job, run.engine)
    if reduced != kept.gradients:
        yield lost(run, "reduce_dtype", f"gradients are sent as they accumulate, {kept.gradients}")
    if gathered != narrow:
        yield lost(run, "gather_dtype", "weights are gathered in their own type")
