"""The words a formula may use, besides arithmetic, comparison and other formulas.

On scalars every word returns a Python number, so exact counts stay exact and JSON takes them; on arrays it is NumPy's.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import FormulaError
from .quantities import Flag, Real


def _scalar(*values: object) -> bool:
    for value in values:  # noqa: SIM110 (a bill asks thousands of times, and a loop is three times as fast)
        if isinstance(value, np.ndarray):
            return False
    return True


def _plain(value: Real) -> Real:
    # A NumPy scalar has 64 bits and JSON refuses it: a Python number is exact and can be printed.
    if isinstance(value, np.generic):
        number: Real = value.item()
        return number
    return value


def ceil(x: Real) -> Real:
    """The least whole number that is not less than x."""
    return np.ceil(x) if isinstance(x, np.ndarray) else math.ceil(x)


def floor(x: Real) -> Real:
    """The greatest whole number that is not greater than x."""
    return np.floor(x) if isinstance(x, np.ndarray) else math.floor(x)


def sqrt(x: Real) -> Real:
    """The square root."""
    return np.sqrt(x) if isinstance(x, np.ndarray) else math.sqrt(x)


def where(condition: Flag, yes: Real, no: Real) -> Real:
    """`yes` where the condition holds, else `no`. Both are evaluated: write each so that it is safe."""
    if not isinstance(condition, np.ndarray):
        return _plain(yes if condition else no)
    # Two whole numbers would give an array of int64, and that one spreads: a grid is float64 throughout.
    chosen: NDArray[np.float64] = np.where(condition, yes, no).astype(np.float64, copy=False)
    return chosen


def divide(over: Real, under: Real) -> Real:
    """A quotient, and 0 where the divisor is 0: what is absent costs nothing."""
    if _scalar(over, under):
        return _plain(over / under) if under else 0.0
    nothing = np.equal(under, 0)
    quotient: NDArray[np.float64] = np.where(nothing, 0.0, over / np.where(nothing, 1.0, under))
    return quotient


def _fold(pair: Callable[[Any, Any], Any], parts: Iterable[Real]) -> Real:
    result: Real = reduce(pair, parts)
    return _plain(result)


def _larger(a: Real, b: Real) -> Real:
    if _scalar(a, b):
        return a if a >= b else b
    return np.maximum(a, b)


def _smaller(a: Real, b: Real) -> Real:
    if _scalar(a, b):
        return a if a <= b else b
    return np.minimum(a, b)


def maximum(*parts: Real | Mapping[str, Real], **named: Real) -> Real:
    """The largest; parts may be named, one by one or in a mapping, so that a derivation can say which one binds."""
    return _fold(_larger, (*_flat(parts), *named.values()))


def minimum(*parts: Real | Mapping[str, Real], **named: Real) -> Real:
    """The smallest; parts may be named, one by one or in a mapping, so that a derivation can say which one binds."""
    return _fold(_smaller, (*_flat(parts), *named.values()))


def _flat(parts: Iterable[Real | Mapping[str, Real]]) -> Iterable[Real]:
    for part in parts:
        if isinstance(part, int | float | np.ndarray):
            yield part
        elif isinstance(part, Mapping):
            yield from part.values()
        else:
            yield part


def total(parts: Mapping[str, Real] | None = None, /, **named: Real) -> Real:
    """The sum of named parts, in reading order: a count is a tree of named parts that add up."""
    first, *rest = (*(parts or {}).values(), *named.values()) or (0,)
    result = _plain(first)
    for part in rest:
        result = result + _plain(part)
    return result


def each(formula: Callable[..., Real], rows: Iterable[Any], /, *inputs: Any) -> dict[str, Real]:
    """One formula over named rows, each row answering in its own way: name -> value."""
    answers: dict[str, Real] = {}
    for row in rows:
        if row.name in answers:
            raise FormulaError(f"each: two rows are named {row.name!r}, so one of them would not be counted")
        answers[row.name] = of_row(formula, row)(row, *inputs)
    return answers


def of_row(formula: Callable[..., Any], row: Any) -> Callable[..., Any]:
    """The row's own version of a formula that is a method; any other formula as it is."""
    own: Callable[..., Any] = getattr(type(row), formula.__name__, formula)
    return own


WORDS = (ceil, floor, sqrt, where, divide, maximum, minimum, total, each)
