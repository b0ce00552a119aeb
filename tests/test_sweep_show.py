"""What is shown of a sweep: the best of each group, as lines, as JSON, as a chart and as a page."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from outlay.cli.main import main
from outlay.show.schema import OUTPUT_SCHEMAS
from outlay.show.sweep.answer import layout_flags
from sweeping import LAYOUTS, PLANS
from test_json import faults

SVG = "{http://www.w3.org/2000/svg}"
PRICES = 2  # of the study below
COSTS = ("price", "dollars", "dollars_per_million_tokens")
LIMITED = LAYOUTS.replace("mixtral-8x7b", "llama-2-13b") + '\n[limits]\ndays = "..20"\nmfu = "30%.."\n'


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sweep with limits."""
    file = tmp_path_factory.mktemp("shown") / "s.toml"
    file.write_text(
        LIMITED.replace("zero = [1, 3]", 'zero = [1, 3]\nrecompute = ["none", "full"]\noverlap_tp = [true, false]')
    )
    assert main(["sweep", str(file), "--workers", "1"]) == 0
    return file.with_suffix(".sweep")


def shown(capsys: pytest.CaptureFixture[str], folder: Path, *words: str) -> dict[str, Any]:
    """The record of a folder."""
    capsys.readouterr()
    assert main(["sweep", str(folder), "--show", "--json", *words]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def rows_of(folder: Path) -> pl.DataFrame:
    return pl.read_parquet(folder / "*.parquet")


def test_the_record_keeps_to_its_schema(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(capsys, swept)

    assert faults(OUTPUT_SCHEMAS["sweep"](), found) == []
    assert found["counted"] == found["questions"] == rows_of(swept).height == sum(found["verdicts"].values())
    assert main(["schema", "sweep"]) == 0


@pytest.mark.parametrize(
    ("objective", "more"), [("tokens_per_second", True), ("dollars", False), ("peak_bytes", False)]
)
def test_the_best_of_each_group_is_the_best_of_its_rows(
    swept: Path, capsys: pytest.CaptureFixture[str], objective: str, more: bool
) -> None:  # fmt: skip
    found = shown(capsys, swept, "--objective", objective, "--by", "model,on,batch", "--best", "3")
    frame = rows_of(swept)

    assert [tuple(group["group"].values()) for group in found["groups"]] == list(
        dict.fromkeys(frame.select("model", "on", "global_batch").rows())
    )
    for group in found["groups"]:
        every = [
            row
            for row in frame.iter_rows(named=True)
            if all(row[name] == value for name, value in group["group"].items())
        ]
        good = [row for row in every if row["verdict"] == "fits" and row["days"] <= 20 and row["mfu"] >= 0.3]
        ordered = sorted(good, key=lambda row: (-row[objective] if more else row[objective], row["question"]))
        best = {row["question"] // PRICES: row for row in reversed(ordered)}  # a layout once, at its best price
        kept = [row for row in ordered if best[row["question"] // PRICES] is row][:3]
        assert (group["questions"], group["fitting"]) == (len(every), len(good))
        assert [{name: row[name] for name in frame.columns} for row in group["best"]] == kept
        for row in group["best"]:
            same = [other for other in good if other["question"] // PRICES == row["question"] // PRICES]
            assert row["prices"] == [{name: other[name] for name in COSTS} for other in same]
    assert 0 < sum(group["fitting"] for group in found["groups"]) < (frame["verdict"] == "fits").sum()


def test_the_flags_of_a_row_count_to_its_figures(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = shown(capsys, swept, "--best", "40")
    rows = [row for group in found["groups"] for row in group["best"]]
    for row in rows[:: len(rows) // 12]:
        flags = layout_flags(row).replace("every axis 1", "").split()
        words = ["count", row["model"], "--on", row["on"], "--seq", "4096", "--batch", str(row["global_batch"]), *flags]
        capsys.readouterr()
        assert main([*words, "--json"]) == 0
        bill = json.loads(capsys.readouterr().out)
        assert bill["step"]["seconds"] == pytest.approx(row["seconds"], rel=1e-12)
        assert bill["memory"]["peak_bytes"] == pytest.approx(row["peak_bytes"], rel=1e-12)


def test_groups_without_a_fit_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.toml").write_text(LAYOUTS.replace('"llama-3.1-8b"', '"llama-3.1-70b"').replace("16xh", "1xh"))
    assert main(["sweep", str(tmp_path / "s.toml")]) == 0
    out = capsys.readouterr().out

    assert "nothing fits" in out
    (tmp_path / "none.toml").write_text(LAYOUTS + '\n[limits]\ndays = "..0.001"\n')
    assert main(["sweep", str(tmp_path / "none.toml"), "--svg", str(tmp_path / "none.svg")]) == 1
    out = capsys.readouterr().out
    assert "keeps to days ..0.001" in out
    assert " none\n" in out and "nothing fits" not in out  # they fit, and take too long
    assert "nothing fits and keeps to the limits" in (tmp_path / "none.svg").read_text()


def test_limits_are_said_in_the_units_that_they_are_given_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = '[study]\nkind = "count"\nmodel = "llama-3.1-8b"\non = "8xh100-sxm"\nbatch = 8\nseq = 4096\n'
    (tmp_path / "s.toml").write_text(one + '[limits]\npeak_bytes = "..60GiB"\nmfu = "5%.."\n')
    assert main(["sweep", str(tmp_path / "s.toml")]) in (0, 1)
    out = capsys.readouterr().out
    assert "SWEPT     1 question\n" in out
    assert "keeps to peak_bytes ..60.0 GiB, mfu 5.00 %.." in " ".join(out.split())


def test_the_chart_draws_a_point_a_group_and_a_line_a_model(swept: Path, tmp_path: Path) -> None:
    words = ["sweep", str(swept), "--show", "--by", "model,on"]
    assert main([*words, "--svg", str(tmp_path / "f.svg")]) == 0
    root = ET.parse(tmp_path / "f.svg").getroot()
    lines = [path for path in root.iter(f"{SVG}path") if path.get("class") == "line"]
    texts = [text.text or "" for text in root.iter(f"{SVG}text")]

    assert len(lines) == 2
    assert all(line.get("d", "").count("L") == 1 for line in lines)  # two clusters
    assert {"llama-3.1-8b", "llama-2-13b", "ranks", "tokens/s"} <= set(texts)
    high = {line.get("d", "").split("L")[1].split()[1] for line in lines}
    assert len(high) == 2


def test_lines_that_lie_over_one_another_are_one_with_all_their_names(tmp_path: Path) -> None:
    one = '[study]\nkind = "count"\nmodel = "llama-3.1-8b"\non = ["8xh100-sxm", "16xh100-sxm"]\nseq = 4096\n'
    (tmp_path / "s.toml").write_text(one + "batch = [64, 128]\nzero = [3]\nprice = [2.0, 3.0, 4.0]\n")
    words = ["sweep", str(tmp_path / "s.toml"), "--by", "on,batch,price", "--svg", str(tmp_path / "f.svg")]
    assert main([*words, "--objective", "peak_bytes"]) == 0  # which no price changes
    root = ET.parse(tmp_path / "f.svg").getroot()
    lines = [path.get("d") for path in root.iter(f"{SVG}path") if path.get("class") == "line"]
    texts = [text.text or "" for text in root.iter(f"{SVG}text")]

    assert len(lines) == 1
    assert [text for text in texts if "batch" in text and "groups" not in text] == [
        "batch 64, price 2.000", "= batch 64, price 3.000", "= batch 64, price 4.000",
        "= batch 128, price 2.000, and 2 more",
    ]  # fmt: skip


def test_groups_that_differ_in_no_number_are_bars(swept: Path, tmp_path: Path) -> None:
    words = ["sweep", str(swept), "--show", "--by", "model", "--svg", str(tmp_path / "f.svg")]
    assert main(words) == 0
    root = ET.parse(tmp_path / "f.svg").getroot()

    assert len([path for path in root.iter(f"{SVG}path") if path.get("class") == "F edge"]) == 2


def test_the_page_holds_the_chart_and_a_row_a_group(swept: Path, tmp_path: Path) -> None:
    words = ["sweep", str(swept), "--show", "--html", str(tmp_path / "f.html")]
    assert main(words) == 0
    page = (tmp_path / "f.html").read_text()

    assert page.count("<tr>") == 1 + 8
    assert "<svg" in page and "http://" not in page.replace("http://www.w3.org", "")
    assert main(words) == 2  # it exists


def test_a_plan_is_grouped_by_what_narrows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = '[study]\nmodel = "llama-3.1-8b"\non = "8xh100-sxm"\nspace = "lean"\nbatch = 8\ntp = ["1,2", "4..8", "3"]\n'
    (tmp_path / "s.toml").write_text(text)
    assert main(["sweep", str(tmp_path / "s.toml")]) == 0
    found = shown(capsys, tmp_path / "s.sweep")
    ways = {group["group"]["searched_tp"]: [row["tp"] for row in group["best"]] for group in found["groups"]}

    assert list(ways) == ["1,2", "4..8", "3"]
    assert ways["1,2"][0] in (1, 2) and ways["4..8"][0] in (4, 8) and ways["3"] == []
    assert main(["sweep", str(tmp_path / "s.sweep"), "--show", "--objective", "dollars"]) == 0
    out = capsys.readouterr().out
    assert out.count("not known") == 2 and out.count("nothing fits") == 1  # the catalogue has no price of a card alone


def test_the_price_makes_groups_where_dollars_are_asked(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, swept)["by"] == ["model", "on", "global_batch"]
    assert shown(capsys, swept, "--objective", "dollars")["by"] == ["model", "on", "global_batch", "price"]


def test_a_price_is_a_figure_of_a_layout_and_not_another_layout(
    swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = shown(capsys, swept, "--best", "3")
    for group in found["groups"]:
        layouts = [row["question"] // PRICES for row in group["best"]]
        assert len(layouts) == len(set(layouts))
        for row in group["best"]:
            assert [cost["price"] for cost in row["prices"]] == [2.0, 3.0]
            assert row["prices"][1]["dollars"] == pytest.approx(1.5 * row["prices"][0]["dollars"])
    assert main(["sweep", str(swept), "--show", "--plain", "--by", "model"]) == 0
    assert "dollars at 2.00..3.00 USD an hour of a card, a layout once" in " ".join(capsys.readouterr().out.split())
    apart = shown(capsys, swept, "--by", "model,price")
    assert all("prices" not in row for group in apart["groups"] for row in group["best"])


def test_what_is_shown_does_not_depend_on_who_summed_it_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.toml").write_text(PLANS)
    said = {}
    for words in (["--workers", "1"], ["--workers", "2"], ["--show"]):
        assert main(["sweep", str(tmp_path / "s.toml"), "--best", "2", "--by", "model,seq", "--json", *words]) == 0
        said[words[-1]] = capsys.readouterr().out
        if words[0] == "--workers" and words[1] == "1":  # two workers count what is not there
            for file in sorted((tmp_path / "s.sweep").glob("part-*"))[1::2]:
                file.unlink()
    assert said["1"] == said["2"] == said["--show"]
    assert json.loads(said["1"])["counted"] == 36
