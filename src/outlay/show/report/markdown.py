"""A report as Markdown, for a pull request or a page."""

import re
from collections.abc import Iterator, Sequence

from ...bill import Bill
from .parts import Report, Table, notes

SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#$])")
FIRST = 12  # assumptions that are shown; the others are folded away


def text(said: str) -> str:
    """A text that shows as it is: no markup, no line of its own, and nobody is called by it."""
    plain = " ".join(said.split())
    return SPECIAL.sub(r"\\\1", plain).replace("@", "&#64;")


def report_markdown(report: Report) -> str:
    """The whole text."""
    parts = [f"### {text(report.title)}", _pairs(report.answer), _pairs(report.subject)]
    if report.bill.violations:
        parts.append("\n".join(f"- **{each.code}** {text(each.what)}: {text(each.got)}; fix: {text(each.fix)}"
                               for each in report.bill.violations))  # fmt: skip
    parts += ["\n".join(_table(table)) for table in report.tables]
    return "\n\n".join([*parts, *_notes(report.bill)]) + "\n"


def _pairs(pairs: list[tuple[str, str]]) -> str:
    return "\n".join(f"- **{text(word)}** {text(said)}" for word, said in pairs)


def _table(table: Table) -> Iterator[str]:
    yield f"**{text(table.title)}**" + (f": {text(table.about)}" if table.about else "")
    yield ""
    yield "| " + " | ".join(text(head) for head in table.heads) + " |"
    columns = list(zip(*table.rows, strict=True)) or [()] * len(table.heads)
    yield "|" + "|".join(" ---: " if _is_of_numbers(column) else " --- " for column in columns) + "|"
    yield from ("| " + " | ".join(text(cell) for cell in row) + " |" for row in table.rows)
    if table.note:
        yield ""
        yield text(table.note)


def _is_of_numbers(cells: Sequence[str]) -> bool:
    return all(re.match(r"-?[\d.,]+( (%|m?s|[kMGT]i?B))?$", cell) for cell in cells if cell) and any(cells)


def _notes(bill: Bill) -> Iterator[str]:
    for head, texts in notes(bill):
        if texts:
            lines = "\n".join(f"- {text(each)}" for each in texts)
            yield f"<details><summary>{head}</summary>\n\n{lines}\n\n</details>"
