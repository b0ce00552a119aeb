"""Which combinations of the values of some fields occur among many layouts, without sorting them."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..layout.stages import distinct

Array = NDArray[Any]
SPAN = 100_000  # numbers that a table of those that occur may have
FEW = 100  # of them, that one field may take without such a table


def numbered(values: Array) -> tuple[int, Array]:
    """A number from 0 on for each distinct value, and a bound on them."""
    if values.dtype.kind == "U" or not values.size:
        return compared(values)
    whole = values.astype(int)
    least, most = int(whole.min()), int(whole.max())
    if least < 0 or most >= SPAN or not np.array_equal(whole, values):
        return compared(values)
    if least == most or most < FEW:
        return 1 + most - (least if least == most else 0), whole
    first, place = distinct(whole)
    return first.size, place


def compared(values: Array) -> tuple[int, Array]:
    """The same for a few values that are not small whole numbers: one comparison for each."""
    place, left, size = np.zeros(values.shape, int), np.ones(values.shape, bool), 0
    while left.any():
        here = values == values[np.argmax(left)]
        if here.all():
            return 1, place
        place[here] = size
        left &= ~here
        size += 1
    return size, place


def combinations(every: Iterable[Any], length: int) -> tuple[Array, Array]:
    """Where each combination that occurs stands first, and which of them each of so many layouts has.

    `every` holds for each field the array of its values, or one value.
    """
    code, span = np.zeros(length, int), 1
    for values in every:
        size, place = numbered(values) if isinstance(values, np.ndarray) else (1, code)
        if size == 1:
            continue
        if span * size > SPAN:
            first, code = distinct(code)
            span = first.size
        code, span = code * size + place, span * size
    return distinct(code)
