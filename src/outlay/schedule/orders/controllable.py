"""V-Half and V-Min: zero bubble on a V in a half and a third of the activations of 1F1B. Source: Qi et al. 2024.

A building block of six slots comes again for each micro-batch, so how long a chunk's activations live says how many
are held. Then passes of the warm-up and of the cool-down move to earlier free slots, as far as no rank holds more.
Slots are of one length (F = B = W); with other times the order stays, and its bubble grows.
"""

from bisect import bisect_left, insort
from collections.abc import Callable

import numpy as np

from ..passes import Operation
from ..program import Ints
from .facts import OrderFacts, Schedule, Shape
from .growing import BLOCK, Placed, grown

Offsets = list[list[int]]
Slots = list[list[list[int]]]  # of each rank, of F0, F1, I1, I0 (and W): a slot a micro-batch
SPARE = 10  # micro-batches beyond P with which every rank has a middle that repeats
ADDS = {0: 1, 1: 1, 4: -1}  # chunks held, by kind: both forwards, and W


def half_offsets(P: int) -> Offsets:
    """V-Half: the first slots of F0, F1, I1, I0 on each rank. The last two wait so that no two fall together."""
    z = 0 if P % 2 else 3
    return [[2 * r, 3 * P - 2 - r, 3 * P + z + 2 * r - 1, 6 * P + z - 2 - r] for r in range(P)]


def least_offsets(P: int) -> Offsets:
    """V-Min: the same, as short as can be."""
    z = 0 if P % 3 else 2
    return [[r, 2 * P - 1 - r, 2 * P + z + r, 4 * P + z - 1 - r] for r in range(P)]


def ranks(offsets: Offsets, M: int) -> list[Placed]:
    """The passes of every rank, in order."""
    P = len(offsets)
    slots: Slots = [[[first + BLOCK * m for m in range(M)] for first in rank] for rank in offsets]
    for rank in slots:
        rank.append(weight_slots(rank))
    _earlier_with_weights(slots, M)
    slots = _close(slots)
    _earlier_before_weights(slots, M)
    rows: list[Placed] = []
    for r, rank in enumerate(slots):
        low, high = r, 2 * P - 1 - r
        weights = weight_slots_by_chunk(rank)
        rows.append([*zip("FFIIWW", (low, high, high, low, high, low), [*rank, *weights])])
    return rows


# --- weight gradients -----------------------------------------------------------------------------------------------


def weight_slots(rank: list[list[int]]) -> list[int]:
    """Slots of the weight gradients: each free one does the one that waits longest."""
    free = _free(rank)
    return _queued(free, np.sort(np.concatenate(rank[2:4])))


def weight_slots_by_chunk(rank: list[list[int]]) -> tuple[list[int], list[int]]:
    """The same, those of the second chunk first, as they are due: slots of both chunks."""
    first = _queued(_free(rank), np.sort(rank[2]))
    return first, np.setdiff1d(weight_slots(rank), first).tolist()


def _free(rank: list[list[int]]) -> Ints:
    """Slots without F and I, as many behind the last as there can be weight gradients."""
    free = np.ones(max(map(max, rank[:4])) + 2 * len(rank[2]) + 1, bool)
    for row in rank[:4]:
        free[row] = False
    return np.flatnonzero(free)


def _queued(free: Ints, due: Ints) -> list[int]:
    """One after the other, each in the first free slot behind the one where it is due."""
    turn = np.arange(len(due))
    found: list[int] = free[np.maximum.accumulate(np.searchsorted(free, due) - turn) + turn].tolist()
    return found


# --- moving passes --------------------------------------------------------------------------------------------------


Event = tuple[int, int, int, int]  # a pass where it stands: slot, rank, kind, micro-batch


def _events(slots: Slots) -> list[Event]:
    """All passes in time."""
    places = [(r, kind, m) for r, rank in enumerate(slots) for kind, row in enumerate(rank) for m in range(len(row))]
    at = np.concatenate([row for rank in slots for row in rank])
    order = np.argsort(at, kind="stable")  # places are in order already
    return [(slot, *places[place]) for slot, place in zip(at[order].tolist(), order.tolist())]


def _phases(events: list[Event], M: int) -> tuple[int, int]:
    """Where the first micro-batch is back; and behind where, from then on, the last goes in."""
    back = next(at for at, (_, r, kind, _) in enumerate(events) if kind == 3 and r == 0)
    last = (at + 1 for at in range(back, len(events)) if events[at][2] == 0 and events[at][3] == M - 1)
    return back, next(last, len(events))


def _earliest(slots: Slots, r: int, kind: int, m: int) -> int:
    """The slot behind all that a pass needs."""
    rank = slots[r]
    last = rank[kind][m - 1] if m else -1
    if kind == 4:
        return last + 1
    if kind and rank[kind - 1][m] > last:
        last = rank[kind - 1][m]
    before = r + 1 if kind % 2 else r - 1
    if 0 <= before < len(slots) and slots[before][kind][m] > last:
        last = slots[before][kind][m]
    return last + 1


def _earlier_with_weights(slots: Slots, M: int) -> None:
    """Move passes of both ends of the step to free slots, weight gradients too; no rank then holds more."""
    held = [_levels(rank) for rank in slots]
    most = max(level.max() for level in held)
    taken = [bytearray(len(level)) for level in held]
    inputs = [sorted(rank[2] + rank[3]) for rank in slots]
    events = _events(slots)
    back, last = _phases(events, M)
    for at, (slot, r, kind, m) in enumerate(events):
        if back <= at < last:
            taken[r][slot] = 1
            continue
        first = _earliest(slots, r, kind, m)
        if kind == 4:
            first = max(first, inputs[r][m] + 1)
        elif kind < 2 and first < slot:
            full = (held[r][first:slot] == most).nonzero()[0]
            first += int(full[-1]) + 1 if len(full) else 0
        found = taken[r].find(0, first, slot) if first < slot else -1
        if found < 0:
            taken[r][slot] = 1
            continue
        taken[r][found] = 1
        slots[r][kind][m] = found
        if change := ADDS.get(kind, 0):
            held[r][found:slot] += change
        else:
            del inputs[r][bisect_left(inputs[r], slot)]
            insort(inputs[r], found)


def _levels(rank: list[list[int]]) -> Ints:
    """Chunks held after each slot."""
    change = np.zeros(max(row[-1] for row in rank) + 1, np.int64)
    for kind, amount in ADDS.items():
        change[rank[kind]] = amount
    return change.cumsum()


def _close(slots: Slots) -> Slots:
    """Every pass as early as its rank and what it needs allow, in the same order. Weight gradients are left out."""
    closed = [[[0] * len(row) for row in rank] for rank in slots]
    last = [-1] * len(slots)
    for _, r, kind, m in _events(slots):
        last[r] = closed[r][kind][m] = max(_earliest(closed, r, kind, m), last[r] + 1)
    return [rank[:4] for rank in closed]


def _earlier_before_weights(slots: Slots, M: int) -> None:
    """Move passes behind the last micro-batch's first; weight gradients then fill what is free, and hold no more."""
    lines = [_Line(rank) for rank in slots]
    most = max(max(line.held) for line in lines)
    events = _events(slots)
    _, last = _phases(events, M)
    taken = [bytearray(len(line.kind)) for line in lines]
    for slot, r, _, _ in events[:last]:
        taken[r][slot] = 1
    for slot, r, kind, m in events[last:]:
        free, found = _earliest(slots, r, kind, m), slot
        while free < slot and (free := taken[r].find(0, free, slot)) >= 0:
            if lines[r].moved(slot, free, most):
                found = free
                break
            free += 1
        slots[r][kind][m] = found
        taken[r][found] = 1


class _Line:
    """One rank slot by slot: what it does, and after it the chunks held and the weight gradients that wait."""

    def __init__(self, rank: list[list[int]]) -> None:
        self.kind = [-1] * (max(row[-1] for row in rank) + 1)
        for kind, row in enumerate(rank):
            for slot in row:
                self.kind[slot] = kind
        size = len(self.kind)
        self.held, self.waiting = [0] * size, [0] * size
        self._keep(0, *self._from(0, size, size))

    def _from(self, first: int, settled: int, most: int) -> tuple[list[int], list[int]]:
        """Both from a slot on, until they are as before behind another; nothing where more than `most` are held."""
        held, waiting = (self.held[first - 1], self.waiting[first - 1]) if first else (0, 0)
        levels, queue = [], []
        for slot in range(first, len(self.kind)):
            kind = self.kind[slot]
            if kind >= 2:
                waiting += 1
            elif kind >= 0:
                held += 1
                if held > most:
                    return [], []
            elif waiting:
                held, waiting = held - 1, waiting - 1
            if slot >= settled and held == self.held[slot] and waiting == self.waiting[slot]:
                break
            levels.append(held)
            queue.append(waiting)
        return levels, queue

    def _keep(self, first: int, held: list[int], waiting: list[int]) -> None:
        self.held[first : first + len(held)], self.waiting[first : first + len(held)] = held, waiting

    def moved(self, old: int, new: int, most: int) -> bool:
        """Whether the pass could move without holding more than that; it has moved then."""
        kind = self.kind[old]
        self.kind[old], self.kind[new] = -1, kind
        held, waiting = self._from(new, old, most)
        if not held:
            self.kind[old], self.kind[new] = kind, -1
            return False
        self._keep(new, held, waiting)
        return True


def _schedule(name: str, offsets: Callable[[int], Offsets]) -> Schedule:
    def made(shape: Shape) -> list[list[Operation]]:
        return grown(lambda M: ranks(offsets(shape.pp), M), shape.micro_batches, shape.pp + SPARE)

    facts = OrderFacts(name, "two", "folded", 1, "vpp 2; any number of micro-batches, the closed form from 2 pp on")
    return Schedule(facts, made)


V_HALF = _schedule("v_half", half_offsets)
V_MIN = _schedule("v_min", least_offsets)
