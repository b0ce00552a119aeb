"""Whether an order can run: each pass is there once, after what it needs, and no ranks wait for each other for ever."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from ..errors import Fault, InputError
from .passes import Operation, Order, Pair, Pass

Rows = tuple[tuple[Operation, ...], ...]
Given = tuple[bool, int, int]  # what a pass gives to another stage: whether forward, its stage, its micro-batch
SHOWN = 3  # instances of one kind of fault


def checked(ranks: Rows, name: str = "custom", copies: int = 1) -> Order:
    """The order of these rows, after every check. Raises InputError with all that is wrong.

    ORD002 stages and micro-batches are not numbered 0, 1, 2, .. on one rank each, ORD003 a pass is missing, ORD004 it
    is done twice, ORD005 it stands before what it needs of its own stage. Where there is none of these, ORD006: ranks
    wait for each other for ever.
    """
    homes, micro_batches = _homes(ranks), {each.micro_batch for each in _all(ranks)}
    found = [*_misnumbered(ranks, homes, micro_batches, copies)]
    rank_of = {stage: min(at) for stage, at in homes.items()}.__getitem__
    order = Order(name, ranks, len(homes), len(micro_batches), rank_of, copies)
    found = found or [*_miscounted(order), *_early(order)] or [*_stuck(order)]
    if found:
        raise InputError(*found)
    return order


def passes(operation: Operation) -> tuple[Pass, ...]:
    """The pass, or the two of a pair."""
    return (operation.forward, operation.backward) if isinstance(operation, Pair) else (operation,)


def named(of: tuple[str, int, int]) -> str:
    """A pass as PyTorch writes it: `2F0`."""
    kind, stage, micro_batch = of
    return f"{stage}{kind}{micro_batch}"


def few(texts: list[str], most: int = SHOWN) -> str:
    """The first few, and how many more."""
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def _all(ranks: Rows) -> Iterator[Pass]:
    return chain.from_iterable(map(passes, chain.from_iterable(ranks)))


def _fault(code: str, what: str, rule: str, instances: Iterable[str], fix: str) -> Iterator[Fault]:
    """One fault for all its instances; none where there are none."""
    if texts := list(instances):
        yield Fault(code, what, rule, few(texts), fix)


# --- numbers --------------------------------------------------------------------------------------------------------


def _homes(ranks: Rows) -> dict[int, set[int]]:
    """The ranks on which each stage stands: one, in a sound order."""
    homes: dict[int, set[int]] = defaultdict(set)
    for rank, row in enumerate(ranks):
        for stage in {each.stage for each in _all((row,))}:
            homes[stage].add(rank)
    return homes


def _misnumbered(ranks: Rows, homes: dict[int, set[int]], micro_batches: set[int], copies: int) -> Iterator[Fault]:
    """ORD002: what has to be right before anything can be counted."""
    wrong = [f"rank {rank} does nothing" for rank, row in enumerate(ranks) if not row]
    wrong += [f"stage {s} on ranks {few([*map(str, sorted(at))])}" for s, at in sorted(homes.items()) if len(at) > 1]
    for noun, numbers in (("stage", set(homes)), ("micro-batch", micro_batches)):
        gaps = sorted(set(range(len(numbers))) - numbers)
        wrong += [f"{noun} {max(numbers)} without {noun} {few([*map(str, gaps)])}"] if gaps else []
    if copies < 1 or len(homes) % copies:
        wrong.append(f"{len(homes)} stages for {copies} copies of the model")
    rule = "stages and micro-batches are numbered 0, 1, 2, .., each stage on one rank, each rank with a stage"
    yield from _fault("ORD002", "stages or micro-batches do not add up", rule, wrong, "number them without a gap")


# --- passes ---------------------------------------------------------------------------------------------------------


def _miscounted(order: Order) -> Iterator[Fault]:
    """ORD003 and ORD004: a pass is missing, or done twice. A whole backward pass is both gradients."""
    counts = Counter(_all(order.ranks))
    missing: list[tuple[str, int, int]] = []
    twice: list[tuple[str, int, int]] = [each for each, times in counts.items() if times > 1]
    for stage, micro_batch in _visits(order, counts):
        forward, backward = ("F", stage, micro_batch), ("B", stage, micro_batch)
        halves = [("I", stage, micro_batch), ("W", stage, micro_batch)]
        split = any(half in counts for half in halves)
        missing += [each for each in (forward, *(halves if split else [backward])) if each not in counts]
        twice += [backward] if split and backward in counts else []
    rule = "each micro-batch goes once through each stage of one copy: F, and B or I and W"
    yield from _fault("ORD003", "a pass is missing", rule, map(named, missing), "add it")
    yield from _fault("ORD004", "a pass is done twice", rule, map(named, twice), "leave one of them out")


def _visits(order: Order, counts: Counter[Pass]) -> Iterator[tuple[int, int]]:
    """The stages and micro-batches that belong together: all stages of a copy in which a micro-batch is seen at all."""
    depth = order.depth
    for copy, micro_batch in sorted({(stage // depth, micro_batch) for _, stage, micro_batch in counts}):
        for stage in range(copy * depth, (copy + 1) * depth):
            yield stage, micro_batch


def _early(order: Order) -> Iterator[Fault]:
    """ORD005: on its own stage, a backward pass before its forward pass, or W before I."""
    present, done, early = set[tuple[str, int, int]](_all(order.ranks)), set[tuple[str, int, int]](), []
    for operation in chain.from_iterable(order.ranks):
        both = passes(operation)
        for kind, stage, micro_batch in both:
            need = ("I" if kind == "W" else "F", stage, micro_batch)
            if kind != "F" and need not in done and need in present:
                early.append(f"{named((kind, stage, micro_batch))} before {named(need)}")
        done.update(both)
    rule = "on each stage F comes before B and I, and I before W; a pair begins when both can"
    yield from _fault("ORD005", "a pass stands before what it needs", rule, early, "move it after what it needs")


# --- waiting --------------------------------------------------------------------------------------------------------


class Waiting(NamedTuple):
    """A rank that has come to a pass and waits for another."""

    rank: int
    at: Pass
    need: Pass


def _stuck(order: Order) -> Iterator[Fault]:
    """ORD006, naming the passes that wait for each other."""
    if circle := waiting_for_ever(order):
        first, last = circle[0], circle[-1]
        texts = [f"{named(each.at)} on rank {each.rank} waits for {named(each.need)}" for each in circle]
        rule = "no pass waits for itself, through what it needs and the order of the ranks"
        fix = f"on rank {first.rank}, do {named(last.need)} before {named(first.at)}"
        yield Fault("ORD006", "ranks wait for each other for ever", rule, few(texts, 8), fix)


def waiting_for_ever(order: Order) -> list[Waiting]:
    """The circle of ranks in which each waits for the next; nothing where the order runs to its end.

    A pass needs the same micro-batch of the stage before it; backward, of the stage after it.
    """
    rows = [[passes(operation) for operation in row] for row in order.ranks]
    at, done = [0] * len(rows), set[Given]()
    sleeping: dict[Given, int] = {}
    awake = list(range(len(rows)))
    while awake:
        rank = awake.pop()
        while at[rank] < len(rows[rank]):
            both = rows[rank][at[rank]]
            if (need := _need(both, order.depth, done)) is not None:
                sleeping[need] = rank
                break
            at[rank] += 1
            for kind, stage, micro_batch in both:
                if kind != "W":
                    gives = (kind == "F", stage, micro_batch)
                    done.add(gives)
                    if gives in sleeping:
                        awake.append(sleeping.pop(gives))
    return _circle(order, {rank: (rows[rank][at[rank]], need) for need, rank in sleeping.items()})


def _need(both: tuple[Pass, ...], depth: int, done: set[Given]) -> Given | None:
    """The first thing of another stage that an operation needs and that is not done."""
    for kind, stage, micro_batch in both:
        if kind == "F":
            if stage % depth and (True, stage - 1, micro_batch) not in done:
                return (True, stage - 1, micro_batch)
        elif kind != "W" and (stage + 1) % depth and (False, stage + 1, micro_batch) not in done:
            return (False, stage + 1, micro_batch)
    return None


def _circle(order: Order, sleepers: dict[int, tuple[tuple[Pass, ...], Given]]) -> list[Waiting]:
    """From any rank that waits to the rank it waits for, until one comes again."""
    found: dict[int, Waiting] = {}
    rank = min(sleepers, default=-1)
    while rank in sleepers and rank not in found:
        both, (forward, stage, micro_batch) = sleepers[rank]
        home = order.rank_of(stage)
        of_it = (each for each in _all((order.ranks[home],)) if each[1:] == (stage, micro_batch))
        need = next(each for each in of_it if each.kind in ("F" if forward else "BI"))
        at = next(each for each in both if each.micro_batch == micro_batch and (each.kind == "F") == forward)
        found[rank] = Waiting(rank, at, need)
        rank = home
    return [*found.values()][[*found].index(rank) :] if found else []
