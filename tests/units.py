"""Formulas run on units, and printed derivations computed again: the two judges of what a formula says.

Data, time and work are dimensions; parameters, tokens, counts and shares are plain numbers. While a formula runs, the
words of `formula.py` are exchanged for words that know units, in every module that uses them: so what a formula calls
(other formulas, methods, properties, plain functions) runs on units as well.
"""

import ast
import contextlib
import copy
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import reduce
from itertools import chain
from typing import Any

import pint

from outlay import formula as words
from outlay.formula import WORDS, of_row
from outlay.reading import field_units, function_of, read

UNITS: pint.UnitRegistry = pint.UnitRegistry(None)
for dimension in ("B = [data]", "s = [time]", "FLOP = [work]", "J = [energy]", "W = J / s"):
    UNITS.define(dimension)
PLAIN = {"", "param", "token", "share"}


class UnitsError(AssertionError):
    """A formula whose arithmetic does not give what its annotations say."""


def quantity(value: Any, unit: str) -> Any:
    """A number with its unit; plain numbers stay as they are."""
    return value if unit in PLAIN else UNITS.Quantity(value, UNITS.parse_units(unit))


def with_units(record: Any, table: Mapping[str, str]) -> Any:
    """A copy of a frozen record with units on some fields: {"memory_bandwidth": "B/s", "link.bandwidth": "B/s"}."""
    dressed = copy.copy(record)
    for path, unit in table.items():
        name, _, rest = path.partition(".")
        value = getattr(dressed, name)
        new = with_units(value, {rest: unit}) if rest else quantity(value, unit)
        object.__setattr__(dressed, name, new)
    return dressed


def result_units(formula: Callable[..., Any], *examples: Any, **named: Any) -> None:
    """Raise UnitsError unless every named step of the formula, and its result, has the dimension that it is given.

    Numbers take the unit of their parameter, and records the units that their fields are annotated with.
    """
    if (owner := getattr(formula, "__self__", None)) is not None:
        examples = (owner, *examples)
    reading = read(function_of(formula))
    bound = reading.signature.bind(*examples, **named)
    bound.apply_defaults()
    scope = {name: _dressed(value, reading.units.get(name, "")) for name, value in bound.arguments.items()}
    scope = {**reading.outside, **scope}
    with words_with_units(reading.function.__module__):
        for line in (*reading.lines, reading.result):
            where = f"{reading.function.__qualname__}, {line.name}"
            code = compile(ast.Expression(line.expression), where, "eval")
            try:
                scope[line.name] = eval(code, reading.function.__globals__, scope)  # noqa: S307
            except (pint.PintError, UnitsError) as error:
                raise UnitsError(f"{where}: {error}") from error
            _hold(scope[line.name], line.unit, where)


def _dressed(value: Any, unit: str) -> Any:
    if isinstance(value, int | float):
        return quantity(value, unit)
    if is_dataclass(value) and not isinstance(value, type):
        annotated = field_units(type(value))
        bare = {name: u for name, u in annotated.items() if isinstance(getattr(value, name), int | float)}
        return with_units(value, bare)
    return value


def _dimension(value: Any) -> Any:
    return value.dimensionality if isinstance(value, pint.Quantity) else UNITS.Quantity(1).dimensionality


def _is_nothing(value: Any) -> bool:
    return not isinstance(value, pint.Quantity) and value == 0


def _hold(value: Any, unit: str, where: str) -> None:
    declared = _dimension(quantity(1, unit))
    if not _is_nothing(value) and _dimension(value) != declared:
        raise UnitsError(f"{where}: annotated {unit or 'a plain number'}, got {_dimension(value)}")


# --- the words, with units ------------------------------------------------------------------------------------------


def _same(word: str, values: Iterable[Any]) -> None:
    """What is added or compared has one dimension; a bare 0 has any."""
    found = {str(_dimension(value)) for value in values if not _is_nothing(value)}
    if len(found) > 1:
        raise UnitsError(f"{word} of {' and '.join(sorted(found))}")


def _rounded(word: str, rounding: Callable[[float], float]) -> Callable[[Any], float]:
    """A word that takes plain numbers alone."""

    def unit_word(x: Any) -> float:
        if _dimension(x) != _dimension(1):
            raise UnitsError(f"{word} of {_dimension(x)}, which depends on the unit chosen")
        return rounding(x.m_as("") if isinstance(x, pint.Quantity) else x)

    return unit_word


def _where(condition: Any, yes: Any, no: Any) -> Any:
    _same("where", (yes, no))
    return yes if condition else no


def _divide(over: Any, under: Any) -> Any:
    bare = under.magnitude if isinstance(under, pint.Quantity) else under
    return over / under if bare else 0


def _flat(parts: Iterable[Any], named: Mapping[str, Any]) -> list[Any]:
    lists = [part.values() if isinstance(part, Mapping) else [part] for part in parts if part is not None]
    return [*chain.from_iterable(lists), *named.values()]


def _chosen(word: str, better: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def unit_word(*parts: Any, **named: Any) -> Any:
        values = _flat(parts, named)
        _same(word, values)
        return reduce(lambda a, b: a if better(a, b) else b, values)

    return unit_word


def _total(parts: Mapping[str, Any] | None = None, /, **named: Any) -> Any:
    values = _flat([parts], named)
    _same("total", values)
    return reduce(lambda a, b: a + b, values, 0)


def _each(formula: Callable[..., Any], rows: Iterable[Any], /, *inputs: Any) -> dict[str, Any]:
    return {row.name: of_row(formula, row.__class__)(row, *inputs) for row in rows}


UNIT_WORDS: dict[str, Callable[..., Any]] = {
    "ceil": _rounded("ceil", math.ceil),
    "floor": _rounded("floor", math.floor),
    "sqrt": lambda x: x**0.5,
    "expm1": _rounded("expm1", math.expm1),
    "log2": _rounded("log2", math.log2),
    "where": _where,
    "divide": _divide,
    "maximum": _chosen("maximum", lambda a, b: a >= b),
    "minimum": _chosen("minimum", lambda a, b: a <= b),
    "total": _total,
    "each": _each,
}


@contextlib.contextmanager
def words_with_units(*modules: str) -> Iterator[None]:
    """Exchange the words in outlay's modules and in these, and put them back afterwards."""
    exchanged = []
    for name, module in list(sys.modules.items()):
        if name in modules or name.split(".")[0] == "outlay":
            known = vars(module)
            exchanged += [(known, key, value) for key, value in known.items() if _is_word(value)]
    try:
        for known, key, value in exchanged:
            if known is not vars(words):
                known[key] = UNIT_WORDS[value.__name__]
        yield
    finally:
        for known, key, value in exchanged:
            known[key] = value


def _is_word(value: Any) -> bool:
    return any(value is word for word in WORDS)


# --- printed numbers, computed again --------------------------------------------------------------------------------

_PREFIXES = {"P": 1e15, "T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12}
_NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
_UNITED = re.compile(rf"(?<![\w.])({_NUMBER}) ([PTGMkmunp]?)(FLOP/s|B/s|s/B|FLOP|B|s|J|W|param|token)(?![\w/])")
_PERCENT = re.compile(rf"(?<![\w.])({_NUMBER}) %(?= [-+*/\[]|[,)]|$)")
_KNOWN = re.compile(rf"{_UNITED.pattern}|{_NUMBER}|\[.*\]|" + "|".join(word.__name__ for word in WORDS))
_NAMES = re.compile(r"[^\W\d]")
_COMMAS = re.compile(r"(?<=\d),(?=\d{3})")


def numbers_value(text: str) -> float:
    """What printed numbers say, computed with the words of formulas: prefixes and `%` count, notes in [] do not."""
    while text != (bare := re.sub(r" ?\[[^\[\]]*\]", "", text)):
        text = bare
    text = _UNITED.sub(lambda found: f"({found[1]} * {_PREFIXES[found[2]]!r})", text)
    text = _COMMAS.sub("", _PERCENT.sub(r"(\1 * 0.01)", text))
    return eval(text, {word.__name__: word for word in WORDS})  # noqa: S307


def evaluate(line: str) -> tuple[float, float]:
    """A line of a derivation: the value of its numbers, computed again, and the value that it prints.

    A line that only names what it equals has no numbers, and gives its value twice.
    """
    *before, shown = line.split("  # ")[0].strip().split(" = ")
    value = numbers_value(shown)
    said = before[-1] if len(before) > 1 else shown
    return (value if _NAMES.search(_KNOWN.sub("", said)) else numbers_value(said)), value
