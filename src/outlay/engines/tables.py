"""The tables of engines, kernel sets and recipes, read from the data files beside this module."""

import tomllib
from dataclasses import fields
from functools import cache
from importlib import resources
from typing import Any

from ..errors import Fault, InputError, nearest, quoted
from .engine import Engine, Kernel, KernelSet, Recipe


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


@cache
def engine(name: str) -> Engine:
    """The facts of an engine. Raises InputError (ENG001) for an unknown name."""
    entry = _known("engines", name, "ENG001")
    return Engine(name=name, **{f.name: _value(entry[f.name]) for f in fields(Engine) if f.name != "name"})


@cache
def kernel_set(name: str) -> KernelSet:
    """The facts of a kernel set. Raises InputError (ENG002) for an unknown name."""
    entry = _known("kernel_sets", name, "ENG002")
    kernels = {f.name for f in fields(KernelSet) if f.type is Kernel}
    facts = {f.name: _value(entry[f.name]) for f in fields(KernelSet) if f.name != "name"}
    filled: dict[str, Any] = {key: Kernel(**fact) if key in kernels else fact for key, fact in facts.items()}
    return KernelSet(name=name, **filled)


@cache
def recipe(name: str) -> Recipe:
    """Bytes of a parameter under one recipe. Raises InputError (ENG003) for an unknown name."""
    entry = _known("recipes", name, "ENG003")
    return Recipe(name, entry["weights"], entry["gradients"], entry["optimizer"])
