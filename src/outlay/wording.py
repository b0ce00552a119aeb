"""How one expression prints: in names, shortened as far as they stay clear, and in numbers that can be computed again.

`model.hidden` and `here["hidden"]` print as `hidden`; where two things would print alike, both keep their owner.
Numbers have four digits, and more where the line, computed again from what is printed, would miss its own value.
"""

import ast
import functools
import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from .formula import WORDS, each, maximum, minimum, total
from .quantities import PREFIXES, show
from .reading import Reading, is_formula, word_of

_DIGITS = (4, 5, 6, 8, 11, 14)
_EXACT = 17  # digits that give a float64 back
_CLOSE = 4.5e-4  # tighter than the 5e-4 that is promised, so that nobody's rounding breaks the promise

_SIZES = dict(PREFIXES)
_WORDS = {word.__name__: word for word in WORDS}
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.Lt: ast.GtE,
    ast.Gt: ast.LtE,
    ast.In: ast.NotIn,
    ast.Is: ast.IsNot,
}
_OPPOSITE |= {opposite: operator for operator, opposite in _OPPOSITE.items()}

Path = tuple[str, ...]


class Names:
    """An expression of one formula, in names. `value` evaluates an expression where the formula stands now."""

    def __init__(self, reading: Reading, value: Callable[[ast.expr], Any]) -> None:
        self.reading, self.value = reading, value
        fields = [node for node in reading.nodes if isinstance(node, ast.Attribute | ast.Subscript)]
        self.paths: dict[ast.expr, Path] = {node: self.path(node) for node in fields}
        self.calls = [node for node in reading.nodes if isinstance(node, ast.Call)]
        taken = {*reading.signature.parameters, reading.result.name, *(line.name for line in reading.lines)}
        for node in self.calls:
            if word_of(reading, node.func) in (total, maximum, minimum):
                taken |= {part.arg for part in node.keywords if part.arg}
        every = {*self.paths.values(), *((name,) for name in taken)}
        self.ends = Counter(path[-size:] for path in every for size in range(1, len(path) + 1))

    def text(self, node: ast.expr) -> str:
        return ast.unparse(self.short(node))

    def condition(self, node: ast.expr, holds: bool) -> str:
        """What is true of a condition: itself, or its opposite."""
        said = self.short(node)
        if holds:
            return ast.unparse(said)
        if isinstance(said, ast.Compare):
            return ast.unparse(ast.Compare(said.left, [_OPPOSITE[type(said.ops[0])]()], said.comparators))
        return ast.unparse(ast.UnaryOp(ast.Not(), said))

    def label(self, node: ast.expr) -> str:
        """The shortest clear name of a field or an entry."""
        path = self.paths[node]
        clear = (path[-size:] for size in range(1, len(path)) if self.ends[path[-size:]] == 1)
        return ".".join(next(clear, path))

    def path(self, node: ast.expr) -> Path:
        if isinstance(node, ast.Attribute):
            return (*self.path(node.value), node.attr)
        if isinstance(node, ast.Subscript):
            key = self.known(node.slice)
            return (*self.path(node.value), key) if isinstance(key, str) and key else (ast.unparse(node),)
        return (ast.unparse(node),)

    def known(self, node: ast.expr) -> Any:
        # A branch that `where` did not take may ask for what is not there; it still has to print.
        try:
            return self.value(node)
        except Exception:
            return None

    def short(self, node: Any) -> Any:
        """The same expression with short names."""
        if isinstance(node, list):
            return [self.short(item) for item in node]
        if isinstance(node, ast.Attribute | ast.Subscript):
            return plain(self.label(node))
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.AST):
            return type(node)(**{name: self.short(value) for name, value in ast.iter_fields(node)})
        return node

    def call(self, node: ast.Call) -> ast.expr:
        word = word_of(self.reading, node.func)
        if word is total:
            return self.sum(node)
        if word is each:
            return ast.Call(plain("each"), [self.short(node.args[0])], [])
        if is_formula(self.known(node.func)):
            return self.formula(node)
        return ast.Call(self.short(node.func), self.short(node.args), self.short(node.keywords))

    def sum(self, node: ast.Call) -> ast.expr:
        unnamed = [*node.args, *(part.value for part in node.keywords if part.arg is None)]
        terms: list[ast.expr] = [ast.Call(plain("total"), [self.short(part)], []) for part in unnamed]
        terms += [plain(part.arg) for part in node.keywords if part.arg]
        return added(terms)

    def formula(self, node: ast.Call) -> ast.expr:
        """The name of a formula; where it is called more than once, with the inputs that differ."""
        name = self.short(node.func)
        alike = [call for call in self.calls if _source(call.func) == _source(node.func)]
        given = [tuple(map(ast.unparse, [*call.args, *call.keywords])) for call in alike]
        if len(set(given)) == 1:
            return plain(ast.unparse(name))
        same_shape = len({len(inputs) for inputs in given}) == 1
        differs = [not same_shape or len({inputs[place] for inputs in given}) > 1 for place in range(len(given[0]))]
        inputs = [part for part, kept in zip([*node.args, *node.keywords], differs, strict=False) if kept]
        shown = [self.short(part.value if isinstance(part, ast.keyword) else part) for part in inputs]
        return ast.Call(name, shown, [])


class Numbers:
    """An expression in numbers, each kept beside its unit so that it can be printed finer."""

    def __init__(self) -> None:
        self.leaves: dict[str, tuple[float, str]] = {}
        self.notes: list[str] = []

    def leaf(self, value: float, unit: str) -> ast.expr:
        """A number in its place. Its sign is an operator, so that brackets come out right."""
        place = f"\x01{len(self.leaves)}\x01"
        self.leaves[place] = abs(value), unit
        return ast.UnaryOp(ast.USub(), plain(place)) if value < 0 else plain(place)

    def unit(self, numbers: ast.expr) -> str:
        """The unit of numbers that are one leaf; an empty text for any others."""
        return self.leaves.get(numbers.id, (0, ""))[1] if isinstance(numbers, ast.Name) else ""

    def noted(self, numbers: ast.expr, note: str) -> ast.expr:
        """The same numbers and a note behind. It is a subscript, which binds tightest: brackets then come out right."""
        self.notes.append(note)
        return ast.Subscript(numbers, plain(f"\x02{len(self.notes) - 1}\x02"), ast.Load())

    def printed(self, numbers: ast.expr, value: float, unit: str) -> tuple[str, int]:
        """The text, and the digits at which it gives the printed value again."""
        form = ast.unparse(numbers)
        if isinstance(numbers, ast.Name | ast.Constant):
            return self.filled(form, 4), 4
        code = compile(ast.fix_missing_locations(ast.Expression(_Bare().visit(numbers))), "<numbers>", "eval")
        digits = next((some for some in _DIGITS if self.agrees(code, value, unit, some)), _EXACT)
        return self.filled(form, digits), digits

    def agrees(self, code: Any, value: float, unit: str, digits: int) -> bool:
        said = {place: printed(*leaf, digits)[1] for place, leaf in self.leaves.items()}
        shown = printed(value, unit, digits)[1]
        try:
            again = eval(code, dict(_WORDS), said)
        except (ArithmeticError, ValueError):
            return False
        return bool(again == shown or abs(again - shown) <= _CLOSE * abs(shown))

    def filled(self, form: str, digits: int) -> str:
        noted = re.sub("\\[\x02(\\d+)\x02\\]", lambda found: f" [{self.notes[int(found[1])]}]", form)
        return re.sub("\x01\\d+\x01", lambda found: printed(*self.leaves[found[0]], digits)[0], noted)


_source = functools.cache(ast.unparse)


class _Bare(ast.NodeTransformer):
    def visit_Subscript(self, node: ast.Subscript) -> Any:
        return self.visit(node.value)


def plain(text: str) -> ast.Name:
    """A text in the place of an expression."""
    return ast.Name(text, ast.Load())


def added(terms: list[ast.expr]) -> ast.expr:
    """The sum of expressions, in reading order."""
    result = terms[0] if terms else ast.Constant(0)
    for term in terms[1:]:
        result = ast.BinOp(result, ast.Add(), term)
    return result


def is_number(value: object) -> bool:
    """Whether a value prints as a number: Python's or NumPy's, a flag as 0 or 1."""
    return isinstance(value, int | float | np.number | np.bool_)


def printed(value: float, unit: str, digits: int = 4) -> tuple[str, float]:
    """The text of a quantity, and the number that this text says."""
    if not math.isfinite(value):
        return f"{value} {unit}".rstrip(), value
    if digits >= _EXACT:
        text = f"{value:,}" if isinstance(value, int) else repr(float(value))
        return f"{text} {'' if unit == 'share' else unit}".rstrip(), value
    text, _, suffix = show(value, unit).partition(" ")
    scale = 0.01 if suffix == "%" else _SIZES[suffix.removesuffix(unit)]
    if digits > 4 and (unit or not float(value).is_integer()):
        text = f"{value / scale:.{digits}g}"
    return f"{text} {suffix}".rstrip(), float(text.replace(",", "")) * scale
