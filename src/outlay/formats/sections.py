"""Nested settings by dotted paths, with their places: what JSON, YAML and TOML of the frameworks are read through."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..errors import Fault, quoted
from ..job import AUTO
from .json_comments import Placed
from .setting import FALSE, LARGEST, TRUE, Edit, Edits, Finding, Setting, as_number, fault

AUTO_TEXT = "auto"


@dataclass
class Sections:
    """A configuration by dotted paths. `auto` and what is not there are AUTO, or the default that is given."""

    held: dict[str, Placed]
    asked: set[str] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def find(
        self, code: str, path: str, what: str, rule: str, got: str, fix: str, serious: bool = True,
        edits: Edits | None = None,
    ) -> None:  # fmt: skip
        """Keep a finding at the place of a path, with what mends it: values as the file writes them."""
        at = self.held.get(path, Placed(None, 0, 0))
        made = tuple(self._edit(key, value) for key, value in (edits or {}).items())
        self.findings.append(Finding(code, serious, what, rule, got, fix, at.line, at.column, made))

    def _edit(self, path: str, value: str | None) -> Edit:
        at = self.held.get(path, Placed(None, 0, 0))
        return Edit(path.rpartition(".")[2], value, at.line, at.column)

    def ask(self, path: str) -> Placed | None:
        """The value at a path."""
        self.asked.add(path)
        return self.held.get(path)

    def wrong(self, path: str, rule: str) -> None:
        """Keep a fault of the value at a path."""
        one = self.held[path]
        what, got = f"{path} cannot be read", quoted(one.value)
        made = fault("FMT005", what, f"{path} is {rule}", got, "write the value, or leave it out", one.line, one.column)
        self.faults += [made] if made not in self.faults else []

    def real(self, path: str, default: Any) -> Any:
        """A number, also as a text such as "5e8"; AUTO where it is "auto"."""
        one = self.ask(path)
        if one is None or one.value is None:
            return default
        if one.value == AUTO_TEXT:
            return AUTO
        number = isinstance(one.value, int | float) and not isinstance(one.value, bool)
        value = one.value if number else as_number(one.value) if isinstance(one.value, str) else None
        if value is None or not 0 <= value <= LARGEST:
            self.wrong(path, f"a number from 0 to {LARGEST:,}, or auto")
            return default
        return value

    def count(self, path: str, default: Any = AUTO) -> Any:
        """A whole number."""
        value = self.real(path, default)
        if value is AUTO or value == int(value):
            return value if value is AUTO else int(value)
        self.wrong(path, "a whole number")
        return default

    def switch(self, path: str, default: Any) -> Any:
        """True, false, or AUTO where it is "auto"."""
        one = self.ask(path)
        if one is None or one.value is None:
            return default
        text = str(one.value).lower()
        if text == AUTO_TEXT:
            return AUTO
        if text not in TRUE + FALSE:
            self.wrong(path, "true or false, or auto")
        return text in TRUE

    def flag(self, path: str) -> bool:
        """A switch of which auto is no."""
        return self.switch(path, False) is True

    def word(self, path: str, default: str) -> str:
        """A word in lower case."""
        one = self.ask(path)
        if one is None or one.value is None:
            return default
        if not isinstance(one.value, str):
            self.wrong(path, "a text")
            return default
        return one.value.strip().lower()

    def kept(self) -> Iterator[Setting]:
        """Values that nothing reads, in the order of the file."""
        for path, one in self.held.items():
            if path not in self.asked and not isinstance(one.value, dict):
                yield Setting(path, (_shown(one),), one.line, one.column)


def flattened(one: Placed, path: str = "") -> dict[str, Placed]:
    """Every value of nested settings by its dotted path, the sections too."""
    found = {path: one} if path else {}
    if isinstance(one.value, dict):
        for key, value in one.value.items():
            found |= flattened(value, f"{path}.{key}".lstrip("."))
    return found


def _shown(one: Placed) -> str:
    return str(one.plain())[:60]
