"""Closed forms of the schedules that no engine runs, each beside the timeline: a function a law."""

import random
from collections.abc import Callable, Iterator
from itertools import product

from outlay.schedule.orders import order
from outlay.schedule.orders.same_rows import balanced, handed
from outlay.schedule.timeline import Timeline, simulate
from outlay.schedule.times import Times

Case = tuple[object, ...]


def drawn(name: str, P: int, M: int, costs: tuple[int, int, int], v: int = 1, k: int = 0) -> Timeline:
    """A schedule by name, with these durations of a chunk; k slices a micro-batch."""
    return simulate(order(name, P, M, v, k), Times(*costs))


def v_half(P: int, M: int) -> Case:
    """F = B = W, M >= 2P: bubble of makespan and span in slots, an even P (3P - 7), an odd one (3P - 4); the peak."""
    timeline = drawn("v_half", P, M, (1, 1, 1), 2)
    slots = 1 if P == 2 else 3 * P - 7 if P % 2 == 0 else 3 * P - 4
    got = (timeline.makespan - 6 * M, timeline.span - 6 * M, max(timeline.peak_in_flight))
    return (slots, slots, (P + 2) // 2), got


def v_min(P: int, M: int) -> Case:
    """The same for V-Min: 4P - 7 where 3 divides P, else 4P - 5."""
    timeline = drawn("v_min", P, M, (1, 1, 1), 2)
    slots = 4 * P - 7 if P % 3 == 0 else 4 * P - 5
    got = (timeline.makespan - 6 * M, timeline.span - 6 * M, max(timeline.peak_in_flight))
    return (slots, slots, (P + 4) // 3), got


def v_of_1f1b(P: int, M: int, costs: tuple[int, int, int]) -> Case:
    """1F1B-V, M >= 2P: floor(2P/3) + 1 held, whatever the times; and less idle time than 1F1B."""
    timeline = drawn("1f1b_v", P, M, costs, 2)
    idle = timeline.makespan - 2 * M * sum(costs)
    return (2 * P // 3 + 1, True), (max(timeline.peak_in_flight), P == 1 or idle < 2 * (P - 1) * sum(costs))


def chimera(D: int, U: int, F: int, B: int, W: int) -> Case:
    """Chimera, X >= F: (D - 2)[X + (U - 1)(X - F)], U units of D micro-batches; D/2 + 1 held at the ends, D inside."""
    timeline = drawn("chimera", D, U * D, (F, B, W))
    X = B + W
    held = [D // 2 + 1 + min(r, D - 1 - r) for r in range(D)]
    got = (timeline.makespan - U * D * (F + X), list(timeline.peak_in_flight))
    return ((D - 2) * (X + (U - 1) * (X - F)), held), got


def gems(D: int, M: int, F: int, B: int, W: int) -> Case:
    """GEMS, X >= F: M (D X + F) + (D - 1) F, one held."""
    timeline = drawn("gems", D, M, (F, B, W))
    return (M * (D * (B + W) + F) + (D - 1) * F, {1.0}), (timeline.makespan, {*timeline.peak_in_flight})


def seq1f1b(P: int, M: int, k: int, costs: tuple[int, int, int]) -> Case:
    """Seq1F1B, k equal slices: (M k + P - 1)(F + X) in times of a slice; min(M k, P - 1 - r + k) slices held."""
    timeline = drawn("seq1f1b", P, M * k, costs, k=k)
    held = [min(M * k, P - 1 - r + k) for r in range(P)]
    return ((M * k + P - 1) * sum(costs), held), (timeline.makespan, list(timeline.peak_in_flight))


def bpipe(P: int, M: int, costs: tuple[int, int, int]) -> Case:
    """BPipe, moment by moment: with what is above half handed over, no rank holds more than half of its pair's most.

    For M >= P that is ceil((P + 1)/2), which is the budget ceil((P + 2)/2) since P is even.
    """
    timeline = drawn("bpipe", P, M, costs)
    most = balanced(P, M)
    held = []
    for r in range(P // 2):
        moments = sorted({*timeline.ranks[r].in_flight[0].tolist(), *timeline.ranks[P - 1 - r].in_flight[0].tolist()})
        for moment in moments:
            own, other = (level(timeline, each, moment) for each in (r, P - 1 - r))
            away = max(0, own - most)
            assert away <= handed(P, M, r)
            held += [own - away, other + away]
    law = -(-(P + 1) // 2) if M >= P else most
    return ((M + P - 1) * sum(costs), law, True), (timeline.makespan, most, max(held) <= most)


def level(timeline: Timeline, rank: int, moment: int) -> int:
    """Micro-batches that a rank holds right after a moment."""
    times, levels = timeline.ranks[rank].in_flight
    before = [held for at, held in zip(times.tolist(), levels.tolist()) if at <= moment]
    return int(before[-1]) if before else 0


def endless(P: int, M: int, costs: tuple[int, int, int]) -> Case:
    """PipeDream and its 2BW: in the middle of a run a micro-batch takes F + X, so nothing idles; P - r in flight."""
    found = []
    for name in ("pipedream", "pipedream_2bw"):
        run, longer = (drawn(name, P, many, costs) for many in (P + M, P + M + 1))
        found.append((longer.makespan - run.makespan, list(run.peak_in_flight)))
    return ((sum(costs), [P - r for r in range(P)]),) * 2, tuple(found)


def hanayo(P: int, W: int, M: int) -> Case:
    """Hanayo: 2 W chunks a rank; P micro-batches at most are under way, so no rank holds more. No more is stated."""
    timeline = drawn("hanayo", P, M, (1, 1, 1), 2 * W)
    return (True,), (max(timeline.peak_in_flight) <= min(P, M),)


LAWS: tuple[Callable[..., Case], ...] = (
    v_half, v_min, v_of_1f1b, chimera, gems, seq1f1b, bpipe, endless, hanayo,
)  # fmt: skip

COSTS = ((1, 1, 1), (10, 12, 9), (2, 3, 1), (1, 2, 4))


def cases(law: str, whole: bool) -> Iterator[Case]:
    """The cases of a law: a part of them in a moment, or the whole."""
    draw = random.Random(17)
    more = range(8 if whole else 2)
    if law in ("v_half", "v_min"):
        yield from ((P, 3 * P) for P in range(3 if law == "v_half" else 2, 15))
        yield from ((P, 2 * P + 5 * extra) for P in range(2, 15 if whole else 10) for extra in more)
    elif law == "v_of_1f1b":
        yield from product(range(1, 15), (30, 47) if whole else (30,), COSTS[: 4 if whole else 2])
    elif law in ("chimera", "gems"):
        for _ in range(400):
            D, U, F = draw.randrange(2, 13, 2), draw.randint(1, 4 if whole else 3), draw.randint(1, 40)
            X = draw.randint(F, 4 * F)
            W = draw.randint(0, X)
            yield (D, U if law == "chimera" else U + 1, F, X - W, W)
    elif law == "seq1f1b":
        sizes = product(range(1, 9 if whole else 6), range(1, 9 if whole else 5), range(1, 5), COSTS[1:2])
        yield from (case for case in sizes if case[1] * case[2] >= case[0])
    elif law == "hanayo":
        yield from product((1, 2, 4, 5, 8), (1, 2, 3), (1, 4, 7, 16) if whole else (1, 4, 9))
    else:
        yield from product(range(2, 13, 2), (1, 3, 8, 20) if whole else (2, 9), COSTS)
