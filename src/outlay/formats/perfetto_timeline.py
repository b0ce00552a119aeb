"""A timeline as a Perfetto trace: a process a rank, a track a stream, a flow a message, a counter of what is held."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from ..schedule.timeline import Timeline
from ..schedule.timeline import Track as Rank
from .perfetto import Slice, Track, trace

CATEGORIES = {
    "F": "forward",
    "B": "backward",
    "I": "input gradient",
    "W": "weight gradient",
    "P": "forward and backward",
    "R": "recompute",
    "G": "gather of weights",
    "D": "reduction of gradients",
}
Flows = dict[tuple[int, int], list[int]]  # of an operation: (rank, index)


def timeline_trace(timeline: Timeline, nanoseconds: float) -> bytes:
    """The file. A unit of the timeline lasts `nanoseconds`. Names count micro-batches from 1, as the pictures do."""
    return trace(list(_tracks(timeline, nanoseconds)))


def timelines_trace(timelines: Mapping[str, Timeline], nanoseconds: float) -> bytes:
    """Several timelines in one file, one below the other: a rank of each is a process with the timeline's name."""
    tracks, flow = list[Track](), 1
    for name, timeline in timelines.items():
        tracks += _tracks(timeline, nanoseconds, f"{name}, ", flow)
        flow += len(timeline.messages.stage)
    return trace(tracks)


def _tracks(timeline: Timeline, nanoseconds: float, name: str = "", flow: int = 1) -> Iterator[Track]:
    """The tracks of each rank. Messages are numbered from `flow` on."""
    sends, receives = _flows(timeline, flow)
    for rank in timeline.ranks:
        process = f"{name}rank {rank.rank}"
        yield Track(process, "compute", list(_slices(rank, nanoseconds, sends, receives)))
        yield from _streams(timeline, rank.rank, nanoseconds, process)
        times, held = rank.in_flight
        steps = [(round(time * nanoseconds), level) for time, level in zip(times.tolist(), held.tolist())]
        yield Track(process, "chunks' activations held", steps=steps)


def _slices(rank: Rank, nanoseconds: float, sends: Flows, receives: Flows) -> Iterator[Slice]:
    columns = (rank.start, rank.end, rank.kind, rank.stage, rank.micro_batch, rank.back_stage, rank.back_micro_batch)
    for at, (start, end, kind, stage, batch, back_stage, back_batch) in enumerate(zip(*(c.tolist() for c in columns))):
        name = f"F {batch + 1}, B {back_batch + 1}" if kind == "P" else f"{kind} {batch + 1}"
        numbers = {"stage": stage, "micro-batch": batch + 1}
        if kind == "P":
            numbers |= {"backward stage": back_stage, "backward micro-batch": back_batch + 1}
        here = (rank.rank, at)
        flows = tuple(sends.get(here, ())), tuple(receives.get(here, ()))
        yield Slice(name, CATEGORIES[kind], round(start * nanoseconds), round(end * nanoseconds), numbers, *flows)


def _streams(timeline: Timeline, rank: int, nanoseconds: float, process: str) -> Iterator[Track]:
    for stream in timeline.streams:
        if stream.rank == rank:
            columns = (stream.start.tolist(), stream.end.tolist(), stream.kind.tolist(), stream.stage.tolist())
            slices = [
                Slice(CATEGORIES[kind], "collective", round(a * nanoseconds), round(b * nanoseconds), {"stage": stage})
                for a, b, kind, stage in zip(*columns)
            ]
            yield Track(process, "collectives", slices)


def _flows(timeline: Timeline, first: int) -> tuple[Flows, Flows]:
    """For each operation, the messages that it sends and those that it waits for, numbered from `first` on."""
    place = {key: (rank.rank, at) for rank in timeline.ranks for at, keys in enumerate(_passes(rank)) for key in keys}
    sends, receives = defaultdict(list), defaultdict(list)
    columns = (timeline.messages.backward, timeline.messages.stage, timeline.messages.micro_batch)
    for flow, (backward, stage, batch) in enumerate(zip(*(column.tolist() for column in columns)), first):
        source = place.get((backward, stage + 1 if backward else stage - 1, batch))
        target = place.get((backward, stage, batch))
        if source and target:
            sends[source].append(flow)
            receives[target].append(flow)
    return sends, receives


def _passes(rank: Rank) -> Iterator[list[tuple[bool, int, int]]]:
    """The passes of each operation that send or wait: (whether backward, stage, micro-batch)."""
    columns = (rank.kind, rank.stage, rank.micro_batch, rank.back_stage, rank.back_micro_batch)
    for kind, stage, batch, back_stage, back_batch in zip(*(column.tolist() for column in columns)):
        if kind == "P":
            yield [(False, stage, batch), (True, back_stage, back_batch)]
        else:
            yield [(kind != "F", stage, batch)] if kind in "FBI" else []
