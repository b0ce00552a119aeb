"""What to change where a layout does not fit: each way is counted again as a user would type it."""

import json
import shlex

import pytest

from outlay import Bill, Job, Layout, count, load_cluster, load_model
from outlay.cli.main import main
from outlay.search.advice import advise, changes
from whole_bills import changed

QUESTIONS = [
    ("llama-3-8b", "8xa100-sxm-80", "--seq 8192 --batch 64"),
    ("llama-3-70b", "64xh100-sxm", "--tp 8 --seq 8192 --batch 128"),
    ("qwen2.5-7b", "1xrtx4090", "--seq 2048 --batch 8"),
    ("llama-3-70b", "8xa100-sxm-80", "--tp 8 --seq 8192 --batch 8"),
    ("mixtral-8x7b", "16xh100-sxm", "--seq 4096 --batch 64 --engine fsdp2"),
]


def printed(capsys: pytest.CaptureFixture[str], words: list[str]) -> tuple[int, dict[str, object]]:
    """The exit code and the object of a command."""
    code = main(["count", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("model", "on", "words"), QUESTIONS, ids=[f"{row[0]} {row[1]}" for row in QUESTIONS])
def test_every_advice_fits_when_it_is_typed_and_costs_what_it_says(
    capsys: pytest.CaptureFixture[str], model: str, on: str, words: str
) -> None:
    code, bill = printed(capsys, [model, "--on", on, *shlex.split(words)])
    advice = bill["advice"]
    assert code == 1 and isinstance(advice, list) and advice

    for way in advice:
        flags = shlex.split(way["flag"])
        place = [] if "--on" in flags else ["--on", on]
        kept = [] if "--tp" in flags else shlex.split(words)
        code, again = printed(capsys, [model, *place, *(kept or shlex.split(words.replace("--tp 8", ""))), *flags])
        assert code == 0
        assert again["memory"]["verdict"] == "fits"  # type: ignore[index]
        assert again["memory"]["peak_bytes"] == pytest.approx(way["peak_bytes"])  # type: ignore[index]
        assert again["step"]["seconds"] == pytest.approx(way["seconds"])  # type: ignore[index]


def bill_of(model: str, on: str, job: Job, layout: Layout) -> Bill:
    return count(load_model(model), job, load_cluster(on), layout)


def test_what_fits_needs_no_advice() -> None:
    assert advise(bill_of("llama-3-8b", "8xh100-sxm", Job(4096, 8), Layout(zero=3))) == ()


def test_one_change_is_advised_before_two() -> None:
    found = advise(bill_of("llama-3-8b", "8xa100-sxm-80", Job(8192, 64), Layout()))

    assert all("," not in way.change for way in found)


def test_no_single_way_that_was_left_out_is_faster_for_the_whole_model() -> None:
    bill = bill_of("llama-3-8b", "8xa100-sxm-80", Job(8192, 64), Layout())
    fitting = [
        after.step.tokens_per_second_per_device
        for change in changes(bill)
        if change.kind != "adapter" and (after := changed(bill, (change,))) and after.memory.verdict == "fits"
    ]

    assert advise(bill)[0].tokens_per_second_per_device == max(fitting)


def test_a_layout_that_breaks_a_rule_is_mended_first() -> None:
    assert advise(bill_of("llama-3-70b", "64xh100-sxm", Job(8192, 64), Layout(tp=8, pp=7))) == ()


def test_a_layout_that_fits_only_just_is_told_what_fits_for_sure() -> None:
    bill = count(load_model("llama-3.1-8b"), Job(4096, 64), load_cluster("8xh100-sxm"), Layout())
    assert bill.memory.verdict == "tight"
    assert all(each.peak_bytes < bill.memory.usable_bytes for each in advise(bill))
    assert "--zero 2" in [each.flag for each in advise(bill)]
