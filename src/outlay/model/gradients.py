"""What stands in the backward pass of one layer, which frees its tape row by row and makes gradients of its weights."""

from collections.abc import Sequence
from typing import Any

from ..formula import maximum, where
from ..quantities import Bytes, Count
from .operations import Attention, Linear, Pointwise, Row, Sizes


def linear_passing(linear: Linear, here: Sizes) -> Bytes:
    """Gradients of a matrix's output and input.

    Of several matrices with one input, one is done, and two gradients of the input are there to be added up. Exact
    where all are as wide, as of gate and up.
    """
    inputs: Count = where(linear.matrices > 1, 2, 1) * here[linear.ins]
    outputs: Count = where(linear.matrices > 1, 1 - 1 / linear.matrices, 1) * here[linear.outs]
    return here["value"] * here[linear.copies] * here[linear.tokens] * (inputs + outputs)


def pointwise_passing(pointwise: Pointwise, here: Sizes) -> Bytes:
    """Gradients of the output and the input of a kernel bound by memory."""
    return pointwise.passes * here["value"] * here[pointwise.tokens] * here[pointwise.width]


def attention_passing(row: Attention, here: Sizes) -> Bytes:
    """Gradients of q, k, v and the output, and of the scores where they are written out."""
    values: Count = here["q"] + here["k"] + here["v"] + here["o"]
    return here["value"] * here["T"] * values + row.backward_workspace(here)


def passing(row: Row, here: Sizes) -> Any:
    """Bytes of gradients of values while a row's backward pass runs; of a grid, an array."""
    if isinstance(row, Linear):
        return linear_passing(row, here)
    if isinstance(row, Attention):
        return attention_passing(row, here)
    return pointwise_passing(row, here) if isinstance(row, Pointwise) else row.backward_workspace(here)


def most_standing(rows: Sequence[Row], here: Sizes) -> Any:
    """Bytes of the largest moment, without the gradient that goes around the layer; of a grid, an array.

    While a row's backward pass runs, what the rows up to it keep stands, the gradients of its output and its input, and
    those of its own weights and of those behind it. Source: torch 2.13, FSDPMemTracker.
    """
    kept: list[Any] = [0]
    for row in rows:
        kept.append(kept[-1] + row.kept(here))
    gradients: Any = 0
    moments: list[Any] = [0]
    for row, tape in zip(reversed(rows), reversed(kept), strict=False):
        gradients = gradients + here["value"] * row.parameters(here) * row.trained
        moments.append(tape + passing(row, here) + gradients)
    return maximum(*moments)
