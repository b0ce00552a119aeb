"""A pipeline that was run, as far as it needs no torch: its replay, its pictures, its record, and what it asks."""

import json
import random
import xml.etree.ElementTree as ET
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import outlay
from outlay.bill import Bill, case_of
from outlay.cli.flags import Given
from outlay.cli.pipelining import read_pacing, read_pictures, write_pictures
from outlay.cli.values import Faults
from outlay.formats.perfetto_timeline import timelines_trace
from outlay.schedule.executed import Spans, drawn, in_pairs, measured, one_by_one, replayed
from outlay.schedule.orders import names, order
from outlay.schedule.passes import Operation, Order, Pair
from outlay.schedule.timeline import simulate
from outlay.schedule.times import Times
from outlay.show.diagram.html import html_of_two
from outlay.show.diagram.two import svg_of_two
from outlay.show.pipeline import charts_of
from outlay.show.schema import OUTPUT_SCHEMAS
from outlay.show.text import Style, percent
from outlay.show.verified import verified_lines, verified_record
from outlay.verify.comparison import Comparison
from outlay.verify.launched import LAUNCHED, answers
from outlay.verify.pipelines.run import HOP, PipelineRun, Planned, not_started, seconds_of
from outlay.verify.subject import Checked, Pacing
from outlay.verify.verified import Verified
from test_diagram import SVG, read_trace
from test_json import faults

MS = 1_000_000  # ns
TWO_CHUNKS = ("interleaved", "looped_bfs", "interleaved_zb", "hanayo")
ONCE = [name for name in names() if name != "dualpipe"]  # schedules of one model


def made(name: str, pp: int = 4, micro_batches: int = 8) -> Order:
    return order(name, pp, micro_batches, 2 if name in TWO_CHUNKS else 1)


def halves(operation: Operation) -> tuple[Any, ...]:
    return operation if isinstance(operation, Pair) else (operation,)


def randomly(of: Order, seed: int) -> list[list[int]]:
    """A length for each pass."""
    chance = random.Random(seed)
    return [[chance.randint(MS, 9 * MS) for each in row for _ in halves(each)] for row in of.ranks]


def spans_of(lengths: list[list[int]]) -> Spans:
    """Passes of these lengths, wherever they begin."""
    return [[(7 * at, 7 * at + length) for at, length in enumerate(row)] for row in lengths]


def longest_path(of: Order, lengths: list[list[int]], hop: int) -> int:
    """The makespan, from the last pass of each rank back through what it needs; a pair's passes give at its end."""
    passes: list[list[Any]] = [[each for operation in row for each in halves(operation)] for row in of.ranks]
    given = {}
    for rank, row in enumerate(of.ranks):
        at = -1
        for operation in row:
            at += len(halves(operation))
            for kind, stage, batch in halves(operation):
                given["B" if kind in "BI" else kind, stage, batch] = (rank, at)

    @cache
    def end(rank: int, at: int) -> int:
        begin = end(rank, at - 1) if at else 0
        kind, stage, batch = passes[rank][at]
        need = {"F": ("F", stage - 1, batch), "W": None}.get(kind, ("B", stage + 1, batch))
        if need in given:
            begin = max(begin, end(*given[need]) + hop) if given[need][0] != rank else begin
        return begin + lengths[rank][at]

    return max(end(rank, len(row) - 1) for rank, row in enumerate(passes))


@pytest.mark.parametrize("name", ONCE)
@pytest.mark.parametrize("seed", range(3))
def test_a_replay_is_the_longest_path_through_what_was_measured(name: str, seed: int) -> None:
    of = made(name)
    lengths = randomly(of, seed)

    assert replayed(of, spans_of(lengths), MS).makespan == longest_path(of, lengths, MS)


@pytest.mark.parametrize("name", ONCE)
def test_a_step_as_it_was_drawn_replays_to_its_own_makespan(name: str) -> None:
    of = made(name)
    line = drawn(of, Times(10 * MS, 11 * MS, 12 * MS))
    spans = [list(zip(track.start.tolist(), track.end.tolist())) for track in line.ranks]

    assert replayed(of, spans, 0).makespan == line.makespan
    seen = measured(of, [[(start + 5, end + 5) for start, end in row] for row in spans])
    assert seen.makespan == line.makespan and seen.bubble_share == line.bubble_share
    assert [track.idle_by_cause for track in seen.ranks] == [track.idle_by_cause for track in line.ranks]


@pytest.mark.parametrize("name", ONCE)
def test_passes_in_turn_are_never_later_than_pairs_and_without_pairs_the_same(name: str) -> None:
    """A pair waits for what both its passes need."""
    of, times = made(name), Times(10 * MS, 11 * MS, 12 * MS)
    line, paired, free = drawn(of, times), simulate(of, times), simulate(one_by_one(of), times)

    assert free.makespan <= line.makespan <= paired.makespan
    assert (free.makespan == paired.makespan) == (name != "dualpipe_v")


def test_a_pair_runs_one_pass_after_the_other() -> None:
    of = made("dualpipe_v")
    apart = one_by_one(of)

    assert in_pairs(of) and not in_pairs(apart)
    assert [halves(each) for each in apart.ranks[0]][:99] == [(half,) for each in of.ranks[0] for half in halves(each)]


# --- what is asked of the stages ------------------------------------------------------------------------------------


def planned(name: str = "1f1b", model: str = "deepseek-v2-lite", operation: float = 0.1) -> Planned:
    layout = outlay.Layout(pp=4, schedule=name, vpp=2 if name in ("interleaved", "zbv", "dualpipe_v") else 1)
    job, cluster = outlay.Job(sequence_length=4096, precision="bf16"), outlay.load_cluster("64xh100-sxm")
    case = case_of(outlay.load_model(model), job, cluster, layout, "fsdp2-uncompiled")[0]
    of = made(name)
    return Planned(of, int(layout.vpp), seconds_of(case, of, operation), Pacing(operation))


@pytest.mark.parametrize("name", ["1f1b", "interleaved", "zb_h1", "zbv", "dualpipe_v"])
def test_an_operation_lasts_as_asked_in_the_mean(name: str) -> None:
    plan = planned(name, operation=0.25)
    lasts = {"F": (0,), "B": (1, 2), "I": (1,), "W": (2,)}
    took = [
        sum(plan.seconds[stage][part] for part in lasts[kind])
        for row in plan.order.ranks
        for each in row
        for kind, stage, _ in halves(each)
    ]

    assert sum(took) / len(took) == pytest.approx(0.25)


def test_stages_last_in_the_proportions_of_their_bill() -> None:
    """DeepSeek-V2-Lite: the first stage has a dense layer, the last one the head, whose backward pass is twice it."""
    bill = outlay.count(
        outlay.load_model("deepseek-v2-lite"), outlay.Job(sequence_length=4096, precision="bf16"),
        outlay.load_cluster("64xh100-sxm"), outlay.Layout(pp=4), "fsdp2-uncompiled",
    )  # fmt: skip
    whole = [sum(each) for each in planned().seconds]

    assert bill.layout.pp == len(whole) == 4
    assert len({round(each, 6) for each in whole}) > 1
    assert max(whole) == whole[-1]


@pytest.mark.parametrize(
    ("of", "cores", "words"),
    [
        (made("1f1b", 16), 2, "16 ranks, and this machine starts 8 at most"),
        (order("dualpipe", 4, 8), 8, "holds it twice"),
        (made("1f1b", 16), 4, ""),
    ],
)
def test_what_cannot_be_started_says_why(of: Order, cores: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    monkeypatch.delenv("RANK", raising=False)
    why = not_started(of)

    assert words in why and bool(words) == bool(why)


def test_ranks_that_torchrun_started_are_as_many_as_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    for name in LAUNCHED:
        monkeypatch.setenv(name, "1")

    assert not_started(made("1f1b", 16)) == ""
    assert not answers()  # rank 1


# --- what is said and drawn -----------------------------------------------------------------------------------------


def run_of(name: str = "1f1b", late: int = MS) -> PipelineRun:
    """A run in which every pass takes a little longer than asked."""
    plan = planned(name)
    line = simulate(one_by_one(plan.order), Times(*map(list, zip(*plan.seconds))).in_ticks(1e-9))
    spans = [
        [(start + late * at, end + late * (at + 1)) for at, (start, end) in enumerate(zip(track.start, track.end))]
        for track in line.ranks
    ]
    spans = [[(int(start), int(end)) for start, end in row] for row in spans]
    seen = measured(plan.order, spans)
    replay = replayed(plan.order, spans, round(HOP * 1e9))
    return PipelineRun(plan, "gloo", (seen.makespan * 1e-9, 3.0), plan.diagram, seen, replay, (1.0,), (1.0,))


def bill() -> Bill:
    job, cluster = outlay.Job(sequence_length=4096, precision="bf16"), outlay.load_cluster("64xh100-sxm")
    return outlay.count(outlay.load_model("deepseek-v2-lite"), job, cluster, outlay.Layout(pp=4), "fsdp2-uncompiled")


BOUND = Checked("pipeline", Comparison("diagram", 99.0, 100.04, "ms", least=True), 0)
BROKEN = Checked("pipeline", Comparison("diagram", 101.0, 100.0, "ms", least=True), 0)
REPLAY = Checked("pipeline", Comparison("replay", 99.0, 100.0, "ms"), 0.05)


def text_of(found: Verified) -> str:
    return " ".join(" ".join(verified_lines(bill(), found, Style(), ("x.svg",))).split())


def test_the_answer_says_what_ran_and_both_idle_shares() -> None:
    run = run_of("dualpipe_v")
    said = text_of(Verified((BOUND, REPLAY), (), (), run))

    assert said.startswith("AGREES 2 of 2")
    assert "PIPELINE dualpipe_v, 4 ranks with 2 chunks each, 8 micro-batches, on gloo: stages that sleep" in said
    assert f"idle {percent(run.diagram.bubble_share)} in the diagram, {percent(run.measured.bubble_share)}" in said
    assert "one after the other" in said and "WROTE x.svg" in said
    assert "diagram, ms 99.0 100.0 0.989604 not below" in said
    assert "replay, ms 99.0 100.0 0.990000 within 5.00 %" in said


def test_a_measured_step_that_is_shorter_than_its_diagram_disagrees() -> None:
    assert text_of(Verified((BROKEN,), (), (), run_of())).startswith("DISAGREES 1 of 1")


def test_the_schema_holds_with_a_pipeline() -> None:
    record = json.loads(json.dumps(verified_record(bill(), Verified((BOUND,), (), (), run_of("zbv")), ("x.svg",))))

    assert faults(OUTPUT_SCHEMAS["verify"](), record) == []
    assert len(record["pipeline"]["measured"]["operations"]) == 4 * 2 * 8 * 3
    assert record["pipeline"]["hop_seconds"]["value"] == 0.001
    assert faults(OUTPUT_SCHEMAS["verify"](), record | {"pipeline": {"schedule": "zbv"}}) != []


@pytest.mark.parametrize("name", ["1f1b", "dualpipe_v"])
def test_predicted_stands_above_measured_with_one_scale_of_time(name: str) -> None:
    upper, lower = charts_of("a <model>", run_of(name, 40 * MS))
    root = ET.fromstring(svg_of_two(upper, lower))
    texts = [each.text or "" for each in root.iter(f"{SVG}text")]

    assert upper.makespan < lower.makespan and not lower.critical
    assert sum(text.startswith(("Diagram: ", "Measured: ")) for text in texts) == 2
    assert texts.count("rank 3") == 2
    moved = [each for each in root.iter(f"{SVG}g") if "translate(0 " in each.get("transform", "")]
    marks = Counter((each.text, each.get("x")) for each in root.iter(f"{SVG}text") if each.get("class") == "m")
    assert len(moved) == 1 and set(list(marks.values())[:4]) == {2}  # each time of the axis twice at one place
    page = html_of_two(upper, lower)
    assert page.count("<caption>") == 2 and "<model>" not in page


def test_a_trace_of_both_has_every_rank_twice_and_every_message_once() -> None:
    run = run_of()
    tracks, events, _ = read_trace(timelines_trace({"diagram": run.diagram, "measured": run.measured}, 1.0))
    processes = {name.partition(" compute")[0] for name in tracks.values() if name.endswith("compute")}

    assert processes == {f"{name}, rank {rank}" for name in ("diagram", "measured") for rank in range(4)}
    flows = [flow for *_, event in events for flow in event.get(47, [])]
    assert len(flows) == len(set(flows)) == 2 * (2 * 3 * 8)


def test_files_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    paths = {name: str(tmp_path / f"x.{name}") for name in ("svg", "html", "perfetto")}
    taken = tmp_path / "x.svg"
    taken.write_text("mine")
    found = Faults()

    assert write_pictures(Given({}), paths, "m", Verified((), (), ())) == ()
    read_pictures(Given(paths), ("pipeline",), found)
    assert [fault.code for fault in found.found] == ["OUT001"] and taken.read_text() == "mine"
    assert write_pictures(Given({"force": True}), paths, "m", Verified((), (), (), run_of())) == tuple(paths.values())
    assert {path.name for path in tmp_path.iterdir()} == {"x.svg", "x.html", "x.perfetto"}
    assert taken.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("flags", "only", "codes"),
    [
        ({"operation": "50ms", "stages": "compute"}, ("pipeline",), []),
        ({"operation": "50ms"}, ("flops",), ["VER011"]),
        ({"svg": "x.svg"}, (), ["VER011"]),
        ({"stages": "snooze"}, ("pipeline",), ["VER012"]),
        ({"operation": "2h"}, ("pipeline",), ["UNI002"]),
        ({"operation": "61"}, ("pipeline",), ["VER013"]),
        ({"operation": "0ms"}, ("pipeline",), ["UNI002"]),
    ],
)
def test_what_is_asked_of_a_run_is_read_with_all_its_faults(
    flags: dict[str, Any], only: tuple[str, ...], codes: list[str]
) -> None:
    found = Faults()
    pacing = read_pacing(Given(flags), only, found)

    assert [fault.code for fault in found.found] == codes
    if not codes:
        assert pacing == Pacing(0.05, True)
