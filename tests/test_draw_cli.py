"""`outlay draw` and `outlay bubble --simulate`: what they answer, read and write, and what is refused."""

import io
import itertools
import os
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from outlay.cli.main import main
from outlay.show.schema import OUTPUT_SCHEMAS
from test_cli import answer, run
from test_diagram import read_trace
from test_json import faults

SMALL = ["draw", "--pp", "4", "--micro-batches", "8"]
TIMED = [*SMALL, "--forward", "10ms", "--backward", "20ms"]
MODEL = ["draw", "llama-3.1-70b", "--on", "64xh100-sxm", "--tp", "8", "--pp", "4", "--seq", "8192", "--batch", "64"]


def codes(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """The codes of a question that cannot be read, the same on both faces."""
    found = [fault["code"] for fault in answer(capsys, *words)["errors"]]
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "") and all(each in err for each in found)
    return found


# --- answers --------------------------------------------------------------------------------------------------------


def test_a_schedule_is_drawn_with_its_idle_time_first(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *TIMED)

    assert (code, err) == (0, "")
    assert out.startswith("IDLE      27.3 % of all accelerator-time")
    assert "90.0 ms of a 330 ms step on every rank; 360 ms over 4 ranks" in out
    assert "fill 60.0 ms (16.7 %), drain 120 ms (33.3 %), dependency 180 ms (50.0 %)" in out
    assert "  rank 0  1234......aa5bb6cc7dd8ee.ff.gg.hh" in out


@pytest.mark.parametrize(
    ("schedule", "share", "span"),
    # Qi et al. 2023 with F = B = W = 10 ms, 240 ms of work: bubbles of (P - 1)(F + B - W), of (P - 1) F that is 0 in
    # the span, and of (P - 1) B/2 for ZBV, likewise.
    [("1f1b", 9 / 33, 9 / 33), ("zb_h1", 3 / 27, 3 / 27), ("zb_h2", 3 / 27, 0), ("zbv", 1.5 / 25.5, 0)],
)
def test_the_idle_share_is_that_of_the_papers(
    capsys: pytest.CaptureFixture[str], schedule: str, share: float, span: float
) -> None:
    found = answer(capsys, *TIMED, "--schedule", schedule)

    assert found["idle"]["share"] == pytest.approx(share)
    assert found["idle"]["span_share"] == pytest.approx(span, abs=1e-12)
    assert found["makespan"] == pytest.approx(0.24 / (1 - share))


def test_parts_of_an_answer_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, *TIMED, "--schedule", "interleaved", "--vpp", "2", "--latency", "1ms")

    assert sum(found["idle"]["by_cause"].values()) == pytest.approx(found["idle"]["total"])
    assert sum(rank["idle"] for rank in found["ranks"]) == pytest.approx(found["idle"]["total"])
    assert all(rank["busy"] + rank["idle"] == pytest.approx(found["makespan"]) for rank in found["ranks"])
    assert found["idle"]["share"] == pytest.approx(found["idle"]["total"] / 4 / found["makespan"])
    assert found["idle"]["by_cause"]["communication"] > 0


def test_the_critical_path_covers_the_step(capsys: pytest.CaptureFixture[str]) -> None:
    path = answer(capsys, *TIMED)["critical_path"]

    assert path[0]["start"] == 0 and path[-1]["end"] == pytest.approx(0.33)
    assert all(a["end"] == pytest.approx(b["start"]) for a, b in itertools.pairwise(path))


@pytest.mark.parametrize(
    "words",
    [
        SMALL, TIMED, [*TIMED, "--latency", "1ms", "--schedule", "zbv"], MODEL,
        ["draw", "--pp", "8", "--micro-batches", "100000", "--forward", "1ms", "--backward", "2ms"],
        ["draw", *MODEL[1:4], "--tp", "3", "--pp", "4"],
    ],
)  # fmt: skip
def test_the_schema_holds(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert faults(OUTPUT_SCHEMAS["draw"](), answer(capsys, *words)) == []


def test_without_times_a_forward_pass_is_the_unit(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, *SMALL)

    assert (found["unit"], found["makespan"]) == ("F", 33)
    assert "in F" in found["notes"][0]


def test_the_two_gradients_can_be_timed_apart(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*SMALL, "--schedule", "zb_h1", "--forward", "10ms", "--input-gradient", "12ms", "--weight-gradient", "9ms"]

    assert answer(capsys, *words)["makespan"] == pytest.approx(8 * 0.031 + 3 * 0.013)  # (P - 1)(F + B - W)


def test_a_steady_state_of_any_length_is_folded(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--pp", "8", "--micro-batches", "1000000", "--forward", "10ms", "--backward", "20ms"]
    found = answer(capsys, "draw", *words)

    assert found["makespan"] == pytest.approx((1_000_000 + 7) * 0.03)
    assert found["idle"]["share"] == pytest.approx(7 / 1_000_007)
    assert found["folded"]["micro_batches"] > 999_000
    assert "999," in run(capsys, "draw", *words)[1]


# --- a layout of a model --------------------------------------------------------------------------------------------


def test_a_layout_is_drawn_with_the_times_of_its_bill(capsys: pytest.CaptureFixture[str]) -> None:
    found, bill = answer(capsys, *MODEL), answer(capsys, "count", *MODEL[1:])

    assert (found["accelerators"], found["schedule"], found["micro_batches"]) == (64, "1f1b", 32)
    assert 0.9 < found["makespan"] / bill["step"]["seconds"] < 1.1
    assert "16 accelerators each" in found["notes"][0]
    assert found["idle"]["total"] == pytest.approx(16 * sum(rank["idle"] for rank in found["ranks"]))


def test_a_layout_that_breaks_a_rule_is_not_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = [*MODEL[:5], "3", *MODEL[6:], "--svg", str(tmp_path / "x.svg")]
    code, out, _ = run(capsys, *words)

    assert code == 1 and "LAY003" in out
    assert {each["code"] for each in answer(capsys, *words)["violations"]} >= {"LAY003"}
    assert list(tmp_path.iterdir()) == []


# --- files ----------------------------------------------------------------------------------------------------------


def test_every_kind_of_file_is_written_at_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    paths = {name: str(tmp_path / f"x.{name}") for name in ("svg", "html", "perfetto", "csv")}
    words = [word for name, path in paths.items() for word in (f"--{name}", path)]
    code, out, _ = run(capsys, *TIMED, *words)

    assert code == 0 and all(f"WROTE     {path}" in re.sub(r"\n +", "", out) for path in paths.values())
    assert {path.name for path in tmp_path.iterdir()} == {"x.svg", "x.html", "x.perfetto", "x.csv"}
    assert ET.parse(paths["svg"]).getroot().tag.endswith("svg")
    assert Path(paths["html"]).read_text().startswith("<!doctype html>")
    assert len(read_trace(Path(paths["perfetto"]).read_bytes())[0]) == 8  # a stream and a counter a rank
    assert Path(paths["csv"]).read_text().splitlines()[3].startswith("3F0,3B0,3F1")


def test_files_follow_the_mask_of_the_user(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        run(capsys, *SMALL, "--svg", str(tmp_path / "x.svg"))
    finally:
        os.umask(before)

    assert (tmp_path / "x.svg").stat().st_mode & 0o777 == 0o640


def test_a_file_that_exists_is_kept_unless_forced(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    path.write_text("mine")

    assert codes(capsys, *SMALL, "--svg", str(path)) == ["OUT001"]
    assert path.read_text() == "mine"
    assert run(capsys, *SMALL, "--svg", str(path), "--force")[0] == 0
    assert path.read_text().startswith("<svg") and len(list(tmp_path.iterdir())) == 1


def test_nothing_is_written_where_one_file_cannot_be(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["--svg", str(tmp_path / "a.svg"), "--html", str(tmp_path / "no" / "x.html")]

    assert codes(capsys, *SMALL, *words) == ["OUT002"]
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_taken_while_the_work_is_done_is_not_written_over(tmp_path: Path) -> None:
    from outlay.cli.files import check, write
    from outlay.errors import InputError

    path = tmp_path / "x"
    assert check(str(path), False) is None
    path.write_text("faster")
    with pytest.raises(InputError, match="OUT001"):
        write(str(path), b"mine", False)
    assert path.read_text() == "faster" and len(list(tmp_path.iterdir())) == 1


def test_a_dash_is_standard_output_and_then_nothing_else_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *SMALL, "--svg", "-")

    assert (code, err) == (0, "")
    assert ET.fromstring(out).tag.endswith("svg")


def test_equal_questions_give_equal_files(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("--svg", "--html", "--csv"):
        assert run(capsys, *TIMED, kind, "-") == run(capsys, *TIMED, kind, "-")


# --- orders and durations from files --------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ["1f1b", "interleaved", "zb_h2", "zbv", "dualpipe_v"])
def test_an_order_that_was_written_is_read_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, schedule: str
) -> None:
    path = str(tmp_path / "order.csv")
    times = ["--forward", "10ms", "--backward", "20ms"]
    run(capsys, *SMALL, *times, "--schedule", schedule, "--csv", path)
    one, two = answer(capsys, *SMALL, *times, "--schedule", schedule), answer(capsys, "draw", "--order", path, *times)

    assert (one["ranks"], one["makespan"]) == (two["ranks"], two["makespan"])


def test_a_table_gives_each_stage_its_times(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("stage,forward,backward,recompute\n0,10ms,20ms,0\n1,12ms,24ms,10 ms\n")
    found = answer(capsys, "draw", "--pp", "2", "--micro-batches", "4", "--times", str(path))

    assert [rank["busy"] for rank in found["ranks"]] == pytest.approx([4 * 0.03, 4 * 0.046])


def test_a_listing_is_read_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"0F0,0B0\n1F0,1B0\n")))

    assert answer(capsys, "draw", "--order", "-")["makespan"] == 6


# --- what cannot be read --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("draw", ["CLI004", "CLI004"]),
        ("draw --pp 4", ["CLI004"]),
        ("draw --pp x --micro-batches 0", ["UNI003", "UNI003"]),
        ("draw --pp 4 --micro-batches 8 --schedule zb", ["SCH001"]),
        ("draw --pp 3 --micro-batches 5 --schedule dualpipe", ["SCH005", "SCH004"]),
        ("draw --pp 4 --micro-batches 8 --forward 10ms", ["DRW002"]),
        ("draw --pp 4 --micro-batches 8 --forward 10ms --backward 1ms --weight-gradient 1ms", ["DRW002"]),
        ("draw --pp 4 --micro-batches 8 --forward x --backward 0", ["UNI002", "UNI002"]),
        ("draw --pp 4 --micro-batches 8 --latency 1ms", ["DRW002"]),
        ("draw --order no.csv --pp 4", ["DRW002", "DRW001"]),
        ("draw --pp 4 --micro-batches 8 --times no.csv", ["DRW001"]),
        ("draw --pp 4 --micro-batches 8 --svg x --html x", ["DRW002"]),
        ("draw --pp 4 --micro-batches 8 --svg --force", ["CLI002"]),
        ("draw --pp 4 --micro-batches 8 --svg /", ["OUT002"]),
        ("draw --pp 4 --micro-batches 8 --svg x\0y", ["OUT002"]),
        ("draw llama-3.1-8b --on 8xh100-sxm --forward 1ms", ["DRW002"]),
        ("draw no-such-model --on 8xh100-sxm", ["MOD007"]),
        ("draw --pp 4 --micro-batches 10000000 --schedule gpipe", ["DRW003"]),
        ("bubble --pp 4 --micro-batches 8 --schedule zb_h1", ["CLI007"]),
        ("bubble --pp 4 --at-most 5% --schedule zb_h1 --simulate", ["CLI007"]),
    ],
)
def test_a_question_that_cannot_be_read(capsys: pytest.CaptureFixture[str], words: str, expected: list[str]) -> None:
    assert codes(capsys, *words.split(" ")) == expected


@pytest.mark.parametrize(
    ("table", "got"),
    [
        ("", "nothing"),
        ("forward,backward\n", "forward"),
        ("forward\n1\n", "forward"),
        ("forward,backward,input_gradient,weight_gradient\n1,1,1,1\n", "forward"),
        ("forward,backward,colour\n1,1,red\n", "colour"),
        ("forward,backward\n1ms\n", "row 2, backward"),
        ("forward,backward\n1ms,1 hour\n", "row 2, backward"),
        ("forward,backward\n1ms,-1\n", "row 2, backward"),
        ("forward,backward\n1ms,nan\n", "row 2, backward"),
    ],
)
def test_a_table_of_durations_that_means_nothing_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, table: str, got: str
) -> None:
    path = tmp_path / "times.csv"
    path.write_text(table)
    found = answer(capsys, "draw", "--pp", "1", "--micro-batches", "2", "--times", str(path))["errors"]

    assert {fault["code"] for fault in found} == {"DRW004"} and got in found[0]["got"]


def test_a_table_with_too_few_rows_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("forward,backward\n1ms,1ms\n1ms,1ms\n")

    assert set(codes(capsys, *SMALL, "--times", str(path))) == {"SCH031"}


def test_an_order_that_deadlocks_names_its_operations(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "order.csv"
    path.write_text("0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n")
    (found,) = answer(capsys, "draw", "--order", str(path))["errors"]

    assert found["code"].startswith(("ORD", "SCH"))
    assert "micro-batch" in found["got"] or "F1" in found["got"]


# --- the bubble, simulated ------------------------------------------------------------------------------------------


def test_a_simulated_bubble_agrees_with_its_law(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bubble", "--pp", "8", "--micro-batches", "32", "--slot", "30ms", "--simulate"]
    found = answer(capsys, *words)["bubble"]

    assert found["simulated"]["share"] == pytest.approx(found["share"]) == pytest.approx(7 / 39)
    assert found["simulated"]["seconds"] == pytest.approx(0.21)
    assert "as the law says" in run(capsys, *words)[1]


def test_a_schedule_without_slots_is_answered_by_simulation(capsys: pytest.CaptureFixture[str]) -> None:
    """F : B : W = 10 : 12 : 9, P 8, M 32: ZB-H2 idles 0.323 of 1F1B over the makespan and 0.129 over the span."""
    words = [
        "bubble",
        "--pp",
        "8",
        "--micro-batches",
        "32",
        "--forward",
        "10ms",
        "--backward",
        "12ms",
        "--weight",
        "9ms",
    ]
    found = answer(capsys, *words, "--schedule", "zb_h2", "--simulate")["bubble"]
    plain = 7 * 0.031

    assert found["seconds"] / plain == pytest.approx(0.323, abs=5e-4)
    span = found["span_share"] * 32 * 0.031 / (1 - found["span_share"])
    assert span / plain == pytest.approx(0.129, abs=5e-4)


@pytest.mark.parametrize("schedule", ["1f1b", "zbv", "interleaved_zb", "dualpipe"])
def test_the_schema_of_a_bubble_holds_when_it_is_simulated(capsys: pytest.CaptureFixture[str], schedule: str) -> None:
    words = ["bubble", "--pp", "4", "--micro-batches", "8", "--schedule", schedule, "--simulate"]

    for more in ([], ["--slot", "30ms"]):
        found = answer(capsys, *words, *more)
        assert faults(OUTPUT_SCHEMAS["bubble"](), found) == []
    run = found["bubble"]["simulated"]
    assert run["step_seconds"] * (1 - run["share"]) == pytest.approx(8 * 0.03)  # the work of every rank


def test_an_overlapped_pair_has_a_time_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """DualPipeV whose pairs gain nothing idles (P - 1)(2f + b - w) in chunk times: 3 x (2 x 10 + 10 - 5) ms."""
    passes = "--forward 20ms --input-gradient 20ms --weight-gradient 10ms"
    asked = f"draw --schedule dualpipe_v --pp 4 --micro-batches 8 {passes}"
    idle = []
    for more in ("", " --pair 50ms", " --pair 30ms"):
        assert main((asked + more).split()) == 0
        idle.append(capsys.readouterr().out.splitlines()[1].split(" of a ")[0].strip())
    assert idle == ["75.0 ms", "75.0 ms", "25.0 ms to 45.0 ms"]


def test_a_model_is_drawn_in_the_rounds_of_its_engine(capsys: pytest.CaptureFixture[str]) -> None:
    """10 micro-batches on 4 ranks: PyTorch takes two rounds of 5, which Megatron-LM refuses."""
    asked = ["llama-3.1-8b", "--on", "4xh100-sxm", "--pp", "4", "--vpp", "2", "--seq", "4096", "--batch", "10"]
    code, out, _ = run(capsys, "draw", *asked, "--engine", "fsdp2")
    assert code == 0 and "in flight at the peak, in micro-batches: 6, 5, 4, 3" in out
    assert main(["draw", *asked]) == 1
