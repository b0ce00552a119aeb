"""A timeline as a Perfetto trace: a process a rank, a track a stream, a flow a message, a counter of what is held."""

from collections import defaultdict
from collections.abc import Iterator

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
    sends, receives = _flows(timeline)
    tracks = []
    for rank in timeline.ranks:
        slices = list(_slices(rank, nanoseconds, sends, receives))
        process = f"rank {rank.rank}"
        tracks.append(Track(process, "compute", slices))
        tracks += _streams(timeline, rank.rank, nanoseconds)
        times, held = rank.in_flight
        steps = [(round(time * nanoseconds), level) for time, level in zip(times.tolist(), held.tolist())]
        tracks.append(Track(process, "chunks' activations held", steps=steps))
    return trace(tracks)


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


def _streams(timeline: Timeline, rank: int, nanoseconds: float) -> Iterator[Track]:
    for stream in timeline.streams:
        if stream.rank == rank:
            columns = (stream.start.tolist(), stream.end.tolist(), stream.kind.tolist(), stream.stage.tolist())
            slices = [
                Slice(CATEGORIES[kind], "collective", round(a * nanoseconds), round(b * nanoseconds), {"stage": stage})
                for a, b, kind, stage in zip(*columns)
            ]
            yield Track(f"rank {rank}", "collectives", slices)


def _flows(timeline: Timeline) -> tuple[Flows, Flows]:
    """For each operation, the messages that it sends and those that it waits for."""
    place = {key: (rank.rank, at) for rank in timeline.ranks for at, keys in enumerate(_passes(rank)) for key in keys}
    sends, receives = defaultdict(list), defaultdict(list)
    columns = (timeline.messages.backward, timeline.messages.stage, timeline.messages.micro_batch)
    for flow, (backward, stage, batch) in enumerate(zip(*(column.tolist() for column in columns)), 1):
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
