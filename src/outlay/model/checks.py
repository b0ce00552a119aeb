"""What each kind of field may hold: a check of its value, the rule in words, and a value to write instead."""

import json
from collections.abc import Mapping
from typing import Any

from .families import Field

LARGEST = 10**9  # of any one width or count: far above any model, low enough that sums stay exact
MOST_LAYERS = 100_000


def shown(value: object) -> str:
    """A value of a config, safe to print: JSON without control characters, objects and lists by their length."""
    if isinstance(value, Mapping):
        return f"{{{len(value)} keys}}"
    if isinstance(value, list | tuple):
        return f"[{len(value)} items]"
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        text = type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."


def whole(value: object, least: int, most: int) -> int | None:
    """A whole number inside its range, or nothing: true is not a number, and 4096.0 is 4096."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if least <= value <= most else None


def _size(value: object, field: Field, most: int) -> int | None:
    return whole(value, 1, most)


def _count(value: object, field: Field, most: int) -> int | None:
    return whole(value, 0, most)


def _place(value: object, field: Field, most: int) -> int | None:
    return whole(value, -1, most)


def _switch(value: object, field: Field, most: int) -> bool | None:
    return value if isinstance(value, bool) else None


def _share(value: object, field: Field, most: int) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if number and 0 <= value <= 1 else None  # type: ignore[operator,return-value]


def _kinds(value: object, field: Field, most: int) -> tuple[str, ...] | None:
    """Words, one a layer; a whole number is the word that writes it, and a text is a list of its letters."""
    if not isinstance(value, list | tuple | str) or len(value) > MOST_LAYERS:
        return None
    words = tuple(str(kind) if type(kind) is int else kind for kind in value)
    return words if all(isinstance(kind, str) and kind in field.words for kind in words) else None


def _pattern(value: object, field: Field, most: int) -> tuple[str, ...] | None:
    """Words that say how many layers there are, or which come again and again."""
    return _kinds(value, field, most) or None


def _numbers(value: object, field: Field, most: int) -> frozenset[int] | None:
    """Layer numbers: a list, or a text with commas between them."""
    if isinstance(value, str):
        value = [int(number) if number.strip().isdecimal() else None for number in value.split(",")]
    numbers = [whole(number, 0, most) for number in value] if isinstance(value, list | tuple) else [None]
    return None if None in numbers else frozenset(number for number in numbers if number is not None)


def _sizes(value: object, field: Field, most: int) -> int | tuple[int, ...] | None:
    if not isinstance(value, list | tuple):
        return whole(value, 0, most)
    numbers = tuple(whole(number, 0, most) for number in value)
    return None if None in numbers or not numbers else numbers  # type: ignore[return-value]


def _word(value: object, field: Field, most: int) -> str | None:
    """A word; true and false count as theirs."""
    if isinstance(value, bool):
        value = json.dumps(value)
    return value if isinstance(value, str) and value in field.words else None


def _text(value: object, field: Field, most: int) -> str | None:
    if not isinstance(value, str) or len(value) > MOST_LAYERS:
        return None
    return value if all(letter in field.words for letter in value) else None


def _objects(value: object, field: Field, most: int) -> tuple[Mapping[str, Any], ...] | None:
    listed = isinstance(value, list | tuple) and len(value) <= MOST_LAYERS
    return tuple(value) if listed and all(isinstance(one, Mapping) for one in value) else None  # type: ignore[attr-defined,arg-type]


def _flags(value: object, field: Field, most: int) -> tuple[int, ...] | None:
    flags = [whole(flag, 0, 1) for flag in value] if isinstance(value, list | tuple) else [None]
    return None if None in flags else tuple(flags)  # type: ignore[arg-type]


def _period(value: object, field: Field, most: int) -> int | None:
    """A number of layers; or a text of one period, its last layer the one that differs."""
    if isinstance(value, str) and len(value) <= MOST_LAYERS:
        usual, last = field.words
        return len(value) if value == usual * (len(value) - 1) + last else None
    return whole(value, 1, MOST_LAYERS)


def _repeats(value: object, field: Field, most: int) -> tuple[str, ...] | None:
    """Pairs of a list of kinds and how often it comes, written out: one kind a layer."""
    if not isinstance(value, list | tuple):
        return None
    found: tuple[str, ...] = ()
    for pair in value:
        kinds, times = pair if isinstance(pair, list | tuple) and len(pair) == 2 else (None, None)
        read, often = _kinds(kinds, field, most), whole(times, 0, MOST_LAYERS)
        if read is None or often is None or len(found) + len(read) * often > MOST_LAYERS:
            return None
        found += read * often
    return found


CHECKS = {
    "size": _size, "count": _count, "switch": _switch, "share": _share, "kinds": _kinds, "numbers": _numbers,
    "sizes": _sizes, "word": _word, "text": _text, "objects": _objects, "place": _place,
    "flags": _flags, "period": _period, "repeats": _repeats, "pattern": _pattern, "cycle": _pattern,
}  # fmt: skip

RULES = {
    "size": "a whole number from 1 to {most:,}",
    "count": "a whole number from 0 to {most:,}",
    "switch": "true or false",
    "share": "a number from 0 to 1",
    "kinds": "a list of {words}, one a layer",
    "numbers": "a list of layer numbers, the first layer is 0",
    "sizes": "a whole number from 0 to {most:,}, or a list of them",
    "word": "one of {words}",
    "text": "a text of the letters {words}",
    "objects": "a list of objects, one a layer",
    "place": "a whole number from -1 to {most:,}",
    "flags": "a list of 0 and 1, one a layer",
    "period": "a whole number from 1, or one period as a text of {words}",
    "pattern": "a list of {words}, or a text of its letters: at least one layer",
    "cycle": "a list of {words}, which starts again at its end",
    "repeats": "a list of pairs, each a list of {words} and how often it comes",
}

FIXES = {
    "size": "4096", "count": "1", "switch": "false", "share": "0.0", "kinds": "null", "numbers": "[]", "sizes": "4096",
    "objects": "[]", "place": "-1", "flags": "null", "period": "4", "repeats": "null", "cycle": "null",
    "pattern": "null",
}  # fmt: skip


def rule_of(field: Field, most: int) -> str:
    """What a value of the field must be, in words."""
    quotes = [json.dumps(word) for word in field.words]
    words = f"{', '.join(quotes[:-1])} and {quotes[-1]}" if quotes[1:] else "".join(quotes)
    rule = RULES[field.kind].format(most=most, words=words)
    return f"{rule}, or {words}" if field.kind == "size" and words else rule
