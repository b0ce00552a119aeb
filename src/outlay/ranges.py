"""Documented ranges of fields: read by the faces for their schema, and checked by `count()` itself."""

from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from .errors import Fault, quoted


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
        return (
            []
            if value in choices
            else [Fault(code, f"{name} is not known", f"one of {', '.join(choices)}", quoted(value), choices[0])]
        )
    if base not in (int, float):
        return []
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return [Fault(code, f"{name} is not a number", "a finite number", quoted(value), _example(limits))]
    if base is int and value != int(value):
        return [Fault(code, f"{name} is not a whole number", "a whole number", quoted(value), _example(limits))]
    for limit in limits:
        if isinstance(limit, AtLeast) and not limit.minimum <= value <= limit.maximum:
            rule = f"{_shown(limit.minimum)} to {_shown(limit.maximum)}"
            return [Fault(code, f"{name} is outside its range", rule, quoted(value), _example(limits))]
    return []


def _shown(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else f"{number:g}"


def _example(limits: list[Any]) -> str:
    return next((f"{_shown(limit.minimum)} or more" for limit in limits if isinstance(limit, AtLeast)), "a number")
