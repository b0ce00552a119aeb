"""Kernels of single parts: one table, each row with its source."""

import re
from pathlib import Path

import outlay
from outlay.model.parts import kernels

MODEL = Path(outlay.__file__).parent / "model"
TABLE = {name: row for name, row in vars(kernels).items() if isinstance(row, kernels.Sourced)}


def test_every_kernel_of_a_part_says_who_says_so() -> None:
    assert len(TABLE) > 30
    assert all(row.source and row.kind in ("specified", "assumed") for row in TABLE.values())
    named = [row for row in TABLE.values() if row.kind == "specified"]
    assert all(re.match(r"autograd, |[\w-]+/[\w-]+, ", row.source) for row in named)


def test_no_part_makes_a_kernel_beside_the_table() -> None:
    makers = [path.name for path in MODEL.rglob("*.py") if re.search(r"\bKernel\(\w", path.read_text("utf-8"))]

    assert makers == []


def test_a_kernel_reads_and_writes_no_less_than_it_keeps() -> None:
    """What waits was read; but for one row that has no kernel of its own."""
    short = {name for name, row in TABLE.items() if row.moves < row.keeps}

    assert short == {"SWAPPED"}


def test_moving_one_stream_of_four_adds_a_quarter() -> None:
    wider = kernels.with_one(kernels.EXPANDED, 0.25)

    assert (wider.moves, wider.moves_back, wider.keeps) == (2.25, 3.25, 0.25)
