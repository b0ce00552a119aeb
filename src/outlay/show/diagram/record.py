"""A timing diagram as a record of plain values, for JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...bill import Violation
from ..record import Record, head, plain
from .drawing import CAUSES, WORDS, Chart, Lane


def diagram_record(
    chart: Chart, schedule: str, files: Sequence[str] = (), sought: Mapping[str, Any] | None = None
) -> Record:
    """The figures of a diagram: of all ranks, of each rank, what is folded, and the operations of the critical path.

    `sought` says how good an order is that was sought.
    """
    idle = {"total": chart.idle, "share": chart.share, "span_share": chart.span_share, "by_cause": chart.idle_by_cause}
    by_rank = sorted(((rank, lane) for lane in chart.lanes for rank in lane.ranks), key=lambda pair: pair[0])
    cut = chart.cut
    folded = None if cut is None else {"start": cut.start, "end": cut.end, "micro_batches": cut.micro_batches}
    found = {
        "title": chart.title,
        "schedule": schedule,
        "micro_batches": chart.micro_batches,
        "unit": chart.unit,
        "makespan": chart.makespan,
        "span": chart.span,
        "idle": idle,
        "accelerators": chart.ranks,
        "ranks": [_rank(rank, lane, chart) for rank, lane in by_rank],
        "critical_path": [_operation(chart.lanes[row], at) for row, at in chart.critical],
        "folded": folded,
        "files": list(files),
        "notes": list(chart.notes),
        "violations": [],
    }
    found |= {"sought": dict(sought)} if sought else {}
    return head("draw") | {name: plain(value) for name, value in found.items()}


def refused_record(violations: Sequence[Violation]) -> Record:
    """The answer where the layout breaks a rule: there is no diagram."""
    return head("draw") | {"violations": plain(list(violations))}


def _rank(rank: int, lane: Lane, chart: Chart) -> Record:
    return {
        "rank": rank,
        "busy": lane.busy,
        "idle": lane.idle,
        "idle_share": lane.idle / chart.makespan if chart.makespan else 0.0,
        "idle_by_cause": {cause: lane.idle_by_cause.get(cause, 0.0) for cause in CAUSES},
        "peak_in_flight": lane.peak,
    }


def _operation(lane: Lane, at: int) -> Record:
    """One operation; micro-batches from 1, as in the pictures."""
    return {
        "rank": lane.ranks[0],
        "kind": WORDS[str(lane.kind[at])],
        "stage": int(lane.stage[at]),
        "micro_batch": int(lane.micro_batch[at]) + 1,
        "start": float(lane.start[at]),
        "end": float(lane.end[at]),
    }
