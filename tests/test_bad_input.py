"""Questions that cannot be read: each has a code, all faults come at once, and nothing is ever a traceback."""

import io
import json
import sys
from pathlib import Path

import pytest

from outlay.cli.main import main
from outlay.cli.values import Faults, assignments, number

MODEL, ON = "llama-3.1-70b", "--on 64xh100-sxm"


def faults_of(capsys: pytest.CaptureFixture[str], words: list[str]) -> list[dict[str, str]]:
    """The faults of a question, which must exit with 2 and say them on both faces."""
    assert main([*words, "--json"]) == 2
    found: list[dict[str, str]] = json.loads(capsys.readouterr().out)["errors"]
    assert found and all(all(fault.values()) for fault in found)
    if "-" not in words:  # standard input is read once
        assert main(words) == 2
        out, err = capsys.readouterr()
        assert out == "" and "Traceback" not in err
        assert all(fault["code"] in err for fault in found)
        assert [line.split()[0] for line in err.splitlines() if line.startswith("  ") and line[2] != " "] == [
            "rule", "got", "fix",
        ] * len(found)  # fmt: skip
    return found


def codes(capsys: pytest.CaptureFixture[str], words: str | list[str]) -> list[str]:
    return [fault["code"] for fault in faults_of(capsys, words.split() if isinstance(words, str) else words)]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (f"count no/such/config.json {ON}", "MOD001"),
        (f"count llama-3.1-70 {ON}", "MOD007"),
        (f"count {MODEL} --on 64xh100-smx", "HW001"),
        (f"count {MODEL} --on 0xh100-sxm", "HW002"),
        (f"count {MODEL} --on 8.5xh100-sxm", "HW002"),
        (f"count {MODEL} --on nanxh100-sxm", "HW002"),
        (f"count {MODEL} --on 64", "HW003"),
        (f"count {MODEL}", "HW003"),
        (f"count {ON}", "CLI004"),
        (f"count {MODEL} {ON} --tp 0", "LAY000"),
        (f"count {MODEL} {ON} --tp -8", "LAY000"),
        (f"count {MODEL} {ON} --tp 8.5", "LAY000"),
        (f"count {MODEL} {ON} --tp abc", "LAY000"),
        (f"count {MODEL} {ON} --tp nan", "LAY000"),
        (f"count {MODEL} {ON} --tp 1e400", "LAY000"),
        (f"count {MODEL} {ON} --tp true", "LAY000"),
        (f"count {MODEL} {ON} --tp {'9' * 5000}", "LAY000"),
        (f"count {MODEL} {ON} --pp 10000000 --vpp 10000000", "LAY000"),
        (f"count {MODEL} {ON} --zero 4", "LAY000"),
        (f"count {MODEL} {ON} --schedule zigzag", "LAY000"),
        (f"count {MODEL} {ON} --split 20,x", "LAY000"),
        (f"count {MODEL} {ON} --split 20,-20", "LAY000"),
        (f"count {MODEL} {ON} --split 99999999999", "LAY000"),
        (f"count {MODEL} {ON} --offload-optimizer 1.5", "LAY000"),
        (f"count {MODEL} {ON} --seq infinity", "JOB000"),
        (f"count {MODEL} {ON} --seq 0", "JOB000"),
        (f"count {MODEL} {ON} --batch 1e30", "JOB000"),
        (f"count {MODEL} {ON} --tokens 15Q", "JOB000"),
        (f"count {MODEL} {ON} --reserved 2stone", "JOB000"),
        (f"count {MODEL} {ON} --reserved=-2GiB", "JOB000"),
        (f"count {MODEL} {ON} --bytes 17", "JOB000"),
        (f"count {MODEL} {ON} --precision int3", "JOB000"),
        (f"count {MODEL} {ON} --engine megatrno", "ENG001"),
        (f"count {MODEL} {ON} --as lama", "MOD003"),
        (f"count {MODEL} {ON} --tpp 8", "CLI001"),
        (f"count {MODEL} {ON} --tp", "CLI002"),
        (f"count {MODEL} {ON} --sp=maybe", "CLI002"),
        (f"count {MODEL} again {ON}", "CLI005"),
        (f"coutn {MODEL}", "CLI003"),
        ("--tp 8 count", "CLI003"),
        (f"count {MODEL} {ON} --config no.toml", "CFG001"),
        (f"memory {MODEL} --on 8,16xh100-sxm", "HW003"),
        (f"explain memory.activation {MODEL} {ON}", "EXP001"),
        ("explain LAY999", "EXP002"),
        (f"compare tp=8 {MODEL}", "CFG006"),
        ("compare tp=8", "CLI004"),
        (f"compare tq=8 tp=4 {MODEL} {ON}", "CFG003"),
        ("compare no.json tp=8", "CFG004"),
        ("bubble --pp 8", "CLI004"),
        ("bubble --micro-batches 8", "CLI004"),
        ("bubble --pp 0 --micro-batches 8", "UNI003"),
        ("bubble --pp 8 --at-most 0%", "UNI004"),
        ("bubble --pp 8 --at-most 1/0", "UNI004"),
        ("bubble --pp 8 --at-most 1e-400000000", "UNI004"),
        ("bubble --pp 8 --at-most 150%", "UNI004"),
        ("bubble --pp 8 --micro-batches 8 --slot 3min", "UNI002"),
        ("bubble --pp 8 --micro-batches 8 --slot 0ms", "UNI002"),
        ("bubble --pp 8 --micro-batches 8 --forward 3ms", "CLI006"),
        ("bubble --pp 8 --micro-batches 8 --slot 3ms --weight 1ms", "CLI006"),
        ("bubble --pp 8 --vpp 2 --micro-batches 9", "LAY012"),
        ("bubble --pp 8 --micro-batches 8 --schedule zigzag", "CFG003"),
        ("models no-such-model-at-all", "MOD007"),
        ("hardware h100-smx", "HW001"),
        ("schema bil", "CLI004"),
        ("validate no.csv", "VAL003"),
    ],
)
def test_a_bad_question_has_its_code(capsys: pytest.CaptureFixture[str], words: str, code: str) -> None:
    assert code in codes(capsys, words)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (f"count {MODEL} {ON} --tpp 8", "--tp"),
        (f"count {MODEL} {ON} --mirco-batch 8", "--micro-batch"),
        (f"count {MODEL} --on 64xh100-smx", "64xh100-sxm"),
        (f"coutn {MODEL}", "outlay count"),
        (f"count {MODEL} {ON} --engine megatrno", "megatron"),
        ("count llama-3.1-70 --on 8xh100-sxm", "llama-3.1-70b"),
        ("explain memory.activation", "memory.activations"),
        ("schema bil", "outlay schema bill"),
    ],
)
def test_a_slip_of_the_finger_gets_what_was_meant(capsys: pytest.CaptureFixture[str], words: str, meant: str) -> None:
    assert any(meant in fault["fix"] for fault in faults_of(capsys, words.split()))


def test_two_faults_are_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert codes(capsys, f"count {MODEL} --on 64xh100-smx --tp 0") == ["LAY000", "HW001"]


def test_faults_of_every_kind_are_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    words = "count llama-3.1-70 --on 0xh100-smx --tp 8.5 --seq nan --sp=maybe --foo 3 --engine x"

    assert set(codes(capsys, words)) == {"CLI001", "CLI002", "MOD007", "HW001", "HW002", "LAY000", "JOB000", "ENG001"}


def test_the_value_of_an_unknown_flag_is_part_of_the_same_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert codes(capsys, f"count {MODEL} {ON} --foo 3") == ["CLI001"]
    assert codes(capsys, f"count {MODEL} {ON} --foo=3 4") == ["CLI001", "CLI005"]


# --- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "MOD002"),
        (b'{"a": ', "MOD002"),
        (b"[1, 2]", "MOD002"),
        (b"\xff\xfe\x00\x01\x80", "MOD002"),
        (b"[" * 100_000, "MOD002"),
        (b'{"model_type": "llama", "num_hidden_layers": 0}', "MOD004"),
        (b'{"model_type": "llama", "hidden_size": -4096}', "MOD005"),
        (b'{"model_type": "llama", "hidden_size": NaN}', "MOD005"),
        (b'{"model_type": "llama", "hidden_size": 1e400}', "MOD005"),
        (b'{"model_type": "llama", "hidden_size": true}', "MOD005"),
        (b'{"model_type": "lllama"}', "MOD003"),
        (b'{"schema": "outlay.bill.1"}', "CFG004"),
        (b'{"schema": "outlay.bubble.1", "model": {}}', "CFG004"),
    ],
)
def test_a_bad_model_file_is_refused_by_file_and_by_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes, code: str
) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(content)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    assert code in codes(capsys, ["count", str(file), *ON.split()])
    assert code in codes(capsys, ["count", "-", *ON.split()])


def test_a_folder_without_a_config_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert codes(capsys, ["count", str(tmp_path), *ON.split()]) == ["MOD001"]


def test_a_bill_with_a_bad_field_names_every_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main(["count", MODEL, *ON.split(), "--tp", "8", "--pp", "4", "--seq", "8192", "--json"])
    bill = json.loads(capsys.readouterr().out)
    bill["layout"]["tp"] = 0
    bill["layout"]["extra"] = 1
    bill["job"]["sequence_length"] = "long"
    bill["cluster"]["ranks"] = -64
    bill["model"]["shape"]["hidden"] = 1e300
    bill["engine"] = 3
    file = tmp_path / "bill.json"
    file.write_text(json.dumps(bill))
    found = faults_of(capsys, ["explain", "memory", str(file)])

    assert {fault["code"] for fault in found} == {"CFG005"}
    for path in ("layout.tp", "layout.extra", "job.sequence_length", "cluster.ranks", "model.shape.hidden", "engine"):
        assert any(path in fault["what"] for fault in found), path


def test_a_bill_whose_layers_are_of_no_kind_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main(["count", MODEL, *ON.split(), "--tp", "8", "--pp", "4", "--seq", "8192", "--json"])
    bill = json.loads(capsys.readouterr().out)
    bill["model"]["shape"]["pattern"] = [0, 1]
    file = tmp_path / "bill.json"
    file.write_text(json.dumps(bill))

    assert codes(capsys, ["explain", "memory", str(file)]) == ["CFG005"]


TOML = """
on = "64xh100-smx"
foo = 1
[layout]
tp = 0
pipeline = 4
sp = 3
[job]
seq = "abc"
global_batch = 1.5
tokens = true
"""


def test_every_fault_of_a_toml_file_is_said_with_its_place(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(TOML)
    found = faults_of(capsys, ["count", "--config", str(file)])
    what = " ".join(fault["what"] for fault in found)

    for name in ("foo", "tp", "pipeline", "sp", "seq", "global_batch", "tokens", "h100-smx"):
        assert name in what, name
    assert any(fault["fix"] == "did you mean sequence_length?" for fault in found)
    assert any("[layout]" in fault["got"] for fault in found)


@pytest.mark.parametrize("text", ["layout = 3", "[layout", "\x00", 'job = "x"'])
def test_a_file_that_is_not_a_question_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str
) -> None:
    file = tmp_path / "run.toml"
    file.write_text(text)

    assert {"CFG002", "CFG003"} & set(codes(capsys, ["count", MODEL, *ON.split(), "--config", str(file)]))


def test_a_users_text_is_printed_quoted_and_short(capsys: pytest.CaptureFixture[str]) -> None:
    main(["count", "x\x1b[2J" + "y" * 500, *ON.split()])
    err = capsys.readouterr().err

    assert "\x1b" not in err and "y" * 60 not in err


# --- the reader of values -------------------------------------------------------------------------------------------


def test_numbers_are_read_exactly_or_not_at_all() -> None:
    assert number("8") == 8 and isinstance(number("8"), int)
    assert number("8,192") == 8192
    assert number("1e6") == 1_000_000 and isinstance(number("1e6"), int)
    assert [number(text) for text in ("", ".", "-", "e5", "8x", "1,2", "0x10", "1_000", "nan", "١")] == [None] * 10


def test_a_layout_in_words_is_read_in_every_usual_form() -> None:
    for text in (
        "tp=8,pp=4,mbs=2",
        "tp=8 pp=4 mbs=2",
        "--tp 8 --pp 4 --mbs 2",
        "--tp=8 --pp=4 --micro-batch=2",
        "tp = 8, pp = 4; mbs = 2",
    ):
        assert assignments(text, faults := Faults()) == {"tp": "8", "pp": "4", "micro_batch": "2"}, text
        assert faults.found == []
    assert assignments("pp=4,split=20,20,20,20", Faults()) == {"pp": "4", "split": "20,20,20,20"}
    assert assignments("--tp 8 --no-sp", Faults()) == {"tp": "8", "sp": "false"}
