"""Which words of a command line are files and which is the model, and what the files say.

A word is the MODEL where it is a name of the catalogue, a folder with a config.json, or a file whose JSON has the keys
model_type or architectures and no framework's settings; every other word that exists, or looks like a path, is a FILE.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...errors import Fault, InputError, quoted
from ...formats.deepspeed.text import KEYS
from ...formats.joining import Part
from ...formats.known import read
from ...formats.said import said_in
from ...formats.source import text_of
from ...model.catalogue import names
from ..exporting import content_of
from ..files import STDOUT
from ..flags import Given
from ..values import Faults

SUFFIXES = (".sh", ".bash", ".slurm", ".sbatch", ".json", ".yaml", ".yml", ".toml", ".txt", ".log", ".cfg", ".conf",
            ".py", ".args", ".out")  # fmt: skip
MODEL_KEYS = ("model_type", "architectures")
MOST_FILES = 32


@dataclass(frozen=True)
class Held:
    """One file: its path as it was given, what it is called, its bytes, and what they say."""

    path: str
    title: str
    content: bytes
    part: Part
    several: bool = False  # beside others


def read_words(given: Given) -> tuple[tuple[Held, ...], str | None]:
    """The files, read, and the model that is named beside them. Raises every fault of them all, each with its file."""
    words = given.texts("files")
    faults = Faults()
    models = [word for word in words if _is_model(word)]
    paths = [word for word in words if word not in models]
    if not paths:
        rule, got = "check FILE... [MODEL]", models[0] if models else "nothing"
        fix = "outlay check train.sh --on 64xh100-sxm"
        faults.add(Fault("CLI004", "no file is given", rule, got, fix))
    if len(models) > 1:
        faults.add(_too_many(models[1], "one MODEL beside the files"))
    faults.add(*_twice(paths))
    if len(paths) > MOST_FILES:
        faults.add(_too_many(paths[MOST_FILES], f"at most {MOST_FILES} files"))
    faults.stop()
    contents = [faults.attempt(content_of, path) for path in paths]
    faults.stop()
    return held_of(list(zip(paths, contents, strict=True))), models[0] if models else None


def held_of(files: Sequence[tuple[str, bytes]]) -> tuple[Held, ...]:
    """The files of a run by their paths and contents, read. Raises every fault of them all, each with its file."""
    faults = Faults()
    titles, several = _titles([path for path, _ in files]), len(files) > 1
    found = [faults.attempt(_held, *file, title, several) for file, title in zip(files, titles, strict=True)]
    faults.stop()
    return tuple(found)


def part_of(title: str, content: bytes, several: bool) -> Part:
    """What one file of a run of one or several says. Raises InputError (FMT002 .. FMT005)."""
    text = text_of(content)
    return Part(title, text, read(content), said_in(text, several))


def _held(path: str, content: bytes, title: str, named: bool) -> Held:
    try:
        return Held(path, title, content, part_of(title, content, named), named)
    except InputError as error:
        if not named:
            raise
        raise InputError(*(replace(one, got=f"{path}, {one.got}") for one in error.faults)) from None


def _too_many(word: str, rule: str) -> Fault:
    return Fault("CLI005", f"{quoted(word)} is one argument too many", rule, quoted(word), "leave it out")


def _twice(paths: Sequence[str]) -> list[Fault]:
    """Faults of files that are given twice, also under another path."""
    seen, faults = set[str](), list[Fault]()
    for path in paths:
        real = path if path == STDOUT else os.path.realpath(path)
        if real in seen:
            what = "standard input is given twice" if path == STDOUT else f"{quoted(path)} is given twice"
            faults.append(Fault("CLI005", what, "each file of a run is given once", quoted(path), "leave one out"))
        seen.add(real)
    return faults


def _titles(paths: Sequence[str]) -> list[str]:
    """The last part of each path, where that tells them apart."""
    names = ["standard input" if path == STDOUT else Path(path).name for path in paths]
    return [name if names.count(name) == 1 else path for name, path in zip(names, paths, strict=True)]


def _is_model(word: str) -> bool:
    """Whether a word names the model, and not a file of the run."""
    if word == STDOUT:
        return False
    if os.path.isdir(word):
        return os.path.isfile(os.path.join(word, "config.json"))
    if os.path.exists(word) and word.lower() not in names():
        return word.lower().endswith(".json") and _is_config(word)
    return not (word.lower().endswith(SUFFIXES) or os.sep in word)


def _is_config(path: str) -> bool:
    """Whether a file is the config.json of a model."""
    try:
        content = content_of(path)
        if not any(f'"{key}"'.encode() in content for key in MODEL_KEYS):
            return False
        value = json.loads(content)
    except (InputError, ValueError, RecursionError):
        return False
    keys = set(value) if isinstance(value, dict) else set()
    return bool(keys.intersection(MODEL_KEYS)) and not keys.intersection(KEYS)
