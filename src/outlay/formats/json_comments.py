"""JSON as people write it: comments, commas too many, True and None of Python. Each value keeps its place."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..errors import InputError
from .setting import unreadable
from .source import short

DEEPEST, LONGEST_NUMBER = 40, 400
WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
BLANK = re.compile(r"(?:[ \t\n\r\f\v]+|//[^\n]*|#[^\n]*|/\*.*?\*/)*", re.DOTALL)
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
BARE = re.compile(r"[A-Za-z_][\w.]*")
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"' + r"|'((?:[^'\\\n]|\\.)*)'")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


@dataclass(frozen=True)
class Placed:
    """One value with its place. An object is a dict of such values, a list a list of them."""

    value: Any
    line: int
    column: int

    def plain(self) -> Any:
        """The value as JSON holds it."""
        if isinstance(self.value, dict):
            return {key: one.plain() for key, one in self.value.items()}
        return [one.plain() for one in self.value] if isinstance(self.value, list) else self.value


Object: TypeAlias = dict[str, Placed]


def read_json(text: str) -> Placed:
    """The one value in a text. Raises InputError (FMT003) with line and column."""
    reader = _Reader(short(text))
    found = reader.value(0)
    reader.blank()
    if reader.at < len(text):
        raise reader.wrong("something stands behind the end of the object")
    return found


def ends_at(text: str, at: int) -> int:
    """Where the value that begins at a place ends. Raises InputError (FMT003)."""
    reader = _Reader(text)
    reader.at = at
    reader.value(0)
    return reader.at


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, index: int) -> tuple[int, int]:
        line = bisect_right(self.starts, index)
        return line, index - self.starts[line - 1] + 1

    def wrong(self, what: str, index: int | None = None, got: str = "") -> InputError:
        at = self.at if index is None else index
        shown = got or repr(self.text[at : at + 20]) if at < len(self.text) else "the end of the file"
        return unreadable(what, shown, *self.place(min(at, len(self.text))))

    def blank(self) -> None:
        """Skip blanks and comments."""
        match = BLANK.match(self.text, self.at)
        self.at = match.end() if match else self.at
        if self.text.startswith("/*", self.at):
            raise self.wrong("a comment is not closed")

    def value(self, depth: int) -> Placed:
        """One value of any kind."""
        self.blank()
        start = self.at
        if depth > DEEPEST:
            raise self.wrong("the file is nested too deep", got=f"more than {DEEPEST} levels")
        letter = self.text[start : start + 1]
        if letter == "{":
            made: Any = self.object(depth)
        elif letter == "[":
            made = self.list(depth)
        elif letter and letter in "\"'":
            made = self.string()
        else:
            made = self.plain()
        return Placed(made, *self.place(start))

    def object(self, depth: int) -> Object:
        made: Object = {}
        self.at += 1
        while not self.closes("}"):
            start = self.at
            key = self.string() if self.text[start : start + 1] in ('"', "'") else self.bare()
            if key in made:
                raise self.wrong(f"{key[:40]} stands twice", start, "the same key again")
            self.blank()
            if self.text[self.at : self.at + 1] != ":":
                raise self.wrong("a key has no colon behind it")
            self.at += 1
            made[key] = self.value(depth + 1)
            self.comma("}")
        return made

    def list(self, depth: int) -> list[Placed]:
        made = list[Placed]()
        self.at += 1
        while not self.closes("]"):
            made.append(self.value(depth + 1))
            self.comma("]")
        return made

    def closes(self, end: str) -> bool:
        self.blank()
        found = self.text[self.at : self.at + 1] == end
        self.at += found
        return found

    def comma(self, end: str) -> None:
        """A comma, or the end, which a comma may stand before."""
        self.blank()
        letter = self.text[self.at : self.at + 1]
        if letter == ",":
            self.at += 1
        elif letter != end:
            raise self.wrong(f"a comma or {end} is missing")

    def bare(self) -> str:
        match = BARE.match(self.text, self.at)
        if match is None:
            raise self.wrong("a key is missing")
        self.at = match.end()
        return match[0]

    def string(self) -> str:
        match = STRING.match(self.text, self.at)
        if match is None:
            raise self.wrong("a text is not closed")
        self.at = match.end()
        inner = match[1] if match[1] is not None else match[2]
        return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _unescaped, inner)

    def plain(self) -> Any:
        """A number or a word."""
        start = self.at
        if match := NUMBER.match(self.text, start):
            self.at = match.end()
            if len(match[0]) > LONGEST_NUMBER:
                raise self.wrong("a number has too many digits", start)
            return int(match[0]) if re.fullmatch(r"[+-]?\d+", match[0]) else float(match[0])
        match = BARE.match(self.text, start)
        if match is None or match[0] not in WORDS:
            raise self.wrong("a value is missing")
        self.at = match.end()
        return WORDS[match[0]]


def _unescaped(match: re.Match[str]) -> str:
    text = match[1]
    return chr(int(text[1:], 16)) if len(text) == 5 else ESCAPES.get(text, text)
