"""Documented ranges of fields: read by the faces for their schema, and checked by `count()` itself."""

from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from math import isfinite
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from .errors import Fault, nearest, quoted

MOST_WORDS = 20


@dataclass(frozen=True)
class AtLeast:
    """The least value a field may have, and the largest."""

    minimum: float
    maximum: float = 1e18

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        schema = handler(source)
        schema.update(ge=self.minimum, le=self.maximum)
        return schema


@dataclass(frozen=True)
class Written:
    """How people write a value: an example, the unit whose suffixes it takes, and what the numbers of a list mean."""

    example: str
    unit: str = ""  # token, B, share
    means: str = ""


@cache
def hints_of(kind: type) -> dict[str, Any]:
    """The type of each field of a record, with its range."""
    return get_type_hints(kind, include_extras=True)


def parts_of(hint: Any) -> tuple[Any, list[Any]]:
    """The plain type of a hint, and what is said beside it: its range, how it is written."""
    base, *about = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    return base, about


def out_of_range(record: Any, code: str) -> list[Fault]:
    """Every field of a record whose value lies outside its documented range, or is not finite. AUTO is skipped."""
    found = []
    for kind in _kinds_of(record.__class__):
        value = getattr(record, kind.name, None)
        if value is not None:
            found += _faults(kind, value, code)
    return found


@dataclass(frozen=True)
class _Kind:
    """What is asked of the values of one field, read from its hint once."""

    name: str
    base: Any
    limits: list[Any]
    choices: list[str]
    of: Literal["", "words", "records", "counts"]  # what a list of them holds
    counts: tuple[float, float]  # the least and the most of a list of counts


@cache
def _kinds_of(record: type) -> tuple[_Kind, ...]:
    return tuple(_kind(name, hint) for name, hint in hints_of(record).items() if not name.startswith("__"))


def _kind(name: str, hint: Any) -> _Kind:
    base, limits = parts_of(hint)
    choices = [choice for choice in get_args(base) if isinstance(choice, str)]
    if get_origin(base) is tuple and get_args(base)[0] is str:
        return _Kind(name, base, limits, choices, "words", (0, 0))
    if any(is_dataclass(each) for each in get_args(base)):
        return _Kind(name, base, limits, choices, "records", (0, 0))
    if get_origin(base) is tuple:
        return _Kind(name, base, limits, choices, "counts", limits_of(base))
    return _Kind(name, base, limits, choices, "", (0, 0))


def _faults(kind: _Kind, value: Any, code: str) -> list[Fault]:
    name, base = kind.name, kind.base
    if kind.choices:
        return [] if value in kind.choices else [_unknown(name, kind.choices, value, code)]
    if base is bool:
        good = isinstance(value, bool)
        return [] if good else [Fault(code, f"{name} is not a switch", "true or false", _got(value), "true")]
    if kind.of == "words":
        rule, example = f"up to {MOST_WORDS} words", "attention,feed_forward"
        return [] if _worded(value) else [Fault(code, f"{name} is not a list of words", rule, _got(value), example)]
    if kind.of == "records":
        records = value if isinstance(value, tuple | list) else (value,)
        return [_inner(name, fault) for one in records for fault in out_of_range(one, code)]
    if kind.of == "counts":
        return [] if _listed(value, *kind.counts) else [_unlisted(name, base, value, code)]
    return _outside(name, base, kind.limits, value, code) if base in (int, float) else []


def limits_of(kind: Any) -> tuple[float, float]:
    """The least and the most that a number of a list may be, from the list's type."""
    _, (limit, *_) = parts_of(get_args(kind)[0])
    return limit.minimum, limit.maximum


def _unlisted(name: str, base: Any, value: Any, code: str) -> Fault:
    least, most = limits_of(base)
    rule = f"whole numbers from {_shown(least)} to {_shown(most)}"
    return Fault(code, f"{name} is not a list of counts", rule, _got(value), "16,16")


def _unknown(name: str, choices: list[str], value: Any, code: str) -> Fault:
    close = next(iter(nearest(_got(value).strip('"'), choices)), choices[0])
    return Fault(code, f"{name} is not known", f"one of {', '.join(choices)}", _got(value), close)


def _inner(name: str, fault: Fault) -> Fault:
    """A fault of a record inside a field, under the field's name."""
    inner, _, said = fault.what.partition(" ")
    return replace(fault, what=f"{name} {said}", rule=f"{inner}: {fault.rule}")


def _worded(value: Any) -> bool:
    few = isinstance(value, tuple | list) and len(value) <= MOST_WORDS
    return few and all(isinstance(each, str) and 0 < len(each) <= 40 for each in value)


def _listed(value: Any, least: float, most: float) -> bool:
    return isinstance(value, tuple | list) and all(type(each) is int and least <= each <= most for each in value)


def _outside(name: str, base: Any, limits: list[Any], value: Any, code: str) -> list[Fault]:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or (isinstance(value, float) and not isfinite(value)):
        return [Fault(code, f"{name} is not a number", "a finite number", _got(value), _example(limits))]
    if base is int and value != int(value):
        return [Fault(code, f"{name} is not a whole number", "a whole number", _got(value), _example(limits))]
    for limit in limits:
        if isinstance(limit, AtLeast) and not limit.minimum <= value <= limit.maximum:
            rule = f"{_shown(limit.minimum)} to {_shown(limit.maximum)}"
            return [Fault(code, f"{name} is outside its range", rule, _got(value), _example(limits))]
    return []


def _got(value: object) -> str:
    try:
        return quoted(value)
    except ValueError:  # Python refuses to write out a number of thousands of digits
        return "a number with thousands of digits"


def _shown(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else f"{number:g}"


def _example(limits: list[Any]) -> str:
    return next((f"{_shown(limit.minimum)} or more" for limit in limits if isinstance(limit, AtLeast)), "a number")
