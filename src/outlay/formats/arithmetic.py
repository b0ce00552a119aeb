"""Whole-number arithmetic as `$(( .. ))` of a shell has it: + - * / % and parentheses, over known variables."""

import re
from collections.abc import Callable

TOKEN = re.compile(r"\s*(\d{1,18}|[A-Za-z_]\w*|\*\*|[-+*/%()])")
LARGEST, MOST_TOKENS, DEEPEST = 10**18, 200, 20


def evaluate(text: str, variable: Callable[[str], str | None]) -> int | None:
    """The value of an expression, or None where it cannot be told."""
    tokens, at = list[str](), 0
    plain = re.sub(r"\$\{?([A-Za-z_]\w*)\}?", r"\1", text).rstrip()
    while at < len(plain):
        match = TOKEN.match(plain, at)
        if match is None or len(tokens) > MOST_TOKENS:
            return None
        tokens.append(match[1])
        at = match.end()
    try:
        value, rest = _sum(tokens, variable, 0)
    except (ValueError, IndexError, ZeroDivisionError):
        return None
    return value if not rest and abs(value) <= LARGEST else None


def _sum(tokens: list[str], variable: Callable[[str], str | None], depth: int) -> tuple[int, list[str]]:
    value, tokens = _product(tokens, variable, depth)
    while tokens and tokens[0] in "+-":
        more, rest = _product(tokens[1:], variable, depth)
        value, tokens = value + more if tokens[0] == "+" else value - more, rest
    return value, tokens


def _product(tokens: list[str], variable: Callable[[str], str | None], depth: int) -> tuple[int, list[str]]:
    value, tokens = _atom(tokens, variable, depth)
    while tokens and tokens[0] in ("*", "/", "%"):
        more, rest = _atom(tokens[1:], variable, depth)
        sign = tokens[0]
        value = value * more if sign == "*" else _cut(value, more) if sign == "/" else value - more * _cut(value, more)
        if abs(value) > LARGEST:
            raise ValueError
        tokens = rest
    return value, tokens


def _cut(value: int, by: int) -> int:
    """A quotient cut towards zero, as a shell cuts it."""
    return abs(value) // abs(by) * (1 if (value < 0) == (by < 0) else -1)


def _atom(tokens: list[str], variable: Callable[[str], str | None], depth: int) -> tuple[int, list[str]]:
    first = tokens[0]
    if depth > DEEPEST:
        raise ValueError
    if first == "(":
        value, rest = _sum(tokens[1:], variable, depth + 1)
        if rest[0] != ")":
            raise ValueError
        return value, rest[1:]
    if first in "+-":
        value, rest = _atom(tokens[1:], variable, depth + 1)
        return (-value if first == "-" else value), rest
    if first.isdigit():
        return int(first), tokens[1:]
    known = variable(first)
    if known is None or not re.fullmatch(r"\s*-?\d{1,18}\s*", known):
        raise ValueError
    return int(known), tokens[1:]
