"""A timing diagram as one HTML file: the picture, a table a rank, keys to zoom and pan. It asks for nothing outside.

Without JavaScript the picture and the table are all there; the script draws parts of the same data larger.
"""

import json
from collections.abc import Iterator
from html import escape
from importlib.resources import files

import numpy as np

from ..palette import INK_DARK, INK_LIGHT, PAPER_DARK, PAPER_LIGHT, tone_of
from .drawing import CAUSES, Chart, Lane, sentences, share
from .svg import Picture, svg
from .two import svg_of_two

PARTS, FINE = 10**7, 10**13  # the script counts time in parts of the step; fine ones where most of it is left out
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
KEYS = {"w": "zoom in", "s": "zoom out", "a": "earlier", "d": "later", "home": "start", "end": "end", "f": "fit"}
PAGE = (
    f":root{{color-scheme:light dark;color:{INK_LIGHT};background:{PAPER_LIGHT}}}"
    "body{font:15px/1.45 system-ui,'DejaVu Sans',sans-serif;margin:1rem;max-width:1240px}"
    "svg{max-width:100%;height:auto}h1{font-size:1.2rem}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    "td,th{padding:.15rem .7rem;text-align:right;border-bottom:1px solid #8A848066}"
    "button{font:inherit;min-height:2.2rem}"
    f"@media (prefers-color-scheme:dark){{:root{{color:{INK_DARK};background:{PAPER_DARK}}}}}"
)


def html(chart: Chart) -> str:
    """The whole file. The script can show whatever the chart holds: also what the picture folds away."""
    script = files(__package__).joinpath("diagram.js").read_text("utf-8")
    buttons = " ".join(f'<button data-key="{key}"><kbd>{key}</kbd> {word}</button>' for key, word in KEYS.items())
    return "\n".join(
        [
            *_opening(chart.title),
            f"<p>{escape(' '.join(sentences(chart)))}</p>",
            svg(chart).rstrip(),
            f'<p>{buttons} <span id="said" role="status" aria-live="polite">the whole step</span></p>',
            *_table(chart),
            f'<script type="application/json" id="data">{_data(chart)}</script>',
            f"<script>{script}</script></body></html>\n",
        ]
    )


def html_of_two(upper: Chart, lower: Chart) -> str:
    """A file with two diagrams, one above the other, and their tables."""
    said = [f"<p>{escape(' '.join(sentences(chart)))}</p>" for chart in (upper, lower)]
    title = f"{upper.title}, {lower.title}"
    page = [*_opening(title), *said, svg_of_two(upper, lower).rstrip(), *_table(upper, upper.title)]
    return "\n".join([*page, *_table(lower, lower.title), "</body></html>\n"])


def _opening(title: str) -> Iterator[str]:
    yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    yield '<meta name="viewport" content="width=device-width">'
    yield f"<title>{escape(title)}</title><style>{PAGE}</style></head><body>"
    yield f"<h1>{escape(title)}</h1>"


def _table(chart: Chart, caption: str = "Each rank") -> Iterator[str]:
    """Busy and idle time of each rank, by cause, and what it holds."""
    heads = ("rank", "busy", "idle", "idle share", *CAUSES, "in flight at the peak")
    yield f"<table><caption>{escape(caption)}</caption><thead><tr>"
    yield "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr></thead><tbody>"
    lanes = _by_rank(chart)
    for rank, lane in lanes:
        idle = share(lane.idle / chart.makespan if chart.makespan else 0.0)
        causes = (chart.time(lane.idle_by_cause.get(cause, 0.0)) for cause in CAUSES)
        cells = (chart.time(lane.busy), chart.time(lane.idle), idle, *causes, f"{lane.peak:.4g}")
        yield f'<tr><th scope="row">{rank}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table>"


def _by_rank(chart: Chart) -> list[tuple[int, Lane]]:
    return sorted(((rank, lane) for lane in chart.lanes for rank in lane.ranks), key=lambda pair: pair[0])


def _data(chart: Chart) -> str:
    """What the script draws from: times in parts of the step, gaps and durations in turn."""
    picture, parts = Picture(chart), FINE if chart.missing else PARTS
    made = {
        "makespan": chart.makespan,
        "unit": chart.unit,
        "end": parts,
        "left": round(picture.left, 1),
        "width": round(picture.view.width, 1),
        "top": picture.top,
        "row": picture.row,
        "pitch": picture.pitch,
        "missing": [round(time / chart.makespan * parts) for time in chart.missing or ()],
        "rows": [_row(lane, parts / chart.makespan) for lane in chart.lanes],
    }
    return json.dumps(made, separators=(",", ":")).replace("</", "<\\/")


def _row(lane: Lane, scale: float) -> dict[str, object]:
    start, end, first, last = (
        np.rint(times * scale).astype(np.int64) for times in (lane.start, lane.end, lane.gap_start, lane.gap_end)
    )
    before = np.concatenate([[0], end[:-1]]).astype(np.int64)
    tones = "".join(tone_of(kind) for kind in lane.kind.tolist())
    waits = zip(first.tolist(), last.tolist(), lane.gap_cause.tolist())
    found = {
        "d": np.stack([start - before, end - start], axis=1).tolist(),
        "k": tones,
        "c": "".join(str(min(chunk, 9)) for chunk in lane.chunk.tolist()),
        "m": lane.micro_batch.tolist(),
        "g": [list(each) for each in waits],
    }
    return found | ({"o": lane.other.tolist()} if (lane.other >= 0).any() else {})
