"""Rows of a sweep as Parquet, by Polars, which is loaded here alone and late: one part as bytes, and parts asked."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import Fault, InputError
from ..search.sweep.part import answers
from ..search.sweep.rows import Column, Columns, Type, Words, schema
from ..search.sweep.study import Study
from ..search.sweep.summary import Group, Row, Summary, Wanted, ordered, priced_rows

MAGIC = b"PAR1"  # begins and ends a whole file
LEAST = 12  # bytes of one
LEVEL = 3  # of zstd
FITS = "fits"


def library() -> Any:
    """Polars. Raises InputError (SWP010) where it is not installed."""
    try:
        import polars as pl
    except ImportError:
        rule = "rows are written and read by Polars, an optional dependency"
        fix = "pip install 'outlay[sweep]'   (or: pip install polars)"
        raise InputError(Fault("SWP010", "Polars is not installed", rule, "no module polars", fix)) from None
    return pl


def part_of(study: Study, part: int, wanted: Wanted) -> tuple[bytes, Summary]:
    """One part of a sweep, counted and written as a Parquet file, and what is shown of it. Equal parts are equal byte
    for byte."""
    frame = _frame(answers(study, part), schema(study))
    file = io.BytesIO()
    frame.write_parquet(file, compression="zstd", compression_level=LEVEL)
    return file.getvalue(), _summary(frame.lazy(), wanted)


def _frame(runs: Sequence[tuple[int, Columns]], types: Mapping[str, Type]) -> Any:
    """Columns, context after context, as one table."""
    pl = library()
    frames = [
        pl.DataFrame([_series(pl, name, columns[name], kind, size) for name, kind in types.items()])
        for size, columns in runs
    ]
    return pl.concat(frames, rechunk=True)


def _series(pl: Any, name: str, column: Column, kind: Type, size: int) -> Any:
    """One column of the file; what is not known is null."""
    types = {"whole": pl.Int64, "number": pl.Float64, "text": pl.String, "flag": pl.Boolean}
    if isinstance(column, Words):
        return pl.Series(name, column.values, dtype=pl.String).gather(column.index)
    if not isinstance(column, np.ndarray):
        known = None if isinstance(column, float) and np.isnan(column) else column
        one = pl.Series(name, [known], dtype=pl.Float64 if kind == "whole" else types[kind])
        return one.cast(types[kind]).new_from_index(0, size)
    if column.dtype == bool and kind == "flag":
        return pl.Series(name, column)
    return pl.Series(name, column.astype(float)).fill_nan(None).cast(types[kind])


def whole(content: bytes) -> bool:
    """Whether a file's first and last bytes are those of a whole one."""
    return content[:4] == MAGIC and content[-4:] == MAGIC


def summary_of(files: Sequence[str], wanted: Wanted) -> Summary:
    """What is shown of parts that are written."""
    return _summary(library().scan_parquet(files), wanted) if files else Summary({}, ())


def _summary(rows: Any, wanted: Wanted) -> Summary:
    """Totals and groups of some rows: the best are of those that fit and keep to the limits, a layout once."""
    pl, by = library(), list(wanted.by)
    good, layout = (pl.col("verdict") == FITS) & pl.col("in_limits"), pl.col("question") // wanted.prices
    totals = rows.group_by("verdict").len().collect()
    every = rows.group_by(by).agg(
        first=pl.col("question").min(), questions=pl.len(), fitting=good.sum().cast(pl.Int64)
    )  # fmt: skip
    held = _best(rows.filter(good), layout, wanted)
    groups = [
        Group(tuple(row[name] for name in by), row["first"], row["questions"], row["fitting"], tuple(held.get(
            tuple(row[name] for name in by), ())))
        for row in every.collect().sort("first").iter_rows(named=True)
    ]  # fmt: skip
    return Summary({verdict or "not_legal": count for verdict, count in totals.iter_rows()}, tuple(groups))


def _best(good: Any, layout: Any, wanted: Wanted) -> dict[tuple[Any, ...], list[Row]]:
    """The best rows of each group, whole, the best first."""
    pl, by = library(), list(wanted.by)
    columns, value = [*dict.fromkeys((*by, wanted.objective, "question"))], pl.col(wanted.objective)
    known = good.filter(value.is_not_null()).select(*columns, _layout=layout)
    most = wanted.most * wanted.prices  # rows of a group with those that may be chosen: few are sorted
    near = (
        value >= value.top_k(most).min().over(by) if wanted.descending else value <= value.bottom_k(most).max().over(by)
    )
    known = known.filter(near).sort([wanted.objective, "question"], descending=[wanted.descending, False])
    alone = known.unique([*by, "_layout"], keep="first", maintain_order=True) if wanted.prices > 1 else known
    chosen = alone.group_by(by, maintain_order=True).head(wanted.most).select("question", "_layout").collect()
    rows = good.filter(layout.is_in(chosen["_layout"].implode())).collect().to_dicts()
    places = set(chosen["question"].to_list())
    held: dict[tuple[Any, ...], list[Row]] = {}
    best = ordered((row for row in rows if row["question"] in places), wanted)
    for row in priced_rows(best, sorted(rows, key=lambda row: row["question"]), wanted):
        held.setdefault(tuple(row[name] for name in by), []).append(row)
    return held


def columns(files: Sequence[str]) -> list[str]:
    """The names of the columns."""
    return list(library().read_parquet_schema(files[0])) if files else []
