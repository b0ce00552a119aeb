"""Bytes a parameter of every optimizer and precision, what they move, and what contradicts itself."""

import json
import re
import shlex
from dataclasses import replace
from math import isclose
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import DEEPSEEK_V3, LLAMA_7B, LLAMA_8B, MIXTRAL
from outlay import Bill, InputError, Job, Layout, Model, count, load_cluster, load_engine, load_model, plan
from outlay.bill import case_of, load
from outlay.cli.main import main
from outlay.engines.recipe import Recipe
from outlay.engines.tables import optimizer, precision
from outlay.job import recipe_of
from outlay.memory.states import optimizer_bytes, state_bytes, weight_bytes
from outlay.step.compute import optimizer_seconds, touched_bytes
from outlay.undivided import parameters, state_of

GB, TB = 1e9, 1e12
OPTIMIZERS = ("adam", "sgd", "momentum", "adam8bit", "adafactor", "lion", "muon", "adam_mini", "galore")
H100, B200 = load_cluster("8xh100-sxm").accelerator, load_cluster("8xb200").accelerator
PAGE = (Path(__file__).parent.parent / "docs" / "recipes.md").read_text(encoding="utf-8")


def recipe(engine: str = "megatron", card: Any = H100, **job: Any) -> Recipe:
    """The recipe of a job in bf16, with some fields changed."""
    return recipe_of(Job(4096, 64, **({"precision": "bf16"} | job)), load_engine(engine), card)


def parts(found: Recipe) -> tuple[float, float, float]:
    """Weights, gradients and optimizer, where every parameter costs the same."""
    assert found.moments.uniform
    return found.weights, found.gradients, found.optimizer


def bill(model: Model = LLAMA_8B, on: str = "8xh100-sxm", engine: str = "megatron", **fields: Any) -> Bill:
    """The bill of a job and a layout."""
    axes = {name: fields.pop(name) for name in [*fields] if name in Layout.__dataclass_fields__}
    return count(model, Job(4096, 768, **fields), load_cluster(on), Layout(**axes), engine)


def codes(**fields: Any) -> list[str]:
    """The codes of the faults of a job."""
    with pytest.raises(InputError) as caught:
        bill(**fields)
    return [fault.code for fault in caught.value.faults]


# --- bytes a parameter ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "megatron", "fsdp2"),
    [("adam", 18, 16), ("sgd", 10, 8), ("momentum", 14, 12), ("lion", 14, 12)],
)
def test_an_optimizer_keeps_four_bytes_a_moment(name: str, megatron: float, fsdp2: float) -> None:
    assert recipe(optimizer=name).bytes_per_parameter == megatron
    assert recipe("fsdp2", optimizer=name).bytes_per_parameter == fsdp2


@pytest.mark.parametrize("name", ["8", "12", "16", "18", "20", "22", "fsdp2", "maxtext"])
def test_a_recipe_has_the_total_that_it_is_named_by(name: str) -> None:
    assert recipe(bytes_per_parameter=name).bytes_per_parameter == (16 if name in ("fsdp2", "maxtext") else int(name))


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("16", (2, 2, 12)),
        ("18", (2, 4, 12)),
        ("20", (2, 6, 12)),
        ("22", (2, 2, 18)),
        ("12", (4, 0, 8)),
        ("maxtext", (4, 4, 8)),
        ("8", (2, 2, 4)),
        ("fsdp2", (4, 4, 8)),
    ],
)
def test_a_recipe_keeps_what_its_source_says(name: str, kept: tuple[float, float, float]) -> None:
    assert parts(recipe(bytes_per_parameter=name)) == kept


def test_an_fp32_run_keeps_no_master_and_fp16_only_adds_a_loss_scale() -> None:
    assert parts(recipe(precision="fp32")) == (4, 4, 8)
    assert parts(recipe("fsdp2", precision="fp32")) == (4, 4, 8)
    assert parts(recipe(precision="fp16")) == parts(recipe(precision="bf16")) == (2, 4, 12)


@pytest.mark.parametrize(
    ("types", "kept"),
    [
        ({"moment_dtype": "bf16"}, (2, 4, 8)),  # DeepSeek-V3: fp32 master and gradients, bf16 moments
        ({"master_dtype": "remainder"}, (2, 4, 10)),  # store_param_remainders: 16 bits beside the bf16 weight
        ({"master_dtype": "fp16", "moment_dtype": "fp16", "gradient_dtype": "bf16"}, (2, 2, 6)),
        ({"moment_dtype": "fp8", "gradient_dtype": "bf16"}, (2, 2, 6)),
        ({"master_dtype": "none", "moment_dtype": "bf16", "gradient_dtype": "bf16"}, (2, 2, 4)),
    ],
)
def test_number_types_change_the_bytes_of_state(types: dict[str, str], kept: tuple[float, float, float]) -> None:
    assert parts(recipe(**types)) == kept


def test_a_master_of_the_weights_own_type_is_the_weight_itself() -> None:
    assert recipe(precision="fp32", master_dtype="fp32") == recipe(precision="fp32", master_dtype="none")
    assert recipe("fsdp2", master_dtype="bf16").weights == recipe("fsdp2", master_dtype="none").weights == 2


def test_a_named_total_does_not_follow_the_precision() -> None:
    for name in ("fp32", "fp8", "fp16", "bf16"):
        assert parts(recipe(bytes_per_parameter="16", precision=name)) == (2, 2, 12)


@pytest.mark.parametrize(
    ("name", "card", "copies"),
    [
        ("fp8", H100, 2), ("fp8_delayed", H100, 2), ("fp8_tensorwise", H100, 2), ("fp8_tensorwise", B200, 1),
        ("fp8_blockwise", H100, 2 * (1 + 4 / 128**2)), ("mxfp8", B200, 2 * (1 + 1 / 32)),
        ("nvfp4", B200, 2 * (1 / 2 + 1 / 16)), ("bf16", H100, 0),
    ],
)  # fmt: skip
def test_quantised_weights_stand_beside_the_16_bit_ones(name: str, card: Any, copies: float) -> None:
    found = recipe(card=card, precision=name)
    assert (found.weights, found.copies) == (2, copies)
    assert recipe("fsdp2", card, precision=name).copies == 0


def test_weights_that_are_gathered_in_fp8_do_not_stay_in_16_bit() -> None:
    found = recipe(precision="fp8", gather_dtype="fp8")
    assert (found.weights + found.copies, found.gathered, found.ends_gathered) == (2, 1, 2)
    native = recipe(card=B200, precision="fp8_tensorwise", gather_dtype="fp8")
    assert (native.weights + native.copies, native.gathered) == (1, 1)
    blocks = recipe(card=B200, precision="mxfp8", gather_dtype="fp8")
    assert (blocks.weights + blocks.copies, blocks.gathered) == (2.0625, 2)  # gathered in bf16, quantised afterwards


def test_embedding_and_head_are_never_quantised() -> None:
    state = state_of(LLAMA_8B, recipe(precision="fp8"))
    vectors = 65 * 4096  # two norms a layer, and the last one
    matrices = parameters(LLAMA_8B).total - 2 * 128_256 * 4096 - vectors
    assert state.weights == 2 * state.parameters + 2 * matrices
    held = {item.name: item.value for item in bill(precision="fp8").memory.items}
    assert held["weights"] == state.weights


@pytest.mark.parametrize(
    ("name", "units"), [("fp8_delayed", "15h + 5f"), ("fp8_tensorwise", "14h + 5f"), ("bf16", "16h + 6f")]
)
def test_the_tape_of_a_llama_layer_shrinks_by_the_inputs_of_its_linears_alone(name: str, units: str) -> None:
    """A token of Llama-2-7B keeps 16h + 6f + 4a + 8 bytes a layer in bf16. Delayed scaling leaves 88.5 % of it."""
    layers = {"15h + 5f": 116_616, "14h + 5f": 112_520, "16h + 6f": 131_720}
    at = load(case_of(LLAMA_7B, Job(4096, 1, precision=name), load_cluster("1xh100-sxm"), Layout())[0])
    assert at.stages[0].kept / (32 * 4096) == layers[units]


# --- optimizers that see shapes -------------------------------------------------------------------------------------

HIDDEN, FFN, VOCAB, KV, LAYERS = 4096, 14_336, 128_256, 1024, 32
MATRICES = ((HIDDEN, HIDDEN + 2 * KV), (HIDDEN, HIDDEN), (HIDDEN, 2 * FFN), (FFN, HIDDEN))
INSIDE = LAYERS * sum(rows * columns for rows, columns in MATRICES)
TABLE, VECTORS = VOCAB * HIDDEN, (2 * LAYERS + 1) * HIDDEN


def moments(name: str, **job: Any) -> float:
    """Bytes of an optimizer's state of Llama-3.1-8B beside weights and masters."""
    found = recipe("fsdp2", optimizer=name, **job)
    assert found.master == 0
    return state_of(LLAMA_8B, found).optimizer


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("adam", 8 * (INSIDE + 2 * TABLE + VECTORS)),
        ("muon", 4 * INSIDE + 8 * (2 * TABLE + VECTORS)),
        ("adam_mini", 4 * INSIDE + 8 * 2 * TABLE + 4 * VECTORS),
        ("adam8bit", 2 * (1 + 4 / 256) * (INSIDE + TABLE) + 8 * (TABLE + VECTORS)),
        ("adafactor", 4 * (LAYERS * sum(map(sum, MATRICES)) + 2 * (VOCAB + HIDDEN) + VECTORS)),
    ],
)
def test_state_by_shape_is_the_sum_over_matrices_tables_and_vectors(name: str, expected: float) -> None:
    assert parameters(LLAMA_8B).total == INSIDE + 2 * TABLE + VECTORS
    assert moments(name) == expected


@pytest.mark.parametrize("rank", [128, 1024])
def test_galore_keeps_moments_of_projected_matrices_and_their_projectors(rank: int) -> None:
    projected = sum(8 * rank * max(shape) + 2 * rank * min(shape) for shape in MATRICES)
    assert moments("galore", galore_rank=rank) == LAYERS * projected + 8 * (2 * TABLE + VECTORS)


def test_a_rank_above_a_matrix_projects_nothing() -> None:
    assert moments("galore", galore_rank=10**6) == moments("galore", galore_rank=HIDDEN)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(OPTIMIZERS), st.sampled_from([1, 2, 4, 8]), st.sampled_from([0, 1]))
def test_the_states_of_all_stages_add_up_to_the_undivided_state(name: str, pp: int, zero: int) -> None:
    at = load(case_of(MIXTRAL, Job(4096, 64, precision="bf16", optimizer=name), load_cluster(f"{8 * pp}xh100-sxm"),
                      Layout(pp=pp, ep=8, zero=zero), "fsdp2")[0])  # fmt: skip
    whole = state_of(MIXTRAL, at.case.recipe)
    experts = sum(float(stage.moments("expert")) for stage in at.every) * 8
    dense = sum(float(stage.moments("dense")) for stage in at.every)
    assert isclose(experts + dense, whole.optimizer, rel_tol=1e-12)
    held = sum(float(optimizer_bytes(stage, at.case)) for stage in at.every)
    divided = dense / (8 if zero else 1) + experts / 8  # edp is 1, and eight ranks hold other experts
    assert isclose(held, divided, rel_tol=1e-12)


def test_tensor_parallelism_cuts_a_factor_along_one_side_only() -> None:
    found = {}
    for tp in (1, 2):
        job = Job(4096, 64, precision="bf16", optimizer="adafactor")
        at = load(case_of(LLAMA_8B, job, load_cluster("8xh100-sxm"), Layout(tp=tp))[0])
        found[tp] = at.stages[0].layers[0].costs.dense.moments - 4 * 2 * HIDDEN  # two norms, whole on every rank
    columns = (HIDDEN, HIDDEN // 2 + KV), (HIDDEN, FFN)
    rows = (HIDDEN // 2, HIDDEN), (FFN // 2, HIDDEN)
    assert found == {1: 4 * sum(map(sum, MATRICES)), 2: 4 * sum(map(sum, (*columns, *rows)))}


# --- what an optimizer step costs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("engine", "traffic"), [("megatron", 40), ("fsdp2", 28)])
def test_adam_moves_what_its_engine_was_measured_to_move(engine: str, traffic: float) -> None:
    at = load(case_of(LLAMA_8B, Job(4096, 64, precision="bf16"), load_cluster("8xh100-sxm"), Layout(), engine)[0])
    own = at.stages[0].dense_parameters / 8
    assert isclose(touched_bytes(at.stages[0], at.case), traffic * own, rel_tol=1e-12)


def test_an_optimizer_moves_less_as_its_moments_are_fewer() -> None:
    """Of fp32 parameters: gradient 4, weight 4 + 4, and 4 + 4 a moment."""
    moved = {}
    for name in ("sgd", "momentum", "lion", "adam"):
        job = Job(4096, 64, precision="bf16", optimizer=name)
        at = load(case_of(LLAMA_8B, job, load_cluster("8xh100-sxm"), Layout(), "fsdp2")[0])
        moved[name] = touched_bytes(at.stages[0], at.case) / (at.stages[0].dense_parameters / 8)
    assert {name: round(value, 9) for name, value in moved.items()} == {
        "sgd": 12,
        "momentum": 20,
        "lion": 20,
        "adam": 28,
    }


def test_muon_orthogonalises_its_share_of_the_matrices_in_bf16() -> None:
    """Five steps of 4 m m n + 2 m m m FLOPs on every matrix inside a layer."""
    times = {}
    for name in ("muon", "momentum"):
        job = Job(4096, 64, precision="bf16", optimizer=name)
        at = load(case_of(LLAMA_8B, job, load_cluster("8xh100-sxm"), Layout(), "megatron")[0])
        moments_moved = 2 * 4 * (2 * TABLE + VECTORS) / 8 if name == "muon" else 0  # Adam's second moments
        reached = H100.memory_bandwidth * H100.memory_share
        scale = at.case.engine.optimizer_traffic / at.case.recipe.adam_touched
        times[name] = float(optimizer_seconds(at.stages[0], at.case)) - moments_moved * scale / reached
    work = LAYERS * sum(5 * (4 * min(s) ** 2 * max(s) + 2 * min(s) ** 3) for s in MATRICES)
    assert isclose(times["muon"] - times["momentum"], work / 8 / (H100.bf16_flops * H100.matmul_share), rel_tol=1e-9)


def test_a_matrix_that_is_cut_is_gathered_once_more_for_muon_and_a_whole_one_is_not() -> None:
    sent = {}
    for engine, name in (("megatron", "adam"), ("megatron", "muon"), ("fsdp2", "adam"), ("fsdp2", "muon")):
        (item,) = bill(engine=engine, optimizer=name, micro_batch=8).traffic
        sent[engine, name] = item.bytes
    assert sent["megatron", "muon"] == sent["megatron", "adam"]
    layers = INSIDE + 2 * LAYERS * HIDDEN
    assert isclose(sent["fsdp2", "muon"] - sent["fsdp2", "adam"], 2 * layers * 7 / 8, rel_tol=1e-4)


def test_weights_gathered_in_fp8_halve_the_gather_of_layers_but_not_of_the_ends() -> None:
    wide, half = (bill(precision="fp8", gather_dtype=kind).traffic[0].bytes for kind in ("bf16", "fp8"))
    assert isclose(wide - half, (INSIDE + 2 * LAYERS * HIDDEN) * 7 / 8, rel_tol=1e-4)


def test_gradients_are_sent_in_the_type_that_they_accumulate_in() -> None:
    narrow = recipe(gradient_dtype="bf16")
    assert (narrow.reduced, recipe().reduced, recipe("fsdp2", gradient_dtype="bf16").reduced) == (2, 4, 4)
    assert recipe(reduce_dtype="bf16").reduced == 2


# --- cases of others ------------------------------------------------------------------------------------------------


def test_96_cards_hold_deepseek_v3_with_its_optimizer_on_the_host_and_not_without() -> None:
    """verl-project/verl pull request 3019: bf16 weights and fp32 gradients are 6 bytes a parameter."""
    away, here = (
        bill(DEEPSEEK_V3, "96xh100-sxm", zero=3, offload_optimizer=share, recompute="full").memory
        for share in (1.0, 0.0)
    )
    assert round(away.state_bytes / GB, 1) == 41.9
    assert round(here.state_bytes / GB) == 126
    assert here.verdict == "impossible"


def test_deepseek_v3_needs_134_cards_of_80_gb_for_its_state_alone_and_17_for_its_weights() -> None:
    """deepseek-ai/DeepSeek-V3 issue 109."""
    amount = parameters(DEEPSEEK_V3).total
    wall = {name: state_of(DEEPSEEK_V3, recipe(bytes_per_parameter=name)) for name in ("16", "18")}
    assert [round(wall[name].bytes / TB, 1) for name in wall] == [10.7, 12.1]
    assert [round(wall[name].bytes / (80 * GB)) for name in wall] == [134, 151]
    assert round(wall["16"].weights / TB, 2) == 1.34
    assert -(-2 * amount // int(80 * GB)) == 17


def test_mpt_30b_with_lion_needs_24_cards_of_16_gb_for_its_state_alone() -> None:
    """mosaicml/llm-foundry issue 437: 4 + 4 + 4 bytes of 29.98 billion parameters."""
    found = recipe("fsdp2", optimizer="lion")
    wall = state_bytes(29.98e9, found.bytes_per_parameter)
    assert parts(found) == (4, 4, 4)
    assert [round(wall / GB, 1), round(wall / 24 / GB, 1), round(wall / 32 / GB, 1)] == [359.8, 15.0, 11.2]


def test_qwen3_30b_on_8_cards_is_adam_wholly_in_bf16() -> None:
    """huggingface/trl pull request 6869: a measured peak of 34 GB is 8 bytes a parameter, and not 16."""
    model = load_model("qwen3-30b-a3b")
    pure = {"master_dtype": "none", "moment_dtype": "bf16", "gradient_dtype": "bf16"}
    narrow = bill(model, engine="fsdp2", ep=8, recompute="full", **pure).memory
    wide = bill(model, engine="fsdp2", ep=8, recompute="full").memory
    assert round(narrow.state_bytes / GB, 1) == 30.5
    assert round(wide.state_bytes / GB) == 61


# --- what contradicts itself ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"bytes_per_parameter": "16", "optimizer": "lion", "gradient_dtype": "fp32"}, ["JOB003", "JOB003"]),
        ({"bytes_per_parameter": "18", "moment_dtype": "bf16"}, ["JOB003"]),
        ({"precision": "bf16", "gather_dtype": "fp8"}, ["JOB004"]),
        ({"precision": "nvfp4", "gather_dtype": "fp8"}, ["JOB004"]),
        ({"precision": "fp32", "master_dtype": "bf16"}, ["JOB004"]),
        ({"precision": "fp16", "master_dtype": "remainder"}, ["JOB004"]),
        ({"optimizer": "lion", "moment_dtype": "bf16"}, ["JOB004"]),
        ({"optimizer": "adam8bit", "moment_dtype": "bf16", "engine": "fsdp2"}, ["JOB004"]),
        ({"optimizer": "adamw"}, ["JOB000"]),
        ({"optimizer": "shampoo", "precision": "fp7"}, ["JOB000", "JOB000"]),
    ],
)
def test_a_job_that_contradicts_itself_is_refused_with_every_fault(fields: dict[str, Any], expected: list[str]) -> None:
    assert codes(**fields) == expected


def test_fields_that_agree_with_a_named_total_are_taken() -> None:
    found = bill(bytes_per_parameter="16", gradient_dtype="bf16", master_dtype="fp32")
    assert found.memory.unsharded_state_bytes == 16 * found.parameters.total


def test_an_unknown_optimizer_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["count", "llama-3.1-8b", "--on", "8xh100-sxm", "--optimizer", "adamw8bit"]) == 2
    assert "fix   --optimizer adam8bit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("on", "fields", "broken"),
    [
        ("8xa100-sxm-80", {"precision": "fp8_tensorwise"}, ["JOB002"]),
        ("8xh100-sxm", {"precision": "nvfp4"}, ["JOB002"]),
        ("8xh100-sxm", {"precision": "mxfp8"}, ["JOB002"]),
        ("8xb200", {"precision": "mxfp8"}, []),
        ("8xb200", {"precision": "nvfp4"}, []),
        ("8xh100-sxm", {"precision": "fp8_blockwise"}, []),
        ("8xh100-sxm", {"optimizer": "muon", "zero": 2}, ["JOB005"]),
        ("8xh100-sxm", {"optimizer": "muon", "zero": 1}, []),
        ("8xh100-sxm", {"optimizer": "muon", "zero": 3, "engine": "fsdp2"}, []),
        ("8xh100-sxm", {"moment_dtype": "bf16", "zero": 0}, ["JOB006"]),
        ("8xh100-sxm", {"moment_dtype": "bf16", "zero": 1}, []),
    ],
)
def test_cards_and_zero_stages_allow_what_their_makers_say(on: str, fields: dict[str, Any], broken: list[str]) -> None:
    assert [violation.code for violation in bill(on=on, **fields).violations] == broken


# --- bills, plans and the page --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_printed_bill_is_read_back_as_it_was(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--on", "8xh100-sxm", "--seq", "4096", "--batch", "64", "--optimizer", name, "--precision", "fp8"]
    assert main(["count", "llama-3.1-8b", *asked, "--json"]) in (0, 1)
    first = capsys.readouterr().out
    (tmp_path / "bill.json").write_text(first)
    main(["count", str(tmp_path / "bill.json"), "--json"])
    again = json.loads(capsys.readouterr().out)
    assert (again["job"], again["memory"]) == (json.loads(first)["job"], json.loads(first)["memory"])


def test_another_optimizer_on_a_printed_bill_changes_its_total(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["count", "llama-3.1-8b", "--on", "8xh100-sxm", "--seq", "4096", "--batch", "64", "--bytes", "16", "--json"])
    (tmp_path / "bill.json").write_text(capsys.readouterr().out)
    totals = []
    for more in (["--optimizer", "lion"], ["--bytes", "18"], ["--gradient-dtype", "fp32"], ["--moment-dtype", "bf16"]):
        main(["count", str(tmp_path / "bill.json"), *more, "--json"])
        answer = json.loads(capsys.readouterr().out)
        totals.append(answer["memory"]["unsharded_state_bytes"] / answer["model"]["parameters"]["total"])
    assert totals == [12, 18, 18, 12]


def test_a_search_with_lion_finds_layouts_that_need_less_than_with_adam() -> None:
    small = {"tp": (1, 2), "pp": (1,), "vpp": (1,), "cp": (1,), "micro_batch": (1,), "zero": (1,)}
    found = {
        name: plan(LLAMA_8B, Job(4096, 64, optimizer=name), load_cluster("8xh100-sxm"), width="lean", **small)
        for name in ("adam", "lion", "muon")
    }
    peaks = {name: min(point.peak_bytes for point in one.frontier) for name, one in found.items()}
    assert peaks["lion"] < peaks["muon"] < peaks["adam"]
    for one in found.values():
        best = one.best[0]
        alone = count(LLAMA_8B, one.job, one.cluster, best.layout)
        assert best.bill.violations == ()
        assert (alone.memory.peak_bytes, alone.step.seconds) == (best.bill.memory.peak_bytes, best.bill.step.seconds)


@pytest.mark.parametrize(
    ("fields", "stages"),
    [({}, {0, 1, 2, 3}), ({"optimizer": "muon"}, {0, 1}), ({"moment_dtype": "bf16"}, {1, 2, 3})],
    ids=["adam", "muon", "bf16 moments"],
)
def test_a_search_goes_through_the_zero_stages_that_the_optimizer_allows(
    fields: dict[str, str], stages: set[int]
) -> None:
    plain = {"tp": (1, 2), "pp": (1,), "cp": (1,), "micro_batch": (1,), "recompute": ("full",)}
    job = Job(4096, 64, **fields)
    assert {stage for stage, _ in plan(LLAMA_8B, job, load_cluster("8xh100-sxm"), **plain).space.zero} == stages
    found = plan(LLAMA_8B, job, load_cluster("8xh100-sxm"), zero=(0, 3), **plain)
    assert all(each.bill.violations == () for each in found.best)
    assert {each.layout.zero for each in found.best} <= stages


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_row_has_a_source_and_a_kind(name: str) -> None:
    row = optimizer(name)
    assert row.source and row.kind in ("specified", "measured", "assumed") and row.title


@pytest.mark.parametrize("name", ["bf16", "fp16", "fp32", "fp8", "fp8_delayed", "fp8_tensorwise", "fp8_blockwise"])
def test_every_precision_has_a_source_and_a_kind(name: str) -> None:
    assert precision(name).source and precision(name).kind in ("specified", "measured", "assumed")


def test_weights_that_are_cut_cut_their_quantised_copies() -> None:
    whole, cut = (
        load(case_of(LLAMA_8B, Job(4096, 64, precision="fp8"), load_cluster("8xh100-sxm"), Layout(zero=zero))[0])
        for zero in (1, 3)
    )
    assert isclose(weight_bytes(whole.stages[0], whole.case), 8 * weight_bytes(cut.stages[0], cut.case))
    assert whole.case.recipe == replace(cut.case.recipe)


COMMANDS = re.findall(r"`(outlay count [^`]+)` \| ([\d.]+) GB", PAGE)


@pytest.mark.parametrize(("command", "gigabytes"), COMMANDS)
def test_every_command_of_the_page_counts_the_state_that_the_page_gives(
    command: str, gigabytes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*shlex.split(command)[1:], "--json"]) in (0, 1)
    answer = json.loads(capsys.readouterr().out)
    assert f"{answer['memory']['unsharded_state_bytes'] / GB:.1f}" == gigabytes
    assert answer["violations"] == []


def test_the_page_has_a_command_for_every_optimizer_and_precision() -> None:
    said = " ".join(command for command, _ in COMMANDS)
    assert all(f"--optimizer {name}" in said for name in OPTIMIZERS if name != "adam")
    assert all(f"--precision {name}" in said for name in ("fp8_tensorwise", "fp8_blockwise", "mxfp8", "nvfp4", "fp32"))
