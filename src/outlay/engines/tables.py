"""The tables of engines, kernel sets, recipes, optimizers and precisions: the data files beside this module."""

import re
from dataclasses import fields, replace
from functools import cache
from typing import Any

from ..errors import Fault, InputError, nearest, quoted
from ..sections import section, sections
from .engine import Engine, Kernel, KernelSet, TimeBands, Workspaces
from .profile import KERNELS
from .recipe import FrozenFormat, Optimizer, Precision, Types

PACKAGE = __name__.rpartition(".")[0]


def _names(kind: str) -> tuple[str, ...]:
    return tuple(sections(PACKAGE, f"{kind}.toml"))


def _value(fact: Any) -> Any:
    value = fact["value"] if isinstance(fact, dict) and "value" in fact else fact
    return tuple(map(_value, value)) if isinstance(value, list) else value


def _known(kind: str, name: str, code: str) -> dict[str, Any]:
    known = _names(kind)
    if name not in known:
        close = nearest(name, known)
        raise InputError(
            Fault(
                code,
                f"no {kind[:-1].replace('_', ' ')} is called {quoted(name)}",
                f"one of {', '.join(known)}",
                quoted(name),
                close[0] if close else known[0],
            )
        )
    return section(PACKAGE, f"{kind}.toml", name)


def engine_names() -> tuple[str, ...]:
    """The engines and releases that can be counted."""
    return _names("engines")


def kernel_set_names() -> tuple[str, ...]:
    """The named kernel sets."""
    return _names("kernel_sets")


def facts_of(name: str) -> dict[str, Any]:
    """The row of an engine with those of its base, each fact with its kind and source. Raises InputError (ENG001)."""
    own = _known("engines", name, "ENG001")
    return facts_of(own["base"]) | own if "base" in own else own


@cache
def engine(name: str) -> Engine:
    """The facts of an engine. Raises InputError (ENG001) for an unknown name."""
    facts = facts_of(name)
    return Engine(
        name=name, **{f.name: _value(facts[f.name]) for f in fields(Engine) if f.name not in ("name", "profile")}
    )


@cache
def frozen_format(name: str) -> FrozenFormat:
    """How a frozen matrix is kept. Raises InputError (ENG006) for an unknown name."""
    return FrozenFormat(name=name, **_known("frozen_formats", name, "ENG006"))


@cache
def kernel_set(name: str) -> KernelSet:
    """The facts of a kernel set. Raises InputError (ENG002) for an unknown name."""
    own = _known("kernel_sets", name, "ENG002")
    kernels = {f.name for f in fields(KernelSet) if f.type is Kernel}
    facts = {f.name: _value(own[f.name]) for f in fields(KernelSet) if f.name != "name"}
    filled: dict[str, Any] = {key: Kernel(**fact) if key in kernels else fact for key, fact in facts.items()}
    return KernelSet(name=name, **filled)


def kernels_of(engine: Engine) -> KernelSet:
    """The kernel set of an engine, with the constants of its profile where that is of this engine."""
    found, profile = kernel_set(engine.kernels), engine.profile
    values = profile.values(KERNELS) if profile and profile.engine == engine.name else {}
    if not profile or not values:
        return found
    loss = replace(
        found.loss,
        moves=values.get("loss_moves", found.loss.moves),
        moves_back=values.get("loss_moves_back", found.loss.moves_back),
    )
    forward, back = found.attention_on(profile.accelerator)
    core = (values.get("attention_share", forward), values.get("attention_back_share", back))
    return replace(
        found,
        loss=loss,
        elementwise=values.get("elementwise", found.elementwise),
        attention_shares=((profile.accelerator, *core),),
    )


@cache
def workspaces(libraries: tuple[str, ...], accelerator: str) -> Workspaces:
    """Workspaces of some libraries together on one accelerator, named by its vendor and its name."""
    held, grouped = 0, 0
    for library in libraries:
        row = section(PACKAGE, "workspaces.toml", library)
        sizes = (size["bytes"] for size in row["sizes"] if re.search(size["match"], accelerator))
        one = next(sizes, 0)
        held += one * _value(row["held"])
        grouped += one * _value(row["grouped"])
    return Workspaces(held, grouped)


@cache
def time_bands(engine: str, precision: str, has: str, accelerator: str) -> TimeBands:
    """The bands of a step's time; `has` is `experts` where the model has some."""
    of = {"engine": engine, "precision": precision, "experts": has, "accelerator": accelerator}
    found = {name: _band(name, text) for name, text in of.items()}
    assumed = any(row["share"] and row["kind"] != "measured" for row in found.values())
    return TimeBands(**{name: row["share"] for name, row in found.items()}, kind="assumed" if assumed else "measured")


def _band(name: str, text: str) -> dict[str, Any]:
    rows = section(PACKAGE, "time_bands.toml", name)["of"]
    return next(row for row in rows if re.search(row["match"], text))


@cache
def types(name: str) -> Types:
    """The number types of a recipe. Raises InputError (ENG003) for an unknown name."""
    return Types(name=name, **_known("recipes", name, "ENG003"))


@cache
def optimizer(name: str) -> Optimizer:
    """What an optimizer keeps. Raises InputError (ENG004) for an unknown name."""
    return Optimizer(name=name, **_known("optimizers", name, "ENG004"))


@cache
def precision(name: str) -> Precision:
    """What a precision keeps. Raises InputError (ENG005) for an unknown name."""
    facts = _known("precisions", name, "ENG005")
    return Precision(name=name, **{key: _value(value) for key, value in facts.items()})
