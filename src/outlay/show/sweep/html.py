"""The best of a sweep as one page: the chart, and a table with the whole layout of each row."""

from collections.abc import Iterator
from html import escape

from ..diagram.html import PAGE
from .answer import SHOWN, Swept, cell, figure_of, layout_flags, name_of, prices_text, summary, without
from .svg import sweep_svg

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
LEFT = ".l{text-align:left}td,code{white-space:nowrap}"


def sweep_html(swept: Swept) -> str:
    """The whole page: nothing is loaded from elsewhere."""
    return "".join(_page(swept))


def _page(swept: Swept) -> Iterator[str]:
    title = escape(f"Sweep: {swept.folder}")
    yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    yield '<meta name="viewport" content="width=device-width">'
    yield f"<title>{title}</title><style>{PAGE}{LEFT}</style></head>\n<body><h1>{title}</h1>\n"
    yield f"<p>{escape(summary(swept))}. Shown is the best by {escape(name_of(swept.objective))}.</p>\n"
    yield sweep_svg(swept)
    columns = list(dict.fromkeys((swept.objective, *SHOWN, "days", "dollars")))
    heads = "".join(f'<th scope="col" class="l">{escape(name_of(name))}</th>' for name in swept.by)
    heads += "".join(f'<th scope="col">{escape(name_of(name))}</th>' for name in columns)
    yield f'<table>\n<thead><tr>{heads}<th scope="col" class="l">layout</th></tr></thead>\n<tbody>\n'
    for group in swept.groups:
        names = "".join(f'<td class="l">{escape(cell(name, group["group"][name]))}</td>' for name in swept.by)
        if not group["best"]:
            yield f'<tr>{names}<td colspan="{len(columns) + 1}" class="l">{without(swept, group)}</td></tr>\n'
        for row in group["best"]:
            figures = "".join(f"<td>{escape(figure_of(row, name, swept.objective))}</td>" for name in columns)
            yield f'<tr>{names}{figures}<td class="l"><code>{escape(layout_flags(row))}</code></td></tr>\n'
    yield f"</tbody></table>\n<p>{escape(prices_text(swept))}</p></body></html>\n"
