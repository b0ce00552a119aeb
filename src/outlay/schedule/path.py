"""The critical path of a timeline: the operations that its end waits for, back to the beginning."""

from collections.abc import Iterator, Sequence

import numpy as np

from .entries import Entries, Sent
from .program import Ints
from .streams import Stream


def longest(entries: Entries, messages: Sent, streams: Sequence[Stream]) -> list[tuple[int, int]]:
    """The path as (rank, index in the rank's track), from the first operation to the last."""
    walk = _Walk(entries, messages)
    here, found = _last(entries, streams), []
    while here >= 0:
        found.append(here)
        here = walk.before(here)
    ranks = entries.rank[found[::-1]]
    return list(zip(ranks.tolist(), (found[::-1] - walk.first[ranks]).tolist()))


def _last(entries: Entries, streams: Sequence[Stream]) -> int:
    """The operation that ends last, or the one that the last collective waited for; -1 where it waited for none."""
    last = int(np.argmax(entries.end)) if len(entries.end) else -1
    latest = max((stream for stream in streams if len(stream.end)), key=lambda each: each.end[-1], default=None)
    if last < 0 or latest is None or latest.end[-1] <= entries.end[last]:
        return last
    at = len(latest.end) - 1
    while at > 0 and latest.start[at] == latest.end[at - 1]:
        at -= 1
    if latest.kind[at] == "G":
        return -1
    of_stage = (entries.stage == latest.stage[at]) | (entries.back_stage == latest.stage[at])
    return int(np.flatnonzero((entries.rank == latest.rank) & of_stage & (entries.freed > 0))[-1])


class _Walk:
    """From an operation to the one that it waited for."""

    def __init__(self, entries: Entries, messages: Sent) -> None:
        self.entries, self.messages = entries, messages
        self.first = np.searchsorted(entries.rank, np.arange(1 + entries.rank.max(initial=0)))
        size = [2, 2 + int(entries.stage.max(initial=0)), 1 + int(entries.micro_batch.max(initial=0))]
        size[1:] = np.maximum(
            size[1:], [2 + entries.back_stage.max(initial=0), 1 + entries.back_micro_batch.max(initial=0)]
        )
        self.does, self.brings = np.full(size, -1), np.full(size, -1)
        for back, kinds, stage, batch in (
            (0, ["F", "P"], entries.stage, entries.micro_batch),
            (1, ["B", "I"], entries.stage, entries.micro_batch),
            (1, ["P"], entries.back_stage, entries.back_micro_batch),
        ):
            chosen = np.flatnonzero(np.isin(entries.kind, kinds))
            self.does[back, stage[chosen], batch[chosen]] = chosen
        self.brings[messages.backward * 1, messages.stage, messages.micro_batch] = np.arange(len(messages.start))
        self.ahead = _ahead_on_link(messages)

    def before(self, here: int) -> int:
        """The operation before it on its rank, else the sender of the message that came as it began; -1 for none."""
        work = self.entries
        if here > self.first[work.rank[here]] and work.end[here - 1] == work.start[here]:
            return here - 1
        for message in self._incoming(here):
            if message >= 0 and self.messages.end[message] == work.start[here]:
                return self._sender(message)
        return -1

    def _incoming(self, here: int) -> Iterator[int]:
        """The messages of an operation, -1 for none; a recompute has those of what follows it."""
        work, at = self.entries, here + (self.entries.kind[here] == "R")
        kind = work.kind[at]
        if kind != "W":
            yield self.brings[int(kind in "BI"), work.stage[at], work.micro_batch[at]]
        if kind == "P":
            yield self.brings[1, work.back_stage[at], work.back_micro_batch[at]]

    def _sender(self, message: int) -> int:
        """Who sent it, or where its link was taken, who sent the first of those in front."""
        sent = self.messages
        while True:
            back = int(sent.backward[message])
            sender = int(self.does[back, sent.stage[message] + 2 * back - 1, sent.micro_batch[message]])
            if sent.start[message] == self.entries.end[sender]:
                return sender
            message = self.ahead[message]


def _ahead_on_link(messages: Sent) -> Ints:
    """For each message, the one before it on its link."""
    order = np.lexsort((np.arange(len(messages.start)), messages.start, messages.target, messages.source))
    ahead = np.empty(len(order), np.int64)
    ahead[order] = np.roll(order, 1)
    return ahead
