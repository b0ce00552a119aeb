"""A report as one HTML file that asks for nothing outside; and its parts, for the page and for notebooks.

Every text is escaped: what a config calls itself shows as text.
"""

from collections.abc import Iterable, Sequence
from html import escape

from outlay import __version__

from ...bill import Bill
from ...search.advice import Advice
from ..diagram.drawing import sentences
from ..diagram.html import PAGE
from ..diagram.svg import svg
from ..record import plain
from .bars import memory_bars
from .faults import faults_html
from .parts import Report, Table, derivations, memory_table, notes, time_table
from .said import Pairs, answer_pairs

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = (
    PAGE + "h2{font-size:1.1rem;margin-top:1.6rem}td,th{vertical-align:top}"
    "td:last-child,th:last-child,th:first-child{text-align:left}"
    "caption{text-align:left;margin-top:.8rem}pre{overflow-x:auto}p.line{margin:.15rem 0}div.wide{overflow-x:auto}"
    "b.key{display:inline-block;min-width:6rem}dl{margin:.2rem 0 .8rem 1rem}@media print{details{display:block}}"
)


def lines_html(pairs: Pairs, verdict: str | None = None) -> str:
    """The lines of an answer: a word and a sentence each. The first word is the verdict, where one is given."""
    made = []
    for place, (word, text) in enumerate(pairs):
        said = f' data-verdict="{escape(verdict)}"' if verdict and not place else ""
        made.append(f'<p class="line"><b class="key"{said}>{escape(word)}</b> <span>{escape(text)}</span></p>')
    return "\n".join(made)


def answer_html(bill: Bill, advice: Sequence[Advice] = ()) -> str:
    """The lines of a bill's answer."""
    return lines_html(answer_pairs(bill, advice), bill.memory.verdict or "not_legal")


def table_html(table: Table) -> str:
    """A table whose first column names its rows."""
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in table.heads)
    body = "\n".join(
        f'<tr><th scope="row">{escape(first)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in rest)}</tr>'
        for first, *rest in table.rows
    )
    note = "".join(f"<p>{escape(text)}</p>" for text in (table.note,) if text)
    caption = f"<caption><b>{escape(table.title)}</b> {escape(table.about)}</caption>"
    whole = f"<table>{caption}<thead><tr>{top}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    return f'<div class="wide">{whole}</div>{note}'


def memory_html(bill: Bill) -> str:
    """The peak of the worst rank, part by part."""
    return table_html(memory_table(bill))


def step_html(bill: Bill) -> str:
    """The step, part by part."""
    return table_html(time_table(bill))


def notes_html(bill: Bill) -> str:
    """What was assumed, and by which conventions it was counted."""
    return "\n".join(f"<h3>{head}</h3>{list_html(texts)}" for head, texts in notes(bill) if texts)


def list_html(texts: Iterable[str]) -> str:
    """A list of sentences."""
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def report_html(report: Report) -> str:
    """The whole file."""
    bill = report.bill
    broken = [faults_html([plain(each) for each in bill.violations])] if bill.violations else []
    tables = "\n".join(table_html(table) for table in report.tables)
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{escape(report.title)}</title><style>{STYLE}</style></head><body>",
        f"<h1>{escape(report.title)}</h1>",
        lines_html(report.answer),
        *broken,
        lines_html(report.subject),
        f"<h2>Memory and time</h2>\n{memory_bars(bill)}\n{tables}",
        _diagram(report),
        f"<h2>Derivations</h2>\n{_derivations(bill)}",
        f"<h2>What was assumed, and what is counted</h2>\n{notes_html(bill)}",
        f"<footer><p>outlay {__version__}</p></footer></body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _diagram(report: Report) -> str:
    if report.chart is None:
        return f"<h2>Timing diagram</h2><p>{escape(report.unseen)}</p>" if report.unseen else ""
    said = escape(" ".join(sentences(report.chart)))
    return f'<h2>Timing diagram</h2><p>{said}</p><div class="wide">{svg(report.chart).rstrip()}</div>'


def _derivations(bill: Bill) -> str:
    return "\n".join(
        f"<details><summary>{escape(name)}</summary><pre>{escape(chr(10).join(lines))}</pre></details>"
        for name, lines in derivations(bill)
    )
