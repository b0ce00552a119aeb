"""The ways to keep one layer's tape, operation by operation: the curve of what stands against what runs again.

An operation that runs again frees what it alone kept for its backward pass, and its output, which others keep as their
input. It needs its own input: where nobody keeps that, the operations that make it run again too. So what is freed and
what it costs are sums over the operations that run again, and the curve is a program over them, exact for these sums.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf

from .chain import Way

SLIVER = 1 / 8  # of a unit, that is not counted: statistics beside a tensor of whole units


def in_units(size: float, unit: float) -> int:
    """Whole units that hold so many bytes, but for a sliver."""
    return ceil(size / unit - SLIVER)


@dataclass(frozen=True)
class Operation:
    """One operation of a layer."""

    name: str
    seconds: float  # forward
    inside: float = 0.0  # bytes that only its own backward pass reads
    output: float = 0.0  # bytes of its output that are kept, by whoever reads it
    needs: tuple[int, ...] = ()  # operations before it that must run again with it: nobody keeps their outputs

    @property
    def freed(self) -> float:
        """Bytes that are not kept where it runs again."""
        return self.inside + self.output


@dataclass(frozen=True)
class Point:
    """One choice of operations that run again."""

    seconds: float
    freed: float
    again: tuple[int, ...] = ()  # in order


Waiting = frozenset[int]  # operations that those behind them need


def curve(operations: Sequence[Operation], unit: float) -> tuple[Point, ...]:
    """The choices that no other beats on both memory and time, in steps of `unit` bytes; nothing again comes first."""
    fronts: dict[Waiting, list[Point]] = {frozenset(): [Point(0.0, 0.0)]}
    for place in range(len(operations) - 1, -1, -1):
        operation, found = operations[place], defaultdict[Waiting, list[Point]](list)
        for waiting, points in fronts.items():
            if place not in waiting:
                found[waiting] += points
            if place in waiting or operation.freed > 0:
                found[(waiting - {place}).union(operation.needs)] += [
                    _with(point, operation, place) for point in points
                ]
        fronts = {waiting: best(points, unit) for waiting, points in found.items()}
    return tuple(fronts[frozenset()])


def _with(point: Point, operation: Operation, place: int) -> Point:
    return Point(point.seconds + operation.seconds, point.freed + operation.freed, (place, *point.again))


def best(points: Sequence[Point], unit: float) -> list[Point]:
    """The least time for each whole number of units freed, where more time frees more."""
    kept, most = [], -inf
    for point in sorted(points, key=lambda point: (point.seconds, -point.freed)):
        if point.freed // unit > most:
            most = point.freed // unit
            kept.append(point)
    return kept


def ways(operations: Sequence[Operation], unit: float) -> tuple[Way, ...]:
    """The curve as ways of a link, in units: neither the layer's input nor its output is among them."""
    whole = sum(operation.freed for operation in operations)
    return tuple(
        Way(
            in_units(whole - point.freed, unit),
            point.seconds,
            tuple(operations[place].name for place in point.again),
        )
        for point in curve(operations, unit)
    )
