"""A server of its own for tests: the process that `outlay serve` starts, and a client of it."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

WORDS = {"model": "llama-3.1-70b", "on": "64xh100-sxm", "tp": "8", "pp": "4", "seq": "8192", "batch": "512"}
HEADERS = {"content-type": "application/json"}


def free_port() -> int:
    with socket.socket() as at:
        at.bind(("127.0.0.1", 0))
        port: int = at.getsockname()[1]
    return port


@contextmanager
def served(*more: str) -> Iterator[tuple[httpx.Client, subprocess.Popen[bytes]]]:
    """A client of a server that listens, and its process."""
    port = free_port()
    line = [sys.executable, "-P", "-m", "outlay", "serve", "--port", str(port), *more]
    path = os.pathsep.join(filter(None, [str(Path(__file__).parent.parent / "src"), os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"PYTHONPATH": path}
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        assert b"outlay serves" in process.stdout.readline()
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120, trust_env=False) as client:
            yield client, process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        process.stderr.close()


def workers_of(process: "subprocess.Popen[bytes]") -> list[int]:
    """The process ids of a server's workers."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(each) for each in children.split()]
