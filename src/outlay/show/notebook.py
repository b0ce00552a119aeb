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


def html_of(value: object) -> str:
    """The HTML of one value; of what is none of the three, its text."""
    if isinstance(value, Bill):
        return _bill(value)
    if isinstance(value, Plan):
        return _plan(value)
    if isinstance(value, Timeline):
        return _timeline(value)
    return f"<pre>{escape(repr(value))}</pre>"


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
