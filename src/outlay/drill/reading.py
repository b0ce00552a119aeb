"""A typed answer as a number: percent signs, fractions, units of size and time, commas of both kinds, wide digits.

Nothing is guessed: what can be read in two ways, or lacks its unit, is sent back with what is wanted.
"""

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

from .exercise import Part

LONGEST = 200  # characters
DIGITS = r"\d[\d,_ ]*"
NUMBER = re.compile(
    rf"([+-]?)\s*({DIGITS}(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{{1,2}}))?(?:\s*/\s*({DIGITS}))?\s*([^\d\s.,].*)?"
)
GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d*)?")  # 1,024 or 12,500.5
COMMA = re.compile(r"\d+,\d*")  # 17,9: a decimal comma

PREFIXES = ("k", "m", "g", "t", "p")
SIZES = {
    "b": Fraction(1),
    **{f"{prefix}b": Fraction(1000) ** power for power, prefix in enumerate(PREFIXES, 1)},
    **{f"{prefix}ib": Fraction(1024) ** power for power, prefix in enumerate(PREFIXES, 1)},
}
TIMES = {
    "s": Fraction(1), "sec": Fraction(1), "second": Fraction(1), "seconds": Fraction(1), "ms": Fraction(1, 10**3),
    "us": Fraction(1, 10**6), "µs": Fraction(1, 10**6), "min": Fraction(60), "h": Fraction(3600),
}  # fmt: skip
SHARES = {"%": Fraction(1, 100), "percent": Fraction(1, 100)}
PLAIN = {"": Fraction(1)}
UNITS = {
    "share": SHARES | PLAIN,
    "bytes": SIZES,
    "seconds": TIMES,
    "whole": PLAIN,
    "number": PLAIN | {"x": Fraction(1)},
}
ROW = re.compile(r"[0-9.]+")


@dataclass(frozen=True)
class Typed:
    """A number as typed: its value in SI units, and half of its last digit's place (0: exact, a fraction)."""

    value: Fraction
    half: Fraction
    digits: int  # that mean something


class UnreadableError(ValueError):
    """An answer that cannot be read; its text says why."""


def read_number(text: str, part: Part) -> Typed:
    """The number in an answer, in SI units. Raises UnreadableError."""
    plain = " ".join(_folded(text[: LONGEST + 1]).split()).lstrip("=~≈ ")
    match = NUMBER.fullmatch(plain) if len(text) <= LONGEST else None
    if match is None:
        raise UnreadableError("it is not a number")
    sign, digits, exponent, below, unit = match.groups()
    value, places, meaning = _decimal(digits)
    power = Fraction(10) ** int(exponent or 0)
    half = Fraction(1, 2) / 10**places
    if below is not None:
        under, _, _ = _decimal(below)
        if not under:
            raise UnreadableError("nothing is divided by 0")
        value, half = value / under, Fraction(0)
    scale = _scale((unit or "").strip(), part)
    value *= power * scale * (-1 if sign == "-" else 1)
    if part.unit == "share" and not (unit or "").strip() and abs(value) > 1:
        raise UnreadableError("a share is at most 1: with a percent sign it would be read")
    return Typed(value, half * power * scale, meaning)


def read_rows(text: str) -> tuple[str, ...]:
    """The rows of a staircase, by slashes or by lines. Raises UnreadableError."""
    lines = "/".join(text.strip().splitlines())
    plain = _folded(lines).replace("_", ".").replace("-", ".").replace(" ", "")
    rows = tuple(plain.split("/"))
    if len(text) > 100 * LONGEST or not all(ROW.fullmatch(row) for row in rows):
        raise UnreadableError("a row holds digits and dots")
    return rows


def read_word(text: str, part: Part) -> str:
    """One of the words to choose from, or its beginning. Raises UnreadableError."""
    plain = text.strip().lower()
    found = [word for word in part.words if plain and word.startswith(plain)]
    if len(found) != 1:
        raise UnreadableError("it is none of the words" if not found else "it begins several of the words")
    return found[0]


def _folded(text: str) -> str:
    """Wide letters and digits as usual ones; 10\u00b2 and 1\u00bd would become 102 and 11/2."""
    if any(unicodedata.category(letter) == "No" for letter in text):
        raise UnreadableError("it has raised digits or fractions of one letter: 100 or 1/2 would be read")
    return unicodedata.normalize("NFKC", text).replace("\u2044", "/")


def _decimal(text: str) -> tuple[Fraction, int, int]:
    """A decimal number, its places after the point, and its digits that mean something."""
    plain = text.replace("_", "").replace(" ", "")
    if GROUPED.fullmatch(plain):
        plain = plain.replace(",", "")
    elif COMMA.fullmatch(plain):
        plain = plain.replace(",", ".")
    elif "," in plain:
        raise UnreadableError("its commas stand neither before three digits nor once for a decimal point")
    _, _, after = plain.partition(".")
    meaning = len(plain.replace(".", "").lstrip("0"))
    return Fraction(plain + "0" if plain.endswith(".") else plain), len(after), meaning


def _scale(unit: str, part: Part) -> Fraction:
    known = UNITS[part.unit]
    if part.unit == "bytes" and re.fullmatch(r"[kKMGTP]i?b(it)?s?", unit) and unit[-1] != "B" and unit.lower() != unit:
        raise UnreadableError(f"{unit} are bits, of which a byte has 8")
    found = known.get(unit.lower().replace("bytes", "b").replace("byte", "b"))
    if found is not None:
        return found
    if not unit:
        raise UnreadableError("it has no unit")
    raise UnreadableError(f"{unit!r} is not a unit of what is asked")
