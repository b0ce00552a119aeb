"""The best recompute of a chain of unlike layers under a memory budget, by a program over the chain.

The cost convention is one everywhere. Memory is counted in whole units, without the input of the chain. A layer that
is run with its tape keeps one of its `ways`, its output among them, so the input of the next layer then stands. A layer
that is run without its tape leaves its output in a register, which costs nothing until it is kept: as a checkpoint of
`entry` units, or inside the tape of the next layer (the register branch), which then keeps what it `reads` of it.

    f(i, j, m): least time of layers i .. j - 1 with m units, the input of i standing; the least of
      tape i:        forward_i + backward_i + again + f(i + 1, j, m - kept), for each way with whole_i <= m
      advance to k:  forward_i + .. + forward_(k-1) + f(i, k, m)
                     + the least of f(k, j, m - entry_k), and of tape k with m - reads_k

For equal layers it is optimal; for unlike ones among plans that keep a checkpoint until it has been used (an unbounded
search was seen to beat it by up to 18 % on chains of five). Sources: Griewank and Walther 2000; Beaumont et al. 2019
(Rotor), whose stricter variant has no register branch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.floating[Any]]
Key = tuple[int, ...]  # the kinds of some layers in a row


@dataclass(frozen=True)
class Way:
    """One way to keep a layer's tape: what of it stands, and the forward time that brings the rest back."""

    kept: int  # units: the layer's output is among them, its input is not
    again: float = 0.0  # s
    dropped: tuple[str, ...] = ()  # operations that run again


@dataclass(frozen=True)
class Link:
    """One layer of a chain."""

    forward: float  # s
    backward: float  # s
    entry: int  # units of a checkpoint of its input
    ways: tuple[Way, ...]
    whole: int  # units that stand while its backward pass runs, its input apart: the whole tape
    reads: int = 0  # units of its input that its backward pass reads


def tape_link(tape: int, forward: float = 1.0, backward: float = 0.0, entry: int = 1) -> Link:
    """A layer whose tape is kept as a whole or not at all."""
    return Link(forward, backward, entry, (Way(tape),), tape)


def lower(best: Values, values: Values, units: int, more: float = 0.0) -> None:
    """Lower the best to the values at m - units, which is what is left when so many units are taken, and more time."""
    if units < len(best):
        np.minimum(best[units:], values[: len(best) - units] + more, out=best[units:])


def nothing(most: int) -> Values:
    """No time is enough, for any memory."""
    return np.full(most + 1, np.inf)


@dataclass
class Program:
    """All f(i, j, m) of a chain, for m = 0 .. `most`. Layers in a row that are alike are solved once."""

    links: Sequence[Link]
    most: int
    kinds: Key = ()
    table: dict[Key, Values] = field(default_factory=dict)  # f, by the kinds of layers i .. j - 1
    register: dict[Key, Values] = field(default_factory=dict)  # the same where the input of i is in the register
    cells: int = 0  # elements computed

    def __post_init__(self) -> None:
        found = {link: kind for kind, link in reversed(list(enumerate(self.links)))}
        self.kinds = tuple(found[link] for link in self.links)

    def solve(self, longest: int = 0) -> "Program":
        """Fill the tables of all parts of up to so many layers; 0: of the whole chain."""
        self.table[()] = np.zeros(self.most + 1)
        for length in range(1, (longest or len(self.links)) + 1):
            for start in range(len(self.links) - length + 1):
                key = self.kinds[start : start + length]
                if key not in self.table:
                    self._fill(key)
        return self

    def _fill(self, key: Key) -> None:
        link = self.links[key[0]]
        behind = self.table[key[1:]]
        taped, register = nothing(self.most), nothing(self.most)
        for way in link.ways:
            lower(taped, behind, way.kept, way.again)
        taped += link.forward + link.backward
        taped[: min(link.whole, self.most + 1)] = np.inf
        best, forward = taped.copy(), 0.0
        for place in range(1, len(key)):
            forward += self.links[key[place - 1]].forward
            np.minimum(best, self.register[key[place:]] + self.table[key[:place]] + forward, out=best)
        self.cells += (len(link.ways) + len(key) + 1) * len(best)
        self.table[key] = best
        lower(register, best, link.entry)
        lower(register, taped, link.reads)
        self.register[key] = register

    def extra(self, units: int) -> float:
        """Time beyond one forward and one backward pass of each layer; infinite where so little does not do."""
        return float(self.table[self.kinds][min(units, self.most)]) - plain_time(self.links)


def plain_time(links: Sequence[Link]) -> float:
    """One forward and one backward pass of each layer."""
    return sum(link.forward + link.backward for link in links)


# --- several passes in flight ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """What one forward pass does with a layer, or with several in a row, until its backward pass."""

    start: int
    end: int
    way: Way | None  # of one layer that keeps its tape; None: nothing is kept, and all of it is run again


@dataclass
class Sweep:
    """Plans of a chain with several passes in flight, where `spare` units stand beside what all of them keep.

    After its forward pass each keeps t units. A backward pass has `spare` units and what the layers behind have freed:
    spare + near x freed. So a plan takes passes x t + spare units. With one pass in flight, the least over all spares
    is f(0, L, m). `near` is the share of what is kept that is not moved to the host.
    """

    program: Program
    spare: int
    most: int  # units that one pass may keep
    near: float = 1.0
    longest: int = 0  # layers in a row that may be run again from one input; 0: all of them
    stands: list[Values] = field(default_factory=list)  # by layer and t: least time, the layer's input kept
    floats: list[Values] = field(default_factory=list)  # the same, its input in the register

    def __post_init__(self) -> None:
        count = len(self.program.links)
        end = nothing(self.most)
        end[0] = 0.0
        self.stands, self.floats = [end] * (count + 1), [end] * (count + 1)
        for place in range(count - 1, -1, -1):
            self._fill(place)

    def _fill(self, place: int) -> None:
        link, room = self.program.links[place], self.room()
        taped, floats = nothing(self.most), nothing(self.most)
        for way in link.ways:
            lower(taped, self.stands[place + 1], way.kept, way.again)
        taped += link.forward + link.backward
        taped[room < link.whole] = np.inf
        best, forward = taped.copy(), 0.0
        for end in range(place + 1, self._last(place) + 1):
            forward += self.program.links[end - 1].forward
            again = self.program.table[self.program.kinds[place:end]][room]
            np.minimum(best, self.floats[end] + again + forward, out=best)
        self.program.cells += (len(link.ways) + self._last(place) - place) * len(best)
        self.stands[place] = best
        lower(floats, best, link.entry)
        lower(floats, taped, link.reads)
        self.floats[place] = floats

    def _last(self, place: int) -> int:
        return min(len(self.program.links), place + (self.longest or len(self.program.links)))

    def room(self) -> "NDArray[np.intp]":
        """Units that a backward pass may use, by what the layers behind kept and freed."""
        freed = np.arange(self.most + 1)
        units: NDArray[np.intp] = np.minimum(self.spare + np.floor(self.near * freed), self.program.most).astype(int)
        return units

    def extra(self) -> Values:
        """Extra time by the units that a pass keeps, exactly so many."""
        return self.stands[0] - plain_time(self.program.links)

    def plan(self, kept: int) -> tuple[Kept, ...]:
        """The best plan in which a pass keeps exactly so many units."""
        found, place, left, standing = [], 0, kept, True
        while place < len(self.program.links):
            values = self.stands if standing else self.floats
            step, taken, place, standing = self._step(place, left, standing, float(values[place][left]))
            left -= taken
            found += [step] if step else []
        return tuple(found)

    def _step(self, place: int, left: int, standing: bool, value: float) -> tuple[Kept | None, int, int, bool]:
        """What reaches this value: layers decided on, units taken, the next layer, and whether its input stands."""
        link, room = self.program.links[place], self.room()
        reads = 0 if standing else link.reads
        for way in link.ways:
            rest = left - reads - way.kept
            if rest >= 0 and room[left - reads] >= link.whole:
                time = float(self.stands[place + 1][rest]) + way.again + (link.forward + link.backward)
                if _same(time, value):
                    return Kept(place, place + 1, way), reads + way.kept, place + 1, True
        if not standing:
            return None, link.entry, place, True
        forward = 0.0
        for end in range(place + 1, self._last(place) + 1):
            forward += self.program.links[end - 1].forward
            again = float(self.program.table[self.program.kinds[place:end]][room[left]])
            if _same(float(self.floats[end][left]) + again + forward, value):
                return Kept(place, end, None), 0, end, False
        raise AssertionError(f"no step reaches {value} at layer {place} with {left} units")


def _same(time: float, value: float) -> bool:
    return abs(time - value) <= 1e-9 * max(1e-9, abs(value))
