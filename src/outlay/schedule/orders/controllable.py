"""V-Half and V-Min: zero bubble on a V in a half and a third of the activations of 1F1B. Source: Qi et al. 2024.

A building block of six slots comes again for each micro-batch, so how long a chunk's activations live says how many
are held. Then passes of the warm-up and of the cool-down move to earlier free slots, as far as no rank holds more.
Slots are of one length (F = B = W); with other times the order stays, and its bubble grows.
"""

from collections.abc import Callable, Iterator

from ..passes import Operation
from .facts import OrderFacts, Schedule, Shape
from .growing import BLOCK, Placed, by_slots, grown

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
    slots = [rank[:4] for rank in _close(slots)]
    _earlier_before_weights(slots, M)
    rows = []
    for r, rank in enumerate(slots):
        low, high = r, 2 * P - 1 - r
        weights = weight_slots_by_chunk(rank)
        stages = zip("FFIIWW", (low, high, high, low, high, low), [*rank, *weights])
        rows.append(by_slots(stages))
    return rows


# --- weight gradients -----------------------------------------------------------------------------------------------


def weight_slots(rank: list[list[int]]) -> list[int]:
    """Slots of the weight gradients: each free one does the one that waits longest."""
    done = weight_slots_by_chunk(rank)
    return sorted(done[0] + done[1])


def weight_slots_by_chunk(rank: list[list[int]]) -> tuple[list[int], list[int]]:
    """The same, those of the second chunk first, as they are due: slots of both chunks."""
    busy = {slot: kind for kind in range(4) for slot in rank[kind]}
    left, waiting = len(rank[2]) + len(rank[3]), [0, 0]
    found: tuple[list[int], list[int]] = ([], [])
    slot = min(rank[2])
    while left:
        kind = busy.get(slot)
        if kind is None and (waiting[0] or waiting[1]):
            chunk = 0 if waiting[0] else 1
            found[chunk].append(slot)
            waiting[chunk] -= 1
            left -= 1
        elif kind is not None and kind >= 2:
            waiting[kind - 2] += 1
        slot += 1
    return found


# --- moving passes --------------------------------------------------------------------------------------------------


Event = tuple[int, int, int, int]  # a pass where it stands: slot, rank, kind, micro-batch


def _events(slots: Slots) -> list[Event]:
    places = ((r, kind, row) for r, rank in enumerate(slots) for kind, row in enumerate(rank))
    return sorted((slot, r, kind, m) for r, kind, row in places for m, slot in enumerate(row))


def _phases(slots: Slots, M: int) -> Iterator[tuple[Event, int]]:
    """Passes in time, with the part of the step: 0 before the first micro-batch is back, 2 after the last went in."""
    part = 0
    for event in _events(slots):
        _, r, kind, m = event
        if part == 0 and kind == 3 and r == 0:
            part = 1
        yield event, part
        if part == 1 and kind == 0 and m == M - 1:
            part = 2


def _earliest(slots: Slots, event: Event) -> int:
    """The slot behind all that a pass needs."""
    _, r, kind, m = event
    last = slots[r][kind][m - 1] if m else -1
    if kind == 4:
        return last + 1
    if kind:
        last = max(last, slots[r][kind - 1][m])
    before = r + 1 if kind % 2 else r - 1
    if 0 <= before < len(slots):
        last = max(last, slots[before][kind][m])
    return last + 1


def _earlier_with_weights(slots: Slots, M: int) -> None:
    """Move passes of both ends of the step to free slots, weight gradients too; no rank then holds more."""
    held = [_levels(rank) for rank in slots]
    most = max(map(max, held))
    taken: list[set[int]] = [set() for _ in slots]
    for event, part in _phases(slots, M):
        slot, r, kind, m = event
        found = slot
        if part != 1:
            first = _earliest(slots, event)
            if kind == 4:
                first = max(first, sorted(slots[r][2] + slots[r][3])[m] + 1)
            if kind < 2:
                low = slot
                while low > first and held[r][low - 1] < most:
                    low -= 1
                first = low
            found = next((each for each in range(first, slot) if each not in taken[r]), slot)
        taken[r].add(found)
        slots[r][kind][m] = found
        if change := ADDS.get(kind, 0):
            for each in range(found, slot):
                held[r][each] += change


def _levels(rank: list[list[int]]) -> list[int]:
    """Chunks held after each slot."""
    change = [0] * (max(row[-1] for row in rank) + 1)
    for kind, amount in ADDS.items():
        for slot in rank[kind]:
            change[slot] += amount
    for slot in range(1, len(change)):
        change[slot] += change[slot - 1]
    return change


def _close(slots: Slots) -> Slots:
    """Every pass as early as its rank and what it needs allow, in the same order."""
    closed = [[[0] * len(row) for row in rank] for rank in slots]
    last = [-1] * len(slots)
    for event in _events(slots):
        _, r, kind, m = event
        last[r] = closed[r][kind][m] = max(_earliest(closed, event), last[r] + 1)
    return closed


def _earlier_before_weights(slots: Slots, M: int) -> None:
    """Move passes behind the last micro-batch's first; weight gradients then fill what is free, and hold no more."""
    lines = [_Line(rank) for rank in slots]
    most = max(max(line.held) for line in lines)
    taken: list[set[int]] = [set() for _ in slots]
    for event, part in _phases(slots, M):
        slot, r, kind, m = event
        found = slot
        if part == 2:
            first = _earliest(slots, event)
            free = (each for each in range(first, slot) if each not in taken[r])
            found = next((each for each in free if lines[r].moved(slot, each, most)), slot)
        slots[r][kind][m] = found
        taken[r].add(found)


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
