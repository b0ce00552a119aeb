"""Predicted against measured step times as one SVG file: a dot a row on logarithmic axes, coloured by tier."""

from collections.abc import Iterator
from html import escape
from math import ceil, floor, log10

from ...validate import Row, Validation
from ..plot_svg import opening
from ..text import counted

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 660, 64, 24, 104, 56
DOTS = {1: ("F", "tier 1"), 2: ("B", "tier 2"), 0: ("X", "in no tier")}  # class of the palette, and what it says
OFF = 1.2  # the outer lines: a fifth more


def accuracy_svg(validation: Validation) -> str:
    """The whole file: no script, no font, light or dark as the reader's system is."""
    rows = [row for row in validation.rows if row.measured_step_time_s and row.predicted_step_time_s]
    title = "Step time: predicted against measured"
    return "".join(_written(title, _sentence(validation, rows), rows))


def _sentence(validation: Validation, rows: list[Row]) -> str:
    found = (one for one in validation.summary if one.by == "tier")
    said = [f"{one.name}, {100 * one.mean:.1f} %" for one in found]
    return f"off on average: {'; '.join(said)}" if said else f"{counted(len(rows), 'row')} with a measured step time"


class Frame:
    """The plot: measured seconds to the right, predicted seconds upwards, the same decades on both."""

    def __init__(self, rows: list[Row]) -> None:
        times = [log10(time) for row in rows for time in _times(row)] or [0.0, 1.0]
        self.low, self.high = floor(min(times)), max(ceil(max(times)), floor(min(times)) + 1)

    def x(self, seconds: float) -> float:
        """Where a measured time stands."""
        return LEFT + self._share(seconds) * (WIDTH - LEFT - RIGHT)

    def y(self, seconds: float) -> float:
        """Where a predicted time stands."""
        return HEIGHT - BOTTOM - self._share(seconds) * (HEIGHT - TOP - BOTTOM)

    def _share(self, seconds: float) -> float:
        return (log10(seconds) - self.low) / (self.high - self.low)


def _times(row: Row) -> tuple[float, float]:
    return row.measured_step_time_s or 1.0, row.predicted_step_time_s or 1.0


def _written(title: str, sentence: str, rows: list[Row]) -> Iterator[str]:
    frame = Frame(rows)
    yield from opening(title, sentence, WIDTH, HEIGHT)
    yield f'<text x="14" y="22" class="b">{escape(title)}</text>\n<text x="14" y="40">{escape(sentence)}</text>\n'
    yield from _axes(frame)
    for tier in (0, 2, 1):  # the first tier on top
        yield from _dots([row for row in rows if row.step_time_tier == tier], DOTS[tier][0], frame)
    yield from _legend(rows)
    yield "</svg>\n"


def _axes(frame: Frame) -> Iterator[str]:
    """Decades on both axes, the line of equal times, and those a fifth above and below it."""
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    yield f'<path class="rule" d="M{LEFT} {TOP}V{bottom}H{right}"/>\n'
    for decade in range(frame.low, frame.high + 1):
        x, y = frame.x(10.0**decade), frame.y(10.0**decade)
        yield f'<text x="{x:.1f}" y="{bottom + 18}" class="m">{10.0**decade:g}</text>\n'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" class="e">{10.0**decade:g}</text>\n'
    low, high = 10.0**frame.low, 10.0**frame.high
    yield f'<path class="line" d="M{LEFT} {bottom}L{right} {TOP}"/>\n'
    above = f"M{LEFT} {frame.y(low * OFF):.1f}L{frame.x(high / OFF):.1f} {TOP}"
    below = f"M{frame.x(low * OFF):.1f} {bottom}L{right} {frame.y(high / OFF):.1f}"
    yield f'<path class="rule" stroke-dasharray="4 4" d="{above}{below}"/>\n'
    yield f'<text x="{(LEFT + right) / 2:.0f}" y="{bottom + 38}" class="m">measured, s (dashed: a fifth off)</text>\n'
    yield f'<text x="14" y="{TOP - 8}">predicted, s</text>\n'


def _dots(rows: list[Row], tone: str, frame: Frame) -> Iterator[str]:
    """One path for all dots of a tone: a square each, and equal ones once."""
    times = (_times(row) for row in rows)
    places = dict.fromkeys((f"{frame.x(at) - 2:.1f}", f"{frame.y(count) - 2:.1f}") for at, count in times)
    if places:
        yield f'<path class="{tone}" d="{"".join(f"M{x} {y}h4v4h-4z" for x, y in places)}"/>\n'


def _legend(rows: list[Row]) -> Iterator[str]:
    x = LEFT
    for tier in (1, 2, 0):
        count = sum(row.step_time_tier == tier for row in rows)
        if count:
            tone, said = DOTS[tier]
            yield f'<path class="{tone}" d="M{x} 54h9v9h-9z"/>\n<text x="{x + 15}" y="63">{said}: {count:,}</text>\n'
            x += 150
