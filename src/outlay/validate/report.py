"""A comparison as text, answer first, and as an object for other programs. Both say the same."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .predict import Row, Validation
from .summary import GROUPS, Summary

WORST = 10
WORDS = {"step_time": "step time", "peak_mem": "peak memory"}
COLUMNS = f"{'rows':>6} {'mean':>7} {'median':>7} {'90 %':>7} {'worst':>8} {'bias':>8} {'in band':>8}"
FIELDS = (
    "file", "line", "source", "model", "accelerator", "precision", "status", "reason", "measured_step_time_s",
    "predicted_step_time_s", "step_time_error", "step_time_in_band", "measured_peak_mem_gib", "predicted_peak_mem_gib",
    "peak_mem_error", "peak_mem_in_band", "time_from", "memory_is", "engine", "assumed",
)  # fmt: skip


def as_json(validation: Validation) -> dict[str, Any]:
    """The whole comparison: rows, summary, and what was assumed of sources that are not known."""
    return {
        "schema": 1,
        "files": list(validation.files),
        "rows_total": validation.total,
        "rows_compared": len(validation.compared),
        "stopped": validation.stopped,
        "notes": list(validation.notes),
        "rows": [{name: _plain(getattr(row, name)) for name in FIELDS} for row in validation.rows],
        "summary": [asdict(one) for one in validation.summary],
    }


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def lines(validation: Validation, width: int = 100) -> list[str]:
    """The comparison for a terminal: how many and how good, then groups, what was skipped, and the worst rows."""
    text = [*_answer(validation), ""]
    for by in GROUPS[1:]:
        text += _table(validation, by, width)
    text += _skipped(validation, width)
    text += _worst(validation, width)
    text += [f"note: {note}" for note in validation.notes]
    return [_cut(line[:width], width).rstrip() for line in text]


def markdown(validation: Validation) -> list[str]:
    """The comparison as tables of a page: memory, then time, by source and by accelerator; then what was skipped."""
    done, compared = len(validation.rows), len(validation.compared)
    text = [f"{compared:,} of {done:,} rows compared. An error is predicted / measured - 1; bias keeps the sign.", ""]
    for quantity in reversed(WORDS):
        for by in ("source", "accelerator"):
            text += _page_table(validation, quantity, by)
    counts = Counter(row.reason for row in validation.rows if row.status == "skipped")
    rows = [f"| {count:,} | {_cell(reason)} |" for reason, count in counts.most_common()]
    return [*text, *(["| rows skipped | why |", "| ---: | --- |", *rows, ""] if rows else [])]


def _page_table(validation: Validation, quantity: str, by: str) -> list[str]:
    found = [one for one in validation.summary if one.by == by and one.quantity == quantity]
    if not found:
        return []
    head = f"| {WORDS[quantity]} by {by} | rows | mean | median | 90 % | worst | bias | in band |"
    return [head, "| --- |" + " ---: |" * 7, *map(_page_row, found), ""]


def _page_row(one: Summary) -> str:
    shares = (_share(one.mean), _share(one.median), _share(one.p90), _signed(one.worst), _signed(one.bias))
    return f"| {_cell(one.name)} | {one.count:,} | {' | '.join(shares)} | {one.in_band:.0%} |"


def _cell(text: str) -> str:
    return _cut(text, 120).replace("|", "/")


def _answer(validation: Validation) -> list[str]:
    done, compared = len(validation.rows), len(validation.compared)
    text = [f"{compared:,} of {done:,} rows compared, {done - compared:,} skipped"]
    if validation.stopped:
        text.append(f"STOPPED: {done:,} of {validation.total:,} rows were read")
    overall = (one for one in validation.summary if one.by == "all")
    return [*text, *map(_overall, overall), "error = predicted / measured - 1; bias keeps the sign"]


def _overall(one: Summary) -> str:
    start = f"{WORDS[one.quantity] + ':':<13} mean error {_share(one.mean)}, bias {_signed(one.bias)}"
    return f"{start}, {one.in_band:.0%} inside the band ({one.count:,} rows)"


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _signed(value: float) -> str:
    return f"{100 * value:+.1f} %"


def _table(validation: Validation, by: str, width: int) -> list[str]:
    """One table a grouping and quantity; none where nothing was compared."""
    text: list[str] = []
    for quantity, words in WORDS.items():
        found = [one for one in validation.summary if one.by == by and one.quantity == quantity]
        if found:
            title = f"{words} by {by}"
            room = max(len(title), min(max(len(one.name) for one in found), width - len(COLUMNS) - 1))
            text += [f"{title:<{room}} {COLUMNS}", *(_line(one, room) for one in found), ""]
    return text


def _line(one: Summary, room: int) -> str:
    shares = f"{_share(one.mean):>7} {_share(one.median):>7} {_share(one.p90):>7}"
    ends = f"{_signed(one.worst):>8} {_signed(one.bias):>8} {one.in_band:>8.0%}"
    return f"{_cut(one.name, room):<{room}} {one.count:>6,} {shares} {ends}"


def _cut(text: str, room: int) -> str:
    """A text that fits, on one line whatever it holds."""
    safe = "".join(letter if letter.isprintable() else "?" for letter in text)
    return safe if len(safe) <= room else safe[: max(0, room - 2)] + ".."


def _skipped(validation: Validation, width: int) -> list[str]:
    counts = Counter(row.reason for row in validation.rows if row.status == "skipped")
    if not counts:
        return []
    rows = (f"{count:>6,}  {_cut(reason, width - 8)}" for reason, count in counts.most_common())
    return [f"skipped: {counts.total():,} rows", *rows, ""]


def _worst(validation: Validation, width: int) -> list[str]:
    """The rows that are furthest off in time or in memory."""
    ranked = sorted(validation.compared, key=_size, reverse=True)[:WORST]
    if not ranked:
        return []
    return [f"worst {len(ranked)} rows", *(_cut(_row(row), width) for row in ranked), ""]


def _size(row: Row) -> float:
    return max(abs(row.step_time_error or 0.0), abs(row.peak_mem_error or 0.0))


def _row(row: Row) -> str:
    found = [f"{Path(row.file).name}:{row.line}", f"{row.model} on {row.accelerator}"]
    if row.step_time_error is not None:
        found.append(
            f"{row.predicted_step_time_s:.4g} s for {row.measured_step_time_s:.4g} s, {_signed(row.step_time_error)}"
        )
    if row.peak_mem_error is not None:
        memory = f"{row.predicted_peak_mem_gib:.4g} GiB for {row.measured_peak_mem_gib:.4g} GiB ({row.memory_is})"
        found.append(f"{memory}, {_signed(row.peak_mem_error)}")
    return "  ".join([*found, *([f"breaks {row.reason}"] if row.reason else [])])
