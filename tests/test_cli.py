"""The commands: what they answer, what they accept, and what their exit says."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from outlay.cli import main as entrance
from outlay.cli.commands import COMMANDS
from outlay.cli.flags import field_flags, hints, question_flags, sentence
from outlay.cli.help import HEADINGS
from outlay.cli.main import main
from outlay.job import Job
from outlay.layout.axes import Layout
from outlay.layout.complete import flag
from outlay.model.catalogue import names
from outlay.show.catalogue import models_lines
from outlay.show.codes import pages
from outlay.show.text import Style

ROOT = Path(__file__).parent.parent
DEMO = ["llama-3.1-70b", "--on", "64xh100-sxm", "--tp", "8", "--pp", "4", "--seq", "8192", "--batch", "512"]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one command."""
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    """The JSON object that a command prints."""
    main([*words, "--json"])
    return json.loads(capsys.readouterr().out)


# --- exit codes -----------------------------------------------------------------------------------------------------


def test_a_layout_that_fits_exits_with_0_and_says_so_first(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "count", *DEMO)

    assert (code, err) == (0, "")
    assert out.startswith("FITS ")


def test_a_layout_that_does_not_fit_exits_with_1_and_prints_everything(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "count", *DEMO[:3], "--tp", "8", "--seq", "8192", "--batch", "512")

    assert code == 1
    assert out.startswith("DOES NOT FIT")
    assert "MEMORY" in out and "TIME" in out


def test_state_that_fits_nowhere_says_the_factor_and_from_how_many_cards(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["llama-3.1-70b", "--on", "8xh100-sxm", "--tp", "8", "--seq", "8192", "--batch", "8"]
    code, out, _ = run(capsys, "count", *words)

    assert code == 1
    assert out.startswith("IMPOSSIBLE  on 8 cards")
    assert "1.87 times too much" in out and "from 15" in out


def test_a_broken_rule_exits_with_1_and_keeps_the_figures(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "count", *DEMO[:3], "--tp", "3", "--pp", "4", "--seq", "8192", "--batch", "512")

    assert (code, err) == (1, "")
    assert out.startswith("NOT LEGAL")
    assert "LAY003" in out and "NEAREST" in out and "MEMORY" in out


def test_a_question_that_cannot_be_read_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "count", "no-such-model", "--on", "8xh100-sxm")

    assert (code, out) == (2, "")
    assert "MOD007" in err


# --- count ----------------------------------------------------------------------------------------------------------


def test_a_defaulted_batch_is_said_loudly(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "count", "llama-3.1-8b", "--on", "8xh100-sxm", "--seq", "4096")
    top = out.split("MEMORY")[0]

    assert "NOTE" in top and "GLOBAL BATCH 8: ONE MICRO-BATCH A STEP" in top


def test_a_model_with_experts_shows_total_and_active_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "count", "mixtral-8x7b", "--on", "64xh100-sxm", "--tp", "4", "--ep", "8", "--pp", "2")

    assert "46.70 billion parameters, 12.88 billion active a token" in out


def test_every_answer_names_what_binds_and_what_to_attack_next(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "count", *DEMO)

    assert re.search(r"^BINDS\s+arithmetic", out, re.MULTILINE)
    assert re.search(r"^NEXT\s+tensor-parallel exchange .*--overlap-tp; or a smaller --tp$", out, re.MULTILINE)


def test_advice_leaves_out_what_the_layout_already_has(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "count", *DEMO, "--overlap-tp")
    (line,) = [line for line in out.splitlines() if line.startswith("NEXT")]

    assert "--overlap-tp" not in line and "a smaller --tp" in line


def test_tokens_give_the_days_and_card_hours_of_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "count", *DEMO, "--tokens", "100B")

    assert re.search(r"^RUN\s+100.0 billion tokens: 23,842 steps of 4.194 million tokens, .* days", out, re.MULTILINE)


def test_several_clusters_make_a_table_that_keeps_the_rows_that_break_a_rule(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["count", DEMO[0], "--on", "8,32,64xh100-sxm", *DEMO[3:]]
    code, out, _ = run(capsys, *words)
    rows = [line.split() for line in out.splitlines() if re.match(r"  \d+xh100-sxm +(FITS|NOT)", line)]

    assert code == 0
    assert [(row[0], row[1]) for row in rows] == [
        ("8xh100-sxm", "NOT"),
        ("32xh100-sxm", "FITS"),
        ("64xh100-sxm", "FITS"),
    ]
    assert "LAY001" in out


def test_a_table_in_which_no_row_fits_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "count", "llama-3.1-405b", "--on", "8,16xh100-sxm", "--tp", "8", "--batch", "16")[0] == 1


def test_a_table_counts_every_row_at_the_same_batch(capsys: pytest.CaptureFixture[str]) -> None:
    rows = answer(capsys, "count", "llama-3.1-8b", "--on", "8,16,32xh100-sxm", "--seq", "4096")["rows"]

    assert {row["job"]["global_batch"] for row in rows} == {32}
    assert all("ON EVERY ROW" in row["assumptions"][0] for row in rows)


def test_tokens_and_bytes_take_the_suffixes_that_people_write(capsys: pytest.CaptureFixture[str]) -> None:
    job = answer(capsys, "count", *DEMO, "--tokens", "15T", "--reserved", "2GiB")["job"]

    assert (job["tokens"], job["reserved_bytes"]) == (15e12, 2 * 2**30)


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("--sequence-length 4096", "--seq 4096"),
        ("--global-batch 64", "--batch 64"),
        ("--micro-batch 2", "--mbs 2"),
        ("--bytes-per-parameter 16", "--bytes 16"),
        ("--reserved-bytes 1GB", "--reserved 1GB"),
    ],
)
def test_long_and_short_flags_mean_the_same(capsys: pytest.CaptureFixture[str], long: str, short: str) -> None:
    base = ["count", "llama-3.1-8b", "--on", "8xh100-sxm"]

    assert answer(capsys, *base, *long.split()) == answer(capsys, *base, *short.split())


def test_every_field_has_a_flag_with_a_sentence_and_the_name_that_messages_print() -> None:
    for cls in (Job, Layout):
        for each in field_flags(cls):
            assert sentence(each), each.name
            assert flag(each.name) in each.names, each.name
    names = [name for each in question_flags() for name in each.names]
    assert len(names) == len(set(names))


def test_sequence_parallelism_is_switched_off_by_its_negative(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "count", *DEMO, "--no-sp")["layout"]["sp"] is False
    assert answer(capsys, "count", *DEMO)["layout"]["sp"] is True


def test_a_split_gives_the_layers_of_each_stage(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "count", *DEMO, "--split", "19,20,20,21")

    assert [stage["layers"] for stage in found["memory"]["ranks"]] == [19, 20, 20, 21]


# --- where a question comes from ------------------------------------------------------------------------------------


CONFIG = """
model = "llama-3.1-70b"
on = "64xh100-sxm"
[layout]
tp = 8
pp = 4
[job]
sequence_length = 8192
global_batch = 512
"""


def test_a_toml_file_asks_the_same_question_as_flags(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(CONFIG)

    assert answer(capsys, "count", "--config", str(file)) == answer(capsys, "count", *DEMO)


def test_flags_override_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(CONFIG)
    found = answer(capsys, "count", "--config", str(file), "--tp", "4", "--on", "32xh100-sxm")

    assert (found["layout"]["tp"], found["layout"]["pp"], found["cluster"]["ranks"]) == (4, 4, 32)


def test_a_flag_hides_a_bad_value_in_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(CONFIG.replace("tp = 8", "tp = 0"))

    assert run(capsys, "count", "--config", str(file), "--tp", "8")[0] == 0


def give(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_a_model_is_read_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, (ROOT / "tests/configs/llama-3.1-8b.json").read_text())
    found = answer(capsys, "count", "-", "--on", "8xh100-sxm")

    assert found["model"]["parameters"]["total"] == 8_030_261_248


def test_a_printed_bill_is_a_question_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["count", *DEMO, "--json"])
    bill = capsys.readouterr().out
    give(monkeypatch, bill)
    found = answer(capsys, "explain", "memory.weights", "-")

    assert found["value"] == next(
        item["bytes"] for item in json.loads(bill)["memory"]["items"] if item["name"] == "weights"
    )


def test_a_bill_with_one_flag_changed_lets_go_of_what_followed_from_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "bill.json"
    main(["count", *DEMO, "--json"])
    file.write_text(capsys.readouterr().out)
    found = answer(capsys, "count", str(file), "--tp", "4")

    assert (found["layout"]["tp"], found["layout"]["dp_shard"], found["violations"]) == (4, 4, [])


# --- the other commands ---------------------------------------------------------------------------------------------


def test_memory_shows_every_component_of_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "memory", *DEMO)

    assert code == 0
    assert "mlp_up" in out and "70,553,706,496" in out


def test_traffic_shows_every_axis_and_where_tokens_pass_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "traffic", *DEMO)
    found = answer(capsys, "traffic", *DEMO)["traffic"]

    assert out.startswith("SENDS")
    assert {item["axis"]: item["grows_with"] for item in found["items"]} == {
        "tp": "tokens", "pp": "tokens", "dp": "parameters",
    }  # fmt: skip
    assert found["tokens_at_parity"] == pytest.approx(2 * 4 * 70_553_706_496 / (8 * 2 * 8192 * 80))
    assert "53,828 tokens" in " ".join(out.split())


def test_a_figure_is_explained_line_by_line_with_its_ladder(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "explain", "memory.activations", *DEMO)

    assert code == 0
    assert out.startswith("memory.activations  20.96 GiB (22.50 GB)")
    for rung in ("coarse", "refined", "simulated", "measured"):
        assert re.search(rf"^    {rung} ", out, re.MULTILINE), rung


def test_a_bubble_is_explained_without_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "explain", "bubble", "--pp", "8", "--micro-batches", "32")

    assert "(8 - 1) / (32 + 8 - 1) = 17.95 %" in out


def codes_in_the_sources() -> set[str]:
    found: set[str] = set()
    for file in (ROOT / "src/outlay").rglob("*.py"):
        found |= set(re.findall(r"""["'((]([A-Z]{2,4}\d{3})["']""", file.read_text()))
    return found


def test_every_code_that_can_be_printed_has_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    codes = codes_in_the_sources()

    assert {"LAY003", "HW001", "MOD004", "BAT001", "CLI001", "UNI002"} <= codes
    assert codes - set(pages()) == set()
    for code in codes:
        assert run(capsys, "explain", code)[0] == 0


def test_no_page_is_left_of_a_code_that_nothing_prints() -> None:
    assert set(pages()) - codes_in_the_sources() == set()


def test_two_layouts_are_compared_item_by_item(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "tp=8,pp=4", "tp=4,pp=8", *DEMO[:3], "--seq", "8192", "--batch", "512"]
    code, out, _ = run(capsys, *words)
    found = answer(capsys, *words)
    steps = [item for item in found["items"] if item["name"].startswith("step.")]

    assert code == 0
    assert out.startswith("B FASTER")
    assert [abs(item["difference"]) for item in steps] == sorted(
        (abs(item["difference"]) for item in steps), reverse=True
    )
    assert found["a"]["layout"]["tp"] == 8 and found["b"]["layout"]["tp"] == 4
    assert sum(item["difference"] for item in steps) == pytest.approx(
        found["b"]["step"]["seconds"] - found["a"]["step"]["seconds"]
    )


def test_a_bill_is_compared_with_a_change_of_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "bill.json"
    main(["count", *DEMO, "--json"])
    file.write_text(capsys.readouterr().out)

    assert run(capsys, "compare", str(file), str(file))[1].startswith("EQUAL")
    assert answer(capsys, "compare", str(file), "mbs=2")["b"]["layout"]["micro_batch"] == 2


def test_models_lists_searches_and_shows(capsys: pytest.CaptureFixture[str]) -> None:
    every = answer(capsys, "models")["models"]
    some = answer(capsys, "models", "mixtral")["models"]
    _, out, _ = run(capsys, "models", "mixtral-8x7b")

    assert len(every) > len(some) > 0
    assert all("mixtral" in model["name"] for model in some)
    assert out.startswith("mixtral-8x7b  46.70 billion parameters (46,702,792,704), 12.88 billion active a token")


def test_the_list_of_all_models_has_room_for_their_sources_at_100_columns() -> None:
    lines = models_lines(list(names()), Style(100))

    assert lines[1].split() == ["name", "total", "active", "family", "source"]
    assert not any("not shown" in line for line in lines)


def test_a_rate_that_a_card_does_not_have_is_a_dash_and_not_a_zero(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "hardware", "h100-sxm")
    rows = [line.split() for line in out.splitlines() if line.startswith("  fp")]

    assert {row[0]: row[2] for row in rows if row[1] == "flops"} == {
        "fp16": "989.4",
        "fp8": "1,979",
        "fp4": "-",
        "fp32": "67",
    }


def test_hardware_shows_figures_with_their_source_and_the_ratios_that_decide(
    capsys: pytest.CaptureFixture[str],
) -> None:
    card = answer(capsys, "hardware", "h100-sxm")
    _, out, _ = run(capsys, "hardware", "h100-sxm")

    assert round(card["accelerator"]["flops_per_byte"]) == 295
    assert round(card["accelerator"]["memory_over_nic"]) == 67
    assert {"value", "unit", "kind", "date", "source", "unverified", "si"} <= card["figures"][0].keys()
    assert "295 FLOP a byte" in out and "67 times faster than InfiniBand NDR" in " ".join(out.split())
    assert (
        run(capsys, "hardware")[0]
        == run(capsys, "hardware", "h100")[0]
        == run(capsys, "hardware", "p5.48xlarge")[0]
        == 0
    )


def test_runs_are_validated_from_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from outlay.validate.read import HEADER

    file = tmp_path / "runs.csv"
    file.write_text(",".join(HEADER) + "\n")
    found = answer(capsys, "validate", str(file))

    assert found["rows"] == []
    assert run(capsys, "validate", str(file))[0] == 0


def test_help_names_every_command_and_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys)

    assert code == 0
    for command in COMMANDS:
        assert command.name in out
        said = run(capsys, command.name, "--help")[1]
        assert all(name in said for each in command.flags() for name in each.names), command.name


def test_help_has_the_flags_of_a_subject_under_one_heading_and_those_of_output_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = run(capsys, "count", "--help")[1]
    under = {part.split("\n")[0]: part for part in said.split("\n\n")}

    assert said.index("--on") < said.index("\nJOB") < said.index("\nLAYOUT") < said.index("\nOUTPUT")
    assert "--optimizer" in under["OPTIMIZER AND NUMBER TYPES"] and "--rank" not in under["OPTIMIZER AND NUMBER TYPES"]
    assert all(
        flag in under["WHAT IS TRAINED, AND WHAT STANDS BESIDE IT"] for flag in ("--rank", "--freeze", "--beside")
    )
    assert "--json" in under["OUTPUT"] and "--json" not in under["USAGE     outlay count MODEL [flags]"]


def test_every_heading_of_the_help_names_fields_that_there_are() -> None:
    fields = {*hints(Job), *hints(Layout)}
    named = [name for names in HEADINGS.values() for name in names]

    assert set(named) <= fields
    assert len(named) == len(set(named))


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    from outlay import __version__

    assert run(capsys, "--version")[1] == f"outlay {__version__}\n"


# --- bubble ---------------------------------------------------------------------------------------------------------


def test_the_bubble_of_8_stages_and_32_micro_batches_is_7_of_39(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "bubble", "--pp", "8", "--micro-batches", "32", "--slot", "30ms")

    assert out.startswith("IDLE      17.9 % of all accelerator-time (7/39)\n")
    assert "210 ms of a 1.17 s step" in out and "256 useful of 312 held" in out


@pytest.mark.parametrize(
    ("pp", "share", "need"),
    [
        ("8", "5%", 133),
        ("4", "20%", 12),
        ("4", "1/5", 12),
        ("4", "0.2", 12),
        ("16", "100%", 1),
        ("1", "5%", 1),
        ("8", ".05", 133),
    ],
)
def test_the_micro_batches_that_a_share_needs_are_exact(
    capsys: pytest.CaptureFixture[str], pp: str, share: str, need: int
) -> None:
    assert answer(capsys, "bubble", "--pp", pp, "--at-most", share)["micro_batches"] == need


def test_the_needed_number_is_the_least_and_of_whole_rounds(capsys: pytest.CaptureFixture[str]) -> None:
    from fractions import Fraction

    from outlay.show.bubble import Pipeline, needed

    for pp in range(2, 20):
        for vpp in (1, 2, 3):
            for share in (Fraction(1, 20), Fraction(1, 7), Fraction(3, 10), Fraction(99, 100)):
                need = needed(pp, vpp, share)
                line = Pipeline(pp, vpp, need, "interleaved" if vpp > 1 else "1f1b")
                step = pp if vpp > 1 else 1
                assert line.share <= share
                assert need == step or line.at(need - step).share > share


def test_a_fraction_is_not_a_duration(capsys: pytest.CaptureFixture[str]) -> None:
    few = answer(capsys, "bubble", "--pp", "8", "--micro-batches", "32", "--slot", "30ms")["bubble"]
    many = answer(capsys, "bubble", "--pp", "8", "--micro-batches", "64", "--slot", "30ms")["bubble"]

    assert many["share"] / few["share"] == pytest.approx(39 / 71)
    assert many["seconds"] == few["seconds"] == pytest.approx(0.21)
    assert many["step_seconds"] > few["step_seconds"]


def test_forward_backward_and_weight_make_a_slot(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "bubble",
        "--pp",
        "4",
        "--micro-batches",
        "8",
        "--forward",
        "10ms",
        "--backward",
        "10ms",
        "--weight",
        "0.01",
    ]

    assert answer(capsys, *words)["bubble"]["slot_seconds"] == pytest.approx(0.03)


# --- the edges of the program ---------------------------------------------------------------------------------------


def test_an_unexpected_fault_is_said_shortly_and_never_as_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(words: list[str]) -> int:
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr(entrance, "_run", broken)
    code, out, err = run(capsys, "count")

    assert (code, out) == (2, "")
    assert "CLI000" in err and "--debug" in err and "Traceback" not in err


def test_debug_writes_the_traceback_to_a_file_that_it_names(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(words: list[str]) -> int:
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr(entrance, "_run", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    _, _, err = run(capsys, "count", "--debug")
    (file,) = tmp_path.iterdir()

    assert file.name in err and "Traceback" not in err
    assert "ZeroDivisionError: of all things" in file.read_text()


def test_an_interrupt_is_no_fault(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(words: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(entrance, "_run", stopped)

    assert run(capsys, "count") == (130, "", "")


def test_a_closed_output_takes_the_answer_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    monkeypatch.setattr("sys.stderr", None)

    assert (main(["models"]), main(["count", "no-model"])) == (0, 2)
    sys.stdout.close()
    sys.stderr.close()


def process(words: str, out: int | None, err: int | None = subprocess.PIPE) -> tuple[int, str]:
    """Exit code and standard error of a process of its own."""
    command = [sys.executable, "-m", "outlay", *words.split()]
    done = subprocess.run(command, stdout=out, stderr=err, text=True, timeout=120)
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", ["models", "count llama-3.1-8b --on 8xh100-sxm", "count no-model --json", "--help"])
def test_a_reader_who_leaves_is_no_fault_and_neither_yes_nor_no(words: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert process(words, writer) == (128 + 13, "")  # as a shell says that SIGPIPE ended a program
    finally:
        os.close(writer)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a disk without room")
@pytest.mark.parametrize("words", ["models", "count no-model --json"])
def test_where_nothing_can_be_written_it_is_said_and_the_exit_is_no_answer(words: str) -> None:
    with open("/dev/full", "w") as full:
        code, said = process(words, full.fileno())
        assert code == 2 and said.startswith("error: standard output cannot be written") and "OUT002" in said
        assert process(words, full.fileno(), full.fileno())[0] == 2


def test_the_program_runs_as_a_module_and_leaves_heavy_packages_alone() -> None:
    program = (
        "import sys; from outlay.cli.main import main; code = main(sys.argv[1:]);"
        " print(sorted({'rich', 'pydantic'} & set(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program, "count", *DEMO], capture_output=True, text=True, timeout=120)
    same = subprocess.run([sys.executable, "-m", "outlay", "count", *DEMO], capture_output=True, text=True, timeout=120)

    assert (done.returncode, done.stderr.strip()) == (0, "[]")
    assert same.stdout == done.stdout
