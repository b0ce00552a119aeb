"""The best rows of a sweep: a table, a group a line; and one record for JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

from ...quantities import GIB
from ...search.sweep.summary import Summary, Wanted
from ..record import Record, head, plain
from ..text import Style, block, counted, duration, figure, gib, percent, table, wrapped

# What a row can be best in, and whether more is better.
OBJECTIVES: Mapping[str, bool] = {
    "tokens_per_second": True,
    "tokens_per_second_per_device": True,
    "mfu": True,
    "seconds": False,
    "days": False,
    "accelerator_hours": False,
    "dollars": False,
    "dollars_per_million_tokens": False,
    "peak_bytes": False,
}
WORDS: Mapping[str, str] = {
    "tokens_per_second": "tokens/s",
    "tokens_per_second_per_device": "tokens/s a card",
    "mfu": "MFU",
    "seconds": "step",
    "days": "days",
    "accelerator_hours": "card hours",
    "dollars": "USD",
    "dollars_per_million_tokens": "USD/Mtoken",
    "peak_bytes": "peak GiB",
    "sequence_length": "seq",
    "global_batch": "batch",
    "micro_batch": "mbs",
}
SHOWN = ("seconds", "mfu", "peak_bytes", "dollars_per_million_tokens")
MOST_GROUPS = 40
LEAST_LAYOUT = 26  # columns for a layout
LEGALITY = ("fits", "tight", "does_not_fit", "impossible", "not_legal")


@dataclass(frozen=True)
class Swept:
    """What the folder of a sweep holds, and what was asked of it."""

    folder: str
    manifest: Mapping[str, Any]
    summary: Summary
    wanted: Wanted

    @property
    def totals(self) -> Mapping[str, int]:
        """Rows by verdict."""
        return self.summary.totals

    @property
    def objective(self) -> str:
        """The column that is best."""
        return self.wanted.objective

    @property
    def by(self) -> tuple[str, ...]:
        """The columns that make a group."""
        return self.wanted.by

    @cached_property
    def groups(self) -> tuple[Mapping[str, Any], ...]:
        """The best of each group, in the order of its first question."""
        return tuple(
            {
                "group": dict(zip(self.by, each.values)),
                "questions": each.questions,
                "fitting": each.fitting,
                "best": list(each.best),
            }
            for each in self.summary.groups
        )

    @property
    def counted(self) -> int:
        """Questions that are answered."""
        return sum(self.totals.values())

    @property
    def fitting(self) -> int:
        """Questions with a row that is one of the best."""
        return sum(group["fitting"] for group in self.groups)


def sweep_record(swept: Swept, files: Sequence[str] = ()) -> Record:
    """Everything that is shown, with whole rows."""
    manifest = swept.manifest
    return head("sweep") | {
        "folder": swept.folder,
        "kind": manifest["kind"],
        "questions": manifest["questions"],
        "counted": swept.counted,
        "verdicts": {name: swept.totals.get(name, 0) for name in LEGALITY},
        "axes": manifest["axes"],
        "limits": manifest["limits"],
        "objective": swept.objective,
        "by": list(swept.by),
        "groups": plain(swept.groups),
        "files": list(files),
    }


def sweep_lines(swept: Swept, style: Style, files: Sequence[str] = ()) -> list[str]:
    """How far it is, how many fit, and the best of each group."""
    asked, done = swept.manifest["questions"], swept.counted
    whole = done == asked
    said = counted(asked, "question") if whole else f"{done:,} of {asked:,} questions; the same command counts the rest"
    lines = block("SWEPT" if whole else "SO FAR", said, style)
    verdicts = [f"{swept.totals[name]:,} {name.replace('_', ' ')}" for name in LEGALITY if swept.totals.get(name)]
    lines += block("VERDICTS", ", ".join(verdicts) or "none yet", style)
    most = "most" if OBJECTIVES[swept.objective] else "least"
    title = f"the {most} {name_of(swept.objective)} of each {', '.join(map(name_of, swept.by))}; of what fits"
    title += _limits(swept.manifest["limits"])
    lines += ["", *block("BEST", title, style), *_table(swept, style)]
    lines += ["", *block("ROWS", f"{swept.folder}/*.parquet: DuckDB, pandas and Polars open them", style)]
    return lines + [line for path in files for line in block("WROTE", path, style)]


def _limits(limits: Mapping[str, Sequence[str]]) -> str:
    """The limits in words."""
    ends = {
        name: ["" if not isfinite(float(end)) else _limit(name, float(end)) for end in both]
        for name, both in limits.items()
    }
    kept = ", ".join(f"{name} {low}..{high}" for name, (low, high) in ends.items())
    return f" and keeps to {kept}" if kept else ""


def _limit(column: str, value: float) -> str:
    """One end of a limit, in the unit in which it can be given."""
    if column.endswith("_bytes"):
        return gib(value)
    return percent(value) if column == "mfu" else f"{value:,.6g}"


def name_of(column: str) -> str:
    """A column in a word."""
    return WORDS.get(column, column.replace("_", " "))


def cell(column: str, value: Any) -> str:
    """One value for a table."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if column == "mfu":
        return percent(value)
    if column.endswith("seconds") or column == "seconds":
        return duration(value, 4)
    if column.endswith("_bytes"):
        return figure(value / GIB)
    return figure(value, 4) if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def figure_of(row: Mapping[str, Any], column: str, objective: str) -> str:
    """A figure of a row for a table: what depends on the price, from the least to the most where there are several."""
    of_prices = [cost[column] for cost in row.get("prices", ()) if column in cost and column != objective]
    ends = dict.fromkeys(cell(column, end) for end in (min(of_prices), max(of_prices))) if of_prices else {}
    return "..".join(ends) if ends else cell(column, row[column])


def prices_text(swept: Swept) -> str:
    """Of which prices ranges are; nothing where there are none."""
    found = {cost["price"] for group in swept.groups for row in group["best"] for cost in row.get("prices", ())}
    if len(found) < 2:
        return ""
    ends = f"{min(found):,.2f}..{max(found):,.2f} USD an hour of a card"
    how = f"the best of {ends}" if swept.objective.startswith("dollars") else ends
    return f"dollars at {how}, a layout once (--by price: each price by itself)"


def _table(swept: Swept, style: Style) -> list[str]:
    """A line a row; figures give way to its layout where the terminal is narrow."""
    columns = list(dict.fromkeys((swept.objective, *(name for name in SHOWN if _known(swept, name)))))
    several = any(len(group["best"]) > 1 for group in swept.groups)
    shown = swept.groups[:MOST_GROUPS]
    while True:
        heads, rows = _cells(swept, shown, columns, several)
        used = 4 + sum(2 + max(len(row[at]) for row in [heads, *rows]) for at in range(len(heads)))
        if style.width - used >= LEAST_LAYOUT or len(columns) == 1:
            break
        columns.pop()
    every = [row for group in shown for row in group["best"] or [None]]
    for line, row in zip(rows, every, strict=True):
        line.append(cut(layout_flags(row), max(0, style.width - used)) if row else "")
    left = "l" * len(swept.by) + "r" * (len(columns) + several) + "l"
    lines, hidden = table([*heads, "layout"], rows, style, left), len(swept.groups) - MOST_GROUPS
    said = [f"{hidden:,} groups more: --json"] if hidden > 0 else []
    said += list(filter(None, [prices_text(swept)])) if any(name.startswith("dollars") for name in columns) else []
    return [*lines, *(line for text in said for line in wrapped(text, style, 2, 2))]


def _cells(
    swept: Swept, groups: Sequence[Mapping[str, Any]], columns: Sequence[str], several: bool
) -> tuple[list[str], list[list[str]]]:  # fmt: skip
    """The heads of the table and its lines, without layouts."""
    rows = []
    for group in groups:
        names = [cell(name, group["group"][name]) for name in swept.by]
        for place, row in enumerate(group["best"], 1):
            rows.append([*names, *[str(place)] * several, *(figure_of(row, each, swept.objective) for each in columns)])
        if not group["best"]:
            rows.append([*names, *["-"] * several, without(swept, group), *[""] * (len(columns) - 1)])
    return [*map(name_of, swept.by), *["#"] * several, *map(name_of, columns)], rows


def without(swept: Swept, group: Mapping[str, Any]) -> str:
    """Why a group has no best row."""
    if group["fitting"]:
        return "not known"
    return "none" if swept.manifest["limits"] else "nothing fits"


def _known(swept: Swept, column: str) -> bool:
    """Whether any of the best has this figure."""
    return any(row[column] is not None for group in swept.groups for row in group["best"])


def cut(text: str, room: int) -> str:
    """Whole flags that fit, and a sign that some are left out."""
    return text if len(text) <= room else f"{text[: max(0, room - 3)].rsplit(' --', 1)[0]} .."


def layout_flags(row: Mapping[str, Any]) -> str:
    """The flags of `outlay count` that make the layout of a row, but for those that change nothing."""
    words = [f"--{name} {row[name]}" for name in ("tp", "cp", "pp", "ep", "etp", "vpp") if (row[name] or 1) > 1]
    said = {
        f"--mbs {row['micro_batch']}": row["micro_batch"] > 1,
        f"--dp-replicate {row['dp_replicate']}": row["dp_replicate"] > 1,
        f"--zero {row['zero']}": row["dp"] * row["cp"] > 1,
        f"--schedule {row['schedule']}": row["pp"] > 1
        and row["schedule"] != ("interleaved" if row["vpp"] > 1 else "1f1b"),
        "--no-sp": row["tp"] > 1 and not row["sp"],
        f"--cp-kind {row['cp_kind']}": row["cp"] > 1 and row["cp_kind"] != "ring",
        f"--moe-dispatch {row['moe_dispatch']}": row["ep"] > 1 and row["moe_dispatch"] != "all_to_all",
        f"--recompute {row['recompute']}": row["recompute"] != "none",
        f"--recompute-layers {row['recompute_layers']}": row["recompute"] == "full",
        "--overlap-tp": row["overlap_tp"] and row["tp"] > 1,
        "--no-overlap-dp": not row["overlap_dp"] and row["dp"] > 1,
        f"--offload-optimizer {row['offload_optimizer']:g}": row["offload_optimizer"] > 0,
    }
    words += [text for text, needed in said.items() if needed]
    words += [
        f"--{name.replace('_', '-')} {row[name]:g}"
        for name in ("offload_parameters", "offload_activations")
        if row.get(name)
    ]
    words += [f"--split {row['split']}"] if row.get("split") else []
    return " ".join(words) or "every axis 1"


def summary(swept: Swept) -> str:
    """One sentence, for the description of a picture."""
    fits = counted(swept.totals.get("fits", 0), "layout")
    by = ", ".join(map(name_of, swept.by))
    return f"{swept.counted:,} questions, {fits} that surely fit; {len(swept.groups):,} groups by {by}"
