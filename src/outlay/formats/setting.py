"""What every format shares: settings with their places in a file, what a reading holds, what a writing leaves out."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import TypeAlias

from ..cluster.accelerator import Cluster
from ..engines.engine import Engine
from ..errors import Fault, InputError, quoted
from ..job import Job
from ..layout.axes import Layout
from ..model.model import Model

LARGEST = 10**15  # of a whole number in a file
TRUE, FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
UNSET = ("none", "null", "~", "")


@dataclass(frozen=True)
class Setting:
    """One setting of a file: its name, its values, and where it stands, both counted from 1."""

    name: str
    values: tuple[str, ...]
    line: int = 0
    column: int = 0
    unknown: str = ""  # what its value rests on and the file does not say: a variable, a command that is not run

    @property
    def text(self) -> str:
        """The setting as it reads."""
        return " ".join((self.name, *self.values))

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"line {self.line} column {self.column}" if self.line else "not in the file"


@dataclass(frozen=True)
class Missing:
    """What a file does not say and a run needs: the field, and why it is not there."""

    field: str
    why: str


@dataclass(frozen=True)
class Edit:
    """A change of one setting: its name as the file has it, its new value, "" for a switch, or None where it goes.

    Line 0: the file does not have it yet, and it goes beside the finding.
    """

    name: str
    value: str | None
    line: int = 0
    column: int = 0
    words: int = 1  # that it has for a value now


Edits: TypeAlias = Mapping[str, str | None]  # of some settings, by the names that a reader knows them under


@dataclass(frozen=True)
class Finding:
    """Something in a file that its framework refuses, or that does not do what it seems to."""

    code: str
    serious: bool  # an error; else a warning
    what: str
    rule: str
    got: str
    fix: str
    line: int = 0
    column: int = 0
    edits: tuple[Edit, ...] = ()  # that mend it, where nothing has to be chosen

    @property
    def fault(self) -> Fault:
        """The same with its place in words."""
        return fault(self.code, self.what, self.rule, self.got, self.fix, self.line, self.column)


@dataclass(frozen=True)
class Found:
    """What a file says. Fields that it leaves to the launcher, or to code, are AUTO."""

    framework: str
    form: str  # how it was written, in words
    model: Model | None
    job: Job
    layout: Layout
    engine: str
    ranks: int = 0  # of the whole run; 0: not said
    missing: tuple[Missing, ...] = ()
    kept: tuple[Setting, ...] = ()  # settings that no count reads
    notes: tuple[str, ...] = ()  # defaults taken, what was not run
    findings: tuple[Finding, ...] = ()
    accumulated: int = 0  # sequences that a data-parallel rank sees in a step, where the ranks make the global batch


@dataclass(frozen=True)
class Run:
    """What is written: a whole question, every field filled."""

    model: Model
    job: Job
    cluster: Cluster
    layout: Layout
    engine: Engine

    @property
    def micro_batches(self) -> int:
        """Micro-batches a step."""
        return int(self.job.global_batch // (self.layout.dp * self.layout.micro_batch))


@dataclass(frozen=True)
class Lost:
    """A field that a format cannot hold: its path, its value, and what the framework does instead."""

    path: str
    value: str
    why: str

    def __str__(self) -> str:
        return f"{self.path} {self.value}: {self.why}"


@dataclass(frozen=True)
class Written:
    """One file of a framework, and what it does not say. `notes` are for whoever runs it."""

    text: str
    name: str  # that the file usually has
    lost: tuple[Lost, ...]
    notes: tuple[str, ...] = ()


def fault(code: str, what: str, rule: str, got: str, fix: str, line: int = 0, column: int = 0) -> Fault:
    """A fault with its place in the file."""
    where = f"line {line} column {column}: " if line else ""
    return Fault(code, what, rule, where + got, fix)


def unreadable(what: str, got: str, line: int = 0, column: int = 0, fix: str = "correct it there") -> InputError:
    """The error of a text that is not what it seems to be (FMT003)."""
    rule = "brackets, quotes and indents of a file close and fit, each key stands once"
    return InputError(fault("FMT003", what, rule, got, fix, line, column))


@dataclass
class Settings:
    """The settings of one file by name. Each value that is asked for is checked; what is never asked for is kept."""

    held: Mapping[str, Setting]
    asked: set[str] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def find(
        self, code: str, name: str, what: str, rule: str, got: str, fix: str, serious: bool = True,
        edits: Edits | None = None,
    ) -> None:  # fmt: skip
        """Keep a finding at the place of a setting, with what mends it."""
        at = self.held.get(name, Setting(name, ()))
        made = tuple(self._edit(key, value) for key, value in (edits or {}).items())
        self.findings.append(Finding(code, serious, what, rule, got, fix, at.line, at.column, made))

    def _edit(self, name: str, value: str | None) -> Edit:
        one = self.held.get(name)
        return Edit(one.name, value, one.line, one.column, len(one.values)) if one else Edit(name, value)

    def get(self, name: str, path: str = "") -> Setting | None:
        """A setting that has a value; a value that the file does not hold is missing under the field's name."""
        self.asked.add(name)
        found = self.held.get(name)
        if found is None or (len(found.values) == 1 and found.values[0].strip().lower() in UNSET):
            return None
        if found.unknown:
            self._lacks(Missing(path or name, f"{found.text} ({found.place}): {found.unknown}"))
            return None
        return found

    def _lacks(self, one: Missing) -> None:
        self.missing += [one] if one not in self.missing else []

    def number(self, name: str, default: int = 0, least: int = 0, path: str = "") -> int:
        """A whole number, or the default."""
        value = self.real(name, default, least, path)
        if value == int(value):
            return int(value)
        self._wrong(name, "a whole number")
        return default

    def real(self, name: str, default: float = 0.0, least: float = 0, path: str = "") -> float:
        """A number, or the default."""
        found = self.get(name, path)
        if found is None:
            return default
        value = as_number(found.values[0] if len(found.values) == 1 else "")
        if value is None or not least <= value <= LARGEST:
            self._wrong(name, f"a number from {least:,} to {LARGEST:,}")
            return default
        return value

    def on(self, name: str, default: bool = False) -> bool:
        """A switch, or the default."""
        found = self.get(name)
        if found is None:
            return default
        if not found.values:
            return True
        text = found.values[0].strip().lower()
        if len(found.values) > 1 or text not in TRUE + FALSE:
            self._wrong(name, "true or false")
        return text in TRUE

    def word(self, name: str, choices: Iterable[str] = (), default: str = "") -> str:
        """One word in lower case, or the default."""
        found = self.get(name)
        if found is None:
            return default
        known, text = tuple(choices), " ".join(found.values).strip().lower()
        if known and text not in known:
            self._wrong(name, f"one of {', '.join(known)}")
            return default
        return text

    def words(self, name: str) -> tuple[str, ...]:
        """Several words: `a b`, `['a', 'b']` or `a,b`."""
        found = self.get(name)
        joined = " ".join(found.values) if found else ""
        return tuple(filter(None, re.split(r"[\s,\[\]()'\"]+", joined)))

    def numbers(self, name: str, most: int = 10_000) -> tuple[int, ...]:
        """Several whole numbers."""
        found = [as_number(text) for text in self.words(name)]
        whole = [int(value) for value in found if value is not None and 0 <= value <= LARGEST and value == int(value)]
        if len(whole) < len(found) or len(whole) > most:
            self._wrong(name, "whole numbers")
            return ()
        return tuple(whole)

    def within(self, name: str, value: int, good: bool, rule: str) -> None:
        """Keep a fault of a setting of the file whose value does not fit the others."""
        if name in self.held and not good:
            self._wrong(name, f"{rule}, not {value:,}")

    def _wrong(self, name: str, rule: str) -> None:
        one = self.held[name]
        what = f"{one.name} cannot be read"
        fix = "write the value, or leave the setting out"
        made = fault("FMT005", what, f"{one.name} is {rule}", quoted(one.text), fix, one.line, one.column)
        self.faults += [made] if made not in self.faults else []

    def kept(self) -> tuple[Setting, ...]:
        """Settings that were never asked for, in the order of the file."""
        return tuple(one for name, one in self.held.items() if name not in self.asked)

    def misspelled(self, known: Iterable[str]) -> Iterator[tuple[Setting, str]]:
        """Settings that were not read, and the name that each seems to mean."""
        names = frozenset(known)
        for one in self.kept():
            meant = _meant(one.name.lstrip("-").replace("-", "_"), names)
            if meant:
                yield one, meant


@cache
def _meant(name: str, names: frozenset[str]) -> str:
    """The name that one looks like which is none of them; of equal ones the first in the alphabet."""
    near = sorted(each for each in names if abs(len(each) - len(name)) <= 0.2 * len(name))
    close = get_close_matches(name, near, n=1, cutoff=0.9) if name not in names else []
    return close[0] if close else ""


def as_number(text: str) -> float | None:
    """A number such as 8, 5e8, 1_000 or 2,048; None where there is none, or it is not finite."""
    plain = text.strip().replace("_", "").replace(",", "")
    if len(plain) > 40 or not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", plain, re.ASCII):
        return None
    value = float(plain)
    return (int(plain) if re.fullmatch(r"[+-]?\d+", plain) else value) if math.isfinite(value) else None
