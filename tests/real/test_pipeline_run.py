"""Pipelines run by torch's own runtime, in stages that sleep: order, and makespan beside its replay and its diagram.

The only tests that measure time. A stage sleeps 100 ms in the mean, so that a machine that is busy hardly shows.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch.distributed as dist
from command_runs import run
from test_ranks_together import alive

import outlay
from outlay.bill import case_of
from outlay.cli.flags import Given
from outlay.errors import InputError
from outlay.schedule.orders import order_in_rounds
from outlay.schedule.passes import Order
from outlay.verify import pipelines
from outlay.verify.pipelines.run import Outcome, Planned, judged, seconds_of
from outlay.verify.pipelines.timed_stages import Asked, Clock, Seen, run_pipelines
from outlay.verify.subject import Pacing
from outlay.verify.together import together

pytestmark = pytest.mark.filterwarnings("ignore")
DENSE, GROUPED, EXPERTS, LATENT = "gpt3-175b", "llama-3.1-8b", "mixtral-8x7b", "deepseek-v2-lite"
CASES = {
    2: (("1f1b", EXPERTS, 1, 4), ("gpipe", DENSE, 1, 4), ("zb_h1", LATENT, 1, 4), ("dualpipe_v", EXPERTS, 2, 4)),
    4: (
        ("1f1b", LATENT, 1, 4), ("interleaved", GROUPED, 2, 4), ("looped_bfs", DENSE, 2, 4), ("zbv", EXPERTS, 2, 4),
    ),
}  # fmt: skip
EVERY = [(ranks, case[0]) for ranks, cases in CASES.items() for case in cases]


def planned(schedule: str, name: str, pp: int, vpp: int, micro_batches: int) -> Planned:
    job, layout = outlay.Job(sequence_length=4096, precision="bf16"), outlay.Layout(pp=pp, vpp=vpp, schedule=schedule)
    cluster = outlay.load_cluster("64xh100-sxm")
    case = case_of(outlay.load_model(name), job, cluster, layout, "fsdp2-uncompiled")[0]
    order = order_in_rounds(schedule, pp, micro_batches, vpp, True)
    return Planned(order, vpp, seconds_of(case, order, 0.1))


def swapped(of: Order) -> Order:
    """The forward pass of the third micro-batch before the backward pass of the first: possible, and another order."""
    row = list(of.ranks[0])
    row[2], row[3] = row[3], row[2]
    return replace(of, ranks=(tuple(row), *of.ranks[1:]))


AHEAD = 5_000_000_000  # ns


def all_of(asked: list[Asked]) -> tuple[list[Seen], tuple[int, int]]:
    """What a rank does: the pipelines; then its clock, as if on another machine, later than that of the first."""
    done = run_pipelines(asked)
    os.environ["LOCAL_WORLD_SIZE"] = "1"
    clock = Clock(lambda: time.monotonic_ns() + AHEAD * dist.get_rank())
    return done, (clock.ahead, clock.within)


@cache
def started(ranks: int) -> tuple[dict[str, Planned], list[tuple[list[Seen], tuple[int, int]]]]:
    """All pipelines of so many ranks, one whose order is not what its name says, and one of stages that compute; the
    ranks are started once."""
    plans = {case[0]: planned(case[0], case[1], ranks, *case[2:]) for case in CASES[ranks]}
    if ranks == 2:
        plans["swapped"] = replace(plans["1f1b"], order=swapped(plans["1f1b"].order))
        plans["computes"] = replace(plans["gpipe"], pacing=Pacing(0.1, computes=True))
    return plans, together(all_of, ([plan.asked() for plan in plans.values()],), ranks)


def ran(ranks: int) -> dict[str, tuple[Planned, list[Seen]]]:
    plans, found = started(ranks)
    return {name: (plan, [rank[0][at] for rank in found]) for at, (name, plan) in enumerate(plans.items())}


def disagree(of: Outcome) -> list[str]:
    return [held.comparison.name for held in of.comparisons if not held.comparison.agrees(held.within)]


@pytest.mark.parametrize(("ranks", "schedule"), EVERY)
def test_a_pipeline_runs_in_our_order_as_long_as_its_replay_and_never_faster_than_its_diagram(
    ranks: int, schedule: str
) -> None:
    """Within 5 % of the replay."""
    found = judged(*ran(ranks)[schedule])
    names = [held.comparison.name for held in found.comparisons]

    assert disagree(found) == []
    assert names[-4:] == ["order run", "passes", "diagram", "replay"]
    assert len(names) == (4 if schedule == "zb_h1" else 5)  # torch has no class of ZB-H1
    assert found.run is not None
    assert found.run.measured.makespan >= found.run.diagram.makespan > 0
    assert abs(found.run.measured.makespan / found.run.replay.makespan - 1) <= 0.05


def test_stages_that_compute_run_in_our_order_and_a_busy_cpu_is_no_disagreement() -> None:
    found = judged(*ran(2)["computes"])
    names = [held.comparison.name for held in found.comparisons]

    assert names == ["order of GPipe", "order run", "replay"]
    assert set(disagree(found)) <= {"replay"} and "cores" in found.comparisons[2].reason
    assert found.run is not None and all(track.busy > 0 for track in found.run.measured.ranks)


# --- a fault in each ------------------------------------------------------------------------------------------------


def test_an_order_that_is_not_what_its_name_says_is_found() -> None:
    found = judged(*ran(2)["swapped"])

    assert disagree(found) == ["order of 1F1B"]  # it ran as it was handed over


def test_ranks_that_do_otherwise_than_told_are_found() -> None:
    plan, _ = ran(2)["1f1b"]
    _, seen = ran(2)["swapped"]

    assert "order run" in disagree(judged(plan, seen))


@pytest.mark.parametrize(
    ("scale", "names"), [(1.3, ["passes", "diagram"]), (0.8, ["passes"])], ids=["too long", "too short"]
)
def test_a_prediction_that_says_another_makespan_is_found(scale: float, names: list[str]) -> None:
    plan, seen = ran(2)["zb_h1"]
    wrong = tuple((scale * a, scale * b, scale * c) for a, b, c in plan.seconds)

    assert disagree(judged(replace(plan, seconds=wrong), seen)) == names


def test_a_replay_with_slow_messages_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines.run, "HOP", 0.05)

    assert disagree(judged(*ran(2)["1f1b"])) == ["replay"]


def test_stages_that_oversleep_are_found() -> None:
    plan, seen = ran(2)["gpipe"]
    late = tuple(
        tuple(done._replace(end=done.end + 3 * 10**7) if "F" in done.name else done for done in step)
        for step in seen[0].steps
    )

    assert "passes" in disagree(judged(plan, [seen[0]._replace(steps=late), seen[1]]))


# --- the command ----------------------------------------------------------------------------------------------------

ASKED = {"model": GROUPED, "on": "64xh100-sxm", "sequence_length": "4096", "global_batch": "256", "only": "pipeline"}


def test_an_order_that_torch_does_not_take_disagrees_and_says_why() -> None:
    plan, _ = ran(2)["1f1b"]
    seen = [Seen((), refused="Deadlock"), Seen((), refused="Deadlock")]
    found = judged(replace(plan, order=replace(plan.order, name="zb_h1")), seen)

    assert disagree(found) == ["order run"] and found.run is None
    assert found.comparisons[0].comparison.note == "refused: Deadlock"


@pytest.mark.parametrize(
    ("flags", "words"),
    [({}, "one stage"), ({"pp": "16"}, "16 ranks")],
)
def test_what_no_ranks_are_started_for_is_not_run_and_says_why(
    flags: dict[str, str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert run("verify", Given(ASKED | flags)) == 1
    said = capsys.readouterr().out

    assert said.startswith("NOT RUN") and words in said


def test_a_rank_killed_in_the_middle_is_one_line_with_nobody_and_no_file_left(tmp_path: Path) -> None:
    picture = tmp_path / "run.svg"
    asked = ASKED | {"pp": "2", "operation": "10s", "svg": str(picture)}
    (tmp_path / "run.py").write_text(
        "from outlay.cli.flags import Given\nfrom outlay.cli.verifying import verify\n"
        "from outlay.errors import InputError\n"
        f"if __name__ == '__main__':\n    try:\n        verify(Given({asked!r}))\n"
        "    except InputError as error:\n        print(*error.faults)\n"
    )
    paths = os.pathsep.join(sys.path)
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "run.py")],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    ranks = wait_for(lambda: ranks_of(parent.pid), 60)
    time.sleep(3)
    os.kill(ranks[1], signal.SIGKILL)
    said, _ = parent.communicate(timeout=60)

    assert said.count("\n") == 1 and "VER007" in said and "SIGKILL" in said
    assert wait_for(lambda: [1] * (not any(map(alive, ranks))), 15)
    assert list(tmp_path.iterdir()) == [tmp_path / "run.py"]


def ranks_of(parent: int) -> list[int]:
    """The started ranks: children that Python spawned."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    found = [int(pid) for pid in children if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()]
    return found if len(found) == 2 else []


def wait_for(found: Callable[[], list[int]], seconds: float) -> list[int]:
    until = time.monotonic() + seconds
    while not (now := found()) and time.monotonic() < until:
        time.sleep(0.05)
    return now


@pytest.mark.parametrize("ranks", CASES)
def test_clocks_of_several_machines_are_set_by_asking(ranks: int) -> None:
    for rank, (_, (ahead, within)) in enumerate(started(ranks)[1]):
        assert 0 < within < 100_000_000 or not rank
        assert abs(ahead - AHEAD * rank) <= within


def test_an_order_that_nobody_can_follow_is_none_of_ours() -> None:
    plan, seen = ran(2)["1f1b"]
    wrong = tuple(step[1:] + step[:1] for step in seen[1].steps)

    with pytest.raises(InputError, match="ORD00"):
        judged(plan, [seen[0], seen[1]._replace(steps=wrong)])
