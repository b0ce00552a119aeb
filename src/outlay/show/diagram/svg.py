"""A timing diagram as one SVG file: rows that differ, drawn to the pixel, what repeats folded, idle time said.

It needs no script and no font, is light or dark as the reader's system is, and has a name and a description in words.
"""

import textwrap
from collections import defaultdict
from collections.abc import Iterator
from html import escape
from math import ceil

import numpy as np

from ..palette import CAUSES as HATCHES
from ..palette import TONES, tone_of
from ..plot_svg import opening
from .drawing import CAUSES, WORDS, Chart, Cut, View, between, sentences, share
from .rows import Shapes, Style, box, buckets, draw, gaps, is_narrow, px, streams

WIDTH, TEAR, RIGHT, MARGIN = 1200, 46, 196, 14
MOST_LABELLED = 16  # rows up to which every row has its label; beyond, every eighth
CHARACTER = 6.6  # px, of the text
GAP = 5  # px between rows: the critical path runs there
STREAM = 7  # px, of the lane of collectives under a row


class Picture:
    """What has been drawn so far: paths by their style, hatches by cause, and texts."""

    def __init__(self, chart: Chart, width: int = WIDTH) -> None:
        self.chart = chart
        self.left = 16 + CHARACTER * max(len(lane.label) for lane in chart.lanes)
        self.view = View(chart.makespan, width - self.left - RIGHT, chart.cut, TEAR)
        self.width = width
        count = len(chart.lanes)
        self.row = 22 if count <= MOST_LABELLED else 14 if count <= 32 else 10
        self.strip = 3 * min(count, 20) + 16 if chart.cut else 0  # the overview above a folded picture
        self.top = 78 + self.strip
        self.pitch = self.row + GAP + (STREAM if any(len(lane.sent_start) for lane in chart.lanes) else 0)
        self.bottom = self.top + count * self.pitch
        self.shapes: Shapes = defaultdict(list)
        self.hatches: dict[str, list[str]] = defaultdict(list)
        self.texts: list[str] = []
        self.torn: list[str] = []
        self.rules: list[str] = []
        self.lines: list[str] = []
        self.dots: list[str] = []

    def y(self, row: int) -> float:
        """The top of a row."""
        return self.top + row * self.pitch

    def say(self, x: float, y: float, text: str, name: str = "") -> None:
        """A text."""
        kind = f' class="{name}"' if name else ""
        self.texts.append(f'<text x="{px(x)}" y="{px(y)}"{kind}>{escape(text)}</text>')


def svg(chart: Chart, width: int = WIDTH) -> str:
    """The whole file."""
    picture = Picture(chart, width)
    height = painted(picture)
    tiles = "".join(map(tile, tiles_of(picture)))
    first = opening(chart.title, " ".join(sentences(chart)), picture.width, height, tiles)
    return "".join([*first, *elements(picture), "</svg>\n"])


def painted(picture: Picture) -> float:
    """Draw everything; how high it is."""
    _heading(picture)
    _rows(picture)
    _axis(picture)
    if picture.chart.cut:
        _overview(picture)
        _tear(picture)
    _critical(picture)
    return _legend(picture)


def elements(picture: Picture, name: str = "plot") -> Iterator[str]:
    """What has been drawn, from the ground up."""
    yield f'<g id="{name}" transform="translate({px(picture.left)})">\n'
    for name in tiles_of(picture):
        yield f'<path fill="url(#{name})" d="{"".join(picture.hatches[name])}"/>\n'
    for style, parts in sorted(picture.shapes.items()):
        faint = f' fill-opacity="{style.opacity:g}"' if style.opacity < 1 else ""
        yield f'<path class="{style.name}"{faint} d="{"".join(parts)}"/>\n'
    halo = picture.lines if picture.dots else []  # on operations of many colours the line needs it
    over = {"paper": picture.torn, "rule": picture.rules, "halo": halo, "line": picture.lines, "line dot": picture.dots}
    for name, parts in over.items():
        if parts:
            yield f'<path class="{name}" d="{"".join(parts)}"/>\n'
    yield "</g>\n" + "\n".join(picture.texts) + "\n"


def tiles_of(picture: Picture) -> list[str]:
    """The causes that hatch something, in the order of their words."""
    return [name for name in HATCHES if name in picture.hatches]


def tile(name: str) -> str:
    return (
        f'<pattern id="{name}" class="hatch" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<path d="{HATCHES[name]}"/></pattern>\n'
    )


def _heading(picture: Picture) -> None:
    """Two lines above: what it is, and the idle time; what is drawn and what is left out."""
    chart = picture.chart
    picture.say(MARGIN, 22, chart.title, "b")
    idle = f"idle {share(chart.share)} = {chart.time(chart.idle)} over {chart.ranks} ranks"
    span = f"{share(chart.span_share)} over the span of {chart.time(chart.span)}"
    picture.say(MARGIN, 40, f"step {chart.time(chart.makespan)}; {idle}; {span}")
    if said := "; ".join(filter(None, _modes(picture))):
        picture.say(MARGIN, 57, said)


def _modes(picture: Picture) -> Iterator[str]:
    """How the rows are drawn, and how to read what stands in them."""
    chart = picture.chart
    narrow = [is_narrow(lane, picture.view) for lane in chart.lanes]
    yield chart.rows()
    yield "every row in buckets of 2 px" if all(narrow) else "some rows in buckets of 2 px" if any(narrow) else ""
    yield "numbers: micro-batches, from 1" if not all(narrow) else ""
    yield "notch, italic: a later chunk" if not all(narrow) and any(lane.chunk.any() for lane in chart.lanes) else ""
    yield "thin line: critical path" if chart.critical else ""


def _rows(picture: Picture) -> None:
    """Every row with its label at the left and its idle time at the right; of many rows every eighth label."""
    lanes, many = picture.chart.lanes, len(picture.chart.lanes) > MOST_LABELLED
    every = 8 * -(-len(lanes) // 64) if many else 1
    shown = _margins(picture)
    for row, lane in enumerate(lanes):
        y, base = picture.y(row), picture.y(row) + picture.row / 2 + 4
        for cause, shape in gaps(lane, picture.view, y, picture.row):
            picture.hatches[cause].append(shape)
        for label in draw(lane, picture.view, y, picture.row, picture.shapes):
            picture.say(label.x + picture.left, label.y, label.text, label.name)
        streams(lane, picture.view, y + picture.row, STREAM, picture.shapes)
        if row % every == 0:
            picture.say(picture.left - 8, base, lane.label, "e")
        if row in shown:
            picture.say(picture.left + picture.view.width + 8, base, shown[row])


def _margins(picture: Picture) -> dict[int, str]:
    """What stands at the right of rows: of all, of none where all are the same, of the extremes where they are many."""
    chart, lanes = picture.chart, picture.chart.lanes
    idle = [f"{chart.time(lane.idle)}, {share(lane.idle / chart.makespan)}" for lane in lanes]
    peaks = [f"{lane.peak:.4g}" for lane in lanes]
    x, same, many = picture.left + picture.view.width + 8, len(set(idle)) == 1, len(lanes) > MOST_LABELLED
    if not many and not (same and len(set(peaks)) == 1):
        picture.say(x, picture.top - 8, "idle, share; in flight")
        return {row: f"{text}; {peak}" for row, (text, peak) in enumerate(zip(idle, peaks))}
    held = between([lane.peak for lane in lanes], "{:.4g}".format)
    each = f"every row idles {idle[0]}; " if same else ""
    picture.say(picture.width - 8, picture.top - 8, f"{each}in flight {held}", "e")
    order = sorted(range(len(lanes)), key=lambda row: lanes[row].idle)
    return {} if same else {row: f"rank {lanes[row].ranks[0]}: {idle[row]}" for row in (order[0], order[-1])}


def _axis(picture: Picture) -> None:
    """Time under the rows: round numbers, with their unit."""
    base = picture.bottom + 4
    marks = list(_marks(picture.chart))
    places = picture.view.place(np.array([time for time, _ in marks], float)).tolist()
    lines = "".join(f"M{px(x)} {px(base)}v4" for x in places)
    picture.rules.append(f"M0 {px(base)}H{px(picture.view.width)}{lines}")
    last = -99.0
    for (_, text), x in zip(marks, places):
        if x - last >= CHARACTER * len(text) + 14:
            picture.say(picture.left + x, base + 17, text, "m")
            last = x


def _marks(chart: Chart) -> Iterator[tuple[float, str]]:
    """About eight round times with their words; behind a long fold they are counted from the end."""
    cut = chart.cut or Cut(chart.makespan, chart.makespan, 0)
    rough = (chart.makespan - cut.length) / 8
    size = 10.0 ** np.floor(np.log10(rough)) if rough > 0 else 1.0
    step = float(next(size * each for each in (1, 2, 5, 10) if size * each >= rough * 0.999))
    step = step if chart.unit == "s" else max(1.0, step)
    for index in range(int(cut.start / step * 1.000001) + 1):
        yield index * step, chart.time(index * step) if index else "0"
    if step * 1000 < chart.makespan:
        for index in range(int((chart.makespan - cut.end) / step), -1, -1):
            yield chart.makespan - index * step, f"end - {chart.time(index * step)}" if index else "end"
        return
    for index in range(ceil(cut.end / step * 0.999999), int(chart.makespan / step * 1.000001) + 1):
        if index * step > cut.start:
            yield index * step, chart.time(index * step)


def _tear(picture: Picture) -> None:
    """The torn band: two ragged edges, and what is not drawn above it."""
    cut, view = picture.chart.cut, picture.view
    assert cut is not None
    left, (top, bottom) = float(view.place(cut.start)), (picture.top - 3, picture.bottom)
    teeth = max(2, round((bottom - top) / 12))
    down = f"l4 {px((bottom - top) / teeth / 2)}l-4 {px((bottom - top) / teeth / 2)}" * teeth
    right = left + TEAR - 4
    area = f"M{px(left)} {px(top)}{down}H{px(right)}" + down.replace("l4 ", "l4 -").replace("l-4 ", "l-4 -") + "z"
    picture.torn.append(area)
    picture.rules += [f"M{px(x)} {px(top)}{down}" for x in (left, right)]
    text = f"… {picture.chart.folded()} …"
    half = CHARACTER * len(text) / 2
    middle = min(max(picture.left + left + TEAR / 2, half + MARGIN), picture.left + view.width - half)
    picture.say(middle, picture.top - 8, text, "m b")


def _overview(picture: Picture) -> None:
    """A strip above with the whole step at its true proportions, and a frame around what is folded away."""
    chart, top = picture.chart, 68.0
    whole = View(chart.makespan, picture.view.width)
    lanes = chart.lanes[:: -(-len(chart.lanes) // 20)]
    for row, lane in enumerate(lanes):
        buckets(lane, whole, top + 3 * row, 3, picture.shapes)
        if chart.missing:  # of what is not held, that it is work of all kinds is known
            start, end = whole.place(chart.missing)
            picture.shapes[Style("X")].append(box(start, top + 3 * row, end - start, 3))
    assert chart.cut is not None
    left, right = (float(whole.place(time)) for time in (chart.cut.start, chart.cut.end))
    picture.lines.append(box(left, top - 2, right - left, 3 * len(lanes) + 4))


def _critical(picture: Picture) -> None:
    """The critical path: a thin line through the operations that make the step so long, a dot where it changes rank."""
    chart, view = picture.chart, picture.view
    wide = not any(is_narrow(lane, view) for lane in chart.lanes)
    before = -1
    for row, at in chart.critical:
        lane, cut = chart.lanes[row], chart.cut
        start, end = float(lane.start[at]), float(lane.end[at])
        if cut and start >= cut.start and end <= cut.end:
            before = -1
            continue
        y = picture.y(row) + picture.row + GAP / 2
        first, last = (float(place) for place in view.place(np.array([start, end])))
        if wide and before >= 0 and row != before:
            picture.dots.append(f"M{px(first)} {px(y)}h0")
        stroke = f"M{px(first)} {px(y)}" if before < 0 else f"L{px(first)} {px(y)}" if row != before else ""
        picture.lines.append(stroke + f"H{px(last)}")
        before = row


def _legend(picture: Picture) -> float:
    """What the colours and hatches mean, under the axis. Its swatches are parts of the paths that they explain."""
    chart, y, x = picture.chart, picture.bottom + 34, 0.0
    kinds = [kind for kind in chart.kinds if kind != "P"]
    entries = [(tone_of(kind), WORDS[kind]) for kind in kinds]
    if {"B", "I"} <= set(kinds):
        entries.append(("B", "backward or input gradient"))
    if picture.pitch > picture.row + GAP:
        entries.append(("C", "collectives, on a stream of their own"))
    if any("X" in style.name for style in picture.shapes):
        entries.append(("X", TONES["X"].word))
    for tone, word in dict(entries).items():
        picture.shapes[Style(tone)].append(box(x, y, 14, 10))
        picture.say(picture.left + x + 20, y + 9.5, word)
        x += 20 + CHARACTER * len(word) + 20
    causes = [cause for cause in CAUSES if cause in picture.hatches]
    for cause in causes:
        picture.hatches[cause].append(box(x, y, 14, 10))
        x += 17
    if causes:
        picture.say(picture.left + x + 3, y + 9.5, f"idle: {', '.join(causes)}")
    for note in chart.notes:
        for line in textwrap.wrap(note, int((picture.width - 2 * picture.left) / CHARACTER)):
            y += 18
            picture.say(picture.left, y + 12, line)
    return float(y + 24)
