"""What is read of a shell script: words with their places, variables, and the commands that it would run."""

import re
from dataclasses import dataclass, field

from .source import place_of


@dataclass(frozen=True)
class Word:
    """One word of a command: its text, its place, and what it rests on that the file does not say."""

    text: str
    line: int
    column: int
    unknown: str = ""
    bare: bool = True  # outside quotes: blanks inside it part words


@dataclass
class Script:
    """What a script sets, and the commands that it would run, each as its words."""

    variables: dict[str, tuple[Word, ...]] = field(default_factory=dict)
    commands: list[list[Word]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def first(self, name: str) -> str | None:
        """The text of a variable that the file sets, and that can be told."""
        words = self.variables.get(name, ())
        return " ".join(word.text for word in words) if words and not any(word.unknown for word in words) else None

    def note(self, text: str) -> None:
        """Say something once."""
        self.notes += [text] if text not in self.notes else []


def parted(word: Word) -> list[Word]:
    """A word parted at its blanks, each part with its own place."""
    found = list[Word]()
    for match in re.finditer(r"(?:\$\([^)]*\)|\S)+", word.text):
        line, column = place_of(word.text, match.start())
        place = (word.line, word.column + column - 1) if line == 1 else (word.line + line - 1, column)
        found.append(Word(match[0], *place, word.unknown if "$" in match[0] else ""))
    return found
