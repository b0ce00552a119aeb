"""A steady state that is left out of arrays, and put back."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from .entries import Entries, Sent
from .program import Ints
from .streams import Stream
from .times import Numbers

Rows = TypeVar("Rows", Entries, Sent)


@dataclass(frozen=True)
class Repeat:
    """A steady state: what starts in [start, start + period) comes `times` more, each a period later.

    Those copies are left out; what comes after them has the time and the micro-batch that it really has.
    """

    start: float
    period: float
    times: int
    micro_batches: int  # that each period does

    @property
    def end(self) -> float:
        """Where the last copy ends."""
        return self.start + self.period * (self.times + 1)

    @property
    def skipped(self) -> int:
        """Micro-batches that are left out."""
        return self.times * self.micro_batches

    def inside(self, start: Numbers) -> NDArray[np.bool_]:
        """What comes again."""
        return (start >= self.start) & (start < self.start + self.period)

    def copies(self, start: Numbers) -> Ints:
        """How often each operation happens."""
        return 1 + self.times * self.inside(start)


def leave_out(rows: Rows, repeat: Repeat) -> Rows:
    """A shorter step as parts of the long one: what starts behind the first period moves."""
    return _moved(rows, np.where(rows.start < repeat.start + repeat.period, 0, repeat.times), repeat)


def leave_out_of(stream: Stream, repeat: Repeat) -> Stream:
    """The same for collectives: those behind the first period move."""
    late = np.where(stream.start < repeat.start + repeat.period, 0, repeat.times * repeat.period)
    return stream._replace(start=stream.start + late, end=stream.end + late)


def put_back(rows: Rows, repeat: Repeat) -> tuple[Rows, Ints]:
    """All that was left out, behind what it repeats; and which copy each row is, for sorting."""
    again = np.repeat(np.flatnonzero(repeat.inside(rows.start)), repeat.times)
    turn = np.tile(np.arange(1, repeat.times + 1), len(again) // max(repeat.times, 1))
    late = np.where(rows.start < repeat.end, 0, repeat.times + 1)
    copies = _moved(rows.part(again), turn, repeat)
    found = type(rows)(*(np.concatenate(pair) for pair in zip(rows, copies)))
    return found, np.concatenate([late, turn])


def put_back_entries(entries: Entries, repeat: Repeat) -> Entries:
    """Every operation, rank after rank, each in order."""
    found, turn = put_back(entries, repeat)
    place = np.concatenate(
        [np.arange(len(entries.rank)), np.flatnonzero(repeat.inside(entries.start)).repeat(repeat.times)]
    )
    return found.part(np.lexsort((place, turn, found.rank)))


def _moved(rows: Rows, turns: Ints, repeat: Repeat) -> Rows:
    """So many periods later."""
    time = turns * repeat.period
    batches = turns * repeat.micro_batches
    changed = {"start": rows.start + time, "end": rows.end + time, "micro_batch": rows.micro_batch + batches}
    if isinstance(rows, Entries):
        changed["back_micro_batch"] = np.where(rows.back_stage < 0, -1, rows.back_micro_batch + batches)
    return rows._replace(**changed)
