"""Work on several ranks of this machine: all results come back, every failure is one line, and nobody is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch.distributed as dist

from outlay.errors import InputError
from outlay.verify.together import together

HERE = Path(__file__).parent


def ten_times() -> int:
    return 10 * dist.get_rank()


def killed() -> None:
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()


def out_of_memory() -> None:
    if dist.get_rank() == 1:
        raise MemoryError("cannot allocate 1 TB")
    dist.barrier()


def never_ending(file: str) -> None:
    Path(f"{file}.{dist.get_rank()}").write_text(str(os.getpid()))
    time.sleep(600)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_every_rank_returns_what_it_found() -> None:
    assert together(ten_times, (), 2) == [0, 10]


def test_a_rank_that_is_killed_is_named_with_its_signal() -> None:
    with pytest.raises(InputError) as failed:
        together(killed, (), 2)
    (fault,) = failed.value.faults

    assert (fault.code, fault.what) == ("VER007", "rank 1 of 2 ended before its work was done")
    assert "SIGKILL" in fault.got and "memory" in fault.fix


def test_a_rank_out_of_memory_says_so_in_one_line() -> None:
    with pytest.raises(InputError) as failed:
        together(out_of_memory, (), 2)

    assert failed.value.faults[0].got == "MemoryError: cannot allocate 1 TB"


def test_another_number_of_ranks_under_torchrun_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "3"), ("MASTER_ADDR", "localhost"), ("MASTER_PORT", "1")):
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError) as failed:
        together(ten_times, (), 2)

    assert failed.value.faults[0].code == "VER005"


def test_ranks_that_never_meet_are_told_so_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("RANK", "1"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "localhost"), ("MASTER_PORT", "1")):
        monkeypatch.setenv(name, value)  # nobody listens on port 1
    with pytest.raises(InputError) as failed:
        together(ten_times, (), 2, patience=1)

    assert failed.value.faults[0].code == "VER006"


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda one: one.name)
def test_whatever_ends_the_parent_no_rank_is_left(tmp_path: Path, ended_by: signal.Signals) -> None:
    program = "import sys; from test_ranks_together import never_ending; from outlay.verify.together import together\n"
    program += "if __name__ == '__main__': together(never_ending, (sys.argv[1],), 2)\n"
    (tmp_path / "run.py").write_text(program)
    paths = os.pathsep.join([str(HERE), *sys.path])
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "run.py"), str(tmp_path / "pid")],
        env={**os.environ, "PYTHONPATH": paths},
        stderr=subprocess.DEVNULL,
    )
    files = [tmp_path / f"pid.{rank}" for rank in range(2)]
    until = time.monotonic() + 60
    while not all(file.exists() and file.read_text() for file in files) and time.monotonic() < until:
        time.sleep(0.05)
    ranks = [int(file.read_text()) for file in files]
    os.kill(parent.pid, ended_by)
    parent.wait(30)
    until = time.monotonic() + 15
    while any(map(alive, ranks)) and time.monotonic() < until:
        time.sleep(0.05)

    assert not any(map(alive, ranks))
