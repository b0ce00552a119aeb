"""The forms in which people hold arguments of a trainer: YAML, JSON, a command line in a script, a call in Python."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from ...errors import InputError
from ..json_comments import NUMBER, WORDS, Placed, read_json
from ..megatron.text import hold as hold_script
from ..sections import Sections, flattened
from ..setting import Setting, as_number, fault
from ..yaml_placed import read_yaml
from .python_calls import calls_in, is_python

COMMENT = re.compile(r"^[ \t]*#[^\n]*", re.MULTILINE)
FLAG = re.compile(r"(?:^|\s)--[A-Za-z]")
LAUNCH = re.compile(r"--(num_processes|num_nodes|num_gpus|nnodes|nproc[_-]per[_-]node)[= ]+(\d{1,7})(?![\w.])")
ENVIRONMENT = re.compile(r"\b(NNODES|NPROC_PER_NODE)=(\d{1,7})\b")
CONFIG_FILE = re.compile(r"--config_file[= ]+([^\s\\]{1,200})")
RENAMED = {"fp8_format": "fp8"}  # of the reader of scripts, whose names are Megatron-LM's


@dataclass
class Held:
    """Arguments by dotted paths, how they were written, the ranks of the launch, and what their values rest on."""

    form: str
    sections: Sections
    ranks: int = 0
    notes: list[str] = field(default_factory=list)
    unknown: dict[str, str] = field(default_factory=dict)  # an argument whose value is not in the file, and why
    calls: tuple[str, ...] = ()  # classes that a text in Python makes
    accelerate: str = ""  # the file of Accelerate that its launcher is given


def hold(text: str, known: Collection[str], framework: str, like: str) -> Held:
    """The arguments of a text. Raises InputError (FMT003, FMT004) with line and column."""
    stripped = text.lstrip()
    if is_python(text):
        found = _of_python(text)
    elif not stripped.startswith("{") and FLAG.search(COMMENT.sub("", text)):
        found = _of_script(text, frozenset(known))
    else:
        json = stripped.startswith("{")
        held = Sections(flattened(read_json(text) if json else read_yaml(text)))
        found = Held("JSON" if json else "YAML", held, _launched("\n".join(COMMENT.findall(text))))
    if not any(name in known for name in found.sections.held) and not any(name in known for name in found.unknown):
        what, rule = f"nothing here is an argument of {framework}", f"some argument of it, such as {like}"
        raise InputError(fault("FMT004", what, rule, f"read as {found.form}", "the file, or the command line"))
    return found


def _of_python(text: str) -> Held:
    made = calls_in(text)
    held = Held("a call in Python", Sections(flattened(made.value)), calls=made.names)
    held.unknown = dict(made.unknown)
    held.ranks = _launched("\n".join(COMMENT.findall(text)))
    held.notes = ["the text in Python is read, not run: its calls alone, and the constants that they name"]
    return held


def _of_script(text: str, known: frozenset[str]) -> Held:
    found = hold_script(text, known)
    settings = {RENAMED.get(name, name): one for name, one in found.settings.items()}
    unknown = {name: f"{one.text} ({one.place}): {one.unknown}" for name, one in settings.items() if one.unknown}
    placed = {name: value_of(one) for name, one in settings.items() if name not in unknown}
    held: dict[str, Placed] = {}
    for name, one in placed.items():
        held |= flattened(Placed({name: one}, one.line, one.column))
    made = Held(found.form, Sections(held), found.ranks or _launched(text), list(found.notes), unknown)
    begin = text.find("accelerate launch")
    if begin >= 0 and (file := CONFIG_FILE.search(text, begin, begin + 2_000)):
        made.accelerate = file[1]
    return made


def _launched(text: str) -> int:
    """Ranks that a launcher's line starts, 0 where it does not say them."""
    named = (*ENVIRONMENT.findall(text), *LAUNCH.findall(text))
    said = {name.lower().replace("-", "_"): int(count) for name, count in named}
    each = said.get("nproc_per_node", said.get("num_gpus", 0))
    return said.get("num_processes", 0) or each * said.get("nnodes", said.get("num_nodes", 1))


def value_of(one: Setting) -> Placed:
    """The value of a flag: a switch, a number, a word, several of them, or an object of JSON."""
    if not one.values:
        return Placed(True, one.line, one.column)
    if len(one.values) > 1:
        return Placed([Placed(_scalar(text), one.line, one.column) for text in one.values], one.line, one.column)
    text = one.values[0].strip()
    if text.startswith("{"):
        return _moved(read_json(text), one.line, one.column)
    return Placed(_scalar(text), one.line, one.column)


def _scalar(text: str) -> object:
    if text in WORDS:
        return WORDS[text]
    number = as_number(text) if NUMBER.fullmatch(text) else None
    return text if number is None else number


def _moved(one: Placed, line: int, column: int) -> Placed:
    """The same value, all of it at one place."""
    inner = one.value
    if isinstance(inner, dict):
        inner = {key: _moved(value, line, column) for key, value in inner.items()}
    elif isinstance(inner, list):
        inner = [_moved(value, line, column) for value in inner]
    return Placed(inner, line, column)
