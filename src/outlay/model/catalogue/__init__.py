"""Well-known models: the facts of their configs that shape them, each with its source, and how MODEL is found."""

import json
import os
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...errors import Fault, InputError, nearest, quoted
from ..huggingface import Source, read_config
from ..model import Model


@dataclass(frozen=True)
class Entry:
    """One model of the catalogue: its facts as keys of a config.json, who says so, and its other names."""

    name: str
    config: dict[str, Any]
    source: str
    also: tuple[str, ...] = ()


@cache
def _entries() -> dict[str, Entry]:
    text = files(__name__).joinpath("models.json").read_text(encoding="utf-8")
    rows: dict[str, dict[str, Any]] = json.loads(text)
    return {name: Entry(name, row["config"], row["source"], tuple(row.get("also", ()))) for name, row in rows.items()}


@cache
def _spellings() -> dict[str, str]:
    """Every name that is accepted, and the name it stands for."""
    return {spelling: entry.name for entry in _entries().values() for spelling in (entry.name, *entry.also)}


def names() -> tuple[str, ...]:
    """The names of the catalogue, in order; each model once."""
    return tuple(sorted(_entries()))


def is_name(text: str) -> bool:
    """Whether a text is a name of the catalogue, in this spelling or another."""
    return text.strip().lower() in _spellings()


def matching(text: str) -> tuple[str, ...]:
    """The names that a text is part of, in this spelling or another; one alone where it is spelled out."""
    wanted = text.strip().lower()
    if wanted in _spellings():
        return (_spellings()[wanted],)
    return tuple(sorted({name for spelling, name in _spellings().items() if wanted in spelling}))


def entry(name: str) -> Entry:
    """The facts of one model and their source."""
    known = _spellings()
    found = known.get(name.strip().lower())
    if found is None:
        raise InputError(_unknown(name))
    kept = _entries()[found]
    return replace(kept, config=deepcopy(kept.config))


def load(name: str, *, family: str | None = None, part: str | None = None) -> Model:
    """One model of the catalogue; as it is, it is read once, and shared: a model is frozen."""
    found = entry(name)
    if family is None and part is None:
        return _as_it_is(found.name)
    return read_config(found.config, family=family, part=part, name=found.name)


@cache
def _as_it_is(name: str) -> Model:
    return read_config(entry(name).config, name=name)


def find(
    text: Source, *, stdin: str | bytes | None = None, family: str | None = None, part: str | None = None
) -> Model:  # fmt: skip
    """The model that a user means: `-` (the text given as stdin), a config.json or its folder, or a catalogue name.

    A text is a path rather than a name of the catalogue only if it holds a separator or ends in .json; a Path is always
    one. A mapping is the object in a config.json, and bytes are its text.
    """
    if isinstance(text, os.PathLike):
        return _from_path(os.fsdecode(text), family, part)
    if not isinstance(text, str):
        return read_config(text, family=family, part=part)
    if text == "-":
        return _from_stdin(stdin, family, part)
    explicit = text.lower().endswith(".json") or os.sep in text or (os.altsep or os.sep) in text
    if explicit or (text.strip().lower() not in _spellings() and os.path.exists(text)):
        return _from_path(text, family, part)
    return load(text, family=family, part=part)


def _from_stdin(stdin: str | bytes | None, family: str | None, part: str | None) -> Model:
    if stdin is None:
        rule = "the model - is the text of a config.json on standard input"
        fix = "outlay count - < config.json"
        raise InputError(Fault("MOD001", "standard input cannot be read", rule, "nothing", fix))
    text = stdin if isinstance(stdin, bytes) else stdin.encode("utf-8", "surrogatepass")
    return read_config(text, family=family, part=part)


def _from_path(text: str, family: str | None, part: str | None) -> Model:
    """The model at a path. A name of the model hub is no path here: the nearest of the catalogue is said instead."""
    last = Path(text).name.lower().removesuffix(".json")
    close = nearest(last, _spellings())
    if close and not os.path.exists(text):
        raise InputError(_no_path(text, close))
    return read_config(Path(text), family=family, part=part)


def _no_path(text: str, close: list[str]) -> Fault:
    rule = "a text with a separator, or one that ends in .json, is a path on this machine; nothing is downloaded"
    fix = f"{close[0]}   (also close: {', '.join(close[1:])})" if close[1:] else close[0]
    return Fault("MOD001", f"{quoted(text)} cannot be read", rule, "nothing there", f"{fix}, from the catalogue")


def _unknown(name: str) -> Fault:
    close = nearest(name, _spellings())
    rule = "MODEL is a config.json, its folder, a name from the catalogue, or - for standard input"
    fix = " or ".join(close) if close else "a path to a config.json"
    return Fault("MOD007", f"no model is called {quoted(name)}", rule, quoted(name), f"{fix}   (list: outlay models)")
