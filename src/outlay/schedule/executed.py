"""Timelines of a step that was run: as it was measured, and run again from each operation's own measured duration."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from .checks import passes
from .entries import entries, sent
from .passes import Order
from .program import Ints, Program, program
from .running import Load, Run, run
from .timeline import Timeline

Spans = Sequence[Sequence[tuple[int, int]]]  # of each pass of each rank, in order: start and end, in whole ticks


def one_by_one(order: Order) -> Order:
    """The order of an engine that runs a pair's passes one after the other, the forward pass first."""
    return replace(order, ranks=tuple(tuple(each for both in map(passes, row) for each in both) for row in order.ranks))


def measured(order: Order, spans: Spans) -> Timeline:
    """What was measured, counted from the first start, pass by pass.

    A message is on its way until the pass begins that needs it: when it came is not known.
    Raises InputError (SCH041 to SCH045) for an order that is none.
    """
    found = program(one_by_one(order))
    times = np.array([each for row in spans for each in row], np.int64).reshape(-1, 2)
    start, end = (times - times.min()).T
    told = found.messages
    happened = Run(start, end, end[told.sender], start[told.receiver])
    return _timeline(found, _load(found, end - start, 0), happened)


def replayed(order: Order, spans: Spans, hop: int) -> Timeline:
    """The order simulated: each operation lasts as long as its passes were measured, a message `hop` ticks.

    Raises InputError (SCH041 to SCH046) for an order that nobody can follow.
    """
    found = program(order)
    lengths = np.array([*_lengths(order, spans)], np.int64)
    load = _load(found, lengths, hop)
    return _timeline(found, load, run(found, load))


def _lengths(order: Order, spans: Spans) -> Iterator[int]:
    """How long each operation took, without what a pair waited between its passes."""
    for row, measured_row in zip(order.ranks, spans, strict=True):
        took = iter(end - start for start, end in measured_row)
        yield from (sum(next(took) for _ in passes(operation)) for operation in row)


def _load(found: Program, lengths: Ints, hop: int) -> Load:
    none, messages = np.zeros(len(lengths), np.int64), len(found.messages.sender)
    return Load(lengths, none, none, np.zeros(messages, np.int64), np.full(messages, hop))


def _timeline(found: Program, load: Load, happened: Run) -> Timeline:
    order, pp = found.order, len(found.order.ranks)
    work, messages = entries(found, load, happened), sent(found, happened)
    return Timeline(order.name, pp, order.depth / pp, order.micro_batches, work, messages, ())
