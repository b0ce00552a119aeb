"""explain(): the derivation of a formula's value, read from the formula's own source.

A line prints `name = formula = numbers = value unit  # sentence`, and under it the lines that it rests on. Numbers in a
line can be computed again; a note in square brackets says which branch or which part was taken.
"""

import ast
import functools
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .errors import FormulaError
from .formula import WORDS, each, maximum, minimum, of_row, total, where
from .quantities import unit_of
from .reading import (
    Asked,
    ask,
    check,
    field_units,
    formulas,
    function_of,
    is_formula,
    module_units,
    parts,
    property_of,
    word_of,
)
from .wording import Names, Numbers, added, is_number, plain, printed

__all__ = ["Step", "check", "explain", "formulas", "parts"]

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.USub: operator.neg,
    ast.UAdd: operator.pos, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_SIGNATURES = {word: inspect.signature(word) for word in WORDS}


@dataclass(frozen=True)
class Step:
    """One line of a derivation, and the lines that it rests on."""

    name: str
    formula: str
    numbers: str
    value: float
    unit: str
    sentence: str = ""
    steps: tuple["Step", ...] = ()
    digits: int = 4

    def shown(self) -> str:
        """The value as its line prints it."""
        return printed(self.value, self.unit, self.digits)[0]

    def lines(self, depth: int = 0) -> Iterator[str]:
        """The nested text, a line a step. What says the same as the text behind it is left out."""
        value = self.shown()
        numbers = [self.numbers] if self.numbers != value else []
        formula = [self.formula] if self.formula != self.numbers else []
        sentence = f"  # {self.sentence}" if self.sentence else ""
        yield "    " * depth + " = ".join([self.name, *formula, *numbers, value]) + sentence
        for step in self.steps:
            yield from step.lines(depth + 1)


def explain(formula: Callable[..., Any], *inputs: Any, name: str = "", **named: Any) -> Step:
    """The derivation of a formula's value on these inputs: numbers and records of numbers, not grids."""
    if (owner := getattr(formula, "__self__", None)) is not None:
        inputs = (owner, *inputs)
    return _derive(ask(formula, inputs, named), name, {})


# -- one call of a formula ---------------------------------------------------------------------------------------------


_Answers = dict[tuple[Any, ...], tuple[Any, Asked]]  # holds what was asked, so that no id in a key is given again


def _derive(asked: Asked, name: str, answers: _Answers) -> Step:
    reading = asked.reading
    call = _Call(asked, answers)
    steps = tuple(call.assigned(line.name, line.unit, line.expression) for line in reading.lines)
    last = _Expression(call).line(name or reading.result.name, reading.result.unit, reading.result.expression)
    answers[asked.key] = last.value, asked
    return replace(last, sentence=reading.sentence, steps=(*steps, *last.steps))


class _Call:
    """One call of a formula: what its names stand for, in which unit, and how they print."""

    def __init__(self, asked: Asked, answers: _Answers) -> None:
        self.reading, self.answers = asked.reading, answers
        self.scope = {**self.reading.outside, **asked.arguments}
        self.units = module_units(self.reading.function) | self.reading.units
        self.names = Names(self.reading, self.value)

    def value(self, node: ast.expr) -> Any:
        return eval(_code(node), self.reading.function.__globals__, self.scope)

    def assigned(self, name: str, unit: str, expression: ast.expr) -> Step:
        step = self.part(name, unit, expression)
        self.scope[name], self.units[name] = step.value, unit
        return step

    def part(self, name: str, unit: str, expression: ast.expr) -> Step:
        """A named step. One that is just a formula called takes over its line: `name = formula = ..`."""
        inner = _Expression(self)
        asked = inner.asked(expression)
        if asked is None or asked.key in self.answers:
            return inner.line(name, unit, expression)
        step = _derive(asked, name, self.answers)
        called = "" if name == asked.reading.result.name else f"{self.names.text(expression)} = "
        return replace(step, formula=called + step.formula, steps=(*inner.steps, *step.steps))


@functools.cache
def _code(node: ast.expr) -> Any:
    return compile(ast.Expression(node), "<formula>", "eval")


# -- one expression ----------------------------------------------------------------------------------------------------


class _Expression:
    """One expression, read for its value and its numbers; the lines that it rests on are collected on the way."""

    def __init__(self, call: _Call) -> None:
        self.call = call
        self.numbers = Numbers()
        self.steps: list[Step] = []

    def line(self, name: str, unit: str, expression: ast.expr) -> Step:
        value, numbers = self.read(expression, unit)
        value = value.item() if isinstance(value, np.generic) else value
        value = int(value) if isinstance(value, bool) else value
        if not is_number(value):
            raise FormulaError(f"{self.call.reading.function.__qualname__}: {name} is no number; got {value!r:.60}")
        unit = unit or self.numbers.unit(numbers)
        text, digits = self.numbers.printed(numbers, value, unit)
        return Step(name, self.call.names.text(expression), text, value, unit, "", tuple(self.steps), digits)

    def read(self, node: ast.expr, unit: str = "") -> tuple[Any, ast.expr]:
        """The value and the numbers. The unit is what its neighbours in a sum have, "" if that is open."""
        reader = getattr(self, f"_{type(node).__name__.lower()}", None)
        return reader(node, unit) if reader else (self.call.value(node), node)

    def leaf(self, value: Any, unit: str) -> tuple[Any, ast.expr]:
        if isinstance(value, np.ndarray):
            if value.ndim:
                name = self.call.reading.function.__qualname__
                raise FormulaError(f"{name}: a derivation is of one layout; got a grid of shape {value.shape}")
            value = value.item()
        if is_number(value):
            return value, self.numbers.leaf(value, unit)
        return value, ast.Constant(value) if isinstance(value, str) else plain(type(value).__name__)

    def _name(self, node: ast.Name, unit: str) -> tuple[Any, ast.expr]:
        return self.leaf(self.call.value(node), self.call.units.get(node.id, unit))

    def _attribute(self, node: ast.Attribute, unit: str) -> tuple[Any, ast.expr]:
        owner = self.read(node.value)[0]
        if (asked := property_of(owner, node.attr)) is not None:
            return self.answer(asked, self.call.names.text(node))
        return self.leaf(getattr(owner, node.attr), field_units(owner.__class__).get(node.attr, unit))

    def _subscript(self, node: ast.Subscript, unit: str) -> tuple[Any, ast.expr]:
        return self.leaf(self.read(node.value)[0][self.call.value(node.slice)], unit)

    def _binop(self, node: ast.BinOp, unit: str) -> tuple[Any, ast.expr]:
        inner = unit if isinstance(node.op, ast.Add | ast.Sub) else ""
        (left, left_text), (right, right_text) = self.read(node.left, inner), self.read(node.right, inner)
        return _OPERATORS[type(node.op)](left, right), ast.BinOp(left_text, node.op, right_text)

    def _unaryop(self, node: ast.UnaryOp, unit: str) -> tuple[Any, ast.expr]:
        value, text = self.read(node.operand, unit)
        return _OPERATORS[type(node.op)](value), ast.UnaryOp(node.op, text)

    def _compare(self, node: ast.Compare, unit: str) -> tuple[Any, ast.expr]:
        compare = _OPERATORS.get(type(node.ops[0]))
        if compare is None:
            return self.leaf(self.call.value(node), "")
        (left, left_text), (right, right_text) = self.read(node.left), self.read(node.comparators[0])
        return compare(left, right), ast.Compare(left_text, node.ops, [right_text])

    def _call(self, node: ast.Call, unit: str) -> tuple[Any, ast.expr]:
        word = word_of(self.call.reading, node.func)
        if word is where:
            return self.where(node, unit)
        if word in (total, maximum, minimum):
            return self.several(node, word, unit)
        if word is each:
            return self.rows(node)[0], plain("rows")
        if word in WORDS:
            inputs = [self.read(given) for given in _given(word, node)]
            return word(*(value for value, _ in inputs)), _called(word, [text for _, text in inputs])
        if (asked := self.asked(node)) is not None:
            return self.answer(asked, self.call.names.text(node))
        function = self.read(node.func)[0]
        positional, named = self.inputs(node)
        return self.leaf(function(*positional, **named), unit)

    def asked(self, node: ast.expr) -> Asked | None:
        """What is asked of a formula, where an expression is just that: a formula called, or a property."""
        if isinstance(node, ast.Attribute):
            return property_of(self.read(node.value)[0], node.attr)
        target: Any = self.read(node.func)[0] if isinstance(node, ast.Call) else None
        if not isinstance(node, ast.Call) or not is_formula(target):
            return None
        positional, named = self.inputs(node)
        owner = (target.__self__,) if hasattr(target, "__self__") else ()
        return ask(target, (*owner, *positional), named)

    def inputs(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        positional = [self.read(given)[0] for given in node.args]
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.read(keyword.value)[0]
            named |= value if keyword.arg is None else {keyword.arg: value}
        return positional, named

    def answer(self, asked: Asked, name: str) -> tuple[Any, ast.expr]:
        """The value of a formula; its lines too, unless they are printed already."""
        if asked.key not in self.call.answers:
            self.steps.append(_derive(asked, name, self.call.answers))
        return self.leaf(self.call.answers[asked.key][0], asked.reading.result.unit)

    def where(self, node: ast.Call, unit: str) -> tuple[Any, ast.expr]:
        condition, yes, no = _given(where, node)
        holds = bool(self.read(condition)[0])
        value, text = self.read(yes if holds else no, unit)
        return value, self.numbers.noted(text, self.call.names.condition(condition, holds))

    def several(self, node: ast.Call, word: Any, unit: str) -> tuple[Any, ast.expr]:
        """The parts of a total, or what a maximum or a minimum chooses from."""
        inputs = [*node.args, *(part.value for part in node.keywords)]
        known = (self.call.units.get(part.id, "") for part in inputs if isinstance(part, ast.Name))
        found = list(self.parts(node, unit or next(known, "")))  # what is added or compared has one unit
        value = word(**{str(place): part for place, (_, part, _) in enumerate(found)})
        if word is total:
            # Rows that have nothing of a kind would fill the line with zeros.
            return value, added([text for name, part, text in found if part or not name.endswith("*")])
        winner = next(name for name, part, _ in found if part == value).rstrip("*")
        text = _called(word, [text for *_, text in found])
        return value, self.numbers.noted(text, winner) if winner else text

    def parts(self, node: ast.Call, unit: str) -> Iterator[tuple[str, Any, ast.expr]]:
        """Name, value and numbers of each part: no name is an empty one, and a row's ends in *."""
        for given in [*node.args, *(part.value for part in node.keywords if part.arg is None)]:
            yield from self.unnamed(given, unit)
        for keyword in node.keywords:
            if keyword.arg is not None:
                yield keyword.arg, *self.named(keyword.arg, keyword.value, unit)

    def unnamed(self, node: ast.expr, unit: str) -> Iterator[tuple[str, Any, ast.expr]]:
        if isinstance(node, ast.Call) and word_of(self.call.reading, node.func) is each:
            values, unit = self.rows(node)
            yield from ((f"{name}*", *self.leaf(value, unit)) for name, value in values.items())
            return
        value, text = self.read(node, unit)
        if isinstance(value, Mapping):
            yield from ((f"{name}*", *self.leaf(part, unit)) for name, part in value.items())
        else:
            yield "", value, text

    def named(self, name: str, node: ast.expr, unit: str) -> tuple[Any, ast.expr]:
        """A part of its own line, except where it is a quantity that has this name anyway."""
        if isinstance(node, ast.Name) and node.id == name:
            return self.read(node, unit)
        step = self.call.part(name, unit, node)
        self.steps.append(step)
        return self.leaf(step.value, step.unit)

    def rows(self, node: ast.Call) -> tuple[dict[str, Any], str]:
        """One formula over rows, a line a row; the values by name, and their unit."""
        formula, rows, *inputs = self.inputs(node)[0]
        values = {}
        for row in rows:
            own = of_row(formula, row.__class__)
            values[row.name] = self.answer(ask(own, (row, *inputs), {}), row.name)[0]
        return values, unit_of(function_of(formula).__annotations__["return"])


def _given(word: Any, node: ast.Call) -> tuple[ast.expr, ...]:
    named = {part.arg: part.value for part in node.keywords if part.arg}
    return tuple(_SIGNATURES[word].bind(*node.args, **named).arguments.values())


def _called(word: Any, inputs: list[ast.expr]) -> ast.expr:
    return ast.Call(plain(word.__name__), inputs, [])
