"""A comparison as tables of a page: what is scored, the sources, errors by source and accelerator, what was skipped."""

from collections import Counter
from textwrap import wrap

from .peers import beside, uncompared
from .predict import Validation
from .ranks import CasePeak
from .report import WORDS, WORST, by_tier, cut, share, signed
from .row import Row
from .score import facts_of
from .summary import TIERS, Summary
from .tiers import timed_sources, worst

PAGE_WIDTH = 120
PEERS = (
    "*published*: by themselves; *measured*: run by us, nothing fitted by us. Constants of outlay's rest on some of "
    "these rows: `outlay validate --hold-out` says how far off steps are where they do not. Not compared:"
)
RULE = "| --- |" + " ---: |" * 7


def markdown(validation: Validation) -> list[str]:
    """The comparison as tables of a page: scored peaks, memory, time, and what was skipped."""
    done, compared = len(validation.rows), len(validation.compared)
    text = [
        f"{compared:,} of {done:,} rows compared: {compared / max(1, validation.complete):.1%} of those that say all"
    ]
    text += ["that a count needs. An error is predicted / measured - 1; bias keeps the sign.", ""]
    text += [*_tiers(validation), *_timed(validation), *_worst(validation)]
    text += [*_peers(validation), *_scores(validation), *_facts(validation), *_cases(validation.cases)]
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
    return [head, RULE, *(_page_row(one, one.name) for one in found), ""]


def _page_row(one: Summary, name: str) -> str:
    shares = (share(one.mean), share(one.median), share(one.p90), signed(one.worst), signed(one.bias))
    return f"| {_cell(name)} | {one.count:,} | {' | '.join(shares)} | {one.in_band:.0%} |"


def _tiers(validation: Validation) -> list[str]:
    found = [one for one in validation.summary if one.by in TIERS]
    if not found:
        return []
    rows = (_page_row(one, f"**{one.name}**" if one.by == "tier" else one.name) for one in by_tier(found))
    return ["| step time, scored | rows | mean | median | 90 % | worst | bias | in band |", RULE, *rows, ""]


def _timed(validation: Validation) -> list[str]:
    found = timed_sources(validation.rows)
    if not found:
        return []
    rows = (
        f"| {_cell(of.name)} | {of.rows:,} | {of.first:,} | {of.second:,} | {_cell(of.why, 1000)} |" for of in found
    )
    head = "| sources of step times | rows | tier 1 | tier 2 | why the others are in none |"
    return [head, "| --- | ---: | ---: | ---: | --- |", *rows, ""]


def _worst(validation: Validation) -> list[str]:
    found = worst(validation.rows, WORST)
    if not found:
        return []
    rows = (
        f"| {signed(row.step_time_error or 0.0)} | {row.step_time_tier} | {_cell(_of(row), 200)} |" for row in found
    )
    return [f"| worst {len(found)} of the scored times | tier | what |", "| ---: | ---: | --- |", *rows, ""]


def _of(row: Row) -> str:
    return f"{row.facts}: {row.model} on {row.accelerator}, {row.precision}, {row.layout}"


def _peers(validation: Validation) -> list[str]:
    """Other planners on the same rows, and what could not be compared."""
    found = beside(validation.rows)
    if not found:
        return []
    rows = (
        f"| {WORDS[of.quantity]}, {_cell(of.facts)} | {of.rows} | {share(each.mean)} | {signed(each.bias)} "
        f"| {of.name} {of.release} | {share(of.mean)} | {'' if of.bias is None else signed(of.bias)} | {of.kind} "
        f"| {_cell(f'{of.how}; {of.source}', 1000)} |"
        for each in found for of in [each.peer]
    )  # fmt: skip
    head = "| the same rows, other planners | rows | outlay, mean | bias | planner | mean | bias | kind | how |"
    lines = [head, "| --- | ---: | ---: | ---: | --- | ---: | ---: | --- | --- |", *rows, ""]
    lines += [*wrap(PEERS, PAGE_WIDTH), ""]
    for name, reason in uncompared():
        lines += wrap(f"- {name} {reason}.", PAGE_WIDTH, subsequent_indent="  ")
    return [*lines, ""]


def _scores(validation: Validation) -> list[str]:
    found = [one for one in validation.summary if one.by in ("score", "stage")]
    if not found:
        return []
    rows = (_page_row(one, one.name if one.by == "score" else f"{one.name}, {one.quantity}") for one in found)
    return ["| peak memory, scored | rows | mean | median | 90 % | worst | bias | in band |", RULE, *rows, ""]


def _facts(validation: Validation) -> list[str]:
    found = facts_of(validation.rows)
    if not found:
        return []
    rows = (f"| {_cell(of.name)} | {of.level} | {of.unit} | {of.scored} | {_cell(of.why, 1000)} |" for of in found)
    head = "| sources of peak memory | level | unit | rows scored | why the others are not |"
    return [head, "| --- | --- | --- | ---: | --- |", *rows, ""]


def _cases(cases: tuple[CasePeak, ...]) -> list[str]:
    if not cases:
        return []
    rows = []
    for case in cases:
        if case.status == "skipped":
            rows.append(f"| {_cell(case.case)} | {_cell(case.reason)} | | | | |")
        for at in case.stages:
            kept = "" if at.measured_reserved_gib is None else f"{at.measured_reserved_gib:.2f}"
            error = "" if at.reserved_error is None else signed(at.reserved_error)
            held = f"{at.measured_allocated_gib:.2f} | {signed(at.allocated_error, 2)}"
            rows.append(f"| {_cell(case.case)} | {at.stage} | {held} | {kept} | {error} |")
    head = "| case, read rank by rank | stage | allocated, GiB | error | reserved, GiB | error |"
    return [head, "| --- | ---: | ---: | ---: | ---: | ---: |", *rows, ""]


def _cell(text: str, room: int = 120) -> str:
    return cut(text, room).replace("|", "/")
