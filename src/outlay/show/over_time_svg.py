"""Memory over a step as one SVG file: what stands on the worst rank, stacked, under the room that it has."""

from collections.abc import Iterator
from html import escape

import numpy as np

from ..over_time import CURVES, OverTime
from ..quantities import GIB
from .diagram.drawing import Numbers, View
from .over_time import HEADROOM, WORDS, columns, view_of
from .plot_svg import marks, opening
from .text import duration, figure, gib

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, LINE = 960, 430, 64, 16, 104, 46, 18
TEAR = 26  # px of the torn band
FILLS = dict(zip(CURVES, ("O", "F", "W", "B")))  # tones of the palette, light to dark enough to tell apart


def over_time_svg(found: OverTime, title: str, usable: float) -> str:
    """The whole file: no script, no font, light or dark as the reader's system is."""
    rank = found.worst
    said = (
        f"{gib(rank.peak.bytes)} allocated at most, {duration(rank.peak.seconds)} into a step of"
        f" {duration(found.seconds)}: {rank.peak.operation}"
    )
    parts = ", ".join(f"{name} {figure(value / GIB)}" for name, value in rank.peak.parts.items() if value)
    return "".join(_file(found, f"{title}: stage {rank.stage}", said, f"GiB at that moment: {parts}", usable))


def _file(found: OverTime, title: str, said: str, parts: str, usable: float) -> Iterator[str]:
    rank, view = found.worst, view_of(found, WIDTH - LEFT - RIGHT, TEAR)
    room = usable - rank.buffers
    walled = room <= HEADROOM * rank.peak.bytes
    top = 1.06 * max(rank.peak.bytes, room if walled else 0.0)
    yield from opening(title, f"{said}. {parts}", WIDTH, HEIGHT)
    for place, (text, kind) in enumerate(((title, "b"), (said, ""), (parts, ""))):
        yield f'<text x="14" y="{22 + LINE * place}" class="{kind}">{escape(text)}</text>\n'
    yield from _areas(found, view, top)
    yield from _axes(view, top, found.seconds)
    if walled:
        y = _y(room, top)
        yield f'<path class="line" stroke-dasharray="5 4" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>\n'
        yield f'<text x="{WIDTH - RIGHT}" y="{y - 5:.1f}" class="e">room {gib(room)}</text>\n'
    x, y = LEFT + float(view.place(rank.peak.seconds)), _y(rank.peak.bytes, top)
    yield f'<path class="line" d="M{x:.1f} {y - 9:.1f}l-4 -7h8z"/>\n</svg>\n'


def _y(size: float, top: float) -> float:
    return HEIGHT - BOTTOM - size / top * (HEIGHT - TOP - BOTTOM)


def _areas(found: OverTime, view: View, top: float) -> Iterator[str]:
    """One area over the other, a step a pixel; their names above."""
    drawn = columns(found.worst, view)
    below = np.zeros(len(drawn.torn))
    x = 14.0
    for name in CURVES:
        above = below + drawn.parts[name]
        if drawn.parts[name].any():
            edge, floor_ = _stairs(above, top), _stairs(below, top)[::-1]
            path = " ".join(f"{at:.0f},{y:.1f}" for at, y in (*edge, *floor_))
            yield f'<path class="{FILLS[name]}" d="M{path}z"/>\n'
            yield f'<path class="{FILLS[name]}" d="M{x:.0f} {TOP - 36}h11v11h-11z"/>\n'
            yield f'<text x="{x + 16:.0f}" y="{TOP - 26}">{WORDS[name]}</text>\n'
            x += 36 + 6.4 * len(WORDS[name])
        below = above
    if drawn.torn.any():
        left, right = LEFT + np.flatnonzero(drawn.torn)[[0, -1]]
        yield f'<path class="paper" d="M{left} {TOP}H{right + 1}V{HEIGHT - BOTTOM}H{left}z"/>\n'
        yield f'<text x="{(left + right) / 2:.0f}" y="{HEIGHT - BOTTOM + 34}" class="m i">the same again</text>\n'


def _stairs(sizes: Numbers, top: float) -> list[tuple[float, float]]:
    """Both ends of each step, equal ones joined."""
    change = np.flatnonzero(np.diff(sizes)) + 1
    starts, ends = np.append(0, change), np.append(change, len(sizes))
    steps = zip(starts.tolist(), ends.tolist(), strict=True)
    return [(LEFT + at, _y(float(sizes[start]), top)) for start, end in steps for at in (start, end)]


def _axes(view: View, top: float, seconds: float) -> Iterator[str]:
    """Round numbers on both axes, with their units."""
    yield f'<path class="rule" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>\n'
    for value in marks(top / GIB):
        y = _y(value * GIB, top)
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" class="e">{value:g}</text>\n'
    cut = view.cut
    round_marks = [(value, "m") for value in marks(seconds)]
    for value, kind in [(0.0, "m"), (cut.start, "e"), (cut.end, ""), (seconds, "e")] if cut else round_marks:
        x = LEFT + float(view.place(value))
        yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 17}" class="{kind}">{value:.4g}</text>\n'
    yield f'<text x="{LEFT - 6}" y="{TOP - 8}" class="e">GiB</text>\n'
    yield f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - BOTTOM + 34}" class="e">seconds into the step</text>\n'
