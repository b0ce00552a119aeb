"""Checkpoints of a chain of equal layers, in closed form: uniform segments, and the binomial plan (Revolve).

Two counts of the same plan, which differ by one forward pass: *advances*, forward steps that keep no tape (the last
run of a layer, which makes its tape, is not counted), and *extra*, advances beyond the one sweep that training does
anyway. Slots hold inputs of layers, the input of the chain among them.
"""

from collections.abc import Iterator
from functools import cache
from math import comb

from ..formula import sqrt
from ..quantities import Count

Action = tuple[str, int, int]  # what is done, with which layer, and the layer behind the last one it runs


def best_tape_segments(layers: Count, tape: Count) -> Count:
    """Segments g that store least where a layer's tape is c of its inputs: g = sqrt(c L) of g + (L/g) c.

    Beyond c = L that is more than L: then every layer is a segment of its own.
    """
    return sqrt(tape * layers)


def uniform_slots(layers: Count, segments: Count) -> Count:
    """Slots of g uniform segments on a chain whose layers need their input alone: g + L/g - 1."""
    return segments + layers / segments - 1


def uniform_extra(layers: Count, segments: Count) -> Count:
    """Forward steps that g uniform segments add, where the last segment is kept: (g - 1)(L/g - 1)."""
    return (segments - 1) * (layers / segments - 1)


def reach(slots: int, repeats: int) -> int:
    """Layers that so many slots serve if no layer runs more often than `repeats` times: C(s + t, s)."""
    return comb(slots + repeats, slots)


def repeats(layers: int, slots: int) -> int:
    """How often a layer runs at most in the best plan: the least t with C(s + t, s) >= L."""
    times, held = 0, 1
    while held < layers:
        times += 1
        held = held * (slots + times) // times
    return times


def advances(layers: int, slots: int) -> int:
    """Forward steps of the best plan that keep no tape: t L - C(s + t, s + 1).

    Source: Griewank and Walther 2000 (Revolve); exact for L equal layers and s slots.
    """
    times = repeats(layers, slots)
    return times * layers - comb(slots + times, slots + 1)


def extra_forwards(layers: int, slots: int) -> int:
    """Forward steps of the best plan beyond the one sweep of training."""
    return advances(layers, slots) - (layers - 1)


def slots_for(layers: int, times: int) -> int:
    """The fewest slots with which no layer runs more than so often."""
    slots = 1
    while reach(slots, times) < layers:
        slots += 1
    return slots


@cache
def _first_part(layers: int, slots: int) -> int:
    """Layers before the first checkpoint of the best plan, behind the chain's input."""
    times = repeats(layers, slots)
    return min(reach(slots, times - 1), layers - reach(slots - 1, times - 1))


def revolve(layers: int, slots: int) -> Iterator[Action]:
    """The best plan, action by action: keep an input, advance without tape, run a layer both ways, free an input.

    `("keep", i, i)`, `("advance", i, k)` runs layers i .. k - 1 from the input of i, `("back", i, i + 1)`,
    `("free", i, i)`. The input of layer 0 is kept first. An advance begins at the kept input that stands last.
    """
    yield "keep", 0, 0
    waiting: list[tuple[int, int, int, bool]] = [(0, layers, slots, False)]  # from, to, slots, whether it was advanced
    while waiting:
        start, end, left, moved = waiting.pop()
        if moved:
            yield "free", start, start
        elif end - start == 1:
            yield "back", start, end
        elif left == 1:
            for last in range(end - 1, start, -1):
                yield "advance", start, last
                yield "back", last, last + 1
            yield "back", start, start + 1
        else:
            middle = start + _first_part(end - start, left)
            yield "advance", start, middle
            yield "keep", middle, middle
            waiting += [(start, middle, left, False), (middle, middle, 0, True), (middle, end, left - 1, False)]
    yield "free", 0, 0
