"""Layout and task of Megatron-LM arguments, as the flags name them and with the defaults of the parser."""

from typing import Any

from ...engines.recipe import BYTES
from ...job import AUTO, Job
from ...layout.axes import Layout
from ...layout.module_rules import INSIDE
from ..pipeline_layout import ends_counted, ends_given, parse_layout
from ..setting import Settings, fault
from .start import virtual_stages

DEGREES = {
    "tp": "tensor_model_parallel_size",
    "pp": "pipeline_model_parallel_size",
    "cp": "context_parallel_size",
    "ep": "expert_model_parallel_size",
}
CP_KINDS = {"p2p": "ring", "allgather": "all_gather", "a2a": "ulysses"}
DISPATCH = {"allgather": "all_gather", "alltoall": "all_to_all", "flex": "deduplicated"}
SHARDING = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
MODULES = ("core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts")
RECIPES = {"delayed": "fp8_delayed", "tensorwise": "fp8_tensorwise", "blockwise": "fp8_blockwise", "mxfp8": "mxfp8"}
OPTIMIZERS = {"adam": "adam", "sgd": "momentum", "muon": "muon", "dist_muon": "muon", "lion": "lion"}
DTYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "uint8": "fp8"}


def known_or_auto(settings: Settings, name: str, default: int, field: str, least: int = 1) -> Any:
    """A count, its default where the flag is absent, or AUTO where its value is not in the file."""
    before = len(settings.missing)
    value = settings.number(name, default, least, field)
    return AUTO if len(settings.missing) > before else value


def layout_of(settings: Settings, layers: int, experts: bool, ranks: int, notes: list[str]) -> Layout:
    """How the run is cut. What the data-parallel ranks are is left AUTO where the launch is not known."""
    degrees = {field: known_or_auto(settings, name, 1, field) for field, name in DEGREES.items()}
    tp, pp = degrees["tp"], degrees["pp"]
    if not experts:
        degrees["ep"] = 1
    chunks, split = _chunks(settings, layers, pp, notes)
    zero = _zero(settings, notes)
    sp = settings.on("sequence_parallel")
    if sp and tp == 1:
        what = "--sequence-parallel has no effect with tensor-model-parallel-size 1"
        rule, fix = "sequence parallelism cuts over the tensor-parallel ranks", "remove it, or cut the tensors"
        edits = {"sequence_parallel": None}
        settings.find("MEG001", "sequence_parallel", what, rule, "tp 1", fix, serious=False, edits=edits)
    grads, params = settings.on("overlap_grad_reduce"), settings.on("overlap_param_gather")
    if grads and not params and zero:
        notes.append("--overlap-grad-reduce without --overlap-param-gather: read as exchange that overlaps")
    return Layout(
        **degrees,
        sp=sp and tp != 1,
        etp=known_or_auto(settings, "expert_tensor_parallel_size", tp or 1, "etp") if experts else 1,
        vpp=chunks,
        split=split,
        schedule="interleaved" if (chunks or 1) > 1 else "1f1b",
        cp_kind=_cp_kind(settings),
        moe_dispatch=_dispatch(settings) if experts else AUTO,
        zero=zero,
        **_data_parallel(settings, degrees, ranks, zero),
        micro_batch=known_or_auto(settings, "micro_batch_size", 1, "micro_batch"),
        **_recompute(settings, chunks or 1, notes),
        overlap_tp=settings.on("tp_comm_overlap"),
        overlap_ep=settings.on("overlap_moe_expert_parallel_comm"),
        overlap_dp=grads,
        graphs=_graphs(settings),
        offload_optimizer=settings.real("optimizer_offload_fraction", 1.0) if _offloads(settings) else 0.0,
    )


def _offloads(settings: Settings) -> bool:
    settings.get("optimizer_offload_fraction")
    return settings.on("optimizer_cpu_offload")


def _cp_kind(settings: Settings) -> Any:
    words = settings.words("cp_comm_type")
    kinds = {CP_KINDS.get(word, "") for word in words}
    if words and len(kinds) == 1 and kinds != {""}:
        return kinds.pop()
    return AUTO if words else "ring"  # several kinds, or both at once, are no kind of ours


def _dispatch(settings: Settings) -> Any:
    settings.asked.update(("moe_flex_dispatcher_backend", "moe_enable_deepep"))
    return DISPATCH[settings.word("moe_token_dispatcher_type", DISPATCH, "allgather")]


def _graphs(settings: Settings) -> Any:
    whole = "full_iteration" in settings.words("cuda_graph_modules")  # as releases before 0.17 say it
    kind = settings.word("cuda_graph_impl", ("none", "local", "transformer_engine", "full_iteration"), "none")
    old = settings.on("enable_cuda_graph") or settings.on("external_cuda_graph")
    return (
        "full"
        if kind == "full_iteration" or (whole and kind == "local")
        else "partial"
        if kind != "none" or old
        else "none"
    )


def _zero(settings: Settings, notes: list[str]) -> int:
    """0, 1 for the distributed optimizer, and what FSDP shards: nothing, unless a strategy says it.

    With Muon or Lion a log says that another one, layer by layer, has taken the place of the distributed optimizer.
    """
    layered = settings.on("use_layer_wise_distributed_optimizer") or settings.word("optimizer") == "dist_muon"
    optimizer = settings.on("use_distributed_optimizer") or layered
    strategy = settings.word("data_parallel_sharding_strategy", SHARDING, "no_shard")
    if settings.on("use_megatron_fsdp") or settings.on("use_custom_fsdp"):
        unsaid = settings.get("data_parallel_sharding_strategy") is None
        notes += ["--data-parallel-sharding-strategy no_shard: Megatron-LM's default, with FSDP too"] if unsaid else []
        return SHARDING[strategy]
    reshards = not settings.on("torch_fsdp2_no_reshard_after_forward")
    if settings.on("use_torch_fsdp2"):
        return 3 if reshards else 2
    return int(optimizer)


def _data_parallel(settings: Settings, degrees: dict[str, Any], ranks: int, zero: int) -> dict[str, Any]:
    """Copies and shards, where the ranks of the launch are known."""
    settings.asked.add("outer_dp_sharding_strategy")
    copies = known_or_auto(settings, "num_distributed_optimizer_instances", 1, "dp_replicate")
    cut = [degrees[name] for name in ("tp", "pp", "cp")]
    if not zero or copies is AUTO:
        copies = 1
    if not ranks or AUTO in cut:
        return {"dp_replicate": copies}
    each = cut[0] * cut[1] * cut[2] * copies
    if ranks % each:
        what, rule = "the degrees do not make the launch", "tp x pp x cp x optimizer instances divide the ranks"
        factors = (("tp", cut[0]), ("pp", cut[1]), ("cp", cut[2]), ("instances", copies))
        named = " x ".join(f"{name} {value}" for name, value in factors if value > 1)
        got = f"{ranks:,} rank{'s' * (ranks > 1)} in the launch / ({named}) = {ranks / each:.6g}"
        fix = f"{-(-ranks // each) * each:,} ranks, or other degrees"
        settings.find("MEG004", "tensor_model_parallel_size", what, rule, got, fix)
        return {"dp_replicate": copies}
    return {"dp_replicate": copies, "dp_shard": ranks // each}


def _chunks(settings: Settings, layers: int, pp: Any, notes: list[str]) -> tuple[Any, tuple[int, ...]]:
    """Chunks a rank, and the layers of each where they are not equal."""
    string = settings.word("pipeline_model_parallel_layout")
    vpp = known_or_auto(settings, "num_virtual_stages_per_pipeline_rank", 0, "vpp")
    each = known_or_auto(settings, "num_layers_per_virtual_pipeline_stage", 0, "vpp")
    first, last = (settings.number(f"decoder_{end}_pipeline_num_layers") for end in ("first", "last"))
    ends = [settings.on(f"account_for_{end}_in_pipeline_split") for end in ("embedding", "loss")]
    if pp is AUTO or vpp is AUTO or each is AUTO:
        return AUTO, ()
    if string:
        found = parse_layout(settings.held["pipeline_model_parallel_layout"].values[0])
        if found is None or len(found) % pp:
            _odd(settings, "pipeline_model_parallel_layout", f"E, t a layer, m, L, with stages that {pp} divides")
            return 1, ()
        return len(found) // pp, tuple(found)
    if each and not vpp and layers and pp > 1:
        vpp = virtual_stages(settings, layers, pp, each)
    vpp = (vpp or 1) if pp > 1 else 1
    if not (first or last or any(ends)):
        return vpp, ()
    if not layers:
        notes.append("the layers are not in the file, so what it says of its first and last stage is not read: --split")
        return vpp, ()
    made = ends_given(layers, pp, vpp, first, last) if first or last else ends_counted(layers, pp, vpp, *ends)
    if made is None:
        what, rule = "the layers do not share out", "what the first and last stage leave divides over the other chunks"
        got, fix = f"{layers} layers over {pp} x {vpp} chunks", "other counts, or --pipeline-model-parallel-layout"
        settings.find("MEG003", "num_layers", what, rule, got, fix)
    return vpp, tuple(made or ())


def _odd(settings: Settings, name: str, rule: str) -> None:
    one = settings.held[name]
    fix = "another value; `outlay explain LAY009` says which layers share out"
    settings.faults.append(fault("FMT005", f"{one.name} does not fit", rule, one.text, fix, one.line, one.column))


def _recompute(settings: Settings, vpp: int, notes: list[str]) -> dict[str, Any]:
    """What runs again. The counts of Megatron-LM are of one chunk, ours of all that a rank has."""
    kind = settings.word("recompute_granularity", ("full", "selective"))
    method = settings.word("recompute_method", ("uniform", "block"))
    count, modules = settings.number("recompute_num_layers"), settings.words("recompute_modules")
    if settings.on("recompute_activations") and not kind:
        kind = "selective"
    if not kind:
        if count or method:
            what = "layers to recompute have no effect without --recompute-granularity full"
            rule, fix = "method and count belong to full recompute", "add --recompute-granularity full, or remove them"
            name = "recompute_num_layers" if count else "recompute_method"
            edits = {one: None for one in ("recompute_method", "recompute_num_layers") if one in settings.held}
            settings.find("MEG002", name, what, rule, "no --recompute-granularity", fix, serious=False, edits=edits)
        return {"recompute": "none"}
    if kind == "selective":
        more = ("moe",) if settings.on("moe_layer_recompute") else ()
        own = modules if settings.get("recompute_modules") else ("core_attn",)
        held = {inner for name in (*own, *more) for inner in INSIDE.get(name, ())}
        ours = tuple(name for name in (*own, *more) if name in MODULES and name not in held)
        notes += [f"recompute of {name} is inside that of the module that holds it" for name in own if name in held]
        notes += [f"recompute of {name} is not counted" for name in modules if name not in MODULES]
        return {"recompute": "selective", "recompute_modules": ours} if ours else {"recompute": "none"}
    if method == "block":
        return {"recompute": "full", "recompute_layers": max(1, count) * vpp}
    return {"recompute": "full", "recompute_group": max(1, count)}


def job_of(settings: Settings, notes: list[str]) -> Job:
    """What is trained for how long. Types of the state are AUTO where they are Megatron-LM's own."""
    sequence = known_or_auto(settings, "seq_length", 0, "sequence_length", 0)
    batch = known_or_auto(settings, "global_batch_size", 0, "global_batch", 0)
    samples = settings.number("train_samples") or settings.number("train_iters") * (batch or 0)
    optimizer = settings.word("optimizer", (), "adam")
    momentum = settings.real("sgd_momentum", 0.9)
    if optimizer not in OPTIMIZERS:
        notes.append(f"--optimizer {optimizer} is not counted: read as adam")
    named = "sgd" if optimizer == "sgd" and momentum == 0 else OPTIMIZERS.get(optimizer, "adam")
    capacity = settings.real("moe_expert_capacity_factor")
    return Job(
        sequence_length=sequence or AUTO,
        global_batch=batch or AUTO,
        tokens=float(samples * (sequence or 0)),
        precision=_precision(settings),
        optimizer=named,  # type: ignore[arg-type]
        **_types(settings),
        gather_dtype="fp8" if settings.on("fp8_param_gather") else AUTO,
        expert_capacity=capacity,
        pad_to_capacity=settings.on("moe_pad_expert_input_to_capacity"),
        batch_rampup=settings.numbers("rampup_batch_size"),
    )


def _precision(settings: Settings) -> Any:
    eight, recipe = settings.word("fp8_format"), settings.word("fp8_recipe")
    four, kind = settings.word("fp4_format"), settings.word("params_dtype")
    half, brain = settings.on("fp16"), settings.on("bf16")
    settings.asked.update(("fp4_recipe", "params_dtype", "fp8_recipe"))
    if four:
        return "nvfp4"
    if eight:
        return RECIPES.get(recipe, "fp8")
    return "fp16" if half or kind == "float16" else "bf16" if brain or kind == "bfloat16" else "fp32"


def _types(settings: Settings) -> dict[str, Any]:
    """Types of master, gradients and moments, where they are not what Megatron-LM takes by itself."""
    names = ("main_params_dtype", "main_grads_dtype", "exp_avg_dtype", "exp_avg_sq_dtype")
    said = [settings.word(name, default="fp32") for name in names]
    master, gradients, first, second = (DTYPES.get(word, word) for word in said)
    narrow, wide = settings.on("grad_reduce_in_bf16"), settings.on("accumulate_allreduce_grads_in_fp32")
    if settings.on("use_precision_aware_optimizer") and not settings.on("fp16"):
        kept = settings.on("bf16") and master == "fp32" and not settings.on("optimizer_cpu_offload")
        types = {"master_dtype": "remainder" if kept else master, "gradient_dtype": gradients, "moment_dtype": first}
        return types | {"moment_dtype": max(first, second, key=lambda name: BYTES.get(name, 0))}
    if settings.on("fp16"):
        return {} if wide else {"gradient_dtype": "fp16"}
    return {"gradient_dtype": "bf16"} if narrow and settings.on("bf16") else {}
