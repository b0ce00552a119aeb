"""A timeline as a diagram: rows that differ, where they wait, what repeats, the critical path."""

from dataclasses import replace

import numpy as np

from ...schedule.timeline import Timeline, Track
from .drawing import Chart, Cut, Lane, Numbers, merged
from .fold import fold


def chart_of(
    timeline: Timeline,
    title: str,
    tick: float = 0.0,
    notes: tuple[str, ...] = (),
    whole: bool = False,
    copies: int = 1,
    critical: bool = True,
) -> Chart:
    """The diagram of a timeline. `tick` is the length of one unit of its times in seconds; 0 where they are only units.

    `whole` shows every micro-batch; else a long steady state is folded away. `critical`: with the critical path.
    """
    scale, repeat, short = tick or 1.0, timeline.repeats, timeline.short or timeline
    lanes = [_lane(track, short, scale) for track in short.ranks]
    rows, row_of = merged(lanes)
    cut = None if whole and not repeat else fold(rows, short.micro_batches, short.makespan * scale)
    missing = None
    if repeat:
        first = cut or Cut(repeat.start * scale, (repeat.start + repeat.period) * scale, repeat.micro_batches)
        late = repeat.period * repeat.times * scale
        missing = (first.start, first.start + late)
        rows = tuple(_later(row, first.start, late, repeat.skipped) for row in rows)
        cut = Cut(first.start, first.end + late, first.micro_batches + repeat.skipped)
    rows = tuple(_figures(row, timeline, scale) for row in rows)
    path = tuple((row_of[rank], at) for rank, at in timeline.critical_path()) if critical else ()
    times = (timeline.makespan * scale, timeline.span * scale, max(0.0, timeline.span_share))
    unit = "s" if tick else "F"
    made = Chart(title, rows, *times, timeline.micro_batches, unit, cut, path, notes, copies, missing)
    if not timeline.exposed:
        return made
    return replace(made, notes=(*notes, f"collectives make the step {made.time(timeline.exposed * scale)} longer"))


def _figures(row: Lane, timeline: Timeline, scale: float) -> Lane:
    """A row with the figures of the whole step."""
    track, peak = timeline.ranks[row.ranks[0]], timeline.peak_in_flight[row.ranks[0]]
    idle = {name: value * scale for name, value in track.idle_by_cause.items()}
    return replace(row, busy=track.busy * scale, idle_by_cause=idle, peak=peak)


def _later(row: Lane, time: float, by: float, micro_batches: int) -> Lane:
    """A row whose passes come later from some time on: there a steady state is left out."""
    late, gap, sent = row.start >= time, row.gap_start >= time, row.sent_start >= time
    return replace(
        row,
        start=row.start + by * late,
        end=row.end + by * late,
        micro_batch=row.micro_batch + micro_batches * late,
        other=row.other + micro_batches * (late & (row.other >= 0)),
        gap_start=row.gap_start + by * gap,
        gap_end=row.gap_end + by * gap,
        sent_start=row.sent_start + by * sent,
        sent_end=row.sent_end + by * sent,
    )


def _lane(track: Track, timeline: Timeline, scale: float) -> Lane:
    start, end = track.start * scale, track.end * scale
    _, chunk = np.unique(track.stage, return_inverse=True)
    gap_start, gap_end, cause = _gaps(track, timeline.makespan)
    stream = next((each for each in timeline.streams if each.rank == track.rank and timeline.exposed), None)
    nothing = np.zeros(0)
    return Lane(
        ranks=(track.rank,),
        start=start,
        end=end,
        kind=track.kind,
        stage=track.stage,
        chunk=chunk,
        micro_batch=track.micro_batch,
        other=track.back_micro_batch,
        gap_start=gap_start * scale,
        gap_end=gap_end * scale,
        gap_cause=cause,
        busy=track.busy,
        idle_by_cause=track.idle_by_cause,
        sent_start=stream.start * scale if stream else nothing,
        sent_end=stream.end * scale if stream else nothing,
    )


def _gaps(track: Track, makespan: float) -> tuple[Numbers, Numbers, "np.ndarray[tuple[int], np.dtype[np.str_]]"]:
    """Where a rank waits: until the others have done what it needs, then until the message is there."""
    begin, flies = track.start - track.wait, track.start - track.flight
    first = np.arange(len(track.start)) == 0
    last = np.atleast_1d(track.end.max(initial=0))
    starts = np.concatenate([np.where(first, 0, begin), np.where(first, track.start, flies), last])
    ends = np.concatenate([np.where(first, track.start, flies), track.start, np.atleast_1d(makespan)])
    causes = np.concatenate(
        [np.where(first, "fill", "dependency"), np.full(len(first), "communication"), np.array(["drain"])]
    )
    order = np.lexsort((ends, starts))
    order = order[(ends > starts)[order]]
    return starts[order], ends[order], causes[order]
