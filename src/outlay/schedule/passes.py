"""Passes of a pipeline: what a rank does, in which order, and where each stage stands.

Virtual stages are numbered along the model, 0 .. S - 1, S = P v. A pass is of one micro-batch through one stage.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from operator import itemgetter
from typing import Literal, NamedTuple

Kind = Literal["F", "B", "I", "W"]  # forward, full backward, input gradient, weight gradient
Placement = Literal["loop", "folded", "snake", "both"]  # stage s on rank s mod P; a V; waves; a model each way


class Pass(NamedTuple):
    """One pass: `F`, `B`, `I` or `W` of a micro-batch through a virtual stage."""

    kind: Kind
    stage: int
    micro_batch: int


_PASS = partial(tuple.__new__, Pass)  # a third of the time of Pass(..), where there are a hundred thousand


def many_passes(kinds: Iterable[str], stages: Iterable[int], micro_batches: Iterable[int]) -> "list[Pass]":
    """Passes from columns, as many as the shortest has."""
    return [*map(_PASS, zip(kinds, stages, micro_batches))]


def of_kind(kind: Kind, passes: "list[Pass]") -> "list[Pass]":
    """The same stages and micro-batches, another kind."""
    return many_passes(repeat(kind), map(itemgetter(1), passes), map(itemgetter(2), passes))


class Pair(NamedTuple):
    """A forward and a backward pass that run together, of different micro-batches or chunks."""

    forward: Pass
    backward: Pass


Operation = Pass | Pair


@dataclass(frozen=True)
class Order:
    """What each rank does, in order. Its stages are placed by `rank_of`.

    Where the model is held twice, the stages of the second copy are numbered after those of the first, and a
    micro-batch goes through one copy: nothing passes from stage `depth - 1` to stage `depth`.
    """

    name: str
    ranks: tuple[tuple[Operation, ...], ...]
    stages: int
    micro_batches: int
    rank_of: Callable[[int], int]  # the rank of a virtual stage
    copies: int = 1  # of the model

    @property
    def depth(self) -> int:
        """Stages that a micro-batch goes through. A stage with the embedding is a multiple; one with the head follows.

        So `stage % depth` is 0 at the embedding and `depth - 1` at the head, in each copy.
        """
        return self.stages // self.copies


def loop(pp: int) -> Callable[[int], int]:
    """Stage s stands on rank s mod P: the chunks of a rank are P stages apart."""
    return lambda stage: stage % pp


def folded(pp: int) -> Callable[[int], int]:
    """A V: down the ranks and back up, so the last stage stands on the first rank."""
    return lambda stage: stage if stage < pp else 2 * pp - 1 - stage


def snake(pp: int) -> Callable[[int], int]:
    """Waves: down the ranks and back up, again and again; a V is one of them."""
    return lambda stage: stage % pp if stage // pp % 2 == 0 else pp - 1 - stage % pp
