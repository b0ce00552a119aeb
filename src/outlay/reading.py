"""Reading a formula: its own source, checked against the rules and kept as expressions; and the parts of its total.

A formula is a docstring, annotated assignments and one return, each of a quantity. Everything that is read is read
once: a formula's own lines are parsed once, and the parts of a total are compiled once.
"""

import ast
import copy
import functools
import inspect
import linecache
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NoReturn

from .errors import FormulaError
from .formula import total
from .quantities import unit_of

_REFUSED: dict[type[ast.AST], str] = {
    ast.IfExp: "a choice is where(condition, yes, no)",
    ast.BoolOp: "conditions are joined by & and |, which also work on a grid",
    ast.Not: "a condition is a comparison, which also works on a grid",
    ast.Invert: "a condition is a comparison, which also works on numbers",
    ast.comprehension: "a loop over rows is each(formula, rows, ..)",
    ast.Starred: "inputs are given one by one, or by name",
    ast.Lambda: "a function that a formula calls has a name",
    ast.NamedExpr: "a named step is an annotated assignment on a line of its own",
    ast.Await: "a formula does not wait",
    ast.Yield: "one return, at the end",
    ast.YieldFrom: "one return, at the end",
}


@dataclass(frozen=True)
class Line:
    """One named quantity of a formula: an annotated assignment, or what it returns."""

    name: str
    unit: str
    expression: ast.expr


@dataclass(frozen=True)
class Reading:
    """A formula as its source says it."""

    function: FunctionType
    signature: inspect.Signature
    sentence: str
    units: dict[str, str]  # of the inputs that are quantities
    outside: dict[str, Any]  # names that it closes over
    lines: tuple[Line, ...]
    result: Line

    @functools.cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of every expression."""
        return tuple(node for line in (*self.lines, self.result) for node in ast.walk(line.expression))


def is_quantity(hint: object) -> bool:
    """Whether an annotation carries a quantity: `Bytes`, and also `Count`, whose unit is an empty text."""
    metadata: tuple[object, ...] = getattr(hint, "__metadata__", ())
    return isinstance(metadata[0], str) if metadata else False


def function_of(formula: Any) -> Any:
    """The plain function under a method, a property or a cache."""
    if isinstance(formula, property):
        formula = formula.fget
    elif isinstance(formula, functools.cached_property):
        formula = formula.func
    elif isinstance(formula, MethodType | staticmethod | classmethod):
        formula = formula.__func__
    return inspect.unwrap(formula) if callable(formula) else formula


def is_formula(value: Any) -> bool:
    """Whether it is a function, method or property whose return is annotated with a quantity."""
    function = function_of(value)
    return isinstance(function, FunctionType) and is_quantity(function.__annotations__.get("return"))


def check(formula: Callable[..., Any]) -> None:
    """Raise FormulaError with the formula, the line and the rule, where the formula breaks one."""
    read(function_of(formula))


def formulas(module: ModuleType) -> list[Callable[..., Any]]:
    """The formulas that a module defines, in its order: functions, methods and properties that return a quantity."""
    found: dict[Any, None] = {}
    for value in vars(module).values():
        members = vars(value).values() if isinstance(value, type) and value.__module__ == module.__name__ else (value,)
        for member in members:
            if is_formula(member) and function_of(member).__module__ == module.__name__:
                found[function_of(member)] = None
    return list(found)


def parts(formula: Callable[..., Any], *inputs: Any, **named: Any) -> dict[str, float]:
    """The named parts of the total that a formula returns; of any other formula, its one value under its name."""
    if (owner := getattr(formula, "__self__", None)) is not None:
        inputs = (owner, *inputs)
    mapping, rest = _split(function_of(formula))(*inputs, **named)
    if twice := mapping.keys() & rest.keys():
        raise FormulaError(f"{formula.__name__}: total has two parts named {sorted(twice)[0]!r}")
    return {**mapping, **rest}


def module_units(function: FunctionType) -> dict[str, str]:
    """The units of the constants around a formula."""
    hints = function.__globals__.get("__annotations__", {})
    return {name: unit_of(hint) for name, hint in hints.items() if is_quantity(hint)}


@functools.cache
def field_units(owner: type) -> dict[str, str]:
    """The units of the fields of a class, of those that are annotated with a quantity."""
    hints = {name: hint for base in reversed(owner.__mro__) for name, hint in inspect.get_annotations(base).items()}
    return {name: unit_of(hint) for name, hint in hints.items() if is_quantity(hint)}


@functools.cache
def read(function: FunctionType) -> Reading:
    """The checked reading of a formula."""
    definition = _definition(function)
    name, outside = function.__qualname__, _outside(function)
    hints = function.__annotations__
    if not is_quantity(hints.get("return")):
        _refuse(function, definition, "the return is annotated with a quantity")
    sentence, body = _docstring(function, definition)
    known = {**function.__globals__, **outside}
    lines = tuple(_assignment(function, statement, known) for statement in body[:-1])
    last = body[-1] if body else definition
    if not isinstance(last, ast.Return) or last.value is None:
        _refuse(function, last, "one return of a quantity, at the end")
    result = Line(name.rpartition(".")[2], unit_of(hints["return"]), last.value)
    reading = Reading(function, inspect.signature(function), sentence, _units(hints), outside, lines, result)
    _hold(reading)
    return reading


@dataclass(frozen=True)
class Asked:
    """A formula and what it is asked about. Equal keys ask the same."""

    reading: Reading
    arguments: dict[str, Any]
    key: tuple[Any, ...]


def ask(formula: Any, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> Asked:
    """A formula asked about these inputs, those left out at their defaults."""
    function = function_of(formula)
    reading = read(function)
    bound = reading.signature.bind(*inputs, **named)
    bound.apply_defaults()
    return Asked(reading, bound.arguments, (function, *map(_identity, bound.arguments.values())))


def _identity(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value


def property_of(owner: Any, name: str) -> Asked | None:
    """What is asked where a field is in truth a formula: a property that returns a quantity."""
    held = inspect.getattr_static(type(owner), name, None)
    if isinstance(held, property | functools.cached_property) and is_formula(held):
        return ask(held, (owner,), {})
    return None


@functools.cache
def _definition(function: FunctionType) -> ast.FunctionDef:
    """The formula's own lines, parsed: from its first decorator on, as long as they are indented."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    first, end = code.co_firstlineno - 1, max((line for _, _, line in code.co_lines() if line), default=0)
    margin = re.match(r"\s*", lines[first]).group() + " " if first < len(lines) else ""  # type: ignore[union-attr]
    while end < len(lines) and (not lines[end].strip() or lines[end].startswith(margin)):
        end += 1
    found = _parsed("".join(lines[first:end]))
    if not isinstance(found, ast.FunctionDef) or found.name != code.co_name:
        raise FormulaError(f"{function.__qualname__} ({code.co_filename}): the source of a formula can be read")
    return ast.increment_lineno(found, first)


def _parsed(text: str) -> ast.stmt | None:
    try:
        return ast.parse(textwrap.dedent(text)).body[0]
    except (SyntaxError, IndexError):
        return None


def _outside(function: FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells}


def _units(hints: dict[str, Any]) -> dict[str, str]:
    return {name: unit_of(hint) for name, hint in hints.items() if name != "return" and is_quantity(hint)}


def _refuse(function: FunctionType, node: ast.AST, rule: str) -> NoReturn:
    line = getattr(node, "lineno", function.__code__.co_firstlineno)
    shown = ast.unparse(node).split("\n")[0]
    raise FormulaError(f"{function.__qualname__} ({function.__code__.co_filename}, line {line}): {rule}; got `{shown}`")


def _docstring(function: FunctionType, definition: ast.FunctionDef) -> tuple[str, list[ast.stmt]]:
    # Read from the source and not from __doc__, which `python -OO` takes away.
    text = ast.get_docstring(definition)
    if not text:
        _refuse(function, definition, "a docstring says what is counted")
    paragraph = " ".join(text.split("\n\n")[0].split())
    first = re.match(r".+?\.(?=\s+[A-Z]|$)", paragraph)
    return (first.group() if first else paragraph), definition.body[1:]


def _assignment(function: FunctionType, statement: ast.stmt, known: dict[str, Any]) -> Line:
    if isinstance(statement, ast.Return):
        _refuse(function, statement, "one return, at the end")
    if not isinstance(statement, ast.AnnAssign) or statement.value is None:
        _refuse(function, statement, "every statement before the return is an annotated assignment")
    if not isinstance(statement.target, ast.Name):
        _refuse(function, statement, "an assignment gives a plain name")
    hint = _annotation(statement.annotation, known)
    if not is_quantity(hint):
        _refuse(function, statement, "an assignment is annotated with a quantity")
    return Line(statement.target.id, unit_of(hint), statement.value)


def _annotation(node: ast.expr, known: dict[str, Any]) -> object:
    try:
        return eval(compile(ast.Expression(node), "<annotation>", "eval"), known)
    except (NameError, AttributeError, TypeError):
        return None


def _hold(reading: Reading) -> None:
    taken = set(reading.signature.parameters)
    for line in reading.lines:
        if line.name in taken:
            _refuse(reading.function, line.expression, f"a name is given once, and {line.name!r} is taken")
        taken.add(line.name)
    for node in reading.nodes:
        for refused, rule in _REFUSED.items():
            if isinstance(node, refused):
                _refuse(reading.function, node, rule)
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            _refuse(reading.function, node, "one comparison at a time, which also works on a grid")


def word_of(reading: Reading, node: ast.expr) -> Any:
    """What a plain name stands for where the formula was written; None for any other expression."""
    name = node.id if isinstance(node, ast.Name) else ""
    return reading.outside.get(name, reading.function.__globals__.get(name))


@functools.cache
def _split(function: FunctionType) -> Callable[..., tuple[dict[str, float], dict[str, float]]]:
    """The same function, returning the parts of its total: those of a mapping, and those with a name of their own."""
    reading = read(function)
    result = reading.result.expression
    if isinstance(result, ast.Call) and word_of(reading, result.func) is total:
        unnamed = [*result.args, *(part.value for part in result.keywords if part.arg is None)]
        named = {part.arg: part.value for part in result.keywords if part.arg}
    else:
        unnamed, named = [], {reading.result.name: result}
    mapping = ast.Dict(keys=[None for _ in unnamed], values=unnamed)
    rest = ast.Dict(keys=[ast.Constant(name) for name in named], values=list(named.values()))
    return _recompiled(reading, ast.Tuple(elts=[mapping, rest], ctx=ast.Load()))


def _recompiled(reading: Reading, result: ast.expr) -> Callable[..., Any]:
    function, source = reading.function, _definition(reading.function)
    body = [*source.body[1:-1], ast.copy_location(ast.Return(result), source.body[-1])]
    changed = copy.copy(source)
    changed.body, changed.decorator_list, changed.returns = body, [], None
    module = ast.fix_missing_locations(ast.Module([changed], type_ignores=[]))
    compiled = compile(module, function.__code__.co_filename, "exec")
    code = next(c for c in compiled.co_consts if isinstance(c, CodeType) and c.co_name == source.name)
    known = {**function.__globals__, **reading.outside} if reading.outside else function.__globals__
    parted = FunctionType(code, known, source.name, function.__defaults__)
    parted.__kwdefaults__ = function.__kwdefaults__
    return parted
