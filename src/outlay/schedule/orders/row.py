"""What one rank does, written down pass by pass."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain, count

from ..passes import Kind, Operation, Pair, Pass, many_passes


def alternate(first: Iterable[Pass], second: Iterable[Pass]) -> list[Pass]:
    """One of each in turn, as long as both last."""
    return list(chain.from_iterable(zip(first, second)))


def blocks(parts: Iterable[tuple[str, int]], stages: Mapping[str, int]) -> list[Pass]:
    """Passes as (kinds and chunks, times) in a row, `F1 F0` three times; micro-batches of each count up by themselves.

    `stages` says which stage a chunk is.
    """
    names = [name for words, times in parts for name in words.split() * times]
    kinds, chunks = zip(*names) if names else ((), ())
    counts: dict[str, count[int]] = {name: count() for name in names}
    return many_passes(kinds, map(stages.__getitem__, chunks), (next(counts[name]) for name in names))


class Row:
    """What one rank does. The micro-batches of a stage count up by themselves, from 0 or from where `first` says."""

    def __init__(self, first: Mapping[int, int] | None = None) -> None:
        self.operations: list[Operation] = []
        self._forwards = defaultdict(int, first or {})
        self._backwards = defaultdict(int, first or {})
        self._waiting: list[Pass] = []  # weight gradients whose input gradient is done, oldest first

    def forward(self, stage: int) -> None:
        """The next micro-batch forward."""
        self.operations.append(self._next("F", stage))

    def backward(self, stage: int) -> None:
        """The next micro-batch backward: both gradients."""
        self.operations.append(self._next("B", stage))

    def input_gradient(self, stage: int) -> None:
        """The next micro-batch backward: the input gradient. Its weight gradient waits."""
        gradient = self._next("I", stage)
        self.operations.append(gradient)
        self._waiting.append(gradient._replace(kind="W"))

    def weight_gradient(self, stage: int | None = None) -> None:
        """The weight gradient that waits longest: of this stage, or of any."""
        oldest = next(each for each in self._waiting if stage in (None, each.stage))
        self._waiting.remove(oldest)
        self.operations.append(oldest)

    def pair(self, forward: int, backward: int) -> None:
        """The next forward of a stage together with the next backward of another."""
        self.operations.append(Pair(self._next("F", forward), self._next("B", backward)))

    def _next(self, kind: Kind, stage: int) -> Pass:
        counts = self._forwards if kind == "F" else self._backwards
        counts[stage] += 1
        return Pass(kind, stage, counts[stage] - 1)
