"""Long steps in little time: the steady state of a pipeline is simulated until it repeats, then counted.

The order of a long step is that of a short one with its middle repeated. Times are longest paths, so each repetition is
fixed by the few before it: once as many of them in a row as an operation looks back come an equal time after earlier
ones, all that follow do, and the rest of the step only moves. With whole ticks this is exact; floats are not skipped.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from .entries import passes
from .passes import Order
from .program import Ints, Program, program
from .repeat import Repeat
from .timeline import Timeline, simulate, timed
from .times import Numbers, Times

SHORT = 4  # micro-batches a rank of the shortest order that is looked at
MOST_OPERATIONS = 2**18  # simulated in search of a steady state
MOST_ROUNDS = 64  # repetitions of the order that one period of time may take
FEWEST_TURNS = 8  # repetitions of the middle that are looked at first; then twice as many

Make = Callable[[int], Order]


class _Middle(NamedTuple):
    """Where the order of `short` micro-batches grows: each rank by `length` operations at `place`, `step` at a time."""

    short: int
    step: int
    place: Ints
    length: Ints


def simulate_long(make: Make, pp: int, micro_batches: int, times: Times) -> Timeline:
    """The timeline of `make(micro_batches)` on so many ranks, its steady state left out where it repeats exactly.

    Only orders of few micro-batches are made then. Where it does not repeat (floats, a stage that falls behind for
    ever, an order that does not grow in one place), the whole order is simulated.
    """
    middle = _middle(make, pp, micro_batches) if micro_batches > 4 * SHORT * pp else None
    found = middle and _repeating(make, middle, micro_batches, times)
    if not found:
        return simulate(make(micro_batches), times)
    if not found.streams:
        return found
    return replace(found, exposed=found.makespan - simulate_long(make, pp, micro_batches, times.alone()).makespan)


# --- how an order grows ---------------------------------------------------------------------------------------------


def _middle(make: Make, pp: int, micro_batches: int) -> _Middle | None:
    """Where an order grows, if it does so in one place of each rank; seen from three short ones."""
    for step in dict.fromkeys((1, 2, pp)):
        short = SHORT * pp + (micro_batches - SHORT * pp) % step
        try:
            first, second, third = (_rows(program(make(short + turn * step))) for turn in range(3))
        except InputError:
            continue
        length = np.array([len(more) - len(less) for less, more in zip(first, second)])
        place = np.array([_common(less, more) for less, more in zip(first, second)])
        middle = _Middle(short, step, place, length)
        if (length > 0).all() and _grows(first, second, middle, 1) and _grows(first, third, middle, 2):
            return middle
    return None


def _rows(program: Program) -> list[Ints]:
    """What each rank does as rows of numbers: kind, stages, micro-batches."""
    kind, stage, batch, back_stage, back_batch = passes(program)
    table = np.stack([kind.view(np.int32), stage, back_stage, batch, back_batch], 1)
    return np.split(table, program.first[1:-1])


def _later(rows: Ints, micro_batches: int) -> Ints:
    """The same, so many micro-batches on."""
    moved = rows.copy()
    moved[:, 3] += micro_batches
    moved[:, 4] += np.where(moved[:, 2] < 0, 0, micro_batches)
    return moved


def _common(less: Ints, more: Ints) -> int:
    """How far two ranks do the same."""
    differs = (less != more[: len(less)]).any(1)
    return int(differs.argmax()) if differs.any() else len(less)


def _grows(first: list[Ints], later: list[Ints], middle: _Middle, turns: int) -> bool:
    """Whether an order is the first one, with its middle repeated so many times more."""
    step = middle.step
    for less, more, place, length in zip(first, later, middle.place.tolist(), middle.length.tolist()):
        body = more[place : place + length]
        parts = [
            less[:place],
            *(_later(body, turn * step) for turn in range(turns)),
            _later(less[place:], turns * step),
        ]
        if not np.array_equal(np.concatenate(parts), more):
            return False
    return True


# --- how its times repeat -------------------------------------------------------------------------------------------


def _repeating(make: Make, middle: _Middle, micro_batches: int, times: Times) -> Timeline | None:
    """The timeline without its steady state; None where none is found."""
    total = (micro_batches - middle.short) // middle.step
    turns = FEWEST_TURNS
    most = MOST_OPERATIONS // int(middle.length.sum())
    while turns <= min(most, total):
        read = program(make(middle.short + turns * middle.step))
        if not _rising(read, middle, turns):
            return None
        table = times.table(read.order.depth, read.order.copies)
        if not np.issubdtype(table.forward.dtype, np.integer):
            return None
        timeline = timed(read, table)
        repeat = _period(read, timeline, middle, turns)
        if repeat is None:
            turns *= 2
            continue
        rounds = repeat.micro_batches // middle.step
        if (total - turns) % rounds == 0:
            return timeline.without(replace(repeat, times=(total - turns) // rounds))
        turns += (total - turns) % rounds
    return None


def _turns(read: Program, middle: _Middle) -> Ints:
    """In which repetition of its rank's middle each operation stands; below 0 in front of the middle."""
    at = np.arange(len(read.rank)) - read.first[read.rank] - middle.place[read.rank]
    return at // middle.length[read.rank]


def _rising(read: Program, middle: _Middle, turns: int) -> bool:
    """Whether nothing in the middle waits for a later repetition of another rank."""
    turn = _turns(read, middle)
    sender, receiver = turn[read.messages.sender], turn[read.messages.receiver]
    return bool((sender <= receiver)[(receiver >= 0) & (receiver < turns)].all())


def _period(read: Program, timeline: Timeline, middle: _Middle, turns: int) -> Repeat | None:
    """The shortest time in which all ranks do the same again, if enough of the middle does so up to its end."""
    start = timeline.entries.start[timeline.entries.kind != "R"]
    starts = _by_turn(start, read, middle, turns)
    turn = _turns(read, middle)
    sender, receiver = turn[read.messages.sender], turn[read.messages.receiver]
    back = (receiver - sender)[(receiver >= 0) & (receiver < turns)].max(initial=1)
    behind = sender[(receiver >= turns) & (sender < turns)].min(initial=turns)
    for rounds in range(1, min(MOST_ROUNDS, turns // 3) + 1):
        later = starts[rounds:] - starts[:-rounds]
        period = later[-1, 0]
        same = (later == period).all(1)
        first = 1 + np.flatnonzero(~same).max(initial=-1)  # from here on all repeat
        if period <= 0 or len(same) - first < back + 1 or first > behind or first + rounds >= turns:
            continue
        begin = starts[first + rounds].max()
        if begin + period <= starts[-1].min():
            return Repeat(begin.item(), period.item(), 0, rounds * middle.step)
    return None


def _by_turn(start: Numbers, read: Program, middle: _Middle, turns: int) -> Numbers:
    """Start times of the middle: a row a repetition, all ranks side by side."""
    parts = []
    for first, place, length in zip(read.first.tolist(), middle.place.tolist(), middle.length.tolist()):
        begin = first + place
        parts.append(start[begin : begin + turns * length].reshape(turns, length))
    return np.concatenate(parts, 1)
