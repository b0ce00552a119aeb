"""How a torchtitan run is cut and what it trains, with the framework's own defaults for what is not said."""

from typing import Any

from ...job import AUTO, Job
from ...layout.axes import Layout
from .held import BACKENDS, Held
from .options import Options

SCHEDULES = {
    "1f1b": "1f1b",
    "gpipe": "gpipe",
    "interleaved1f1b": "interleaved",
    "loopedbfs": "looped_bfs",
    "interleavedzerobubble": "interleaved_zb",
    "zbvzerobubble": "zbv",
    "dualpipev": "dualpipe_v",
}
SINGLE = ("1f1b", "gpipe")
NAMES = {
    "1f1b": "1F1B",
    "gpipe": "GPipe",
    "interleaved": "Interleaved1F1B",
    "looped_bfs": "LoopedBFS",
    "interleaved_zb": "InterleavedZeroBubble",
    "zb_h1": "InterleavedZeroBubble",
    "zbv": "ZBVZeroBubble",
    "dualpipe_v": "DualPipeV",
}
OPTIMIZERS = {"adam": "adam", "adamw": "adam", "distmuon": "muon", "muon": "muon"}
DEGREES = {
    "tp": "parallelism.tensor_parallel_degree",
    "cp": "parallelism.context_parallel_degree",
    "pp": "parallelism.pipeline_parallel_degree",
    "ep": "parallelism.expert_parallel_degree",
}
SHARD, REPLICATE = "parallelism.data_parallel_shard_degree", "parallelism.data_parallel_replicate_degree"
SCHEDULE = "parallelism.pipeline_parallel_schedule"
PARTS = "parallelism.module_fqns_per_model_part"
EACH = "parallelism.pipeline_parallel_layers_per_stage"
ENDS = tuple(f"parallelism.pipeline_parallel_{end}_stage_less_layers" for end in ("first", "last"))
MICRO, LOCAL, GLOBAL = (
    "parallelism.pipeline_parallel_microbatch_size",
    "training.local_batch_size",
    "training.global_batch_size",
)
RESHARD = "parallelism.fsdp_reshard_after_forward"


def layout_of(at: Options, held: Held, layers: int, experts: bool) -> Layout:
    """The layout, of which the batch is read by itself."""
    cut = {name: at.number(path, 1, name) or AUTO for name, path in DEGREES.items()}
    cut["ep"] = cut["ep"] if experts else 1
    chunks, split, schedule = _pipeline(at, layers, cut["pp"] or 1)
    copies = at.number(REPLICATE, 1, "dp_replicate")
    shards = _shards(at, held.ranks, cut, copies)
    zero = _zero(at, cut, copies, shards)
    if not zero and shards is not AUTO:
        copies, shards = 1, copies * shards  # without shards every rank holds a copy, which is one thing to count
    offload = 1.0 if at.on("training.enable_cpu_offload") else 0.0
    sp = at.on("parallelism.enable_sequence_parallel", True)
    dispatch: Any = BACKENDS.get(at.said("moe_comm_backend", "standard"), "all_to_all")
    return Layout(
        **cut,
        sp=sp and (cut["tp"] or 1) > 1,
        etp=1,
        vpp=chunks,
        split=split,
        schedule=schedule,
        cp_kind="ring" if at.said("parallelism.context_parallel_rotate_method", "") == "alltoall" else "all_gather",
        moe_dispatch=dispatch if experts else AUTO,
        dp_replicate=copies,
        dp_shard=shards,
        zero=zero,
        **_recompute(at, held, layers, (cut["pp"] or 1)),
        loss_chunks=at.number("loss.num_chunks", 1) or 1,
        overlap_tp=at.on("compile.enable_async_tensor_parallel"),
        overlap_dp=True,
        graphs="none" if held.old or at.on("training.disable_cuda_graphs") else "full",
        offload_optimizer=offload,
        offload_parameters=offload,
    )


def _shards(at: Options, ranks: int, cut: dict[str, Any], copies: Any) -> Any:
    """Data-parallel shards: given, or what is left of the ranks of the launch."""
    given = at.number(SHARD, 0, "dp_shard")
    if given is AUTO or given:
        return given
    parts = [cut["tp"], cut["cp"], cut["pp"], copies]
    if not ranks or AUTO in parts:
        return AUTO
    each = parts[0] * parts[1] * parts[2] * parts[3]
    return max(1, ranks // each)


def _zero(at: Options, cut: dict[str, Any], copies: Any, shards: Any) -> int:
    """3, or 2 where weights stay gathered behind the forward pass; 0 where copies alone are made."""
    policy = at.said(RESHARD, "default")
    alone = shards is not AUTO and shards * (cut["cp"] or 1) == 1
    if alone and copies is not AUTO and copies > 1:
        return 0
    return 2 if policy == "never" or (policy == "default" and (cut["pp"] or 1) > 1) else 3


def _pipeline(at: Options, layers: int, pp: int) -> tuple[int, tuple[int, ...], Any]:
    """Chunks a rank, the layers of each where the file says them, and the order of their passes."""
    schedule = SCHEDULES.get(at.said(SCHEDULE, "1f1b"), "1f1b")
    each, ends = at.number(EACH, 0), [at.number(path, 1) for path in ENDS]
    parts = at.ask(PARTS)
    usual = 1 if schedule in SINGLE else 2
    if pp == 1:
        return 1, (), "1f1b"
    if parts is not None and isinstance(parts.value, list) and parts.value:
        sizes = tuple(_layers_of(part) for part in parts.plain())
        chunks, split = max(1, len(sizes) // pp), sizes
    elif each and layers:
        chunks = max(1, -(-(layers + sum(ends)) // each) // pp)
        split = weighted(layers, pp * chunks, *ends)
    else:
        chunks, split = usual, weighted(layers, pp * usual, *ends) if ends != [1, 1] else ()
    if chunks == 1 and schedule == "interleaved_zb":
        schedule = "zb_h1"
    return chunks, split, schedule


def _layers_of(part: Any) -> int:
    names = part if isinstance(part, list) else [part]
    return sum(isinstance(name, str) and name.startswith("layers.") for name in names)


def weighted(layers: int, chunks: int, first: int, last: int) -> tuple[int, ...]:
    """Layers of each chunk where the ends count as so many layers (_generate_llm_fqn_per_model_part)."""
    if not layers or chunks < 2:
        return ()
    least, more = divmod(layers + first + last, chunks)
    sizes = [least + (chunk < more) for chunk in range(min(chunks, 10_000))]
    sizes[0], sizes[-1] = sizes[0] - first, sizes[-1] - last
    return tuple(sizes) if min(sizes) >= 0 and sum(sizes) == layers else ()


def _recompute(at: Options, held: Held, layers: int, pp: int) -> dict[str, Any]:
    """A policy of whole blocks, of operations, or of a budget, which is read as that of operations."""
    mode = at.said("activation_checkpoint", "selective")
    option = at.ask("activation_checkpoint.selective_ac_option")
    every = str(option.value) if option is not None else "2"
    if mode == "none":
        return {"recompute": "none"}
    if mode == "full":
        return {"recompute": "full"}
    if held.old and mode == "selective" and every.isdigit() and every[:6] != "op":
        count = max(1, int(every[:6]))
        return {"recompute": "full", "recompute_layers": max(1, -(-layers // pp) // count)} if layers else {}
    if mode == "memory_budget":
        held.notes.append("the memory budget of the compiler is not counted: read as SelectiveAC")
    return {"recompute": "selective", "recompute_modules": ("all_but_other_matrices",)}


def job_of(at: Options, held: Held) -> Job:
    """What is trained. The batch is read by itself."""
    converter = at.said("converter", "bf16")
    wide = at.said("training.mixed_precision_param", "bfloat16") == "float32"
    narrow = at.said("training.dtype", "float32") == "bfloat16"
    states = at.said("optimizer.implementation", "fused") == "fused_opt_states_bf16"
    name = at.said("optimizer.name", "adamw")
    if name not in OPTIMIZERS:
        held.notes.append(f"optimizer {name[:40]} is not counted: read as adam")
    precision: Any = converter if converter != "bf16" else "fp32" if wide and not narrow else "bf16"
    types: dict[str, Any] = dict.fromkeys(("master_dtype", "moment_dtype", "gradient_dtype"), "bf16") if narrow else {}
    return Job(
        sequence_length=at.number("training.seq_len", 2048, "sequence_length") or AUTO,
        precision=precision,
        optimizer=OPTIMIZERS.get(name, "adam"),  # type: ignore[arg-type]
        **(types or ({"moment_dtype": "bf16"} if states else {})),
        **_adapter(at),
    )


def _adapter(at: Options) -> dict[str, Any]:
    rank = at.number("adapter.rank", 0)
    at.ask("adapter.alpha")
    targets = at.ask("adapter.target_modules")
    if not rank:
        return {}
    names = targets.plain() if targets is not None else None
    inside = [str(name) for name in names] if isinstance(names, list) else []
    parts = [("attention", "w" + letter) for letter in "qkvo"] + [("feed_forward", f"w{place}") for place in "123"]
    found = tuple(dict.fromkeys(part for part, name in parts if any(one.startswith(name) for one in inside)))
    return {"adapter": "lora", "adapter_rank": rank, **({"adapter_targets": found} if found else {})}
