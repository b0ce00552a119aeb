"""Documented ranges of fields: read by the faces for their schema, and checked by `count()` itself."""

from dataclasses import dataclass, is_dataclass, replace
from math import isfinite
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from .errors import Fault, nearest, quoted

MOST_IN_LIST = 10_000  # layers of a stage
MOST_WORDS = 20
MOST_OF_A_LIST = {"batch_rampup": 10**15}  # sequences


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
        close = next(iter(nearest(_got(value).strip('"'), choices)), choices[0])
        return [] if value in choices else [Fault(code, f"{name} is not known", rule, _got(value), close)]
    if base is bool:
        good = isinstance(value, bool)
        return [] if good else [Fault(code, f"{name} is not a switch", "true or false", _got(value), "true")]
    if get_origin(base) is tuple and get_args(base)[0] is str:
        rule, example = f"up to {MOST_WORDS} words", "attention,feed_forward"
        return [] if _worded(value) else [Fault(code, f"{name} is not a list of words", rule, _got(value), example)]
    if isinstance(value, tuple | list) and value and is_dataclass(value[0]):
        return [_inner(name, fault) for one in value for fault in out_of_range(one, code)]
    if is_dataclass(value):
        return [_inner(name, fault) for fault in out_of_range(value, code)]
    if get_origin(base) is tuple:
        most = MOST_OF_A_LIST.get(name, MOST_IN_LIST)
        rule = f"whole numbers from 0 to {most:,}"
        return (
            [] if _listed(value, most) else [Fault(code, f"{name} is not a list of counts", rule, _got(value), "16,16")]
        )
    return _outside(name, base, limits, value, code) if base in (int, float) else []


def _inner(name: str, fault: Fault) -> Fault:
    """A fault of a record inside a field, under the field's name."""
    inner, _, said = fault.what.partition(" ")
    return replace(fault, what=f"{name} {said}", rule=f"{inner}: {fault.rule}")


def _worded(value: Any) -> bool:
    few = isinstance(value, tuple | list) and len(value) <= MOST_WORDS
    return few and all(isinstance(each, str) and 0 < len(each) <= 40 for each in value)


def _listed(value: Any, most: int) -> bool:
    return isinstance(value, tuple | list) and all(type(each) is int and 0 <= each <= most for each in value)


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
