"""A strategy for each layer: the program against every choice and a MILP, the counts against bills, what it gains."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from models import DEEPSEEK_V3, LLAMA_7B, LLAMA_8B, LLAMA_70B, MIXTRAL, layouts
from outlay import Cluster, InputError, Job, Layout, Model, count, load_cluster, load_model
from outlay.bill import case_of
from outlay.memory.states import dummy_bytes, library_bytes
from outlay.search.fitting import allocatable, limits
from outlay.search.mixed.best import Mixes, best_mixes, plain
from outlay.search.mixed.chain import Layer, Option, cheapest
from outlay.search.mixed.ground import Ground
from outlay.search.mixed.plan import best_of_plan
from outlay.search.mixed.program import Program
from outlay.search.mixed.relayout import relayout_bytes, relayout_seconds, standing_bytes
from outlay.search.mixed.stages import Counted, Mixing
from outlay.search.mixed.strategies import Strategy, degrees, under
from outlay.search.mixed.whole import counted, fastest, step_seconds_of, value
from outlay.search.plan import plan
from outlay.search.recompute.stages import recompute

Array = NDArray[Any]
FULL, NONE = "full", "none"


# --- the program against every choice, and a MILP ---------------------------------------------------------------------


def spent(chunks: Sequence[Sequence[Layer]], chosen: Sequence[int], switch: Array) -> tuple[float, int]:
    """Cost and units of a choice, from the definition: every chunk begins and ends in state 0."""
    cost, units, at = 0.0, 0, 0
    for chunk in chunks:
        state = 0
        for layer in chunk:
            option = layer[chosen[at]]
            cost, units = cost + switch[state, option.state] + option.cost, units + option.units
            state, at = option.state, at + 1
        cost += switch[state, 0]
    return float(cost), units


@st.composite
def chains(draw: st.DrawFn) -> tuple[list[list[Layer]], Array, int]:
    """4 to 7 layers with 2 to 4 strategies of up to three states, in one or two chunks, under a limit."""
    layers, options = draw(st.integers(4, 7)), draw(st.integers(2, 4))
    states = draw(st.integers(1, 3))
    option = st.builds(Option, st.integers(0, 6), st.integers(0, 20).map(float), st.integers(0, states - 1))
    found = [tuple(draw(st.lists(option, min_size=options, max_size=options))) for _ in range(layers)]
    costs = draw(st.lists(st.integers(0, 9), min_size=states**2, max_size=states**2))
    switch = np.reshape(np.asarray(costs, float), (states, states)) * (1 - np.eye(states))
    cut = draw(st.integers(1, layers))
    return [found[:cut], found[cut:]], switch, draw(st.integers(0, 30))


@settings(max_examples=120, deadline=None)
@given(chains())
def test_the_program_finds_the_least_cost_of_every_choice(chain: tuple[list[list[Layer]], Array, int]) -> None:
    chunks, switch, most = chain
    layers = [layer for chunk in chunks for layer in chunk]
    every = (spent(chunks, chosen, switch) for chosen in product(*(range(len(layer)) for layer in layers)))
    best = min((each for each in every if each[1] <= most), default=None)
    found = cheapest(chunks, switch, most)

    assert (spent(chunks, found, switch) if found else None) == best  # of the same cost the fewest units


def milp_cost(layers: Sequence[Layer], switch: Array, most: int) -> float | None:
    """The same as a mixed-integer program: one option a layer, one pair of states a boundary."""
    states, sizes = len(switch), [len(layer) for layer in layers]
    starts, pairs = np.cumsum([0, *sizes]), states**2
    many = int(starts[-1])
    costs = np.concatenate(
        [[each.cost for layer in layers for each in layer], np.tile(switch.ravel(), len(layers) + 1)]
    )
    rows, low, high = [], [], []

    def held(row: Array, least: float, top: float) -> None:
        rows.append(row), low.append(least), high.append(top)

    for place, layer in enumerate(layers):
        row = np.zeros(len(costs))
        row[starts[place] : starts[place + 1]] = 1
        held(row, 1, 1)
        for state in range(states):
            for boundary, axis in ((place, 1), (place + 1, 0)):  # into this layer, and out of it
                row = np.zeros(len(costs))
                flow = np.zeros((states, states))
                flow[(slice(None), state) if axis else (state, slice(None))] = 1
                row[many + boundary * pairs : many + (boundary + 1) * pairs] = flow.ravel()
                for at, option in enumerate(layer):
                    row[starts[place] + at] -= option.state == state
                held(row, 0, 0)
    for boundary, axis in ((0, 0), (len(layers), 1)):  # begins and ends in state 0
        row = np.zeros(len(costs))
        flow = np.zeros((states, states))
        flow[(0, slice(None)) if axis == 0 else (slice(None), 0)] = 1
        row[many + boundary * pairs : many + (boundary + 1) * pairs] = flow.ravel()
        held(row, 1, 1)
    units = [each.units for layer in layers for each in layer]
    held(np.concatenate([units, np.zeros(len(costs) - many)]), 0, most)
    found = milp(costs, constraints=LinearConstraint(np.asarray(rows), low, high), integrality=1, bounds=Bounds(0, 1))
    return float(found.fun) if found.success else None


@pytest.mark.parametrize("seed", range(50))
def test_the_program_agrees_with_a_mixed_integer_program(seed: int) -> None:
    random = np.random.default_rng(seed)
    count_of, states = int(random.integers(8, 25)), int(random.integers(1, 4))
    layers = [
        tuple(
            Option(int(random.integers(0, 12)), float(random.integers(1, 40)), int(random.integers(0, states)))
            for _ in range(random.integers(2, 6))
        )
        for _ in range(count_of)
    ]
    switch = random.integers(0, 15, (states, states)) * (1.0 - np.eye(states))
    most = int(random.integers(0, 6 * count_of))
    found, other = cheapest([layers], switch, most), milp_cost(layers, switch, most)

    assert (found is None) == (other is None)
    if found is not None and other is not None:
        cost, units = spent([layers], found, switch)
        assert cost == pytest.approx(other, abs=1e-6)
        assert units <= most


# --- the counts against bills -----------------------------------------------------------------------------------------


def mixing_of(model: Model, job: Job, cluster: Cluster, layout: Layout, engine: str, *ways: Strategy) -> Mixing:
    case = case_of(model, job, cluster, plain(layout), engine)[0]
    own = ways or (Strategy(case.layout.tp),)
    return Mixing(Ground(case, own), Strategy(case.layout.tp))


def alike(mixing: Mixing, way: Strategy) -> tuple[tuple[Strategy, ...], ...]:
    return tuple((way,) * len(place.layers) for place in mixing.places)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(layouts())
def test_one_strategy_is_the_bill(question: tuple[Model, Job, Cluster, Layout, str]) -> None:
    bill = count(*question)
    assume(not bill.violations)
    at = bill.layout
    way = Strategy(at.tp, at.recompute, tuple(at.recompute_modules or ()))
    mixing = mixing_of(*question, way)

    assert value(mixing, alike(mixing, way)) == pytest.approx((bill.step.seconds, bill.memory.peak_bytes), rel=1e-12)


@pytest.mark.parametrize("again", [1, 5, 17, 31])
def test_layers_recomputed_in_part_are_those_of_the_bill(again: int) -> None:
    """Layers of one kind: k of them in full are what --recompute-layers k counts."""
    question = LLAMA_7B, Job(4096, 64), load_cluster("8xa100-sxm-80")
    layout = Layout(micro_batch=2, recompute="full", recompute_layers=again)
    bill = count(*question, layout)
    one, all_of_it = Strategy(1), Strategy(1, FULL)
    mixing = mixing_of(*question, layout, "megatron", one, all_of_it)
    plans = ((all_of_it,) * again + (one,) * (32 - again),)

    assert value(mixing, plans) == pytest.approx((bill.step.seconds, bill.memory.peak_bytes), rel=1e-9)


def test_a_stage_at_two_degrees_holds_the_states_of_both() -> None:
    """Weights 2 and gradients 4 bytes a parameter over tp', 12 over dp' too: ZeRO-1, by definition."""
    cluster = load_cluster("16xh100-sxm")
    two, four = Strategy(2), Strategy(4)
    mixing = mixing_of(LLAMA_8B, Job(4096, 64), cluster, Layout(tp=4, micro_batch=2), "megatron", two, four)
    layer = 218_112_000  # 2 x 4096^2 + 2 x 4096 x 1024 + 3 x 4096 x 14336 + 2 x 4096
    states = {tp: layer * 6 / tp + layer * 12 / 16 for tp in (2, 4)}

    for tp, way in ((2, two), (4, four)):
        assert mixing.ground.layers[0, way].state == pytest.approx(states[tp] + norms_whole(tp), rel=1e-9)
    place = mixing.places[0]
    held, alone = Counted(mixing, place, (four,) * 30 + (two,) * 2), Counted(mixing, place, (four,) * 32)
    stage, case = held.by_degree[1]
    buffers = float(dummy_bytes(stage, case)) - float(library_bytes(stage, case))  # that both degrees have
    more = held.allocated - alone.allocated - (held.tapes - alone.tapes) - (held.moment - alone.moment)
    assert more == pytest.approx(
        2 * (states[2] - states[4]) + 2 * (norms_whole(2) - norms_whole(4)) + buffers, rel=1e-9
    )


def norms_whole(tp: int) -> float:
    """What the two norms of a layer, whole on every rank, have more than if tp cut them."""
    return 2 * 4096 * (6 + 12 / (16 / tp)) - 2 * 4096 * (6 / tp + 12 / 16)


def test_activations_are_laid_out_anew_by_three_gathers() -> None:
    """tp 2 with one sequence to tp 4 with two, under sp: the sequence over 2, over 4, and two groups together."""
    cluster = load_cluster("8xh100-sxm")
    two, four = Strategy(2), Strategy(4)
    mixing = mixing_of(LLAMA_8B, Job(4096, 64), cluster, Layout(tp=4, micro_batch=2), "megatron", two, four)
    small, large = mixing.cases[two], mixing.cases[four]
    one_sequence = 2 * 4096 * 4096  # bytes

    assert (small.layout.micro_batch, small.layout.dp, large.layout.dp) == (1, 4, 2)
    assert relayout_bytes(small, large) == one_sequence / 2 + 2 * one_sequence * 3 / 4 + 2 * one_sequence / 2
    assert relayout_bytes(large, small) == relayout_bytes(small, large)
    assert standing_bytes(small, large) == 3 * one_sequence
    assert relayout_seconds(small, small) == relayout_bytes(small, small) == standing_bytes(small, small) == 0
    assert relayout_seconds(small, large) > relayout_bytes(small, large) / 450e9  # the links' own rate is a floor


def test_degrees_keep_the_ranks_of_a_stage_and_the_tokens_of_a_step() -> None:
    case = case_of(LLAMA_70B, Job(8192, 512), load_cluster("64xh100-sxm"), Layout(tp=4, pp=4, micro_batch=2))[0]

    for tp in degrees(case):
        at = under(case.layout, Strategy(tp))
        assert at.tp * at.dp_shard == case.layout.tp * case.layout.dp_shard
        assert at.micro_batch * at.dp_shard == case.layout.micro_batch * case.layout.dp_shard
        assert not count(LLAMA_70B, Job(8192, 512), load_cluster("64xh100-sxm"), at).violations
    assert degrees(case) == (4, 2, 8)  # tp 1 has half a sequence


# --- the best of all, counted one by one ------------------------------------------------------------------------------


def every_mix(mixing: Mixing) -> Iterator[tuple[float, float]]:
    """Step and peak of every choice of every layer."""
    limit = allocatable(mixing.case)
    stages = [
        [
            found
            for ways in product(mixing.strategies, repeat=len(place.layers))
            if (found := Counted(mixing, place, ways)).allocated <= limit
        ]
        for place in mixing.places
    ]
    for found in product(*stages):
        yield step_seconds_of(mixing, found), max(one.peak for one in found)


@pytest.mark.parametrize(("pp", "cap"), [(1, 0.05), (1, 0.6), (2, 0.3), (2, 0.6), (2, 0.95)])
def test_the_mix_is_the_best_of_every_choice_of_recompute(pp: int, cap: float) -> None:
    model = replace(LLAMA_8B, pattern=(0,) * 4)
    job, layout = Job(8192, 64), Layout(pp=pp, micro_batch=2)
    cluster = capped(model, job, load_cluster("8xh100-sxm"), layout, cap)
    found = best_mixes(model, job, cluster, layout, "megatron", ("recompute",)).best
    assert found
    best = min(every_mix(found.mixing))

    assert found.how == "proved"
    assert found.seconds == pytest.approx(best[0], rel=1e-9)


@pytest.mark.parametrize("cap", [0.1, 0.5, 0.9])
def test_the_mix_of_degrees_is_the_best_of_every_choice(cap: float) -> None:
    model = replace(LLAMA_8B, pattern=(0,) * 4)
    job, layout = Job(8192, 64), Layout(tp=4, micro_batch=4, overlap_dp=False)
    cluster = capped(model, job, load_cluster("8xh100-sxm"), layout, cap, "tp")
    found = best_mixes(model, job, cluster, layout, "megatron", ("tp",)).best
    assert found
    ground = found.mixing.ground
    bases = [Mixing(ground, Strategy(way.tp)) for way in ground.strategies]
    best = min(pair for base in bases for pair in every_mix(base))

    assert len(ground.strategies) >= 3
    assert found.seconds == pytest.approx(best[0], rel=1e-6)


def capped(model: Model, job: Job, cluster: Cluster, layout: Layout, share: float, what: str = "recompute") -> Cluster:
    """The cluster with so much memory that the limit lies between the least and the most that a strategy needs."""
    roomy = replace(cluster, accelerator=replace(cluster.accelerator, memory_bytes=1e13))
    ground = best_mixes(model, job, roomy, layout, "megatron", (what,)).best
    assert ground
    mixing = ground.mixing
    peaks = [max(one.allocated for one in counted(mixing, alike(mixing, way))) for way in mixing.strategies]
    held = min(peaks) + share * (max(peaks) - min(peaks))
    engine = mixing.case.engine
    memory = held * (1 + engine.slack_high) + engine.workspace_high + cluster.accelerator.context_bytes
    return replace(cluster, accelerator=replace(cluster.accelerator, memory_bytes=memory))


QUESTIONS = [
    (model, cards, Layout(tp=tp, pp=pp, ep=ep, micro_batch=mbs, zero=zero), batch, seq)
    for model, cards, tp, pp, ep, mbs, zero, batch, seq in (
        (LLAMA_8B, 8, 1, 1, 1, 2, 1, 64, 4096), (LLAMA_8B, 8, 1, 1, 1, 4, 1, 64, 4096),
        (LLAMA_8B, 8, 2, 1, 1, 4, 2, 64, 8192), (LLAMA_8B, 8, 1, 2, 1, 1, 1, 64, 8192),
        (LLAMA_8B, 16, 2, 2, 1, 2, 1, 128, 8192), (LLAMA_8B, 8, 4, 1, 1, 4, 1, 32, 8192),
        (LLAMA_8B, 8, 4, 2, 1, 2, 0, 32, 4096), (LLAMA_70B, 64, 4, 4, 1, 1, 1, 512, 8192),
        (LLAMA_70B, 64, 8, 4, 1, 4, 1, 512, 8192), (LLAMA_70B, 64, 8, 2, 1, 2, 1, 512, 4096),
        (LLAMA_70B, 64, 4, 8, 1, 2, 1, 256, 8192), (LLAMA_70B, 64, 2, 8, 1, 1, 2, 512, 4096),
        (MIXTRAL, 64, 2, 1, 8, 4, 2, 256, 4096), (MIXTRAL, 64, 4, 2, 4, 4, 1, 256, 4096),
        (MIXTRAL, 64, 1, 4, 8, 1, 1, 256, 8192),
    )
]  # fmt: skip


@pytest.mark.parametrize("what", [("recompute",), ("tp",)], ids=str)
@pytest.mark.parametrize("place", range(len(QUESTIONS)))
def test_a_mix_is_never_slower_than_the_best_uniform_plan_and_fits(place: int, what: tuple[str, ...]) -> None:
    model, cards, layout, batch, seq = QUESTIONS[place]
    cluster, job = load_cluster(f"{cards}xh100-sxm"), Job(seq, batch)
    found = best_mixes(model, job, cluster, layout, "megatron", what)

    if found.uniform:
        bill = count(model, job, cluster, found.uniform.layout)
        assert bill.memory.verdict == "fits" and not bill.violations
        assert bill.step.seconds == pytest.approx(found.uniform.seconds, rel=1e-9)
        assert found.best and found.best.seconds <= found.uniform.seconds * (1 + 1e-12)
    if found.best:
        assert found.best.peak_bytes <= limits(found.best.case).fits
        assert fastest(found.best.mixing) <= found.best.seconds


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(layouts(), st.sampled_from([("recompute",), ("tp",)]), st.sampled_from([80e9, 160e9, 320e9]))
def test_so_it_is_of_any_question(
    question: tuple[Model, Job, Cluster, Layout, str], what: tuple[str, ...], memory: float
) -> None:
    model, job, cluster, layout, engine = question
    cluster = replace(cluster, accelerator=replace(cluster.accelerator, memory_bytes=memory))
    layout = replace(layout, recompute="none")
    assume(what == ("recompute",) or engine != "fsdp2")
    assume(not count(model, job, cluster, layout, engine).violations)
    found = best_mixes(model, job, cluster, layout, engine, what)

    assert found.uniform is None or (found.best and found.best.seconds <= found.uniform.seconds * (1 + 1e-12))
    assert found.best is None or found.best.peak_bytes <= limits(found.best.case).fits


def test_a_mix_of_unequal_layers_is_no_larger_than_memory() -> None:
    layout = Layout(tp=1, pp=16, ep=64, micro_batch=1, split=(4,) * 15 + (1,))
    found = best_mixes(DEEPSEEK_V3, Job(4096, 15360), load_cluster("2048xh100-sxm"), layout, "megatron", ("recompute",))

    assert found.best and found.best.peak_bytes <= limits(found.best.case).fits
    assert len(found.best.ways) > 1
    assert found.uniform is None or found.best.seconds < found.uniform.seconds


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_where_memory_is_just_short_the_fewest_layers_run_again() -> None:
    """k layers in full, k the least that fits: what a bill of each k says."""
    job, cluster, layout = Job(4096, 96), load_cluster("8xa100-sxm-80"), Layout(zero=2, micro_batch=3)
    verdicts = [
        count(LLAMA_7B, job, cluster, replace(layout, recompute="full", recompute_layers=again)).memory.verdict
        for again in range(1, 33)
    ]
    least = verdicts.index("fits") + 1
    one, whole = Strategy(1), Strategy(1, FULL)
    mixing = mixing_of(LLAMA_7B, job, cluster, layout, "megatron", one, whole)
    (found,) = Program(mixing, mixing.places[0], allocatable(mixing.case)).plans((1.0, 0.0))

    assert 1 < least < 32
    assert found.plan == (whole,) * least + (one,) * (32 - least)


def mixes(layout: Layout, *what: str, engine: str = "megatron") -> Mixes:
    return best_mixes(LLAMA_70B, Job(8192, 512), load_cluster("64xh100-sxm"), layout, engine, what)


def test_only_the_stages_that_lack_memory_recompute() -> None:
    found = mixes(Layout(tp=4, pp=4), "recompute")
    assert found.best and found.uniform and found.gain

    assert [sum(way.recompute != NONE for way in plan) for plan in found.best.plans] == [6, 0, 0, 0]
    assert found.uniform.layout.recompute_layers == 6  # on every stage
    assert found.best.how == "proved"
    assert found.gain / found.uniform.seconds == pytest.approx(0.0416, abs=5e-4)


def test_a_smaller_degree_where_there_is_room_for_it_is_faster() -> None:
    """tp 4 does not fit in the first stage, tp 8 leaves room in all others: each stage takes what it can."""
    found = mixes(Layout(tp=4, pp=4), "tp")
    assert found.best and found.uniform

    used = [{way.tp for way in plan} for plan in found.best.plans]
    assert 8 in used[0] and used[-1] == {4}
    assert found.uniform.layout.tp == 8
    assert found.best.seconds < found.uniform.seconds


def test_degrees_gain_nothing_where_the_smallest_fits() -> None:
    found = mixes(Layout(tp=4, pp=8), "tp")

    assert found.gain == 0
    assert found.best and [way.tp for way in found.best.ways] == [4]


def test_operations_of_pytorch_are_those_of_its_own_recompute() -> None:
    """Layer by layer it needs less time than the plan of `outlay recompute` in the same memory, to which every stage is
    the one that binds."""
    layout, cluster = Layout(tp=4, pp=4, zero=2), load_cluster("64xh100-sxm")
    found = mixes(layout, "recompute", engine="fsdp2")
    case = case_of(LLAMA_70B, Job(8192, 512), cluster, layout, "fsdp2")[0]
    fullest = recompute(case).outcome  # to the middle of the peak's band, where a mix fits for sure
    assert found.best and fullest
    other = recompute(case, fullest.needed - (fullest.peak - found.best.peak_bytes))
    assert other.outcome and other.outcome.peak == pytest.approx(found.best.peak_bytes, rel=0.01)

    assert found.best.seconds < other.plain_seconds + other.outcome.seconds
    assert {name for way in found.best.ways for name in way.operations} == {
        "input_norm", "post_norm", "mlp_activation"
    }  # fmt: skip


def test_a_plan_is_never_made_slower_by_mixing() -> None:
    searched = plan(LLAMA_70B, Job(8192, 512), load_cluster("64xh100-sxm"), width="lean", best=5)
    found = best_of_plan(searched, 5, ("recompute",))
    first = searched.best[0]
    assert found.best and found.uniform

    assert found.uniform.seconds <= first.seconds
    assert found.best.seconds <= found.uniform.seconds
    assert found.gain is not None and found.gain >= 0


@pytest.mark.parametrize(
    ("layout", "engine", "code"),
    [
        (Layout(tp=4, pp=4), "fsdp2", "MIX002"),
        (Layout(tp=4, pp=4, recompute="full", recompute_layers=3), "megatron", "MIX003"),
    ],
)
def test_degrees_that_cannot_be_mixed_are_refused(layout: Layout, engine: str, code: str) -> None:
    with pytest.raises(InputError) as raised:
        mixes(layout, "tp", engine=engine)

    assert [fault.code for fault in raised.value.faults] == [code]


def test_a_layout_that_breaks_a_rule_has_no_mix() -> None:
    assert mixes(Layout(tp=3, pp=4), "recompute").best is None


def test_layers_of_a_chunk_that_holds_more_passes_keep_no_more() -> None:
    """Interleaved: what runs again stands before what does not, as equal chunks are counted."""
    found = mixes(Layout(tp=4, pp=4, vpp=5), "recompute").best
    assert found

    for one in found.stages:
        tapes = [found.mixing.ground.layers[0, way].tape for way in one.plan]
        assert tapes == sorted(tapes)
        assert one.unevenness == pytest.approx(1)
    assert found.peak_bytes <= limits(found.case).fits


def test_too_many_layers_are_refused() -> None:
    deep = replace(LLAMA_8B, pattern=(0,) * 513)
    with pytest.raises(InputError) as raised:
        best_mixes(deep, Job(4096, 64), load_cluster("64xh100-sxm"), Layout(tp=8), "megatron", ("recompute",))

    assert [fault.code for fault in raised.value.faults] == ["MIX004"]


def test_the_ends_alone_may_be_cut_over_more_ranks_than_the_layers() -> None:
    model, layout = load_model("qwen3-30b-a3b"), Layout(ep=8, micro_batch=4)
    found = best_mixes(model, Job(4096, 128), load_cluster("16xh100-sxm"), layout, "megatron", ("recompute", "tp")).best
    assert found

    assert found.mixing.own.tp == 4
    assert {way.tp for way in found.ways} == {1}
