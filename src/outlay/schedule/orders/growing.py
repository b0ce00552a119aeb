"""Orders made slot by slot: from slots to rows, and a long order from a short one whose middle repeats."""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import cast

from ..passes import Kind, Operation, Pass

BLOCK = 6  # slots in which a rank of two chunks does one micro-batch: F, B and W of each

Placed = list[tuple[int, str, int, int]]  # what a rank does: slot, kind, stage, micro-batch


def by_slots(kinds: Iterable[tuple[str, int, list[int]]]) -> Placed:
    """A rank's passes in time, from (kind, stage, slots): the n-th slot is micro-batch n."""
    return sorted((slot, kind, stage, m) for kind, stage, slots in kinds for m, slot in enumerate(slots))


def grown(make: Callable[[int], list[Placed]], micro_batches: int, short: int) -> list[list[Operation]]:
    """The order of so many micro-batches: one of `short`, whose middle is repeated where all ranks have one."""
    few = min(short, micro_batches)
    rows, more, cut = make(few), micro_batches - few, 0
    if more and not (cut := _cut(rows, few)):
        rows, more = make(micro_batches), 0
    return [_longer(row, bisect_left(row, (cut,)), cut, more) for row in rows]


def _cut(rows: list[Placed], micro_batches: int) -> int:
    """The last slot before which every rank has done in two blocks what it did in the two before; 0 without one."""
    places = [{slot: rest for slot, *rest in row} for row in rows]
    for cut in range(BLOCK * micro_batches, 3 * BLOCK, -1):
        if all(_repeats(place, cut) for place in places):
            return cut
    return 0


def _repeats(place: dict[int, list[object]], cut: int) -> bool:
    for slot in range(cut - 2 * BLOCK, cut):
        now, before = place.get(slot), place.get(slot - BLOCK)
        if (now is None) != (before is None) or (now and before and now != [*before[:2], cast(int, before[2]) + 1]):
            return False
    return True


def _longer(row: Placed, place: int, cut: int, more: int) -> list[Operation]:
    """The passes of a rank, with the last block before the cut so many times more."""
    block = row[bisect_left(row, (cut - BLOCK,)) : place] if more else []
    again = [(0, kind, stage, m + turn) for turn in range(1, more + 1) for _, kind, stage, m in block]
    moved = [(0, kind, stage, m + more) for _, kind, stage, m in row[place:]]
    return [Pass(cast(Kind, kind), stage, m) for _, kind, stage, m in (*row[:place], *again, *moved)]
