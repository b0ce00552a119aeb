"""A right answer beside its derivation, which is read from the formula's own source."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ..derivation import explain
from .exercise import Part, Slip, Unit

APART = Fraction(1, 50)  # by which a known mistake differs from the right answer, at least


def derived(
    ask: str,
    unit: Unit,
    answer: Fraction,
    formula: Callable[..., Any],
    *inputs: Any,
    slips: tuple[Slip, ...] = (),
    stairs: tuple[int, int] | None = None,
) -> Part:
    """A part whose derivation is that of a formula. `answer` is exact, where a formula may round."""
    why = tuple(explain(formula, *(float(one) if isinstance(one, Fraction) else one for one in inputs)).lines())
    return Part(ask, unit, answer, why, told_apart(answer, slips), stairs=stairs)


def told_apart(answer: Fraction, slips: tuple[Slip, ...]) -> tuple[Slip, ...]:
    """The mistakes whose value is not that of the right answer."""
    return tuple(slip for slip in slips if abs(slip.answer - answer) > APART * abs(answer))
