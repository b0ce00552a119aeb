"""Runs a program: each operation starts when its rank is free and all it needs is there.

The order of each rank is given, so the times are the longest paths through a fixed graph: they do not depend on which
rank is looked at first, and a longer duration never makes anything earlier.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import Fault, InputError
from .program import Ints, Program, operation_named
from .times import MOST_TICKS, Numbers, Table

LATE = 2**62  # later than all that happens


class Load(NamedTuple):
    """What a program's parts take, one number each."""

    duration: Numbers  # of each operation, its recompute included
    recompute: Numbers
    earliest: Numbers  # when the weights are there
    wire: Numbers  # of each message
    latency: Numbers


class Run(NamedTuple):
    """When everything happened."""

    start: Numbers
    end: Numbers
    sent: Numbers  # when each message got its link
    arrived: Numbers


def load(program: Program, table: Table) -> Load:
    """The duration of each operation and message. Raises InputError (SCH033) where they add up too long."""
    count, kind = len(program.rank), table.forward.dtype
    duration, recompute = np.zeros(count, kind), np.zeros(count, kind)
    forward, backward, weight = program.forward, program.backward, program.weight
    whole = backward.kind == "B"
    np.add.at(duration, forward.operation, table.forward[forward.stage])
    both = np.where(whole, table.full_backward[backward.stage], table.input_gradient[backward.stage])
    np.add.at(duration, backward.operation, both)
    duration[weight.operation] = table.weight_gradient[weight.stage]
    if table.pair is not None:
        _together(program, table, duration)
    recompute[backward.operation] = table.recompute[backward.stage]
    duration += recompute
    boundary = program.messages.boundary
    found = Load(duration, recompute, np.zeros(count, kind), table.wire[boundary], table.latency[boundary])
    total = sum(float(column.sum(dtype=np.float64)) for column in found) + float(
        table.gather.sum() + table.reduce.sum()
    )
    if total > MOST_TICKS:
        rule = f"all durations together are at most {MOST_TICKS:,}"
        raise InputError(Fault("SCH033", "durations too long to add", rule, f"{total:.4g}", "a longer tick"))
    return found


def _together(program: Program, table: Table, duration: Numbers) -> None:
    """Pairs have a duration of their own, beside what the end stages add."""
    assert table.pair is not None
    forward, backward = program.forward, program.backward
    _, mine, other = np.intersect1d(forward.operation, backward.operation, return_indices=True)
    stages, partners = forward.stage[mine], backward.stage[other]
    added = table.added[0, stages] + table.added[1, partners]
    added += table.added[2, partners] * (backward.kind[other] == "B")
    duration[forward.operation[mine]] = table.pair[stages] + added


def run(program: Program, load: Load) -> Run:
    """All times. Raises InputError (SCH046) where ranks wait for each other in a circle."""
    walk = _Walk(program, load)
    while walk.step():
        pass
    if (walk.at < walk.stop).any():
        raise InputError(_circle(program, (walk.at - np.arange(len(walk.at))).tolist(), walk.ready))
    start = walk.start[walk.place]
    return Run(start, start + load.duration, walk.sent[:-3], walk.ready[:-3])


class _Walk:
    """A walk through all ranks at once: each step, every rank whose next operation has all it needs does it.

    Behind the operations of each rank stands one that is never ready. Three messages are added: one that is always
    there, for operations that need none, one that is never there, and one that takes what nobody waits for.
    """

    def __init__(self, program: Program, load: Load) -> None:
        messages, kind, ranks = program.messages, load.duration.dtype, len(program.first) - 1
        self.place = np.arange(len(program.rank)) + program.rank
        self.at, self.stop = program.first[:-1] + np.arange(ranks), program.first[1:] + np.arange(ranks)
        size, count = len(program.rank) + ranks, len(messages.sender)
        self.late = kind.type(LATE)
        self.incoming = _columns(self.place[messages.receiver], messages.backward, size, count)
        self.incoming[0][self.stop] = count + 1
        self.outgoing = _columns(self.place[messages.sender], messages.backward, size, count + 2)
        self.duration, self.earliest, self.start = np.zeros((3, size), kind)
        self.duration[self.place], self.earliest[self.place] = load.duration, load.earliest
        self.link = np.append(messages.link, [0, 0, ranks * ranks])
        self.wire, self.latency = (np.append(part, [0, 0, 0]).astype(kind) for part in (load.wire, load.latency))
        self.free = np.zeros(ranks * ranks + 1, kind) if load.wire.any() else None
        self.clock = np.zeros(ranks, kind)
        self.ready = np.full(count + 3, self.late)
        self.sent = np.zeros(count + 3, kind)
        self.ready[count] = 0

    def step(self) -> bool:
        """Whether any rank went on."""
        begin = np.maximum(self.clock, self.earliest[self.at])
        for column in self.incoming:
            np.maximum(begin, self.ready[column[self.at]], out=begin)
        going = (begin < self.late).nonzero()[0]
        if not len(going):
            return False
        here, begin = self.at[going], begin[going]
        self.start[here] = begin
        time = begin + self.duration[here]
        self.clock[going] = time
        for column in self.outgoing:
            self._send(column[here], time)
        self.at[going] += 1
        return True

    def _send(self, message: Ints, time: Numbers) -> None:
        """A message leaves when its operation has ended and its link is free."""
        if self.free is not None:
            link = self.link[message]
            time = np.maximum(self.free[link], time)
            self.free[link] = time + self.wire[message]
        self.sent[message] = time
        self.ready[message] = time + self.wire[message] + self.latency[message]


def _columns(operations: Ints, backward: NDArray[np.bool_], size: int, none: int) -> list[Ints]:
    """The messages of each operation: the first, forward before backward, and where pairs have two, the second."""
    first, second, message = np.full(size, none), np.full(size, none), np.arange(len(operations))
    first[operations[backward]] = message[backward]
    ahead = operations[~backward]
    second[ahead] = first[ahead]
    first[ahead] = message[~backward]
    return [first, second] if (second != none).any() else [first]


def _circle(program: Program, at: list[int], ready: Numbers) -> Fault:
    """The ranks that wait for each other, found by following from rank to rank what each waits for."""
    messages, first = program.messages, program.first
    late = (ready[:-3] == LATE).nonzero()[0]
    senders = dict(zip(messages.receiver[late].tolist(), messages.sender[late].tolist()))
    rank = next(rank for rank, here in enumerate(at) if here < first[rank + 1])
    seen: list[int] = []
    while rank not in seen:
        seen.append(rank)
        rank = int(program.rank[senders[at[rank]]])
    circle = seen[seen.index(rank) :]
    named = [
        f"{operation_named(program.order, first, at[each])} waits for "
        f"{operation_named(program.order, first, senders[at[each]])}"
        for each in circle
    ]
    shown = named[:3] + [f"and {len(named) - 3} more"] * (len(named) > 3)
    rule = "operations that need each other stand in an order that some time can follow"
    return Fault("SCH046", "ranks wait for each other in a circle", rule, "; ".join(shown), "move one of them up")
