"""Numbers as frameworks print them: `6,554`, `1.05M`, `nan`, `'7.1'`; and lists of `name: value`."""

import math
import re
from collections.abc import Iterator

PLAIN = re.compile(r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
GROUPS = re.compile(r"(?<=\d)[,\u2009\u202f](?=\d{3}(?:\D|$))")
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf, "+inf": math.inf}
SUFFIX = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}
MIB, GIB = 2.0**20, 2.0**30


def number(text: str | None) -> float | None:
    """A number with or without groups of thousands; None where there is none, as in `6.553,6`."""
    bare = (text or "").strip().strip("'\"")
    if len(bare) > 40:
        return None
    if bare.lower() in NOT_FINITE:
        return NOT_FINITE[bare.lower()]
    bare = GROUPS.sub("", bare)
    return float(bare.replace("_", "")) if PLAIN.fullmatch(bare) else None


def finite(text: str | None) -> float | None:
    """A number that is neither nan nor infinite."""
    value = number(text)
    return value if value is not None and math.isfinite(value) else None


def positive(text: str | None) -> float | None:
    """A finite number above 0."""
    value = finite(text)
    return value if value is not None and value > 0 else None


def scaled(text: str | None) -> float | None:
    """A number with a letter behind it, by thousands: `419K`, `85.8G`."""
    bare = (text or "").strip().strip("'\"")
    letter = bare[-1:].upper() if bare[-1:].upper() in SUFFIX and bare[-1:].isalpha() else ""
    value = positive(bare[: len(bare) - len(letter)])
    return None if value is None else value * SUFFIX[letter]


def whole(text: str | None) -> int:
    """A count; 0 where there is none."""
    value = finite(text)
    return int(value) if value is not None and 0 <= value < 1e15 else 0


def fields(text: str) -> Iterator[tuple[str, str]]:
    """The `name: value` parts between bars. The last one counts only where a bar closes it: a line may be cut."""
    parts = text.split("|")
    for part in parts[:-1]:
        name, colon, value = part.rpartition(": ")
        if colon:
            yield name.strip(), value.strip()
