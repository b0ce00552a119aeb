"""Grading: an answer is right within half a percent, or as rounded as it is typed, from three digits on."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..quantities import GIB
from .exercise import Exercise, Part
from .reading import Typed, UnreadableError, read_number, read_rows, read_word

NEAR = Fraction(1, 200)  # of the right answer
DIGITS = 3  # from which on rounding is taken as meant
GI_OVER_G = Fraction(GIB) / 10**9


@dataclass(frozen=True)
class Grade:
    """Whether an answer is right; if it is not, what may have happened, in words. `readable`: whether it counts."""

    right: bool
    said: str = ""
    readable: bool = True


def grade(text: str, part: Part) -> Grade:
    """One typed answer before one part of an exercise."""
    try:
        if part.unit == "rows":
            return _rows(read_rows(text), part)
        if part.unit == "word":
            return Grade(read_word(text, part) == part.answer)
        return _number(read_number(text, part), part)
    except UnreadableError as error:
        return Grade(False, f"{error}; wanted is {part.wanted}", readable=False)


def grade_all(text: str, exercise: Exercise) -> tuple[Grade, ...]:
    """The answers of all parts, a semicolon between them; what is not there counts as nothing typed."""
    typed = text.split(";")
    return tuple(grade(typed[at] if at < len(typed) else "", part) for at, part in enumerate(exercise.parts))


def grade_in_turn(texts: Sequence[str], exercise: Exercise) -> tuple[Grade | None, ...]:
    """The answers of all parts as far as they were given: why one is right may say what is right above it."""
    found: list[Grade | None] = []
    for text, part in zip(texts, exercise.parts, strict=True):
        turn = all(each is not None and each.readable for each in found)
        found.append(grade(text, part) if text and turn else None)
    return tuple(found)


def _number(typed: Typed, part: Part) -> Grade:
    exact = part.answer
    assert isinstance(exact, Fraction)
    if part.unit == "whole":
        right = typed.value == exact
    else:
        rounded = typed.digits >= DIGITS and abs(typed.value - exact) <= typed.half
        right = rounded or abs(typed.value - exact) <= NEAR * abs(exact)
    return Grade(True) if right else Grade(False, _slip(typed.value, part))


def _slip(value: Fraction, part: Part) -> str:
    """The mistake that gives this value, if it is a known one."""
    exact = part.answer
    assert isinstance(exact, Fraction)
    for slip in part.slips:
        if abs(value - slip.answer) <= NEAR * abs(slip.answer):
            return slip.said
    if part.unit == "bytes" and any(_near(value, exact * factor) for factor in (GI_OVER_G, 1 / GI_OVER_G)):
        return "GB and GiB are taken for each other: 1 GiB is 1.074 GB"
    if exact and (power := _power_of_ten(value / exact)):
        return f"the digits are right, and the size is {power} too {'large' if value > exact else 'small'}"
    return ""


def _near(value: Fraction, other: Fraction) -> bool:
    return abs(value - other) <= NEAR * abs(other)


def _power_of_ten(ratio: Fraction) -> str:
    """By how many powers of ten a right answer is off, in words; nothing if it is not."""
    for power in range(1, 13):
        if any(_near(ratio, Fraction(10) ** signed) for signed in (power, -power)):
            return f"{10**power:,} times"
    return ""


def _rows(rows: tuple[str, ...], part: Part) -> Grade:
    exact = part.answer
    assert isinstance(exact, tuple)
    if len(rows) != len(exact):
        return Grade(False, f"there are {len(exact)} ranks, and {len(rows)} rows")
    width = len(exact[0])
    for rank, (row, right) in enumerate(zip(rows, exact, strict=True)):
        if row.ljust(width, ".") != right:
            return Grade(False, f"rank {rank} is wrong: {_wrong(row.rstrip('.'), right.rstrip('.'))}")
    return Grade(True)


def _wrong(row: str, right: str) -> str:
    early = len(right) - len(right.lstrip(".")) - (len(row) - len(row.lstrip(".")))
    if row.lstrip(".") == right.lstrip("."):
        return f"it starts {abs(early)} slot{'' if abs(early) == 1 else 's'} too {'early' if early > 0 else 'late'}"
    return "each rank takes all micro-batches once, in order, one a slot"
