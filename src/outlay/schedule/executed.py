"""Timelines of a step that is run pass by pass, as PyTorch's runtime does: drawn from durations, as it was measured,
and run again from each pass's own measured duration.

A pair's passes run one after the other, the forward pass first, and what both made is sent when the second has ended.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .checks import passes
from .entries import entries, sent
from .passes import Order, Pair
from .program import Ints, Program, program
from .running import Load, Run, run
from .timeline import Timeline, timed
from .times import Times

Spans = Sequence[Sequence[tuple[int, int]]]  # of each pass of each rank, in order: start and end, in whole ticks


def one_by_one(order: Order) -> Order:
    """The same passes, no two at once."""
    return replace(order, ranks=tuple(tuple(each for both in map(passes, row) for each in both) for row in order.ranks))


def in_pairs(order: Order) -> bool:
    """Whether passes run together in it."""
    return any(isinstance(each, Pair) for row in order.ranks for each in row)


def in_turn(order: Order) -> Program:
    """The passes one by one; a message of a pair's forward pass leaves behind the backward pass.

    Raises InputError (SCH041 to SCH045) for an order that is none.
    """
    found = program(one_by_one(order))
    behind = [
        isinstance(each, Pair) and at == 0 for row in order.ranks for each in row for at in range(len(passes(each)))
    ]
    sender = found.messages.sender
    return found._replace(messages=found.messages._replace(sender=sender + np.array(behind, np.int64)[sender]))


def drawn(order: Order, times: Times) -> Timeline:
    """The order with these durations. Raises InputError: SCH031 to SCH033, SCH041 to SCH046."""
    return timed(in_turn(order), times.table(order.depth, order.copies))


def measured(order: Order, spans: Spans) -> Timeline:
    """What was measured, counted from the first start.

    A message is on its way until the pass begins that needs it: when it came is not known.
    Raises InputError (SCH041 to SCH045).
    """
    found = in_turn(order)
    times = np.array([each for row in spans for each in row], np.int64).reshape(-1, 2)
    start, end = (times - times.min()).T
    told = found.messages
    happened = Run(start, end, end[told.sender], start[told.receiver])
    return _timeline(found, _load(found, end - start, 0), happened)


def replayed(order: Order, spans: Spans, hop: int) -> Timeline:
    """The order simulated: each pass lasts as long as it was measured, a message `hop` ticks.

    Raises InputError (SCH041 to SCH046).
    """
    found = in_turn(order)
    lengths = np.array([end - start for row in spans for start, end in row], np.int64)
    load = _load(found, lengths, hop)
    return _timeline(found, load, run(found, load))


def _load(found: Program, lengths: Ints, hop: int) -> Load:
    none, messages = np.zeros(len(lengths), np.int64), len(found.messages.sender)
    return Load(lengths, none, none, np.zeros(messages, np.int64), np.full(messages, hop))


def _timeline(found: Program, load: Load, happened: Run) -> Timeline:
    order, pp = found.order, len(found.order.ranks)
    work, messages = entries(found, load, happened), sent(found, happened)
    return Timeline(order.name, pp, order.depth / pp, order.micro_batches, work, messages, ())
