"""The timeline of an order: against a slow second simulator, by hand, and by the laws that any timeline obeys."""

import random
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive_timeline import duration, naive, random_order, random_times
from outlay.errors import InputError
from outlay.schedule import steady
from outlay.schedule.orders import facts, names, order
from outlay.schedule.passes import Order, Pair, Pass, loop
from outlay.schedule.program import program
from outlay.schedule.running import _Walk, load
from outlay.schedule.steady import simulate_long
from outlay.schedule.timeline import CAUSES, Timeline, simulate
from outlay.schedule.times import Extra, Times

draws = st.integers(0, 2**32).map(random.Random)


def operations(timeline: Timeline) -> list[list[tuple[Any, Any]]]:
    """Start and end of each operation, a recompute joined to what it stands in front of."""
    found = []
    for track in timeline.ranks:
        rows = list(zip(track.kind.tolist(), track.start.tolist(), track.end.tolist()))
        starts = [rows[at - 1][1] if at and rows[at - 1][0] == "R" else row[1] for at, row in enumerate(rows)]
        found.append([(start, row[2]) for start, row in zip(starts, rows) if row[0] != "R"])
    return found


def codes(made: Callable[[], object]) -> list[str]:
    """The codes of the faults."""
    with pytest.raises(InputError) as caught:
        made()
    return [fault.code for fault in caught.value.faults]


def listed(*rows: str, stages: int, batches: int) -> Order:
    """An order from texts such as `0F0 1F0 1B0`, one a rank; stage s stands on rank s mod P."""
    ranks = tuple(tuple(Pass(text[1], int(text[0]), int(text[2])) for text in row.split()) for row in rows)
    return Order("listed", ranks, stages, batches, loop(len(rows)))  # type: ignore[arg-type]


# --- a second simulator ---------------------------------------------------------------------------------------------


@given(draws)
def test_random_legal_orders_run_as_in_the_slow_simulator(draw: random.Random) -> None:
    made = random_order(draw)
    times = random_times(draw, made.depth)

    assert operations(simulate(made, times)) == naive(made, times)


@pytest.mark.parametrize("name", names())
def test_every_schedule_runs_as_in_the_slow_simulator(name: str) -> None:
    draw = random.Random(name)
    for _ in range(10):
        pp = draw.choice([2, 4])
        made = order(name, pp, draw.choice([2, 3]) * pp, 1 if facts(name).chunks == "one" else 2)
        times = random_times(draw, made.depth)

        assert operations(simulate(made, times)) == naive(made, times)


# --- by hand --------------------------------------------------------------------------------------------------------


def test_1f1b_of_2_ranks_and_2_micro_batches_stands_as_drawn_by_hand() -> None:
    timeline = simulate(order("1f1b", 2, 2), Times(1, 1, 1))

    assert operations(timeline) == [[(0, 1), (1, 2), (4, 6), (7, 9)], [(1, 2), (2, 4), (4, 5), (5, 7)]]
    assert [track.kind.tolist() for track in timeline.ranks] == [["F", "F", "B", "B"], ["F", "B", "F", "B"]]
    assert (timeline.makespan, timeline.span, timeline.idle, timeline.bubble_share) == (9, 9, 6, 6 / 18)
    assert timeline.ranks[0].idle_by_cause == {"fill": 0, "drain": 0, "dependency": 3, "communication": 0}
    assert timeline.ranks[1].idle_by_cause == {"fill": 1, "drain": 2, "dependency": 0, "communication": 0}
    assert timeline.peak_in_flight == (2, 1)
    assert timeline.critical_path() == [(0, 0), (1, 0), (1, 1), (1, 2), (1, 3), (0, 3)]


def test_a_message_in_flight_is_communication_and_the_rest_of_a_wait_is_not() -> None:
    timeline = simulate(listed("0F0 0B0", "1F0 1B0", stages=2, batches=1), Times(1, 2, 0, send=5))
    first, second = timeline.ranks

    # Rank 0: 0-1, then the message (1-6), F (6-7), B (7-9), the message back (9-14), B (14-16).
    assert first.wait.tolist() == [0, 13] and first.flight.tolist() == [0, 5]
    assert first.idle_by_cause == {"fill": 0, "drain": 0, "dependency": 8, "communication": 5}
    assert second.idle_by_cause == {"fill": 6, "drain": 7, "dependency": 0, "communication": 0}
    assert (first.wait_cause.tolist(), second.wait_cause.tolist()) == (["", "dependency"], ["fill", ""])
    assert timeline.messages.start.tolist() == [1, 9] and timeline.messages.end.tolist() == [6, 14]


def test_messages_wait_for_their_link_one_way_and_not_for_the_other() -> None:
    forward = listed("0F0 0F1 0F2", "1F0 1F1 1F2", stages=2, batches=3)
    timeline = simulate(forward, Times(1, 1, 1, send=1, message_bytes=2, byte=2))

    assert timeline.messages.start.tolist() == [1, 5, 9]  # 4 on the wire each
    assert timeline.messages.end.tolist() == [6, 10, 14]  # and 1 until it is there
    assert timeline.ranks[1].start.tolist() == [6, 10, 14]
    assert timeline.critical_path() == [(0, 0), (1, 2)]


def test_two_stages_of_one_rank_send_no_message() -> None:
    made = listed("0F0 1F0 1B0 0B0", stages=2, batches=1)

    assert len(simulate(made, Times(1, 1, 1, send=100)).messages.start) == 0
    assert simulate(made, Times(1, 1, 1, send=100)).makespan == 6


def test_a_turn_of_a_v_sends_no_message() -> None:
    messages = simulate(order("zbv", 4, 8), Times(1, 1, 1)).messages

    assert not ((messages.source == 3) & (messages.target == 3)).any()
    assert {4} & {*messages.stage[~messages.backward].tolist()} == set()


def test_a_recompute_stands_in_front_of_the_backward_pass_and_counts_as_work() -> None:
    timeline = simulate(listed("0F0 0I0 0W0", stages=1, batches=1), Times(3, 4, 5, recompute=2))
    track = timeline.ranks[0]

    assert (track.kind.tolist(), track.start.tolist()) == (["F", "R", "I", "W"], [0, 3, 5, 9])
    assert (timeline.makespan, track.busy, track.idle) == (14, 14, 0)
    assert timeline.critical_path() == [(0, 0), (0, 1), (0, 2), (0, 3)]


def test_a_pair_takes_its_own_time_or_that_of_both() -> None:
    both = Pair(Pass("F", 0, 1), Pass("B", 0, 0))
    made = Order("pair", ((Pass("F", 0, 0), both, Pass("B", 0, 1)),), 1, 2, loop(1))

    assert [simulate(made, Times(2, 3, 4, pair=pair)).makespan for pair in (None, 6, 9, 0)] == [18, 15, 18, 9]
    track = simulate(made, Times(2, 3, 4, recompute=1)).ranks[0]
    assert track.kind.tolist() == ["F", "R", "P", "R", "B"]
    assert (track.micro_batch.tolist(), track.back_micro_batch.tolist()) == ([0, 0, 1, 1, 1], [-1, -1, 0, -1, -1])
    assert track.peak_in_flight == 2


def test_the_end_stages_do_more() -> None:
    made = listed("0F0 0I0 0W0", "1F0 1I0 1W0", stages=2, batches=1)
    times = Times(10, 10, 10, first=Extra(1, 2, 3), last=Extra(4, 5, 6))

    assert [[end - start for start, end in row] for row in operations(simulate(made, times))] == [
        [11, 12, 13],
        [14, 15, 16],
    ]


def test_a_stage_has_its_own_times() -> None:
    timeline = simulate(listed("0F0 0B0", "1F0 1B0", stages=2, batches=1), Times([1, 2], [3, 4], [5, 6]))

    assert operations(timeline) == [[(0, 1), (13, 21)], [(1, 3), (3, 13)]]


def test_both_copies_of_a_model_have_the_times_of_its_stages() -> None:
    made = order("dualpipe", 4, 8)
    timeline = simulate(made, Times([1, 2, 3, 4], 5, 5))
    first = timeline.ranks[0]

    assert {*(first.end - first.start)[(first.kind == "F") & (first.stage == 0)].tolist()} == {1}
    assert {*(first.end - first.start)[(first.kind == "F") & (first.stage == 7)].tolist()} == {4}


# --- collectives ----------------------------------------------------------------------------------------------------


def test_weights_are_gathered_before_the_first_forward_pass_of_their_stage() -> None:
    timeline = simulate(listed("0F0 1F0 1B0 0B0", stages=2, batches=1), Times(4, 4, 4, gather=[3, 5]))
    stream, track = timeline.streams[0], timeline.ranks[0]

    assert (stream.kind.tolist(), stream.start.tolist(), stream.end.tolist()) == (["G", "G"], [0, 3], [3, 8])
    assert track.start.tolist() == [3, 8, 12, 20]
    assert timeline.exposed == 4  # 3 in front, and 1 between: the rest hides under the first pass
    assert track.idle_by_cause == {"fill": 3, "drain": 0, "dependency": 0, "communication": 1}


def test_gradients_are_reduced_after_the_last_weight_gradient_of_their_stage() -> None:
    timeline = simulate(listed("0F0 1F0 1I0 0I0 1W0 0W0", stages=2, batches=1), Times(1, 1, 1, reduce=[2, 10]))
    stream = timeline.streams[0]

    assert (stream.kind.tolist(), stream.stage.tolist()) == (["D", "D"], [1, 0])
    assert (stream.start.tolist(), stream.end.tolist()) == ([5, 15], [15, 17])
    assert (timeline.makespan, timeline.exposed) == (17, 11)
    assert timeline.critical_path()[-1] == (0, 4)


def test_a_reduction_hides_where_its_rank_drains() -> None:
    made = order("1f1b", 4, 8)
    plain = simulate(made, Times(2, 2, 2))
    drains = [track.idle_by_cause["drain"] for track in plain.ranks]
    timeline = simulate(made, Times(2, 2, 2, reduce=drains))

    assert drains == [0, 4, 8, 12]
    assert (timeline.makespan, timeline.exposed) == (plain.makespan, 0)


@given(draws)
def test_collectives_expose_no_more_than_they_take_and_none_where_there_are_none(draw: random.Random) -> None:
    made = random_order(draw)
    times = random_times(draw, made.depth)
    gather, reduce = ([draw.randint(0, 9) for _ in range(made.depth)] for _ in range(2))
    timeline = simulate(made, replace(times, gather=gather, reduce=reduce))

    assert simulate(made, times).exposed == 0
    assert 0 <= timeline.exposed <= sum(gather) + sum(reduce)


# --- laws -----------------------------------------------------------------------------------------------------------


@given(draws)
def test_a_step_takes_at_least_each_ranks_work_and_each_micro_batches_way(draw: random.Random) -> None:
    made = random_order(draw)
    times = replace(random_times(draw, made.depth), pair=None)
    makespan = simulate(made, times).makespan
    took = {half: sum(duration(made, times, half)) for row in made.ranks for each in row for half in _halves(each)}

    assert makespan >= max(sum(sum(duration(made, times, each)) for each in row) for row in made.ranks)
    for batch in range(made.micro_batches):
        assert makespan >= sum(time for half, time in took.items() if half.micro_batch == batch and half.kind != "W")


def _halves(each: Any) -> tuple[Pass, ...]:
    return each if isinstance(each, Pair) else (each,)


@given(draws)
def test_idle_time_is_what_work_leaves_of_the_step_and_every_cause_is_counted_once(draw: random.Random) -> None:
    made = random_order(draw)
    timeline = simulate(made, random_times(draw, made.depth))

    for track in timeline.ranks:
        assert list(track.idle_by_cause) == list(CAUSES)
        assert all(time >= 0 for time in track.idle_by_cause.values())
        assert track.idle + track.busy == timeline.makespan
        assert (track.wait >= track.flight).all() and (track.flight >= 0).all()
        assert all(start >= end for start, end in zip(track.start[1:], track.end))
    assert timeline.idle == sum(timeline.idle_by_cause.values())
    assert timeline.span <= timeline.makespan


@given(draws)
def test_whole_ticks_and_floats_agree_and_keep_their_kind(draw: random.Random) -> None:
    made = random_order(draw)
    seed = draw.random()
    whole, real = (simulate(made, random_times(random.Random(seed), made.depth, kind)) for kind in (int, float))

    assert operations(whole) == operations(real)
    assert whole.critical_path() == real.critical_path()
    assert whole.idle_by_cause == real.idle_by_cause
    assert type(whole.makespan) is int and type(real.makespan) is float


@given(draws)
def test_no_duration_that_grows_makes_anything_earlier(draw: random.Random) -> None:
    made = random_order(draw)
    times = random_times(draw, made.depth)
    before = simulate(made, times).entries
    for name in ("forward", "input_gradient", "weight_gradient", "recompute", "send", "message_bytes"):
        longer = [each + draw.randint(0, 3) for each in np.broadcast_to(getattr(times, name), made.depth).tolist()]
        after = simulate(made, replace(times, **{name: longer})).entries
        if len(after.end) == len(before.end):
            assert (after.start >= before.start).all() and (after.end >= before.end).all()
        assert max(after.end) >= max(before.end)


@given(draws)
def test_the_critical_path_has_no_gap_but_messages_and_ends_with_the_step(draw: random.Random) -> None:
    made = random_order(draw)
    timeline = simulate(made, random_times(draw, made.depth))
    path = timeline.critical_path()
    steps = [(timeline.ranks[rank].start[at], timeline.ranks[rank].end[at]) for rank, at in path]

    assert steps[0][0] == 0 and steps[-1][1] == timeline.makespan
    assert all(later[0] >= sooner[1] for sooner, later in pairwise(steps))
    assert all(one[0] != two[0] or one[1] + 1 == two[1] for one, two in pairwise(path))
    held = sum((later[0] - sooner[1]).item() for sooner, later in pairwise(steps))
    assert timeline.makespan == sum((end - start).item() for start, end in steps) + held
    if not len(timeline.messages.start) or (timeline.messages.start == timeline.messages.end).all():
        assert held == 0


@given(draws)
def test_what_is_in_flight_rises_by_forward_passes_and_falls_to_nothing(draw: random.Random) -> None:
    made = random_order(draw)
    for track in simulate(made, random_times(draw, made.depth)).ranks:
        time, level = track.in_flight
        forwards = int(np.isin(track.kind, ["F", "P"]).sum())

        assert list(time) == sorted(time)
        assert set(np.diff(level, prepend=0).tolist()) <= {1, -1}
        assert len(level) == 2 * forwards and (not forwards or level[-1] == 0)
        assert track.peak_in_flight == max(level, default=0)


# --- faults ---------------------------------------------------------------------------------------------------------


def test_ranks_that_wait_for_each_other_are_named_with_their_operations() -> None:
    made = listed("0F0 0F1 0B1 0B0", "1F0 1B0 1F1 1B1", stages=2, batches=2)
    simulate(made, Times(1, 1, 1))
    stuck = listed("0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1", stages=2, batches=2)
    with pytest.raises(InputError) as caught:
        simulate(stuck, Times(1, 1, 1))

    fault = caught.value.faults[0]
    assert fault.code == "SCH046"
    assert "B of micro-batch 0 on stage 0 (rank 0, operation 1) waits for B of micro-batch 0 on stage 1" in fault.got
    assert "F of micro-batch 1 on stage 1 (rank 1, operation 1) waits for F of micro-batch 1 on stage 0" in fault.got


@pytest.mark.parametrize(
    ("rows", "stages", "expected"),
    [
        (["0F0 0B0 0F0"], 1, ["SCH042"]),
        (["0F0 0B0 0I0"], 1, ["SCH042"]),
        (["0B0 0F0"], 1, ["SCH045"]),
        (["0F0 0W0 0I0"], 1, ["SCH045"]),
        (["1F0 0F0 1B0 0B0"], 2, ["SCH045"]),
        (["0B0"], 1, ["SCH043"]),
        (["0F0 0B0", "1B0"], 2, ["SCH043"]),
        (["0F0 0B0", "1F0"], 2, ["SCH043"]),
        (["0F0 0W0"], 1, ["SCH043"]),
        (["0F0 2F0"], 2, ["SCH041"]),
        (["0F0 0F9 0B0"], 1, ["SCH041"]),
        (["0F0 0X0"], 1, ["SCH041"]),
        (["0F0", "0B0"], 1, ["SCH044"]),
    ],
)
def test_an_order_that_nobody_can_follow_is_refused(rows: list[str], stages: int, expected: list[str]) -> None:
    assert codes(lambda: simulate(listed(*rows, stages=stages, batches=1), Times(1, 1, 1))) == expected


def test_all_faults_of_an_order_come_at_once_but_not_a_thousand() -> None:
    made = listed("0B0 0F0 0F0 0W1", "1B1", stages=2, batches=2)
    found = codes(lambda: simulate(made, Times(1, 1, 1)))
    many = tuple(Pass("B", 0, batch) for batch in range(1000))

    assert sorted(set(found)) == ["SCH042", "SCH043", "SCH045"]
    assert len(codes(lambda: simulate(Order("many", (many,), 1, 1000, loop(1)), Times(1, 1, 1)))) == 5


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (Times(-1, 1, 1), ["SCH032"]),
        (Times(float("nan"), 1, float("inf")), ["SCH032", "SCH032"]),
        (Times([1, 2, 3], 1, 1), ["SCH031"]),
        (Times([1, -2, 3], "1", True), ["SCH031", "SCH032", "SCH032", "SCH032"]),  # type: ignore[arg-type]
        (Times(1, 1, 1, first=(1, 2)), ["SCH031"]),  # type: ignore[arg-type]
        (Times(2**60, 1, 1), ["SCH032"]),
        (Times(2**52, 2**52, 2**52), ["SCH033"]),
    ],
)
def test_durations_that_are_none_are_refused(times: Times, expected: list[str]) -> None:
    assert codes(lambda: simulate(listed("0F0 0B0", "1F0 1B0", stages=2, batches=1), times)) == expected


# --- long steps -----------------------------------------------------------------------------------------------------


def same(one: Timeline, two: Timeline) -> bool:
    """Whether two timelines are equal in every array and figure."""
    arrays = [*zip(one.entries, two.entries), *zip(one.messages, two.messages)]
    arrays += [pair for streams in zip(one.streams, two.streams) for pair in zip(streams[0][1:], streams[1][1:])]
    return all(np.array_equal(left, right) for left, right in arrays) and figures(one) == figures(two)


def figures(timeline: Timeline) -> list[object]:
    tracks = [(track.busy, track.idle_by_cause, track.peak_in_flight) for track in timeline.ranks]
    whole = [timeline.makespan, timeline.span, timeline.idle, timeline.bubble_share, timeline.exposed]
    return [*whole, timeline.micro_batches, timeline.idle_by_cause, timeline.peak_in_flight, tracks]


FOUND = {"1f1b": 8, "interleaved": 6, "interleaved_zb": 6, "zb_h1": 8, "zb_h2": 8, "zbv": 8, "dualpipe_v": 8}


@pytest.mark.parametrize("name", names())
def test_a_step_without_its_steady_state_is_the_whole_step(name: str) -> None:
    draw, found = random.Random(name), 0
    for _ in range(8):
        pp, chunks = draw.choice([2, 4]), 1 if facts(name).chunks == "one" else 2
        unit = pp if "interleaved" in name or name == "chimera" else 2
        M = unit * draw.randint(17 * pp // unit, 60 * pp // unit)

        def make(count: int, pp: int = pp, chunks: int = chunks) -> Order:
            return order(name, pp, count, chunks)

        depth = make(4 * pp).depth
        times = random_times(draw, depth)
        times = replace(times, gather=draw.choice([0, 5]), reduce=[draw.randint(0, 9) for _ in range(depth)])
        skipped, whole = simulate_long(make, pp, M, times), simulate(make(M), times)

        assert figures(skipped) == figures(whole)
        assert same(skipped.expand(), whole)
        assert skipped.expand().critical_path() == whole.critical_path()
        found += skipped.repeats is not None
    assert found >= FOUND.get(name, 0)


@pytest.mark.parametrize(
    ("turn", "looks_back", "spread", "needed"), [(20, 0, 0, 3), (20, 6, 0, 8), (40, 10, 0, 11), (20, 0, 50, 8)]
)
def test_a_steady_state_is_believed_once_all_that_later_operations_look_back_at_repeats(
    monkeypatch: pytest.MonkeyPatch, turn: int, looks_back: int, spread: int, needed: int
) -> None:
    pp, turns = 8, 40
    middle = steady._middle(lambda M: order("1f1b", pp, M), pp, 1000)
    assert middle is not None
    made = order("1f1b", pp, middle.short + turns)
    read, timeline = program(made), simulate(made, Times(1, 1, 1))
    # In one repetition, or behind them all, rank 1 waits for what rank 0 or 2 did so many repetitions before.
    here = read.first[1] + middle.place[1] + middle.length[1] * turn
    receivers = read.messages.receiver
    at = int(np.where(receivers >= here, receivers, len(read.rank)).argmin())
    read.messages.sender[at] -= looks_back * middle.length[read.rank[read.messages.sender[at]]]

    def believed(regular: int) -> bool:
        """With times that repeat every 10, so many repetitions before the end, and one operation late by `spread`."""
        times = np.arange(turns)[:, None] * 10 + np.zeros((1, int(middle.length.sum())), int)
        times[: turns - regular] -= np.arange(turns - regular, 0, -1)[:, None] ** 2
        times[:, -1] += spread
        monkeypatch.setattr(steady, "_by_turn", lambda *_: times)
        return steady._period(read, timeline, middle, turns) is not None

    assert [regular for regular in range(1, turns + 1) if believed(regular)] == list(range(needed, turns + 1))


def test_a_million_micro_batches_need_the_order_of_some_dozens() -> None:
    asked = []

    def make(micro_batches: int) -> Order:
        asked.append(micro_batches)
        return order("1f1b", 8, micro_batches)

    M = 10**6
    timeline = simulate_long(make, 8, M, Times(7, 5, 4))

    assert timeline.makespan == (M + 7) * 16
    assert timeline.busy == 8 * M * 16
    assert timeline.repeats is not None and timeline.repeats.period == 16
    assert timeline.repeats.skipped + max(asked) == M and max(asked) < 80
    assert timeline.ranks[0].micro_batch.max() == M - 1
    assert timeline.entries.start.max() < timeline.makespan


def test_a_slow_stage_in_the_middle_sets_the_pace_of_a_long_step() -> None:
    def make(micro_batches: int) -> Order:
        return order("1f1b", 4, micro_batches)

    times = Times([5, 5, 9, 5], [5, 5, 8, 5], [4, 4, 7, 5], send=2)
    timeline, shorter = simulate_long(make, 4, 10**5, times), simulate(make(1000), times)

    assert timeline.repeats is not None
    assert timeline.makespan - shorter.makespan == (10**5 - 1000) * 24


def test_a_step_of_floats_or_of_gpipe_is_simulated_whole() -> None:
    floats = simulate_long(lambda M: order("1f1b", 2, M), 2, 100, Times(1.5, 1, 1))
    gpipe = simulate_long(lambda M: order("gpipe", 2, M), 2, 100, Times(1, 1, 1))

    assert (floats.repeats, gpipe.repeats) == (None, None)
    assert (floats.makespan, gpipe.makespan) == (101 * 3.5, 101 * 3)


def test_a_long_step_of_no_time_at_all_keeps_its_operations() -> None:
    nothing = simulate_long(lambda M: order("1f1b", 2, M), 2, 100, Times(0, 0, 0))

    assert (len(nothing.expand().entries.start), nothing.makespan, nothing.bubble_share) == (400, 0, 0)


def test_seconds_become_ticks_to_the_nearest() -> None:
    times = Times([0.0101, 0.02], 0.01, 0.005, first=Extra(0.001), send=1e-6, message_bytes=1_000_000, byte=1e-11)
    ticks = times.in_ticks(1e-6)

    assert (ticks.forward, ticks.input_gradient, ticks.first) == ([10100, 20000], 10000, Extra(1000, 0, 0))
    assert (ticks.send, ticks.message_bytes, ticks.byte, ticks.pair) == (1, 10, 1, None)
    whole, real = (simulate(order("1f1b", 2, 4), each).makespan for each in (ticks, times))
    assert whole * 1e-6 == pytest.approx(real)
    assert {field.name for field in fields(Times)} == set(vars(ticks))


# --- work -----------------------------------------------------------------------------------------------------------


def test_64_ranks_512_micro_batches_and_2_chunks_take_a_step_of_the_walk_a_slot() -> None:
    made = order("interleaved", 64, 512, 2)
    read = program(made)
    walk = _Walk(read, load(read, Times(1, 1, 0).table(made.depth)))
    steps = 0
    while walk.step():
        steps += 1

    assert steps == 2 * (2 * 512 + 63)  # as many as the makespan has slots, for 131,072 operations
    assert len(read.rank) == 131_072
