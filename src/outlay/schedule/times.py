"""Durations of a pipeline's passes and messages: whole ticks, which stay exact, or seconds.

A duration is one number for all stages of the model, or a sequence with one a stage. Everything whole keeps a timeline
in whole numbers; one float makes all of it floats.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from math import isfinite
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import Fault, InputError, quoted

Durations: TypeAlias = float | Sequence[float]
Numbers: TypeAlias = NDArray[Any]  # int64 or float64

TICK = 1e-9  # seconds: in whole nanoseconds a steady state repeats exactly
MOST_TICKS = 2**53  # up to here whole numbers and floats say the same


class Extra(NamedTuple):
    """What an end stage does beside its layers: the embedding on the first, the head and the loss on the last."""

    forward: float = 0
    input_gradient: float = 0
    weight_gradient: float = 0


NOTHING = Extra()


class Table(NamedTuple):
    """The durations of each virtual stage, resolved: arrays with one number a stage."""

    forward: Numbers
    full_backward: Numbers
    input_gradient: Numbers
    weight_gradient: Numbers
    recompute: Numbers
    pair: Numbers | None  # by the stage of its forward pass; without what the end stages add
    added: Numbers  # by the end stages: rows for F, I and W
    latency: Numbers  # of a message over the boundary after a stage
    wire: Numbers  # what a message holds its link for
    gather: Numbers
    reduce: Numbers


@dataclass(frozen=True)
class Times:
    """How long passes and messages take. Each field is a number, or one number a stage of the model.

    A message leaves when its pass ends, holds its link (from one rank to another, one way) for `message_bytes` x
    `byte`, arrives `send` later and occupies no compute. `send` and `message_bytes` given a stage are those of the
    boundary after it. `gather` (weights, before a stage's first forward) and `reduce` (gradients, after its last weight
    gradient) run one after the other on a stream of their own on each rank.
    """

    forward: Durations
    input_gradient: Durations
    weight_gradient: Durations
    full_backward: Durations | None = None  # both gradients at once; their sum unless given
    recompute: Durations = 0  # in front of B and I
    pair: Durations | None = None  # F and B together, by the stage of F; their sum unless given
    first: Extra = NOTHING
    last: Extra = NOTHING
    send: Durations = 0
    message_bytes: Durations = 0
    byte: Durations = 0
    gather: Durations = 0
    reduce: Durations = 0

    def table(self, depth: int, copies: int = 1) -> Table:
        """One number a virtual stage. Raises InputError (SCH031, SCH032) with everything that is wrong."""
        found = [*self._faults(depth)]
        if found:
            raise InputError(*found)
        kind = np.int64 if self._whole() else np.float64

        def each(value: Durations) -> Numbers:
            return np.tile(np.broadcast_to(np.asarray(value, kind), depth), copies)

        ends = np.zeros((3, depth), kind)
        ends[:, 0] += np.asarray(self.first, kind)
        ends[:, -1] += np.asarray(self.last, kind)
        F, inputs, weights = np.tile(ends, copies)
        split = each(self.input_gradient) + each(self.weight_gradient)
        return Table(
            each(self.forward) + F,
            (split if self.full_backward is None else each(self.full_backward)) + inputs + weights,
            each(self.input_gradient) + inputs,
            each(self.weight_gradient) + weights,
            each(self.recompute),
            None if self.pair is None else each(self.pair),
            np.array([F, inputs, weights]),
            each(self.send),
            each(self.message_bytes) * each(self.byte),
            each(self.gather),
            each(self.reduce),
        )

    def alone(self) -> "Times":
        """Without collectives."""
        return replace(self, gather=0, reduce=0)

    def in_ticks(self, tick: float) -> "Times":
        """The same in whole ticks of so many seconds, each rounded to the nearest: then a steady state repeats exactly.

        `message_bytes` times `byte` becomes the ticks that a message holds its link, at one a `byte`.
        """

        def rounded(value: Any) -> Any:
            if isinstance(value, Extra):
                return Extra(*(round(number / tick) for number in value))
            return [round(number / tick) for number in value] if _many(value) else round(value / tick)

        wire = np.asarray(self.message_bytes) * np.asarray(self.byte)
        changed = dict(self._values()) | {"message_bytes": wire if wire.ndim else float(wire)}
        whole: dict[str, Any] = {name: None if value is None else rounded(value) for name, value in changed.items()}
        return Times(**(whole | {"byte": 1}))

    def _values(self) -> Iterator[tuple[str, Any]]:
        yield from ((field.name, getattr(self, field.name)) for field in fields(self))

    def _whole(self) -> bool:
        flat = [number for _, value in self._values() if value is not None for number in _listed(value)]
        return all(isinstance(number, int | np.integer) for number in flat)

    def _faults(self, depth: int) -> Iterator[Fault]:
        for name, value in self._values():
            numbers = [] if value is None else _listed(value)
            due = len(Extra._fields) if name in ("first", "last") else depth
            if _many(value) and len(numbers) != due:
                rule = f"{name} is one number, or one for each of the {depth} stages" if due == depth else "F, I and W"
                yield Fault("SCH031", f"{name} has the wrong length", rule, f"{len(numbers)} numbers", f"{due} numbers")
            wrong = [number for number in numbers if not _usable(number)]
            if wrong:
                rule = f"a number from 0 to {MOST_TICKS:,}"
                yield Fault("SCH032", f"{name} is not a duration", rule, quoted(wrong[0]), rule)


def _many(value: Any) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)


def _listed(value: Any) -> list[Any]:
    return list(value) if _many(value) else [value]


def _usable(number: Any) -> bool:
    kind = isinstance(number, int | float | np.integer | np.floating) and not isinstance(number, bool)
    return bool(kind and isfinite(number) and 0 <= number <= MOST_TICKS)
