"""Studies that seek the best split: each row is the bill, or the plan, with `--split best` of the same question."""

import json
from pathlib import Path

import polars as pl
import pytest

from outlay.cli.main import main

STUDY = """
[study]
kind = "count"
model = "llama-3.1-8b"
on = "16xh100-sxm"
seq = 8192
batch = 64
tp = [1, 2]
pp = [1, 4, 5]
vpp = [1, 2]
split = "best"
price = [2.0, 3.0]
"""
PLAN = """
[study]
model = "llama-3.1-8b"
on = "8xh100-sxm"
engine = ["megatron", "fsdp2", "deepspeed"]
space = "lean"
seq = 8192
batch = 64
pp = "2..4"
split = "best"
"""


def swept(folder: Path, text: str) -> pl.DataFrame:
    (folder / "s.toml").write_text(text)
    assert main(["sweep", str(folder / "s.toml"), "--workers", "1"]) == 0
    return pl.read_parquet(folder / "s.sweep" / "*.parquet")


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    capsys.readouterr()
    main([*words, "--json"])
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_a_row_has_the_best_split_of_its_layout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = swept(tmp_path, STUDY)
    words = ["count", "llama-3.1-8b", "--on", "16xh100-sxm", "--seq", "8192", "--batch", "64", "--split", "best"]
    for row in frame.filter(pl.col("price") == 2.0).iter_rows(named=True):
        bill = asked(capsys, *words, *(f"--{name}={row[name]}" for name in ("tp", "pp", "vpp")))
        codes = [each["code"] for each in bill["violations"]]  # type: ignore[index, attr-defined]
        assert (row["broken"] or "").split() == codes
        if not codes:
            assert row["seconds"] == bill["step"]["seconds"]  # type: ignore[index]
            assert row["split"] == (",".join(map(str, bill["layout"]["split"])) or None)  # type: ignore[index]
    split = frame.filter(pl.col("split").is_not_null())
    assert split["pp"].unique().to_list() == [4]  # one stage has no split, and five do not make the cluster
    assert all(sum(map(int, text.split(","))) == 32 for text in split["split"])


def test_a_row_of_plans_is_the_plan_with_the_best_split_of_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = swept(tmp_path, PLAN)
    words = [
        "plan",
        "llama-3.1-8b",
        "--on",
        "8xh100-sxm",
        "--seq",
        "8192",
        "--batch",
        "64",
        "--space",
        "lean",
        "--pp",
        "2..4",
        "--split",
        "best",
    ]
    for row in frame.iter_rows(named=True):
        if row["engine"] == "deepspeed":  # it cuts the layers itself
            assert (row["verdict"], row["broken"]) == (None, "LAY035")
            continue
        best = asked(capsys, *words, "--engine", row["engine"])["best"][0]["bill"]  # type: ignore[index]
        assert row["seconds"] == best["step"]["seconds"]
        assert row["split"] == (",".join(map(str, best["layout"]["split"])) or None)
    assert frame["searched_split"].to_list() == ["best"] * 3


def test_a_split_with_numbers_is_refused_of_plans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.toml").write_text(PLAN.replace('"best"', '"4,4"'))
    (fault,) = asked(capsys, "sweep", str(tmp_path / "s.toml"))["errors"]  # type: ignore[misc, attr-defined]
    assert fault["code"] == "SWP003" and 'split = "best"' in fault["fix"]


def test_a_plan_takes_the_best_split_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.toml").write_text('[layout]\nsplit = "best"\npp = "2..4"\n')
    words = [
        "plan",
        "llama-3.1-8b",
        "--on",
        "8xh100-sxm",
        "--seq",
        "8192",
        "--batch",
        "64",
        "--space",
        "lean",
        "--best",
        "3",
    ]
    of_file = asked(capsys, *words, "--config", str(tmp_path / "c.toml"))
    of_flags = asked(capsys, *words, "--pp", "2..4", "--split", "best")
    for found in (of_file, of_flags):
        found["search"] = None  # measured seconds
    assert of_file == of_flags
    (tmp_path / "c.toml").write_text('[layout]\nsplit = "4,4"\n')
    (fault,) = asked(capsys, *words, "--config", str(tmp_path / "c.toml"))["errors"]  # type: ignore[misc, attr-defined]
    assert fault["code"] == "PLN001"
