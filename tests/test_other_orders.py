"""Other orders of passes for the best pipelines of a plan: what they take and hold, and those that are sought."""

import csv
import io
import json
import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay import InputError, Job, Layout, count, load_cluster, load_model, plan
from outlay.bill import Loaded, case_of, load
from outlay.cli.main import main
from outlay.errors import Fault
from outlay.over_time import over_time
from outlay.schedule.orders import facts, names, order
from outlay.schedule.timeline import simulate
from outlay.schedule.times import TICK
from outlay.search.fitting import limits
from outlay.search.orders.plan import SOUGHT, Orders, Reordered, reorder
from outlay.search.orders.sought import Sought, room, seek_in_room
from outlay.search.orders.standing import Way, standing, unlike, way_of, ways
from outlay.search.plan import Plan
from outlay.search.retimed import retime
from outlay.simulated import run, seconds_around, times_of

WORDS = ["llama-3.1-8b", "--on", "16xh100-sxm", "--seq", "8192", "--batch", "32", "--tp", "2", "--pp", "4"]
ALONE = ("dualpipe", "chimera", "gems", "seq1f1b", "bpipe", "pipedream", "pipedream_2bw")


@cache
def found(pp: int = 4) -> Plan:
    """A plan whose layouts have pipelines."""
    job = Job(sequence_length=8192, global_batch=32)
    return plan(load_model("llama-3.1-8b"), job, load_cluster("16xh100-sxm"), best=40, tp=(2, 4), pp=(pp,), vpp=(1, 2))


@cache
def orders(wanted: tuple[str, ...] = (*names(), SOUGHT), seconds: float = 3.0) -> Orders:
    """Its pipelines in these orders."""
    return reorder(found(), wanted, seconds)


def loaded(pp: int, vpp: int = 1, batch: int = 32, on: str = "16xh100-sxm", model: str = "llama-3.1-8b") -> Loaded:
    """A layout of so many stages."""
    job = Job(sequence_length=8192, global_batch=batch)
    return load(case_of(load_model(model), job, load_cluster(on), Layout(tp=2, pp=pp, vpp=vpp))[0])


def of(name: str) -> list[Reordered]:
    """What was run in an order."""
    return [each for each in orders().ranking if each.order == name]


# --- what each takes and holds --------------------------------------------------------------------------------------


def test_its_own_order_takes_what_the_simulated_ranking_says() -> None:
    again = {each.place: each.seconds for each in retime(found()).ranking}
    own = [each for each in orders().ranking if each.own]

    assert len(own) >= 2
    assert {each.place: each.seconds for each in own} == {each.place: again[each.place] for each in own}
    assert {each.layout for each in own} == {found().best[each.place - 1].layout for each in own}


@pytest.mark.parametrize("name", ["gpipe", "zb_h1", "zbv", "v_half", "v_min", "1f1b_v", "hanayo"])
def test_an_order_takes_as_long_as_its_passes_run_one_by_one(name: str) -> None:
    for each in of(name):
        ranked = found().best[each.place - 1]
        case = standing(ranked.case, each.way)
        own = case_of(found().model, found().job, found().cluster, ranked.layout)[0]
        assert case is not None
        here = standing(own, each.way)
        assert here is not None
        line = simulate(order(name, 4, int(here.micro_batches), each.way.chunks), times_of(here).in_ticks(TICK))
        assert each.seconds == pytest.approx(line.makespan * TICK + seconds_around(load(here)), abs=1e-9)
    assert of(name)


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "interleaved", "interleaved_zb", "zb_h1", "zbv"])
def test_an_order_holds_what_the_bill_of_its_layout_says(name: str) -> None:
    """Where a schedule has a closed form, the peak of the passes one by one is that of the bill."""
    for each in of(name):
        ranked = found().best[each.place - 1]
        at = replace(each.layout, schedule=name)  # type: ignore[arg-type]
        bill = count(found().model, found().job, found().cluster, at, found().engine)
        alike = 0.005 if each.layout.recompute != "full" else 0.02  # here the layers of one chunk, there of any
        assert each.peak_bytes == pytest.approx(bill.memory.peak_bytes, rel=alike)
        assert (bill.derived.micro_batches, at.pp) == (ranked.bill.derived.micro_batches, ranked.layout.pp)
    assert of(name)


def test_the_fastest_that_fits_is_first_and_those_that_do_not_fit_are_last() -> None:
    ranking = orders().ranking
    fits = [each.fits for each in ranking]

    assert fits == sorted(fits, reverse=True)
    fitting = [each.seconds for each in ranking if each.fits]
    assert fitting == sorted(fitting)
    case = case_of(found().model, found().job, found().cluster, found().best[0].layout)[0]
    assert all((each.peak_bytes <= limits(case).fits) == each.fits for each in ranking)


def test_what_cannot_stand_on_the_stages_of_a_layout_is_left_out_with_its_reason() -> None:
    assert {name for name in names() if unlike(name)} == set(ALONE)
    assert {name for name, _ in orders().left_out} == set(ALONE)
    assert {each.order for each in orders().ranking} >= set(names()) - set(ALONE) - {"zb_h2"}


def test_layers_that_chunks_do_not_divide_are_cut_with_both_ends_as_a_layer() -> None:
    """Llama-405B has 126 layers: 32 chunks of 4, but the first and the last of 3."""
    case = loaded(16, on="512xh100-sxm", model="llama-3.1-405b", batch=64).case
    made = standing(case, Way(2, True))

    assert made is not None
    assert made.layout.split == (3, *[4] * 30, 3)
    assert standing(loaded(4).case, Way(64)) is None


@pytest.mark.parametrize("name", [name for name in names() if name not in ALONE])
def test_chunks_stand_where_the_order_has_them(name: str) -> None:
    way = way_of(name, loaded(4).case.layout)
    case = standing(loaded(4).case, way)
    made = order(name, 4, 16, way.chunks)

    assert case is not None
    costs = load(case).every
    held = [[made.rank_of(stage) for stage in range(made.depth)].index(rank) for rank in range(4)]
    assert held == [0, 1, 2, 3]
    head = made.rank_of(made.depth - 1)
    assert [float(stage.head) for stage in costs] == [float(rank == head) for rank in range(4)]
    assert facts(name).head_ranks(4) == (head,)


# --- orders that are sought -----------------------------------------------------------------------------------------


@given(pp=st.sampled_from([2, 4]), way=st.integers(0, 2), batch=st.sampled_from([16, 24, 64]))
@settings(max_examples=12, deadline=None)
def test_an_order_that_is_sought_fits_and_is_no_slower_than_a_schedule_that_holds_no_more(
    pp: int, way: int, batch: int
) -> None:
    start = loaded(pp, batch=batch)
    stands = ways(start.case.layout)[way]
    case = standing(start.case, stands)
    assert case is not None
    here = load(case)
    most = room(here)
    answer = seek_in_room(here, stands, 0.3)
    over = over_time(here, answer.run)

    assert max(rank.peak.bytes + rank.buffers for rank in over.ranks) <= limits(case).fits
    assert max(answer.run.timeline.peak_in_flight) <= most
    passes = answer.run.timeline.makespan * TICK
    assert all(taken >= passes - 1e-9 for _, taken in answer.named)
    assert answer.bound <= answer.run.seconds
    busiest = max(rank.idle for rank in answer.run.timeline.ranks)
    assert busiest < answer.run.timeline.makespan


def test_room_is_the_memory_that_is_left_over_the_largest_chunk() -> None:
    """The bills of GPipe are the oracle: each micro-batch more adds one more to what every rank holds."""
    here = loaded(4, batch=64, model="llama-2-7b")
    most = int(room(here))
    bills = [
        count(
            here.case.model,
            replace(here.case.job, global_batch=2 * held),
            here.case.cluster,
            replace(here.case.layout, schedule="gpipe"),
        )
        for held in (most, most + 1)
    ]

    assert 4 < most < 64
    assert [bill.derived.micro_batches for bill in bills] == [most, most + 1]
    before, after = ([rank.peak_bytes for rank in bill.memory.ranks[:-1]] for bill in bills)  # the last has logits
    assert max(before) <= limits(here.case).fits < max(after)


def test_a_schedule_that_is_as_short_stands_for_the_order_that_was_sought() -> None:
    sought = [each for each in orders().ranking if each.held is not None]

    assert sought
    for each in of(SOUGHT):
        alike = [one for one in orders().ranking if (one.place, one.way, one.fits) == (each.place, each.way, True)]
        assert min(alike, key=lambda one: one.seconds) == each


def test_more_time_is_never_asked_for_an_order_that_cannot_be_the_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches whose lower bound is above what a schedule takes are not begun."""
    from outlay.search.orders import plan as of_plan

    begun: list[float] = []

    def counting(here: Loaded, way: Way, seconds: float) -> Sought:
        begun.append(seconds)
        return seek_in_room(here, way, 0.1)

    monkeypatch.setattr(of_plan, "seek_in_room", counting)
    made = reorder(found(), ("gpipe", SOUGHT), 600.0)
    pipelines = len({each.place for each in made.ranking})
    assert 0 < len(begun) <= 3 * pipelines

    begun.clear()
    reorder(found(), (*names(), SOUGHT), 600.0)
    assert len(begun) < pipelines


def test_an_interrupt_keeps_what_is_run() -> None:
    def stop(done: int, most: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    made = reorder(found(), names(), 1.0, stop)

    assert made.stopped
    assert len(made.ranking) == 3


def test_without_a_pipeline_there_is_nothing_to_order() -> None:
    job = Job(sequence_length=8192, global_batch=32)
    flat = plan(load_model("llama-3.1-8b"), job, load_cluster("16xh100-sxm"), best=3, pp=(1,))

    assert reorder(flat, (*names(), SOUGHT), 1.0).ranking == ()


# --- the commands ---------------------------------------------------------------------------------------------------


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


PLAN = ["plan", "llama-3.1-8b", "--on", "16xh100-sxm", "--seq", "8192", "--batch", "32", "--pp", "4", "--best", "3"]


def test_a_plan_says_which_order_is_the_fastest_that_fits(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = asked(capsys, *PLAN, "--orders", "zbv,v_min,chimera")

    assert (code, err) == (0, "")
    part = out[out.index("ORDERS") :]
    assert "pass by pass, zbv" in part
    assert "not run: chimera: it holds two copies of the weights" in " ".join(part.split())
    assert "as the plan has it" in part


def test_json_has_every_order_and_who_runs_it(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = asked(capsys, *PLAN, "--orders", "all", "--time-limit", "1s", "--json")
    part = json.loads(out)["orders"]

    assert {each["order"] for each in part["ranking"]} >= {"v_half", "zbv", "zb_h1"}
    assert {each["order"]: each["engines"] for each in part["ranking"]}["v_half"] == []
    assert "fsdp2" in {each["order"]: each["engines"] for each in part["ranking"]}["zbv"]
    assert set(part["left_out"]) == set(ALONE)
    assert all((each["held"] is None) or each["held"] >= 1 for each in part["ranking"])
    assert "orders" not in json.loads(asked(capsys, *PLAN, "--json")[1])


@pytest.mark.parametrize(
    ("words", "code", "fix"),
    [
        (["--orders", "v_haf"], "PLN011", "--orders v_half"),
        (["--orders", "1f1b, nothing"], "PLN011", "--orders"),
        (["--orders", ""], "PLN011", "--orders all"),
        (["--orders", "best", "--time-limit", "soon"], "UNI", ""),
        (["--time-limit", "3s"], "PLN003", "--orders best"),
        (["--orders", "zbv", "--time-limit", "3s"], "PLN003", "--orders best"),
        (["--orders", "all,zbv"], "PLN011", "--orders all"),
    ],
)
def test_words_that_are_no_orders_are_refused(
    capsys: pytest.CaptureFixture[str], words: list[str], code: str, fix: str
) -> None:
    ended, out, err = asked(capsys, *PLAN, *words)

    assert (ended, out) == (2, "")
    assert code in err and fix in err


def test_a_layout_is_drawn_in_an_order_that_no_engine_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = asked(capsys, "draw", *WORDS, "--schedule", "v_half", "--json")
    bubble = json.loads(out)

    assert (code, err) == (0, "")
    assert bubble["schedule"] == "v_half"
    case = standing(loaded(4).case, Way(2, True))
    assert case is not None
    line = run(load(case), lambda some: order("v_half", 4, some)).timeline
    assert bubble["makespan"] == pytest.approx(line.makespan * TICK)


def test_the_best_order_of_a_layout_is_written_for_the_runtime_of_torch(
    capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    words = ["draw", *WORDS, "--schedule", "best", "--vpp", "1", "--time-limit", "1s"]
    code, out, _ = asked(capsys, *words, "--csv", "-")
    _, told, _ = asked(capsys, *words, "--json")
    rows = list(csv.reader(io.StringIO(out)))
    record = json.loads(told)["sought"]

    assert code == 0
    assert len(rows) == 4
    held = np.cumsum([(cell[1] == "F") - (cell[1] in "WB") for cell in rows[0]])
    assert held.max() <= record["memory_cap"] == room(loaded(4))
    assert record["bound"] <= record["makespan"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--schedule", "chimera"], "DRW002"),
        (["--schedule", "best", "--memory-cap", "0.2"], "SCH053"),
        (["--schedule", "v_half", "--split", "3,10,10,9"], "LAY009"),
        (["--schedule", "best", "--memory-cap", "much"], "UNI001"),
        (["--schedule", "best", "--vpp", "64"], "LAY010"),
        (["--schedule", "v_min", "--vpp", "4"], "SCH003"),
        (["--schedule", "1f1b", "--memory-cap", "4"], "DRW002"),
        (["--schedule", "v_min", "--memory-cap", "4"], "DRW002"),
    ],
)
def test_an_order_that_a_layout_cannot_have_is_refused(
    capsys: pytest.CaptureFixture[str], words: list[str], code: str
) -> None:
    ended, out, err = asked(capsys, "draw", *WORDS, *words)

    assert (ended, out) == (2, "")
    assert code in err


def test_memory_without_room_for_a_micro_batch_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["draw", "llama-3.1-8b", "--on", "8xh100-sxm", "--seq", "8192", "--batch", "8", "--schedule", "best"]
    code, out, err = asked(capsys, *words, "--pp", "1")

    assert (code, out) == (2, "")
    assert "SCH054" in err and "--recompute full" in err


def test_a_split_is_that_of_the_chunks_it_is_given_for(capsys: pytest.CaptureFixture[str]) -> None:
    even = json.loads(asked(capsys, "draw", *WORDS, "--schedule", "v_half", "--json")[1])
    words = ["draw", *WORDS, "--schedule", "V_half", "--split", "1,4,4,4,4,4,4,7", "--json"]
    uneven = json.loads(asked(capsys, *words)[1])

    assert uneven["makespan"] > 1.03 * even["makespan"]


def test_layers_that_are_recomputed_are_shared_by_the_chunks_of_their_stage() -> None:
    """As many layers run again with two chunks a rank as with one: the backward pass of a stage takes as long."""
    job, at = Job(sequence_length=8192, global_batch=32), Layout(tp=2, pp=4, recompute="full", recompute_layers=4)
    case = case_of(load_model("llama-3.1-8b"), job, load_cluster("16xh100-sxm"), at)[0]
    whole = [sum(times_of(case).recompute[stage] for stage in range(4))]
    for way in (Way(2), Way(2, True), Way(4)):
        made = standing(case, way)
        assert made is not None
        whole.append(sum(times_of(made).recompute))

    assert whole == pytest.approx([whole[0]] * 4)


def test_a_fault_goes_from_a_worker_to_its_parent() -> None:
    fault = Fault("SWP012", "what", "rule", "got", "fix")

    assert pickle.loads(pickle.dumps(InputError(fault, fault))).faults == (fault, fault)


def test_a_layout_that_breaks_a_rule_of_its_own_is_not_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = asked(capsys, "draw", *WORDS[:-4], "--tp", "3", "--pp", "4", "--schedule", "v_half")

    assert code == 1
    assert "LAY003" in out
