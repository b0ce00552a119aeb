"""Sweeps on Ray: two workers of this machine, one of which dies; a cluster with an address. A minute; needs Ray."""

import json
from pathlib import Path

import pytest

from sweeping import PLANS, kill, parts, run, stopped

pytest.importorskip("ray")
WORDS = ["sweep", "s.toml", "--workers", "ray"]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study, and its rows counted by one process."""
    folder = tmp_path_factory.mktemp("ray")
    (folder / "s.toml").write_text(PLANS.replace('space = "lean"', 'space = "middle"'))
    assert run(folder, "sweep", "s.toml", "--workers", "1").returncode == 0
    return folder


def workers() -> list[int]:
    """The processes in which Ray runs a part."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if (place / "cmdline").read_bytes().startswith(b"ray::part_of"):
                found.append(int(place.name))
        except OSError:
            continue
    return found


def test_ray_gives_the_same_bytes_though_a_worker_dies(done: Path) -> None:
    died: list[int] = []

    def kill_one(_: int) -> None:
        while not died:
            died.extend(workers()[:1])
        kill(died[0])

    code, out, _ = stopped(done, done / "dead", 2, [*WORDS, "--output", "dead", "--json"], kill_one)

    assert (code, len(died)) == (0, 1)
    assert json.loads(out)["counted"] == 36
    assert parts(done / "dead") == parts(done / "s.sweep")


def test_a_driver_that_is_killed_goes_on(done: Path) -> None:
    words = [*WORDS, "--output", "killed"]
    code, *_ = stopped(done, done / "killed", 3, words, kill)
    assert code == -9
    assert run(done, *words).returncode == 0
    assert parts(done / "killed") == parts(done / "s.sweep")


def test_a_cluster_that_is_not_there_is_one_line(done: Path) -> None:
    for address in ("127.0.0.1:9", "auto"):
        ended = run(done, *WORDS, "--address", address, "--output", "away", "--json")
        (fault,) = json.loads(ended.stdout)["errors"]
        assert (ended.returncode, fault["code"]) == (2, "SWP011")
        assert "--address" in fault["fix"]
