"""outlay report: nothing asked from outside, figures of the bill, markup as text, files whole or not at all."""

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import outlay
from outlay.cli.main import main
from outlay.schedule.orders import order
from outlay.schedule.timeline import simulate
from outlay.schedule.times import Times

QUESTION = ("llama-3.1-70b", "--on", "64xh100-sxm", "--tp", "8", "--pp", "4", "--seq", "8192", "--batch", "512")
MARKUP = "<script>alert(1)</script>|`*_[x](http://y)@team"
TINY = {"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
        "intermediate_size": 1024, "vocab_size": 1000}  # fmt: skip


def run(capsys: pytest.CaptureFixture[str], *line: str) -> tuple[int, str, str]:
    code = main([*line])
    out, err = capsys.readouterr()
    return code, out, err


def bill(capsys: pytest.CaptureFixture[str], *line: str) -> Any:
    return json.loads(run(capsys, "count", *line, "--json")[1])


def report(capsys: pytest.CaptureFixture[str], form: str, *line: str) -> str:
    return run(capsys, "report", *line, f"--{form}", "-")[1]


class Seen(HTMLParser):
    """The tags, the addresses and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.asked: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.asked += [value or "" for name, value in attrs if name in ("src", "href", "action", "data", "srcset")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_asks_for_nothing_outside(capsys: pytest.CaptureFixture[str]) -> None:
    page = report(capsys, "html", *QUESTION)
    seen = Seen(page)

    assert [address for address in seen.asked if not address.startswith("#")] == []
    assert "script" not in seen.tags and "link" not in seen.tags and "iframe" not in seen.tags
    assert "default-src 'none'" in page and not re.search(r"@import|url\((?!#)", page)
    assert {"svg", "table", "details"} <= set(seen.tags)


def test_a_page_has_memory_step_diagram_derivations_and_assumptions(capsys: pytest.CaptureFixture[str]) -> None:
    text = Seen(report(capsys, "html", *QUESTION)).text

    for part in (
        "FITS",
        "Memory",
        "Every stage",
        "The step",
        "Timing diagram",
        "Derivations",
        "Assumed",
        "Conventions",
    ):
        assert part in text
    assert "memory.activations" in text and "1F1B".lower() in text.lower()
    for said in bill(capsys, *QUESTION)["assumptions"]:
        assert said in text


def test_the_printed_parts_of_markdown_add_up_to_the_peak_of_the_bill(capsys: pytest.CaptureFixture[str]) -> None:
    text = report(capsys, "md", *QUESTION)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    start = next(place for place, row in enumerate(rows) if row[1:3] == ["GiB", "GB"]) + 2
    end = next(place for place, row in enumerate(rows) if row[0] == "peak")

    parts, peak = [float(row[1]) for row in rows[start:end]], float(rows[end][1])

    assert sum(parts) == pytest.approx(peak, abs=1e-9)
    assert peak == pytest.approx(bill(capsys, *QUESTION)["memory"]["peak_bytes"] / 2**30, abs=0.005)


def test_a_csv_holds_the_figures_of_the_bill_exactly(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(report(capsys, "csv", *QUESTION))))
    made = bill(capsys, *QUESTION)

    found = {(row["part"], row["name"]): row["value"] for row in rows}
    assert float(found["memory", "peak"]) == made["memory"]["peak_bytes"]
    assert float(found["step", "step"]) == made["step"]["seconds"]
    for item in made["memory"]["items"]:
        assert float(found["memory", item["name"]]) == item["bytes"]
    for item in made["step"]["items"]:
        assert float(found["step", item["name"]]) == item["seconds"]


def test_a_printed_bill_gives_the_same_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "bill.json"
    path.write_text(run(capsys, "count", *QUESTION, "--json")[1])

    assert report(capsys, "csv", str(path)) == report(capsys, "csv", *QUESTION)


def test_a_printed_plan_gives_its_best_layout_and_its_ranking(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    line = ("llama-3.1-8b", "--on", "8xh100-sxm", "--seq", "8192", "--batch", "64", "--space", "lean", "--best", "4")
    path.write_text(run(capsys, "plan", *line, "--json")[1])
    best = json.loads(path.read_text())["best"]

    text = run(capsys, "report", str(path), "--md", "-", "--force")[1]

    ranking = [line for line in text.splitlines() if re.match(r"\| \d+ \|.*--", line)]
    assert "**Ranking**" in text and len(ranking) == 4
    assert f"{best[0]['bill']['memory']['peak_bytes'] / 2**30:.3g}"[:4] in ranking[0]


def test_markup_in_a_config_shows_as_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / f"{'<img src=x onerror=alert(1)>'}.json"
    path.write_text(json.dumps(TINY))
    line = (str(path), "--on", "2xh100-sxm", "--pp", "2", "--batch", "8", "--seq", "512")

    page, text = report(capsys, "html", *line), report(capsys, "md", *line)

    assert "img" not in Seen(page).tags and "onerror=alert" in Seen(page).text
    assert "<img" not in text.replace("\\<img", "")


def test_markdown_calls_nobody_and_makes_no_link() -> None:
    from outlay.show.report.markdown import text

    assert text(MARKUP) == r"\<script\>alert(1)\</script\>\|\`\*\_\[x\](http://y)&#64;team"


def test_a_cell_is_no_formula() -> None:
    from outlay.show.report.comma import _cell

    assert [_cell(value) for value in ("=1+1", "+1", "-1", "@x", "plain", -1.5)] == [
        "'=1+1",
        "'+1",
        "'-1",
        "'@x",
        "plain",
        "-1.5",
    ]


def test_files_are_written_whole_and_never_over_others(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page, text = tmp_path / "r.html", tmp_path / "r.md"
    text.write_text("mine")

    code, _, err = run(capsys, "report", *QUESTION, "--html", str(page), "--md", str(text))

    assert code == 2 and "OUT001" in err
    assert text.read_text() == "mine" and [each.name for each in tmp_path.iterdir()] == ["r.md"]
    assert run(capsys, "report", *QUESTION, "--html", str(page), "--md", str(text), "--force")[0] == 0
    assert page.read_text().endswith("</html>\n") and text.read_text().startswith("### ")


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ((), "RPT001"),
        (("--md", "a", "--csv", "a"), "RPT002"),
        (("--md", "-", "--json"), "RPT002"),
        (("--md", "no/where"), "OUT002"),
    ],
)
def test_a_report_that_cannot_be_written_is_a_fault(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    more: tuple[str, ...],
    code: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    exit_code, out, err = run(capsys, "report", *QUESTION, *more)

    assert exit_code == 2 and code in out + err
    assert list(tmp_path.iterdir()) == []


def test_a_layout_that_breaks_a_rule_is_reported_with_the_rule(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "report", *QUESTION[:3], "--tp", "3", "--md", "-")

    assert code == 1
    assert "NOT LEGAL" in out and "LAY" in out


def test_the_printed_object_has_the_keys_of_its_schema(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    schema = json.loads(run(capsys, "schema", "report")[1])

    said = json.loads(run(capsys, "report", *QUESTION, "--md", str(tmp_path / "r.md"), "--json")[1])

    assert set(said) == set(schema["required"]) and said["schema"] == schema["properties"]["schema"]["const"]
    assert said["peak_bytes"] == bill(capsys, *QUESTION)["memory"]["peak_bytes"]


# --- notebooks ------------------------------------------------------------------------------------------------------


def made() -> outlay.Bill:
    job, cluster = outlay.Job(sequence_length=8192, global_batch=512), outlay.load_cluster("64xh100-sxm")
    return outlay.count(outlay.load_model("llama-3.1-70b"), job, cluster, outlay.Layout(tp=8, pp=4))


def test_a_bill_shows_itself_in_a_notebook() -> None:
    said = made()._repr_html_() or ""

    assert 'data-verdict="fits"' in said and "activations" in said and "<table>" in said


def test_what_a_notebook_shows_styles_itself_alone_and_takes_the_notebooks_colours() -> None:
    said = made()._repr_html_() or ""
    (style,) = re.findall(r"<style>(.*?)</style>", said)
    rules = re.findall(r"([^{}]+){([^{}]+)}", style)

    assert len(rules) >= 8 and said.startswith('<div class="outlay">') and said.endswith("</div>")
    assert all(each.startswith(".outlay ") for selectors, _ in rules for each in re.split(r",(?![^(]*\))", selectors))
    assert not re.search(r"#[0-9a-fA-F]{3}|rgb|background|(?<!-)color:(?!inherit)", style)


def test_a_plan_shows_its_ranking_in_a_notebook() -> None:
    job, cluster = outlay.Job(sequence_length=8192, global_batch=64), outlay.load_cluster("8xh100-sxm")
    found = outlay.plan(outlay.load_model("llama-3.1-8b"), job, cluster, width="lean", best=3)

    said = found._repr_html_() or ""

    assert said.count("<tr>") == 4 and "--" in said


def test_a_timeline_shows_its_picture_in_a_notebook() -> None:
    said = simulate(order("1f1b", 4, 8), Times(1, 2, 0))._repr_html_() or ""

    assert said.startswith('<img alt="1f1b, 4 ranks, 8 micro-batches" src="data:image/svg+xml;base64,')
