"""Orders: what each rank of a pipeline does, one file a family of schedules, each written as its paper writes it."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import Fault, InputError, nearest, quoted
from ..passes import Order, folded, loop, snake
from .both_ways import CHIMERA, GEMS
from .controllable import V_HALF, V_MIN
from .dualpipe import DUALPIPE, DUALPIPE_V
from .facts import OrderFacts, Schedule, Shape, chunk_faults, range_faults
from .gpipe import GPIPE, LOOPED_BFS
from .hanayo import HANAYO
from .interleaved import INTERLEAVED, rounds
from .one_f_one_b import ONE_F_ONE_B
from .one_f_one_b_v import ONE_F_ONE_B_V
from .same_rows import BPIPE, PIPEDREAM, PIPEDREAM_2BW
from .seq1f1b import SEQ1F1B
from .zbv import ZBV
from .zero_bubble import INTERLEAVED_ZB, ZB_H1, ZB_H2

__all__ = ["OrderFacts", "facts", "names", "order", "order_in_rounds", "rounds"]

_ALL = (
    GPIPE, ONE_F_ONE_B, INTERLEAVED, LOOPED_BFS, INTERLEAVED_ZB, ZB_H1, ZB_H2, ZBV, DUALPIPE, DUALPIPE_V, V_HALF, V_MIN,
    ONE_F_ONE_B_V, CHIMERA, GEMS, HANAYO, SEQ1F1B, BPIPE, PIPEDREAM, PIPEDREAM_2BW,
)  # fmt: skip
_SCHEDULES = {schedule.facts.name: schedule for schedule in _ALL}


def names() -> tuple[str, ...]:
    """Every schedule that has an order."""
    return tuple(_SCHEDULES)


def facts(name: str) -> OrderFacts:
    """What is true of a schedule whatever its numbers. Raises InputError (SCH001) for a name that is not one."""
    return _schedule(name).facts


def order(name: str, pp: int, micro_batches: int, vpp: int = 1, group: int = 0) -> Order:
    """What each rank does. Raises InputError with everything that is wrong.

    A schedule of two chunks a rank has them whatever is said: vpp 1 is taken as 2. `group` is the number of
    micro-batches that an interleaved schedule takes through one chunk before the next; 0 leaves it to its own rule:
    pp for interleaved (Megatron-LM), equal rounds for interleaved_zb (PyTorch). For PyTorch's interleaved give
    `rounds(pp, micro_batches)`. Of seq1f1b the slices count as micro-batches, and `group` of them, 2 unless said, are
    one.
    """
    schedule, shape = _schedule(name), Shape(pp, micro_batches, vpp, group)
    found = [*range_faults(shape)] or [*chunk_faults(schedule, shape), *schedule.faults(shape)]
    if found:
        raise InputError(*found)
    with _uncollected():
        ranks = tuple(tuple(row) for row in schedule.ranks(shape))
    if schedule.facts.placement in ("loop", "snake"):
        place = loop if schedule.facts.placement == "loop" else snake
        return Order(name, ranks, pp * vpp, micro_batches, place(pp))
    return Order(name, ranks, 2 * pp, micro_batches, folded(pp), schedule.facts.copies)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the garbage collector: it would look at each of a hundred thousand passes again and again for nothing."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def order_in_rounds(name: str, pp: int, micro_batches: int, vpp: int, even: bool) -> Order:
    """The order as an engine runs it: `even` interleaves in PyTorch's equal rounds, else groups are the schedule's."""
    return order(name, pp, micro_batches, vpp, rounds(pp, micro_batches) if even and name == "interleaved" else 0)


def _schedule(name: str) -> Schedule:
    if isinstance(name, str) and name in _SCHEDULES:
        return _SCHEDULES[name]
    close = nearest(str(name), _SCHEDULES)
    rule = f"schedules with an order: {', '.join(_SCHEDULES)}"
    what = f"no schedule is called {quoted(name)}"
    raise InputError(Fault("SCH001", what, rule, quoted(name), f"--schedule {close[0] if close else '1f1b'}"))
