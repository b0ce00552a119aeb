"""The rows of a sweep: which columns they have, and those that follow from others."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...bill import Bill
from ...job import Job
from ...layout.axes import Layout
from ...ranges import hints_of, parts_of
from ...whole_run import DAY, HOUR, run_of
from .study import Limit, Study

Array = NDArray[Any]
Type = Literal["whole", "number", "text", "flag"]


@dataclass(frozen=True)
class Words:
    """A column of texts: the different ones, and which one each row has."""

    values: tuple[str | None, ...]
    index: Array


Column = Array | Words | str | float | bool | None  # an array, or one value of all rows; what is not known is NaN
Columns = dict[str, Column]

TASK = ("sequence_length", "global_batch", "tokens", "precision", "optimizer")
CUT = (
    "tp", "sp", "cp", "cp_kind", "pp", "vpp", "ep", "etp", "moe_dispatch", "dp_replicate", "dp_shard", "zero",
    "micro_batch", "schedule", "recompute", "recompute_layers", "overlap_tp", "overlap_dp", "offload_optimizer",
)  # fmt: skip
ANSWER: dict[str, Type] = {
    "dp": "whole",
    "micro_batches": "number",
    "verdict": "text",  # fits, tight, does_not_fit, impossible; nothing where a rule is broken
    "broken": "text",  # the codes of the rules that are broken
    "peak_bytes": "number",
    "peak_low_bytes": "number",
    "peak_high_bytes": "number",
    "usable_bytes": "number",
    "seconds": "number",
    "seconds_low": "number",
    "seconds_high": "number",
    "tokens_per_second": "number",
    "tokens_per_second_per_device": "number",
    "mfu": "number",
    "days": "number",
    "accelerator_hours": "number",
    "dollars": "number",
    "dollars_low": "number",
    "dollars_high": "number",
    "dollars_per_million_tokens": "number",
    "in_limits": "flag",
}
SEARCHED: dict[str, Type] = {"legal": "whole", "fitting": "whole"}  # layouts of a plan
SEARCHED_BY = "searched_"  # begins the columns that say how a plan was narrowed


def type_of(name: str) -> Type:
    """The type of the column of a field of a job or a layout; a list is the text that the study has."""
    hint = next((hints_of(cls)[name] for cls in (Job, Layout) if name in hints_of(cls)), str)
    kind, _ = parts_of(hint)
    found: Mapping[Any, Type] = {int: "whole", float: "number", bool: "flag"}
    return found.get(kind, "text")


def schema(study: Study) -> dict[str, Type]:
    """Every column of a study's rows in order, and its type."""
    names = [axis.name for axis in study.axes]
    site: dict[str, Type] = {"question": "whole", **dict.fromkeys(("model", "on", "engine"), "text")}
    site |= {name: "text" for name in ("profile", "space") if name in names}
    site |= {"ranks": "whole", "price": "number"}
    job = [*TASK, *(name for name in names if name in hints_of(Job) and name not in TASK)]
    given = [name for name in names if name in (*hints_of(Layout), "hybrid")]
    if study.kind == "plan":
        told: dict[str, Type] = {SEARCHED_BY + name: "text" for name in given}
        cut = (*CUT, *(["split"] if "split" in given else []))
        return site | told | {name: type_of(name) for name in (*job, *cut)} | SEARCHED | ANSWER
    return site | {name: type_of(name) for name in (*job, *CUT, *given)} | ANSWER


def plainly(name: str, value: Any, text: str = "") -> Column:
    """A field's value as a column holds it."""
    if value is None:
        return None if type_of(name) in ("text", "flag") else np.nan
    if isinstance(value, str | bool | int | float):
        return value
    return text or None


def row_of(bill: Bill) -> Columns:
    """What a bill says in a row; a layout that breaks a rule has no figures."""
    layout = {name: plainly(name, getattr(bill.layout, name)) for name in CUT}
    found = layout | {"dp": bill.derived.dp, "micro_batches": bill.derived.micro_batches}
    codes = dict.fromkeys(violation.code for violation in bill.violations)
    if codes:
        return found | {"verdict": None, "broken": " ".join(codes)}
    memory, step, run = bill.memory, bill.step, run_of(bill)
    return found | {
        "verdict": memory.verdict,
        "broken": None,
        "peak_bytes": memory.peak_bytes,
        "peak_low_bytes": memory.peak_band_bytes[0],
        "peak_high_bytes": memory.peak_band_bytes[1],
        "usable_bytes": memory.usable_bytes,
        "seconds": step.seconds,
        "seconds_low": step.band_seconds[0],
        "seconds_high": step.band_seconds[1],
        "tokens_per_second": step.tokens_per_second,
        "tokens_per_second_per_device": step.tokens_per_second_per_device,
        "mfu": step.mfu,
        "days": run.seconds / DAY if run else np.nan,
        "accelerator_hours": run.accelerator_hours if run else np.nan,
    }


def split_column(bill: Bill) -> Columns:
    """The split that was sought for a layout; nothing where the engine's own cut is as good."""
    return {"split": ",".join(map(str, bill.layout.split or ())) or None}


def joined_rows(rows: list[Columns], types: Mapping[str, Type]) -> Columns:
    """Several rows as columns."""
    found: Columns = {}
    for name in {name: None for row in rows for name in row}:
        values = [row.get(name, np.nan) for row in rows]
        if types[name] == "text":
            words = tuple(value if isinstance(value, str) else None for value in values)
            found[name] = Words(words, np.arange(len(rows)))
        else:
            found[name] = np.asarray([np.nan if value is None else value for value in values], float)
    return found


def taken(columns: Columns, index: Array) -> Columns:
    """Some rows."""
    return {name: _taken(column, index) for name, column in columns.items()}


def _taken(column: Column, index: Array) -> Column:
    if isinstance(column, Words):
        return Words(column.values, column.index[index])
    return column[index] if isinstance(column, np.ndarray) else column


def priced(columns: Columns, price: Any) -> Columns:
    """The same with what dollars an hour of one accelerator make of it; NaN where no price is known."""
    nothing: Any = np.nan
    hours: Any = columns.get("accelerator_hours", nothing)
    seconds: Any = columns.get("seconds", nothing)
    rate: Any = columns.get("tokens_per_second", nothing)
    low, high = columns.get("seconds_low", nothing), columns.get("seconds_high", nothing)
    each: Any = columns["ranks"]
    dollars = price * hours
    return columns | {
        "price": price,
        "dollars": dollars,
        "dollars_low": dollars * low / seconds,
        "dollars_high": dollars * high / seconds,
        "dollars_per_million_tokens": price * each / HOUR / rate * 1e6,
    }


def limited(columns: Columns, limits: tuple[Limit, ...], rows: int) -> Columns:
    """The same, and whether each row has figures that keep to the limits; what is not known does not."""
    kept = np.isfinite(np.broadcast_to(np.asarray(columns.get("seconds", np.nan), float), rows))
    for limit in limits:
        value: Any = np.broadcast_to(np.asarray(columns.get(limit.name, np.nan), float), rows)
        kept = kept & (value >= limit.low) & (value <= limit.high)
    return columns | {"in_limits": kept}


def job_columns(job: Job, texts: Mapping[str, str]) -> Columns:
    """The fields of a job that stand in every row, and those that a study gives."""
    given = [field.name for field in fields(Job) if field.name in texts]
    names = dict.fromkeys((*TASK, *given))
    return {name: plainly(name, getattr(job, name), texts.get(name, "")) for name in names}
