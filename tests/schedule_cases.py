"""The ranges over which closed forms of schedules are tried: a part of them in a moment, or the whole."""

import random
from collections.abc import Iterator
from itertools import product

COSTS = ((1, 1, 1), (1, 2, 0), (2, 3, 1), (7, 9, 4), (3, 1, 5))


def cases(law: str, whole: bool) -> Iterator[tuple[object, ...]]:
    """The cases of a law by its name."""
    yield from globals()[f"_{law}"](random.Random(11), whole)


def _drawn(draw: random.Random, most: int) -> tuple[int, int, int]:
    return draw.randint(1, most), draw.randint(1, most), draw.randint(1, most)


def _rising(draw: random.Random, most: int) -> tuple[int, int, int]:
    """b >= f >= w, as (f, b, w)."""
    w, f, b = sorted(_drawn(draw, most))
    return f, b, w


def _staircase(draw: random.Random, whole: bool) -> Iterator[tuple[object, ...]]:
    yield from product(range(1, 9), range(1, 33, 1 if whole else 6), COSTS if whole else COSTS[2:4])


def _interleaving(draw: random.Random, whole: bool) -> Iterator[tuple[object, ...]]:
    for P, v, k, costs in product(
        range(2, 9), range(2, 6), range(1, 5 if whole else 3), COSTS if whole else COSTS[2:3]
    ):
        yield P, v, k * P, P, costs
    for P, v, more, k in product(range(2, 9 if whole else 5), (2, 3, 4), range(1, 6 if whole else 3), (1, 2, 3)):
        yield P, v, k * (P + more), P + more, COSTS[3]


def _interleaving_few(draw: random.Random, whole: bool) -> Iterator[tuple[object, ...]]:
    yield from ((P, v, M, COSTS[3]) for P in range(2, 8) for v in (1, 2, 3) for M in range(1, P))


def _breadth_first(draw: random.Random, whole: bool) -> Iterator[tuple[object, ...]]:
    micro_batches = range(1, 17) if whole else (1, 2, 5, 9)
    yield from product(range(1, 7), (1, 2, 3), micro_batches, COSTS if whole else COSTS[3:4])


def _zero_bubble(draw: random.Random, whole: bool) -> Iterator[tuple[object, ...]]:
    for P in list(range(2, 10)) * (50 if whole else 8):
        yield P, 2 * P - 1 + draw.randint(0, 8), _drawn(draw, 40)


def _zero_bubble_few(draw: random.Random, whole: bool) -> Iterator[tuple[object, ...]]:
    yield from ((P, M) for P in range(2, 8 if whole else 7) for M in range(1, 3 * P))


def _zbv(draw: random.Random, whole: bool) -> Iterator[tuple[object, ...]]:
    for P in list(range(2, 10)) * (40 if whole else 6):
        yield P, 2 * P - 1 + draw.randint(0, 8), _rising(draw, 40)


def _interleaved_zero_bubble(draw: random.Random, whole: bool) -> Iterator[tuple[object, ...]]:
    for P, v, k in product(range(2, 10 if whole else 7), (1, 2, 3), range(1, 5)):
        f, b, w = _drawn(draw, 20)
        yield P, v, k * P, (f, b, min(f, b, w))


def _dualpipe_v_idle(draw: random.Random, whole: bool) -> Iterator[tuple[object, ...]]:
    for P in list(range(2, 9)) * (43 if whole else 6):
        f, b, w = _rising(draw, 30)
        yield P, 2 * P + draw.randint(0, 8), (f, b, w), draw.randint(max(f, b + w), f + b + w)


def _dualpipe_is_two_v(draw: random.Random, whole: bool) -> Iterator[tuple[object, ...]]:
    for P in list(range(1, 7)) * (22 if whole else 7):
        f, b, w = _drawn(draw, 30)
        yield P, 2 * P + draw.randint(0, 8), (f, b, w), draw.randint(max(f, b + w), f + b + w)


def _latency(draw: random.Random, whole: bool) -> Iterator[tuple[object, ...]]:
    costs = ((10, 10, 10), (10, 12, 8), (10, 14, 6))[: 3 if whole else 2]
    yield from product(range(2, 9, 1 if whole else 2), (2, 3), (2, 3, 4) if whole else (2, 4), costs, (1, 2, 3))


def _unequal_gpipe(draw: random.Random, whole: bool) -> Iterator[tuple[object, ...]]:
    for P in (1, 2, 4, 7) * (100 if whole else 15):
        F, B, W = ([draw.randint(0, 30) for _ in range(P)] for _ in range(3))
        yield F, B, W, draw.randint(1, 12)


def _heavy_last(draw: random.Random, whole: bool) -> Iterator[tuple[object, ...]]:
    micro_batches = range(1, 33) if whole else (1, 3, 20)
    yield from product((2, 3, 4, 8), micro_batches, COSTS if whole else COSTS[2:4], (1, 2, 5))


def _recomputed(draw: random.Random, whole: bool) -> Iterator[tuple[object, ...]]:
    yield from ((P, k * P, costs) for P in (2, 4, 6, 8) for k in (2, 4) for costs in COSTS)
