"""An exercise: its text, the numbers it gives, what it asks, and the right answers with their derivations."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Unit = Literal["share", "bytes", "seconds", "whole", "number", "word", "rows"]
Answer = Fraction | str | tuple[str, ...]
"""A number (bytes and seconds in SI units), one word of several, or the rows of a staircase."""

EXAMPLE: Mapping[str, str] = {
    "share": "17.9 %",
    "bytes": "12.5 GB",
    "seconds": "0.28 s",
    "whole": "133",
    "number": "3.75",
    "rows": "123./.123",
}
WANTED: Mapping[str, str] = {
    "share": "a share: 17.9 %, 7/39 or 0.179",
    "bytes": "a size with its unit: 12.5 GB or 11.6 GiB",
    "seconds": "a time with its unit: 0.28 s or 280 ms",
    "whole": "a whole number: 133",
    "number": "a number: 4 or 3.75",
    "word": "one of the words",
    "rows": "one row a rank, / between them, a dot where it idles: 123./.123",
}


@dataclass(frozen=True)
class Slip:
    """An answer that a usual mistake gives, and the mistake in words."""

    answer: Fraction
    said: str


@dataclass(frozen=True)
class Part:
    """One thing that is asked: its unit, the right answer, how it is derived, and the mistakes that are known."""

    ask: str
    unit: Unit
    answer: Answer
    why: tuple[str, ...]
    slips: tuple[Slip, ...] = ()
    words: tuple[str, ...] = ()  # to choose from
    stairs: tuple[int, int] | None = None  # stages and micro-batches of the staircase that shows the answer

    @property
    def example(self) -> str:
        """An answer of its kind, which need not be right."""
        return self.words[0] if self.words else EXAMPLE[self.unit]

    @property
    def wanted(self) -> str:
        """What an answer looks like."""
        return f"one of {', '.join(self.words)}" if self.words else WANTED[self.unit]


@dataclass(frozen=True)
class Exercise:
    """One exercise. `given` holds the numbers of its text, or of its picture, in SI units, by name."""

    topic: str
    level: int
    text: str
    given: Mapping[str, Fraction]
    parts: tuple[Part, ...]
    picture: tuple[str, ...] = ()
