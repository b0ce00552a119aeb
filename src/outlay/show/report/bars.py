"""Memory of every stage as bars against the wall, as a picture inside a page."""

from collections.abc import Iterator, Sequence
from html import escape

from ...bill import Bill, case_of, countable, load
from ...holding import Item, memory_items
from ...quantities import GIB
from ..labels import label
from ..text import figure

# By families, so that a family reads as one thing: state in three blues, activations, what is modelled in greys.
TONES = {
    "weights": "#1D4F7A", "gathered": "#1D4F7A", "blocks": "#1D4F7A", "gradients": "#4E93C9", "unit": "#4E93C9",
    "whole": "#4E93C9", "behind": "#4E93C9", "ends": "#4E93C9", "copies": "#4E93C9", "buckets": "#4E93C9",
    "optimizer": "#A9D0EE", "activations": "#C4622A", "recomputed": "#C4622A", "backward": "#C4622A",
    "logits": "#F0B67F", "kernels": "#7A7A7A", "buffers": "#7A7A7A", "beside": "#DADADA",
}  # fmt: skip
OTHER = "#7A7A7A"
WIDTH, LEFT, ROW, MOST = 760.0, 80.0, 26.0, 16


def memory_bars(bill: Bill) -> str:
    """A bar a stage, its parts in order, and the wall; of a long pipeline the first stages and the last."""
    loaded = load(countable(case_of(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)[0]))
    stages = [(place, memory_items(stage, loaded.case)) for place, stage in enumerate(loaded.every)]
    shown = stages if len(stages) <= MOST else [*stages[: MOST - 2], *stages[-2:]]
    wall = bill.memory.usable_bytes
    most = max([wall, *(sum(item.value for item in items) for _, items in shown)]) or 1.0
    height = ROW * len(shown) + 50
    said = f"Memory of {len(stages)} stages; the wall is {figure(wall / GIB)} GiB usable"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(said)}" '
        f'viewBox="0 0 {WIDTH:g} {height:g}" width="{WIDTH:g}" height="{height:g}" font-size="12" fill="currentColor">',
        *(line for row, each in enumerate(shown) for line in _row(*each, ROW * row + 18, most)),
        *_wall(wall, most, ROW * len(shown) + 22),
        *_legend([item for _, items in shown for item in items], height - 8),
        "</svg>",
    ]
    return "".join(parts)


def _at(value: float, most: float) -> float:
    return LEFT + (WIDTH - LEFT - 70) * value / most


def _row(stage: int, items: Sequence[Item], y: float, most: float) -> Iterator[str]:
    yield f'<text x="0" y="{y + 13:g}">stage {stage}</text>'
    before = 0.0
    for item in items:
        x, end = _at(before, most), _at(before + item.value, most)
        before += item.value
        said = f"{label(item.name)} {figure(item.value / GIB)} GiB, {item.kind}"
        dashed = "" if item.kind == "exact" else ' stroke-dasharray="3 2"'
        tone = TONES.get(item.name, OTHER)
        yield f'<rect x="{x:.1f}" y="{y:g}" width="{max(0.0, end - x):.1f}" height="18" fill="{tone}" '
        yield f'stroke="#444"{dashed}><title>{escape(said)}</title></rect>'
    yield f'<text x="{_at(before, most) + 6:.1f}" y="{y + 13:g}">{figure(before / GIB)} GiB</text>'


def _wall(wall: float, most: float, bottom: float) -> Iterator[str]:
    x = _at(max(0.0, wall), most)
    yield f'<path d="M{x:.1f} 6V{bottom:g}" stroke="currentColor" stroke-width="2" fill="none"/>'
    yield f'<text x="{x - 6:.1f}" y="12" text-anchor="end">{figure(wall / GIB)} GiB usable</text>'


def _legend(items: Sequence[Item], y: float) -> Iterator[str]:
    x = LEFT
    for name in dict.fromkeys(item.name for item in items):
        word = label(name)
        yield f'<rect x="{x:g}" y="{y - 10:g}" width="10" height="10" fill="{TONES.get(name, OTHER)}" stroke="#444"/>'
        yield f'<text x="{x + 14:g}" y="{y:g}" font-size="11">{escape(word)}</text>'
        x += 26 + 6.2 * len(word)
