"""Closed forms of pipeline schedules, each beside the timeline: a function a law, from its case to (law, timeline).

P ranks, v chunks a rank, M micro-batches; F, B, W are a rank's share (forward, input gradient, weight gradient),
f, b, w a chunk's, X = B + W; c is the flight of a message.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction

from outlay.schedule.orders import order
from outlay.schedule.passes import Order, Pass, loop
from outlay.schedule.timeline import Timeline, simulate
from outlay.schedule.times import Times

Case = tuple[int, ...]
Costs = tuple[int, int, int]
Law = Callable[..., tuple[object, object]]


def interleaved(P: int, v: int, M: int, N: int) -> Order:
    """Interleaved 1F1B with groups of N whatever N and M are, also where every framework refuses it."""
    table = [(k, m) for g in range(0, M, N) for k in range(v) for m in range(g, min(g + N, M))]
    ranks = []
    for r in range(P):
        w = min(2 * (P - 1 - r) + (v - 1) * N, M * v)
        row = [Pass("F", k * P + r, m) for k, m in table[:w]]
        for i in range(M * v):
            row += [Pass("F", k * P + r, m) for k, m in table[w + i : w + i + 1]]
            k, m = table[i]
            row.append(Pass("B", (v - 1 - k) * P + r, m))
        ranks.append(tuple(row))
    return Order("interleaved", tuple(ranks), P * v, M, loop(P))


def drawn(name: str, P: int, M: int, costs: Costs, v: int = 1, **times: int) -> Timeline:
    """A schedule by name, with these durations of a chunk."""
    return simulate(order(name, P, M, v), Times(*costs, **times))


def bubbles(timeline: Timeline, ideal: int) -> tuple[float, float]:
    """Bubble of the makespan, and of the span."""
    return timeline.makespan - ideal, timeline.span - ideal


def mismatches(law: Law, cases: Iterable[tuple[object, ...]]) -> tuple[int, list[object]]:
    """How many cases there were, and those where the law and the timeline differ."""
    tried = [(case, *law(*case)) for case in cases]
    return len(tried), [each for each in tried if each[1] != each[2]]


# --- equal stages ---------------------------------------------------------------------------------------------------


def staircase(P: int, M: int, costs: Costs) -> tuple[object, object]:
    """GPipe and 1F1B: (M + P - 1)(F + X), also for M < P; GPipe holds M, rank r of 1F1B min(M, P - r)."""
    gpipe, one = drawn("gpipe", P, M, costs), drawn("1f1b", P, M, costs)
    law = (M + P - 1) * sum(costs)
    held = ([M] * P, [min(M, P - r) for r in range(P)])
    return (law, law, *held), (gpipe.makespan, one.makespan, list(gpipe.peak_in_flight), list(one.peak_in_flight))


def interleaving(P: int, v: int, M: int, N: int, costs: Costs) -> tuple[object, object]:
    """Interleaved, groups of N >= P that divide M: (M v + P - 1)(f + x); min(M, ((v-1)N + 2(P-1-r) + 1)/v) held."""
    timeline = simulate(order("interleaved", P, M, v, N), Times(*costs))
    held = [min(M * v, (v - 1) * N + 2 * (P - 1 - r) + 1) for r in range(P)]
    return ((M * v + P - 1) * sum(costs), held), (timeline.makespan, [rank.peak_in_flight for rank in timeline.ranks])


def interleaving_few(P: int, v: int, M: int, costs: Costs) -> tuple[object, object]:
    """Interleaved with M < P: (v P + M - 1)(f + x)."""
    return (v * P + M - 1) * sum(costs), simulate(interleaved(P, v, M, P), Times(*costs)).makespan


def breadth_first(P: int, v: int, M: int, costs: Costs) -> tuple[object, object]:
    """Looped BFS: (v M + P - 1)(f + x) from M = P on, (v P + M - 1)(f + x) below; all M held."""
    timeline = drawn("looped_bfs", P, M, costs, v)
    law = max(v * M + P - 1, v * P + M - 1) * sum(costs)
    return (law, [M] * P), (timeline.makespan, list(timeline.peak_in_flight))


def zero_bubble(P: int, M: int, costs: Costs) -> tuple[object, object]:
    """ZB-H1 and ZB-H2, M >= 2P - 1: makespan and span bubbles of each; all ranks hold P and 2P - 1."""
    F, B, W = costs
    h1 = ((P - 1) * max(F + B - W, B, F), (P - 1) * max(F + B - W, B))
    h2 = ((P - 1) * max(F + B - 2 * W, B - F, F), (P - 1) * max(F + B - 2 * W, B - F, 0))
    one, two = drawn("zb_h1", P, M, costs), drawn("zb_h2", P, M, costs)
    got = (bubbles(one, M * (F + B + W)), bubbles(two, M * (F + B + W)))
    held = ({*one.peak_in_flight}, {*two.peak_in_flight})
    return (h1, h2, {P}, {2 * P - 1}), (*got, *held)


def zero_bubble_few(P: int, M: int) -> tuple[object, object]:
    """F = B = W = 1, any M: ZB-H1 max(P-1, 2P-1-M); span of ZB-H2 max(0, 2P-1-M); ZBV max((P-1)/2, 2P-1-M)."""
    one, two = drawn("zb_h1", P, M, (2, 2, 2)), drawn("zb_h2", P, M, (2, 2, 2))
    folded = drawn("zbv", P, M, (1, 1, 1))
    law = (2 * max(P - 1, 2 * P - 1 - M), 2 * max(0, 2 * P - 1 - M), max(P - 1, 2 * (2 * P - 1 - M)))
    return law, (one.makespan - 6 * M, two.span - 6 * M, folded.makespan - 6 * M)


def zbv(P: int, M: int, costs: Costs) -> tuple[object, object]:
    """ZBV with b >= f >= w and M >= 2P - 1: (P-1) max(B - W, B/2), span (P-1)(B - W); all hold P."""
    f, b, w = costs
    timeline = drawn("zbv", P, M, costs)
    law = ((P - 1) * max(2 * (b - w), b), (P - 1) * 2 * (b - w))
    return (law, {P}), (bubbles(timeline, 2 * M * (f + b + w)), {*timeline.peak_in_flight})


def interleaved_zero_bubble(P: int, v: int, M: int, costs: Costs) -> tuple[object, object]:
    """Interleaved ZB with w <= min(f, b): (P - 1)(f + b - w)."""
    f, b, w = costs
    return (P - 1) * (f + b - w), drawn("interleaved_zb", P, M, costs, v).makespan - v * M * (f + b + w)


def dualpipe_v_idle(P: int, M: int, costs: Costs, pair: int) -> tuple[object, object]:
    """DualPipeV, b >= f >= w > 0: idle of the last rank max{(P-1)(T + f - 2w), (P-1)(T + b - 2w) - f}, T of a pair."""
    f, b, w = costs
    timeline = drawn("dualpipe_v", P, M, costs, pair=pair)
    return max((P - 1) * (pair + f - 2 * w), (P - 1) * (pair + b - 2 * w) - f), timeline.ranks[-1].idle


def dualpipe_is_two_v(P: int, M: int, costs: Costs, pair: int) -> tuple[object, object]:
    """DualPipe on 2P ranks with 2M micro-batches takes as long, and holds as many chunks, as DualPipeV on P with M."""
    both = drawn("dualpipe", 2 * P, 2 * M, costs, pair=pair)
    folded = drawn("dualpipe_v", P, M, costs, pair=pair)
    held = ({rank.peak_in_flight for rank in each.ranks} for each in (folded, both))
    return (folded.makespan, *held), (both.makespan, {2 * P + 1}, {2 * P + 1})


# --- messages, unequal stages ---------------------------------------------------------------------------------------


def latency(P: int, v: int, rounds: int, costs: Costs, c: int) -> tuple[object, object]:
    """A flight of c <= 0.3 f adds 2(P-1)c to GPipe, c(2(P-1)M/P + 2(P-2)) to 1F1B, 2(vP-1)c to interleaved."""
    M = rounds * P
    late = [drawn(name, P, M, costs, vpp, send=c) for name, vpp in (("gpipe", 1), ("1f1b", 1), ("interleaved", v))]
    soon = [drawn(name, P, M, costs, vpp) for name, vpp in (("gpipe", 1), ("1f1b", 1), ("interleaved", v))]
    law = (2 * (P - 1) * c, c * (2 * (P - 1) * rounds + 2 * (P - 2)), 2 * (v * P - 1) * c)
    return law, tuple(after.makespan - before.makespan for after, before in zip(late, soon))


def unequal_gpipe(F: list[int], B: list[int], W: list[int], M: int) -> tuple[object, object]:
    """GPipe: sum F + sum X + (M - 1)(max F + max X)."""
    X = [b + w for b, w in zip(B, W)]
    timeline = simulate(order("gpipe", len(F), M), Times(F, B, W))
    return sum(F) + sum(X) + (M - 1) * (max(F) + max(X)), timeline.makespan


def heavy_last(P: int, M: int, costs: Costs, times: int) -> tuple[object, object]:
    """1F1B, only the last stage so many times as heavy: (P - 1)(F + X) + M (F + X) times."""
    F, B, W = ([cost] * (P - 1) + [cost * times] for cost in costs)
    whole = sum(costs)
    return (P - 1) * whole + M * whole * times, simulate(order("1f1b", P, M), Times(F, B, W)).makespan


def recomputed(P: int, M: int, costs: Costs) -> tuple[object, object]:
    """Full recompute is a backward pass longer by F, in every schedule."""
    F, B, W = costs
    names = [("gpipe", 1), ("1f1b", 1), ("interleaved", 2), ("zb_h1", 1), ("zbv", 2), ("dualpipe_v", 2)]
    again = [drawn(name, P, M, costs, v, recompute=F).makespan for name, v in names]
    return [drawn(name, P, M, (F, B + F, W), v).makespan for name, v in names], again


def relative(name: str, v: int, P: int, M: int, costs: Costs) -> tuple[Fraction, Fraction]:
    """Bubbles of the makespan and the span of a schedule, in units of 1F1B's. Costs are a rank's, times 2."""
    chunk = tuple(2 * cost // v for cost in costs)
    timeline = drawn(name, P, M, chunk, v if name == "interleaved" else 1)
    makespan, span = bubbles(timeline, 2 * M * sum(costs))
    return Fraction(makespan, 2 * (P - 1) * sum(costs)), Fraction(span, 2 * (P - 1) * sum(costs))


LAWS: tuple[Law, ...] = (
    staircase,
    interleaving,
    interleaving_few,
    breadth_first,
    zero_bubble,
    zero_bubble_few,
    zbv,
    interleaved_zero_bubble,
    dualpipe_v_idle,
    dualpipe_is_two_v,
    latency,
    unequal_gpipe,
    heavy_last,
    recomputed,
)
