"""Seconds, rates and memory: one bill, whole spaces, a list of layouts, and both commands from the shell.

    make bench                               beside what was recorded last
    make bench ARGS=--record                 and write it to recorded.json, from which docs/performance.md is made
    make bench ARGS='--record --only list'   one figure (or several: --only A --only B), on the machine of the others

Prints one line a measurement beside its limit, and exits 1 if one is missed or could not be taken. A fixed NumPy loop
is timed right after each: `at equal speed` compares with the recorded figures as if both machines ran it equally fast.
"""

import argparse
import datetime as dt
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import workloads

HERE = Path(__file__).parent
RECORDED = HERE / "recorded.json"
MODEL = HERE.parent / "tests" / "configs" / "llama-3.1-70b.json"
SCRIPT = HERE.parent / "tests" / "check_cases" / "two_hundred_lines.sh"
QUESTION = ["--on", "64xh100-sxm", "--seq", "8192", "--batch", "512"]
SHELL = {
    "outlay count": (["count", str(MODEL), *QUESTION, "--tp", "8", "--pp", "4"], 0.5, 100.0),
    "outlay count --json": (["count", str(MODEL), *QUESTION, "--tp", "8", "--pp", "4", "--json"], 0.5, 100.0),
    "outlay check": (["check", str(SCRIPT), "llama-3.1-70b", "--on", "64xh100-sxm"], 0.5, 100.0),
    "outlay plan": (["plan", "llama-3.1-70b", *QUESTION], None, None),  # the first answer; no limit is set
    "outlay plan --mixed": (["plan", "llama-3.1-70b", *QUESTION, "--mixed", "recompute"], None, None),
}
FAST, LIST = 10e6, 1e6  # layouts a second that spaces from LARGE on, and lists, are held to
LARGE, SMALL, SMALL_SECONDS = 2_000_000, 1_000_000, 0.2
LIMITS = {
    "gpt3-175b 1024 wide": (0.5, 100.0),
    "gpt3-175b 1024 full": (5.0, None),
    "schedules 64 x 512": (0.5, None),
}  # seconds and megabytes of the whole answer


def limits_of(name: str, layouts: int = 0) -> dict[str, float]:
    """What a figure is held to: the most seconds and megabytes, and the least rate in layouts a second."""
    small = SMALL_SECONDS if 0 < layouts < SMALL and name != "list" else None
    seconds, megabytes = SHELL[name][1:] if name in SHELL else LIMITS.get(name, (small, None))
    rate = LIST if name == "list" else FAST if layouts >= LARGE else None
    every = {"seconds": seconds, "megabytes": megabytes, "rate": rate}
    return {kind: value for kind, value in every.items() if value is not None}


def held(measured: dict[str, Any], limits: dict[str, float]) -> bool:
    """Whether a figure keeps to its limits."""
    return all(measured[kind] >= limit if kind == "rate" else measured[kind] <= limit for kind, limit in limits.items())


def in_words(limits: dict[str, float]) -> str:
    """`limits 0.5 s, 100 MB, 10 M/s`."""
    units = {
        "seconds": lambda s: f"{s} s",
        "megabytes": lambda m: f"{m:.0f} MB",
        "rate": lambda r: f"{r / 1e6:.0f} M/s",
    }
    return f"limits {', '.join(units[kind](value) for kind, value in limits.items())}" if limits else ""


@dataclass
class Run:
    """What was measured, what was recorded before, and whether all limits held."""

    recorded: dict[str, Any]
    found: dict[str, Any] = field(default_factory=dict)
    holds: bool = True

    def say(self, name: str, text: str) -> None:
        """One line: the figure, beside its limits."""
        measured = self.found[name]
        limits = measured["limits"] = limits_of(name, measured.get("layouts", 0))
        measured["date"] = dt.datetime.now(dt.UTC).date().isoformat()
        ok = held(measured, limits)
        self.holds &= ok
        print(
            f"{name:28} {text}{f'   {in_words(limits)}   ' + ('ok' if ok else 'MISSED') if limits else ''}", flush=True
        )

    def before(self, name: str) -> str:
        """The same figure as it was recorded, and the ratio of the two at equal speed of the reference loop."""
        now, old = self.found[name], self.recorded.get("figures", {}).get(name)
        if old is None:
            return "not recorded"
        slower = now["reference_seconds"] / old["reference_seconds"]
        ratio = now["seconds"] / old["seconds"] / slower
        return f"recorded {old['seconds']:.3f} s, x {ratio:.2f} at equal speed"


def shell(arguments: list[str]) -> tuple[float, float]:
    """Wall seconds and peak resident megabytes of one command that must answer yes or no (exit 0 or 1).

    It runs as where it is installed, with its bytecode: the first run writes what pip would have written.
    """
    command = shutil.which("outlay", path=str(Path(sys.executable).parent))
    if command is None:
        raise FileNotFoundError("the command outlay is not installed beside this Python")
    around = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    with subprocess.Popen(
        [command, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=around
    ) as process:
        errors = process.stderr.read().decode() if process.stderr else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1) or "Traceback" in errors:
        raise RuntimeError(f"exit {process.returncode}: {errors.strip().splitlines()[-1:]}")
    return time.perf_counter() - begin, usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def alone(name: str) -> dict[str, Any]:
    """One workload in a process of its own, so that its peak memory is its own."""
    command = [sys.executable, str(HERE / "workloads.py"), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1:])
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def reference(run: Run) -> None:
    """The loop that tells a slow machine from slow code."""
    measured = run.found["reference loop"] = alone("reference loop")
    old = run.recorded.get("figures", {}).get("reference loop", measured)
    text = f"{measured['seconds']:.3f} s   {measured['rate'] / 1e6:,.0f} M element-operations/s"
    run.say("reference loop", f"{text}   {measured['seconds'] / old['seconds']:.2f} times the recorded time")


def one_bill(run: Run) -> None:
    """`count()` in a warm process; no limit is set."""
    measured = run.found["count()"] = alone("count()")
    text = f"{1e3 * measured['seconds']:.3f} ms   {measured['rate']:,.0f} a second"
    run.say("count()", f"{text}   {run.before('count()')}")


def space(run: Run, name: str) -> None:
    """A whole plan: every legal layout counted, the first of the best billed, the baselines searched."""
    measured = run.found[name] = alone(name)
    text = f"{measured['layouts']:>13,} layouts   {measured['rate'] / 1e6:6.1f} M/s   plan {measured['seconds']:.3f} s"
    run.say(name, f"{text}   {measured['megabytes']:.0f} MB   {run.before(name)}")


def a_list(run: Run) -> None:
    """Random layouts: rows recur as they are drawn, options are drawn one by one."""
    measured = run.found["list"] = alone("list")
    text = f"{measured['layouts']:>11,} layouts   {measured['rate'] / 1e6:6.2f} M/s   {measured['seconds']:.3f} s"
    run.say("list", f"{text}   {measured['megabytes']:.0f} MB   {run.before('list')}")


def schedules(run: Run) -> None:
    """The order of every named schedule at size, checked and run: the slowest of them."""
    name = "schedules 64 x 512"
    measured = run.found[name] = alone(name)
    text = f"{measured['slowest']} {measured['seconds']:.3f} s   {measured['megabytes']:.0f} MB"
    run.say(name, f"{text}   {run.before(name)}")


def from_the_shell(run: Run, name: str) -> None:
    """The median of seven runs of a command after one to warm up, held to its limits."""
    arguments = SHELL[name][0]
    shell(arguments)
    runs = [shell(arguments) for _ in range(7)]
    seconds, megabytes = statistics.median(each[0] for each in runs), max(each[1] for each in runs)
    loop = workloads.reference_loop()["seconds"]
    run.found[name] = {"seconds": seconds, "megabytes": megabytes, "reference_seconds": loop}
    run.say(name, f"median {seconds:.3f} s   peak {megabytes:.1f} MB   {run.before(name)}")


def attempt(run: Run, name: str, measure: Callable[[], None]) -> None:
    """One measurement; what cannot be taken is said and counts as missed."""
    try:
        measure()
    except Exception as reason:
        run.holds = False
        print(f"{name:28} NOT MEASURED: {type(reason).__name__}: {reason}")


def machine() -> dict[str, Any]:
    """Where this ran."""
    import numpy as np

    model = ""
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    version = sys.version.split()[0]
    return {"processor": model or platform.machine(), "cores": os.cpu_count(), "python": version,
            "numpy": np.__version__}  # fmt: skip


def works(run: Run) -> dict[str, Callable[[], None]]:
    """Every figure, and how it is taken."""
    found: dict[str, Callable[[], None]] = {"reference loop": lambda: reference(run), "count()": lambda: one_bill(run)}
    found |= {name: lambda name=name: space(run, name) for name in workloads.SPACES}
    found |= {"list": lambda: a_list(run), "schedules 64 x 512": lambda: schedules(run)}
    return found | {name: lambda name=name: from_the_shell(run, name) for name in SHELL}


def main() -> int:
    """Take every measurement, also after one that failed."""
    run = Run(json.loads(RECORDED.read_text()) if RECORDED.exists() else {})
    every = works(run)
    parser = argparse.ArgumentParser(description="seconds, rates and memory")
    parser.add_argument("--record", action="store_true", help="write what is measured to recorded.json")
    parser.add_argument("--only", action="append", choices=[*every], help="this figure alone; may be given again")
    given = parser.parse_args()
    same = run.recorded.get("machine") == machine()
    if given.record and given.only and not same:
        parser.error("--only records on the machine of the other figures; this is another: record all")
    print("now     ", json.dumps(machine()))
    print("recorded", json.dumps(run.recorded.get("machine")))
    for name in given.only or every:
        attempt(run, name, every[name])
    if given.record:
        kept = run.recorded["figures"] if given.only else {}
        figures = {name: (kept | run.found)[name] for name in every if name in kept | run.found}
        RECORDED.write_text(json.dumps({"machine": machine(), "figures": figures}, indent=2) + "\n")
    return 0 if run.holds else 1


if __name__ == "__main__":
    sys.exit(main())
