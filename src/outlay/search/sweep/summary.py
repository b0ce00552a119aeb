"""What is shown of a sweep: how many rows have each verdict, and the best rows of each group. Summaries of several
sets of parts make that of all of them, so whoever counts a part sums it up too, and nothing is read again."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Wanted:
    """What is asked of the rows."""

    by: tuple[str, ...]  # the columns that make a group
    objective: str  # the column that is best
    descending: bool  # whether more of it is better
    most: int  # layouts of each group
    prices: int  # rows of one layout, which differ in the price alone


@dataclass(frozen=True)
class Group:
    """The rows with the same values of `by`."""

    values: tuple[Any, ...]
    first: int  # its first question
    questions: int
    fitting: int  # those that fit and keep to the limits
    best: tuple[Row, ...]  # whole rows; under `prices` the figures of other prices of the same layout


@dataclass(frozen=True)
class Summary:
    """Some rows in short."""

    totals: Mapping[str, int]  # rows of each verdict; under `not_legal` those that break a rule
    groups: tuple[Group, ...]  # in the order of their first questions


def together(summaries: Iterable[Summary], wanted: Wanted) -> Summary:
    """The summary of all rows of several sets, no row in two of them."""
    totals, found = Counter[str](), dict[tuple[Any, ...], Group]()
    for summary in summaries:
        totals.update(summary.totals)
        for group in summary.groups:
            before = found.get(group.values)
            found[group.values] = _joined(before, group, wanted) if before else group
    return Summary(totals, tuple(sorted(found.values(), key=lambda group: group.first)))


def _joined(a: Group, b: Group, wanted: Wanted) -> Group:
    return replace(
        a,
        first=min(a.first, b.first),
        questions=a.questions + b.questions,
        fitting=a.fitting + b.fitting,
        best=tuple(ordered([*a.best, *b.best], wanted)[: wanted.most]),
    )


def ordered(rows: Iterable[Row], wanted: Wanted) -> list[Row]:
    """Rows with the best first; of equal ones the earlier question."""
    turn = -1 if wanted.descending else 1
    return sorted(rows, key=lambda row: (turn * row[wanted.objective], row["question"]))


def priced_rows(best: Sequence[Row], good: Iterable[Row], wanted: Wanted) -> list[Row]:
    """The best rows, each with what its layout costs at every price of those that keep to the limits; `good` holds
    these rows. A group of one price has it in the row itself."""
    if wanted.prices == 1 or "price" in wanted.by:
        return list(best)
    costs: dict[int, list[Row]] = {}
    for row in good:
        cost = {name: row[name] for name in ("price", "dollars", "dollars_per_million_tokens")}
        costs.setdefault(row["question"] // wanted.prices, []).append(cost)
    return [row | {"prices": costs[row["question"] // wanted.prices]} for row in best]
