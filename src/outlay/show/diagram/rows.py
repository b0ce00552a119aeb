"""One row of a timing diagram as shapes: every operation where there is room for it, else buckets of 2 px.

Shapes of one colour are one path, so a picture has few elements, however many operations it shows.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from ..palette import tone_of
from .drawing import Lane, Numbers, View, Whole

NUMBERED, OUTLINED, BUCKET = 14.0, 4.0, 2.0  # px: from where on a number, an outline; the width of a bucket
PURE = 0.9  # share of a bucket's work that one kind has to be
STEPS = 4  # steps of a bucket's opacity
MOST_NOTCHES = 3


class Style(NamedTuple):
    """What makes two shapes one path: class and opacity."""

    name: str
    opacity: float = 1.0


class Label(NamedTuple):
    """A number in an operation."""

    x: float
    y: float
    text: str
    name: str


Shapes = defaultdict[Style, list[str]]


def px(value: float) -> str:
    """A coordinate in tenths of a pixel."""
    return f"{value:.1f}".removesuffix(".0").replace("-0.", "-.").removeprefix("0") or "0"


def box(x: float, y: float, width: float, height: float) -> str:
    """A rectangle as a part of a path."""
    return f"M{px(x)} {px(y)}h{px(width)}v{px(height)}h{px(-width)}z"


def notched(x: float, y: float, width: float, height: float, notches: int) -> str:
    """A rectangle with small cuts in its top edge: one for the second chunk of a rank, two for the third."""
    count = min(notches, MOST_NOTCHES, int(width / 7))
    if count < 1:
        return box(x, y, width, height)
    flat = px((width - 5 * count) / (count + 1))
    cuts = f"l2.5 3l2.5-3h{flat}" * count
    return f"M{px(x)} {px(y)}h{flat}{cuts}V{px(y + height)}H{px(x)}z"


def is_narrow(lane: Lane, view: View) -> bool:
    """Whether the operations of a row are too narrow to be drawn one by one: a quarter of them under 4 px."""
    widths = (lane.end - lane.start) * view.scale
    return bool(len(widths)) and float(np.quantile(widths, 0.25)) < OUTLINED


def draw(lane: Lane, view: View, y: float, height: float, shapes: Shapes) -> list[Label]:
    """A row at a height on paper; the numbers that stand in it."""
    if is_narrow(lane, view):
        buckets(lane, view, y, height, shapes)
        return []
    return operations(lane, view, y, height, shapes)


def operations(lane: Lane, view: View, y: float, height: float, shapes: Shapes) -> list[Label]:
    """Each operation: its fill, its outline from 4 px on, its number from 14 px on."""
    labels: list[Label] = []
    index, left, right = view.drawn(lane.start, lane.end)
    for at, x, end in zip(index.tolist(), left.tolist(), right.tolist()):
        kind, notches, width = str(lane.kind[at]), int(lane.chunk[at]), end - x
        halves = [("F", y, height)] if kind != "P" else [("F", y, height / 2), ("B", y + height / 2, height / 2)]
        for half, (name, top, tall) in enumerate(halves):
            tone = tone_of(kind) if kind != "P" else name
            edged = f"{tone} edge" if width >= OUTLINED else tone
            shapes[Style(edged)].append(notched(x, top, width, tall, 0 if half else notches))
            text = str(int(lane.other[at] if half else lane.micro_batch[at]) + 1)
            if width >= NUMBERED and tall >= 10 and 6.5 * len(text) + 3 <= width:
                slant = " i" if notches else ""
                labels.append(Label(x + width / 2, top + tall / 2 + 4, text, f"n t{tone}{slant}"))
    return labels


def buckets(lane: Lane, view: View, y: float, height: float, shapes: Shapes) -> None:
    """Buckets of 2 px: the colour of the kind that does nearly all the work in it; opacity is its busy share."""
    for kind, step, first, last in runs(lane, view):
        width = min(last * BUCKET, view.width) - first * BUCKET
        shapes[Style(kind, step / STEPS)].append(box(first * BUCKET, y, width, height))


def runs(lane: Lane, view: View) -> Iterable[tuple[str, int, int, int]]:
    """Equal neighbours among the buckets: colour, step of opacity, first bucket, one past the last."""
    edges = np.append(np.arange(0, view.width, BUCKET), view.width)
    work = {kind: np.diff(covered(edges)) for kind, covered in covers(lane, view).items()}
    if not work:
        return
    names, amounts = [*work, "X"], np.stack(list(work.values()))
    busy = amounts.sum(axis=0)
    largest = amounts.argmax(axis=0)
    pure = amounts.max(axis=0) >= PURE * busy
    colour = np.where(pure, largest, len(names) - 1)
    step = np.ceil(STEPS * busy / np.diff(edges) - 0.2).clip(0, STEPS).astype(int)
    code = _snapped(np.where(step > 0, colour * (STEPS + 1) + step, -1))
    marks = np.flatnonzero(np.diff(code, prepend=-2))
    for first, last in zip(marks.tolist(), [*marks[1:].tolist(), len(code)]):
        if code[first] >= 0:
            yield names[int(code[first]) // (STEPS + 1)], int(code[first]) % (STEPS + 1), first, last


def _snapped(code: Whole) -> Whole:
    """A bucket that an operation's end only touches takes the opacity of the run beside it: no more than 2 px."""
    colour = np.where(code < 0, -1, code // (STEPS + 1))
    padded, shade = np.pad(colour, 1, constant_values=-2), np.pad(code, 1, constant_values=-2)
    before, after = padded[:-2] == colour, padded[2:] == colour
    taken = np.where(before & ~after, shade[:-2], np.where(after & ~before, shade[2:], code))
    return np.where(code < 0, code, np.maximum(code, taken))


def covers(lane: Lane, view: View) -> dict[str, Callable[[Numbers], Numbers]]:
    """For each colour, how much of it stands left of a place: operations of a row never overlap."""
    index, left, right = view.drawn(lane.start, lane.end)
    tones = np.array([tone_of(kind) if kind != "P" else "X" for kind in np.unique(lane.kind).tolist()])
    drawn = tones[np.searchsorted(np.unique(lane.kind), lane.kind[index])]
    found = {}
    for name in sorted(set(drawn.tolist())):
        mine = drawn == name
        places: Numbers = np.stack([left[mine], right[mine]], axis=1).ravel()
        sums: Numbers = np.cumsum(np.diff(places, prepend=0.0) * (np.arange(len(places)) % 2))
        found[name] = _interpolation(places, sums)
    return found


def _interpolation(places: Numbers, sums: Numbers) -> Callable[[Numbers], Numbers]:
    return lambda edges: np.interp(edges, places, sums, left=0.0)


def gaps(lane: Lane, view: View, y: float, height: float) -> Iterable[tuple[str, str]]:
    """Where a row waits: the cause and a rectangle, from one bucket's width on."""
    index, left, right = view.drawn(lane.gap_start, lane.gap_end)
    for at, x, end in zip(index.tolist(), left.tolist(), right.tolist()):
        if end - x >= BUCKET:
            yield str(lane.gap_cause[at]), box(x, y, end - x, height)


def streams(lane: Lane, view: View, y: float, height: float, shapes: Shapes) -> None:
    """A lane under a row with its collectives."""
    _, left, right = view.drawn(lane.sent_start, lane.sent_end)
    for x, end in zip(left.tolist(), right.tolist()):
        shapes[Style("C")].append(box(x, y, max(end - x, 0.5), height))
