"""The frontier of a plan: the least time for each memory, drawn at a terminal, a table elsewhere."""

from collections.abc import Sequence

from ...quantities import GIB
from ...search.plan import FrontierPoint, Plan
from ..layouts import layout_flags
from ..text import Style, block, figure, table, wrapped

ROWS, MOST_POINTS, LABEL = 9, 8, 10
SLOW, LEAST_POINTS = 2.0, 3  # times the least time: slower points are left out of the picture, if enough are left


def frontier_part(found: Plan, style: Style) -> list[str]:
    """A scatter with the wall for people at a terminal, a table of a few points otherwise."""
    points = found.frontier
    unsure = sum(not point.fits for point in points)
    among = " of those counted" if found.search.pruned else ""
    said = f"{len(points)} layouts that no other{among} beats on both memory and time"
    if not style.bars or len(points) < 2:
        return [*block("FRONTIER", said, style), *_points(found, style)]
    said += f"; {unsure} of them may run out of memory (o)" if unsure else ""
    drawn = quick(points)
    slow = len(points) - len(drawn)
    said += f"; {slow} that take over {SLOW:g} times the least time are left out" if slow else ""
    return [*block("FRONTIER", said, style), *scatter(drawn, _wall(found), style)]


def quick(points: Sequence[FrontierPoint]) -> list[FrontierPoint]:
    """The points worth a place in a picture."""
    least = min(point.seconds for point in points)
    kept = [point for point in points if point.seconds <= SLOW * least]
    return kept if len(kept) >= LEAST_POINTS else list(points)


def _wall(found: Plan) -> float:
    """Memory that a layout may take."""
    accelerator = found.cluster.accelerator
    return accelerator.memory_bytes - accelerator.context_bytes - found.job.reserved_bytes


def chosen(points: Sequence[FrontierPoint], most: int = MOST_POINTS) -> list[FrontierPoint]:
    """A few points over the whole range, both ends among them."""
    if len(points) <= most:
        return list(points)
    last = len(points) - 1
    return [points[round(place * last / (most - 1))] for place in range(most)]


def _points(found: Plan, style: Style) -> list[str]:
    base = found.best[0].bill.step.seconds if found.best else found.frontier[-1].seconds
    rows = [
        (
            figure(point.peak_bytes / GIB),
            figure(point.seconds, 4),
            f"{point.seconds / base:.3f}",
            "" if point.fits else "tight",
            layout_flags(point.layout, found.model, found.engine),
        )
        for point in chosen(found.frontier)
    ]
    room = style.width - 34
    rows = [(*row[:4], row[4] if len(row[4]) <= room else _cut(row[4], room)) for row in rows]
    left_out = len(found.frontier) - len(rows)
    lines = table(("peak GiB", "step s", "x", "", "layout"), rows, style, "rrrll")
    return [*lines, *(wrapped(f"{left_out} more between them: --json", style, 2, 2) if left_out else [])]


def _cut(text: str, room: int) -> str:
    """Whole flags that fit, and a sign that some are left out."""
    kept = text[: max(0, room - 3)].rsplit(" --", 1)[0]
    return f"{kept} .."


def scatter(points: Sequence[FrontierPoint], wall: float, style: Style) -> list[str]:
    """Memory to the right, seconds upwards; a point is `*`, one that may not fit `o`, the wall `|`."""
    width = style.width - LABEL - 12
    left = min(point.peak_bytes for point in points)
    right = max(wall, *(point.peak_bytes for point in points))
    low, high = min(point.seconds for point in points), max(point.seconds for point in points)
    grid = [[" "] * (width + 1) for _ in range(ROWS)]

    def column(memory: float) -> int:
        return round((memory - left) / (right - left) * width) if right > left else 0

    for row in grid:
        row[column(wall)] = "|"
    for point in reversed(points):
        height = (point.seconds - low) / (high - low) if high > low else 0.0
        grid[ROWS - 1 - round(height * (ROWS - 1))][column(point.peak_bytes)] = "*" if point.fits else "o"
    lines = [f"{'step s':>{LABEL}}"]
    for place, row in enumerate(grid):
        value = high - (high - low) * place / (ROWS - 1)
        label = figure(value) if place % 2 == 0 else ""
        lines.append(f"{label:>{LABEL}} |{''.join(row)}".rstrip())
    lines.append(f"{'':>{LABEL}} +{'-' * (width + 1)}")
    return [*lines, *_axis(left, right, wall, width, column(wall))]


def _axis(left: float, right: float, wall: float, width: int, at: int) -> list[str]:
    """Figures under the axis: both ends, the middle, and the wall by name."""
    text = [" "] * (width + 14)
    marks = {0: figure(left / GIB), width // 2: figure((left + right) / 2 / GIB)}
    for place, mark in marks.items():
        text[place : place + len(mark)] = mark
    name = f"wall {figure(wall / GIB)} GiB"
    start = max(0, min(at - len(name) + 1, width - len(name) + 1))
    text[start : start + len(name)] = name
    return [(" " * (LABEL + 2) + "".join(text)).rstrip()]
