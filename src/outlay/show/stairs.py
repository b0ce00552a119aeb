"""A staircase as HTML: its picture in the page's own colours, and the same as text. A digit works, a dot idles."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

CELL, LEFT, TOP, LINE = 26, 60, 4, 24  # px
MOST_ROWS, MOST_SLOTS, FEW_SLOTS = 16, 40, 10  # drawn at all; without scrolling on a phone
LETTER = 6.6  # px, of a text below
IDLE = "."

Rows = Sequence[str]


def is_drawn(rows: Rows) -> bool:
    """Whether a staircase is small enough to be read."""
    return bool(rows) and len(rows) <= MOST_ROWS and max(map(len, rows)) <= MOST_SLOTS


def figure(rows: Rows, title: str, said: str = "", reads: bool = False, right: Rows = ()) -> str:
    """A staircase under its title. `reads`: M, P - 1 and their sum stand below it; `right`: what differs is marked."""
    about = f"{title}: {len(rows)} rank{'' if len(rows) == 1 else 's'}, as text below"
    wide = max(map(len, rows)) > FEW_SLOTS
    scrolls = f' role="region" tabindex="0" aria-label="{escape(title)}, picture"' if wide else ""
    text = "\n".join(f"rank {rank:<3} {row}" for rank, row in enumerate(rows))
    return (
        f'<figure class="stairs"><figcaption><b>{escape(title)}</b>{f" {escape(said)}" if said else ""}</figcaption>'
        f'<div class="scroll"{scrolls}>{_svg(rows, about, reads, right)}</div>'
        f"<details><summary>The same as text</summary><pre>{escape(text)}</pre></details></figure>"
    )


def _svg(rows: Rows, about: str, reads: bool, right: Rows) -> str:
    below = list(_read_off(rows)) if reads else []
    slots, bottom = max(map(len, rows)), TOP + CELL * len(rows)
    widest = max((len(text) for _, _, text in below), default=0) * LETTER
    width, height = LEFT + max(slots * CELL, widest) + 4, bottom + LINE * len(below) + TOP
    parts = [
        *_cells(rows, slots),
        *_wrong(rows, right, slots),
        *(each for line, one in enumerate(below) for each in _span(bottom + LINE * line, *one)),
    ]
    size = f'width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}"'
    return f'<svg {size} role="img" aria-label="{escape(about)}">{"".join(parts)}</svg>'


def _cells(rows: Rows, slots: int) -> Iterator[str]:
    """The label, the working cells with their micro-batch, and the idle ones of each rank."""
    idle = ""
    for rank, row in enumerate(rows):
        y = TOP + rank * CELL
        yield f'<text x="{LEFT - 8}" y="{y + 17}" class="end faint">rank {rank}</text>'
        for slot, letter in enumerate(row.ljust(slots, IDLE)):
            x = LEFT + slot * CELL
            if letter == IDLE:
                idle += f"M{x + 8} {y + 18}l10-10"
                yield f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" class="rest"/>'
            else:
                yield f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" class="F edge"/>'
                yield f'<text x="{x + CELL // 2}" y="{y + 17}" class="n tF">{escape(letter)}</text>'
    if idle:
        yield f'<path d="{idle}" class="idle-line"/>'


def _wrong(rows: Rows, right: Rows, slots: int) -> Iterator[str]:
    """A frame around every cell that is not as it should be."""
    for rank, (row, other) in enumerate(zip(rows, right, strict=False)):
        wide = max(slots, len(other))
        for slot, (letter, wanted) in enumerate(zip(row.ljust(wide, IDLE), other.ljust(wide, IDLE), strict=True)):
            if letter != wanted and slot < slots:
                x, y = LEFT + slot * CELL + 2, TOP + rank * CELL + 2
                yield f'<rect x="{x}" y="{y}" width="{CELL - 4}" height="{CELL - 4}" class="off"/>'


Below = tuple[int, int, str]


def _read_off(rows: Rows) -> Iterator[Below]:
    """Lines below: from slot, to slot, and what they are, of the first rank: it works at once, and then waits."""
    runs = [(letter != IDLE, len(list(group))) for letter, group in groupby(rows[0], lambda one: IDLE * (one == IDLE))]
    works, waits = sum(size for busy, size in runs if busy), sum(size for busy, size in runs if not busy)
    yield 0, works, f"M = {works}"
    if waits:
        yield works, works + waits, f"P - 1 = {waits}"
    yield 0, works + waits, f"M + P - 1 = {works + waits} slots"


def _span(y: float, start: int, end: int, text: str) -> Iterator[str]:
    x, right = LEFT + start * CELL, LEFT + end * CELL
    yield f'<path d="M{x + 1} {y + 3}v4h{right - x - 2}v-4" class="tick"/>'
    room = (right - x) >= len(text) * LETTER
    place, name = ((x + right) / 2, "mid") if room else (right, "end") if start else (x, "")
    yield f'<text x="{place:g}" y="{y + 19:g}" class="{name}">{escape(text)}</text>'
