"""The words of each command as JSON Schema, for the description of the interface: sentences, choices and ranges."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin

from ...cluster.catalogue import accelerator_names, node_names
from ...drill.sets import LEVELS, TOPICS
from ...engines.tables import engine_names
from ...formats.known import FORMATS
from ...job import Job
from ...ladder import QUANTITIES
from ...layout.axes import Layout
from ...model.catalogue import names
from ...ranges import AtLeast, hints_of, parts_of
from ..commands import Command
from ..flags import FACE, Flag, sentence
from .words import FILES, command_of

Schema = dict[str, Any]
ASKED = ("count", "plan", "check", "explain", "draw", "export", "bubble", "drill", "report")
LIKE = {"compare": "count", "advice": "count", "legal": "count", "ranks": "count", "fix": "check", "trace": "draw"}
TEXT: Schema = {"type": "string", "maxLength": 2_000}


def described(_: Any) -> Schema:
    """The words of every question."""
    made = {name: _words(command_of(name)) for name in ASKED}
    return made | {name: made[other] for name, other in LIKE.items()}


def _words(command: Command) -> Schema:
    kinds = {one.name: one for cls in (Job, Layout) for one in fields(cls)}
    hints = {name: hint for cls in (Job, Layout) for name, hint in hints_of(cls).items() if name in kinds}
    found = {
        flag.names[0][2:]: {"description": sentence(flag), **_kind(flag, hints)}
        for flag in command.flags()
        if flag.name not in FILES and flag not in FACE
    }
    places = {one.name: one.help for one in command.positionals if one.name in CHOICES}
    if command.name == "check":
        places["model"] = "the model that the files are of, where they do not say it"
    return found | {name: {"description": about, **CHOICES[name]} for name, about in places.items()}


def _kind(flag: Flag, hints: Mapping[str, Any]) -> Schema:
    """Type, choices and range of a word."""
    if flag.switch:
        return {"type": "boolean"}
    if flag.name in CHOICES:
        return CHOICES[flag.name]
    if flag.group not in ("Job", "Layout"):
        return TEXT
    kind, about = parts_of(hints[flag.name])
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    if kind in (int, float):
        number = {"type": "integer" if kind is int else "number"}
        limits = next(
            ({"minimum": one.minimum, "maximum": one.maximum} for one in about if isinstance(one, AtLeast)), {}
        )
        return {"anyOf": [number | limits, TEXT]}
    return TEXT


def _hardware() -> Schema:
    cards = "|".join(name.replace(".", r"\.") for name in (*accelerator_names(), *node_names()))
    return {"anyOf": [{"type": "string", "pattern": f"^([1-9][0-9]{{0,4}}x)?({cards})$"}, TEXT]}


CHOICES: Mapping[str, Schema] = {
    "model": {"enum": list(names())},
    "on": _hardware(),
    "engine": {"enum": list(engine_names())},
    "quantity": {"enum": list(QUANTITIES)},
    "framework": {"enum": list(FORMATS)},
    "topic": {"enum": list(TOPICS)},
    "level": {"enum": [*map(str, LEVELS), *LEVELS]},
}
