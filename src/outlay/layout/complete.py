"""Fill what was not given, and say so: nothing is assumed in silence."""

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

from ..cluster.accelerator import Accelerator, Cluster
from ..engines.engine import Engine
from ..engines.tables import kernel_set, optimizer, precision
from ..job import AUTO, Beside, Job, named_types, types_of, usual_format, wire_of
from ..model.model import Model
from ..model.modules import usual_modules
from ..schedule.laws import FOLDED, SCHEDULES
from .axes import Layout
from .stages import stage_layers

FLAGS = {
    "sequence_length": "--seq",
    "global_batch": "--batch",
    "bytes_per_parameter": "--bytes",
    "micro_batch": "--mbs",
    "batch_rampup": "--rampup",
}


def flag(name: str) -> str:
    """The command-line flag of a field."""
    return FLAGS.get(name, "--" + name.replace("_", "-"))


def _precision(accelerator: Accelerator) -> str:
    if accelerator.bf16_flops:
        return "bf16"
    return "fp16" if accelerator.fp16_flops else "fp32"


def _schedule(engine: Engine, pp: int, vpp: int) -> str:
    """The engine's usual order of a pipeline with so many chunks a rank; 1F1B where there is none."""
    fitting = (name for name in engine.schedules if pp > 1 and SCHEDULES[name].fits(pp, vpp) == 1)
    return next(fitting, "interleaved" if vpp > 1 else "1f1b")


def layout_defaults(model: Model, cluster: Cluster, layout: Layout, engine: Engine) -> dict[str, Any]:
    """Every default of a layout, given what was given. Order matters: later ones read earlier ones."""

    def given(name: str, default: Any) -> Any:
        value = getattr(layout, name)
        return default if value is AUTO else value

    plain = dict.fromkeys(("tp", "cp", "pp", "vpp", "ep", "etp", "dp_replicate", "micro_batch"), 1)
    tp, cp, pp = (given(name, 1) for name in ("tp", "cp", "pp"))
    vpp = given("vpp", 2 if layout.schedule in FOLDED else 1)
    split = tuple(given("split", ()))
    split = split if len(split) in (pp, pp * vpp) and sum(split) == model.layers else ()
    left = cluster.ranks // max(1, tp * cp * pp * given("dp_replicate", 1))
    folded = layout.schedule in FOLDED
    recompute = "selective" if layout.recompute_modules else engine.recompute
    with_pp = min(engine.zero_with_pp, engine.usual_zero_with_pp) if pp > 1 else 3
    zero = min(engine.zero, with_pp, engine.zero_with_tp if tp > 1 else 3)
    held = max(len(layers) for layers in stage_layers(model.layers, pp, vpp, split, engine.counts_ends, folded))
    return plain | {
        "vpp": vpp,
        "sp": tp > 1 and engine.slices_sequence,
        "keep_gathered": kernel_set(engine.kernels).keeps_gathered,
        "cp_kind": engine.cp_kinds[0],
        "moe_dispatch": "all_to_all",
        "dp_shard": max(1, left),
        "zero": zero,
        "gather_unit": "layer",
        "accumulate_whole": engine.accumulates_whole,
        "schedule": _schedule(engine, pp, vpp),
        "recompute": recompute,
        "recompute_modules": usual_modules(model, engine) if given("recompute", recompute) == "selective" else (),
        "recompute_layers": held if given("recompute", recompute) == "full" else 0,
        "recompute_group": 1,
        "loss_chunks": 1,
        "split": (),
        "overlap_tp": False,
        "overlap_ep": False,
        "graphs": "none",
        "overlap_dp": True,
        "offload_optimizer": 0.0,
        "offload_parameters": 0.0,
        "offload_activations": 0.0,
    }


# Said only where they change something: a list of twenty ones hides the two that matter.
ALWAYS_SAID = {"micro_batch", "zero", "schedule", "recompute", "sp", "dp_shard"}


def _said(name: str, value: Any, layout: Layout, experts: bool) -> str:
    matters = {
        "sp": (layout.tp or 1) > 1,
        "schedule": (layout.pp or 1) > 1,
        "dp_shard": value > 1 if name == "dp_shard" else False,
        "vpp": value > 1 if name == "vpp" else False,
        "cp_kind": (layout.cp or 1) > 1,
        "moe_dispatch": (layout.ep or 1) > 1,
        "graphs": experts,
        "overlap_ep": experts and (layout.ep or 1) > 1,
        "etp": experts and (layout.tp or 1) > 1,
        "ep": experts,
        "overlap_dp": True,
        "recompute_modules": bool(value),
        "accumulate_whole": value and (layout.zero or 0) >= 2,
    }
    if not matters.get(name, name in ALWAYS_SAID):
        return ""
    shown = ", ".join(value) if isinstance(value, tuple) else str(value).lower() if isinstance(value, bool) else value
    return f"{name.replace('_', ' ')} {shown} ({flag(name)})"


def complete_layout(model: Model, cluster: Cluster, layout: Layout, engine: Engine) -> tuple[Layout, tuple[str, ...]]:
    """The layout with every field filled, and what was assumed."""
    defaults = layout_defaults(model, cluster, layout, engine)
    missing = {f.name: defaults[f.name] for f in fields(Layout) if getattr(layout, f.name) is AUTO}
    experts = model.experts > 0
    said = (_said(name, value, layout, experts) for name, value in missing.items())
    idle: tuple[str, ...] = ("sp without tp changes nothing (--sp)",) if layout.sp and (layout.tp or 1) == 1 else ()
    launched = engine.layer_floor_seconds or (experts and engine.expert_floor_seconds)
    if (layout.graphs or "none") != "none" and not launched:
        idle += ("graphs change nothing here: what launches cost is inside the rates of kernels (--graphs)",)
    again = missing.get("recompute_modules", layout.recompute_modules)  # a list where it comes from JSON
    modules = tuple(dict.fromkeys(again))
    return replace(layout, **(missing | {"recompute_modules": modules})), (*(text for text in said if text), *idle)


STATE = ("master_dtype", "gradient_dtype", "moment_dtype")


def _types(job: Job, engine: Engine) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The number types of a job's state and wire that were not given, and what is assumed of its recipe."""
    own, (reduced, gathered) = types_of(job, engine), wire_of(job, engine)
    defaults = (own.master, own.gradients, own.moments, reduced, gathered)
    names = (*STATE, "reduce_dtype", "gather_dtype")
    filled = {name: value for name, value in zip(names, defaults, strict=True) if getattr(job, name) is AUTO}
    if engine.narrows_sharded and "reduce_dtype" in filled:
        filled["reduce_dtype"] = "usual"  # it depends on the layout
    how, rule = precision(job.precision), optimizer(job.optimizer)
    said = [note for note in (rule.note, how.note) if note]
    if job.fixed or job.bytes_per_parameter is not AUTO:
        return filled, tuple(said)
    plain = rule.name == "adam" and how.name in ("bf16", "fp16") and all(getattr(job, name) is AUTO for name in STATE)
    kept = "bytes a parameter" if plain else "types of state that were not given"
    filled["bytes_per_parameter"] = named_types(job, engine).name if plain else "derived"
    return filled, (f"{kept} as {engine.name} keeps them (--bytes)", *said)


def _told_apart(models: Iterable[Beside]) -> tuple[Beside, ...]:
    """Models beside, each with a name of its own: a policy's reference and its critic are often one model twice."""
    apart: dict[str, Beside] = {}
    for place, one in enumerate(models, 1):
        name = f"{one.name} ({one.role} {place})" if one.name in apart else one.name
        apart[name] = replace(one, name=name)
    return tuple(apart.values())


def complete_job(
    model: Model, job: Job, cluster: Cluster, layout: Layout, engine: Engine
) -> tuple[Job, tuple[str, ...]]:
    """The job with every field filled, and what was assumed. `layout` is complete."""
    said: list[str] = []
    filled: dict[str, Any] = {}
    if job.sequence_length is AUTO:
        filled["sequence_length"] = model.trained_length or 2048
        origin = "the longest that the model says" if model.trained_length else "the model does not say its length"
        said.append(f"SEQUENCE LENGTH {filled['sequence_length']:,}: {origin} (--seq)")
    if job.global_batch is AUTO:
        filled["global_batch"] = int(layout.dp * layout.micro_batch)
        idle = ", so idle time is at its worst" if layout.pp > 1 else ""
        said.append(f"GLOBAL BATCH {filled['global_batch']:,}: ONE MICRO-BATCH A STEP{idle} (--batch)")
    if job.beside:
        filled["beside"] = _told_apart(replace(one, ranks=one.ranks or cluster.ranks) for one in job.beside)
    if job.precision is AUTO:
        filled["precision"] = _precision(cluster.accelerator)
        said.append(f"{filled['precision']} matrix multiplies (--precision)")
    if job.frozen_format is AUTO:
        filled["frozen_format"] = usual_format(replace(job, **filled))
    types, about_types = _types(replace(job, **filled), engine)
    if job.expert_imbalance == 1 and model.experts > 0 and not job.pad_to_capacity:
        said.append("experts are equally loaded (--expert-imbalance)")
    return replace(job, **filled, **types), (*said, *about_types)


def complete(
    model: Model, job: Job, cluster: Cluster, layout: Layout, engine: Engine
) -> tuple[Job, Layout, tuple[str, ...]]:
    """Job and layout with every field filled, and the list of what was assumed."""
    full_layout, about_layout = complete_layout(model, cluster, layout, engine)
    full_job, about_job = complete_job(model, job, cluster, full_layout, engine)
    fused = ", fused attention" if kernel_set(engine.kernels).fused_attention else ""
    engine_said = (f"engine {engine.name}: {engine.title}{fused}",)
    return full_job, full_layout, (*about_job, *about_layout, *engine_said, *model.notes)
