"""Memory over a step in the terminal and as a record: the largest moment, its parts, the curve, every stage."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..over_time import CURVES, Moment, OverTime, RankOverTime
from ..quantities import GIB
from .diagram.drawing import Cut, Numbers, View
from .labels import label
from .record import Record, plain
from .text import Style, adding_up, block, decimals, duration, figure, gib, table, wrapped

ROWS, LEFT = 12, 9  # of the curve in a terminal, and columns before it
TEAR = 5
GLYPHS = dict(zip(CURVES, "#=o+"))
WORDS = {
    "state": "state, and what else stands all the time",
    "activations": "activations",
    "logits": "logits",
    "backward": "for a moment: recomputed, gradients of values",
}
HEADROOM = 1.6  # the wall is drawn where it is less than this times the peak
FOLD = 8  # stages beyond this are folded


@dataclass(frozen=True)
class Columns:
    """A curve on paper of some width: the largest moment inside each column."""

    parts: dict[str, Numbers]  # bytes, one number a column
    torn: NDArray[np.bool_]  # columns that stand for a time in which all repeats

    @property
    def bytes(self) -> Numbers:
        """All of it."""
        return sum(self.parts.values(), np.zeros(len(self.torn)))


def view_of(found: OverTime, width: float, tear: float) -> View:
    """The step on paper of some width; what repeats is a tear."""
    left = found.left_out
    return View(found.seconds, width, Cut(*left, 0) if left else None, tear if left else 0.0)


def columns(rank: RankOverTime, view: View) -> Columns:
    """The curve of one rank, column by column."""
    times, places = view.knots
    edges = np.interp(np.arange(round(view.width) + 1), places, times)
    parts = {
        name: np.concatenate([values, *(np.interp(side, rank.seconds, values) for side in (edges[:-1], edges[1:]))])
        for name, values in rank.curves.items()
    }
    count = len(edges) - 1
    inside = np.clip(np.searchsorted(edges, rank.seconds, "right") - 1, 0, count - 1)
    column = np.concatenate([inside, np.arange(count), np.arange(count)])
    order = np.lexsort((np.sum([*parts.values()], 0), column))
    last = order[np.append(np.flatnonzero(np.diff(column[order])), len(order) - 1)]
    middle = np.interp(np.arange(count) + 0.5, places, times)
    torn = (middle > view.cut.start) & (middle < view.cut.end) if view.cut else np.zeros(count, bool)
    return Columns({name: values[last] for name, values in parts.items()}, torn)


# --- the terminal ---------------------------------------------------------------------------------------------------


def over_time_lines(found: OverTime, usable: float, style: Style) -> list[str]:
    """The largest moment with its parts, the curve of its rank, and every stage."""
    rank = found.worst
    where = f"on stage {rank.stage}, {duration(rank.peak.seconds)} into a step of {duration(found.seconds)}"
    said = f"{gib(rank.peak.bytes)} allocated at most, {where}: {rank.peak.operation}"
    return [
        *block("SIMULATED", said, style),
        *_parts(rank.peak, style),
        "",
        *_curve(found, rank, usable - rank.buffers, style),
        "",
        *_stages(found, style),
    ]


def _parts(moment: Moment, style: Style) -> list[str]:
    shown = [(name, value) for name, value in moment.parts.items() if value]
    places = decimals(moment.bytes / GIB)
    sizes = adding_up([value / GIB for _, value in shown], places)
    rows = [(label(name), size) for (name, _), size in zip(shown, sizes, strict=True)]
    total = (("allocated", f"{sum(float(size.replace(',', '')) for size in sizes):,.{places}f}"),)
    return table(("at that moment", "GiB"), (*rows, *total), style, "lr", 4)


def _curve(found: OverTime, rank: RankOverTime, room: float, style: Style) -> list[str]:
    """Bytes over time, a letter for what they are; a line of dots where nothing more fits."""
    drawn = columns(rank, view_of(found, style.width - LEFT - 1, TEAR))
    walled = room <= HEADROOM * rank.peak.bytes
    top = max(rank.peak.bytes, room if walled else 0.0)
    levels = (np.arange(ROWS)[::-1] + 0.5) * top / ROWS
    sums = np.cumsum([drawn.parts[name] for name in CURVES], 0)
    lines = []
    for row, level in enumerate(levels):
        letters = np.full(len(drawn.torn), ".") if walled and abs(level - room) <= top / ROWS / 2 else _blank(drawn)
        for name, ends in list(zip(CURVES, sums, strict=True))[::-1]:
            letters[ends > level] = GLYPHS[name]
        letters[drawn.torn] = "~" if row % 3 == 1 else " "
        mark = figure((level + top / ROWS / 2) / GIB) if row % 3 == 0 else ""
        lines.append(f"{mark:>{LEFT - 2}} |" + "".join(letters).rstrip())
    end = duration(found.seconds)
    lines.append(" " * (LEFT - 1) + "0" + end.rjust(len(drawn.torn) - 1))
    said = [f"GiB of stage {rank.stage}", *(f"{GLYPHS[name]} {WORDS[name]}" for name in CURVES if _there(drawn, name))]
    said += [f". the room for it, {gib(room)}"] if walled else [f"room for {gib(room)}"]
    said += ["~ the same again, not drawn"] if drawn.torn.any() else []
    return [*lines, *wrapped("; ".join(said), style, LEFT, LEFT)]


def _blank(drawn: Columns) -> NDArray[np.str_]:
    return np.full(len(drawn.torn), " ")


def _there(drawn: Columns, name: str) -> bool:
    return bool(drawn.parts[name].any())


def _stages(found: OverTime, style: Style) -> list[str]:
    ranks = found.ranks
    shown = [*ranks[:3], *ranks[-2:]] if len(ranks) > FOLD else list(ranks)
    rows = [
        (
            f"{rank.stage}",
            figure(rank.peak.bytes / GIB),
            figure(rank.refined_bytes / GIB),
            duration(rank.peak.seconds),
            rank.peak.operation,
        )
        for rank in shown
    ]
    lines = table(("stage", "GiB", "closed form", "at", "largest moment"), rows, style, "lrrrl", 4)
    if len(shown) < len(ranks):
        between = [rank.peak.bytes / GIB for rank in ranks[3:-2]]
        lines.append(f"    stages 3 to {ranks[-3].stage}: {figure(min(between))} to {figure(max(between))}")
    return lines


# --- the record -----------------------------------------------------------------------------------------------------


def over_time_record(found: OverTime) -> Record:
    """Every rank of the pipeline: its largest moment and its curve, as points between which bytes change evenly."""
    return {
        "step_seconds": found.seconds,
        "passes_seconds": found.passes_seconds,
        "worst_stage": found.worst.stage,
        "left_out_seconds": plain(found.left_out),
        "ranks": [_rank(rank) for rank in found.ranks],
    }


def _rank(rank: RankOverTime) -> Record:
    peak = rank.peak
    return {
        "stage": rank.stage,
        "allocated_bytes": peak.bytes,
        "refined_bytes": rank.refined_bytes,
        "seconds": peak.seconds,
        "operation": peak.operation,
        "items": [{"name": name, "bytes": value} for name, value in peak.parts.items() if value],
        "curve": [list(point) for point in _thin(rank)],
    }


def _thin(rank: RankOverTime) -> list[tuple[float, float]]:
    """The points of a curve, without those that change nothing."""
    seconds, sizes = rank.seconds, rank.bytes
    same = (np.diff(seconds) == 0) & (np.diff(sizes) == 0)
    kept = np.append(True, ~same)
    return list(zip(seconds[kept].tolist(), sizes[kept].tolist(), strict=True))
