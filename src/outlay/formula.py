"""The words a formula may use, besides arithmetic, comparison and other formulas.

On scalars every word returns a Python number, so exact counts stay exact and JSON takes them; on arrays it is NumPy's.
"""

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from functools import cache, wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .errors import FormulaError
from .quantities import Flag, Real


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


def expm1(x: Real) -> Real:
    """e to the power of x, less 1, exact also where x is small."""
    return np.expm1(x) if isinstance(x, np.ndarray) else math.expm1(x)


def log2(x: Real) -> Real:
    """How often a number doubles from 1."""
    return np.log2(x) if isinstance(x, np.ndarray) else math.log2(x)


def where(condition: Flag, yes: Real, no: Real) -> Real:
    """`yes` where the condition holds, else `no`. Both are evaluated: write each so that it is safe."""
    if not isinstance(condition, np.ndarray):
        return _plain(yes if condition else no)
    # Two whole numbers would give an array of int64, and that one spreads: a grid is float64 throughout.
    return np.where(condition, *(one if isinstance(one, np.ndarray) else float(one) for one in (yes, no)))


def divide(over: Real, under: Real) -> Real:
    """A quotient, and 0 where the divisor is 0: what is absent costs nothing."""
    if not isinstance(over, np.ndarray) and not isinstance(under, np.ndarray):
        return _plain(over / under) if under else 0.0
    nothing = np.equal(under, 0)
    if not nothing.any():  # a comparison of what is divided by is less than a choice of each quotient
        return over / under
    quotient: NDArray[np.float64] = np.where(nothing, 0.0, over / np.where(nothing, 1.0, under))
    return quotient


Parts = Real | dict[str, Real]


def _chosen(parts: Iterable[Parts], named: dict[str, Real], stays: Callable[..., Any], pair: np.ufunc) -> Real:
    """The first part, unless it does not stay beside a later one; on arrays element by element."""
    values: list[Real] = []
    for part in parts:
        if isinstance(part, dict):
            values += part.values()
        else:
            values.append(part)
    first, *rest = (*values, *named.values())
    for value in rest:
        if isinstance(first, np.ndarray) or isinstance(value, np.ndarray):
            first = pair(first, value)
        elif not stays(first, value):
            first = value
    return _plain(first)


def maximum(*parts: Parts, **named: Real) -> Real:
    """The largest; parts may be named, one by one or in a mapping, so that a derivation can say which one binds."""
    return _chosen(parts, named, operator.ge, np.maximum)


def minimum(*parts: Parts, **named: Real) -> Real:
    """The smallest; parts may be named, one by one or in a mapping, so that a derivation can say which one binds."""
    return _chosen(parts, named, operator.le, np.minimum)


def total(parts: Mapping[str, Real] | None = None, /, **named: Real) -> Real:
    """The sum of named parts, in reading order: a count is a tree of named parts that add up."""
    first, *rest = (*parts.values(), *named.values()) if parts else named.values() or (0,)
    result = _plain(first)
    for part in rest:
        if isinstance(part, np.ndarray):
            result = result + part if isinstance(result, np.ndarray) or result else part
        elif part or not isinstance(result, np.ndarray):  # nothing is added to a grid without a call
            result = result + _plain(part)
    return result


def each(formula: Callable[..., Real], rows: Iterable[Any], /, *inputs: Any) -> dict[str, Real]:
    """One formula over named rows, each row answering in its own way: name -> value."""
    answers: dict[str, Real] = {}
    for row in rows:
        if row.name in answers:
            raise FormulaError(f"each: two rows are named {row.name!r}, so one of them would not be counted")
        answer = of_row(formula, row.__class__)(row, *inputs)
        answers |= rows.apart(row.name, answer) if isinstance(rows, Stacked) else {row.name: answer}
    return answers


class Stacked(tuple[Any, ...]):
    """Rows of which each stands for several, along the first axis of its arrays: a formula answers for all at once.

    `axes` are those of the arrays: what has fewer is the same for all.
    """

    axes = 0

    def apart(self, name: str, answer: Real) -> dict[str, Real]:
        """The answers that one row gave, one by one."""
        if not isinstance(answer, np.ndarray) or answer.ndim < self.axes:
            return {name: answer}
        return {f"{name} {place}": part for place, part in enumerate(answer)}


@cache
def of_row(formula: Callable[..., Any], kind: type) -> Callable[..., Any]:
    """The version of a formula that rows of a kind have where it is a method; any other formula as it is."""
    own: Callable[..., Any] = getattr(kind, formula.__name__, formula)
    return own


Kept = TypeVar("Kept", bound=Callable[..., Any])


def kept(function: Kept) -> Kept:
    """The same function of a record and numbers, its answers kept on the record: a `cached_property` with inputs."""

    @wraps(function)
    def answer(record: Any, *inputs: Any) -> Any:
        answers = record.__dict__.setdefault("answers", {})
        key = (function, *inputs, *map(type, inputs))
        try:
            return answers[key]
        except TypeError:  # an array has no hash
            return function(record, *inputs)
        except KeyError:
            found = answers[key] = function(record, *inputs)
            return found

    return answer  # type: ignore[return-value]


WORDS = (ceil, floor, sqrt, expm1, log2, where, divide, maximum, minimum, total, each)
