"""What a schedule is before any number is known, what it asks of its numbers, and the faults of those that do not fit.

N micro-batches make a group of an interleaved schedule; P, v and M are its ranks, chunks a rank and micro-batches.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ...errors import Fault, quoted
from ..passes import Operation, Placement

Chunks = Literal["one", "two", "any", "several", "even"]
MOST_PASSES = 2**24  # of one order: more than a gigabyte of them


class Shape(NamedTuple):
    """The numbers of a schedule: ranks, micro-batches, chunks a rank, micro-batches a group (0: its own rule)."""

    pp: int
    micro_batches: int
    vpp: int = 1
    group: int = 0


def nothing_said(shape: Shape) -> str:
    """Of a schedule whose picture shows all of it."""
    return ""


@dataclass(frozen=True)
class OrderFacts:
    """What is true of a schedule whatever its numbers."""

    name: str
    chunks: Chunks  # a rank: one, two, any number, two and more, or an even number
    placement: Placement
    copies: int  # of the weights
    needs: str  # of P, v and M, in words
    said: Callable[[Shape], str] = nothing_said  # what a picture of it does not show
    versions: Callable[[int, int], int] = lambda pp, rank: 1  # of the weights of a stage, kept at once
    staleness: Callable[[int, int], int] = lambda pp, rank: 0  # updates by which a gradient's weights are old

    def asynchronous(self, pp: int) -> bool:
        """Whether no step ends: gradients are of weights that have changed since."""
        return any(self.staleness(pp, rank) for rank in range(pp))

    def weights_held(self, pp: int, rank: int) -> int:
        """Weights that a rank holds, in those of its share of the model."""
        return self.copies * self.versions(pp, rank)

    def embedding_ranks(self, pp: int) -> tuple[int, ...]:
        """The ranks that hold the embedding: the first; where a model runs in each direction, both ends."""
        return tuple(dict.fromkeys((0, pp - 1))) if self.placement == "both" else (0,)

    def head_ranks(self, pp: int) -> tuple[int, ...]:
        """The ranks that hold the head: the last; on a V or in waves, the first; where a model runs each way, both."""
        return {"loop": (pp - 1,), "folded": (0,), "snake": (0,), "both": self.embedding_ranks(pp)}[self.placement]


def no_faults(shape: Shape) -> Iterator[Fault]:
    """Of a schedule that takes any number of ranks and micro-batches."""
    yield from ()


@dataclass(frozen=True)
class Schedule:
    """One schedule: its facts, what each rank does, and what is wrong with a shape that it cannot take."""

    facts: OrderFacts
    ranks: Callable[[Shape], Iterable[Iterable[Operation]]]
    faults: Callable[[Shape], Iterator[Fault]] = no_faults
    grouped: bool = False


def described(shape: Shape) -> str:
    """The numbers of a shape, as a fault shows them."""
    chunks = f", vpp {shape.vpp}" if shape.vpp > 1 else ""
    group = f", groups of {shape.group}" if shape.group else ""
    return f"pp {shape.pp}{chunks}, {shape.micro_batches:,} micro-batches{group}"


def nearest_number(number: int, works: Callable[[int], bool], most: int) -> int | None:
    """The number from 1 to `most` that works and is closest to this one; of two, the larger."""
    for distance in range(max(number, most) + 1):
        for near in (number + distance, number - distance):
            if 1 <= near <= most and works(near):
                return near
    return None


def micro_batch_fault(name: str, shape: Shape, rule: str, works: Callable[[int], bool]) -> Iterator[Fault]:
    """SCH004, with the nearest number of micro-batches that works."""
    if not works(shape.micro_batches):
        near = nearest_number(shape.micro_batches, works, shape.micro_batches + 4 * shape.pp + 2 * shape.group)
        fix = f"--micro-batches {near}" if near else "another schedule"
        yield Fault("SCH004", f"{name} cannot take this number of micro-batches", rule, described(shape), fix)


def range_faults(shape: Shape) -> Iterator[Fault]:
    """Numbers that no schedule can take: SCH002, and SCH007 for an order too long to be listed."""
    wrong = False
    for name, value in shape._asdict().items():
        least = 0 if name == "group" else 1
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            wrong = True
            rule = f"{name} is a whole number from {least} on"
            yield Fault("SCH002", f"{name} is not a count", rule, f"{name} {quoted(value)}", f"{name} {least}")
    if not wrong and (passes := 2 * shape.pp * shape.micro_batches * shape.vpp) > MOST_PASSES:
        rule = f"an order lists at most {MOST_PASSES:,} forward and backward passes"
        fix = "fewer micro-batches: the middle of an order repeats"
        yield Fault("SCH007", "the order is too long to list", rule, f"{described(shape)}: {passes:,} passes", fix)


def chunk_faults(schedule: Schedule, shape: Shape) -> Iterator[Fault]:
    """Chunks that this schedule does not have (SCH003), and a group where it has none (SCH006)."""
    name, chunks = schedule.facts.name, schedule.facts.chunks
    v = shape.vpp
    legal = {"one": v == 1, "two": v <= 2, "any": True, "several": v >= 2, "even": v % 2 == 0}[chunks]
    if not legal:
        known = {"one": ("one chunk", 1), "two": ("two chunks", 2), "even": ("two chunks a wave", v + 1)}
        words, vpp = known.get(chunks, ("two chunks or more", 2))
        rule = f"{name} gives each rank {words}"
        yield Fault("SCH003", f"{name} cannot take this number of chunks", rule, f"vpp {shape.vpp}", f"--vpp {vpp}")
    if shape.group and not schedule.grouped:
        rule = "only interleaved and interleaved_zb take micro-batches in groups, and seq1f1b has slices"
        yield Fault("SCH006", f"{name} has no groups", rule, f"group {shape.group}", "group 0")
