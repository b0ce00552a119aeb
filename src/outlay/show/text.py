"""Words, numbers and columns of a terminal: nothing here knows what a bill is."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor, isfinite

from ..quantities import GB, GIB

KEY = 10  # columns of the keyword at the left edge
LEAST_WIDTH, MOST_WIDTH = 60, 100
HUGE = 1e12  # numbers from here on are written with an exponent
GOOD, WARN, BAD = "32", "33", "31"


@dataclass(frozen=True)
class Style:
    """How to print: how wide, and whether the reader sees colour and bars."""

    width: int = MOST_WIDTH
    colour: bool = False
    bars: bool = False

    def paint(self, text: str, code: str) -> str:
        """A text in one colour or weight, where there is colour."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


PLAIN = Style()


def block(key: str, text: str, style: Style, code: str = "1") -> list[str]:
    """A keyword at the left edge and its text, wrapped beside it."""
    indent = max(KEY, len(key) + 2)
    lines = textwrap.wrap(text, style.width - indent, break_on_hyphens=False) or [""]
    first = style.paint(key, code) + " " * (indent - len(key)) + lines[0]
    return [first.rstrip(), *(" " * indent + line for line in lines[1:])]


def wrapped(text: str, style: Style, indent: int = 2, hang: int = 4) -> list[str]:
    """A text by itself, its later lines further in."""
    return textwrap.wrap(
        text, style.width, initial_indent=" " * indent, subsequent_indent=" " * hang, break_on_hyphens=False
    )


def safe(text: str) -> str:
    """A text from outside, without what would move the cursor."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


# --- numbers --------------------------------------------------------------------------------------------------------


def decimals(value: float, digits: int = 4, most: int = 3) -> int:
    """Decimals that show about so many digits of a number."""
    size = abs(value)
    before = len(str(int(size))) if 1 <= size < 1e15 else 1
    return max(0, min(most, digits - before))


def figure(value: float, digits: int = 3) -> str:
    """A number with about so many digits: `50.4`, `1,182.7`."""
    if not isfinite(value):
        return "no limit"
    return f"{value:,.{decimals(value, digits, digits)}f}" if abs(value) < HUGE else f"{value:.{digits - 1}e}"


def gib(value: float, digits: int = 3) -> str:
    """Bytes in GiB."""
    return f"{figure(value / GIB, digits)} GiB"


def both(value: float, digits: int = 3) -> str:
    """Bytes in both usual units: `50.4 GiB (54.2 GB)`."""
    return f"{gib(value, digits)} ({figure(value / GB, digits)} GB)"


def duration(value: float, digits: int = 3) -> str:
    """Seconds in the unit that suits them: `64.6 s`, `280 ms`."""
    if not isfinite(value):
        return "no end"
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if abs(value) >= size:
            return f"{figure(value / size, digits)} {unit}"
    return f"{figure(value / 1e-6, digits)} us" if value else "0 s"


def percent(share: float, digits: int = 3) -> str:
    """A share of 0..1 in percent: `17.9 %`."""
    return f"{figure(100 * share, digits)} %"


def short(value: float) -> str:
    """A count in words' size: `70.55 billion`."""
    if abs(value) >= HUGE * 1e4:
        return figure(value)
    for size, word in ((1e12, " trillion"), (1e9, " billion"), (1e6, " million")):
        if abs(value) >= size:
            return f"{figure(value / size, 4)}{word}"
    return f"{value:,.0f}" if value >= 10 or value == int(value) else figure(value)


def counted(number: float, word: str) -> str:
    """A count and its word: `1 card`, `2.5 cards`."""
    text = f"{number:,.0f}" if number == int(number) else figure(number)
    return f"{text} {word}{'' if number == 1 else 'es' if word.endswith('ch') else 's'}"


def adding_up(values: Sequence[float], places: int) -> list[str]:
    """Rounded parts that add up to their rounded total: the largest remainders are rounded up."""
    if sum(values) >= HUGE:
        return [figure(value, 4) for value in values]
    scale = 10**places
    scaled = [value * scale for value in values]
    units = [floor(value) for value in scaled]
    missing = round(sum(scaled)) - sum(units)
    order = sorted(range(len(values)), key=lambda index: units[index] - scaled[index])
    for index in order[:missing]:
        units[index] += 1
    return [f"{unit / scale:,.{places}f}" for unit in units]


# --- columns --------------------------------------------------------------------------------------------------------


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], style: Style, left: str = "", indent: int = 2
) -> list[str]:
    """Columns as wide as they need; `left` has an `l` for each column that stands at the left.

    Where they do not fit, the last ones are left out, and a line says which.
    """
    cells = [list(map(str, heads)), *(list(map(str, row)) for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(heads))]
    kept = len(heads)
    while kept > 2 and indent + sum(widths[:kept]) + 2 * (kept - 1) > style.width:
        kept -= 1
    lines = [_row(row[:kept], widths, left, indent) for row in cells]
    lines[0] = style.paint(lines[0], "2")
    if any(heads[kept:]):
        said = f"not shown at {style.width} columns: {', '.join(head for head in heads[kept:] if head)}"
        lines += wrapped(f"({said})", style, indent, indent)
    return lines


def _row(row: Sequence[str], widths: Sequence[int], left: str, indent: int) -> str:
    cells = [
        cell.ljust(width) if left[index : index + 1] == "l" else cell.rjust(width)
        for index, (cell, width) in enumerate(zip(row, widths, strict=False))
    ]
    return (" " * indent + "  ".join(cells)).rstrip()
