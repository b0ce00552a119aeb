"""Advice about experts and long sequences, advice in a scaling table, and what a table says of rows that fit only just;
what more is worth as a table; questions of --why that cannot be read."""

import json
import re

import pytest

from outlay import Job, Layout, count, load_cluster, load_model
from outlay.cli.main import main
from outlay.search.advice import advise
from outlay.search.faster import faster
from outlay.show.validation.choices import _within

SCALED = ["count", "llama-3.1-70b", "--tp", "8", "--pp", "2", "--seq", "8192", "--batch", "512"]


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    main([*words])
    return capsys.readouterr().out


def test_fewer_experts_a_card_are_advised_where_they_are_best() -> None:
    model, job, cluster = load_model("mixtral-8x7b"), Job(4096, 512), load_cluster("64xh100-sxm")
    large = count(model, job, cluster, Layout(tp=4, pp=2))
    assert large.memory.verdict == "does_not_fit"
    best = advise(large)[0]
    others = [count(model, job, cluster, Layout(tp=4, pp=2, ep=ep)) for ep in (2, 4, 8)]
    fitting = [bill for bill in others if bill.memory.verdict == "fits"]
    assert re.fullmatch(r"--ep \d", best.flag)
    assert best.seconds == min(bill.step.seconds for bill in fitting)

    slow = count(model, job, cluster, Layout(tp=2, pp=4, ep=2))
    found = {each.flag: each.seconds for each in faster(slow)}
    assert slow.memory.verdict == "fits"
    assert found["--ep 8"] == count(model, job, cluster, Layout(tp=2, pp=4, ep=8)).step.seconds < slow.step.seconds


def test_a_long_sequence_is_cut_where_that_is_faster_than_to_recompute() -> None:
    model, job, cluster = load_model("llama-3.1-8b"), Job(131_072, 32), load_cluster("32xh100-sxm")
    first, second, *_ = advise(count(model, job, cluster, Layout(tp=8)))
    assert (first.flag, second.flag) == ("--cp 2", "--recompute full")
    assert first.seconds == count(model, job, cluster, Layout(tp=8, cp=2)).step.seconds < second.seconds


def test_a_table_advises_the_first_that_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    on = ["--on", "8,16,32,64xh100-sxm"]
    alone = json.loads(said(capsys, *SCALED, "--on", "16xh100-sxm", "--advise", "--json"))
    rows = json.loads(said(capsys, *SCALED, *on, "--advise", "--json"))["rows"]
    assert [row["cluster"]["ranks"] for row in rows if "advice" in row] == [16]  # 8 cards break a rule
    assert rows[1]["advice"] == alone["advice"]
    out = said(capsys, *SCALED, *on, "--advise")
    assert "ADVICE    --advise: of 16xh100-sxm" in out and alone["advice"][0]["flag"] in out
    assert "ADVICE" not in said(capsys, *SCALED, *on)


@pytest.mark.parametrize(
    ("on", "start", "more"),
    [
        ("16,32,64xh100-sxm", "FITS 1 of 3 clusters holds it; the smallest is 64xh100-sxm", "perhaps: 32xh100-sxm"),
        ("16,32xh100-sxm", "TIGHT none of 2 clusters holds it for sure", "perhaps: 32xh100-sxm"),
        ("128,64xh100-sxm", "FITS 2 of 2 clusters hold it; the smallest is 64xh100-sxm", "MODEL"),
        ("8,16xh100-sxm", "DOES NOT FIT on none of them", "MODEL"),
    ],
)
def test_a_table_says_what_fits_for_sure(
    capsys: pytest.CaptureFixture[str], on: str, start: str, more: str
) -> None:  # fmt: skip
    out = said(capsys, *SCALED, "--on", on)
    verdicts = re.findall(r"^  \d+xh100-sxm +(FITS|TIGHT|DOES NOT FIT|NOT LEGAL)", out, re.MULTILINE)
    words = " ".join(out.split())
    assert words.startswith(start) and more in words
    assert words.startswith("FITS") == ("FITS" in verdicts)


def test_what_more_is_worth_is_a_row_each(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "llama-3.1-8b", "--on", "8xh100-sxm", "--seq", "4096", "--batch", "64", "--space", "lean"]
    record = json.loads(said(capsys, *words, "--best", "1", "--json"))
    out = said(capsys, *words, "--best", "1")
    table = out[out.index("WORTH") :].split("\n\n")[0].splitlines()[2:]
    rows = [row for row in table if re.match(r"  (twice the|\d)", row)]
    assert len(rows) == len(record["worth"])
    for row, each in zip(rows, record["worth"], strict=True):
        assert each["resource"] in row and f"{each['tokens_per_second']:,.0f}" in row
        assert row.endswith("none") or ("+" in row) == (each["gain"] > 0)


@pytest.mark.parametrize("asked", ["tp=x", "zero=9", "recompute=fulll", "overlap_tp=maybe", "tp=4..8", "mbs=0"])
def test_the_way_out_of_a_question_is_one_that_is_taken(capsys: pytest.CaptureFixture[str], asked: str) -> None:
    words = ["plan", "llama-3.1-8b", "--on", "8xh100-sxm", "--seq", "4096", "--batch", "64", "--space", "lean"]
    (fault,) = json.loads(said(capsys, *words, "--why", asked, "--json"))["errors"]
    assert fault["code"] == "PLN009"
    flag, value = fault["fix"].split(" ")
    assert flag == "--why" and main([*words, flag, value, "--json"]) == 0


def test_numbers_of_broken_rules_have_commas(capsys: pytest.CaptureFixture[str]) -> None:
    bill = json.loads(
        said(capsys, "count", "llama-3.1-8b", "--on", "8xh100-sxm", "--batch", "64", "--tp", "10000000", "--json")
    )
    assert any("/ 10,000,000" in each["got"] for each in bill["violations"])
    assert not any(re.search(r"\d{5}", each["got"]) for each in bill["violations"])


def test_one_published_layout_is_told_of_in_the_singular() -> None:
    assert _within(0, 1) == "the 1 that fits does not lie within the band of the best"
    assert _within(1, 1) == "the 1 that fits lies within the band of the best"
    assert _within(1, 3) == "1 of the 3 that fit lies within the band of the best"
    assert _within(0, 3) == "0 of the 3 that fit lie within the band of the best"
