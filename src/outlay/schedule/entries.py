"""What ranks do, as arrays: one entry an operation, and one for a recompute in front of it."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .program import Ints, Program
from .running import Load, Run
from .times import Numbers


class Entries(NamedTuple):
    """All ranks' work, rank after rank, each in order. Kinds: F, B, I, W, P (forward and backward), R (recompute)."""

    rank: Ints
    start: Numbers
    end: Numbers
    kind: NDArray[np.str_]
    stage: Ints
    micro_batch: Ints
    back_stage: Ints  # of a pair's backward pass; -1 elsewhere
    back_micro_batch: Ints
    wait: Numbers  # the idle time in front
    flight: Numbers  # its last part, only because a message was on its way or weights were not gathered
    held: Ints  # activations of chunks, more at the start
    freed: Ints  # and fewer at the end

    def part(self, chosen: Any) -> "Entries":
        """Some of them."""
        return Entries(*(column[chosen] for column in self))


class Sent(NamedTuple):
    """Messages as arrays: from one rank to another, of which pass (that of the receiver), when on its way."""

    source: Ints
    target: Ints
    start: Numbers
    end: Numbers
    backward: NDArray[np.bool_]
    stage: Ints
    micro_batch: Ints

    def part(self, chosen: Any) -> "Sent":
        """Some of them."""
        return Sent(*(column[chosen] for column in self))

    def in_order(self) -> "Sent":
        """In the order in which they leave."""
        return self.part(np.lexsort((self.micro_batch, self.stage, self.backward, self.start)))


def entries(program: Program, load: Load, run: Run) -> Entries:
    """The work of every rank. A recompute stands in front of its backward pass and waits for the same."""
    wait, flight = _waits(program, load, run)
    again = load.recompute > 0
    source = np.repeat(np.arange(len(again)), 1 + again)
    itself = np.cumsum(1 + again) - 1
    front = itself[again] - 1
    kinds, *numbers = passes(program)
    kind, (stage, batch, back_stage, back_batch) = kinds[source], (column[source] for column in numbers)
    start, end = run.start[source], run.end[source]
    end[front] = start[itself[again]] = start[front] + load.recompute[again]
    held, freed = (column[source] for column in _activations(program))
    kind[front], held[front], freed[front] = "R", 0, 0
    wait, flight = wait[source], flight[source]
    wait[itself[again]] = flight[itself[again]] = 0
    # A recompute is of the backward pass alone.
    paired = front[back_stage[front] >= 0]
    stage[paired], batch[paired] = back_stage[paired], back_batch[paired]
    back_stage[front] = back_batch[front] = -1
    return Entries(
        program.rank[source], start, end, kind, stage, batch, back_stage, back_batch, wait, flight, held, freed
    )


def passes(program: Program) -> tuple[NDArray[np.str_], Ints, Ints, Ints, Ints]:
    """Kind, stage and micro-batch of each operation, and those of a pair's backward pass."""
    count = len(program.rank)
    kind = np.full(count, "", "U1")
    stage, batch, back_stage, back_batch = np.full((4, count), -1)
    for half in (program.weight, program.backward, program.forward):
        again = half.operation[kind[half.operation] != ""]
        back_stage[again], back_batch[again] = stage[again], batch[again]
        kind[half.operation], stage[half.operation], batch[half.operation] = half.kind, half.stage, half.micro_batch
        kind[again] = "P"
    return kind, stage, batch, back_stage, back_batch


def _activations(program: Program) -> tuple[Ints, Ints]:
    """A forward pass holds activations until the weight gradient, or the whole backward pass, has ended."""
    held, freed = np.zeros((2, len(program.rank)), np.int64)
    held[program.forward.operation] = 1
    freed[program.backward.operation[program.backward.kind == "B"]] = 1
    freed[program.weight.operation] = 1
    return held, freed


def _waits(program: Program, load: Load, run: Run) -> tuple[Numbers, Numbers]:
    """The idle time in front of each operation, and the part of it after the other ranks had done what is needed."""
    told = np.zeros_like(run.end)
    np.maximum.at(told, program.messages.receiver, run.end[program.messages.sender])
    busy_until = np.concatenate([np.zeros(1, run.end.dtype), run.end])[:-1]
    busy_until[program.first[:-1][np.diff(program.first) > 0]] = 0
    wait = run.start - busy_until
    return wait, wait - np.maximum(told - busy_until, 0)


def sent(program: Program, run: Run) -> Sent:
    """The messages, in the order in which they leave."""
    messages, ranks = program.messages, len(program.order.ranks)
    pass_of = messages.boundary + ~messages.backward
    batch = np.full(len(program.rank), -1)
    batch[program.forward.operation] = program.forward.micro_batch
    back = np.full(len(program.rank), -1)
    back[program.backward.operation] = program.backward.micro_batch
    found = Sent(
        messages.link // ranks,
        messages.link % ranks,
        run.sent,
        run.arrived,
        messages.backward,
        pass_of,
        np.where(messages.backward, back[messages.receiver], batch[messages.receiver]),
    )
    return found.in_order()
