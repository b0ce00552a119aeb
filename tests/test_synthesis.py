"""The best order under a memory cap: it can run, keeps to it, loses to no named schedule; small ones are proved."""

import json
from itertools import permutations
from pathlib import Path

import pytest

from outlay.cli.main import main
from outlay.errors import InputError
from outlay.schedule.checks import checked
from outlay.schedule.listing import from_csv
from outlay.schedule.orders import order
from outlay.schedule.synthesis import best as searching
from outlay.schedule.synthesis.best import best, problem_of, rows_of_names
from outlay.schedule.synthesis.exact import available, proved
from outlay.schedule.synthesis.greedy import listed, rules
from outlay.schedule.synthesis.improve import improved
from outlay.schedule.synthesis.problem import Problem, least
from outlay.schedule.synthesis.timing import timed, within
from outlay.schedule.timeline import Timeline, simulate
from outlay.schedule.times import Times
from sought_cases import questions, sought

EVEN = {1: (2, 2, 2), 2: (1, 1, 1)}  # F = B = W of a rank, by its chunks
needs_ortools = pytest.mark.skipif(not available(), reason="the extra `exact` is not installed")


def run(problem: Problem, rows: list[list[tuple[int, int]]]) -> Timeline:
    """The timeline of an order, by the simulator of all orders."""
    columns = (problem.forward, problem.inputs, problem.weights)
    return simulate(problem.order(rows), Times(*columns, send=problem.send))


# --- what every order that is found obeys ---------------------------------------------------------------------------


def test_every_rule_makes_an_order_that_runs_in_the_time_it_says_under_the_cap() -> None:
    for question in questions(12):
        for rule in [*rules(question)][::5]:
            makespan, rows = listed(question, rule)
            line = run(question, rows)

            checked(question.order(rows).ranks)
            assert least(question) <= line.makespan <= makespan
            assert max(rank.peak_in_flight for rank in line.ranks) <= question.cap
            assert timed(question, rows).makespan == line.makespan  # type: ignore[union-attr]


def test_small_moves_never_make_an_order_longer_nor_hold_more() -> None:
    shorter = 0
    for question in questions(14):
        before, rows = min(listed(question, rule) for rule in [*rules(question)][:8])
        after = improved(question, rows, least(question), lambda: True)
        line = run(question, after)
        shorter += line.makespan < before

        assert line.makespan <= before
        assert max(rank.peak_in_flight for rank in line.ranks) <= question.cap
    assert shorter >= 3


@pytest.mark.parametrize("chunks", [1, 2])
@pytest.mark.parametrize("cap", [1, 2, 3, 4, 7])
def test_no_named_schedule_under_the_same_cap_is_shorter(chunks: int, cap: int) -> None:
    """Held against the orders themselves, each whole backward pass cut into its gradients."""
    names = ("gpipe", "1f1b", "zb_h1", "zb_h2") if chunks == 1 else ("zbv", "v_half", "v_min", "1f1b_v")
    for costs in ((1, 1, 1), (10, 12, 9), (2, 3, 1)):
        question = sought(chunks, 4, 8, costs, cap)
        found = best(question, 1.0, prove=False)
        for name in names:
            line = simulate(order(name, 4, 8, chunks), Times(*costs))
            if max(line.peak_in_flight) <= cap:
                assert found.makespan * question.tick <= line.makespan
                assert name in dict(found.named)


def test_the_named_schedules_under_a_cap_are_those_whose_peaks_keep_to_it() -> None:
    known = {cap: {name for name, _ in rows_of_names(sought(2, 6, 18, (1, 1, 1), cap))} for cap in (2, 3, 4, 6)}

    assert known[2] == set()
    assert known[3] == {"v_min"}  # floor(10 / 3)
    assert known[4] == {"v_min", "v_half"}  # floor(8 / 2)
    assert known[6] >= {"v_min", "v_half", "1f1b_v", "zbv"}


def test_equal_input_gives_an_equal_order() -> None:
    for question in [*questions(6)][::2]:
        assert best(question, 30.0, prove=False).order.ranks == best(question, 30.0, prove=False).order.ranks


# --- what no order goes below ---------------------------------------------------------------------------------------


def test_no_order_of_all_is_below_the_bound() -> None:
    """Two ranks, two micro-batches, one chunk: every order of each rank's six passes."""
    for costs, cap in (((1, 1, 1), 1), ((1, 1, 1), 2), ((3, 2, 5), 1), ((2, 7, 1), 2), ((4, 1, 1), 2)):
        question = sought(1, 2, 2, costs, cap)
        rows = [sorted(set(permutations([(kind, s) for kind in range(3) for _ in "12"]))) for s in (0, 1)]
        able = [[[*each] for each in some if within([*each], question.cap)] for some in rows]
        lines = [timed(question, [one, two]) for one in able[0] for two in able[1]]
        shortest = min(line.makespan for line in lines if line)
        found = best(question, 5.0, prove=False)

        assert least(question) <= found.bound <= shortest
        assert found.makespan == shortest


@pytest.mark.parametrize(("pp", "micro_batches"), [(4, 8), (8, 16)])
def test_where_memory_is_that_of_1f1b_the_bound_is_met(pp: int, micro_batches: int) -> None:
    """F = B = W: one chunk a rank idles (P - 1) F as ZB-H1, a V half of that as ZBV; both proved."""
    one, two = (best(sought(v, pp, micro_batches, EVEN[v], pp), 20.0, prove=False) for v in (1, 2))

    assert (one.proved, two.proved) == (True, True)
    assert one.makespan * one.problem.tick == 6 * micro_batches + 2 * (pp - 1)
    assert two.makespan * two.problem.tick == 6 * micro_batches + (pp - 1)


@needs_ortools
@pytest.mark.parametrize(
    ("pp", "micro_batches", "cap", "shortest"),
    [(4, 8, 1, 144), (4, 8, 2, 82), (4, 8, 3, 62), (4, 8, 4, 54), (8, 16, 4, 158)],
)
def test_small_orders_are_proved_the_shortest_from_any_start(
    pp: int, micro_batches: int, cap: int, shortest: int
) -> None:
    """F = B = W = 2. With one micro-batch at a time, M (P F + P B + W)."""
    question = sought(1, pp, micro_batches, EVEN[1], cap)
    _, rows = max(listed(question, rule) for rule in rules(question))
    found = proved(question, rows, 60.0)

    assert cap > 1 or shortest == micro_batches * (2 * pp + 1) * 2
    assert (found.makespan * question.tick, found.bound * question.tick) == (shortest, shortest)
    assert run(question, found.rows).makespan == found.makespan
    assert all(within(row, question.cap) for row in found.rows)


@needs_ortools
def test_the_list_scheduler_is_within_a_twentieth_of_what_is_proved() -> None:
    """Fifty of them in tests/long."""
    small = [each for each in questions(30) if each.micro_batches <= 5 and each.chunks == 1]
    for question in small:
        exact = proved(question, min(listed(question, rule) for rule in rules(question))[1], 20.0)

        assert best(question, 10.0, prove=False).makespan <= 1.05 * exact.makespan
    assert len(small) >= 8


# --- questions that cannot be -----------------------------------------------------------------------------------------


def codes(*arguments: object) -> list[str]:
    with pytest.raises(InputError) as caught:
        problem_of(*arguments)  # type: ignore[arg-type]
    return [each.code for each in caught.value.faults]


def test_a_cap_that_no_order_keeps_to_is_refused_with_the_least() -> None:
    assert codes(Times(1, 1, 1), 4, 8, 2, "snake", 0.5) == ["SCH053"]
    for chunks in (1, 2):
        assert best(sought(chunks, 4, 3, (1, 1, 1), 1), 5.0, prove=False).order.micro_batches == 3


def test_an_order_too_long_to_be_sought_is_refused() -> None:
    assert codes(Times(1, 1, 1), 64, 4096, 2, "snake", 8) == ["SCH052"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--memory-cap 0.9", ["SCH053"]),
        ("--memory-cap none", ["UNI001"]),
        ("--memory-cap -2 --time-limit never", ["UNI001", "UNI002"]),
        ("--memory-cap 4 --forward -1ms --backward 2ms", ["UNI002"]),
        ("--memory-cap 4 --pair 3ms --forward 1ms --backward 2ms", ["DRW002"]),
        ("--memory-cap 4 --vpp 99", ["SCH052"]),
    ],
)
def test_nonsense_is_refused(capsys: pytest.CaptureFixture[str], line: str, expected: list[str]) -> None:
    assert main(f"draw --schedule best --pp 4 --micro-batches 8 {line} --json".split()) == 2
    assert [each["code"] for each in json.loads(capsys.readouterr().out)["errors"]] == expected


def test_a_cap_without_a_search_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["draw", "--pp", "4", "--micro-batches", "8", "--memory-cap", "3", "--json"]) == 2
    assert "--schedule best" in capsys.readouterr().out
    assert main(["draw", "--schedule", "best", "--json"]) == 2
    assert [each["code"] for each in json.loads(capsys.readouterr().out)["errors"]] == ["CLI004", "CLI004"]


# --- the command ----------------------------------------------------------------------------------------------------


def drawn(capsys: pytest.CaptureFixture[str], line: str) -> dict:  # type: ignore[type-arg]
    assert main(f"draw --schedule best --json {line}".split()) == 0
    found: dict = json.loads(capsys.readouterr().out)  # type: ignore[type-arg]
    return found


def test_an_answer_says_how_good_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    found = drawn(capsys, "--pp 4 --micro-batches 8 --memory-cap 3 --forward 20ms --backward 40ms")
    said = found["sought"]

    assert (said["chunks"], said["placement"], said["proved"], said["stopped"]) == (2, "snake", True, False)
    assert said["makespan"] == said["bound"] == found["makespan"] == pytest.approx(0.53)  # V-Half: 48 + 5 chunks' slots
    assert said["named"]["v_half"] == pytest.approx(0.53)
    assert max(rank["peak_in_flight"] for rank in found["ranks"]) <= 3
    assert "proved" in found["notes"][0]


def test_one_chunk_can_be_asked_for_and_stages_can_differ(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    times = tmp_path / "times.csv"
    times.write_text("forward,backward\n1ms,2ms\n1ms,2ms\n1ms,2ms\n2ms,4ms\n")
    one = drawn(capsys, "--pp 4 --micro-batches 8 --vpp 1 --memory-cap 4 --forward 1ms --backward 2ms")["sought"]
    uneven = drawn(capsys, f"--pp 4 --micro-batches 8 --memory-cap 4 --times {times}")["sought"]

    assert (one["chunks"], one["placement"], one["makespan"]) == (1, "loop", pytest.approx(0.027))
    assert uneven["chunks"] == 1
    assert uneven["makespan"] >= 8 * 0.006  # the slowest stage alone


def test_an_order_that_was_found_is_written_and_read_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["draw", "--schedule", "best", "--pp", "3", "--micro-batches", "5", "--memory-cap", "2", "--csv", "-"])
        == 0
    )
    text = capsys.readouterr().out
    read = from_csv(text)

    assert (len(read.ranks), read.micro_batches) == (3, 5)
    assert {kind for row in read.ranks for kind, _, _ in row} == {"F", "I", "W"}  # type: ignore[misc]


def test_an_interrupt_keeps_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(searching, "improved", interrupted)
    question = sought(1, 4, 8, EVEN[1], 2)
    found = best(question, 30.0, prove=True)

    assert (found.stopped, found.proved) == (True, False)
    assert found.makespan <= min(listed(question, rule)[0] for rule in rules(question))
    checked(found.order.ranks)


def test_no_time_at_all_still_gives_an_order() -> None:
    found = best(sought(2, 8, 64, EVEN[2], 3), 0.0, prove=True)

    assert found.bound <= found.makespan < 6 * 64 * 8
    checked(found.order.ranks)
