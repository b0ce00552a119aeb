"""The curve of memory against recompute as one SVG file: the best plans, the engine's own choices, and the room."""

from collections.abc import Iterator
from html import escape
from math import floor, log10

from ..quantities import GIB
from .palette import style_sheet
from .recompute import Answer, curve, shown
from .text import duration, figure, percent

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, LINE = 900, 420, 70, 24, 66, 64, 17
STEPS = 6  # marks on an axis, about
HEADROOM, LEAST = 1.3, 1e-9  # the plot is higher than what is marked on it, and never flat: s


def recompute_svg(answer: Answer) -> str:
    """The whole file: no script, no font, light or dark as the reader's system is."""
    found, bill = answer.found, answer.bill
    points, offered = curve(found), [(each, found.choice_seconds(each)) for each in shown(found)]
    right = max([memory for memory, _ in points] + [each.needed for each, _ in offered])
    every = [more for _, more in offered] or [more for _, more in points]
    high = HEADROOM * max(max(every), found.outcome.seconds if found.outcome else 0.0, LEAST)
    frame = Frame(right, high)
    title = f"{bill.model.name} on {bill.cluster.name}: recompute"
    return "".join(_written(title, _sentence(answer), frame, _body(answer, frame)))


class Frame:
    """The plot: memory to the right, time upwards."""

    def __init__(self, right: float, high: float) -> None:
        self.right, self.high = right, high

    def x(self, memory: float) -> float:
        """Where a memory stands."""
        return LEFT + memory / self.right * (WIDTH - LEFT - RIGHT)

    def y(self, seconds: float) -> float:
        """Where a time stands."""
        return HEIGHT - BOTTOM - seconds / self.high * (HEIGHT - TOP - BOTTOM)


def _sentence(answer: Answer) -> str:
    found = answer.found
    best = found.outcome
    if best is None:
        return (
            f"no plan fits {figure(found.room / GIB)} GiB; the least is {figure(found.needed(found.floor) / GIB)} GiB"
        )
    share = percent(best.seconds / found.plain_seconds)
    return f"{duration(best.seconds)} more a step, {share}, with {figure(best.needed / GIB)} GiB for tapes"


def _written(title: str, sentence: str, frame: Frame, body: Iterator[str]) -> Iterator[str]:
    yield '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="t d" '
    yield f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">\n'
    yield f'<title id="t">{escape(title)}</title>\n<desc id="d">{escape(sentence)}</desc>\n'
    yield f"<style>{style_sheet()}</style>\n"
    yield f'<path class="paper" d="M0 0h{WIDTH}v{HEIGHT}H0z"/>\n'
    yield f'<text x="14" y="22" class="b">{escape(title)}</text>\n<text x="14" y="40">{escape(sentence)}</text>\n'
    yield from _axes(frame)
    yield from body
    yield "</svg>\n"


def _axes(frame: Frame) -> Iterator[str]:
    """Round numbers on both axes, with their units."""
    yield f'<path class="rule" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>\n'
    for value in _marks(frame.right / GIB):
        x = frame.x(value * GIB)
        yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" class="m">{value:g}</text>\n'
    for value in _marks(frame.high):
        yield f'<text x="{LEFT - 8}" y="{frame.y(value) + 4:.1f}" class="e">{value:g}</text>\n'
    yield f'<text x="{(WIDTH + LEFT) / 2:.0f}" y="{HEIGHT - BOTTOM + 36}" class="m">GiB for tapes</text>\n'
    yield f'<text x="{LEFT - 8}" y="{TOP - 10}" class="e">s more</text>\n'


def _marks(most: float) -> Iterator[float]:
    size = 10.0 ** floor(log10(most / STEPS))
    step = next(size * each for each in (1, 2, 5, 10) if size * each >= most / STEPS)
    for index in range(int(most / step) + 1):
        yield index * step


def _body(answer: Answer, frame: Frame) -> Iterator[str]:
    """The curve as steps, the choices as dots with their names, the room as a line."""
    found = answer.found
    line = ""
    for memory, more in curve(found):
        x, y = frame.x(memory), frame.y(more)
        if more <= frame.high:  # the steep end near the floor leaves the plot
            line += f"H{x:.1f}V{y:.1f}" if line else f"M{x:.1f} {TOP}V{y:.1f}"
    yield f'<path class="line" d="{line}"/>\n'
    if 0 < found.room <= frame.right:
        x = frame.x(found.room)
        yield f'<path class="line" stroke-dasharray="5 4" d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>\n'
        yield f'<text x="{x - 5:.1f}" y="{TOP - 4}" class="e">room {figure(found.room / GIB)} GiB</text>\n'
    for place, each in enumerate(shown(found), 1):
        more = found.choice_seconds(each)
        x, y = frame.x(each.needed), frame.y(more)
        yield f'<path class="line dot" d="M{x:.1f} {y:.1f}h0"/>\n'
        yield f'<text x="{x:.1f}" y="{y - 7:.1f}" class="m">{place}</text>\n'
        said = f"{place}  {each.name}: {figure(each.needed / GIB)} GiB, {duration(more)}"
        yield f'<text x="{WIDTH - RIGHT}" y="{TOP + 4 + LINE * place}" class="e">{escape(said)}</text>\n'
    if found.outcome:
        x, y = frame.x(found.outcome.needed), frame.y(found.outcome.seconds)
        yield f'<path class="B" d="M{x - 4:.1f} {y - 4:.1f}h8v8h-8z"/>\n'
        yield f'<text x="{x - 8:.1f}" y="{y + 16:.1f}" class="b e">the best</text>\n'
