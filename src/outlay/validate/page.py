"""A comparison as tables of a page: what is scored, the sources, errors by source and accelerator, what was skipped."""

from collections import Counter

from .predict import Validation
from .ranks import CasePeak
from .report import WORDS, cut, share, signed
from .score import facts_of
from .summary import Summary

RULE = "| --- |" + " ---: |" * 7


def markdown(validation: Validation) -> list[str]:
    """The comparison as tables of a page: scored peaks, memory, time, and what was skipped."""
    done, compared = len(validation.rows), len(validation.compared)
    text = [f"{compared:,} of {done:,} rows compared. An error is predicted / measured - 1; bias keeps the sign.", ""]
    text += [*_scores(validation), *_facts(validation), *_cases(validation.cases)]
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
