"""The page on performance shows the figures that were recorded, with their limits; a stale one is seen."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
MADE: dict[str, Any] = runpy.run_path(str(ROOT / "docs/reference/remake.py"))
RECORDED = json.loads((ROOT / "benchmarks/recorded.json").read_text("utf-8"))
MEANS = runpy.run_path(str(ROOT / "benchmarks/workloads.py"))["MEANS"]
ONE = {"seconds": 0.0306, "megabytes": 1550.2, "reference_seconds": 0.3, "limits": {}, "date": "2026-11-30"}


def rows(text: str) -> list[list[str]]:
    """The cells of the table, row by row."""
    lines = [line for line in text.splitlines() if line.startswith("| ")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_that_is_kept_is_the_one_that_is_made() -> None:
    """Else: make docs."""
    assert (ROOT / "docs/performance.md").read_text("utf-8") == MADE["performance_page"]()


def test_each_recorded_figure_stands_on_the_page_with_its_day_and_its_machine() -> None:
    page = MADE["performance_page"]()
    found = rows(re.search(r"<!-- figures.*<!-- end", page, re.DOTALL)[0])  # type: ignore[index]

    assert set(RECORDED["figures"]) <= set(MEANS)
    assert [each[0] for each in found] == [MEANS[name] for name in MEANS if name in RECORDED["figures"]]
    assert [each[-1] for each in found] == [RECORDED["figures"][name]["date"] for name in RECORDED["figures"]]
    assert all(str(value) in page for value in RECORDED["machine"].values())


def test_a_figure_over_its_limit_is_missed_and_one_without_is_not_judged() -> None:
    def row(**changed: object) -> list[str]:
        return rows("| a\n| b\n" + MADE["figure_row"]("what", ONE | changed, 0.2))[0]

    assert row() == ["what", "", "", "30.6 ms", "1,550 MB", "1.50 x", "", "", "2026-11-30"]
    assert row(limits={"seconds": 0.0306})[6:8] == ["at most 0.0306 s", "held"]
    assert row(limits={"seconds": 0.03, "megabytes": 2000.0})[6:8] == ["at most 0.03 s, 2000 MB", "MISSED"]
    assert row(limits={"rate": 1e7}, rate=9e6, layouts=2_000_000)[6:8] == ["at least 10 M/s", "MISSED"]
    assert row(limits={"rate": 1e7}, rate=1.1e7, layouts=2_000_000)[1:3] == ["2,000,000", "11.0 M/s"]


def test_a_figure_that_was_not_taken_is_named() -> None:
    few = {name: RECORDED["figures"][name] for name in ("count()", "list")}
    text = MADE["figures"](RECORDED | {"figures": few}, MEANS)

    assert [each[0] for each in rows(text)] == [MEANS["count()"], MEANS["list"]]
    assert f"- {MEANS['outlay plan']}" in text.split("Not recorded:")[1]
