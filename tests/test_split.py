"""The best split: layers to stages by dynamic programming, held against a MILP, every split counted, and laws."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from models import DEEPSEEK_V3, GEMMA, LLAMA_8B, LLAMA_70B, loaded
from outlay import Bill, InputError, Job, Layout, Model, count, load_cluster, load_model
from outlay.bill import case_of, load
from outlay.cli.main import main
from outlay.formats.pipeline_layout import print_layout
from outlay.formats.stage_layout import module_names
from outlay.model.huggingface import read_config
from outlay.search.advice import changed, changes, pairs_that_fit
from outlay.search.plan import plan
from outlay.search.split.best import best_split, given_split, pipeline_of, sizes_of
from outlay.search.split.chain import best_cuts
from outlay.search.split.exchange import exchanged
from outlay.search.split.pipeline import unevennesses
from outlay.search.split.plan import resplit
from outlay.search.split.ranks import spread
from outlay.show.layouts import mesh
from outlay.show.schema import OUTPUT_SCHEMAS
from outlay.simulated import simulated
from test_json import faults

Array = NDArray[Any]
JOB = Job(8192, 128)


# --- the chain against a MILP ---------------------------------------------------------------------------------------


class Chain:
    """A random chain: times and bytes of each layer, what the ends add, passes in flight, and a limit of memory."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.layers, self.stages = int(random.integers(4, 13)), int(random.integers(2, 5))
        self.times = random.integers(1, 10, (2, self.layers)).astype(float)
        self.ends = random.integers(0, 12, (2, self.stages)) * np.isin(np.arange(self.stages), (0, self.stages - 1))
        self.tapes, self.states = random.integers(1, 10, (2, self.layers)).astype(float)
        self.flying = self.stages - np.arange(self.stages)  # 1F1B
        held = (self.tapes * self.flying.mean() + self.states).sum() / self.stages
        self.limit = float(np.round(held * random.uniform(0.9, 1.6)))
        self.weights = random.integers(1, 40, 2).astype(float)  # micro-batches of the slowest, and what is paid once

    def peak(self, stage: int, layers: slice) -> float:
        """Bytes of a stage with some layers."""
        return float((self.tapes[layers] * self.flying[stage] + self.states[layers]).sum())

    def costs(self, stage: int) -> Array:
        """As `best_cuts` asks for them."""
        table = np.full((2, self.layers + 1, self.layers + 1), np.inf)
        least = 0 if stage in (0, self.stages - 1) else 1
        for start in range(self.layers + 1):
            for end in range(start + least, self.layers + 1):
                if self.peak(stage, slice(start, end)) <= self.limit:
                    table[:, start, end] = self.times[:, start:end].sum(1) + self.ends[:, stage]
        return table

    def by_milp(self) -> float | None:
        """The least weighted sum of the worst stage's costs: a layer is on one stage, and stages never go back."""
        each, extra = self.layers * self.stages, 2
        on = np.arange(each).reshape(self.layers, self.stages)
        rows, low, high = [], [], []

        def hold(columns: Array, values: Array | float, least: float, most: float, more: dict[int, float]) -> None:
            row = np.zeros(each + extra)
            row[columns] = values
            for place, value in more.items():
                row[each + place] = value
            rows.append(row)
            low.append(least)
            high.append(most)

        for layer in range(self.layers):
            hold(on[layer], 1.0, 1, 1, {})
            for stage in range(self.stages if layer else 0):
                columns = np.concatenate((on[layer - 1, : stage + 1], on[layer, : stage + 1]))
                hold(columns, np.repeat([1.0, -1.0], stage + 1), 0, np.inf, {})
        for stage in range(self.stages):
            hold(on[:, stage], self.tapes * self.flying[stage] + self.states, -np.inf, self.limit, {})
            if 0 < stage < self.stages - 1:
                hold(on[:, stage], 1.0, 1, np.inf, {})
            for place in range(2):
                hold(on[:, stage], self.times[place], -np.inf, -self.ends[place, stage], {place: -1.0})
        found = milp(
            np.concatenate((np.zeros(each), self.weights)),
            integrality=np.repeat([1, 0], [each, extra]),
            bounds=Bounds(0, np.repeat([1, np.inf], [each, extra])),
            constraints=LinearConstraint(np.array(rows), low, high),
            options={"mip_rel_gap": 0},
        )
        assert found.status in (0, 2)  # proved, or nothing fits
        return float(found.fun) if found.status == 0 else None

    def by_programming(self) -> float | None:
        """The same by dynamic programming."""
        worst = best_cuts(self.layers, self.stages, self.costs).worst
        return float((worst @ self.weights).min()) if len(worst) else None


@pytest.mark.parametrize("seed", range(100))
def test_a_split_is_as_good_as_that_of_a_milp(seed: int) -> None:
    chain = Chain(seed)

    assert chain.by_programming() == pytest.approx(chain.by_milp(), abs=1e-6)


def test_some_of_these_chains_do_not_fit_and_some_are_bound_by_memory() -> None:
    chains = [Chain(seed) for seed in range(100)]
    none = sum(chain.by_programming() is None for chain in chains)
    bound = 0
    for chain in chains:
        tight, chain.limit = chain.by_programming(), np.inf
        bound += tight is not None and tight != chain.by_programming()

    assert none >= 10
    assert bound >= 10


@given(st.integers(0, 10_000), st.floats(1, 3))
@settings(deadline=None)
def test_more_memory_never_makes_the_best_split_slower(seed: int, times: float) -> None:
    chain = Chain(seed)
    before = chain.by_programming()
    chain.limit *= times
    after = chain.by_programming()

    assert before is None or (after is not None and after <= before)


@given(st.integers(0, 10_000), st.data())
@settings(deadline=None)
def test_layers_that_are_equal_may_change_places(seed: int, data: st.DataObject) -> None:
    chain = Chain(seed)
    kinds = data.draw(st.lists(st.sampled_from([0, 1]), min_size=chain.layers, max_size=chain.layers))
    for values in (*chain.times, chain.tapes, chain.states):
        values[:] = values[kinds]
    before = chain.by_programming()
    places = np.arange(chain.layers)
    for kind in (0, 1):
        own = [place for place, each in enumerate(kinds) if each == kind]
        places[own] = data.draw(st.permutations(own))
    chain.times, chain.tapes, chain.states = chain.times[:, places], chain.tapes[places], chain.states[places]

    assert chain.by_programming() == before


@given(st.integers(0, 10_000))
@settings(deadline=None)
def test_a_chain_that_is_turned_round_has_the_best_split_turned_round(seed: int) -> None:
    chain = Chain(seed)
    before = chain.by_programming()
    chain.times, chain.ends = chain.times[:, ::-1], chain.ends[:, ::-1]
    chain.tapes, chain.states, chain.flying = chain.tapes[::-1], chain.states[::-1], chain.flying[::-1]

    assert chain.by_programming() == before


# --- the answer against every split, counted ------------------------------------------------------------------------


def llama(layers: int, **fields: int) -> Model:
    """A Llama of the shape of the 8 B model with fewer layers: its head is worth a few of them."""
    shape = {"hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336}
    rest = {"model_type": "llama", "vocab_size": 128256, "max_position_embeddings": 8192}
    return read_config({**rest, **shape, "num_hidden_layers": layers, **fields})


def every_split(layers: int, chunks: int) -> Iterator[tuple[int, ...]]:
    """All of them: a layer for every chunk but the first and the last, which may have none."""
    free = layers - (chunks - 2)
    for bars in combinations(range(free + chunks - 1), chunks - 1):
        sizes = np.diff((-1, *bars, free + chunks - 1)) - 1
        yield tuple(map(int, sizes + np.r_[0, np.ones(chunks - 2, int), 0]))


@cache
def all_bills(name: str) -> tuple[Bill, ...]:
    """The bill of every split of one of the cases below."""
    model, job, on, layout, engine = CASES[name]
    splits = every_split(model.layers, (layout.pp or 1) * (layout.vpp or 1))
    found = tuple(count(model, job, load_cluster(on), replace(layout, split=split), engine) for split in splits)
    assert not any(bill.violations for bill in found)
    return found


MIXED = replace(DEEPSEEK_V3, pattern=(0, 0, 0, 1, 1, 1, 1, 1, 1, 1))
CASES: dict[str, tuple[Model, Job, str, Layout, str]] = {
    "1f1b": (llama(10), JOB, "4xh100-sxm", Layout(pp=4), "megatron"),
    "gpipe": (llama(10), Job(4096, 16), "4xh100-sxm", Layout(pp=4, schedule="gpipe"), "fsdp2"),
    "tp and full recompute": (llama(11), JOB, "8xh100-sxm", Layout(pp=4, tp=2, recompute="full"), "megatron"),
    "some layers recomputed": (
        llama(11), JOB, "8xh100-sxm", Layout(pp=4, tp=2, recompute="full", recompute_layers=2), "megatron",
    ),
    "offload": (llama(9), Job(4096, 16), "8xh100-sxm", Layout(pp=4, offload_optimizer=0.5), "megatron"),
    "two chunks": (llama(8), JOB, "2xh100-sxm", Layout(pp=2, vpp=2), "megatron"),
    "three ranks of two chunks": (llama(9), Job(8192, 96), "3xh100-sxm", Layout(pp=3, vpp=2), "megatron"),
    "a V": (llama(8), JOB, "2xh100-sxm", Layout(pp=2, vpp=2, schedule="zbv"), "fsdp2"),
    "two kinds": (MIXED, Job(4096, 256), "256xh100-sxm", Layout(pp=4, ep=64, recompute="full"), "megatron"),
}  # fmt: skip


@pytest.mark.parametrize("room", [None, 1.1, 0.9])
@pytest.mark.parametrize("name", CASES)
def test_no_split_is_better_than_the_one_that_is_found(name: str, room: float | None) -> None:
    model, job, on, layout, engine = CASES[name]
    bills = all_bills(name)
    card = load_cluster(on).accelerator
    usable = card.memory_bytes - card.context_bytes
    if room:  # so much memory of what the split that needs least takes
        usable = room * min(bill.memory.peak_band_bytes[1] for bill in bills)
        job = replace(job, reserved_bytes=card.memory_bytes - card.context_bytes - usable)
    fitting = [bill for bill in bills if bill.memory.peak_band_bytes[1] <= usable]
    found = best_split(model, job, load_cluster(on), layout, engine)

    assert found is not None
    assert found.how == "proved"
    if fitting:
        assert found.bill.memory.verdict == "fits"
        assert found.bill.step.seconds == min(bill.step.seconds for bill in fitting)
        as_fast = [bill.memory.peak_bytes for bill in fitting if bill.step.seconds == found.bill.step.seconds]
        assert layout.vpp or found.bill.memory.peak_bytes == min(as_fast)
    else:
        assert room == 0.9
        assert found.bill.memory.peak_bytes == min(bill.memory.peak_bytes for bill in bills)


@pytest.mark.parametrize("engine", ["megatron", "fsdp2"])
@pytest.mark.parametrize("model", [LLAMA_8B, LLAMA_70B, GEMMA, DEEPSEEK_V3], ids=lambda model: str(model.name))
@pytest.mark.parametrize(("pp", "vpp"), [(2, 1), (4, 1), (8, 1), (2, 2), (4, 2), (8, 2)])
def test_the_split_is_never_slower_than_the_engines_own(model: Model, engine: str, pp: int, vpp: int) -> None:
    layout = Layout(tp=2, pp=pp, vpp=vpp, ep=16 if model.experts else None, recompute="full")
    found = best_split(model, Job(4096, 1024), load_cluster("256xh100-sxm"), layout, engine)

    assert found is not None
    assert found.own is not None
    assert sum(found.sizes) == model.layers
    assert found.sizes == sizes_of(found.bill)
    assert not found.bill.violations
    if found.own.memory.verdict == "fits":
        assert found.bill.memory.verdict == "fits"
        assert found.bill.step.seconds <= found.own.step.seconds


def test_a_head_that_is_worth_layers_leaves_the_last_stage_fewer() -> None:
    found = best_split(LLAMA_8B, JOB, load_cluster("32xh100-sxm"), Layout(tp=2, pp=4))

    assert found is not None
    assert found.own is not None
    assert found.sizes == (7, 9, 9, 7)
    assert found.bill.step.seconds / found.own.step.seconds == pytest.approx(0.9297, abs=1e-4)
    assert found.bill.memory.peak_bytes < found.own.memory.peak_bytes


def test_a_split_may_fit_where_equal_stages_do_not() -> None:
    found = best_split(load_model("llama-3.1-405b"), Job(8192, 512), load_cluster("1024xh100-sxm"), Layout(tp=8, pp=16))

    assert found is not None
    assert found.own is not None
    assert (found.own.memory.verdict, found.bill.memory.verdict) == ("does_not_fit", "fits")
    assert list(found.sizes[:15]) == sorted(found.sizes[:15])  # fewer layers where more passes are in flight


def _run(bill: Bill) -> float:
    """The step of a bill, run pass by pass."""
    return simulated(load(case_of(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)[0])).seconds


@pytest.mark.parametrize(("pp", "vpp"), [(4, 1), (8, 1), (4, 2), (4, 4), (8, 2)])
def test_the_saving_is_there_as_well_where_the_order_is_run_pass_by_pass(pp: int, vpp: int) -> None:
    layout = Layout(pp=pp, vpp=vpp, recompute="full")
    found = best_split(LLAMA_8B, Job(4096, 128), load_cluster("32xh100-sxm"), layout)

    assert found is not None
    assert found.own is not None
    counted = found.own.step.seconds - found.bill.step.seconds
    assert counted > 0.01 * found.own.step.seconds
    assert _run(found.own) - _run(found.bill) > 0.8 * counted


def test_kinds_of_layers_that_are_alike_are_as_one_kind() -> None:
    (block,) = LLAMA_8B.blocks
    twice = replace(LLAMA_8B, blocks=(block, replace(block, name="other")), pattern=(0, 1, 1, 0) * 8)
    layout, cluster = Layout(tp=2, pp=4), load_cluster("32xh100-sxm")
    one, two = (best_split(model, JOB, cluster, layout) for model in (LLAMA_8B, twice))

    assert one is not None
    assert two is not None
    assert two.sizes == one.sizes


# --- chunks ---------------------------------------------------------------------------------------------------------


@given(st.integers(1, 5), st.integers(0, 40), st.booleans(), st.booleans())
def test_chunks_share_a_ranks_layers_as_evenly_as_they_can(chunks: int, layers: int, first: bool, last: bool) -> None:
    least = np.ones(chunks, int)
    least[:1] -= first
    least[-1:] -= last and (chunks > 1 or not first)
    shares = spread(40, least)[layers]

    if layers < least.sum():
        assert set(shares.tolist()) == {-1}
    else:
        assert shares.sum() == layers
        assert (shares >= least).all()
        assert layers == least.sum() or shares.max() - shares.min() <= 1
        assert layers == least.sum() or unevennesses(shares) == 1


def test_moves_of_layers_end_where_none_is_better() -> None:
    pipeline = pipeline_of(loaded(GEMMA, pp=4, vpp=2, tp=2).case)
    found = exchanged(pipeline, pipeline.even, np.inf)
    rows = [pipeline.chunk_passes(sizes[None]).reshape(2, 4).max(1).sum() for sizes in (pipeline.even, found)]

    assert found.sum() == GEMMA.layers
    assert rows[1] <= rows[0]
    assert exchanged(pipeline, found, np.inf).tolist() == found.tolist()


# --- the answer, and how an engine is told --------------------------------------------------------------------------


def read_layout(text: str) -> list[str]:
    """Megatron's layout string as one text a stage, read letter by letter: `x*n` and `(..)*n` repeat."""
    out, place = "", 0
    text = text.replace(",", "")
    while place < len(text):
        end = text.index(")", place) if text[place] == "(" else place
        unit = "".join("|".join(read_layout(text[place + 1 : end]))) if text[place] == "(" else text[place]
        place, digits = end + 1, ""
        if text[place : place + 1] == "*":
            place += 1
            while place < len(text) and text[place].isdigit():
                digits, place = digits + text[place], place + 1
        out += unit * int(digits or 1)
    return out.split("|")


SIZES = st.tuples(
    st.integers(0, 130), st.lists(st.sampled_from([1, 2, 2, 9, 11, 126]), max_size=12), st.integers(0, 130)
).map(lambda ends: (ends[0], *ends[1], ends[2]))


@given(SIZES)
def test_the_layout_string_holds_each_layer_on_its_stage(sizes: tuple[int, ...]) -> None:
    stages = read_layout(print_layout(sizes))

    assert [stage.count("t") for stage in stages] == list(sizes)
    assert "".join(stages).replace("t", "") == "EL"
    assert stages[0].startswith("E")
    assert stages[-1].endswith("L")


def test_the_layout_string_is_written_as_in_megatrons_own_documentation() -> None:
    # "Et*3|(tt|)*29,m|L" of its page is DeepSeek-V3 on 16 stages of two chunks, the multi-token layer left out here
    assert read_layout("Et*3|(tt|)*29,m|L") == ["Ettt", *["tt"] * 29, "m", "L"]
    assert print_layout((3, *[2] * 29, 0)) == "Et*3|(t*2|)*29L"


@given(SIZES)
def test_the_module_names_hold_each_layer_once_in_order(sizes: tuple[int, ...]) -> None:
    parts = module_names(sizes)
    names = [name for part in parts for name in part]

    assert names == ["tok_embeddings", *(f"layers.{layer}" for layer in range(sum(sizes))), "norm", "lm_head"]
    assert [sum(name.startswith("layers.") for name in part) for part in parts] == list(sizes)


DEMO = "llama-3.1-8b --on 32xh100-sxm --tp 2 --pp 4 --seq 8192 --batch 128"


def printed(capsys: pytest.CaptureFixture[str], words: str) -> tuple[int, dict[str, Any]]:
    """Exit code and the JSON object of a command."""
    code = main([*words.split(), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_bill_of_the_best_split_says_what_it_saves_and_how_to_set_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, bill = printed(capsys, f"count {DEMO} --split best")
    _, own = printed(capsys, f"count {DEMO}")

    assert code == 0
    assert faults(OUTPUT_SCHEMAS["bill"](), bill) == []
    assert bill["layout"]["split"] == [7, 9, 9, 7]
    assert "split 7,9,9,7: the fastest, proved (--split)" in bill["assumptions"]
    found = bill["split"]
    assert found["own_sizes"] == [8, 8, 8, 8]
    assert found["own_seconds"] == own["step"]["seconds"]
    assert found["saved_seconds"] == pytest.approx(own["step"]["seconds"] - bill["step"]["seconds"])
    assert found["saved_bytes"] == pytest.approx(own["memory"]["peak_bytes"] - bill["memory"]["peak_bytes"])
    assert found["settings"] == [
        '--pipeline-model-parallel-layout "Et*7|(t*9|)*2t*7,L"',
        "--decoder-first-pipeline-num-layers 7 --decoder-last-pipeline-num-layers 7",
    ]


def test_a_split_that_is_given_is_compared_as_well_and_none_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    _, given_one = printed(capsys, f"count {DEMO} --split 9,9,8,6")
    _, plain = printed(capsys, f"count {DEMO}")

    assert given_one["split"]["sizes"] == [9, 9, 8, 6]
    assert given_one["split"]["saved_bytes"] < 0
    assert len(given_one["split"]["settings"]) == 1  # the older flags cannot say it
    assert "split" not in plain


def test_a_split_is_compared_with_every_layer_recomputed_on_both_sides() -> None:
    layout = Layout(tp=2, pp=4, recompute="full", split=(7, 9, 9, 7))
    found = given_split(count(LLAMA_8B, JOB, load_cluster("32xh100-sxm"), layout))

    assert found is not None
    assert found.own is not None
    assert (found.bill.layout.recompute_layers, found.own.layout.recompute_layers) == (9, 8)


@pytest.mark.parametrize("command", ["memory", "traffic", "explain step", "draw", "recompute"])
def test_every_command_of_a_layout_takes_the_best_split(capsys: pytest.CaptureFixture[str], command: str) -> None:
    code = main([*command.split(), *DEMO.split(), "--split", "best", "--plain"])

    assert code == 0
    assert "LAY000" not in capsys.readouterr().out


def test_the_best_split_is_read_from_a_file_and_found_anew_for_a_bill(
    capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    (tmp_path / "ask.toml").write_text('[layout]\ntp = 2\npp = 4\nsplit = "best"\nrecompute = "full"\n')
    words = f"count llama-3.1-8b --on 32xh100-sxm --seq 8192 --batch 128 --config {tmp_path}/ask.toml"
    _, bill = printed(capsys, words)
    (tmp_path / "bill.json").write_text(json.dumps(bill))
    _, again = printed(capsys, f"count {tmp_path}/bill.json --pp 8 --split best")
    _, numbers = printed(capsys, f"{words} --split 8,8,8,8")

    assert sum(bill["layout"]["split"]) == 32
    assert len(again["layout"]["split"]) == 8
    assert again["layout"]["recompute_layers"] == max(again["layout"]["split"])
    assert numbers["layout"]["split"] == [8, 8, 8, 8]


def test_one_stage_has_nothing_to_split(capsys: pytest.CaptureFixture[str]) -> None:
    code, bill = printed(capsys, "count llama-3.1-8b --on 8xh100-sxm --tp 8 --seq 4096 --split best")

    assert code == 0
    assert "one stage: there is nothing to split (--split)" in bill["assumptions"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (f"count {DEMO} --engine deepspeed --split best", "LAY035"),
        (f"plan {DEMO} --engine deepspeed --split best", "LAY035"),
        (f"plan {DEMO} --split 8,8,8,8", "PLN003"),
        (f"count {DEMO} --split worst", "LAY000"),
    ],
)
def test_a_split_that_cannot_be_sought_is_refused(capsys: pytest.CaptureFixture[str], words: str, code: str) -> None:
    assert main([*words.split(), "--json"]) == 2
    assert [fault["code"] for fault in json.loads(capsys.readouterr().out)["errors"]] == [code]


def test_too_many_layers_are_refused() -> None:
    with pytest.raises(InputError) as refused:
        best_split(llama(513), JOB, load_cluster("32xh100-sxm"), Layout(pp=4))

    assert [fault.code for fault in refused.value.faults] == ["LAY049"]


def test_a_layout_that_breaks_other_rules_has_no_split(capsys: pytest.CaptureFixture[str]) -> None:
    code, bill = printed(capsys, f"count {DEMO.replace('--tp 2', '--tp 3')} --split best")

    assert code == 1
    assert "LAY001" in [each["code"] for each in bill["violations"]]


def test_layers_that_stages_do_not_divide_need_no_split_by_hand() -> None:
    found = best_split(DEEPSEEK_V3, Job(4096, 256), load_cluster("256xh100-sxm"), Layout(pp=4, ep=32))

    assert found is not None
    assert not found.bill.violations
    assert found.own is not None
    assert sizes_of(found.own) == (16, 16, 16, 13)


def test_a_layout_that_does_not_fit_is_advised_of_a_split_that_does(capsys: pytest.CaptureFixture[str]) -> None:
    words = "count llama-3.1-8b --on 32xh100-sxm --pp 8 --batch 64 --seq 16384"
    _, bill = printed(capsys, words)
    advised = {each["flag"]: each for each in bill["advice"]}
    _, split = printed(capsys, f"{words} --split best")

    assert split["memory"]["verdict"] == "fits"
    assert advised["--split best"]["seconds"] == split["step"]["seconds"]
    assert advised["--split best"]["peak_bytes"] == split["memory"]["peak_bytes"]


def test_a_split_that_was_sought_for_one_layout_is_paired_with_no_other_change() -> None:
    layout = Layout(tp=8, pp=4, micro_batch=2)
    bill = count(LLAMA_70B, Job(8192, 64), load_cluster("32xh100-sxm"), layout)
    single = [((change,), after) for change in changes(bill) if (after := changed(bill, (change,)))]
    kinds = [{change.kind for change in made} for made, _ in pairs_that_fit(bill, single)]

    assert "split" in {made[0].kind for made, _ in single}
    assert {"micro_batch", "recompute"} in kinds
    assert not any("split" in pair for pair in kinds)


# --- plan -----------------------------------------------------------------------------------------------------------


def test_a_plan_counts_its_best_layouts_again_with_their_best_splits(capsys: pytest.CaptureFixture[str]) -> None:
    words = "plan llama-3.1-8b --on 32xh100-sxm --seq 8192 --batch 128 --pp 4,8 --space lean --best 5"
    _, plain = printed(capsys, words)
    code, split = printed(capsys, f"{words} --split best")
    seconds = [[each["bill"]["step"]["seconds"] for each in found["best"]] for found in (plain, split)]

    assert code == 0
    assert faults(OUTPUT_SCHEMAS["plan"](), split) == []
    assert seconds[1] == sorted(seconds[1])
    assert sum(seconds[1]) < sum(seconds[0])
    assert any(each["layout"]["split"] for each in split["best"])
    assert any("with its best split" in text for text in split["assumptions"])
    assert plain["search"] | {"seconds": 0, "layouts_per_second": 0} == split["search"] | {
        "seconds": 0, "layouts_per_second": 0,
    }  # fmt: skip


def test_a_plan_finds_layouts_that_fit_with_another_split_alone() -> None:
    before = plan(load_model("llama-3.1-405b"), Job(8192, 512), load_cluster("1024xh100-sxm"), width="lean", best=4)
    after = resplit(before, 4)
    new = {mesh(each.layout) for each in after.best} - {mesh(each.layout) for each in before.best}

    assert new
    assert after.best[0].bill.step.seconds < before.best[0].bill.step.seconds
    assert all(each.bill.memory.verdict == "fits" and not each.bill.violations for each in after.best)


def test_a_plan_keeps_the_engines_own_split_where_no_other_is_better() -> None:
    before = plan(LLAMA_70B, Job(4096, 64), load_cluster("64xh100-sxm"), width="lean", best=3, pp=(1,))

    assert resplit(before, 3) == before


def test_a_layout_in_words_names_its_split(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--on", "32xh100-sxm", "--tp", "2", "--pp", "4", "--seq", "8192", "--batch", "128"]
    main(["memory", "llama-3.1-8b", *words, "--split", "7,9,9,7"])
    assert "micro-batch 1, 1f1b, split 7,9,9,7; engine" in capsys.readouterr().out
    main(["memory", "llama-3.1-8b", *words])
    assert "micro-batch 1, 1f1b; engine" in capsys.readouterr().out
