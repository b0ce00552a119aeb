"""Two timing diagrams on one sheet, one above the other, with one scale of time: predicted above measured."""

from ..plot_svg import opening
from .drawing import Chart, View, sentences
from .rows import px
from .svg import WIDTH, Picture, elements, painted, tile, tiles_of


def svg_of_two(upper: Chart, lower: Chart, width: int = WIDTH) -> str:
    """The whole file. Both charts show all that they hold: nothing is folded away."""
    pictures = [Picture(chart, width) for chart in (upper, lower)]
    longest = max(chart.makespan for chart in (upper, lower))
    for picture in pictures:
        picture.view = View(longest, picture.view.width)
    heights = [painted(picture) for picture in pictures]
    tiles = dict.fromkeys(name for picture in pictures for name in tiles_of(picture))
    described = " ".join(f"{chart.title}: {' '.join(sentences(chart))}" for chart in (upper, lower))
    first = opening(f"{upper.title}, {lower.title}", described, width, sum(heights), "".join(map(tile, tiles)))
    above, below = (elements(picture, name) for picture, name in zip(pictures, ("plot", "below"), strict=True))
    moved = f'<g transform="translate(0 {px(heights[0])})">\n'
    return "".join([*first, *above, moved, *below, "</g>\n</svg>\n"])
