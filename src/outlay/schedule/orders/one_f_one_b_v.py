"""1F1B-V: 1F1B on a V of two chunks a rank, in two thirds of its activations. Source: Qi et al. 2024.

As V-Half and V-Min, with whole backward passes, which take two slots of the six.
"""

from collections.abc import Iterator
from itertools import chain

from .facts import OrderFacts, Schedule
from .growing import BLOCK, Placed, by_slots, grown

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
        self.held = [[0] * size for _ in range(P)]
        for r, kind, _, slot in self.passes():
            self.put(r, kind, slot, 1)
            change = 1 if kind < 2 else -1
            self.held[r][slot + LENGTH[kind] - 1] += change
        for level in self.held:
            for slot in range(1, size):
                level[slot] += level[slot - 1]
        self.most = max(map(max, self.held))

    def passes(self) -> Iterator[tuple[int, int, int, int]]:
        """Rank, kind, micro-batch and slot of every pass."""
        for r, rank in enumerate(self.slots):
            for kind, row in enumerate(rank):
                yield from ((r, kind, m, slot) for m, slot in enumerate(row))

    def put(self, r: int, kind: int, slot: int, taken: int) -> None:
        """Take the slots of a pass, or leave them."""
        for each in range(slot, slot + LENGTH[kind]):
            self.taken[r][each] = taken

    def earliest(self, r: int, kind: int, m: int) -> int:
        """The slot behind all that a pass needs."""
        rank, before = self.slots[r], r + (1 if kind % 2 else -1)
        ends = [rank[kind][m - 1] + LENGTH[kind]] if m else [0]
        if kind:
            ends.append(rank[kind - 1][m] + LENGTH[kind - 1])
        if 0 <= before < len(self.slots):
            ends.append(self.slots[before][kind][m] + LENGTH[kind])
        return max(ends)

    def place(self, r: int, kind: int, m: int, slot: int) -> int:
        """The earliest free slots of a pass that make no rank hold more than one did."""
        new, taken = self.earliest(r, kind, m), self.taken[r]
        if kind >= 2:
            return next((each for each in range(new, slot) if not (taken[each] or taken[each + 1])), slot)
        low = slot
        while low > new and self.held[r][low - 1] < self.most:
            low -= 1
        return next((each for each in range(low, slot) if not taken[each]), slot)


def ranks(P: int, M: int) -> list[Placed]:
    """The passes of every rank: the block of each micro-batch, all moved to earlier free slots."""
    board = _Board(P, M)
    for slot, r, kind, m in sorted((slot, r, kind, m) for r, kind, m, slot in board.passes()):
        new = board.place(r, kind, m, slot)
        if new == slot:
            continue
        board.put(r, kind, slot, 0)
        board.put(r, kind, new, 1)
        board.slots[r][kind][m] = new
        change, late = (1, 0) if kind < 2 else (-1, 1)
        for each in range(new + late, slot + late):
            board.held[r][each] += change
    stages = [(r, 2 * P - 1 - r, 2 * P - 1 - r, r) for r in range(P)]
    return [by_slots(zip("FFBB", here, rank)) for here, rank in zip(stages, board.slots)]


ONE_F_ONE_B_V = Schedule(
    OrderFacts("1f1b_v", "two", "folded", 1, "vpp 2; any number of micro-batches"),
    lambda shape: grown(lambda M: ranks(shape.pp, M), shape.micro_batches, 2 * shape.pp + SPARE),
)
