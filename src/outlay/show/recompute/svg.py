"""The curve of memory against recompute as one SVG file: the best plans, the engine's own choices, and the room."""

from collections.abc import Iterator, Sequence
from html import escape

from ...quantities import GIB
from ...search.recompute.stages import Recompute
from ..plot_svg import marks, opening
from ..text import duration, figure, percent
from .answer import Answer, Spot, curve, floor_words, shown

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, LINE = 900, 420, 70, 24, 66, 64, 17
AXIS = 120  # px beside an axis that a label of the room would take
ABOVE, WIDE = 11, 9  # from a dot to the middle of its number, and what a number takes
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
        return floor_words(found)
    share = percent(best.seconds / found.plain_seconds)
    return f"{duration(best.seconds)} more a step, {share}, with {figure(best.needed / GIB)} GiB for tapes"


def _written(title: str, sentence: str, frame: Frame, body: Iterator[str]) -> Iterator[str]:
    yield from opening(title, sentence, WIDTH, HEIGHT)
    yield f'<text x="14" y="22" class="b">{escape(title)}</text>\n<text x="14" y="40">{escape(sentence)}</text>\n'
    yield from _axes(frame)
    yield from body
    yield "</svg>\n"


def _axes(frame: Frame) -> Iterator[str]:
    """Round numbers on both axes, with their units."""
    yield f'<path class="rule" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>\n'
    for value in marks(frame.right / GIB):
        x = frame.x(value * GIB)
        yield f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" class="m">{value:g}</text>\n'
    for value in marks(frame.high):
        yield f'<text x="{LEFT - 8}" y="{frame.y(value) + 4:.1f}" class="e">{value:g}</text>\n'
    yield f'<text x="{(WIDTH + LEFT) / 2:.0f}" y="{HEIGHT - BOTTOM + 36}" class="m">GiB for tapes</text>\n'
    yield f'<text x="{LEFT - 8}" y="{TOP - 10}" class="e">s more</text>\n'


def _stair(spots: Sequence[Spot], frame: Frame) -> str:
    """Every step that can be told apart in the picture; the steep end near the floor leaves it."""
    steps = dict.fromkeys((f"H{frame.x(at):.1f}", f"V{frame.y(more):.1f}") for at, more in spots if more <= frame.high)
    line = "".join(each for step in steps for each in step)
    return f"M{line[1:].replace('V', f' {TOP}V', 1)}"


def _body(answer: Answer, frame: Frame) -> Iterator[str]:
    """The curve as steps, the room as a line, and what stands beside the curve."""
    found = answer.found
    yield f'<path class="line" d="{_stair(curve(found), frame)}"/>\n'
    if 0 < found.room <= frame.right:
        x = frame.x(found.room)
        yield f'<path class="line" stroke-dasharray="5 4" d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>\n'
        near = x < LEFT + AXIS  # of the axis, whose title stands there
        at, end = (x + 5, "") if near else (x - 5, "e")
        yield f'<text x="{at:.1f}" y="{TOP - 4}" class="{end}">room {figure(found.room / GIB)} GiB</text>\n'
    yield from _dots(found, frame)


def _dots(found: Recompute, frame: Frame) -> Iterator[str]:
    """The best as a square, the engine's choices as numbered dots, and what they are at the right."""
    row = TOP + 4
    if found.outcome:
        x, y = frame.x(found.outcome.needed), frame.y(found.outcome.seconds)
        said = f"the best: {figure(found.outcome.needed / GIB)} GiB, {duration(found.outcome.seconds)}"
        yield f'<path class="B" d="M{x - 4:.1f} {y - 4:.1f}h8v8h-8zM{WIDTH - RIGHT - 8} {row - 8}h8v8h-8z"/>\n'
        yield f'<text x="{WIDTH - RIGHT - 14}" y="{row}" class="b e">{said}</text>\n'
    choices = [(each, found.choice_seconds(each)) for each in shown(found)]
    dots = [(frame.x(each.needed), frame.y(more)) for each, more in choices]
    numbers = list(_numbers(dots))
    for place, (each, more) in enumerate(choices):
        said = f"{place + 1}  {each.name}: {figure(each.needed / GIB)} GiB, {duration(more)}"
        yield f'<path class="line dot" d="M{dots[place][0]:.1f} {dots[place][1]:.1f}h0"/>\n'
        yield f'<text x="{numbers[place][0]:.1f}" y="{numbers[place][1] + 4:.1f}" class="m">{place + 1}</text>\n'
        yield f'<text x="{WIDTH - RIGHT}" y="{row + LINE * (place + 1)}" class="e">{escape(said)}</text>\n'


def _numbers(dots: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The middle of each dot's number: over it, or farther to the right where something stands there."""
    taken = list(dots)
    for x, y in dots:
        at, high = x, y - ABOVE
        while any(abs(at - there) < WIDE and abs(high - up) < ABOVE for there, up in taken):
            at += WIDE
        taken.append((at, high))
        yield at, high
