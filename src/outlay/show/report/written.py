"""A report in each of its forms, and what is printed beside its files."""

from collections.abc import Callable, Mapping, Sequence

from ..record import Record, head
from ..schema import DRAFT, NUMBER, TEXT, Schema, list_of, record_of
from ..text import Style, block, safe
from .comma import report_csv
from .html import report_html
from .markdown import report_markdown
from .parts import Report

FORMS: Mapping[str, Callable[[Report], str]] = {"html": report_html, "md": report_markdown, "csv": report_csv}


def written(form: str, report: Report) -> str:
    """The text of a report in one of its forms."""
    return FORMS[form](report)


def report_record(report: Report, files: Sequence[str]) -> Record:
    """The answer in short, and the files."""
    memory = report.bill.memory
    return head("report") | {
        "title": report.title,
        "verdict": memory.verdict,
        "peak_bytes": memory.peak_bytes,
        "seconds": report.bill.step.seconds,
        "files": list(files),
        "violations": [each.code for each in report.bill.violations],
    }


def schema() -> Schema:
    """What `outlay report --json` prints."""
    made = {
        "schema": {"const": "outlay.report.1"},
        "version": TEXT,
        "title": TEXT,
        "verdict": {"enum": ["fits", "tight", "does_not_fit", "impossible", None]},
        "peak_bytes": NUMBER,
        "seconds": NUMBER,
        "files": list_of(TEXT),
        "violations": list_of(TEXT),
    }
    return {"$schema": DRAFT, **record_of(made)}


def report_lines(report: Report, files: Sequence[str], style: Style) -> list[str]:
    """The answer, and the files."""
    lines = [line for word, text in report.answer for line in block(word, safe(text), style)]
    return [*lines, *block("FILES", ", ".join(map(safe, files)), style)]
