"""Modules that a layout recomputes: those that the model and the engine have, and none inside another."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from ..engines.engine import Engine
from ..engines.tables import kernel_set
from ..errors import Fault, nearest, quoted
from ..model.model import Model
from ..model.modules import MODULES, modules_of
from ..model.policies import POLICIES
from .axes import Layout

KNOWN = {name: module.lacks for name, module in MODULES.items()} | dict.fromkeys(POLICIES, "layers")
INSIDE = {"moe": ("moe_act", "shared_experts")}  # modules that share rows with one that holds them


def apart(names: Sequence[str]) -> bool:
    """Whether no module of some holds another of them."""
    alone = len(names) > 1 and any(name in POLICIES for name in names)
    return not alone and not any(inner in names for name in names for inner in INSIDE.get(name, ()))


def misnamed(names: Sequence[str], had: Sequence[str], model: Model, engine: Engine, flag: str) -> Iterator[Fault]:
    """Names that are no module, that the model or the engine lacks, or that another one holds.

    `had`: the modules of the model.
    """
    own = engine.recompute_modules
    usable = [name for name in had if name in own]
    first = next(iter(usable), "")
    for name in names:
        if name not in KNOWN:
            close = nearest(name, KNOWN) or [first or "core_attn"]
            rule = f"Megatron-LM's modules: {', '.join(MODULES)}; torchtitan's {', '.join(POLICIES)}"
            yield Fault("RCP001", f"{quoted(name)} is no module", rule, quoted(name), f"{flag} {close[0]}")
        elif name not in had:
            rule = f"{name} stands in models with {KNOWN[name]}"
            got = f"{quoted(model.name)} has {', '.join(usable or had) or 'none'}"
            kept = ",".join(kept for kept in names if kept in usable) or first
            fix = f"{flag} {kept}" if kept else f"leave {flag} out"
            yield Fault("RCP002", f"{name}: the model has no such module", rule, got, fix)
        elif name not in own:
            rule = f"modules of {engine.name}: {', '.join(own) or 'none'}"
            fix = f"{flag} {first}" if first else f"leave {flag} out"
            yield Fault("RCP005", f"{name}: the engine has no such module", rule, f"{name}, {engine.name}", fix)
    for one, other in combinations([name for name in names if name in had], 2):
        if not apart((one, other)):
            rule = "modules of one choice share no operation"
            yield Fault("RCP003", "a module holds another", rule, f"{one}, {other}", f"{flag} {one}")


def unrecomputable(model: Model, layout: Layout, engine: Engine) -> list[Fault]:
    """Every fault in the modules of a complete layout."""
    names, had = layout.recompute_modules, modules_of(model, kernel_set(engine.kernels))
    found = list(misnamed(names, had, model, engine, "--recompute-modules"))
    if names and layout.recompute != "selective":
        rule = "modules are those of --recompute selective"
        got = f"--recompute {layout.recompute} --recompute-modules {','.join(names)}"
        found.append(Fault("RCP006", "modules without selective recompute", rule, got, "--recompute selective"))
    return found
