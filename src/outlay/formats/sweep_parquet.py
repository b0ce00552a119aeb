"""Rows of a sweep as Parquet, by Polars, which is loaded here alone and late: one part as bytes, and parts asked."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import Fault, InputError
from ..search.sweep.part import answers
from ..search.sweep.rows import Column, Columns, Type, Words, schema
from ..search.sweep.study import Study

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


def part_bytes(study: Study, part: int) -> bytes:
    """One part of a sweep, counted and written as a Parquet file. Equal parts are equal byte for byte."""
    return parquet_of(answers(study, part), schema(study))


def parquet_of(runs: Sequence[tuple[int, Columns]], types: Mapping[str, Type]) -> bytes:
    """Columns, context after context, as one file."""
    pl = library()
    frames = [
        pl.DataFrame([_series(pl, name, columns[name], kind, size) for name, kind in types.items()])
        for size, columns in runs
    ]
    file = io.BytesIO()
    pl.concat(frames, rechunk=True).write_parquet(file, compression="zstd", compression_level=LEVEL)
    return file.getvalue()


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


def totals(files: Sequence[str]) -> dict[str, int]:
    """Rows of each verdict; under `not_legal` those that break a rule."""
    found = library().scan_parquet(files).group_by("verdict").len().collect()
    return {verdict or "not_legal": count for verdict, count in found.iter_rows()}


def groups(
    files: Sequence[str], by: Sequence[str], objective: str, most: int, descending: bool
) -> list[dict[str, Any]]:
    """The best rows of each group, in the order of its first question: of those that fit and keep to the limits.

    A group is `{"group": values of by, "questions", "fitting", "best": whole rows}`.
    """
    pl = library()
    rows = pl.scan_parquet(files)
    good = (pl.col("verdict") == FITS) & pl.col("in_limits")
    every = rows.group_by(by).agg(
        first=pl.col("question").min(), questions=pl.len(), fitting=good.sum().cast(pl.Int64)
    )  # fmt: skip
    found = every.collect().sort("first")
    order = [pl.col(objective), pl.col("question")]
    known = rows.filter(good & pl.col(objective).is_not_null()).select(*dict.fromkeys((*by, objective, "question")))
    ordered = known.sort(order, descending=[descending, False]).group_by(by, maintain_order=True)
    places = ordered.head(most).select("question").collect()
    kept = rows.filter(pl.col("question").is_in(places["question"].implode())).collect()
    kept = kept.sort(order, descending=[descending, False])
    held: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in kept.iter_rows(named=True):
        held.setdefault(tuple(row[name] for name in by), []).append(row)
    return [
        {
            "group": {name: group[name] for name in by},
            "questions": group["questions"],
            "fitting": group["fitting"],
            "best": held.get(tuple(group[name] for name in by), []),
        }
        for group in found.iter_rows(named=True)
    ]


def columns(files: Sequence[str]) -> list[str]:
    """The names of the columns."""
    return list(library().read_parquet_schema(files[0])) if files else []
