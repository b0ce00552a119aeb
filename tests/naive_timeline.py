"""A slow second simulator of an order: dictionaries, one pass at a time, round after round. And random legal orders."""

import random
from typing import Any

from outlay.schedule.passes import Operation, Order, Pair, Pass
from outlay.schedule.times import Times


def halves(operation: Operation) -> tuple[Pass, ...]:
    return operation if isinstance(operation, Pair) else (operation,)


def each(value: Any, stage: int) -> Any:
    return value if isinstance(value, int | float) else value[stage]


def duration(order: Order, times: Times, operation: Operation) -> tuple[Any, Any]:
    """Of an operation: its recompute, and the rest."""
    total, again, stages = 0, 0, []
    for kind, virtual, _ in halves(operation):
        stage = virtual % order.depth
        stages.append(stage)
        F, inputs, weights = (
            each(part, stage) for part in (times.forward, times.input_gradient, times.weight_gradient)
        )
        whole = inputs + weights if times.full_backward is None else each(times.full_backward, stage)
        added = [0, 0, 0]
        for end, extra in ((0, times.first), (order.depth - 1, times.last)):
            added = [one + (more if stage == end else 0) for one, more in zip(added, extra)]
        took = {"F": F, "B": whole, "I": inputs, "W": weights}[kind]
        more = {"F": added[0], "B": added[1] + added[2], "I": added[1], "W": added[2]}[kind]
        total += more + (0 if isinstance(operation, Pair) and times.pair is not None else took)
        again += each(times.recompute, stage) if kind in "BI" else 0
    if isinstance(operation, Pair) and times.pair is not None:
        total += each(times.pair, stages[0])
    return again, total


def naive(order: Order, times: Times) -> list[list[tuple[Any, Any]]]:
    """Start and end of every operation, its recompute included. Without collectives."""
    rank_of = {pass_: rank for rank, row in enumerate(order.ranks) for each in row for pass_ in halves(each)}
    back = {pass_[1:]: pass_ for pass_ in rank_of if pass_.kind in "BI"}
    arrived: dict[Pass, dict[int, Any]] = {}
    free: dict[tuple[int, int], Any] = {}
    clock, at = [0] * len(order.ranks), [0] * len(order.ranks)
    found: list[list[tuple[Any, Any]]] = [[] for _ in order.ranks]

    def needs(one: Pass) -> list[Pass]:
        kind, stage, batch = one
        if kind == "W":
            return [Pass("I", stage, batch)]
        if kind == "F":
            return [Pass("F", stage - 1, batch)] if stage % order.depth else []
        last = stage % order.depth == order.depth - 1
        return [Pass("F", stage, batch)] + ([] if last else [back[stage + 1, batch]])

    moved = True
    while moved:
        moved = False
        for rank, row in enumerate(order.ranks):
            if at[rank] == len(row):
                continue
            operation = row[at[rank]]
            wanted = [need for half in halves(operation) for need in needs(half)]
            if any(need not in arrived for need in wanted):
                continue
            start = max([clock[rank], *(arrived[need][rank] for need in wanted)])
            clock[rank] = end = start + sum(duration(order, times, operation))
            found[rank].append((start, end))
            for half in halves(operation):
                kind, stage, _ = half
                arrived[half] = {rank: end}
                ahead = {"F": 1, "B": -1, "I": -1, "W": 0}[kind]
                inside = 0 <= stage % order.depth + ahead < order.depth
                to = order.rank_of(stage + ahead) if ahead and inside else rank
                if to != rank:
                    boundary = (stage + min(ahead, 0)) % order.depth
                    leaves = max(end, free.get((rank, to), 0))
                    free[rank, to] = leaves + each(times.message_bytes, boundary) * each(times.byte, boundary)
                    arrived[half][to] = free[rank, to] + each(times.send, boundary)
            at[rank] += 1
            moved = True
    return found


def random_order(draw: random.Random) -> Order:
    """A legal order: ranks take, at random, what could be done by then."""
    pp, chunks, batches = draw.randint(1, 4), draw.randint(1, 3), draw.randint(1, 5)
    depth = pp * chunks
    places = [draw.randrange(pp) for _ in range(depth)]
    split, pairs = draw.random() < 0.5, draw.random() < 0.5
    rows: list[list[Operation]] = [[] for _ in range(pp)]
    done: set[Pass] = set()
    todo = {Pass("F", stage, batch) for stage in range(depth) for batch in range(batches)}
    todo |= {Pass(kind, stage, batch) for _, stage, batch in set(todo) for kind in ("IW" if split else "B")}

    def ready(one: Pass) -> bool:
        kind, stage, batch = one
        if kind == "F":
            return stage == 0 or Pass("F", stage - 1, batch) in done
        if kind == "W":
            return Pass("I", stage, batch) in done
        after = stage == depth - 1 or Pass(kind, stage + 1, batch) in done
        return after and Pass("F", stage, batch) in done

    while todo:
        able = sorted(one for one in todo if ready(one))
        one = draw.choice(able)
        rank = places[one.stage]
        partners = [two for two in able if two.kind in "BI" and places[two.stage] == rank]
        taken: Operation = one
        if pairs and one.kind == "F" and partners and draw.random() < 0.5:
            taken = Pair(one, draw.choice(partners))
        rows[rank].append(taken)
        done |= set(halves(taken))
        todo -= set(halves(taken))
    return Order("random", tuple(map(tuple, rows)), depth, batches, places.__getitem__)


def random_times(draw: random.Random, depth: int, kind: type = int, most: int = 9) -> Times:
    """Durations of every sort, some of them none, some one a stage."""

    def some(least: int = 0) -> Any:
        numbers = [kind(draw.randint(least, most)) for _ in range(depth)]
        return draw.choice([numbers, numbers[0], kind(0)])

    return Times(
        *(some(), some(), some()),
        full_backward=draw.choice([None, some()]),
        recompute=some(),
        pair=draw.choice([None, some()]),
        first=Times.first._make(kind(draw.randint(0, 3)) for _ in range(3)),
        last=Times.last._make(kind(draw.randint(0, 3)) for _ in range(3)),
        send=some(),
        message_bytes=some(),
        byte=kind(draw.randint(0, 1)),
    )
