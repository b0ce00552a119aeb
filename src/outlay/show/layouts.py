"""A layout as flags that can be pasted, and in words; what many layouts have in common."""

from collections.abc import Sequence

from ..engines.engine import Engine
from ..layout.axes import Layout
from ..model.model import Model

DEGREES = ("tp", "cp", "pp", "ep", "etp", "vpp")


def layout_flags(layout: Layout, model: Model, engine: Engine) -> str:
    """The flags of `outlay count` that make this layout: what a default would fill is left out."""
    many, modules = replicated(layout, model), ",".join(layout.recompute_modules or ())
    words = [f"--{name} {getattr(layout, name)}" for name in DEGREES if getattr(layout, name) > 1]
    said = {
        f"--mbs {layout.micro_batch}": layout.micro_batch > 1,
        f"--dp-replicate {layout.dp_replicate}": layout.dp_replicate > 1,
        f"--zero {layout.zero}": many and layout.zero != engine.zero,
        f"--gather-unit {layout.gather_unit}": layout.gather_unit == "model",
        f"--schedule {layout.schedule}": layout.schedule != ("interleaved" if layout.vpp > 1 else "1f1b"),
        "--no-sp": layout.tp > 1 and not layout.sp,
        f"--cp-kind {layout.cp_kind}": layout.cp > 1 and layout.cp_kind != "ring",
        f"--moe-dispatch {layout.moe_dispatch}": layout.ep > 1 and layout.moe_dispatch != "all_to_all",
        f"--recompute {layout.recompute}": layout.recompute != "none",
        f"--recompute-modules {modules}": _chosen(layout, engine.recompute_modules[:1]),
        f"--recompute-layers {layout.recompute_layers}": layout.recompute == "full",
        f"--recompute-group {layout.recompute_group}": (layout.recompute_group or 1) > 1,
        f"--split {','.join(map(str, layout.split or ()))}": bool(layout.split),
        "--overlap-tp": layout.overlap_tp and layout.tp > 1,
        "--overlap-ep": layout.overlap_ep and layout.ep > 1,
        f"--graphs {layout.graphs}": (layout.graphs or "none") != "none",
        "--no-overlap-dp": many and not layout.overlap_dp,
    }
    words += [text for text, needed in said.items() if needed]
    for name in ("offload_optimizer", "offload_parameters", "offload_activations"):
        if getattr(layout, name):
            words.append(f"--{name.replace('_', '-')} {getattr(layout, name):g}")
    return " ".join(words) or "no flag: every axis 1"


def _chosen(layout: Layout, usual: tuple[str, ...] = ("core_attn",)) -> bool:
    """Whether selective recompute is of other modules than the usual ones."""
    return layout.recompute == "selective" and tuple(layout.recompute_modules or usual) != usual


def replicated(layout: Layout, model: Model) -> bool:
    """Whether some weights stand on several ranks, so that ZeRO and data-parallel exchange mean something."""
    experts = model.experts > 0
    return bool(layout.replicas > 1 or (experts and layout.edp > 1))


def _offload(layout: Layout) -> str:
    """What is in host memory, and which share of it."""
    others = {"weights": layout.offload_parameters, "activations": layout.offload_activations}
    said = [f"{name} {share:g}" for name, share in others.items() if share]
    said = [f"{layout.offload_optimizer:g}", *said] if layout.offload_optimizer else said
    return f"offload {' '.join(said)}" if said else "no offload"


def option_words(layout: Layout, model: Model) -> dict[str, str]:
    """Everything but the degrees, in a word or two each; empty where it means nothing here."""
    many = replicated(layout, model)
    shards = f" in {layout.dp_replicate} groups" if layout.dp_replicate > 1 else ""
    modules = f" {' '.join(layout.recompute_modules)}" if _chosen(layout) else ""
    again = {"none": "no recompute", "selective": "selective" + modules}
    able = [axis for axis, used in (("tp", layout.tp > 1), ("dp", many)) if used]
    hidden = [axis for axis in able if getattr(layout, f"overlap_{axis}")]
    return {
        "micro_batch": f"mbs {layout.micro_batch}",
        "vpp": f"vpp {layout.vpp}",
        "etp": f"etp {layout.etp}" if layout.ep > 1 or layout.etp > 1 else "",
        "schedule": str(layout.schedule) if layout.pp > 1 else "",
        "sp": ("sp" if layout.sp else "no sp") if layout.tp > 1 else "",
        "recompute": again.get(layout.recompute, f"recompute {layout.recompute_layers}"),
        "zero": f"zero {layout.zero}{shards}" if many else "",
        "overlap": (f"overlap {' '.join(hidden)}" if hidden else "no overlap") if able else "",
        "offload": _offload(layout),
    }


def common_words(layouts: Sequence[Layout], model: Model) -> dict[str, str]:
    """The options that all of some layouts share."""
    every = [option_words(layout, model) for layout in layouts]
    return {name: text for name, text in every[0].items() if all(words[name] == text for words in every)}


def mesh(layout: Layout) -> tuple[object, ...]:
    """What makes two layouts different cuts, and not the same cut with other options."""
    names = ("tp", "cp", "pp", "ep", "etp", "vpp", "micro_batch", "sp", "schedule", "cp_kind", "moe_dispatch")
    return tuple(getattr(layout, name) for name in names)


def mesh_words(layout: Layout) -> str:
    """The degrees of a cut in words."""
    named = {name: getattr(layout, name) for name in (*DEGREES, "micro_batch")}
    shown = [f"{name.replace('_', '-')} {value}" for name, value in named.items() if value > 1]
    return ", ".join(shown) or "every axis 1"
