"""Documented ranges of fields: read by the faces for their schema, and checked by `count()` itself."""

from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from .errors import Fault, quoted

MOST_IN_LIST = 10_000  # layers of a stage


@dataclass(frozen=True)
class AtLeast:
    """The least value a field may have, and the largest."""

    minimum: float
    maximum: float = 1e18

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        schema = handler(source)
        schema.update(ge=self.minimum, le=self.maximum)
        return schema


def out_of_range(record: Any, code: str) -> list[Fault]:
    """Every field of a record whose value lies outside its documented range, or is not finite. AUTO is skipped."""
    found = []
    for name, hint in get_type_hints(type(record), include_extras=True).items():
        value = getattr(record, name, None)
        if value is None or name.startswith("__"):
            continue
        found += _faults(name, hint, value, code)
    return found


def _faults(name: str, hint: Any, value: Any, code: str) -> list[Fault]:
    base, *limits = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    choices = [choice for choice in get_args(base) if isinstance(choice, str)]
    if choices:
        rule = f"one of {', '.join(choices)}"
        return [] if value in choices else [Fault(code, f"{name} is not known", rule, _got(value), choices[0])]
    if base is bool:
        good = isinstance(value, bool)
        return [] if good else [Fault(code, f"{name} is not a switch", "true or false", _got(value), "true")]
    if get_origin(base) is tuple:
        rule = f"whole numbers from 0 to {MOST_IN_LIST:,}"
        return [] if _listed(value) else [Fault(code, f"{name} is not a list of counts", rule, _got(value), "16,16")]
    return _outside(name, base, limits, value, code) if base in (int, float) else []


def _listed(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(type(each) is int and 0 <= each <= MOST_IN_LIST for each in value)


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
