"""What people see: width, plain text, sums that add up, and the answer in the first word."""

import io
import json
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.cli.main import main
from outlay.cli.output import style_of
from outlay.show.bubble import Pipeline, bubble_lines, staircase
from outlay.show.text import GIB, PLAIN, Style, adding_up, block, both, counted, duration, figure, percent, safe, table

DEMO = "llama-3.1-70b --on 64xh100-sxm --tp 8 --pp 4 --seq 8192 --batch 512"
COMMANDS = [
    f"count {DEMO}",
    "count llama-3.1-70b --on 8xh100-sxm --tp 8 --batch 8",
    "count llama-3.1-70b --on 64xh100-sxm --tp 3 --pp 5 --batch 7",
    "count mixtral-8x7b --on 64xh100-sxm --tp 4 --ep 8 --pp 2",
    "count llama-3.1-70b --on 8,32,64xh100-sxm --tp 8 --pp 4",
    "count llama-3.1-405b --on 512xh100-sxm --tp 8 --pp 16 --batch 512 --split 7,8,8,8,8,8,8,8,8,8,8,8,8,8,8,7",
    f"memory {DEMO}",
    f"traffic {DEMO}",
    f"explain memory.activations {DEMO}",
    f"explain traffic.dp {DEMO}",
    "explain",
    "explain VAL003",
    f"compare tp=8,pp=4 tp=4,pp=8 {DEMO.replace('--tp 8 --pp 4 ', '')}",
    "bubble --pp 8 --micro-batches 32 --forward 10ms --backward 20ms",
    "bubble --pp 8 --micro-batches 320",
    "bubble --pp 4 --vpp 2 --micro-batches 8",
    "models",
    "models deepseek-v3",
    "hardware",
    "hardware h100-sxm",
    "--help",
    "count --help",
]


def text_of(capsys: pytest.CaptureFixture[str], words: str) -> str:
    main(words.split())
    return capsys.readouterr().out


def rows_under(text: str, key: str) -> dict[str, list[str]]:
    """Rows of the table under a keyword: label to the numbers beside it."""
    part = text[re.search(rf"^{key} ", text, re.MULTILINE).start() :].split("\n\n")[0]  # type: ignore[union-attr]
    found = re.findall(r"^    (\S[a-z -]*?)  +([\d.,]+)  +([\d.,]+)", part, re.MULTILINE)
    return {name: [first.replace(",", ""), second.replace(",", "")] for name, first, second in found}


# --- width and letters ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("words", COMMANDS)
def test_no_line_is_wider_than_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    long = [line for line in text_of(capsys, words).splitlines() if len(line) > width]

    assert long == []


@pytest.mark.parametrize("words", COMMANDS)
def test_a_pipe_gets_plain_ascii_without_boxes(capsys: pytest.CaptureFixture[str], words: str) -> None:
    text = text_of(capsys, words)

    assert text.isascii()
    assert "\x1b" not in text and "|--" not in text and "+--" not in text
    assert text.endswith("\n") and not text.endswith("\n\n")


def test_columns_that_do_not_fit_are_left_out_by_name() -> None:
    rows = [("a", "1" * 30, "2" * 30, "3" * 30)]
    lines = table(("name", "first", "second", "third"), rows, Style(width=80), "l")

    assert lines[-1] == "  (not shown at 80 columns: third)"
    assert not any("3" in line for line in lines)


# --- who sees colour ------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("setting", "plain", "colour"),
    [({}, False, True), ({"NO_COLOR": "1"}, False, False), ({"TERM": "dumb"}, False, False), ({}, True, False)],
)
def test_colour_is_for_people_at_a_terminal_who_want_it(
    monkeypatch: pytest.MonkeyPatch, setting: dict[str, str], plain: bool, colour: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in setting.items():
        monkeypatch.setenv(name, value)

    assert style_of(Terminal(), plain).colour is colour
    assert style_of(io.StringIO(), plain).colour is False


def test_colour_only_repeats_what_the_words_say(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    plain = text_of(capsys, "bubble --pp 8 --micro-batches 32")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    main(["bubble", "--pp", "8", "--micro-batches", "32"])

    assert "\x1b[1;32mIDLE\x1b[0m" in terminal.getvalue()
    assert re.sub(r"\x1b\[[\d;]*m", "", terminal.getvalue()) == plain


def test_bars_stand_against_the_wall_at_a_terminal_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "###" not in text_of(capsys, f"count {DEMO}")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    main(f"count {DEMO}".split())

    code, text = main(f"count {DEMO} --json".split()), terminal.getvalue()
    first = json.loads(text[text.index("{") :])["memory"]["ranks"][0]["peak_bytes"] / 2**30
    assert code == 0
    assert re.search(rf"stage 0 +{first:.1f}  ###", text)


# --- the answer -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (f"count {DEMO}", "FITS"),
        (f"count {DEMO} --reserved 28GiB", "TIGHT"),
        (f"count {DEMO} --reserved 40GiB", "DOES NOT FIT"),
        ("count llama-3.1-70b --on 8xh100-sxm --tp 8 --batch 8", "IMPOSSIBLE"),
        (f"count {DEMO} --etp 7", "NOT LEGAL"),
    ],
)
def test_the_first_word_is_the_verdict(capsys: pytest.CaptureFixture[str], words: str, first: str) -> None:
    assert re.match(rf"{first}  ", text_of(capsys, words))


def test_the_headline_has_both_units_a_band_and_the_worst_rank_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    top = " ".join(text_of(capsys, f"count {DEMO}").split("STEP")[0].split())

    assert re.search(r"[\d.]+ GiB \([\d.]+ GB\) of [\d.]+ GiB \([\d.]+ GB\) usable, [\d.]+ GiB free", top)
    assert re.search(r"between [\d.]+ and [\d.]+ GiB; rank 0 is the heaviest", top)


def test_a_share_never_stands_without_its_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    (idle,) = [line for line in text_of(capsys, f"count {DEMO}").splitlines() if line.startswith("IDLE")]

    assert re.search(r"1\.16 % = \d+ ms a step: pipeline fill and drain, 3 of 259 slots", idle)


@pytest.mark.parametrize("words", [COMMANDS[0], COMMANDS[3], COMMANDS[5]])
def test_printed_parts_add_up_to_the_printed_total(capsys: pytest.CaptureFixture[str], words: str) -> None:
    text = text_of(capsys, words)
    memory = rows_under(text, "MEMORY")
    for column in (0, 1):
        *parts, total = [round(100 * float(row[column])) for row in memory.values()]
        assert list(memory)[-1] == "peak"
        assert sum(parts) == total
    time = re.findall(r"^    ([a-z -]+?)  +([\d.,]+)  +([\d.]+) %", text, re.MULTILINE)
    *seconds, step = [round(1e6 * float(row[1].replace(",", ""))) for row in time]
    *shares, all_of_it = [round(10 * float(row[2])) for row in time]

    assert time[-1][0] == "step"
    assert sum(seconds) == step and sum(shares) == all_of_it == 1000


def test_long_pipelines_are_folded_but_memory_shows_every_stage(capsys: pytest.CaptureFixture[str]) -> None:
    words = COMMANDS[5].removeprefix("count ")

    assert "stages 3 to 13" in text_of(capsys, f"count {words}")
    assert len(re.findall(r"^    stage \d+ ", text_of(capsys, f"memory {words}"), re.MULTILINE)) == 16


# --- numbers --------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(min_value=0, max_value=1e6), min_size=1, max_size=12), st.integers(0, 3))
def test_rounded_parts_add_up_whatever_they_are(values: list[float], places: int) -> None:
    scale = 10**places
    printed = [round(float(text.replace(",", "")) * scale) for text in adding_up(values, places)]

    assert sum(printed) == round(sum(value * scale for value in values))
    assert all(abs(part - value * scale) <= 1.000001 for part, value in zip(printed, values, strict=True))


def test_numbers_print_with_about_three_digits_and_their_unit() -> None:
    assert [figure(value) for value in (0.0, 1.234, 12.34, 123.4, 1234.5)] == ["0.00", "1.23", "12.3", "123", "1,234"]
    assert figure(2.5e17) == "2.50e+17" and figure(float("inf")) == "no limit"
    assert both(50.4 * GIB) == "50.4 GiB (54.1 GB)"
    assert [duration(value) for value in (0.0, 64.6, 0.28, 4.2e-5)] == ["0 s", "64.6 s", "280 ms", "42.0 us"]
    assert percent(7 / 39) == "17.9 %"
    assert [counted(1, "card"), counted(2.5, "card"), counted(3, "micro-batch")] == [
        "1 card",
        "2.50 cards",
        "3 micro-batches",
    ]


def test_a_text_from_outside_cannot_move_the_cursor() -> None:
    assert safe("a\x1b[2Jb\n") == "a?[2Jb?"


def test_a_long_keyword_pushes_its_text_aside() -> None:
    assert block("DOES NOT FIT", "x", PLAIN) == ["DOES NOT FIT  x"]


# --- bubble ---------------------------------------------------------------------------------------------------------


def test_the_staircase_is_that_of_the_textbook() -> None:
    ruler, *ranks = staircase(Pipeline(3, 1, 4, "1f1b"), PLAIN)

    assert ruler == "  slot    1    6 slots"
    assert ranks == ["  rank 0  1234..", "  rank 1  .1234.", "  rank 2  ..1234"]


def test_every_rank_of_the_staircase_holds_every_slot() -> None:
    for line in (Pipeline(8, 1, 32, "gpipe"), Pipeline(4, 2, 8, "interleaved"), Pipeline(1, 1, 5, "1f1b")):
        _, *ranks = staircase(line, PLAIN)
        slots = "".join(rank[10:] for rank in ranks)

        assert len(slots) == line.held
        assert len(slots.replace(".", "")) == line.useful


def test_a_staircase_that_does_not_fit_is_left_out_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "the staircase is left out: 327 slots do not fit in 100 columns" in text_of(capsys, COMMANDS[14])
    assert "the staircase is left out: 64 ranks" in text_of(capsys, "bubble --pp 64 --micro-batches 8")


def test_the_table_says_that_the_share_halves_and_the_step_grows() -> None:
    text = "\n".join(bubble_lines(Pipeline(8, 1, 32, "1f1b", 0.03), PLAIN))

    assert re.search(r"32 +17\.9 % +210 ms +1\.17 s +39  <- asked", text)
    assert re.search(r"64 +9\.86 % +210 ms +2\.13 s +71  share halves, the step grows", text)
    assert re.search(r"133 +5\.00 % +210 ms +4\.20 s +140", text)
