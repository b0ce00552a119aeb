"""A bill, a plan and a timeline as HTML, for the output of a notebook's cell."""

from base64 import b64encode
from html import escape

from ..bill import Bill
from ..schedule.timeline import Timeline
from ..search.plan import Plan
from .diagram.chart import chart_of
from .diagram.svg import svg
from .record import plain
from .report.faults import faults_html
from .report.html import answer_html, memory_html, step_html, table_html
from .report.parts import ranking_table

# Stronger than what a notebook says of tables, and without a colour of paper or ink: those are the notebook's.
STYLE = (
    ".outlay p.line{display:flex;gap:.6rem;margin:.15rem 0}.outlay b.key{flex:none;min-width:6rem}"
    ".outlay div.wide{overflow-x:auto;margin:.8rem 0 .3rem}.outlay table{margin:0;font-variant-numeric:tabular-nums}"
    ".outlay table caption{caption-side:top;text-align:left;padding:0 0 .3rem;color:inherit}"
    ".outlay table :is(th,td){text-align:right;vertical-align:top;padding:.15rem .7rem;white-space:nowrap}"
    ".outlay table :is(th,td):is(:first-child,:last-child){text-align:left}"
    ".outlay div.faults{margin:.6rem 0}.outlay div.faults p{margin:0}"
    ".outlay div.faults dl{display:grid;grid-template-columns:max-content 1fr;gap:0 1rem;margin:.1rem 0 0 1rem}"
    ".outlay div.faults :is(dt,dd){float:none;width:auto;margin:0;padding:0}"
)


def html_of(value: object) -> str:
    """The HTML of one value; of what is none of the three, its text."""
    if isinstance(value, Bill):
        return _within(_bill(value))
    if isinstance(value, Plan):
        return _within(_plan(value))
    if isinstance(value, Timeline):
        return _timeline(value)
    return f"<pre>{escape(repr(value))}</pre>"


def _within(answer: str) -> str:
    """In a part of the page by itself, with a style for it alone."""
    return f'<div class="outlay"><style>{STYLE}</style>\n{answer}</div>'


def _bill(bill: Bill) -> str:
    broken = faults_html([plain(each) for each in bill.violations])
    return "\n".join([answer_html(bill), broken, memory_html(bill), step_html(bill)])


def _plan(found: Plan) -> str:
    """The ranking, and the answer of the best; where nothing fits, that of the layout that needs least."""
    if found.best:
        return f"{answer_html(found.best[0].bill)}\n{table_html(ranking_table(found.best, found.best[0].bill))}"
    if found.smallest:
        return answer_html(found.smallest.bill)
    return "<p>No layout is legal.</p>"


def _timeline(timeline: Timeline) -> str:
    """The diagram as a picture, whose styles stay inside it. Times are in the unit of the durations."""
    title = f"{timeline.name}, {timeline.pp} ranks, {timeline.micro_batches:,} micro-batches"
    picture = b64encode(svg(chart_of(timeline, title)).encode()).decode()
    return f'<img alt="{escape(title)}" src="data:image/svg+xml;base64,{picture}">'
