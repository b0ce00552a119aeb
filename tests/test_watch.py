"""`outlay watch`: what it answers, accepts and refuses, a file that grows, and a job that watches itself."""

import gzip
import io
import json
import lzma
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from outlay import Bill, Job, Layout, count, load_cluster, load_model
from outlay.cli import watching as watching_command
from outlay.formats.logs.known import Reading
from outlay.show.schema import OUTPUT_SCHEMAS
from outlay.watching import Watching, lightning_callback, trainer_callback
from test_cli import answer, run
from test_json import faults
from test_logs import LOGS, SHAPES, shaped

LOG = str(LOGS / "megatron.log")
ON = ("--on", "16xh100-sxm")
ENVIRONMENT = os.environ | {"COLUMNS": "100"}


def test_a_step_inside_the_band_exits_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "watch", LOG, *ON)

    assert (code, err) == (0, "")
    assert out.startswith(
        "LOG       megatron.log: Megatron-LM, step 120 of 200, 26 lines of steps, 2 runs; 12.9 minutes"
    )
    assert "\nSTEP      9.654 s   median of 23 lines" in out and "step 5 (29.9 s): start-up" in out
    assert "\nINSIDE    measured 9.654 s" in out and "\nPEAK      19.4 GiB allocated on rank 8" in out


def test_a_step_outside_the_band_exits_with_1_and_names_no_cause(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    slow = tmp_path / "slow.log"
    slow.write_text(Path(LOG).read_text().replace("(ms): 96", "(ms): 196"))
    code, out, _ = run(capsys, "watch", str(slow), *ON)

    assert code == 1 and "\nOUTSIDE   measured 19.6" in out
    assert "not explained by any band, and nothing in the log tells of it" in out


def test_a_log_without_a_model_has_no_bill_and_exits_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "watch", str(LOGS / "c10-first-step-is-not-waited-for.log"))

    assert code == 0 and "NO BILL   outlay watch LOG MODEL --on" in out


def test_what_the_question_lacks_is_asked_for_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "watch", str(LOGS / "c09-few-tokens.log"), "llama-3.1-8b")
    assert code == 0 and "--seq is missing" in out and "no hardware is given" in out

    code, out, _ = run(capsys, "watch", LOG)
    assert code == 0 and "--on 16xh100-sxm" in out


def test_arguments_that_cannot_be_read_are_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(re.sub(r"(num_layers \.+) 32", r"\1 many", Path(LOG).read_text()))
    code, out, _ = run(capsys, "watch", str(path), *ON)

    assert code == 0 and "NEEDS     MODEL is missing: its arguments cannot be read: num_layers cannot be read" in out


def test_another_model_than_that_of_the_arguments_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "watch", LOG, "llama-3.1-70b", *ON)

    assert code == 1 and "OTHER JOB  the log's model has 8,030,261,248 parameters, llama-3.1-70b 70," in out


def test_flags_make_the_bill_of_a_log_that_says_little(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(shaped("nanochat"))
    said = answer(
        capsys, "watch", str(log), "llama-3.1-8b", "--on", "64xh100-sxm", "--seq", "8192", "--batch", "128", "--tp", "2"
    )

    assert said["bill"]["layout"]["tp"] == 2 and said["beside"]["measured_seconds"] == 2.5
    assert said["job"] == {"devices": 64, "sequence_length": 8192, "global_batch": 128, "tokens": 1048576}


@pytest.mark.parametrize("words", [(LOG, *ON), (str(LOGS / "c08-neox-on-deepspeed.log"),), (LOG,)], ids=range(3))
def test_json_is_as_its_schema_says(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    said = answer(capsys, "watch", *words)

    assert faults(OUTPUT_SCHEMAS["watch"](), said) == []
    if words[1:]:
        assert said["beside"]["inside"] is True and [one["kind"] for one in said["peaks"]] == ["allocated", "reserved"]
        assert [(one["step"], one["run"]) for one in said["left_out"]] == [(5, 0), (55, 1), (100, 1)]


def test_equal_logs_give_equal_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "watch", LOG, *ON, "--json") == run(capsys, "watch", LOG, *ON, "--json")


def test_packed_logs_and_standard_input_are_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = Path(LOG).read_bytes()
    (tmp_path / "a.gz").write_bytes(gzip.compress(content))
    (tmp_path / "a.xz").write_bytes(lzma.compress(content))
    plain = answer(capsys, "watch", LOG)["pace"]
    for name in ("a.gz", "a.xz"):
        assert answer(capsys, "watch", str(tmp_path / name))["pace"] == plain
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    assert answer(capsys, "watch", "-")["pace"] == plain


@pytest.mark.parametrize(
    ("content", "words", "code"),
    [
        (b"nothing of a step\n" * 10, (), "LOG001"),
        (b"", (), "LOG001"),
        (None, (), "LOG002"),
        (b"\x1f\x8b\x08broken", (), "LOG002"),
        (b"\x28\xb5\x2f\xfd....", (), "LOG002"),
        (b"x", ("--every", "often"), "LOG003"),
        (b"x", ("--every", "0"), "LOG003"),
    ],
    ids=range(7),
)
def test_what_cannot_be_read_is_an_error_with_its_code(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes | None, words: tuple[str, ...], code: str
) -> None:
    path = tmp_path / "run.log"
    if content is not None:
        path.write_bytes(content)
    exit_code, _, err = run(capsys, "watch", str(path), *words)

    assert exit_code == 2 and code in err and "Traceback" not in err


def test_no_log_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "watch")[0] == 2


# --- a job that runs --------------------------------------------------------------------------------------------------


def following(path: Path, *words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-P", "-m", "outlay", "watch", str(path), "--follow", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)


def lines_of(steps: range, total: int = 1000) -> str:
    return shaped("megatron", steps).replace("/    1000", f"/{total:8d}")


def test_a_growing_log_is_followed_to_its_last_step(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(lines_of(range(1, 11), 40))
    job = following(path, "llama-3.1-8b", "--on", "64xh100-sxm", "--seq", "8192", "--every", "10")
    time.sleep(2)
    with path.open("a") as file:
        file.write(lines_of(range(11, 31), 40)[:-20])  # the last line is not whole yet
        file.flush()
        time.sleep(1)
        file.write(lines_of(range(11, 31), 40)[-20:] + lines_of(range(31, 41), 40))
    out, err = job.communicate(timeout=60)

    assert (job.returncode, err) == (1, "")
    assert re.search(r"AT +step \d+ of 40 +2.50 s a step +6,554 tokens/s a device .*left +outside the band", out)
    assert "Megatron-LM, step 40 of 40, 40 lines of steps\n" in out and "OUTSIDE   measured 2.500 s" in out


def test_a_log_that_is_cut_short_is_read_again_from_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, reading = tmp_path / "run.log", Reading()
    path.write_bytes(b"a long first line\n")
    looks = iter(range(4))
    monkeypatch.setattr(time, "sleep", lambda seconds: next(looks))  # a look that finds nothing for ever ends the test
    pieces = watching_command._growing(str(path), reading)
    assert next(pieces) == b"a long first line\n"
    path.write_bytes(b"new\n")
    assert next(pieces) == b"new\n"
    with path.open("ab") as file:
        file.write(b"more\n")
    assert next(pieces) == b"more\n"


def test_a_wrong_flag_is_told_at_the_first_line_of_a_job_that_runs(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(lines_of(range(1, 11)))
    job = following(path, "llama-3.1-8b", "--on", "64xh100-xxl", "--seq", "8192")
    out, err = job.communicate(timeout=60)

    assert (job.returncode, out) == (2, "") and "HW001" in err


def test_an_interrupt_ends_with_the_summary(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(lines_of(range(1, 11)))
    job = following(path)
    assert job.stdout is not None and job.stdout.readline().startswith("AT ")
    job.send_signal(signal.SIGINT)
    out, err = job.communicate(timeout=60)

    assert (job.returncode, err) == (0, "") and "step 10 of 1,000, 10 lines of steps" in out


# --- a job that watches itself ----------------------------------------------------------------------------------------


def bill() -> Bill:
    return count(load_model("llama-3.1-8b"), Job(4096, 64), load_cluster("8xh100-sxm"), Layout(zero=3), "hf_trainer")


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_comparison_is_said_once_after_so_many_steps_and_without_start_up() -> None:
    said, clock = list[str](), Clock()
    expected = bill()
    watching = Watching(expected, 20, said.append, clock)
    watching.begins()
    for number in range(1, 41):
        clock.now += 90.0 if number == 1 else expected.step.seconds
        watching.step(number)
        watching.step(number)  # a micro-batch that ends no step
    watching.ends()

    assert len(said) == 2 and "STEP" in said[0]
    assert "median of 20 lines" in said[1] and "\nINSIDE" in said[1] and " 0 % " in said[1].replace("0.00 %", "0 %")


def test_time_of_an_evaluation_is_left_out() -> None:
    said, clock = list[str](), Clock()
    watching = Watching(bill(), 20, said.append, clock)
    for number in range(1, 22):
        if number == 10:
            watching.mark("evaluation")
        clock.now += 100.0 if number == 10 else 5.0
        watching.step(number)

    assert [(one.number, one.why) for one in watching.found().pace.left_out] == [(1, "start-up"), (10, "evaluation")]


def test_the_events_of_the_trainer_are_heard_on_rank_0() -> None:
    for first, expected in ((True, 2), (False, 0)):
        said = list[str]()
        callback = trainer_callback(bill(), after=3, say=said.append)
        state: Any = SimpleNamespace(is_world_process_zero=first, global_step=0)
        callback.on_train_begin(None, state, None, model=None)
        for _ in range(6):
            state.global_step += 1
            callback.on_step_end(None, state, None)
        callback.on_evaluate(None, state, None)
        callback.on_save(None, state, None)
        callback.on_train_end(None, state, None)

        assert len(said) == expected


def test_the_events_of_lightning_are_heard_on_rank_0() -> None:
    said = list[str]()
    callback = lightning_callback(bill(), after=3, say=said.append)
    trainer: Any = SimpleNamespace(is_global_zero=True, global_step=0)
    callback.on_train_start(trainer, None)
    for batch in range(8):
        trainer.global_step = batch // 2  # two micro-batches a step
        callback.on_train_batch_end(trainer, None, None, None, batch)
    callback.on_validation_end(trainer, None)
    callback.on_save_checkpoint(trainer, None, {})
    callback.on_train_end(trainer, None)

    assert len(said) == 2 and "median of 2 lines" in said[1]


def test_a_run_of_one_step_says_no_comparison() -> None:
    said = list[str]()
    watching = Watching(bill(), 20, said.append, Clock())
    watching.step(1)
    watching.ends()

    assert said == []


def test_every_shape_is_answered(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for framework in SHAPES:
        path = tmp_path / f"{framework}.log"
        path.write_text(shaped(framework))
        code, out, err = run(capsys, "watch", str(path))
        assert (code, err) == (0, "") and out.startswith("LOG "), framework


def test_control_characters_of_a_log_do_not_reach_the_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "run.log"
    path.write_text("Model x\x1b]0;title\x07 8B size: 8,030,261,248 total parameters\n" + shaped("torchtitan"))
    main_out = run(capsys, "watch", str(path), "llama-3.1-70b", "--on", "8xh100-sxm", "--seq", "8192", "--batch", "8")[
        1
    ]

    assert "\x1b" not in main_out and "\x07" not in main_out
    assert json.loads(json.dumps(main_out)) == main_out
