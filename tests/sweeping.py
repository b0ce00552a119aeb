"""Sweeps run as commands, and killed: what the tests of sweeps share."""

import os
import signal
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import outlay
from outlay.cli.sweep.workers import Worker

# Eighteen searches of a small space, a part each.
PLANS = """
[study]
kind = "plan"
model = ["llama-3.1-8b", "mixtral-8x7b"]
on = "8,16,32xh100-sxm"
space = "lean"
seq = [2048, 4096, 8192]
batch = 64
tokens = "100B"
price = [2.0, 3.0]
"""
# Layouts counted together: 2 x 2 x 2 contexts of 36.
LAYOUTS = """
[study]
kind = "count"
model = ["llama-3.1-8b", "mixtral-8x7b"]
on = ["16xh100-sxm", "32xh100-sxm"]
seq = 4096
batch = [64, 128]
tokens = "100B"
tp = [1, 2, 4]
pp = [1, 2, 4]
zero = [1, 3]
price = [2.0, 3.0]
"""


def command(words: Sequence[str]) -> list[str]:
    """A command line of outlay."""
    return [sys.executable, "-P", "-m", "outlay", *words]


def environment() -> dict[str, str]:
    """Ours, with this copy of the package for the processes that are started, whatever folder they run in."""
    return os.environ | {"PYTHONPATH": str(Path(outlay.__path__[0]).parent), "COLUMNS": "100"}


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder to its end."""
    return subprocess.run(command(words), cwd=folder, env=environment(), capture_output=True, text=True, timeout=900)


def parts(folder: Path) -> dict[str, bytes]:
    """The parts of a sweep: name and bytes."""
    return {file.name: file.read_bytes() for file in sorted(folder.glob("part-*.parquet"))}


def children(pid: int) -> list[int]:
    """The processes that count for a process: those that the server of its workers has started."""
    servers = [child for child in started_by(pid) if b"forkserver" in Path(f"/proc/{child}/cmdline").read_bytes()]
    return [child for server in servers for child in started_by(server)]


def started_by(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def kill(pid: int) -> None:
    """End a process without a word."""
    os.kill(pid, signal.SIGKILL)


def interrupt(pid: int) -> None:
    """Ctrl-C, which the whole group of a terminal gets."""
    os.killpg(pid, signal.SIGINT)


def stopped(
    folder: Path, rows: Path, more: int, words: Sequence[str], stop: Callable[[int], None]
) -> tuple[int, str, str]:  # fmt: skip
    """Start a sweep, stop it as soon as so many parts more are there, and wait: its exit code, output and errors."""
    wanted = len(parts(rows)) + more
    pipe = subprocess.PIPE
    child = subprocess.Popen(
        command(words), cwd=folder, env=environment(), stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )
    with child:
        while child.poll() is None and len(list(rows.glob("part-*.parquet"))) < wanted:
            time.sleep(0.002)
        if child.poll() is None:
            stop(child.pid)
        try:
            out, errors = child.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            raise
    return child.returncode, out, errors


def half_an_answer(pipe: Connection) -> None:
    """A worker that dies while it writes: four bytes that promise a thousand, and no more."""
    pipe.recv()
    os.write(pipe.fileno(), struct.pack("!i", 1000))
    kill(os.getpid())


def dies_while_it_writes() -> Worker:
    """Such a worker, started as the real ones are."""
    context = get_context("forkserver")
    ours, theirs = context.Pipe()
    process = context.Process(target=half_an_answer, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    return Worker(process, ours, deque())
