"""The word of a question that a fault, or a rule that is broken, is about."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from ...engines.tables import engine_names
from ...errors import Fault, InputError, quoted
from ...layout.complete import flag
from ...layout.rules import rules_of
from ..commands import COMMANDS
from .words import Words

Record = dict[str, Any]
PREFIXES = {"MOD": "model", "HW0": "on", "ENG": "engine", "EXP": "quantity", "FMT": "framework"}
MISSING = ("model", "on", "engine")  # they are blamed also where they were not given
CODES = {"JOB004": "gather-dtype"}
NAMELESS = ("MODEL ", "no model ")  # how a fault of the model begins that has a code of the command line
RAMPS = dict.fromkeys(("BAT002", "BAT003"), "batch_rampup")  # they are mended by the batch, and broken by its growth
RANGES = ("LAY000", "JOB000")  # what is wrong begins with the name of a field
SPOKEN = {"sequence": "sequence_length", "batch": "global_batch", "chunks": "vpp"}


def errors_of(error: InputError, words: Words) -> Record:
    """All faults of a question, each with the word that it is about where that is known."""
    made = []
    for fault in error.faults:
        parts = {name: getattr(fault, name) for name in ("code", "what", "rule", "got", "fix")}
        word = word_of(fault, words)
        made.append(parts | ({"flag": word} if word else {}))
    return {"errors": made}


def word_of(fault: Fault, words: Words) -> str | None:
    """The word that a fault is about, as it was given; else as the flag that it names is called."""
    named = [*_flags(fault.what), *_flags(fault.got), *_flags(fault.fix), *_flags(fault.rule)]
    if fault.code in RANGES:
        named.insert(0, flag(fault.what.partition(" ")[0]))
    known = next((word for form in named if (word := _given(form, words))), None) or _valued(fault.got, words)
    if known or fault.code in CODES:
        return known or CODES[fault.code]
    first = next(iter([*_flags(fault.what), *_flags(fault.fix)]), None)
    usual = "model" if fault.what.startswith(NAMELESS) else PREFIXES.get(fault.code[:3])
    return _main(first) if first else usual if usual in (*MISSING, *words) else None


def blamed(record: Record, words: Words) -> Record:
    """An answer, each broken rule in it with the word that it is about."""
    inner = {name: blamed(part, words) for name, part in record.items() if name == "record" and part}
    rows = {"rows": [blamed(row, words) for row in record["rows"]]} if "rows" in record else {}
    if not record.get("violations"):
        return {**record, **inner, **rows}
    found = ((each, broken_by(each, words)) for each in record["violations"])
    return {**record, "violations": [each | ({"flag": word} if word else {}) for each, word in found]}


def broken_by(violation: Mapping[str, Any], words: Words) -> str | None:
    """The word that breaks a rule: of the field whose change mends it, where that was given; else of what the nearest
    legal layout has otherwise, or what the rule speaks of, as far as it was given; else of that field all the same."""
    axis = _axes().get(violation["code"])
    own, named = [flag(axis)] if axis else [], _flags(violation["fix"])
    forms = [*own, *_other(violation.get("nearest") or (), words), *_spoken(violation), *named]
    given = next((word for form in forms if (word := _given(form, words))), None)
    return given or next((_main(form) for form in (*own, *named)), None)


@cache
def _axes() -> dict[str, str]:
    """The field that each rule is about, whoever has the rule."""
    return {rule.code: rule.axis for engine in engine_names() for rule in rules_of(engine)} | RAMPS


def _flags(text: str) -> list[str]:
    """The flags that a text names."""
    return [f"--{found.replace('_', '-')}" for found in re.findall(r"--([A-Za-z][\w-]*)", text)]


def _spoken(violation: Mapping[str, Any]) -> Iterator[str]:
    """The fields that a rule speaks of, as flags."""
    for text in (violation["what"], violation["rule"]):
        yield from (flag(SPOKEN.get(name, name)) for name in re.findall(r"[a-z][a-z_]*", text.lower()))


def _other(nearest: Iterable[str], words: Words) -> Iterator[str]:
    """The flags that the nearest legal layout has at another value than they were given."""
    for form, value in re.findall(r"(--[\w-]+) (\S+)", next(iter(nearest), "")):
        word = _given(form, words)
        if word and str(words[word]).strip().lower() != value:
            yield form


def _forms(form: str) -> tuple[str, ...]:
    """Every spelling of a flag; none where there is no such flag."""
    return next((flag.forms for command in COMMANDS for flag in command.flags() if form in flag.forms), ())


def _given(form: str, words: Words) -> str | None:
    """The word that gives a flag, in the spelling that it was given in."""
    forms = _forms(form) or (form,)
    return next((word for word in words if f"--{word.replace('_', '-')}" in forms), None)


def _main(form: str) -> str:
    """What a flag is called, without dashes."""
    return next(iter(_forms(form)), form)[2:]


def _valued(got: str, words: Words) -> str | None:
    """The only word whose value is what a fault got."""
    found = [word for word, value in words.items() if got in (quoted(value), quoted(str(value)))]
    return found[0] if len(found) == 1 else None
