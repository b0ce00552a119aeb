"""Seconds and memory of one bill: `count()` in a warm process, and `outlay count` from the shell.

Prints one line a measurement beside its limit, and exits 1 if one is missed or could not be taken.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
MODEL = ROOT / "tests" / "configs" / "llama-3.1-70b.json"
FLAGS = ["--on", "64xh100-sxm", "--tp", "8", "--pp", "4", "--seq", "8192", "--batch", "512"]
SHELL_SECONDS, SHELL_MEGABYTES = 0.5, 100.0


def one_count() -> Callable[[], object]:
    """A call of `count()` on the demo's model, job, cluster and layout."""
    from outlay import Job, Layout, count
    from outlay.cluster.catalogue import cluster
    from outlay.model.huggingface import read_config

    model, machine = read_config(MODEL), cluster("64xh100-sxm")
    job, layout = Job(sequence_length=8192, global_batch=512), Layout(tp=8, pp=4)
    return lambda: count(model, job, machine, layout)


def seconds_a_call(call: Callable[[], object], spend: float = 2.0) -> tuple[float, float]:
    """Best and median seconds of a call, over about `spend` seconds after one call to warm up."""
    call()
    taken: list[float] = []
    while sum(taken) < spend or len(taken) < 5:
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return min(taken), statistics.median(taken)


def shell(arguments: list[str]) -> tuple[float, float]:
    """Wall seconds and peak resident megabytes of one command that must answer yes or no (exit 0 or 1)."""
    command = shutil.which("outlay", path=str(Path(sys.executable).parent))
    if command is None:
        raise FileNotFoundError("the command outlay is not installed beside this Python")
    begin = time.perf_counter()
    with subprocess.Popen([command, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        errors = process.stderr.read().decode() if process.stderr else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1) or "Traceback" in errors:
        raise RuntimeError(f"exit {process.returncode}: {errors.strip().splitlines()[-1:]}")
    return time.perf_counter() - begin, usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def in_process() -> bool:
    """Time `count()`; there is no limit to hold, so it fails only if it cannot be taken."""
    best, median = seconds_a_call(one_count())
    rate = f"{1 / median:,.0f} a second"
    print(f"{'count()':24} best {1e3 * best:8.3f} ms   median {1e3 * median:8.3f} ms   {rate}")
    return True


def from_the_shell(name: str, extra: list[str]) -> bool:
    """Time `outlay count` seven times and hold the median to its limits."""
    runs = [shell(["count", str(MODEL), *FLAGS, *extra]) for _ in range(7)]
    seconds, megabytes = statistics.median(run[0] for run in runs), max(run[1] for run in runs)
    holds = seconds <= SHELL_SECONDS and megabytes <= SHELL_MEGABYTES
    limits = f"limits {SHELL_SECONDS} s, {SHELL_MEGABYTES:.0f} MB"
    print(f"{name:24} median {seconds:6.3f} s   peak {megabytes:6.1f} MB   {limits}   {'ok' if holds else 'MISSED'}")
    return holds


def attempt(name: str, measure: Callable[[], bool]) -> bool:
    """One measurement; what cannot be taken is said and counts as missed."""
    try:
        return measure()
    except Exception as reason:
        print(f"{name:24} NOT MEASURED: {type(reason).__name__}: {reason}")
        return False


def main() -> int:
    """Take every measurement, also after one that failed."""
    print(json.dumps({"python": sys.version.split()[0], "cores": os.cpu_count()}))
    results = [
        attempt("count()", in_process),
        attempt("outlay count", lambda: from_the_shell("outlay count", [])),
        attempt("outlay count --json", lambda: from_the_shell("outlay count --json", ["--json"])),
    ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
