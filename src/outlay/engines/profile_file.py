"""A profile as a TOML file: read with every fault at once, and printed to be edited.

name, [accelerator] and [engine], each with its name and one table a constant: value (with its unit), kind, source,
date, rows.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..cluster.catalogue.reader import LONGEST, Table, toml_of
from ..cluster.catalogue.units import UNITS, written
from ..errors import Fault, InputError
from .profile import DRIVER, HARDWARE, KERNELS, KINDS, Constant, Profile, Range
from .tables import engine

RULE = "--profile FILE is a TOML file in UTF-8, of 1 MiB at most"
FIX = "outlay hardware h100-sxm --profile > my.toml, and edit that"
LONGEST_SOURCE = 1_000  # characters
FACT = ("value", "kind", "source", "date", "rows")
MEASURED = ("share", "seconds", "depth")  # last words of the constants that have a unit, or are a share
HEAD = """\
# A profile for outlay: constants that stand in place of those of one accelerator and one engine.
# Edit it, then:  outlay count MODEL --on ... --profile FILE.toml   What is left out is as the catalogue has it.
"""


def read_profile(path: str) -> Profile:
    """The profile of a TOML file. Raises InputError with every fault (PRF001, HW007, UNI001, ENG001)."""
    faults: list[Fault] = []
    top = Table(toml_of(path, "PRF001", RULE, FIX), "", path, faults)
    top.only(("name", "accelerator", "engine"))
    stem = Path(path).stem
    name = top.text("name", stem if stem.isprintable() and 0 < len(stem) <= LONGEST else "own")
    card, driver = top.inner("accelerator"), top.inner("engine")
    if card is None and "accelerator" not in top.values:
        top.fault("accelerator", "is missing", "a profile is of one accelerator", '[accelerator]\\nname = "h100-sxm"')
    made = Profile(
        name,
        card.text("name") if card else "?",
        _constants(card, HARDWARE) if card else (),
        _engine(driver) if driver else "",
        _constants(driver, {**KERNELS, **DRIVER}) if driver else (),
    )
    if faults:
        raise InputError(*faults)
    return made


def _engine(at: Table) -> str:
    name = at.text("name")
    try:
        return engine(name).name if "name" in at.values else ""
    except InputError as error:
        at.faults.extend(error.faults)
        return ""


def _constants(at: Table, known: Mapping[str, Range]) -> tuple[Constant, ...]:
    at.only(("name", *known))
    return tuple(_constant(at, name, known[name]) for name in known if name in at.values)


def _constant(at: Table, name: str, limits: Range) -> Constant:
    """One constant: a table, or a value by itself, which is then assumed."""
    held = at.values[name]
    fact = Table(held if isinstance(held, Mapping) else {"value": held}, at.place(name), at.file, at.faults)
    fact.only(FACT)
    value = _value(Table({name: fact.values.get("value")}, at.path, at.file, at.faults), name, limits)
    kind: Any = fact.text("kind", "assumed")
    if kind not in KINDS:
        fact.fault("kind", "is not a kind", f"one of {', '.join(KINDS)}", 'kind = "measured"')
    source = fact.text("source", "not said", LONGEST_SOURCE)
    return Constant(name, value, kind, source, fact.text("date", ""), fact.text("rows", "", LONGEST_SOURCE))


def _value(at: Table, name: str, limits: Range) -> float:
    if name.split("_")[-1] not in MEASURED:
        least, most, _ = limits
        return at.number(name, least, most, max(least, 1.0))
    return at.figure(name)


# ---- printed


def profile_text(profile: Profile, said: tuple[str, ...] = ()) -> str:
    """The file of a profile; `said` are remarks for its head."""
    lines = [HEAD, *(f"# {each}".rstrip() + "\n" for each in said), f"\nname = {_text(profile.name)}\n"]
    lines += [f"\n[accelerator]\nname = {_text(profile.accelerator)}\n", *map(_line, profile.hardware)]
    if profile.engine:
        lines += [f"\n[engine]\nname = {_text(profile.engine)}\n", *map(_line, profile.kernels)]
    return "".join(lines)


def _line(of: Constant) -> str:
    facts = [f"value = {_number(of)}", f"kind = {_text(of.kind)}"]
    facts += [f"{key} = {_text(getattr(of, key))}" for key in ("date", "rows", "source") if getattr(of, key)]
    return f"{of.name} = {{ {', '.join(facts)} }}\n"


def _number(of: Constant) -> str:
    measure = of.name.split("_")[-1]
    if measure == "depth":
        return _text(written(of.value, measure))
    return _text(_shortest(of.value)) if measure == "seconds" else repr(float(of.value))


def _shortest(seconds: float) -> str:
    """A time as the shortest text that is read back as exactly the same number."""
    if not seconds:
        return "0 s"
    units = ((f"{seconds / size:.12g}", unit, size) for unit, size in UNITS["seconds"].items())
    exact = [f"{text} {unit}" for text, unit, size in units if float(text) * size == seconds and "e" not in text]
    return min(exact, key=lambda text: (len(text), text)) if exact else f"{seconds!r} s"


def _text(value: str) -> str:
    """A text as TOML writes it, whatever is in it: the escapes of JSON are TOML's too."""
    return json.dumps(value, ensure_ascii=False)
