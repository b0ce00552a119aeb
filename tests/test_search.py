"""A search against brute force: the same layouts one by one, each by the scalar formulas and the scalar rules."""

from dataclasses import replace
from itertools import product
from math import ceil
from typing import Any

import numpy as np
import pytest

from models import DEEPSEEK_V3, LLAMA_8B, LLAMA_70B, MIXTRAL
from outlay import InputError, Job, Layout, Model, count, load_cluster
from outlay.bill import Loaded, load
from outlay.layout.axes import ALONE, NOT_VARIED
from outlay.layout.case import Case
from outlay.layout.predicates import longest_stage, no_empty_chunk
from outlay.layout.rules import rules_of
from outlay.layout.stages import chunk_sizes
from outlay.memory.peak import peak, peak_of
from outlay.model.huggingface import read_config
from outlay.schedule.laws import SCHEDULES
from outlay.search.best import Best
from outlay.search.blocks import Grid
from outlay.search.fitting import limits
from outlay.search.frontier import staircase
from outlay.search.lists import count_list
from outlay.search.narrow import narrow
from outlay.search.plan import Plan, asked, plan, sweep
from outlay.search.rows import legal_rows
from outlay.search.space import Space, Width, declare
from outlay.step.total import step_seconds

Question = tuple[Model, str, int, int]
SMALL: tuple[Question, ...] = (
    (LLAMA_8B, "8xa100-sxm-80", 2048, 24),
    (LLAMA_70B, "64xh100-sxm", 4096, 96),
    (MIXTRAL, "16xh100-sxm", 2048, 32),
    (DEEPSEEK_V3, "64xh200-sxm", 2048, 64),
)
HYBRID = read_config({
    "model_type": "nemotron_h", "vocab_size": 32000, "hidden_size": 2048, "num_attention_heads": 16,
    "intermediate_size": 8192, "mamba_num_heads": 64, "hybrid_override_pattern": "M-M*-M-M",
})  # fmt: skip
STATES = read_config({"model_type": "mamba2", "vocab_size": 32000, "hidden_size": 2048, "num_hidden_layers": 8,
                      "num_heads": 64, "head_dim": 64})  # fmt: skip
RECURRENT: tuple[Question, ...] = ((HYBRID, "16xh100-sxm", 2048, 32), (STATES, "16xh100-sxm", 2048, 32))


def some(random: np.random.Generator, values: tuple[Any, ...], most: int) -> tuple[Any, ...]:
    """A few of some values, in their order."""
    kept = sorted(random.choice(len(values), min(len(values), int(random.integers(1, most + 1))), replace=False))
    return tuple(values[index] for index in kept)


def small_space(seed: int, questions: tuple[Question, ...] = SMALL, width: Width = "wide") -> tuple[Case, Space]:
    """A random question, and a random narrow space of a few hundred combinations."""
    random = np.random.default_rng(seed)
    model, on, seq, batch = questions[seed % len(questions)]
    case, _ = asked(model, Job(seq, batch), load_cluster(on), "fsdp2" if seed % 5 == 4 else "megatron")
    space = declare(model, case.job, case.cluster, case.engine, width)
    lists = {name: (1, *some(random, values[1:], 1)) for name, values in space.degrees.items() if len(values) > 1}
    lists["tp"], lists["pp"] = some(random, space.degrees["tp"][:4], 2), some(random, space.degrees["pp"][:5], 2)
    lists["sp"] = (True,) if seed % 3 else (False, True)
    lists["vpp"] = (1, 2) if seed % 2 else (1,)
    lists["schedule"] = some(random, space.schedules, 2)
    lists["recompute"] = some(random, ("none", "selective", "full"), 2)
    lists["zero"] = some(random, tuple({stage for stage, _ in space.zero}), 2)
    lists["offload_optimizer"] = some(random, (0.0, 0.5, 1.0), 1)
    if width == "full":
        lists |= {name: space.degrees[name] for name in ("cp_kind", "moe_dispatch")}
        lists |= {"ep": some(random, space.degrees["ep"][:4], 2), "cp": (1, 2), "micro_batch": (1,)}
    return case, few(case, narrow(space, **lists))


def few(case: Case, space: Space, most: int = 160) -> Space:
    """The space with options dropped until it is small enough to be counted one by one."""
    for name in ("recompute", "zero", "overlap_dp", "overlap_tp", "schedules", "offload_optimizer"):
        if Grid(case, space, legal_rows(case, space)).layouts > most:
            space = replace(space, **{name: getattr(space, name)[-1:]})
    return space


def shard_within(case: Case, domains: int) -> int:
    """dp_shard where shards stay inside some scale-up domains."""
    at = case.layout
    return max(1, min(at.dp_shard, domains * case.cluster.inside.size // (at.tp * at.cp)))


def splits(case: Case, shard: int) -> bool:
    """Whether data-parallel ranks can be copies of groups of so many."""
    at, experts = case.layout, case.model.experts > 0
    copies = at.dp_shard // shard
    whole = not experts or at.edp <= copies or at.edp % copies == 0
    return at.dp_shard % shard == 0 and shard < at.dp_shard and shard * at.cp > 1 and bool(whole)


def shards(case: Case, space: Space) -> dict[int, int]:
    """dp_shard by the number of domains that shards may stay in, each another one; 0: all."""
    found, before = {0: case.layout.dp_shard}, 0
    for domains in space.domains:
        shard = shard_within(case, domains)
        if splits(case, shard) and shard > before:
            found[domains] = shard
        before = shard
    return found


def combinations(case: Case, space: Space) -> list[Layout]:
    """Every layout of a space, written out without the search's own machinery."""
    found = []
    names = tuple(space.degrees)
    for values in product(*space.degrees.values()):
        degrees = dict(zip(names, values, strict=True))
        left = case.cluster.ranks // (degrees["tp"] * degrees["cp"] * degrees["pp"])
        for schedule in space.schedules:
            split = ()
            if case.model.layers % (degrees["pp"] * degrees["vpp"]) and not case.engine.counts_ends:
                split = tuple(chunk_sizes(case.model.layers, degrees["pp"], degrees["vpp"]))
            row = replace(ALONE, **degrees, dp_shard=max(1, left), schedule=schedule, split=split)
            if legal(replace(case, layout=row)):
                found += options(replace(case, layout=row), space)
    return found


def legal(case: Case) -> bool:
    """Every rule, one by one; an uneven split is given, so the rule that asks for one is content."""
    case = replace(case, schedule=SCHEDULES[case.layout.schedule], layout=replace(case.layout, zero=case.engine.zero))
    return all(bool(rule.legal(case)) for rule in rules_of(case.engine.name)) and bool(no_empty_chunk(case))


def options(case: Case, space: Space) -> list[Layout]:
    """Every option of one legal row; where one changes nothing, the first of its values."""
    at, held = case.layout, int(longest_stage(case))
    experts = case.model.experts > 0
    replicas = at.replicas > 1 or (experts and at.edp > 1)
    parts = min(held, space.parts)
    shares = {part / space.parts for _, part in space.recompute if part}
    layers = {"none": {0}, "selective": {0}, "full": {ceil(share * parts - 1e-9) for share in shares}}
    attends = any(part.kind in ("attention", "compressed") for part in case.model.parts)
    kinds = [kind for kind, part in space.recompute if part or attends or (kind, 0) == space.recompute[0]]
    modules = {"selective": (space.recompute_modules, *space.other_modules)}
    recompute = {
        (kind, ceil(count * held / parts), names)
        for kind in kinds for count in layers[kind] for names in modules.get(kind, ((),))
    }  # fmt: skip
    within = shards(case, space)
    zero = [pair for pair in space.zero if pair[1] in within] or [(space.zero[0][0], 0)]
    hides = at.tp > 1 and (at.sp or case.engine.name == "fsdp2")
    away = product(space.offload_optimizer, space.offload_parameters, space.offload_activations)
    alone = {("cp_kind", at.cp), ("moe_dispatch", at.ep)}
    renamed = any(size == 1 and getattr(at, name) != space.degrees[name][0] for name, size in alone)
    found = [
        replace(
            at, recompute=kind, recompute_layers=count, zero=stage,
            recompute_modules=names,
            dp_shard=within[domains], dp_replicate=at.dp_shard // within[domains],
            overlap_tp=tp, overlap_ep=ep, overlap_dp=dp,
            offload_optimizer=optimizer, offload_parameters=weights, offload_activations=kept,
        )
        for (kind, count, names), (stage, domains), tp, ep, dp, (optimizer, weights, kept) in product(
            sorted(recompute), zero if replicas else zero[:1],
            space.overlap_tp if hides else [False], space.overlap_ep if at.ep > 1 else [False],
            space.overlap_dp if replicas else space.overlap_dp[:1], away,
        )
        if not (at.sp and at.tp == 1) and not (at.schedule == "gpipe" and at.pp == 1) and not renamed
    ]  # fmt: skip
    rules = [rule for rule in rules_of(case.engine.name) if rule.code in ("LAY055", "LAY056", "LAY057", "LAY058")]
    return [each for each in found if all(rule.legal(replace(case, layout=each)) for rule in rules)]


def scalar(case: Case, layout: Layout) -> tuple[float, float]:
    """Peak and step of one layout, by the scalar formulas."""
    at: Loaded = load(replace(case, layout=layout, schedule=SCHEDULES[layout.schedule]))
    return float(peak(at.stages, at.case)), float(step_seconds(at.stages, at.whole, at.case))


QUESTIONS: list[tuple[int, tuple[Question, ...], Width]] = [
    *((seed, SMALL, "wide") for seed in range(50)),
    *((seed, RECURRENT, "wide") for seed in range(6)),
    *((seed, SMALL, "full") for seed in range(24)),
]


@pytest.mark.parametrize(("seed", "questions", "width"), QUESTIONS)
def test_best_20_and_frontier_are_those_of_brute_force(
    seed: int, questions: tuple[Question, ...], width: Width
) -> None:
    case, space = small_space(seed, questions, width)
    grid = Grid(case, space, legal_rows(case, space))
    found = sweep(grid, 20)
    every = [scalar(case, layout) for layout in combinations(case, space)]

    counted = found.counted - found.rejected.total()
    assert len(every) == len(set(combinations(case, space))) == counted
    assert grid.layouts == found.counted
    bounds = limits(case)
    fitting = sorted(seconds for peak_bytes, seconds in every if peak_bytes <= bounds.fits)
    np.testing.assert_allclose([each.seconds for each in found.best.found], fitting[:20], rtol=1e-12)
    assert found.best.fitting == len(fitting)
    points = np.array([(p, s, 0, 0) for p, s in every if p <= bounds.tight]).reshape(-1, 4)
    expected = staircase(np.round(points, 6))[:, :2]
    got = np.array([(point.peak, point.seconds) for point in found.frontier.found()]).reshape(-1, 2)
    np.testing.assert_allclose(staircase(np.round(np.pad(got, ((0, 0), (0, 2))), 6))[:, :2], expected, rtol=1e-9)


def test_brute_force_meets_spaces_that_are_empty_and_spaces_that_are_not() -> None:
    sizes = [Grid(*small_space(seed), legal_rows(*small_space(seed))).layouts for seed in range(50)]
    assert sum(size > 20 for size in sizes) >= 20
    assert max(sizes) < 3000


@pytest.fixture(scope="module")
def answer() -> Plan:
    return plan(LLAMA_70B, Job(8192, 512), load_cluster("64xh100-sxm"), width="middle")


def test_the_numbers_of_a_search_add_up(answer: Plan) -> None:
    search = answer.search
    assert search.space == search.illegal + search.duplicates + search.legal
    assert search.legal == search.counted + search.pruned
    assert search.illegal == sum(rejection.count for rejection in answer.rejected)
    assert 0 < search.did_not_fit < search.counted
    assert search.proved and search.pruned == 0 and search.gap == 0


def test_every_layout_of_an_answer_is_legal_fits_and_is_billed_as_it_was_searched(answer: Plan) -> None:
    times = [ranked.bill.step.seconds for ranked in answer.best]
    assert len(times) == 20 and times == sorted(times)
    assert all(ranked.bill.violations == () and ranked.bill.memory.verdict == "fits" for ranked in answer.best)
    for point in answer.frontier:
        assert point.fits == (
            point.peak_bytes <= limits(asked(LLAMA_70B, answer.job, answer.cluster, "megatron")[0]).fits
        )
    peaks, seconds = zip(*((point.peak_bytes, point.seconds) for point in answer.frontier), strict=True)
    assert list(peaks) == sorted(peaks) and list(seconds) == sorted(seconds, reverse=True)
    assert min(point.seconds for point in answer.frontier if point.fits) == pytest.approx(times[0], rel=1e-12)


def test_narrower_is_never_faster(answer: Plan) -> None:
    less = plan(
        LLAMA_70B, Job(8192, 512), load_cluster("64xh100-sxm"), width="middle", offload_optimizer=(0.0,), cp=(1,)
    )
    assert less.best[0].bill.step.seconds >= answer.best[0].bill.step.seconds
    assert all(ranked.layout.cp == 1 and ranked.layout.offload_optimizer == 0 for ranked in less.best)


def test_copies_without_shards_are_proposed_only_to_an_engine_that_takes_them() -> None:
    """Accelerate wants dp_shard > 1 beside copies where there is tp or cp; FSDP2 itself does not."""

    def copies_alone(engine: str) -> bool:
        found = plan(LLAMA_8B, Job(8192, 64), load_cluster("16xh100-sxm"), engine=engine, tp=(2,), cp=(4,), pp=(1,))
        assert found.best and all(ranked.bill.violations == () for ranked in found.best)
        return any(at.layout.dp_replicate > 1 and at.layout.dp_shard == 1 for at in found.best)

    assert copies_alone("fsdp2")
    assert not copies_alone("hf_trainer")


def test_an_uneven_pipeline_says_its_split() -> None:
    found = plan(DEEPSEEK_V3, Job(4096, 2048), load_cluster("512xh200-sxm"), width="lean", pp=(16,), ep=(32,), vpp=(1,))
    assert found.best and all(ranked.layout.split == (4,) * 15 + (1,) for ranked in found.best)
    assert all(ranked.bill.violations == () for ranked in found.best)


def test_an_interrupted_search_keeps_the_best_so_far_and_is_not_proved() -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    found = plan(LLAMA_70B, Job(8192, 512), load_cluster("64xh100-sxm"), progress=stop)
    assert not found.search.proved
    assert 0 < found.search.counted < found.search.legal
    assert found.search.pruned == found.search.legal - found.search.counted


def test_an_unknown_field_and_an_empty_list_are_refused_together() -> None:
    with pytest.raises(InputError) as caught:
        plan(LLAMA_70B, Job(8192, 512), load_cluster("64xh100-sxm"), tpp=(1,), pp=())
    assert {fault.code for fault in caught.value.faults} == {"PLN001", "PLN002"}


def test_an_empty_space_names_the_rule_that_empties_it_and_layouts_that_are_legal() -> None:
    found = plan(LLAMA_70B, Job(8192, 512), load_cluster("64xh100-sxm"), tp=(8,), pp=(3,))
    assert found.best == () and found.smallest is None
    assert found.emptied is not None and found.emptied.code == "LAY001"
    assert found.emptied.nearest[0] == "--tp 8 --pp 4"


def test_a_prime_number_of_accelerators_that_no_batch_fits_gets_a_batch_that_does() -> None:
    found = plan(LLAMA_70B, Job(8192, 512), load_cluster("13xh100-sxm"))
    assert found.emptied is not None and found.emptied.nearest == ("--batch 507",)
    assert 507 % 13 == 0


def test_the_three_or_few_stages_are_the_worst_of_all_on_a_thousand_random_layouts() -> None:
    random, seen = np.random.default_rng(3), 0
    for model, on, seq, batch in SMALL:
        case, _ = asked(model, Job(seq, batch), load_cluster(on), "megatron")
        grid = Grid(
            case,
            declare(model, case.job, case.cluster, case.engine),
            legal_rows(case, declare(model, case.job, case.cluster, case.engine)),
        )
        for row in random.integers(0, len(grid.rows), 251):
            (layout,) = grid.layouts_at([int(row)], [0])
            at = load(replace(case, layout=layout, schedule=SCHEDULES[layout.schedule]))
            assert float(peak(at.stages, at.case)) == pytest.approx(
                max(float(peak_of(one, at.case)) for one in at.every), rel=1e-12
            )
            seen += 1
    assert seen >= 1000


def test_a_list_of_layouts_is_counted_as_each_by_itself() -> None:
    case, _ = small_space(1)
    chosen = combinations(case, declare(case.model, case.job, case.cluster, case.engine, "lean"))[::211][:60]
    flat = Layout.grid(**{
        name: np.asarray([getattr(layout, name) for layout in chosen])
        for name in Layout.__dataclass_fields__ if name not in ("split", *NOT_VARIED)
    } | {"split": (), "recompute_modules": ("core_attn",)})  # fmt: skip
    even = [index for index, layout in enumerate(chosen) if not layout.split]
    peaks, seconds = count_list(case, flat, cells=17)
    expected = [scalar(case, chosen[index]) for index in even]
    np.testing.assert_allclose(np.column_stack([peaks, seconds])[even], expected, rtol=1e-12)
    assert len(even) > 20


def test_a_list_of_schedules_holds_what_each_holds_by_itself() -> None:
    case, _ = asked(LLAMA_8B, Job(4096, 64), load_cluster("8xh100-sxm"), "fsdp2-torchtitan")
    names = ("interleaved", "looped_bfs", "interleaved_zb", "zbv", "dualpipe_v")
    alone = replace(ALONE, pp=4, vpp=2, dp_shard=2, zero=3)
    kept = {name: getattr(alone, name) for name in ("split", *NOT_VARIED)}
    same = {name: np.full(len(names), value) for name, value in vars(alone).items() if name not in kept}
    found = np.column_stack(count_list(case, Layout.grid(**same | kept | {"schedule": np.asarray(names)})))

    expected = [scalar(case, replace(alone, schedule=name)) for name in names]  # type: ignore[arg-type]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_of_equal_times_the_smaller_peak_comes_first_then_the_first_place_in_any_order_of_the_blocks(seed: int) -> None:
    random = np.random.default_rng(seed)
    seconds = random.integers(1, 4, (5, 40)).astype(float)  # so few values that most of them tie
    peaks = random.integers(1, 4, (5, 40)).astype(float)
    every = [(seconds[cell, row], peaks[cell, row], row, cell) for cell in range(5) for row in range(40)]
    expected = sorted(one for one in every if one[1] <= 2)[:12]

    best = Best(12, 2.0)
    for rows in np.array_split(random.permutation(40), 6):
        best.offer(peaks[:, rows], seconds[:, rows], rows)
    assert [(one.seconds, one.peak, one.row, one.cell) for one in best.found] == expected


def test_the_order_in_which_values_are_given_does_not_change_which_layouts_are_named() -> None:
    names = {"tp": (1, 2), "cp": (1, 2, 4), "pp": (1, 2), "micro_batch": (1, 2, 4, 8, 16), "zero": (1, 2, 3),
             "schedule": ("1f1b", "gpipe"), "overlap_dp": (False, True), "offload_optimizer": (0.0, 0.5)}  # fmt: skip
    backwards = {name: values[::-1] for name, values in names.items()}
    job, on = Job(2048, 64), load_cluster("16xh100-sxm")
    found, again = (plan(LLAMA_8B, job, on, **given).best for given in (names, backwards))
    assert [ranked.layout for ranked in found] == [ranked.layout for ranked in again]


@pytest.mark.parametrize("width", ["lean", "middle", "wide"])
@pytest.mark.parametrize("name", ["megatron", "megatron-2022", "fsdp2", "deepspeed", "nanotron"])
def test_every_layout_that_a_search_ranks_is_legal_and_costs_what_its_bill_says(width: Any, name: str) -> None:
    job = Job(sequence_length=2048, global_batch=64, precision="bf16")
    found = plan(LLAMA_8B, job, load_cluster("16xh100-sxm"), name, width=width)

    assert found.best
    for ranked in found.best:
        bill = count(LLAMA_8B, job, load_cluster("16xh100-sxm"), ranked.layout, name)
        assert not bill.violations
        assert bill.step.seconds == pytest.approx(ranked.bill.step.seconds, rel=1e-12)
