"""The first paint: the answer as HTML, made by the server, so that the page reads without a script."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

Record = Mapping[str, Any]
GIB, GB = 2**30, 1e9


def answer_html(pairs: Sequence[Sequence[str]], verdict: str | None) -> str:
    """The lines of an answer: a word and a sentence each; the first word is the verdict."""
    lines = []
    for place, (word, text) in enumerate(pairs):
        said = f' data-verdict="{escape(verdict or "not_legal")}"' if not place else ""
        lines.append(f'<p class="line"><b class="key"{said}>{escape(word)}</b> <span>{escape(text)}</span></p>')
    return "".join(lines)


def faults_html(faults: Iterable[Record]) -> str:
    """Everything that is wrong, each with its rule and a way out."""
    return "".join(
        f'<div class="faults"><p><b>{escape(one["what"])}</b> <code>{escape(one["code"])}</code></p>'
        f"<dl><dt>rule</dt><dd>{escape(one['rule'])}</dd><dt>got</dt><dd>{escape(one['got'])}</dd>"
        f"<dt>fix</dt><dd>{escape(one['fix'])}</dd></dl></div>"
        for one in faults
    )


def table_html(heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str) -> str:
    """A table whose first column names its rows."""
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in rest) + "</tr>"
        for first, *rest in rows
    )
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def list_html(texts: Iterable[str]) -> str:
    """A list of sentences."""
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def memory_html(bill: Record) -> str:
    """The memory of the worst rank, part by part."""
    memory = bill["memory"]
    rows = []
    for item in memory["items"]:
        size, low, high = item["bytes"], item["low"] / GIB, item["high"] / GIB
        sure = "exact" if item["kind"] == "exact" else f"{item['band']} {low:,.3f} to {high:,.3f} GiB"
        rows.append((item["name"].replace("_", " "), f"{size / GIB:,.3f}", f"{size / GB:,.3f}", sure))
    peak, worst = memory["peak_bytes"], memory["worst_rank"]
    rows.append(("peak", f"{peak / GIB:,.3f}", f"{peak / GB:,.3f}", ""))
    caption = f"Memory of rank {worst['rank']}, the heaviest: {worst['why']}"
    return table_html(("part", "GiB", "GB", ""), rows, caption)


def step_html(bill: Record) -> str:
    """The step, part by part, the longest first."""
    step = bill["step"]
    total, rows = step["seconds"], []
    for item in sorted(step["items"], key=lambda one: -(one["seconds"] or 0)):
        share = f"{100 * item['seconds'] / total:.1f} %" if total else ""
        rows.append((item["name"].replace("_", " "), f"{item['seconds']:,.4f}", share))
    rows.append(("step", f"{total:,.4f}", "100.0 %"))
    return table_html(("part", "exposed s", "share"), rows, "The step, part by part")


def notes_html(bill: Record) -> str:
    """What was assumed, and by which conventions it was counted."""
    counts = [f"{name.replace('_', ' ')}: {text}" for name, text in bill["conventions"].items()]
    return list_html([*bill["assumptions"], *counts])
