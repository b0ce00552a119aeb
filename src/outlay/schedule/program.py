"""An order as arrays: what each operation needs, which message brings it, and what makes an order impossible."""

from collections.abc import Iterator
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import Fault, InputError
from .passes import Operation, Order, Pair

Ints = NDArray[np.int64]
MOST_FAULTS = 5  # of one sort: an order that is wrong once is often wrong a thousand times


class Half(NamedTuple):
    """Passes of one direction, as arrays: which operation each stands in, its stage and its micro-batch."""

    operation: Ints
    kind: NDArray[np.str_]
    stage: Ints
    micro_batch: Ints

    def where(self, chosen: NDArray[np.bool_]) -> "Half":
        """Only these."""
        return Half(self.operation[chosen], self.kind[chosen], self.stage[chosen], self.micro_batch[chosen])


class Messages(NamedTuple):
    """What one rank tells another, as arrays: sender and receiver are operations, a link is a pair of ranks."""

    sender: Ints
    receiver: Ints
    boundary: Ints  # the stage before it
    link: Ints  # from rank x P + to rank
    backward: NDArray[np.bool_]


class Program(NamedTuple):
    """An order, flat: the operations of rank r are `first[r]` to `first[r + 1]`."""

    order: Order
    first: Ints
    rank: Ints  # of each operation
    forward: Half
    backward: Half  # what hands a gradient on: B and I
    weight: Half  # W
    messages: Messages


def program(order: Order) -> Program:
    """Read an order. Raises InputError (SCH041 to SCH045) with everything that no timeline can follow."""
    lengths = [len(row) for row in order.ranks]
    first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rank = np.repeat(np.arange(len(lengths)), lengths)
    passes = _passes(list(chain.from_iterable(order.ranks)))
    inside = np.isin(passes.kind, list("FBIW")) & (passes.stage >= 0) & (passes.stage < order.stages)
    inside &= (passes.micro_batch >= 0) & (passes.micro_batch < order.micro_batches)
    if not inside.all():
        raise InputError(*_outside(order, passes.where(~inside)))
    forward, backward, weight = (passes.where(np.isin(passes.kind, list(kinds))) for kinds in ("F", "BI", "W"))
    halves = [forward, backward, weight]
    places = [_places(order, half) for half in halves]
    needs = _needs(order, halves, places)
    found = [*_twice(order, rank, halves, places), *_impossible(order, first, rank, needs)]
    if found:
        raise InputError(*found)
    return Program(order, first, rank, forward, backward, weight, _messages(order, rank, needs[:2]))


def _passes(flat: list[Operation]) -> Half:
    """Every pass, the backward ones of pairs at the end."""
    main: list[Any] = flat
    pairs = [place for place, kind in enumerate(map(type, flat)) if kind is Pair]
    operation = np.array([*range(len(flat)), *pairs], np.int64)
    if pairs:
        main = [each[0] if type(each) is Pair else each for each in flat] + [flat[place][1] for place in pairs]
    kinds = "".join(map(itemgetter(0), main)).encode("utf-32-le")  # as NumPy keeps texts of one letter
    numbers = (np.fromiter(map(itemgetter(column), main), np.int64, len(main)) for column in (1, 2))
    return Half(operation, np.frombuffer(kinds, "<U1"), *numbers)


def _places(order: Order, half: Half) -> Ints:
    """Where the pass of each stage and micro-batch stands first; -1 where it does not."""
    none = np.iinfo(np.int64).max
    places = np.full((order.stages, order.micro_batches), none)
    np.minimum.at(places, (half.stage, half.micro_batch), half.operation)
    places[places == none] = -1
    return places


class Need(NamedTuple):
    """That passes need others, in words, and where both stand. The first two sorts may be met by a message."""

    words: str
    half: Half
    source: Ints
    ahead: int  # the stage of what is needed: this many further


def _needs(order: Order, halves: list[Half], places: list[Ints]) -> list[Need]:
    """The forward pass of the stage before; the backward pass of the stage after; what the same stage did before."""
    forward, backward, weight = halves
    inner = forward.where(forward.stage % order.depth > 0)
    outer = backward.where(backward.stage % order.depth < order.depth - 1)
    return [
        Need("the forward pass", inner, places[0][inner.stage - 1, inner.micro_batch], -1),
        Need("the backward pass", outer, places[1][outer.stage + 1, outer.micro_batch], 1),
        Need("the forward pass", backward, places[0][backward.stage, backward.micro_batch], 0),
        Need("the input gradient", weight, places[1][weight.stage, weight.micro_batch], 0),
    ]


def _messages(order: Order, rank: Ints, needs: list[Need]) -> Messages:
    """Those needs that another rank has to meet; what stands before on the same rank is there already."""
    columns: list[list[Any]] = []
    for need in needs:
        away = rank[need.half.operation] != rank[need.source]
        sender, receiver = need.source[away], need.half.operation[away]
        boundary = need.half.stage[away] + min(need.ahead, 0)
        link = rank[sender] * len(order.ranks) + rank[receiver]
        columns.append([sender, receiver, boundary, link, np.full(len(sender), need.ahead > 0)])
    return Messages(*(np.concatenate(parts) for parts in zip(*columns)))


# --- faults ---------------------------------------------------------------------------------------------------------


def _named(kind: str, stage: int, micro_batch: int) -> str:
    return f"{kind} of micro-batch {micro_batch} on stage {stage}"


def operation_named(order: Order, first: Ints, operation: int) -> str:
    """An operation in words, with its rank and its place there."""
    rank = int(np.searchsorted(first, operation, "right")) - 1
    found = order.ranks[rank][operation - first[rank]]
    halves = found if isinstance(found, Pair) else (found,)
    words = " with ".join(_named(*half) for half in halves)
    return f"{words} (rank {rank}, operation {operation - first[rank]})"


def _some(faults: Iterator[Fault]) -> Iterator[Fault]:
    yield from (fault for fault, _ in zip(faults, range(MOST_FAULTS)))


def _outside(order: Order, passes: Half) -> Iterator[Fault]:
    rule = f"stages are 0 to {order.stages - 1}, micro-batches 0 to {order.micro_batches - 1}"
    for kind, stage, batch in _some_rows(passes):
        yield Fault("SCH041", "a pass that does not exist", rule, _named(kind, stage, batch), "remove it")


def _some_rows(half: Half) -> list[tuple[str, int, int]]:
    rows = [column[:MOST_FAULTS].tolist() for column in half[1:]]
    return list(zip(*rows))


def _twice(order: Order, rank: Ints, halves: list[Half], places: list[Ints]) -> Iterator[Fault]:
    for half, place in zip(halves, places):
        lost = place[half.stage, half.micro_batch] != half.operation
        for kind, stage, batch in _some_rows(half.where(lost)):
            rule = "each pass of a stage and micro-batch runs once"
            yield Fault("SCH042", "a pass stands twice", rule, _named(kind, stage, batch), "remove one of them")


def _impossible(order: Order, first: Ints, rank: Ints, needs: list[Need]) -> Iterator[Fault]:
    """What is needed and is missing (SCH043), on another rank though it stays (SCH044), or later (SCH045)."""
    for need in needs:
        mine, there = need.half.operation, need.source
        same = rank[mine] == rank[there]
        sorts = {
            "SCH043": there < 0,
            "SCH044": (there >= 0) & ~same & (need.ahead == 0),
            "SCH045": (there >= mine) & same,
        }
        for code, chosen in sorts.items():
            rows = zip(_some_rows(need.half.where(chosen)), there[chosen].tolist())
            yield from (_lacking(code, need, row, order, first, place) for row, place in rows)


def _lacking(code: str, need: Need, row: tuple[str, int, int], order: Order, first: Ints, place: int) -> Fault:
    kind, stage, batch = row
    wanted = f"{need.words} of micro-batch {batch} on stage {stage + need.ahead}"
    rule = f"{kind} of a stage comes after {need.words}" + (" of the next" if need.ahead > 0 else "")
    got = _named(*row)
    if code == "SCH043":
        return Fault(code, f"an operation needs {wanted}, which is nowhere", rule, got, "add it")
    where = operation_named(order, first, place)
    if code == "SCH044":
        what = "two passes of one stage and micro-batch stand on different ranks"
        return Fault(code, what, "activations stay on their rank", f"{got}; {where}", "put them on one rank")
    return Fault(code, "an operation stands before what it needs", rule, f"{got} stands before {where}", "swap them")
