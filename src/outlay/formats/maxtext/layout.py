"""Layout and task of a MaxText configuration, with the defaults of its base.yml."""

from typing import Any

from ...job import AUTO, Job
from ...layout.axes import Layout
from ...model.model import Model
from ..setting import Missing, Settings
from .checks import check_batch, check_pipeline, check_sharding
from .keys import FORMATS, OPTIMIZERS, STATE
from .mesh import Mesh
from .models import pipelined

BATCH, SEQUENCE = 12.0, 2048  # per_device_batch_size and max_target_length of base.yml
WIDTHS = {"fp32": 4, "bf16": 2, "fp16": 2}
# Between what a policy keeps and what is counted: the nearest word of ours, and what to say of it.
POLICIES: dict[str, tuple[str, str]] = {
    "full": ("full", ""),
    "none": ("none", ""),
    "minimal": ("selective", ""),
    "minimal_with_quantization": ("selective", ""),
    "minimal_offloaded": ("selective", ""),
    "minimal_with_context": ("none", "norms and activations run again, which is not counted"),
    "minimal_flash": ("none", "norms and activations run again, which is not counted"),
    "minimal_with_context_and_quantization": ("none", "norms and activations run again, which is not counted"),
}
BETWEEN = "it keeps some products of matrices: counted as full, so kept memory is more and time less than counted"


def layout_of(at: Settings, mesh: Mesh, model: Model | None, notes: list[str]) -> tuple[Layout, list[Missing]]:
    """How the run is cut, and what the file does not say of it."""
    lacks = list[Missing]()
    cut: dict[str, Any] = {name: mesh[name] for name in ("tp", "cp", "pp", "ep")}
    for name in [name for name, degree in cut.items() if not degree]:
        lacks.append(Missing(name, "its axis takes what is left of the devices, which the file does not say"))
        cut[name] = 1
    shards = _shards(at, mesh, cut["ep"], cut["cp"], lacks)
    vpp = _chunks(at, cut["pp"], model, lacks, notes)
    several: Any = "looped_bfs" if vpp and vpp > 1 else "gpipe"
    made = Layout(
        **cut,
        etp=1,
        vpp=vpp,
        schedule=several if cut["pp"] > 1 else AUTO,
        **shards,
        **_recompute(at, notes),
        cp_kind=_kind(at, notes),
        loss_chunks=at.number("num_vocab_tiling", 1, 1),
        offload_optimizer=float(at.on("optimizer_memory_host_offload")),
        offload_parameters=float(at.on("parameter_memory_host_offload")),
        split=(),
    )
    return made, lacks


def _shards(at: Settings, mesh: Mesh, ep: int, cp: int, lacks: list[Missing]) -> dict[str, Any]:
    """Copies, shards and what is sharded. Weights are cut over fsdp, and over context and expert alike."""
    free = not mesh["fsdp"]
    check_sharding(at, mesh, free)
    if free or mesh["fsdp"] > 1 or ep > 1 or cp > 1:
        shards: Any = AUTO if free else mesh["fsdp"] * ep
        if not mesh["data"]:
            why = "the data axis takes what is left of the devices, which the file does not say"
            lacks.append(Missing("dp_replicate", why))
        return {"zero": 3, "dp_replicate": mesh["data"] or AUTO, "dp_shard": shards}
    zero = int(at.on("shard_optimizer_over_data"))
    return {"zero": zero, "dp_replicate": 1, "dp_shard": mesh["data"] * ep or AUTO}


def _chunks(at: Settings, stages: int, model: Model | None, lacks: list[Missing], notes: list[str]) -> Any:
    """Repeats of a pipeline: its layers over stages x layers a stage, where it does not say them."""
    each, said = at.number("num_layers_per_pipeline_stage", 1, 1), int(at.real("num_pipeline_repeats", -1, -1))
    named = int(at.real("pipeline_parallel_layers", -1, -1))
    count = int(at.real("num_pipeline_microbatches", -1, -1))
    usual = 2 * stages if at.on("pipeline_delay_activation_forwarding") else stages
    at.get("pipeline_fsdp_ag_once")
    if stages == 1:
        return 1
    own = pipelined(at.word("model_name"), model) if model else 0
    layers = named if named > 0 else own
    repeats = said if said > 0 else layers // (stages * each)
    check_pipeline(at, stages, each, repeats, count if count > 0 else usual, layers)
    if model and layers != model.layers:
        notes.append(f"the pipeline has {layers} of {model.layers} layers; all are counted in its stages")
    if not repeats and not layers:
        lacks.append(Missing("vpp", f"num_pipeline_repeats: the model's layers / ({stages} stages x {each})"))
    return repeats or (AUTO if not layers else 1)


def _recompute(at: Settings, notes: list[str]) -> dict[str, Any]:
    policy = at.word("remat_policy", (), "full")
    kind, why = POLICIES.get(policy, ("full", BETWEEN))
    moved = 1.0 if policy == "minimal_offloaded" else 0.0
    if policy == "custom":
        moved = float(at.word("decoder_layer_input", (), "device") == "offload")
        why = "of its tensors the input of a layer is read: the others are counted as computed again"
    notes += [f"remat_policy {policy}: {why}"] if why else []
    modules = {"recompute_modules": ("core_attn",)} if kind == "selective" else {}
    return {"recompute": kind, "offload_activations": moved, **modules}


def _kind(at: Settings, notes: list[str]) -> Any:
    at.asked.update(("context_parallel_load_balance", "attention", "use_tokamax_splash"))
    kind = at.word("context_parallel_strategy", (), "all_gather")
    if kind == "usp":
        notes.append("context_parallel_strategy usp: its ring and its all-to-all are counted as a ring")
    return kind if kind in ("all_gather", "ring", "ulysses") else "ring" if kind == "usp" else AUTO


def batch_of(at: Settings, mesh: Mesh, layout: Layout) -> tuple[int, int]:
    """Micro-batches of a step, and its sequences; 0 where they rest on devices that the file does not say."""
    passes = at.number("gradient_accumulation_steps", 1, 1)
    return passes * _parts(at, layout), _sequences(at, mesh) * passes


def _parts(at: Settings, layout: Layout) -> int:
    """Micro-batches of one pass through a pipeline."""
    if layout.pp == 1:
        return 1
    usual = 2 * layout.pp if at.on("pipeline_delay_activation_forwarding") else layout.pp
    count = int(at.real("num_pipeline_microbatches", -1, -1))
    return count if count > 0 else int(usual)


def _sequences(at: Settings, mesh: Mesh) -> int:
    """Sequences of one pass: devices x per_device_batch_size, cut to a whole number."""
    return int(mesh.devices * at.real("per_device_batch_size", BATCH))


def micro_batch_of(at: Settings, mesh: Mesh, layout: Layout) -> Any:
    """Sequences of a micro-batch on a data-parallel rank: a device's batch times those that share its sequences."""
    parts = _parts(at, layout)
    each = at.real("per_device_batch_size", BATCH) * layout.tp * layout.cp * layout.pp / parts
    check_batch(at, _sequences(at, mesh), parts, each)
    return round(each) if abs(each - round(each)) <= 1e-6 and each > 0.5 else AUTO


def job_of(at: Settings, batch: Any, notes: list[str]) -> Job:
    """What is trained. Weights, moments and gradients are fp32 where the file does not say otherwise."""
    sequence, steps = at.number("max_target_length", SEQUENCE, 1), at.real("steps", 0, -1)
    named, kind = at.word("quantization"), at.word("dtype", (), "bfloat16")
    precision: Any = FORMATS.get(named) or STATE.get(kind, "bf16")
    if named and named not in FORMATS:
        notes.append(f"quantization {named} is not counted: read as {precision}")
    optimizer = at.word("opt_type", (), "adamw")
    if optimizer not in OPTIMIZERS:
        notes.append(f"opt_type {optimizer} is not counted: read as adam")
    capacity = max(0.0, at.real("capacity_factor", -1, -1))
    weights = STATE.get(at.word("weight_dtype", (), "float32"), "fp32")
    gradients = STATE.get(at.word("grad_dtype", (), "float32"), "fp32")
    first = STATE.get(at.word("mu_dtype", (), ""), weights)
    moments = max(first, weights, key=lambda name: WIDTHS[name])
    own = (weights, gradients, moments) == ("fp32", "fp32", "fp32")
    kept: Any = {"master_dtype": weights, "gradient_dtype": gradients, "moment_dtype": moments}
    if first != moments:
        notes.append(f"mu_dtype {first}: both moments are counted in {moments}, as the second one is")
    return Job(
        sequence_length=sequence,
        global_batch=batch,
        tokens=float(max(0, steps) * (batch or 0) * sequence),
        precision=precision,
        optimizer=OPTIMIZERS.get(optimizer, "adam"),  # type: ignore[arg-type]
        expert_capacity=capacity,
        pad_to_capacity=capacity > 0,
        **({} if own else kept),
    )
