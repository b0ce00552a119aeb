"""Orders made fast are those that a slow and plain walk makes; a long one costs no more choices than a short one."""

import gc
from collections.abc import Iterator
from random import Random

import pytest

from outlay.schedule.orders import controllable, growing, one_f_one_b_v, order
from outlay.schedule.orders.facts import Shape
from outlay.schedule.orders.hanayo import ranks as hanayo
from outlay.schedule.orders.row import blocks
from outlay.schedule.passes import Pass, snake

MICRO_BATCHES, RANKS = 512, 64


def test_weight_gradients_take_the_free_slots_that_a_walk_finds() -> None:
    """Slot by slot: an input gradient adds one that waits, a free slot does the one that waits longest."""
    draw = Random(3)
    for _ in range(200):
        M = draw.randint(1, 9)
        slots = sorted(draw.sample(range(draw.choice((5, 8, 12)) * M), 4 * M))
        kinds = draw.sample([0, 1, 2, 3] * M, 4 * M)
        rank = [[slot for slot, kind in zip(slots, kinds) if kind == which] for which in range(4)]
        busy, waiting, found = dict(zip(slots, kinds)), list[int](), list[tuple[int, int]]()
        for slot in range(slots[-1] + 2 * M + 1):
            if busy.get(slot, 0) >= 2:
                waiting = sorted([*waiting, busy[slot]])  # those of the second chunk, kind 2, first
            elif slot not in busy and waiting:
                found.append((slot, waiting.pop(0)))

        assert controllable.weight_slots(rank) == [slot for slot, _ in found]
        assert [*controllable.weight_slots_by_chunk(rank)] == [[s for s, k in found if k == kind] for kind in (2, 3)]


def naive_hanayo(P: int, M: int, v: int) -> list[list[Pass]]:
    """Slot by slot, all that is known looked through: B before F, the oldest, of two forward passes the deepest."""
    depth, home = P * v, snake(P)
    begun: dict[Pass, int] = {}
    busy, rows, now = [0] * P, [list[Pass]() for _ in range(P)], 0

    def ended(kind: str, stage: int, m: int) -> bool:
        at = begun.get(Pass(kind, stage, m))  # type: ignore[arg-type]
        return at is not None and at + (1 if kind == "F" else 2) <= now

    def ready(rank: int) -> Iterator[tuple[bool, int, int]]:
        for stage in (s for s in range(depth) if home(s) == rank):
            for m in range(M):
                entered = m < P + sum(ended("B", 0, each) for each in range(M))
                if Pass("F", stage, m) not in begun and (ended("F", stage - 1, m) if stage else entered):
                    yield (True, m, -stage)
                before = ended("B", stage + 1, m) if stage + 1 < depth else ended("F", stage, m)
                if Pass("B", stage, m) not in begun and before:
                    yield (False, m, stage)

    while len(begun) < 2 * depth * M:
        for rank in range(P):
            if busy[rank] <= now and (able := min(ready(rank), default=None)):
                chosen = Pass("F" if able[0] else "B", abs(able[2]), able[1])
                begun[chosen], busy[rank] = now, now + (1 if able[0] else 2)
                rows[rank].append(chosen)
        now += 1
    return rows


@pytest.mark.parametrize(("P", "M", "v"), [(1, 3, 2), (2, 5, 2), (3, 4, 4), (4, 9, 2), (5, 7, 2)])
def test_hanayo_is_the_order_of_a_plain_greedy_walk(P: int, M: int, v: int) -> None:
    assert hanayo(Shape(P, M, v)) == naive_hanayo(P, M, v)


def test_blocks_count_each_kind_of_a_chunk_by_itself() -> None:
    made = blocks((("F0 F1", 2), ("I1 W1", 1), ("F0", 0), ("I0 I1", 1)), {"0": 3, "1": 4})

    assert made == [
        *(Pass("F", stage, m) for m in (0, 1) for stage in (3, 4)),
        *(Pass("I", 4, 0), Pass("W", 4, 0), Pass("I", 3, 0), Pass("I", 4, 1)),
    ]
    assert blocks((), {}) == []


@pytest.mark.parametrize(
    ("name", "room", "least"),
    [("v_half", controllable, RANKS + 10), ("v_min", controllable, RANKS + 10), ("1f1b_v", one_f_one_b_v, 138)],
)
def test_64_ranks_512_micro_batches_are_placed_pass_by_pass_only_until_they_repeat(
    name: str, room: object, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`least` micro-batches in place of 512: 64 ranks, and a few more until every rank is in its steady state."""
    placed = []
    grown = growing.grown

    def counted(make, micro_batches, short):  # type: ignore[no-untyped-def]
        def noted(M: int):  # type: ignore[no-untyped-def]
            placed.append(M)
            return make(M)

        return grown(noted, micro_batches, short)

    monkeypatch.setattr(room, "grown", counted)
    found = order(name, RANKS, MICRO_BATCHES, 2)

    assert placed == [least]
    assert {len(row) for row in found.ranks} == {MICRO_BATCHES * (4 if name == "1f1b_v" else 6)}


def test_the_garbage_collector_is_as_it_was_also_after_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    for before in (True, False):
        (gc.enable if before else gc.disable)()
        order("1f1b", 4, 8)
        assert gc.isenabled() == before
    gc.enable()
    monkeypatch.setattr(controllable, "ranks", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        order("v_half", 4, 8, 2)

    assert gc.isenabled()
