"""1F1B-V: 1F1B on a V of two chunks a rank, in two thirds of its activations. Source: Qi et al. 2024.

As V-Half and V-Min, with whole backward passes, which take two slots of the six.
"""

from collections.abc import Iterator
from itertools import chain

import numpy as np

from .facts import OrderFacts, Schedule
from .growing import BLOCK, Placed, grown

SPARE = 10  # micro-batches beyond 2 P with which every rank has a middle that repeats
LENGTH = (1, 1, 2, 2)  # slots of F0, F1, B1, B0


def offsets(P: int) -> list[list[int]]:
    """The first slots of F0, F1, B1, B0 on each rank. After three B the next waits, so that no two fall together."""
    found = [[r, 2 * P - 1 - r, 0, 0] for r in range(P)]
    slot = 2 * P + (0 if P % 3 else 3)
    turn = (1 - P) % 3
    for kind, r in chain(((2, r) for r in range(P)), ((3, r) for r in reversed(range(P)))):
        found[r][kind] = slot
        turn = (turn + 1) % 3
        slot += 2 if turn else 5
    return found


class _Board:
    """The slots of every rank while passes move: which are taken, and the chunks held after each."""

    def __init__(self, P: int, M: int) -> None:
        self.slots = [[[first + BLOCK * m for m in range(M)] for first in rank] for rank in offsets(P)]
        size = max(rank[3][-1] for rank in self.slots) + 2
        self.taken = [bytearray(size) for _ in range(P)]
        self.held = np.zeros((P, size), np.int64)
        for r, rank in enumerate(self.slots):
            for kind, row in enumerate(rank):
                ends = np.array(row) + LENGTH[kind] - 1
                self.held[r, ends] = 1 if kind < 2 else -1
                for slot in (*row, *ends):
                    self.taken[r][slot] = 1
        self.held = self.held.cumsum(1)
        self.most = self.held.max()

    def in_time(self) -> Iterator[tuple[int, int, int, int]]:
        """Slot, rank, kind and micro-batch of every pass."""
        at = np.array(self.slots)
        order = np.argsort(at, None, kind="stable")
        yield from zip(at.ravel()[order].tolist(), *(each.tolist() for each in np.unravel_index(order, at.shape)))

    def earliest(self, r: int, kind: int, m: int) -> int:
        """The slot behind all that a pass needs."""
        rank, before = self.slots[r], r + (1 if kind % 2 else -1)
        last = rank[kind][m - 1] + LENGTH[kind] if m else 0
        if kind:
            last = max(last, rank[kind - 1][m] + LENGTH[kind - 1])
        if 0 <= before < len(self.slots):
            last = max(last, self.slots[before][kind][m] + LENGTH[kind])
        return last

    def place(self, r: int, kind: int, m: int, slot: int) -> int:
        """The earliest free slots of a pass that make no rank hold more than one did."""
        first, taken = self.earliest(r, kind, m), self.taken[r]
        if first >= slot:
            return slot
        if kind < 2:
            full = (self.held[r, first:slot] == self.most).nonzero()[0]
            first += int(full[-1]) + 1 if len(full) else 0
        found = taken.find(bytes(LENGTH[kind]), first, slot + LENGTH[kind] - 1)
        return slot if found < 0 else found

    def move(self, r: int, kind: int, m: int, slot: int, new: int) -> None:
        """To earlier slots."""
        length = LENGTH[kind]
        self.taken[r][slot : slot + length] = bytes(length)
        self.taken[r][new : new + length] = b"\1" * length
        self.slots[r][kind][m] = new
        change, late = (1, 0) if kind < 2 else (-1, 1)
        self.held[r, new + late : slot + late] += change


def ranks(P: int, M: int) -> list[Placed]:
    """The passes of every rank: the block of each micro-batch, all moved to earlier free slots."""
    board = _Board(P, M)
    for slot, r, kind, m in board.in_time():
        new = board.place(r, kind, m, slot)
        if new < slot:
            board.move(r, kind, m, slot, new)
    stages = [(r, 2 * P - 1 - r, 2 * P - 1 - r, r) for r in range(P)]
    return [[*zip("FFBB", here, rank)] for here, rank in zip(stages, board.slots)]


ONE_F_ONE_B_V = Schedule(
    OrderFacts("1f1b_v", "two", "folded", 1, "vpp 2; any number of micro-batches"),
    lambda shape: grown(lambda M: ranks(shape.pp, M), shape.micro_batches, 2 * shape.pp + SPARE),
)
