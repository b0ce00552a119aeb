"""The timeline of an order: when each rank does what, how long it idles and why, what it holds, what the step takes."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..shown import Shown
from .entries import Entries, Sent, entries, sent
from .passes import Order
from .path import longest
from .program import Ints, Program, program
from .repeat import Repeat, leave_out, leave_out_of, put_back, put_back_entries
from .running import load, run
from .streams import Stream, gathers, reduces, streams
from .times import Numbers, Table, Times

CAUSES = ("fill", "drain", "dependency", "communication")


@dataclass(frozen=True, eq=False)
class Track:
    """What one rank does, as arrays in order. Kinds: F, B, I, W, P (forward and backward together), R (recompute)."""

    rank: int
    start: Numbers
    end: Numbers
    kind: NDArray[np.str_]
    stage: Ints
    micro_batch: Ints
    back_stage: Ints  # of a pair's backward pass; -1 elsewhere
    back_micro_batch: Ints
    wait: Numbers  # the idle time in front
    flight: Numbers  # its last part, only because a message was on its way or weights were not gathered
    wait_cause: NDArray[np.str_]  # what most of it waited for; "" where there is none
    busy: float
    idle_by_cause: dict[str, float]  # fill, drain, dependency, communication
    in_flight: tuple[Numbers, Ints]  # chunks' activations held: from when on, how many
    peak_in_flight: int  # of them

    @property
    def idle(self) -> float:
        """Time without work, up to the end of the step."""
        return sum(self.idle_by_cause.values())


@dataclass(frozen=True, eq=False)
class Timeline(Shown):
    """One step of a pipeline. Times count from 0, in the unit of the durations, whole if those were."""

    name: str
    pp: int
    chunks: float  # of a whole model, on a rank
    micro_batches: int
    entries: Entries
    messages: Sent
    streams: tuple[Stream, ...]  # collectives of each rank, where there are any
    exposed: float = 0  # what the step is longer by because of its collectives
    repeats: Repeat | None = None
    short: "Timeline | None" = None  # the step without what is left out

    @cached_property
    def makespan(self) -> float:
        """When the last operation or collective ends: what a step takes with a barrier behind it."""
        ends = [self.entries.end, *(stream.end for stream in self.streams)]
        return max((end.max().item() for end in ends if len(end)), default=0)

    @cached_property
    def span(self) -> float:
        """The longest time from a rank's own first start to its own last end: a step without a barrier."""
        return max(((track.end[-1] - track.start[0]).item() for track in self.ranks if len(track.start)), default=0)

    @cached_property
    def busy(self) -> float:
        """Work of all ranks."""
        return sum(track.busy for track in self.ranks)

    @property
    def idle(self) -> float:
        """Idle time of all ranks, up to the end of the step."""
        return self.makespan * self.pp - self.busy

    @property
    def bubble_share(self) -> float:
        """Share of all accelerator-time that idles."""
        return self.idle / (self.makespan * self.pp) if self.makespan else 0

    @property
    def span_share(self) -> float:
        """The same where every rank is held for the longest span only, not from the first start to the last end."""
        return 1 - self.busy / (self.span * self.pp) if self.span else 0

    @cached_property
    def idle_by_cause(self) -> dict[str, float]:
        """Idle time of all ranks by cause."""
        return {cause: sum(track.idle_by_cause[cause] for track in self.ranks) for cause in CAUSES}

    @property
    def peak_in_flight(self) -> tuple[float, ...]:
        """For each rank, the micro-batches whose activations it holds at most; a chunk's are one of `chunks` parts."""
        return tuple(track.peak_in_flight / self.chunks for track in self.ranks)

    @cached_property
    def ranks(self) -> tuple[Track, ...]:
        """One track a rank."""
        edges = np.searchsorted(self.entries.rank, np.arange(self.pp + 1)).tolist()
        parts = (self.entries.part(slice(*ends)) for ends in pairwise(edges))
        return tuple(_track(rank, part, self.makespan, self.repeats) for rank, part in enumerate(parts))

    def critical_path(self) -> list[tuple[int, int]]:
        """Operations that the step waits for, one after the other, as (rank, index in its track).

        It begins where an operation waited for no other. Where a steady state is left out it is the path of the step
        without it; where the step ends with a reduction, the path ends with the operation that this waited for.
        """
        if self.short is not None:
            return self.short.critical_path()
        return longest(self.entries, self.messages, self.streams)

    def without(self, repeat: Repeat) -> "Timeline":
        """This step as the parts of a longer one, whose steady state is left out."""
        return replace(
            self,
            micro_batches=self.micro_batches + repeat.skipped,
            entries=leave_out(self.entries, repeat),
            messages=leave_out(self.messages, repeat),
            streams=tuple(leave_out_of(stream, repeat) for stream in self.streams),
            repeats=repeat,
            short=self,
        )

    def expand(self) -> "Timeline":
        """With every operation, where a steady state was left out."""
        if self.repeats is None:
            return self
        messages = put_back(self.messages, self.repeats)[0].in_order()
        work = put_back_entries(self.entries, self.repeats)
        return replace(self, entries=work, messages=messages, repeats=None, short=None)


def simulate(order: Order, times: Times) -> Timeline:
    """Every operation as early as its rank and what it needs allow.

    Raises InputError: SCH031 to SCH033 for durations, SCH041 to SCH046 for an order that nobody can follow.
    """
    found, table = program(order), times.table(order.depth, order.copies)
    timeline = timed(found, table)
    if not timeline.streams:
        return timeline
    bare = times.alone().table(order.depth, order.copies)
    return replace(timeline, exposed=timeline.makespan - timed(found, bare).makespan)


def timed(program: Program, table: Table) -> Timeline:
    """The timeline of an order that has been read."""
    order = program.order
    jobs, earliest = gathers(program, table)
    work = load(program, table)._replace(earliest=earliest)
    times = run(program, work)
    jobs += reduces(program, table, times.end, jobs)
    pp = len(order.ranks)
    return Timeline(
        order.name,
        pp,
        order.depth / pp,
        order.micro_batches,
        entries(program, work, times),
        sent(program, times),
        streams(pp, jobs, table.gather.dtype),
    )


def _track(rank: int, part: Entries, makespan: float, repeat: Repeat | None) -> Track:
    first = np.arange(len(part.start)) == 0
    late = part.flight * 2 >= part.wait
    cause = np.array(["", "fill", "communication", "dependency"])[
        np.select([part.wait == 0, first, late], [0, 1, 2], 3)
    ]
    times = repeat.copies(part.start) if repeat else np.ones(len(part.start), np.int64)
    fill = part.wait[:1].sum().item()
    flight = (part.flight * times)[1:].sum().item()
    needed = ((part.wait - part.flight) * times)[1:].sum().item()
    drain = makespan - part.end.max().item() if len(part.end) else makespan
    idle = dict(zip(CAUSES, (fill, drain, needed, flight)))
    busy = ((part.end - part.start) * times).sum().item()
    columns = (part.start, part.end, part.kind, part.stage, part.micro_batch, part.back_stage, part.back_micro_batch)
    return Track(rank, *columns, part.wait, part.flight, cause, busy, idle, *_in_flight(part))


def _in_flight(part: Entries) -> tuple[tuple[Numbers, Ints], int]:
    """The chunks whose activations are held, as steps in time, and the most of them."""
    change = np.stack([part.held, -part.freed], 1).ravel()
    level = change.cumsum()
    at = np.flatnonzero(change)
    time = np.stack([part.start, part.end], 1).ravel()
    return (time[at], level[at]), int(level.max(initial=0))
