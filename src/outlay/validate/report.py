"""A comparison as text, answer first, and as an object for other programs. Both say the same; a page is in `page`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .peers import beside
from .predict import Validation
from .ranks import CasePeak, StagePeak
from .row import Row
from .score import facts_of
from .summary import GROUPS, TIERS, Summary
from .tiers import timed_sources, worst

WORST = 10
WORDS = {"step_time": "step time", "peak_mem": "peak memory"}
LEVELS = {"allocated": "allocated", "reserved": "reserved"}
LEAST_ROOM = 8  # letters of a name, however narrow the terminal
COLUMNS = f"{'rows':>6} {'mean':>7} {'median':>7} {'90 %':>7} {'worst':>8} {'bias':>8} {'in band':>8}"
FIELDS = (
    "file", "line", "source", "model", "accelerator", "precision", "status", "reason", "measured_step_time_s",
    "predicted_step_time_s", "step_time_error", "step_time_in_band", "step_time_tier", "step_time_composed",
    "step_time_unscored", "measured_peak_mem_gib", "predicted_peak_mem_gib", "peak_mem_error", "peak_mem_in_band",
    "peak_mem_score", "peak_mem_unscored", "time_from", "memory_is", "engine", "layout", "facts", "assumed",
)  # fmt: skip


def as_json(validation: Validation) -> dict[str, Any]:
    """The whole comparison: rows, summary, and what was assumed of sources that are not known."""
    return {
        "schema": 1,
        "files": list(validation.files),
        "rows_total": validation.total,
        "rows_compared": len(validation.compared),
        "rows_complete": validation.complete,
        "stopped": validation.stopped,
        "profile": validation.profile or None,
        "notes": list(validation.notes),
        "rows": [{name: _plain(getattr(row, name)) for name in FIELDS} for row in validation.rows],
        "cases": [asdict(case) | {"stages": [asdict(stage) for stage in case.stages]} for case in validation.cases],
        "sources": [asdict(fact) for fact in facts_of(validation.rows)],
        "timed": [asdict(one) for one in timed_sources(validation.rows)],
        "peers": [asdict(one) for one in beside(validation.rows)],
        "summary": [asdict(one) for one in validation.summary],
    }


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def lines(validation: Validation, width: int = 100) -> list[str]:
    """The comparison for a terminal: how many and how good, then groups, what was skipped, and the worst rows."""
    text = [*_answer(validation), ""]
    text += _tiers(validation, width)
    text += _scores(validation, width)
    text += _facts(validation, width)
    for by in GROUPS[1:]:
        text += _table(validation, by, width)
    text += _cases(validation.cases)
    text += _skipped(validation, width)
    text += _worst(validation, width)
    text += _worst_scored(validation, width)
    text += [f"note: {note}" for note in validation.notes]
    return [cut(line, max(width, LEAST_ROOM + 1 + len(COLUMNS))).rstrip() for line in text]


def _tiers(validation: Validation, width: int) -> list[str]:
    """Step times by tier and source, and why the times of some sources are in no tier."""
    found = [one for one in validation.summary if one.by in TIERS]
    if not found:
        return []
    names = {one: one.name if one.by == "tier" else f"  {one.name}" for one in found}
    room = _room(("step time, scored", *names.values()), width)
    text = [
        f"{cut('step time, scored', room):<{room}} {COLUMNS}",
        *(_line(one, room, names[one]) for one in by_tier(found)),
        "",
    ]
    out = [one for one in timed_sources(validation.rows) if one.why]
    left = {one: f"{one.rows - one.first - one.second:>6,}  {one.name}: {one.why}" for one in out}
    return [*text, *(["step times that are in no tier", *(cut(left[one], width) for one in out), ""] if out else [])]


def by_tier(found: Sequence[Summary]) -> list[Summary]:
    """Each tier before its sources."""
    return sorted(found, key=lambda one: (one.name if one.by == "tier" else one.by)[: len("tier 1")])


def _worst_scored(validation: Validation, width: int) -> list[str]:
    """The scored step times that are furthest off, and what was counted."""
    found = worst(validation.rows, WORST)
    if not found:
        return []
    return [f"worst {len(found)} of the scored step times", *(cut(what(row), width) for row in found), ""]


def what(row: Row) -> str:
    """A timed row in one line: error, tier, source, model, and what was counted."""
    times = f"{row.predicted_step_time_s:.4g} s for {row.measured_step_time_s:.4g} s"
    of = f"{row.model} on {row.accelerator}, {row.precision}, {row.layout}"
    return f"{signed(row.step_time_error or 0.0):>8}  tier {row.step_time_tier}  {row.facts}: {of}; {times}"


def _scores(validation: Validation, width: int) -> list[str]:
    """The rows that are scored, and the stages that were read rank by rank."""
    found = [one for one in validation.summary if one.by in ("score", "stage")]
    if not found:
        return []
    names = {one: f"{one.name}, {LEVELS[one.quantity]}" if one.quantity in LEVELS else one.name for one in found}
    room = _room(("peak memory, scored", *names.values()), width)
    return [
        f"{cut('peak memory, scored', room):<{room}} {COLUMNS}",
        *(_line(one, room, names[one]) for one in found),
        "",
    ]


def _facts(validation: Validation, width: int) -> list[str]:
    """What each source's memory is, and whether its peaks are scored."""
    found = facts_of(validation.rows)
    if not found:
        return []
    room = max(len(fact.name) for fact in found)
    rows = (f"{fact.name:<{room}}  {fact.level:<10} {fact.unit:<4} {fact.scored:>3}  {fact.why}" for fact in found)
    return [f"{'sources of peak memory':<{room}}  {'level':<10} unit scored", *(cut(row, width) for row in rows), ""]


def _cases(cases: Sequence[CasePeak]) -> list[str]:
    """Every case that was read rank by rank, its worst rank and its stages."""
    if not cases:
        return []
    text = ["cases read rank by rank: GiB measured and predicted, largest rank of each stage"]
    for case in cases:
        if case.status == "skipped":
            text.append(f"{case.case}: {case.reason}")
            continue
        text.append(f"{case.case}  worst rank {case.worst_rank}, {signed(case.peak_error or 0.0, 2)}")
        text += [f"  stage {stage.stage}  {_stage(stage)}" for stage in case.stages]
    return [*text, ""]


def _stage(of: StagePeak) -> str:
    text = f"allocated {of.measured_allocated_gib:.2f} {of.predicted_allocated_gib:.2f} "
    text += signed(of.allocated_error, 2)
    if of.measured_reserved_gib is not None and of.reserved_error is not None:
        text += f"  reserved {of.measured_reserved_gib:.2f} {of.predicted_reserved_gib:.2f} {signed(of.reserved_error)}"
    return text


def _answer(validation: Validation) -> list[str]:
    done, compared = len(validation.rows), len(validation.compared)
    text = [f"{compared:,} of {done:,} rows compared, {done - compared:,} skipped"]
    if validation.stopped:
        text.append(f"STOPPED: {done:,} of {validation.total:,} rows were read")
    text += (
        [f"profile {validation.profile}: its constants stand in place of the catalogue's"] if validation.profile else []
    )
    overall = (one for one in validation.summary if one.by == "all")
    complete = f"{compared / max(1, validation.complete):.1%} of the rows that say all that a count needs are compared"
    signs = "error = predicted / measured - 1; bias keeps the sign"
    return [*text, *map(_overall, overall), signs, *([complete] if compared < done else [])]


def _overall(one: Summary) -> str:
    start = f"{WORDS[one.quantity] + ':':<13} mean error {share(one.mean)}, bias {signed(one.bias)}"
    return f"{start}, {one.in_band:.0%} inside the band ({one.count:,} rows)"


def share(value: float) -> str:
    return f"{100 * value:.1f} %"


def signed(value: float, digits: int = 1) -> str:
    return f"{100 * value:+.{digits}f} %"


def _table(validation: Validation, by: str, width: int) -> list[str]:
    """One table a grouping and quantity; none where nothing was compared."""
    text: list[str] = []
    for quantity, words in WORDS.items():
        found = [one for one in validation.summary if one.by == by and one.quantity == quantity]
        if found:
            title = f"{words} by {by}"
            room = _room((title, *(one.name for one in found)), width)
            text += [f"{cut(title, room):<{room}} {COLUMNS}", *(_line(one, room) for one in found), ""]
    return text


def _room(names: Sequence[str], width: int) -> int:
    """Letters of the longest name, or what the figures beside it leave: those are never cut."""
    return max(LEAST_ROOM, min(max(map(len, names)), width - len(COLUMNS) - 1))


def _line(one: Summary, room: int, name: str = "") -> str:
    shares = f"{share(one.mean):>7} {share(one.median):>7} {share(one.p90):>7}"
    ends = f"{signed(one.worst):>8} {signed(one.bias):>8} {one.in_band:>8.0%}"
    return f"{cut(name or one.name, room):<{room}} {one.count:>6,} {shares} {ends}"


def cut(text: str, room: int) -> str:
    """A text that fits, on one line whatever it holds."""
    safe = "".join(letter if letter.isprintable() else "?" for letter in text)
    return safe if len(safe) <= room else safe[: max(0, room - 2)] + ".."


def _skipped(validation: Validation, width: int) -> list[str]:
    counts = Counter(row.reason for row in validation.rows if row.status == "skipped")
    if not counts:
        return []
    rows = (f"{count:>6,}  {cut(reason, width - 8)}" for reason, count in counts.most_common())
    return [f"skipped: {counts.total():,} rows", *rows, ""]


def _worst(validation: Validation, width: int) -> list[str]:
    """The rows that are furthest off in time or in memory."""
    ranked = sorted(validation.compared, key=_size, reverse=True)[:WORST]
    if not ranked:
        return []
    return [f"worst {len(ranked)} rows", *(cut(_row(row), width) for row in ranked), ""]


def _size(row: Row) -> float:
    return max(abs(row.step_time_error or 0.0), abs(row.peak_mem_error or 0.0))


def _row(row: Row) -> str:
    found = [f"{Path(row.file).name}:{row.line}", f"{row.model} on {row.accelerator}"]
    if row.step_time_error is not None:
        found.append(
            f"{row.predicted_step_time_s:.4g} s for {row.measured_step_time_s:.4g} s, {signed(row.step_time_error)}"
        )
    if row.peak_mem_error is not None:
        memory = f"{row.predicted_peak_mem_gib:.4g} GiB for {row.measured_peak_mem_gib:.4g} GiB ({row.memory_is})"
        found.append(f"{memory}, {signed(row.peak_mem_error)}")
    return "  ".join([*found, *([f"breaks {row.reason}"] if row.reason else [])])
