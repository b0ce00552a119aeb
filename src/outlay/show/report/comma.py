"""A report as CSV: a figure a line, in bytes, seconds and shares, with its kind and both ends of its band."""

import csv
import io
from collections.abc import Iterator

from ...bill import Bill
from ...holding import Item
from .parts import Report

HEADS = ("part", "name", "value", "unit", "kind", "low", "high", "note")
FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would run
Row = tuple[str, str, float | str, str, str, float | str, float | str, str]


def report_csv(report: Report) -> str:
    """The whole file."""
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(HEADS)
    writer.writerows([_cell(value) for value in row] for row in rows(report.bill))
    return made.getvalue()


def _cell(value: float | str) -> str:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULAS) else value
    return repr(value)


def rows(bill: Bill) -> Iterator[Row]:
    """Every figure of a bill."""
    yield "question", "model", bill.model.name, "", "", "", "", ""
    yield "question", "cluster", bill.cluster.name, "", "", "", "", ""
    yield "question", "engine", bill.engine.name, "", "", "", "", ""
    yield "answer", "verdict", bill.memory.verdict or "not_legal", "", "", "", "", ""
    low, high = bill.memory.peak_band_bytes
    worst = bill.memory.worst_rank
    yield "memory", "peak", bill.memory.peak_bytes, "B", "modelled", low, high, f"rank {worst.rank}: {worst.why}"
    yield "memory", "usable", bill.memory.usable_bytes, "B", "exact", "", "", ""
    yield from (_item("memory", item, "B") for item in bill.memory.items)
    for stage in bill.memory.ranks:
        yield "stage", str(stage.stage), stage.peak_bytes, "B", "", "", "", f"{stage.ranks} ranks"
    low, high = bill.step.band_seconds
    yield "step", "step", bill.step.seconds, "s", "modelled", low, high, ""
    yield from (_item("step", item, "s") for item in bill.step.items)
    yield "rate", "tokens_per_second", bill.step.tokens_per_second, "token/s", "modelled", "", "", ""
    yield "rate", "mfu", bill.step.mfu, "share", "modelled", "", "", ""
    yield "bubble", "share", bill.bubble.share, "share", "", "", "", bill.bubble.definition
    yield from (("traffic", one.axis, one.bytes, "B", "exact", "", "", one.link) for one in bill.traffic)
    yield from (("assumed", "", text, "", "", "", "", "") for text in bill.assumptions)
    for each in bill.violations:
        yield "violation", each.code, each.what, "", "", "", "", each.fix


def _item(part: str, item: Item, unit: str) -> Row:
    low, high = (item.value, item.value) if item.kind == "exact" else (item.low, item.high)
    return part, item.name, item.value, unit, item.kind, low, high, ""
