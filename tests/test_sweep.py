"""Sweeps: rows against the bills and plans of the same questions; parts, whoever counts them and however they end."""

import errno
import fcntl
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from itertools import product
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from outlay import InputError, Layout, count, load_cluster, load_model, plan
from outlay.cli.main import main
from outlay.cli.sweep import workers as beside
from outlay.cli.sweep.study import read_study
from outlay.cli.sweep.workers import MOST_DEATHS, Worker, counted_beside
from outlay.cli.values import Faults
from outlay.formats.sweep_parquet import part_of
from outlay.search.sweep.part import answers, context_of
from outlay.search.sweep.rows import Columns, Words, row_of, schema
from outlay.search.sweep.study import Axis, Study, order
from outlay.search.sweep.summary import Wanted
from sweeping import LAYOUTS, PLANS, children, dies_while_it_writes, interrupt, kill, parts, run, stopped

NAMES = [field.name for field in fields(Layout)]
READERS: dict[str, Callable[[str], Any]] = {"model": load_model, "on": load_cluster}
WIDE: dict[str, dict[str, tuple[Any, ...]]] = {
    "engines": {
        "model": ("llama-3.1-70b", "mixtral-8x7b"), "on": ("64xh100-sxm", "8xp4d.24xlarge"),
        "engine": ("megatron", "fsdp2", "deepspeed", "fsdp2-torchtitan", "hf_trainer"), "sequence_length": (4096,),
        "global_batch": (256, 512), "tokens": (1e12,), "tp": (1, 2, 4, 8, 16), "cp": (1, 2), "pp": (1, 2, 4, 5),
        "vpp": (1, 2, 5), "ep": (1, 4), "zero": (0, 1, 2, 3), "micro_batch": (1, 2), "offload_optimizer": (0.0, 1.0),
        "recompute": ("none", "selective", "full"), "price": (None, 2.0, 3.0),
    },
    "schedules": {
        "model": ("deepseek-v3",), "on": ("256xh100-sxm",), "engine": ("megatron", "fsdp2"), "sequence_length": (4096,),
        "global_batch": (1024,), "loss_chunks": (1, 4), "tp": (1, 2), "sp": (False, True), "cp": (1, 2),
        "cp_kind": ("ring", "ulysses"), "pp": (1, 4, 7, 16), "ep": (8, 64),
        "moe_dispatch": ("all_to_all", "all_gather"),
        "schedule": ("1f1b", "interleaved", "zbv", "dualpipe_v", "gpipe"), "recompute_layers": (0, 4),
        "overlap_tp": (False, True), "overlap_dp": (False, True), "price": (None,),
    },
    "adapters": {
        "model": ("llama-3.1-8b",), "on": ("8xh100-sxm",), "engine": ("deepspeed", "fsdp2", "megatron"),
        "sequence_length": (4096, 8192), "global_batch": (64,), "precision": ("bf16", "fp8"),
        "adapter": ("none", "lora", "qlora"), "graphs": ("none", "full"), "offload_parameters": (0.0, 1.0),
        "offload_activations": (0.0, 0.5), "tp": (1, 2), "dp_replicate": (1, 2), "zero": (2, 3), "price": (None,),
    },
    "splits": {
        "model": ("llama-3.1-8b",), "on": ("16xh100-sxm",), "engine": ("megatron",), "sequence_length": (4096,),
        "global_batch": (64,), "tokens": (1e12,), "split": ((10, 8, 8, 6), (9, 8, 8, 8)), "tp": (1, 2), "pp": (4,),
        "price": (2.0, 3.0),
    },
}  # fmt: skip


def part_bytes(study: Study, part: int) -> bytes:
    """The file of a part."""
    return part_of(study, part, Wanted(("model", "on"), "mfu", True, 1, len(study.prices)))[0]


def study_of(wide: dict[str, tuple[Any, ...]]) -> Study:
    """A study of these values."""
    axes = [
        Axis(
            name,
            tuple(READERS[name](each) if name in READERS else each for each in wide[name]),
            (*map(str, wide[name]),),
        )
        for name in order("count")
        if name in wide
    ]
    return Study("count", tuple(axes))


def at(columns: Columns, name: str, row: int) -> Any:
    """One value of a column."""
    column = columns[name]
    if isinstance(column, Words):
        return column.values[column.index[row]]
    return column[row] if isinstance(column, np.ndarray) else column


def same(got: Any, want: Any) -> bool:
    """Whether two values are equal; a figure within what another order of sums makes of it."""
    if want is None or isinstance(want, str | bool):
        return bool(got == want) or (got is None and want is None)
    return bool(isnan(got) and isnan(want)) or abs(got - want) <= 1e-12 * abs(want)


# --- rows -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WIDE)
def test_a_row_says_what_the_bill_of_its_layout_says(name: str) -> None:
    study, random = study_of(WIDE[name]), np.random.default_rng(7)
    shape, seen = tuple(len(axis.values) for axis in study.axes), Counter[str]()
    for part in random.choice(study.parts, min(study.parts, 3), replace=False).tolist():
        for (size, columns), one in zip(answers(study, part), study.runs(part), strict=True):
            for row in random.choice(size, min(size, 4 if name == "adapters" else 15), replace=False).tolist():
                question = one.context * study.together + one.start + row
                places = np.unravel_index(question, shape)
                picked = {axis.name: axis.values[int(place)] for axis, place in zip(study.axes, places, strict=True)}
                context = context_of(picked)
                layout = Layout(**{key: value for key, value in picked.items() if key in NAMES})
                try:
                    want = row_of(count(context.model, context.job, context.cluster, layout, context.engine))
                except InputError as error:
                    want = {"verdict": None, "broken": " ".join(dict.fromkeys(fault.code for fault in error.faults))}
                broken = str(want["broken"] or "")
                if len(broken.split()) > 1:  # a host's memory is asked of layouts that obey every other rule
                    want["broken"] = " ".join(code for code in broken.split() if code != "LAY042")
                seen["broken" if broken else "legal"] += 1
                assert at(columns, "question", row) == question
                assert {key: at(columns, key, row) for key in want if not same(at(columns, key, row), want[key])} == {}
    assert seen["legal"] > 1
    assert seen["broken"] > 1 or name == "adapters"


def test_a_row_of_plans_is_the_best_of_the_plan(tmp_path: Path) -> None:
    study = read(tmp_path, PLANS)
    frame = pl.concat([pl.read_parquet(part_bytes(study, part)) for part in (0, 7)])
    for row in frame.iter_rows(named=True):
        places = np.unravel_index(row["question"], tuple(len(axis.values) for axis in study.axes))
        at = context_of({axis.name: axis.values[int(k)] for axis, k in zip(study.axes, places, strict=True)})
        found = plan(at.model, at.job, at.cluster, at.engine, width="lean", best=1)
        bill = found.best[0].bill if found.best else found.smallest and found.smallest.bill
        assert bill is not None
        assert (row["seconds"], row["peak_bytes"]) == (bill.step.seconds, bill.memory.peak_bytes)
        assert (row["tp"], row["pp"], row["zero"]) == (bill.layout.tp, bill.layout.pp, bill.layout.zero)
        assert row["legal"] == found.search.legal
        assert row["dollars"] == pytest.approx(row["price"] * row["ranks"] * row["days"] * 24)


def test_a_space_without_a_value_keeps_its_row(tmp_path: Path) -> None:
    study = read(tmp_path, PLANS.replace("batch = 64", 'batch = 64\nhybrid = [true, false]\ntp = ["1..8", "30..40"]'))
    frame = pl.concat([pl.read_parquet(part_bytes(study, part)) for part in range(4)])
    broken = frame.select("searched_hybrid", "searched_tp", "broken").unique(maintain_order=True).rows()

    assert sorted(broken) == sorted(
        [
            ("true", "1..8", "PLN006"),
            ("true", "30..40", "PLN006"),
            ("false", "1..8", None),
            ("false", "30..40", "PLN006"),
        ]
    )


def test_a_price_makes_dollars_of_the_same_layout(tmp_path: Path) -> None:
    frame = pl.read_parquet(part_bytes(read(tmp_path, LAYOUTS), 0)).filter(pl.col("seconds").is_not_null())
    cheap, dear = frame.filter(pl.col("price") == 2), frame.filter(pl.col("price") == 3)

    assert cheap.height == dear.height > 50
    assert (dear["dollars"] / cheap["dollars"] - 1.5).abs().max() == pytest.approx(0, abs=1e-12)
    row = cheap.row(5, named=True)
    tokens, per_token = 100e9, row["dollars_per_million_tokens"] / 1e6
    assert row["dollars"] == pytest.approx(tokens * per_token, rel=1e-4)  # steps are whole
    assert row["dollars_low"] < row["dollars"] < row["dollars_high"]


def test_every_question_stands_in_one_part_once() -> None:
    for name in WIDE:
        study = study_of(WIDE[name])
        spans = [span for part in range(study.parts) for span in [study.span(part)]]
        assert [span.start for span in spans[1:]] == [span.stop for span in spans[:-1]]
        assert (spans[0].start, spans[-1].stop) == (0, study.questions)
        runs = [one for part in range(study.parts) for one in study.runs(part)]
        assert sum(one.stop - one.start for one in runs) == study.questions
        assert len({(one.context, one.start) for one in runs}) == len(runs)


def test_a_row_names_its_question(tmp_path: Path) -> None:
    study = read(tmp_path, LAYOUTS)
    frame = pl.read_parquet(part_bytes(study, 0))
    names = ["model", "on", "global_batch", "tp", "pp", "zero", "price"]
    want = list(product(
        ("llama-3.1-8b", "mixtral-8x7b"), ("16xh100-sxm", "32xh100-sxm"), (64, 128),
        (1, 2, 4), (1, 2, 4), (1, 3), (2, 3),
    ))  # fmt: skip

    assert frame.select(names).rows() == want
    assert frame.columns == list(schema(study))
    assert frame["question"].to_list() == list(range(288))


def test_a_question_that_cannot_be_asked_keeps_its_row(tmp_path: Path) -> None:
    study = read(tmp_path, LAYOUTS.replace("seq =", 'bytes = "16"\noptimizer = ["adam", "lion"]\nseq ='))
    frame = pl.concat([pl.read_parquet(part_bytes(study, part)) for part in range(study.parts)])
    lion = frame.filter(pl.col("optimizer") == "lion")

    assert lion.height * 2 == frame.height == 2 * 288
    assert lion["verdict"].null_count() == lion.height
    assert lion["broken"].unique().to_list() != [None]
    assert lion["tp"].unique().sort().to_list() == [1, 2, 4]


# --- whoever counts, and however it ends ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study, and its rows counted by one process without a stop."""
    folder = tmp_path_factory.mktemp("done")
    (folder / "s.toml").write_text(PLANS)
    ended = run(folder, "sweep", "s.toml", "--workers", "1")
    assert ended.returncode == 0, ended.stderr
    return folder


def test_a_sweep_killed_three_times_equals_the_one_that_was_not(done: Path) -> None:
    rows, words = done / "killed", ["sweep", "s.toml", "--workers", "2", "--output", "killed"]
    codes = [stopped(done, rows, more, words, kill)[0] for more in (1, 4, 3)]
    assert codes == [-9, -9, -9]
    assert 8 <= len(parts(rows)) < 18
    kept = {file.name: file.stat().st_mtime_ns for file in rows.glob("part-*")}
    last = run(done, *words)

    assert last.returncode == 0, last.stderr
    assert parts(rows) == parts(done / "s.sweep")
    assert {file.name: file.stat().st_mtime_ns for file in rows.glob("part-*")}.items() >= kept.items()
    assert not list(rows.glob("*.undone"))
    frame = pl.read_parquet(rows / "*.parquet")
    assert frame["question"].to_list() == list(range(36))


def test_a_worker_that_dies_is_replaced(done: Path) -> None:
    died = []

    def kill_one(pid: int) -> None:
        died.append(children(pid)[0])
        kill(died[0])

    code, _, errors = stopped(
        done, done / "dead", 2, ["sweep", "s.toml", "--workers", "2", "--output", "dead"], kill_one
    )

    assert (code, len(died), errors) == (0, 1, "")
    assert parts(done / "dead") == parts(done / "s.sweep")


@pytest.mark.parametrize("deaths", [1, MOST_DEATHS])
def test_a_worker_that_dies_while_it_writes_is_replaced_until_too_many_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deaths: int
) -> None:
    study, started = read(tmp_path, PLANS), list[bytes]()
    wanted = Wanted(("model", "on"), "mfu", True, 1, len(study.prices))

    def start(asked: bytes) -> Worker:
        started.append(asked)
        return dies_while_it_writes() if len(started) <= deaths else real(asked)

    real = beside._started
    monkeypatch.setattr(beside, "_started", start)
    if deaths == MOST_DEATHS:
        with pytest.raises(InputError) as raised:
            list(counted_beside(study, range(3), wanted, 1))
        assert [fault.code for fault in raised.value.faults] == ["SWP012"]
        assert "first at part 0" in raised.value.faults[0].got
    else:
        counted = {part: content for part, content, _ in counted_beside(study, range(3), wanted, 1)}
        assert counted == {part: part_of(study, part, wanted)[0] for part in range(3)}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupt_keeps_what_was_written_and_says_the_best_so_far(done: Path, workers: str) -> None:
    name = f"stopped{workers}"
    words = ["sweep", "s.toml", "--workers", workers, "--output", name]
    code, out, errors = stopped(done, done / name, 3, words, interrupt)

    assert (code, errors) == (130, "")
    assert "SO FAR" in out and "llama-3.1-8b" in out
    assert 3 <= len(parts(done / name)) < 18
    assert run(done, *words).returncode == 0
    assert parts(done / name) == parts(done / "s.sweep")


def test_an_interrupt_while_workers_start_is_as_quiet(done: Path) -> None:
    def at_once(pid: int) -> None:
        while not any("numpy" in Path(f"/proc/{child}/maps").read_text() for child in children(pid)):
            time.sleep(0.002)
        interrupt(pid)

    words = ["sweep", "s.toml", "--workers", "2", "--output", "early"]
    code, out, errors = stopped(done, done / "early", 0, words, at_once)

    assert (code, errors) == (130, "")
    assert "SO FAR" in out and "none yet" in out


def test_a_part_that_is_not_whole_is_counted_again(done: Path) -> None:
    rows = done / "torn"
    for name, content in parts(done / "s.sweep").items():
        rows.mkdir(exist_ok=True)
        (rows / name).write_bytes(content if name != "part-0000004.parquet" else content[:-9])
    (rows / "sweep.json").write_bytes((done / "s.sweep" / "sweep.json").read_bytes())

    assert run(done, "sweep", "s.toml", "--output", "torn").returncode == 0
    assert parts(rows) == parts(done / "s.sweep")


# --- what is refused ------------------------------------------------------------------------------------------------


def read(folder: Path, text: str) -> Study:
    """The study of a text."""
    (folder / "read.toml").write_text(text)
    faults = Faults()
    found = read_study(str(folder / "read.toml"), faults)
    faults.stop()
    assert found is not None
    return found.study


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, str]]:
    """The faults of a command."""
    capsys.readouterr()
    assert main([*words, "--json"]) == 2
    found: list[dict[str, str]] = json.loads(capsys.readouterr().out)["errors"]
    return found


def test_all_that_is_wrong_with_a_study_is_said_with_its_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    file = tmp_path / "bad.toml"
    file.write_text(
        'colour = 1\n[study]\nkind = "count"\nmodel = ["llama-3.1-8b", "lama"]\non = ["8xh100-sxm", "3xfoo"]\n'
        'sequence = 2\nseq = [4096, -1]\nsequence-length = 3\nbatch = []\ntp = [1, 1,\n "x"]\nmicro-batchs = 2\n'
        'price = 0\n\n[limits]\ndays = "30..20"\nmfu = 0.3\ndollar = "..3"\n'
    )
    found = {
        (fault["code"], int(fault["got"].rpartition("line ")[2].strip(")")))
        for fault in refused(capsys, "sweep", str(file))
    }

    assert found == {
        ("SWP002", 1), ("MOD007", 4), ("HW001", 5), ("SWP002", 6), ("JOB000", 7), ("SWP003", 8), ("SWP003", 9),
        ("LAY000", 10), ("SWP003", 10), ("SWP002", 12), ("SWP003", 13), ("SWP005", 16), ("SWP003", 17), ("SWP002", 18),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("batch = 64\n", 'batch = 64\nkind2 = "x"\n'), "SWP002"),
        (('kind = "plan"', 'kind = "all"'), "SWP003"),
        (('space = "lean"', 'space = "huge"'), "SWP003"),
        (('space = "lean"', 'tp = "8..2"'), "PLN004"),
        (('model = ["llama-3.1-8b", "mixtral-8x7b"]', ""), "SWP004"),
        (('tokens = "100B"', '[limits]\ndays = "..3"'), "SWP005"),
        (("price = [2.0, 3.0]", '[limits]\nseconds = "3..2"'), "SWP005"),
        (
            ("batch = 64", "".join(f"{name} = {[*range(1, 400)]}\n" for name in ("batch", "rank", "galore_rank"))),
            "SWP006",
        ),
        (("[study]", "[study"), "SWP001"),
    ],
)
def test_a_study_is_refused_by_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str], code: str
) -> None:  # fmt: skip
    (tmp_path / "s.toml").write_text(PLANS.replace(*change))

    assert code in {fault["code"] for fault in refused(capsys, "sweep", str(tmp_path / "s.toml"))}
    assert not (tmp_path / "s.sweep").exists()


@pytest.fixture
def small(tmp_path: Path) -> str:
    """The path of a study of nine parts that count fast."""
    file = tmp_path / "s.toml"
    file.write_text(PLANS.replace(', "mixtral-8x7b"', ""))
    return str(file)


def test_two_sweeps_on_one_folder_are_refused(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(small).with_suffix(".sweep")
    folder.mkdir()
    with (folder / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert [fault["code"] for fault in refused(capsys, "sweep", small)] == ["SWP007"]
    assert main(["sweep", small, "--workers", "1"]) == 0


def test_another_study_another_file_or_another_version_is_refused(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    config = tmp_path / "config.json"
    shape = {"model_type": "llama", "vocab_size": 32000, "hidden_size": 512, "num_hidden_layers": 8}
    config.write_text(json.dumps(shape | {"num_attention_heads": 8, "intermediate_size": 1024}))
    file = Path(small)
    file.write_text(LAYOUTS.replace('"mixtral-8x7b"', f'"{config}"'))
    assert main(["sweep", small]) == 0
    config.write_text(json.dumps(shape | {"num_attention_heads": 4, "intermediate_size": 1024}))
    assert [fault["code"] for fault in refused(capsys, "sweep", small)] == ["SWP008"]
    file.write_text(LAYOUTS)
    assert [fault["code"] for fault in refused(capsys, "sweep", small)] == ["SWP008"]
    assert [fault["code"] for fault in refused(capsys, "sweep", small, "--show")] == ["SWP008"]
    manifest = file.with_suffix(".sweep") / "sweep.json"
    manifest.write_text(manifest.read_text().replace('"version": "', '"version": "9.'))
    assert "9." in refused(capsys, "sweep", small)[0]["got"]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "diary.txt").touch()
    assert [fault["code"] for fault in refused(capsys, "sweep", small, "--output", str(tmp_path / "full"))] == [
        "SWP008"
    ]
    assert [each.name for each in (tmp_path / "full").iterdir()] == ["diary.txt"]


def test_a_full_disk_leaves_what_was_written(
    small: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    real, calls, folder = os.fsync, [], Path(small).with_suffix(".sweep")

    def fsync(file: int) -> None:
        calls.append(file)
        if len(calls) == 5:  # manifest and its folder, a part and its folder, then the second part
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    (fault,) = refused(capsys, "sweep", small, "--workers", "1")
    assert (fault["code"], fault["got"]) == ("SWP009", "No space left on device")
    assert sorted(file.name for file in folder.iterdir()) == [".lock", "part-0000000.parquet", "sweep.json"]
    assert main(["sweep", str(folder), "--show"]) == 0
    assert "SO FAR" in capsys.readouterr().out
    assert main(["sweep", small, "--workers", "1"]) == 0
    assert pl.read_parquet(folder / "*.parquet")["question"].to_list() == list(range(18))


def test_a_folder_that_cannot_be_written_is_a_fault_of_one_line(
    small: str, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    assert [fault["code"] for fault in refused(capsys, "sweep", small, "--output", "/proc/sweep")] == ["SWP009"]


@pytest.mark.parametrize(("module", "words"), [("polars", []), ("ray", ["--workers", "ray"])])
def test_a_missing_library_is_said_with_the_way_out(
    small: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, module: str, words: list[str]
) -> None:  # fmt: skip
    monkeypatch.setitem(sys.modules, module, None)
    (fault,) = refused(capsys, "sweep", small, *words)

    assert fault["code"] == "SWP010"
    assert fault["fix"].startswith("pip install 'outlay[")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--address", "10.0.0.1:6379"], "SWP014"),
        (["--by", "colour"], "SWP014"),
        (["--objective", "colour"], "SWP014"),
        (["--workers", "0"], "UNI003"),
        (["--show"], "SWP013"),
        (["--svg", "-", "--html", "-"], "DRW002"),
    ],
)
def test_flags_of_a_sweep_are_refused_by_code(
    small: str, capsys: pytest.CaptureFixture[str], words: list[str], code: str
) -> None:  # fmt: skip
    assert code in {fault["code"] for fault in refused(capsys, "sweep", small, *words)}
