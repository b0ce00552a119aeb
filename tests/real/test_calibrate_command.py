"""outlay calibrate on this machine, over tiny shapes: a profile that commands take, and runs that are ended midway."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command_runs import run
from small_models import llama

import outlay
from outlay.cli import calibrating
from outlay.cli.flags import Given
from outlay.engines.profile_file import read_profile
from outlay.engines.profiled import profiled
from outlay.engines.tables import engine
from outlay.errors import InputError
from outlay.verify.calibration import shapes
from outlay.verify.calibration.parts import Sizes
from outlay.verify.calibration.tasks import KINDS
from outlay.verify.calibration.working import working_path

HERE = Path(__file__).parent
TINY: dict[str, Any] = {
    "MATRICES": ((128, 64, 64), (128, 64, 256), (128, 256, 64)),
    "LARGE": ((128, 256, 64),),
    "CORES": {False: ((1, 2, 2, 32, 128),)},
    "TRAFFIC": {False: (1,)},
    "BUFFERS": {False: (4, 64, 256)},
    "PARTS": {False: Sizes(32, 64, 64, 128, 32, 16, 8, 2)},
}
LLAMA = llama(64, 2, vocab_size=256, num_attention_heads=4, max_position_embeddings=512)
FOUND = [
    *("matmul_share", "matmul_depth", "attention_share", "attention_back_share", "memory_share"),
    *("launch_seconds", "collective_seconds", "link_share", "link_latency_seconds"),
]


def tiny(pace: float = 0.005) -> None:
    """Small shapes, and short times: what is measured is inputs of the ranks, which other processes are."""
    for name, value in TINY.items():
        setattr(shapes, name, value)
    calibrating.PACE = pace


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in TINY.items():
        monkeypatch.setattr(shapes, name, value)
    monkeypatch.setattr(calibrating, "PACE", 0.005)


def asked(output: Path, **more: Any) -> Given:
    return Given({"output": str(output), "ranks": "2", **more})


def calibrate(given: Given) -> int:
    return run("calibrate", given)


def started(folder: Path, pace: float, **environment: str) -> subprocess.Popen[str]:
    """A calibration in a process of its own."""
    program = "from test_calibrate_command import asked, calibrate, tiny\nfrom pathlib import Path\nimport sys\n"
    program += "from outlay.errors import InputError\n"
    program += f"if __name__ == '__main__':\n    tiny({pace})\n    try:\n        sys.exit(calibrate(asked("
    program += f"Path({str(folder / 'own.toml')!r}))))\n    except KeyboardInterrupt:\n        sys.exit(130)\n"
    program += (
        "    except InputError as error:\n        print(error.faults[0].code, file=sys.stderr)\n        sys.exit(2)\n"
    )
    (folder / "run.py").write_text(program)
    paths = os.pathsep.join([str(HERE), *sys.path])
    return subprocess.Popen(
        [sys.executable, str(folder / "run.py")],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def after_some(folder: Path, lines: int = 4) -> None:
    """Wait until some measurements are kept."""
    file, until = working_path(str(folder / "own.toml")), time.monotonic() + 60
    while time.monotonic() < until and not (file.exists() and file.read_text().count("\n") > lines):
        time.sleep(0.02)


def ranks_of(parent: int) -> list[int]:
    """The processes that a process started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            _, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue
        if rest.split()[1] == str(parent) and rest.split()[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def gone(ranks: list[int]) -> bool:
    """Whether all of them ended, within some seconds."""
    until = time.monotonic() + 15
    while (some := any(Path(f"/proc/{rank}").exists() for rank in ranks)) and time.monotonic() < until:
        time.sleep(0.05)
    return not some


def test_a_run_ends_in_files_that_a_bill_takes_and_single_kinds_in_a_profile_of_that_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, output, part = (tmp_path / name for name in ("config.json", "own.toml", "part.toml"))
    model.write_text(json.dumps(LLAMA))
    code = calibrate(asked(output, model=str(model), sequence_length="2048", as_json=True, precision="fp32"))
    record = json.loads(capsys.readouterr().out)
    profile, machine = read_profile(str(output)), f"2x{tmp_path / 'own-machine.toml'}"
    held, driver = profiled(profile, outlay.load_cluster(machine), engine("fsdp2-uncompiled"))
    job = outlay.Job(sequence_length=2048, global_batch=2, precision="fp32")
    bill = outlay.count(outlay.load_model(str(model)), job, held, outlay.Layout(), driver)
    rows = {(one["what"], tuple(one["sizes"]), one["precision"]) for one in record["measured"]}

    assert code == 0 and sorted(each.name for each in profile.hardware) == sorted(FOUND)
    assert [each.name for each in profile.kernels] == ["elementwise"] and profile.engine == "fsdp2-uncompiled"
    assert {one["kind"] for one in record["measured"]} == set(KINDS)
    assert ("forward", (2048, 64, 256), "fp32") in rows  # tokens, hidden, the vocabulary
    assert bill.cluster.ranks == 2 and 0 < bill.step.seconds < 60
    assert sorted(file.name for file in tmp_path.iterdir()) == ["config.json", "own-machine.toml", "own.toml"]

    with pytest.raises(InputError) as failed:
        calibrate(asked(part, only="launch"))
    with pytest.raises(InputError) as another:
        calibrate(asked(part, only="launch", on="8xh100-sxm"))
    calibrate(asked(part, only="launch", on=machine))

    assert another.value.faults[0].what == "--on names another device"
    assert failed.value.faults[0].code == "CAL002" and "matmul, attention, memory" in failed.value.faults[0].got
    assert (read_profile(str(part)).accelerator, len(read_profile(str(part)).hardware)) == ("own", 1)
    assert not (tmp_path / "part-machine.toml").exists()


def test_a_run_that_is_interrupted_says_how_to_go_on_and_does(tmp_path: Path) -> None:
    first = started(tmp_path, pace=0.2)
    after_some(tmp_path)
    ranks = [each for one in ranks_of(first.pid) for each in (one, *ranks_of(one))]
    first.send_signal(signal.SIGINT)
    _, said = first.communicate(timeout=60)
    kept = working_path(str(tmp_path / "own.toml")).read_text().splitlines()
    done = [json.loads(line) for line in kept[1:]]
    second = started(tmp_path, pace=0.005)
    out, _ = second.communicate(timeout=120)

    assert first.returncode == 130 and "the same command goes on from there" in said
    assert ranks and gone(ranks) and len(done) >= 4
    assert second.returncode == 0 and "own.toml" in out and not working_path(str(tmp_path / "own.toml")).exists()


def test_a_rank_that_is_killed_leaves_no_profile_and_no_rank(tmp_path: Path) -> None:
    run = started(tmp_path, pace=0.2)
    after_some(tmp_path)
    ranks = [each for each in ranks_of(run.pid) if "spawn_main" in Path(f"/proc/{each}/cmdline").read_text()]
    os.kill(ranks[0], signal.SIGKILL)
    _, said = run.communicate(timeout=120)

    assert run.returncode == 2 and "VER007" in said and "the same command goes on from there" in said
    assert not (tmp_path / "own.toml").exists() and not (tmp_path / "own-machine.toml").exists()
    assert ranks and gone(ranks)


def test_two_machines_of_torchrun_measure_the_wire_between_them(tmp_path: Path) -> None:
    program = "from test_calibrate_command import Path, asked, calibrate, tiny\nimport sys\n"
    program += f"tiny()\nsys.exit(calibrate(asked(Path({str(tmp_path / 'own.toml')!r}), ranks=None)))\n"
    (tmp_path / "run.py").write_text(program)
    paths = os.pathsep.join([str(HERE), *sys.path])
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    command += ["--rdzv-backend", "static", "--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    runs = [
        subprocess.Popen(
            [*command, "--node-rank", str(node), str(tmp_path / "run.py")],
            env={**os.environ, "PYTHONPATH": paths, "LOGLEVEL": "ERROR"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for node in range(2)
    ]
    said = [run.communicate(timeout=120) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    names = {each.name for each in read_profile(str(tmp_path / "own.toml")).hardware}
    assert {"nic_share", "nic_latency_seconds", "collective_seconds"} <= names and "link_share" not in names
    assert "MEASURED" in said[0][0] and not said[1][0]
    assert outlay.load_cluster(f"2x{tmp_path / 'own-machine.toml'}").inside.name == "between machines"


def free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
