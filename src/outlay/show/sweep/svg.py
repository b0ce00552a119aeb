"""The best of each group of a sweep as one SVG file: lines over a number that varies, else a bar a group."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ..plot_svg import marks, opening
from ..text import counted, figure
from .answer import OBJECTIVES, Swept, cell, name_of, summary

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, LINE = 900, 420, 96, 230, 66, 64, 17
NUMBERS = ("ranks", "price", "sequence_length", "global_batch", "tokens")
TONES = ("F", "B", "W", "R", "C", "O")  # of the palette: they stay apart in grey and under any sight
DASHES = ("", "7 4", "2 3", "9 3 2 3", "12 5", "1 4")
MOST_BARS, HEADROOM, BAR = 24, 1.08, 13
HALF, MORE = 4.0, 2.5  # of a mark; of each one more that lies over it
MOST_NAMES = 4  # of lines that lie over one another
Spot = tuple[float, float]
UNITS: Mapping[str, float] = {"peak_bytes": 2.0**30, "mfu": 0.01}


@dataclass(frozen=True)
class Point:
    """The best of one group: its place and its figure."""

    x: float
    y: float


def sweep_svg(swept: Swept) -> str:
    """The whole file: no script, no font, light or dark as the reader's system is."""
    return "".join(_file(swept))


def _file(swept: Swept) -> Iterator[str]:
    across = axis_of(swept)
    bars = [group for group in swept.groups if group["best"]][:MOST_BARS]
    height = HEIGHT if across else TOP + 30 + BAR * 2 * max(1, len(bars))
    title = title_of(swept, across)
    yield from opening(title, summary(swept), WIDTH, height)
    yield f'<text x="14" y="22" class="b">{escape(title)}</text>\n<text x="14" y="40">{escape(summary(swept))}</text>\n'
    yield from _lines(swept, across) if across else _bars(swept, bars)
    yield "</svg>\n"


def title_of(swept: Swept, across: str) -> str:
    """What is drawn, in words."""
    most = "most" if OBJECTIVES[swept.objective] else "least"
    return f"The {most} {name_of(swept.objective)}" + (f" over {name_of(across)}" if across else "")


def axis_of(swept: Swept) -> str:
    """The number that groups differ in, which the axis shows; empty where there is none."""
    rows = [row for group in swept.groups for row in group["best"][:1]]
    names = ["ranks"] * ("on" in swept.by) + [name for name in reversed(swept.by) if name in NUMBERS]
    return next((name for name in names if len({row[name] for row in rows if row[name] is not None}) > 1), "")


def points_of(swept: Swept, across: str) -> dict[str, list[Point]]:
    """The points of each line, in order; a line is called by what tells it from the others."""
    best = [(group["group"], row) for group in swept.groups for row in group["best"][:1] if row[across] is not None]
    named = [words_of(group, across) for group, _ in best]
    apart = [at for at in range(len(named[0])) if len({words[at] for words in named}) > 1]
    found: dict[str, list[Point]] = {}
    for words, (_, row) in zip(named, best):
        y = row[swept.objective] / UNITS.get(swept.objective, 1.0)
        line = ", ".join(words[at] for at in apart)
        found.setdefault(line, []).append(Point(float(row[across]), y))
    return {line: sorted(points, key=lambda point: point.x) for line, points in found.items()}


def words_of(group: Mapping[str, Any], across: str) -> list[str]:
    """What else a group is, in words: `llama-3.1-8b`, `h100-sxm`, `seq 8,192`."""
    words = []
    for name, value in group.items():
        if name == "on" and across == "ranks":
            count, _, card = str(value).partition("x")
            words.append(card if count.isdigit() else str(value))
        elif name != across:
            text = cell(name, value)
            words.append(text if name in ("model", "on", "engine") else f"{name_of(name)} {text}")
    return words


def _lines(swept: Swept, across: str) -> Iterator[str]:
    lines = points_of(swept, across)
    every = [point for points in lines.values() for point in points]
    right, high = max(point.x for point in every), max(point.y for point in every) * HEADROOM or 1.0
    wide, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    drawn: dict[tuple[Spot, ...], list[str]] = {}  # and the names of the lines that lie there
    for line, points in lines.items():
        places = [(LEFT + at.x / right * wide, HEIGHT - BOTTOM - at.y / high * tall) for at in points]
        drawn.setdefault(tuple((round(x, 1), round(y, 1)) for x, y in places), []).append(line)
    shown = list(drawn)[: len(TONES)]
    yield from _axes(swept, across, right, high)
    ends: list[float] = []
    for number, spots in enumerate(shown):
        later = [spot for other in shown[number + 1 :] for spot in other]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
        yield f'<path class="line" stroke-dasharray="{DASHES[number]}" d="M{path}"/>\n'
        marks_of = "".join(_square(*spot, HALF + MORE * _near(spot, later)) for spot in spots)
        yield f'<path class="{TONES[number]} edge" d="{marks_of}"/>\n'
        yield from _legend(TONES[number], drawn[spots], spots[-1][1], ends)
    left = sum(len(drawn[spots]) for spots in list(drawn)[len(TONES) :])
    if left:
        said = f"{counted(left, 'line')} more {'is' if left == 1 else 'are'} not drawn"
        yield f'<text x="{WIDTH - RIGHT + 10}" y="{HEIGHT - 12}" class="i">{said}</text>\n'


def _near(spot: Spot, others: Sequence[Spot]) -> int:
    """How many of other marks, which are drawn later, lie over this one: it is larger, so that it is still seen."""
    return sum(max(abs(spot[0] - x), abs(spot[1] - y)) < HALF for x, y in others)


def _legend(tone: str, names: Sequence[str], y: float, ends: list[float]) -> Iterator[str]:
    """The name of a line at its end; where several lie over one another, one beneath the other."""
    for place, name in enumerate(names[:MOST_NAMES]):
        ends.append(_free(y, ends))
        more = len(names) - MOST_NAMES if place == MOST_NAMES - 1 else 0
        text = escape(("= " if place else "") + name[:34]) + (f", and {more} more" if more > 0 else "")
        if not place:
            yield f'<path class="{tone} edge" d="{_square(WIDTH - RIGHT + 16, ends[-1], HALF)}"/>\n'
        yield f'<text x="{WIDTH - RIGHT + 26}" y="{ends[-1] + 4:.1f}">{text}</text>\n'


def _square(x: float, y: float, half: float) -> str:
    return f"M{x - half:.1f} {y - half:.1f}h{2 * half:g}v{2 * half:g}h{-2 * half:g}z"


def _free(y: float, taken: Sequence[float]) -> float:
    """The nearest height, from here down, where no other label stands."""
    while any(abs(y - other) < LINE for other in taken):
        y += 1
    return y


def _mark(value: float) -> str:
    return figure(value) if value % 1 else f"{value:,.0f}"


def _axes(swept: Swept, across: str, right: float, high: float) -> Iterator[str]:
    """Round numbers on both axes, and what they are."""
    yield f'<path class="rule" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>\n'
    for value in marks(right):
        x = LEFT + value / right * (WIDTH - LEFT - RIGHT)
        yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" class="m">{_mark(value)}</text>\n'
    for value in marks(high):
        y = HEIGHT - BOTTOM - value / high * (HEIGHT - TOP - BOTTOM)
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" class="e">{_mark(value)}</text>\n'
    yield f'<text x="{(WIDTH + LEFT - RIGHT) / 2:.0f}" y="{HEIGHT - BOTTOM + 36}" class="m">{name_of(across)}</text>\n'
    unit = {"mfu": "MFU, %"}.get(swept.objective, name_of(swept.objective))
    yield f'<text x="{LEFT - 8}" y="{TOP - 10}" class="e">{unit}</text>\n'


def _bars(swept: Swept, groups: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A bar a group: what it is, how long, and its figure."""
    if not groups:
        none = "nothing fits and keeps to the limits" if swept.manifest["limits"] else "nothing fits"
        yield f'<text x="14" y="{TOP + 12}">{none}</text>\n'
        return
    left, most = 330, max(group["best"][0][swept.objective] for group in groups) or 1.0
    for place, group in enumerate(groups):
        y, value = TOP + 2 * BAR * place, group["best"][0][swept.objective]
        wide = value / most * (WIDTH - left - 120)
        text = escape(", ".join(words_of(group["group"], ""))[:48])
        yield f'<text x="{left - 8}" y="{y + 11}" class="e">{text}</text>\n'
        yield f'<path class="F edge" d="M{left} {y}h{wide:.1f}v{BAR}h{-wide:.1f}z"/>\n'
        yield f'<text x="{left + wide + 6:.1f}" y="{y + 11}">{cell(swept.objective, value)}</text>\n'
