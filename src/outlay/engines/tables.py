"""The tables of engines, kernel sets, recipes, optimizers and precisions: the data files beside this module."""

import tomllib
from dataclasses import fields
from functools import cache
from importlib import resources
from typing import Any

from ..errors import Fault, InputError, nearest, quoted
from .engine import Engine, Kernel, KernelSet
from .recipe import FrozenFormat, Optimizer, Precision, Types


@cache
def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath(f"{name}.toml").read_text("utf-8"))


def _value(entry: Any) -> Any:
    value = entry["value"] if isinstance(entry, dict) and "value" in entry else entry
    return tuple(value) if isinstance(value, list) else value


def _known(kind: str, name: str, code: str) -> dict[str, Any]:
    table = _table(kind)
    if name not in table:
        close = nearest(name, table)
        raise InputError(
            Fault(
                code,
                f"no {kind[:-1].replace('_', ' ')} is called {quoted(name)}",
                f"one of {', '.join(table)}",
                quoted(name),
                close[0] if close else next(iter(table)),
            )
        )
    entry: dict[str, Any] = table[name]
    return entry


def engine_names() -> tuple[str, ...]:
    """The engines and releases that can be counted."""
    return tuple(_table("engines"))


def kernel_set_names() -> tuple[str, ...]:
    """The named kernel sets."""
    return tuple(_table("kernel_sets"))


def facts_of(name: str) -> dict[str, Any]:
    """The row of an engine with those of its base, each fact with its kind and source. Raises InputError (ENG001)."""
    entry = _known("engines", name, "ENG001")
    return facts_of(entry["base"]) | entry if "base" in entry else entry


@cache
def engine(name: str) -> Engine:
    """The facts of an engine. Raises InputError (ENG001) for an unknown name."""
    entry = facts_of(name)
    return Engine(name=name, **{f.name: _value(entry[f.name]) for f in fields(Engine) if f.name != "name"})


@cache
def frozen_format(name: str) -> FrozenFormat:
    """How a frozen matrix is kept. Raises InputError (ENG006) for an unknown name."""
    return FrozenFormat(name=name, **_known("frozen_formats", name, "ENG006"))


@cache
def kernel_set(name: str) -> KernelSet:
    """The facts of a kernel set. Raises InputError (ENG002) for an unknown name."""
    entry = _known("kernel_sets", name, "ENG002")
    kernels = {f.name for f in fields(KernelSet) if f.type is Kernel}
    facts = {f.name: _value(entry[f.name]) for f in fields(KernelSet) if f.name != "name"}
    filled: dict[str, Any] = {key: Kernel(**fact) if key in kernels else fact for key, fact in facts.items()}
    return KernelSet(name=name, **filled)


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
    entry = _known("precisions", name, "ENG005")
    return Precision(name=name, **{key: _value(value) for key, value in entry.items()})
