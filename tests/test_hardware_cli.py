"""outlay hardware: lists, searches, shows one, shows a cluster, and prints a file to edit; and --on with that file."""

import json
from pathlib import Path
from typing import Any

import pytest

from outlay import load_cluster
from outlay.cli.main import main

Capture = pytest.CaptureFixture[str]


def run(capsys: Capture, *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def answer(capsys: Capture, *words: str) -> Any:
    return json.loads(run(capsys, *words, "--json")[1])


def test_without_a_name_everything_is_listed(capsys: Capture) -> None:
    found = answer(capsys, "hardware")
    code, out, _ = run(capsys, "hardware")

    assert code == 0
    assert (len(found["accelerators"]), len(found["nodes"])) == (63, 54)
    assert "63 accelerators" in out and "54 node types" in out
    assert all(one["name"] in out for one in (*found["accelerators"], *found["nodes"]))


def test_a_part_of_a_name_lists_what_holds_it_nodes_by_their_accelerator_too(capsys: Capture) -> None:
    found = answer(capsys, "hardware", "mi300")

    assert [one["name"] for one in found["accelerators"]] == ["mi300x", "mi300a"]
    assert [one["name"] for one in found["nodes"]] == ["ND96isr_MI300X_v5"]
    assert {one["vendor"] for one in answer(capsys, "hardware", "google")["accelerators"]} == {"Google"}


def test_a_whole_name_shows_one_with_its_source_date_and_nodes(capsys: Capture) -> None:
    out = run(capsys, "hardware", "GB300")[1]

    assert "GB300 NVL72, NVIDIA" in out and "BM.GPU.GB300.4" in out
    assert "fp4 flops              15,000  TFLOP/s" in out
    assert "? = recalled" not in run(capsys, "hardware", "h100-sxm")[1]


def test_a_price_has_its_date_and_a_mark_where_it_was_recalled(capsys: Capture) -> None:
    rows = {one["name"]: one for one in answer(capsys, "hardware", "a100")["nodes"]}
    listed = run(capsys, "hardware", "a100")[1]

    assert (rows["p4d.24xlarge"]["price_date"], rows["p4d.24xlarge"]["price_unverified"]) == ("2025-06", True)
    assert "21.96  2025-06 ?" in listed
    assert "55.04 USD an hour (2026-11-29)" in " ".join(run(capsys, "hardware", "p5.48xlarge")[1].split())


def test_unverified_accelerators_are_marked_in_the_list(capsys: Capture) -> None:
    lines = {line.split()[0]: line for line in run(capsys, "hardware", "h")[1].splitlines() if line.startswith("  ")}

    assert lines["h20"].split()[1] == "?"
    assert lines["h100-sxm"].split()[1] != "?"


def test_a_cluster_is_shown_by_its_levels(capsys: Capture) -> None:
    out = run(capsys, "hardware", "8xp5.48xlarge")[1]

    assert "64 cards: H100 SXM5 80GB" in out
    assert "EFAv2      all         50.0     42.5" in out
    assert "440.32 USD an hour" in out
    assert answer(capsys, "hardware", "8xp5.48xlarge")["dollars_per_hour"] == pytest.approx(8 * 55.04)


def test_a_name_that_is_near_is_proposed(capsys: Capture) -> None:
    code, out, err = run(capsys, "hardware", "h100-smx")

    assert (code, out) == (2, "")
    assert "HW001" in err and "h100-sxm" in err


@pytest.mark.parametrize("name", ["h100-sxm", "mi300x", "p5.48xlarge", "8xdgx-b200", "256xtpu-v5e", "gb200-nvl72"])
def test_a_printed_file_given_back_is_the_same_cluster(capsys: Capture, tmp_path: Path, name: str) -> None:
    code, out, _ = run(capsys, "hardware", name, "--toml")
    (tmp_path / "my.toml").write_text(out)

    assert code == 0
    assert load_cluster(str(tmp_path / "my.toml")) == load_cluster(name)
    assert answer(capsys, "hardware", name, "--toml")["toml"] == out.removesuffix("\n") + "\n"


def test_a_bill_on_a_file_of_ones_own_is_read_back(capsys: Capture, tmp_path: Path) -> None:
    file, bill = tmp_path / "lab.toml", tmp_path / "bill.json"
    file.write_text(
        'accelerator = "h100-sxm"\nranks = 64\nrails = 8\n[[levels]]\nname = "NVLink4"\nsize = 8\n'
        'bandwidth = "450 GB/s"\n[[levels]]\nname = "leaf"\nsize = 32\nbandwidth = "400 Gb/s"\n'
        "[[levels]]\noversubscription = 4\n"
    )
    words = ["count", "mixtral-8x7b", "--on", str(file), "--ep", "8", "--seq", "4096", "--batch", "64"]
    code, text, _ = run(capsys, *words, "--json")
    bill.write_text(text)
    first, again = json.loads(text), answer(capsys, "count", str(bill))

    assert code in (0, 1)
    assert first["cluster"]["spine"]["bandwidth"] == 12.5e9
    assert (again["cluster"], again["step"]) == (first["cluster"], first["step"])
    assert any("8 rails" in said for said in first["assumptions"])


def test_all_that_is_wrong_with_a_file_is_said_beside_the_rest_of_the_question(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "lab.toml"
    file.write_text('accelerator = "h100-sxm"\nranks = 0\nlevels = 3\n')
    found = answer(capsys, "count", "llama-3.1-8b", "--on", str(file), "--tp", "x")["errors"]

    assert {each["code"] for each in found} == {"HW007", "LAY000"}
    assert {each["what"].split()[0] for each in found} == {"ranks", "levels", "--tp"}


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("words", ["hardware", "hardware gb300", "hardware 4xgb300-nvl72", "hardware mi250x"])
def test_no_line_is_too_wide(capsys: Capture, monkeypatch: pytest.MonkeyPatch, words: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))

    assert max(map(len, run(capsys, *words.split())[1].splitlines())) <= width
