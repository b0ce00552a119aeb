"""A timing diagram in a terminal: a letter a column, in ASCII, with the figures above it.

Digits are forward passes, a to j backward passes (or input gradients) of the same micro-batches, A to J weight
gradients; all three start again after ten. What waits is hatched by its cause, as in the pictures.
"""

from collections.abc import Iterator
from itertools import groupby
from math import gcd

import numpy as np
from numpy.typing import NDArray

from ..palette import tone_of
from ..text import GOOD, Style, block, figure, wrapped
from .drawing import CAUSES, WORDS, Chart, Lane, Numbers, View, between, share
from .rows import PURE, covers

LABEL = 10  # columns before a row
TEAR = 5  # columns of the torn band
MOST_ROWS = 64
FORWARD, BACKWARD, WEIGHT = "1234567890", "abcdefghij", "ABCDEFGHIJ"
HATCH = dict(zip(CAUSES, "/\\.x"))
PAINT = {"F": "34", "B": "33", "W": "32", "R": "35"}

Letters = NDArray[np.str_]


MORE = "--svg f.svg   |   --html f.html   |   --perfetto f.pftrace   |   --csv f.csv"


def diagram_lines(chart: Chart, style: Style, files: tuple[str, ...] = (), more: str = MORE) -> list[str]:
    """The answer of `outlay draw`: idle time, its causes, what is held, the rows, how to read them."""
    lines = block("IDLE", _idle(chart), style, f"1;{GOOD}")
    lines += [each for text in _under(chart) for each in wrapped(text, style, 10, 10)]
    lines += ["", *rows(chart, style), ""]
    lines += [line for note in chart.notes for line in block("NOTE", note, style)]
    for file in files:
        lines += block("WROTE", file, style)
    return lines if files else [*lines, *block("MORE", more, style)]


def _idle(chart: Chart) -> str:
    return f"{share(chart.share)} of all accelerator-time over the makespan, {share(chart.span_share)} over the span"


def _under(chart: Chart) -> Iterator[str]:
    each = between([lane.idle for lane in chart.lanes], chart.time)
    over = f"{chart.time(chart.idle)} over {chart.ranks} ranks"
    yield f"{each} of a {chart.time(chart.makespan)} step on every rank; {over}"
    whole = chart.idle or 1.0
    causes = [(cause, value) for cause, value in chart.idle_by_cause.items() if value]
    if causes:
        yield "by cause: " + ", ".join(
            f"{cause} {chart.time(value)} ({share(value / whole)})" for cause, value in causes
        )
    yield f"span {chart.time(chart.span)}: the longest from a rank's own first start to its own last end"
    peaks = [f"{lane.peak:.4g}" for lane in chart.lanes]
    several = f"{', '.join(peaks)} (rank by rank)" if len(peaks) <= 16 else between([*map(float, peaks)], figure)
    yield f"in flight at the peak, in micro-batches: {peaks[0] if len(set(peaks)) == 1 else several}"


# --- the rows -------------------------------------------------------------------------------------------------------


def rows(chart: Chart, style: Style) -> list[str]:
    """The rows: exact where a column can be the longest time that divides all others, else to scale."""
    view, exact = fitted(chart, style.width - LABEL)
    each = exact or all(_wide(lane, view) for lane in chart.lanes)
    column = f"one column is {'' if exact else 'about '}{chart.time(1 / view.scale)}"
    lines = [" " * LABEL + "0" + chart.time(chart.makespan).rjust(round(view.width) - 1) + f"   {column}"]
    lines = lines if len(lines[0]) <= style.width else [lines[0][: LABEL + round(view.width)], " " * LABEL + column]
    for lane in chart.lanes[:MOST_ROWS]:
        lines.append(f"  {lane.label:<{LABEL - 3}} " + _painted(*cells(lane, view, each), style))
    if len(chart.lanes) > MOST_ROWS:
        lines += wrapped(f"and {len(chart.lanes) - MOST_ROWS} more rows: --svg draws all of them", style, LABEL, LABEL)
    if view.cut:
        lines += wrapped(f"~ {chart.folded()}", style, LABEL, LABEL)
    return [*lines, "", *(line for text in _legend(chart, each) for line in wrapped(text, style, LABEL, LABEL))]


def fitted(chart: Chart, most: int) -> tuple[View, bool]:
    """A view of at most so many columns, folded only where it must be; and whether its columns are exact."""
    unit = _divisor(chart)
    for cut in (None, chart.cut):
        drawn = chart.makespan - (cut.length if cut else 0.0)
        width = round(drawn / unit) + (TEAR if cut else 0)
        if 0 < width <= most:
            return View(chart.makespan, width, cut, TEAR), True
    return View(chart.makespan, most, chart.cut, TEAR), False


def _divisor(chart: Chart) -> float:
    """The longest time that divides all times, in whole nanoseconds or ticks."""
    tick = 1e-9 if chart.unit == "s" else 1.0
    times = np.concatenate([np.concatenate([lane.start, lane.end]) for lane in chart.lanes])
    return gcd(*np.unique(np.rint(times / tick).astype(np.int64)).tolist()) * tick or chart.makespan or 1.0


def _wide(lane: Lane, view: View) -> bool:
    return not len(lane.start) or float(np.quantile((lane.end - lane.start) * view.scale, 0.25)) >= 1


def cells(lane: Lane, view: View, each: bool) -> tuple[Letters, Letters]:
    """The letter and the tone of each column; a hatch where the row waits, ~ in the torn band."""
    columns = round(view.width)
    letters, tones = np.full(columns, " "), np.full(columns, " ")
    index, left, right = view.drawn(lane.gap_start, lane.gap_end)
    for at, first, last in _columns(index, left, right):
        letters[first:last] = HATCH[str(lane.gap_cause[at])]
    if each:
        index, left, right = view.drawn(lane.start, lane.end)
        for at, first, last in _columns(index, left, right):
            letters[first:last] = list(_word(lane, at, last - first))
            tones[first:last] = tone_of(str(lane.kind[at]))
    else:
        _fill(lane, view, letters, tones)
    if view.cut:
        torn = round(float(view.place(view.cut.start)))
        letters[torn : torn + TEAR], tones[torn : torn + TEAR] = list(" ~ ~ "), " "
    return letters, tones


def _columns(index: NDArray[np.intp], left: Numbers, right: Numbers) -> Iterator[tuple[int, int, int]]:
    """The columns of which each interval holds the middle."""
    first, last = np.ceil(left - 0.5 - 1e-6).astype(int), np.ceil(right - 0.5 - 1e-6).astype(int)
    yield from zip(index.tolist(), first.tolist(), last.tolist())


def _word(lane: Lane, at: int, columns: int) -> str:
    """One operation in so many letters."""
    kind, number = str(lane.kind[at]), int(lane.micro_batch[at]) % 10
    if kind == "P":
        both = FORWARD[number] + BACKWARD[int(lane.other[at]) % 10]
        return both.ljust(columns, "&") if columns > 1 else "&" * columns
    alphabet = {"F": FORWARD, "W": WEIGHT, "R": "r" * 10}.get(kind, BACKWARD)
    return alphabet[number] * columns


def _fill(lane: Lane, view: View, letters: Letters, tones: Letters) -> None:
    """Columns that hold several operations: the letter of the kind, * for several kinds; half idle stays idle."""
    edges = np.arange(round(view.width) + 1.0)
    cover = {tone: np.diff(left_of(edges)) for tone, left_of in covers(lane, view).items()}
    busy = sum(cover.values(), np.zeros(len(edges) - 1))
    for tone, amount in cover.items():
        here = (busy >= 0.5) & (amount > 0)
        pure = here & (amount >= PURE * busy)
        letters[pure], tones[pure] = tone if tone != "X" else "*", tone
        letters[here & ~pure], tones[here & ~pure] = "*", "X"


def _painted(letters: Letters, tones: Letters, style: Style) -> str:
    """A row, in colour where there is colour."""
    parts = groupby(zip(tones.tolist(), letters.tolist()), key=lambda pair: pair[0])
    text = ((tone, "".join(letter for _, letter in pairs)) for tone, pairs in parts)
    return "".join(style.paint(word, PAINT[tone]) if tone in PAINT else word for tone, word in text).rstrip()


def _legend(chart: Chart, each: bool) -> Iterator[str]:
    """How to read the letters that occur."""
    kinds = chart.kinds
    if each:
        said = ["1 2 3 forward of micro-batches 1, 2, 3 (11, 12, 13 ..)"]
        back = " or ".join(WORDS[kind] for kind in "BI" if kind in kinds)
        said += [f"a b c their {back}"] if back else []
        said += ["A B C their weight gradient"] if "W" in kinds else []
        said += ["r recompute"] if "R" in kinds else []
        said += ["4a& forward of 4 and backward of 1 as a pair"] if "P" in kinds else []
    else:
        said = [f"{tone_of(kind)} {WORDS[kind]}" for kind in kinds if kind != "P"] + ["* several kinds in one column"]
    yield "; ".join(said)
    idle = [f"{HATCH[cause]} {cause}" for cause, value in chart.idle_by_cause.items() if value]
    if idle:
        yield f"idle: {', '.join(idle)}"
