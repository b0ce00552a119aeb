"""A run as Accelerate's YAML: FSDP2 with a parallelism_config, DeepSpeed, or Megatron-LM's plugin, by the engine."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias

from ...engines.tables import engine
from ...job import AUTO, Job, types_of
from ...layout.complete import complete_job
from ..leaving_out import cards_of, left_out, lost
from ..setting import Lost, Run, Written

RELEASE = "Accelerate 1.15"
DRIVERS = {
    "hf_trainer": "hf_trainer",
    "deepspeed": "deepspeed",
    "deepspeed-liger": "deepspeed",
    "megatron": "megatron",
    "megatron-0.15": "megatron",
}
IN_SCRIPT = "the script sets it"
_NAMES = """
    tp cp pp vpp ep etp sp dp_replicate dp_shard zero gather_unit micro_batch schedule split cp_kind recompute
    recompute_modules recompute_layers recompute_group offload_optimizer offload_parameters offload_activations
    overlap_dp precision optimizer sequence_length global_batch tokens frozen_format
"""
HELD = frozenset(_NAMES.split())
REASONS = {
    "adapter": "adapters are made in the script (peft)",
    "frozen": "what is frozen is set in the script",
    "packing": "the script packs",
    "loss_chunks": "the model computes its loss",
    "moe_dispatch": "the model exchanges its tokens",
    "overlap_tp": "it has no word for it",
    "accumulate_whole": "the script says in which micro-batches gradients are sent",
}
MIXED = {"bf16": "bf16", "fp16": "fp16", "fp32": "'no'"}
EIGHT: dict[str, tuple[tuple[str, str], ...]] = {
    "fp8": (),
    "fp8_delayed": (("fp8_backend", "TE"),),
    "fp8_tensorwise": (("fp8_backend", "AO"),),
    "mxfp8": (("fp8_backend", "TE"), ("fp8_use_mxfp8_block_scaling", "true")),
}
Entries: TypeAlias = Iterator[tuple[str, Any] | Lost]  # a path with its value; or what is lost


def write(run: Run) -> Written:
    """The YAML, with what it cannot say in its first comment."""
    driver = DRIVERS.get(run.engine.name, "hf_trainer")
    body = {"deepspeed": _deepspeed, "megatron": _megatron}.get(driver, _trainer)
    made = [*_head(run), *body(run), *_script(run, driver), *_precision(run, driver)]
    gone = [one for one in made if isinstance(one, Lost)]
    gone += left_out(run, driver, HELD, REASONS)
    _, nodes = cards_of(run.cluster)
    lines = [_comment(f"{RELEASE}. Written by outlay for {run.model.name} on {run.cluster.name}.")]
    lines += [_comment(f"NOT IN THIS FILE: {one}") for one in gone]
    launch = "accelerate launch --config_file accelerate.yaml"
    launch += ' --machine_rank "$RANK" --main_process_ip "$ADDRESS" --main_process_port 29500' if nodes > 1 else ""
    lines += [_comment(f"{launch} train.py"), *_printed([one for one in made if not isinstance(one, Lost)]), ""]
    return Written("\n".join(lines), "accelerate.yaml", tuple(gone), ())


def _comment(text: str) -> str:
    """A comment of one line, whatever a name in it holds."""
    return "# " + "".join(letter if letter.isprintable() else "?" for letter in text)


def _printed(entries: list[tuple[str, Any]]) -> Iterator[str]:
    """Keys by name, and under each section its own."""
    sections = dict[str, list[str]]()
    for path, value in entries:
        section, dot, key = path.partition(".")
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        sections.setdefault(section, []).append(f"  {key}: {shown}" if dot else f"{section}: {shown}")
    for section in sorted(sections):
        inner = sections[section][0].startswith(" ")
        yield from [f"{section}:", *sections[section]] if inner else sections[section]


def _head(run: Run) -> Entries:
    _, nodes = cards_of(run.cluster)
    yield from (("compute_environment", "LOCAL_MACHINE"), ("debug", False), ("use_cpu", False))
    yield from (("machine_rank", 0), ("main_training_function", "main"), ("rdzv_backend", "static"))
    yield from (("same_network", True), ("num_machines", nodes), ("num_processes", int(run.cluster.ranks)))


def _script(run: Run, driver: str) -> Entries:
    """What a script of transformers and Accelerate sets, and this file does not."""
    yield Lost("model", run.model.name, IN_SCRIPT)
    for name in ("sequence_length", "micro_batch", "global_batch"):
        yield lost(run, name, IN_SCRIPT)
    if run.job.tokens:
        yield lost(run, "tokens", IN_SCRIPT)
    if run.job.optimizer != "adam":
        yield lost(run, "optimizer", IN_SCRIPT)
    yield from _types(run, driver)


def _precision(run: Run, driver: str) -> Entries:
    precision = run.job.precision
    if precision in EIGHT and driver == "hf_trainer":
        yield "mixed_precision", "fp8"
        yield from ((f"fp8_config.{key}", value) for key, value in EIGHT[precision])
        return
    if precision not in MIXED:
        yield lost(run, "precision", "it has no, fp16 and bf16 here, and fp8 for the Trainer: bf16 is written")
    yield "mixed_precision", MIXED.get(precision, "bf16")


def _types(run: Run, driver: str) -> Entries:
    """Types of the state: those of the engine alone."""
    job, other = run.job, engine(driver)
    known = job.precision if job.precision in MIXED or (job.precision in EIGHT and driver == "hf_trainer") else "bf16"
    plain = Job(job.sequence_length, job.global_batch, precision=known, optimizer=job.optimizer)
    own, _ = complete_job(run.model, plain, run.cluster, run.layout, other)
    one, two = types_of(job, run.engine), types_of(own, other)
    if replace(one, name="", source="") != replace(two, name="", source=""):
        yield lost(run, "bytes_per_parameter", "the types of the state are those that the script and its engine have")
    for name in ("reduce_dtype", "gather_dtype"):
        if getattr(job, name) not in (AUTO, getattr(own, name)):
            yield lost(run, name, IN_SCRIPT)


def _recompute(run: Run, written: bool) -> Entries:
    """`written`: all layers again, or none, is in the file."""
    at = run.layout
    names = list[str]()
    if at.recompute != "none" and not written:
        names = ["recompute", "recompute_layers", *(["recompute_modules"] if at.recompute_modules else [])]
    elif at.recompute == "full" and at.recompute_layers < run.model.layers:
        names = ["recompute_layers"]
    if at.recompute == "full" and at.recompute_group > 1:
        names.append("recompute_group")
    yield from (lost(run, name, "every layer runs again, each by itself" if written else IN_SCRIPT) for name in names)


def _one_chunk(run: Run) -> Entries:
    """A pipeline is Megatron-LM's alone, and there it has no chunks."""
    at = run.layout
    if at.vpp > 1:
        yield lost(run, "vpp", "a stage is one chunk")
    if at.split:
        yield lost(run, "split", "the script shares the layers out")
    if at.schedule != "1f1b":
        yield lost(run, "schedule", "1F1B")


def _trainer(run: Run) -> Entries:
    """FSDP2 wherever something is sharded; copies else."""
    at = run.layout
    cut, cards = int(at.tp * at.cp), int(run.cluster.ranks)
    shards = bool(at.dp_shard * at.cp > 1 and (at.zero or cut > 1))
    yield "distributed_type", "FSDP" if shards else "MULTI_GPU" if cards > 1 else "'NO'"
    if bool(at.zero) != shards:
        why = "with tp or cp it shards" if shards else "one rank would hold every shard: copies are written"
        yield lost(run, "zero", why)
    if shards:
        yield from _fsdp(run)
    if shards or cut > 1:
        yield from _sizes(run, shards)
    if not shards:
        yield from _copies(run)
    yield from _recompute(run, shards)
    yield from _one_chunk(run)
    yield from [] if at.overlap_dp else [lost(run, "overlap_dp", "it overlaps by itself")]


def _sizes(run: Run, shards: bool) -> Entries:
    at = run.layout
    data = (at.dp_replicate, at.dp_shard) if shards else (at.dp, 1)
    for name, size in zip(("dp_replicate", "dp_shard", "tp", "cp"), (*data, at.tp, at.cp), strict=True):
        yield f"parallelism_config.parallelism_config_{name}_size", int(size)
    if at.cp > 1:
        way = "alltoall" if at.cp_kind == "ring" else "allgather"
        yield "parallelism_config.parallelism_config_cp_comm_strategy", way
    if at.cp > 1 and at.cp_kind == "ulysses":
        yield lost(run, "cp_kind", "Ulysses goes with DeepSpeed alone (sp_backend): allgather is written")


def _copies(run: Run) -> Entries:
    """What needs shards."""
    at = run.layout
    if at.dp_replicate > 1:
        yield from (lost(run, name, "without shards copies are one thing") for name in ("dp_replicate", "dp_shard"))
    for name in ("offload_optimizer", "offload_parameters", "offload_activations"):
        if getattr(at, name):
            yield lost(run, name, "FSDP alone offloads")
    if at.gather_unit != "layer":
        yield lost(run, "gather_unit", "nothing is gathered")


def _fsdp(run: Run) -> Entries:
    at, path = run.layout, "fsdp_config.fsdp_"
    wraps = "NO_WRAP" if at.gather_unit == "model" else "TRANSFORMER_BASED_WRAP"
    moved = min(at.offload_optimizer, at.offload_parameters) == 1
    yield from ((f"{path}version", 2), (f"{path}auto_wrap_policy", wraps))
    yield from ((f"{path}reshard_after_forward", at.zero != 2), (f"{path}offload_params", moved))
    yield from ((f"{path}cpu_ram_efficient_loading", True), (f"{path}state_dict_type", "SHARDED_STATE_DICT"))
    yield f"{path}activation_checkpointing", at.recompute == "full"
    away = at.offload_activations == 1 and at.recompute == "full"
    yield f"{path}activation_checkpointing_offload", away
    if at.offload_activations and not away:
        yield lost(run, "offload_activations", "the inputs of recomputed layers leave, all of them, or nothing does")
    for name in ("offload_optimizer", "offload_parameters"):
        if getattr(at, name) != float(moved):
            yield lost(run, name, "weights, gradients and optimizer leave together, all of them, or nothing does")


def _deepspeed(run: Run) -> Entries:
    at, path = run.layout, "deepspeed_config."
    yield "distributed_type", "DEEPSPEED"
    yield from ((f"{path}zero_stage", int(at.zero)), (f"{path}gradient_accumulation_steps", run.micro_batches))
    for name, ours, least in (("optimizer", "offload_optimizer", 1), ("param", "offload_parameters", 3)):
        share = getattr(at, ours)
        yield f"{path}offload_{name}_device", "cpu" if share and at.zero >= least else "none"
        if (share and at.zero < least) or 0 < share < 1:
            yield lost(run, ours, "all of it leaves, or nothing, and from a stage on (--zero 1, 3)")
    yield from ((f"{path}zero3_init_flag", at.zero == 3), (f"{path}zero3_save_16bit_model", at.zero == 3))
    if at.cp > 1:
        yield from ((f"parallelism_config.parallelism_config_{name}_size", int(size)) for name, size in _sequence(run))
    inside = [name for name in ("tp", "pp", "ep", "etp") if getattr(at, name) > 1]
    for name in [*inside, *(["dp_shard"] if inside else [])]:
        yield lost(run, name, "it stands in a file of DeepSpeed (outlay export deepspeed, deepspeed_config_file)")
    if at.dp_replicate > 1:
        yield from (lost(run, name, "it shards over all data-parallel ranks") for name in ("dp_replicate", "dp_shard"))
    if at.overlap_dp != (at.zero == 3):
        yield lost(run, "overlap_dp", "overlap_comm stands in a file of DeepSpeed: on with stage 3")
    yield from _recompute(run, False)
    yield from _one_chunk(run)


def _sequence(run: Run) -> Iterator[tuple[str, Any]]:
    at = run.layout
    yield from (("dp_replicate", 1), ("dp_shard", at.dp_shard), ("tp", 1), ("cp", 1), ("sp", at.cp))


def _megatron(run: Run) -> Entries:
    at, path = run.layout, "megatron_lm_config.megatron_lm_"
    yield "distributed_type", "MEGATRON_LM"
    yield from ((f"{path}tp_degree", int(at.tp)), (f"{path}pp_degree", int(at.pp)))
    yield from ((f"{path}context_parallel_size", int(at.cp)), (f"{path}num_micro_batches", run.micro_batches))
    yield f"{path}expert_model_parallel_size", int(at.ep)
    yield f"{path}expert_tensor_parallel_size", int(at.etp) if run.model.experts else 1
    yield from ((f"{path}sequence_parallelism", bool(at.sp and at.tp > 1)), (f"{path}gradient_clipping", 1.0))
    yield from ((f"{path}use_distributed_optimizer", at.zero > 0), (f"{path}optimizer_cpu_offload", moved(run)))
    if at.zero > 1:
        yield lost(run, "zero", "the distributed optimizer is stage 1; Megatron-FSDP needs more than this file has")
    yield from ((f"{path}recompute_granularity", "full"), *_method(run))
    if at.recompute != "full":
        why = "the plugin recomputes every layer; other_megatron_args says else"
        names = ("recompute", "recompute_layers", *(["recompute_modules"] if at.recompute_modules else []))
        yield from (lost(run, name, why) for name in names)
    if 0 < at.offload_optimizer < 1 or (at.offload_optimizer and not moved(run)):
        yield lost(run, "offload_optimizer", "all of it leaves, with the distributed optimizer, or nothing")
    if moved(run):
        yield f"{path}use_precision_aware_optimizer", True
    if at.sp and at.tp == 1:
        yield lost(run, "sp", "with tp 1 there is nothing to cut")
    if at.cp > 1 and at.cp_kind != "ring":
        yield lost(run, "cp_kind", "keys and values go around")
    yield from _one_chunk(run)
    if at.dp_replicate > 1:
        yield from (lost(run, name, "it has no optimizer instances") for name in ("dp_replicate", "dp_shard"))
    if at.overlap_dp:
        yield lost(run, "overlap_dp", "overlap_grad_reduce stands in other_megatron_args")


def moved(run: Run) -> bool:
    """Whether the optimizer's state leaves the device."""
    return bool(run.layout.offload_optimizer > 0 and run.layout.zero)


def _method(run: Run) -> Iterator[tuple[str, Any] | Lost]:
    """Groups of layers, or the first few of a stage."""
    at, path = run.layout, "megatron_lm_config.megatron_lm_recompute_"
    part = at.recompute == "full" and at.recompute_layers < -(-run.model.layers // at.pp)
    yield f"{path}method", "block" if part else "uniform"
    yield f"{path}num_layers", int(at.recompute_layers) if part else int(at.recompute_group)
    if at.recompute == "full" and at.split:
        yield lost(run, "recompute_layers", "with equal stages it is another number")
    if part and at.recompute_group > 1:
        yield lost(run, "recompute_group", "layers run again one by one where a part of a stage does")
