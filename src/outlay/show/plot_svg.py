"""What every picture has: the opening of its file, and round numbers for its axes."""

from collections.abc import Iterator
from html import escape
from math import floor, log10

from .palette import style_sheet

STEPS = 6  # marks on an axis, about


def opening(title: str, described: str, width: float, height: float, definitions: str = "") -> Iterator[str]:
    """The file's first elements: its size, title and description for readers of screens, styles, and the paper."""
    yield '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="t d" '
    yield f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}">\n'
    yield f'<title id="t">{escape(title)}</title>\n<desc id="d">{escape(described)}</desc>\n'
    yield f"<style>{style_sheet()}</style>\n{definitions}"
    yield f'<path class="paper" d="M0 0h{width:g}v{height:g}H0z"/>\n'


def marks(most: float) -> Iterator[float]:
    """Round numbers from 0 to the end of an axis."""
    size = 10.0 ** floor(log10(most / STEPS))
    step = next(size * each for each in (1, 2, 5, 10) if size * each >= most / STEPS)
    for index in range(int(most / step) + 1):
        yield index * step
