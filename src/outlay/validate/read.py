"""A CSV of measured runs read as rows: the common header is required, a blank cell means not published.

A file that cannot be read is an InputError; a row that cannot be used carries its fault, and the rest is read on.
"""

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import Fault, InputError, OutlayError, quoted
from .table import read_instead

HEADER = (
    "source", "source_locator", "model", "n_params", "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq_len",
    "accelerator", "n_accel", "precision", "optimizer", "tp", "pp", "vpp", "cp", "ep", "dp", "zero_or_fsdp",
    "micro_batch", "global_batch", "schedule", "recompute", "flash_attn", "other", "step_time_s",
    "tokens_per_s_per_accel", "tflops_per_accel", "mfu", "hfu", "peak_mem_gb", "notes",
)  # fmt: skip
"""The columns that a file must have, in any order and among others. `derived_step_time_s` is read where it stands."""

COUNTS = (
    "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq_len", "n_accel", "tp", "pp", "vpp", "cp", "ep", "dp",
    "micro_batch", "global_batch",
)  # fmt: skip
MEASURES = (
    "step_time_s",
    "derived_step_time_s",
    "tokens_per_s_per_accel",
    "tflops_per_accel",
    "mfu",
    "hfu",
    "peak_mem_gb",
)

# A number with a multiplier or words after it, as tables print them: 1.7B, "250k (approx, multilingual)", 1,024.
NUMBER = re.compile(r"([-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?)\s*([kmbt])?\b", re.IGNORECASE)
MULTIPLIERS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
LAYERS_A_CHUNK = re.compile(r"(\d+) layers? (?:per|a) chunk", re.IGNORECASE)
SMALLEST, LARGEST = 1e-9, 1e15  # no figure of a run lies outside; whole numbers stay exact


class Skip(OutlayError):  # noqa: N818 (not a fault: a row that is left out)
    """A row that cannot be compared, with the reason in words."""


@dataclass(frozen=True)
class Run:
    """One row: its cells as text, its numbers, and what makes it unusable, if anything."""

    file: str
    line: int  # where the row begins, the header is 1
    cells: Mapping[str, str]
    numbers: Mapping[str, float]
    fault: str = ""

    def text(self, column: str) -> str:
        """A cell; empty where nothing is published."""
        return self.cells.get(column, "")

    def number(self, column: str) -> float | None:
        """A number; None where nothing is published."""
        return self.numbers.get(column)

    def count(self, column: str) -> int | None:
        """A whole number; None where nothing is published."""
        found = self.numbers.get(column)
        return None if found is None else int(found)

    def half(self, column: str) -> float:
        """Half a unit of the last digit that a number is printed with: it may be so far off as it stands."""
        decimals = re.search(r"\d+(?:\.(\d+))?", self.text(column))
        return 10.0 ** -len(decimals[1] or "") / 2 if decimals else 0.0

    def needed(self, column: str, words: str = "") -> int:
        """A whole number that the row must have. Raises Skip where nothing is published."""
        found = self.count(column)
        if found is None:
            raise Skip(f"{words or column} not published")
        return found


def read(path: str | PathLike[str]) -> list[Run]:
    """Every row of a file. Raises InputError (VAL001 to VAL003) for a file that cannot be read."""
    return runs_of(path, *table_of(path))


def runs_of(path: str | PathLike[str], header: list[str], rows: list[tuple[int, list[str]]]) -> list[Run]:
    """The rows under a header. Raises InputError (VAL001, VAL002) for one that lacks columns."""
    _check(header, path)
    return [_run(str(path), line, header, cells) for line, cells in rows]


def table_of(path: str | PathLike[str]) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header of a file, and its rows that are not blank, each with its line. Raises InputError (VAL003)."""
    reader = csv.reader(_text(path).splitlines(keepends=True), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        return header, list(_numbered(reader))
    except csv.Error as error:
        raise InputError(unreadable(path, f"not a CSV file: {error}, line {reader.line_num}")) from None


def _numbered(reader: Any) -> Iterator[tuple[int, list[str]]]:
    line = reader.line_num + 1
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield line, cells
        line = reader.line_num + 1


def _text(path: str | PathLike[str]) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(unreadable(path, f"not UTF-8 at byte {error.start}")) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(unreadable(path, reason or "cannot be opened")) from None


def unreadable(path: str | PathLike[str], got: str) -> Fault:
    return Fault(
        "VAL003", f"{quoted(path)} cannot be read", "a CSV file of measured runs in UTF-8", got,
        "save it as CSV in UTF-8, one header line, each column once",
    )  # fmt: skip


def _check(header: list[str], path: str | PathLike[str]) -> None:
    """Refuse a file without the common header, by the names that are missing."""
    if not any(header):
        raise InputError(
            Fault("VAL002", f"{quoted(path)} is empty", "a header and a row a run", "no header", ",".join(HEADER))
        )
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if twice:
        raise InputError(unreadable(path, f"columns that stand twice: {', '.join(map(quoted, twice))}"))
    missing = [name for name in HEADER if name not in header]
    if missing:
        rule = "measured runs stand under the common header; a blank cell means not published"
        got = f"missing: {', '.join(missing)}"
        raise InputError(
            Fault("VAL001", f"{quoted(path)} lacks columns", rule, got, "add the columns, blank where not known")
        )


def _run(file: str, line: int, header: list[str], row: list[str]) -> Run:
    cells = {name: cell.strip() for name, cell in zip(header, row, strict=False)}
    cells |= read_instead(cells)
    if len(row) > len(header):
        return Run(file, line, cells, {}, f"{len(row)} cells under {len(header)} columns")
    numbers: dict[str, float] = {}
    faults = []
    for column in (*COUNTS, *MEASURES):
        text = cells.get(column, "")
        if text and not (column == "vpp" and LAYERS_A_CHUNK.search(text)):
            value, fault = number_in(column, text)
            numbers[column] = value
            faults += [fault] if fault else []
    return Run(file, line, cells, numbers, "; ".join(faults))


def number_in(column: str, text: str) -> tuple[float, str]:
    """The number in a cell, or what is wrong with it."""
    value = _parsed(text)
    if value is None or not isfinite(value):
        return 0.0, f"{column} is not a number: {quoted(text)}"
    if value <= 0:
        return 0.0, f"{column} is not above zero: {quoted(text)}"
    if not SMALLEST <= value <= LARGEST:
        return 0.0, f"{column} is beyond any run: {quoted(text)}"
    if column in COUNTS and value != int(value):
        return 0.0, f"{column} is not a count: {quoted(text)}"
    return value, ""


def _parsed(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        found = NUMBER.match(text)
    return float(found[1].replace(",", "")) * MULTIPLIERS[(found[2] or "").lower()] if found else None
