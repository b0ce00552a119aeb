"""The file of a sweep: keys are flags without their dashes, and a list is an axis. Every fault is kept, by its line."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args

from outlay import __version__

from ...cluster.catalogue import clusters
from ...cluster.catalogue.reader import toml_of
from ...engines.profile_file import read_profile
from ...engines.tables import engine
from ...errors import Fault, InputError, nearest, quoted
from ...job import Job
from ...layout.axes import Layout
from ...model.catalogue import find
from ...search.narrow import NAMES
from ...search.space import Width
from ...search.sweep.study import BEST, SITE, Axis, Study, order
from ..flags import field_names
from ..narrowing import read_narrowing
from ..values import Faults, number, read_fields
from .limits import read_limits

RULE = "a study is a TOML file: a table [study] of flags without their dashes, and perhaps [limits]"
FIX = 'kind = "count", model = [..], on = [..], and what else is to vary'
KINDS, WIDTHS = ("count", "plan"), get_args(Width)
MOST_QUESTIONS, MOST_PRICE = 100_000_000, 1e6
NEEDED = {"model": 'model = ["llama-3.1-8b"]', "on": 'on = ["64xh100-sxm"]'}


@dataclass(frozen=True)
class Read:
    """A study as it was read, and what tells it from others."""

    study: Study
    text: str
    fingerprint: str


@dataclass
class Source:
    """The file: its tables, and on which line each of their keys stands."""

    path: str
    text: str
    tables: Mapping[str, Any]
    lines: dict[tuple[str, str], int] = field(init=False)

    def __post_init__(self) -> None:
        self.lines, table = {}, ""
        for place, line in enumerate(self.text.splitlines(), 1):
            head = re.match(r"\s*\[+\s*([\w-]+)\s*\]+\s*(?:#.*)?$", line)
            key = re.match(r"""\s*["']?([^\s"'=#]+)["']?\s*=""", line)
            if head and head[1] in self.tables:
                table = head[1]
                self.lines.setdefault(("", table), place)
            elif key:
                self.lines.setdefault((table, key[1]), place)

    def at(self, table: str, key: str) -> str:
        """Where a key stands, in words."""
        line = self.lines.get((table, key))
        return quoted(self.path) + (f", line {line}" if line else "")


def read_study(path: str, faults: Faults) -> Read | None:
    """The study of a file; None where anything is wrong with it, all of which is kept."""
    tables = faults.attempt(toml_of, path, "SWP001", RULE, FIX)
    if tables is None:
        return None
    source = Source(path, Path(path).read_text("utf-8"), tables)
    for key in tables:
        if key not in ("study", "limits") or not isinstance(tables[key], Mapping):
            faults.add(_unknown(key, ("study", "limits"), source.at("", key), "tables are [study] and [limits]"))
    table = tables.get("study", {})
    if not isinstance(table, Mapping):
        return None
    kind = table.get("kind", "plan")
    if kind not in KINDS:
        rule = "count: each question is a layout; plan: each is the best layout of a space"
        faults.add(Fault("SWP003", f"kind cannot be {quoted(kind)}", rule, source.at("study", "kind"), 'kind = "plan"'))
        kind = "count"  # to read the rest
    axes = _axes(kind, table, source, faults)
    limits = read_limits(tables.get("limits", {}), source.at, axes, faults)
    _complete(kind, axes, faults)
    if faults.found:
        return None
    study = Study(kind, tuple(axes.values()), limits)
    if study.questions > MOST_QUESTIONS:
        rule = f"a study asks {MOST_QUESTIONS:,} questions at most"
        faults.add(Fault("SWP006", "the study is too large", rule, f"{study.questions:,}", "shorter lists of values"))
        return None
    return Read(study, source.text, fingerprint(study))


def _complete(kind: str, axes: Mapping[str, Axis], faults: Faults) -> None:
    """What every study says."""
    needed = NEEDED | ({"global_batch": "batch = [512]"} if kind == "count" else {})
    for name, example in needed.items():
        if name not in axes and not faults.found:
            what = f"{example.split()[0]} is not given"
            rule = "a study names models and clusters; layouts are compared at one batch"
            faults.add(Fault("SWP004", what, rule, "nothing", example))


def _unknown(key: str, known: Any, where: str, rule: str) -> Fault:
    close = nearest(key, known)
    fix = f"did you mean {' or '.join(close)}?" if close else "remove it"
    return Fault("SWP002", f"nothing is called {quoted(key)}", rule, where, fix)


def spellings(kind: str) -> dict[str, str]:
    """Every key of a study, and the field that it is."""
    known = {name: name for name in (*SITE, "price") if name != "space" or kind == "plan"}
    layout = (*NAMES, "split") if kind == "plan" else tuple(each.name for each in fields(Layout))
    for name in (*(each.name for each in fields(Job)), *layout):
        known |= {flag[2:].replace("-", "_"): name for flag in field_names(name)}
    return known


def _axes(kind: Any, table: Mapping[str, Any], source: Source, faults: Faults) -> dict[str, Axis]:
    """The axes of a study in their order; engine and price have a value where none is given."""
    known, found = spellings(kind), dict[str, Axis]()
    rule = f"keys are the flags of `outlay {kind}` without their dashes, and kind, price, profile"
    for key, value in table.items():
        where, name = source.at("study", key), known.get(key.replace("-", "_"))
        if key == "kind":
            continue
        if name is None:
            faults.add(_unknown(key, [*known, "kind"], where, rule))
        elif name in found:
            faults.add(
                Fault("SWP003", f"{key} is given twice", "a field is given once", where, "leave one of them out")
            )
        else:
            found[name] = _axis(kind, name, key, value, where, faults)
    usual = {"engine": Axis("engine", ("megatron",), ("megatron",)), "price": Axis("price", (None,), ("",))}
    found = usual | found
    return {name: found[name] for name in order(kind) if name in found}


def _axis(kind: str, name: str, key: str, value: Any, where: str, faults: Faults) -> Axis:
    """One axis: a value, or a list of values, none of them twice."""
    listed = value if isinstance(value, list) else [value]
    pairs = [pair for each in listed for pair in _values(kind, name, key, each, where, faults)]
    texts = [text for text, _ in pairs]
    for text in sorted(text for text, times in Counter(texts).items() if times > 1):
        rule = "every value is another one"
        faults.add(Fault("SWP003", f"{key} has a value twice", rule, f"{quoted(text)}   ({where})", "leave one out"))
    if not listed:
        faults.add(Fault("SWP003", f"{key} has no value", "a value, or a list of values", where, "leave the key out"))
    return Axis(name, tuple(read for _, read in pairs), tuple(texts))


def text_of(value: Any) -> str:
    """A value as a command line would have it."""
    if isinstance(value, list):
        return ",".join(map(text_of, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _values(kind: str, name: str, key: str, value: Any, where: str, faults: Faults) -> list[tuple[str, Any]]:
    """What one value of a list means: several where it names several clusters, none where it cannot be used."""
    text, own = text_of(value), Faults()
    found: list[tuple[str, Any]] = []
    if name == "split" and (kind == "plan" or text.strip().lower() == BEST):
        found = [(BEST, own.attempt(_best_split, text))]
    elif name == "on":
        made = own.attempt(clusters, text) or ()
        found = [(text if len(made) == 1 else each.name, each) for each in made]
    elif name in READERS:
        read = own.attempt(READERS[name], text)
        found = [(text, read)] if read is not None else []
    elif name in (each.name for each in fields(Job)) or kind == "count":
        cls: type = Job if name in (each.name for each in fields(Job)) else Layout
        found = [(text, read) for read in read_fields(cls, {name: value}, where, own).values()]
    else:
        found = [(text, read) for read in read_narrowing({}, {name: value}, own).values()]
    faults.add(*(_placed(fault, where) for fault in own.found))
    return found


def _placed(fault: Fault, where: str) -> Fault:
    """A fault that says where the value stands."""
    return fault if where in fault.got else replace(fault, got=f"{fault.got}   ({where})")


def _best_split(text: str) -> str:
    """The split of a plan. Raises InputError for one with numbers, which only one layout can have."""
    if text.strip().lower() == BEST:
        return BEST
    rule = "the layouts of a plan have the engine's own split, or the best one of each"
    fix = 'split = "best", or kind = "count" for a split with numbers'
    raise InputError(Fault("SWP003", f"split cannot be {quoted(text)}", rule, quoted(text), fix))


def _engine(text: str) -> str:
    engine(text)
    return text


def _width(text: str) -> str:
    if text in WIDTHS:
        return text
    rule = f"one of {', '.join(WIDTHS)}"
    raise InputError(Fault("SWP003", f"space cannot be {quoted(text)}", rule, quoted(text), 'space = "wide"'))


def _price(text: str) -> float:
    value = number(text)
    if value is not None and 0 < value <= MOST_PRICE:
        return float(value)
    rule = "dollars an hour of one accelerator, above 0"
    raise InputError(Fault("SWP003", "price is not a price", rule, quoted(text), "price = 2.5"))


READERS: Mapping[str, Any] = {
    "model": find,
    "engine": _engine,
    "profile": read_profile,
    "space": _width,
    "price": _price,
}


def fingerprint(study: Study) -> str:
    """What tells a study from others: its axes as they are written, its limits, the files it names, and our version."""
    texts = {axis.name: list(axis.texts) for axis in study.axes}
    named = [text for name in ("model", "on", "profile") for text in texts.get(name, [])]
    files = {text: hashlib.sha256(Path(file).read_bytes()).hexdigest() for text in named if (file := _file(text))}
    limits = [[limit.name, limit.low, limit.high] for limit in study.limits]
    told = [__version__, study.kind, study.part_questions, texts, limits, files]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _file(text: str) -> Path | None:
    """The file that a text names, if it is one."""
    near = Path(re.sub(r"^\d+x(?=.*\.toml$)", "", text))
    inside = near / "config.json" if near.is_dir() else near
    return inside if inside.is_file() else None
