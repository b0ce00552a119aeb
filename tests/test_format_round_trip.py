"""What a framework's file holds comes back from it: over generated legal layouts, all but what the writer named."""

from dataclasses import fields, replace
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from outlay.bill import case_of, count
from outlay.cluster.accelerator import Cluster
from outlay.cluster.catalogue import clusters
from outlay.engines.tables import engine
from outlay.errors import InputError
from outlay.formats import deepspeed, megatron
from outlay.formats.leaving_out import completed
from outlay.formats.setting import Found, Run, Written
from outlay.job import Job, recipe_of
from outlay.layout.axes import Layout
from outlay.layout.rules import rules_of
from outlay.layout.stages import chunk_sizes
from outlay.model.catalogue import find
from outlay.model.model import Model

STATE = {"bytes_per_parameter", "master_dtype", "moment_dtype", "gradient_dtype"}
SOME = settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
POWERS = st.sampled_from([1, 1, 1, 2, 4, 8])
MODELS = st.sampled_from(["llama-3.1-8b", "gpt3-175b", "mixtral-8x7b", "qwen3-8b", "deepseek-v2-lite", "deepseek-v3"])


@cache
def model_of(name: str) -> Model:
    return find(name)


@cache
def cluster_of(ranks: int) -> Cluster:
    (made,) = clusters(f"{ranks}xb200")
    return made


@st.composite
def layouts(draw: st.DrawFn, model: Model, driver: str) -> dict[str, Any]:
    """Fields of a layout, most of them at what is usual."""
    pp = draw(st.sampled_from([1, 1, 2, 4]))
    made: dict[str, Any] = {
        "tp": draw(POWERS), "cp": draw(st.sampled_from([1, 1, 1, 2])), "pp": pp,
        "micro_batch": draw(st.sampled_from([1, 2])), "overlap_dp": draw(st.booleans()),
        "zero": draw(st.sampled_from([0, 1, 1, 2, 3])),
        "offload_optimizer": draw(st.sampled_from([0.0, 0.0, 1.0, 0.25])),
    }  # fmt: skip
    if model.experts:
        made |= {"ep": draw(POWERS), "etp": draw(st.sampled_from([1, 1, 2]))}
    if driver == "megatron":
        made |= draw(_megatron(model, pp))
    if driver == "deepspeed":
        made |= {
            "offload_parameters": draw(st.sampled_from([0.0, 0.0, 1.0])),
            "recompute": draw(st.sampled_from(["none", "full"])),
        }
    return made


@st.composite
def _megatron(draw: st.DrawFn, model: Model, pp: int) -> dict[str, Any]:
    made: dict[str, Any] = {
        "vpp": draw(st.sampled_from([1, 1, 2])) if pp > 1 else 1,
        "cp_kind": draw(st.sampled_from(["ring", "all_gather", "ulysses"])),
        "dp_replicate": draw(st.sampled_from([1, 1, 2])),
        "overlap_tp": draw(st.booleans()),
        "graphs": draw(st.sampled_from(["none", "none", "partial", "full"])),
    }
    if model.experts:
        made["moe_dispatch"] = draw(st.sampled_from(["all_to_all", "all_gather", "deduplicated"]))
        made["overlap_ep"] = draw(st.booleans())
    if pp > 1 and draw(st.booleans()):
        first = draw(st.integers(0, 3))
        each, rest = divmod(model.layers - first, pp * made["vpp"] - 1)
        made["split"] = (first, *[each + 1] * rest, *[each] * (pp * made["vpp"] - 1 - rest))
    how = draw(st.sampled_from(["none", "none", "core", "several", "all", "some", "groups"]))
    made |= {
        "none": {"recompute": "none"},
        "core": {"recompute": "selective", "recompute_modules": ("core_attn",)},
        "several": {"recompute": "selective", "recompute_modules": ("core_attn", "mlp", "moe_act", "layernorm")},
        "all": {"recompute": "full"},
        "some": {"recompute": "full", "recompute_layers": draw(st.integers(1, 6))},
        "groups": {"recompute": "full", "recompute_group": draw(st.integers(1, 4))},
    }[how]
    return made


JOBS = st.fixed_dictionaries(
    {
        "sequence_length": st.sampled_from([1024, 2048]),
        "tokens": st.sampled_from([0.0, 2048e6, 1e9 + 1]),
        "precision": st.sampled_from(["bf16", "bf16", "fp16", "fp32", "fp8", "fp8_delayed", "mxfp8", "nvfp4"]),
        "optimizer": st.sampled_from(["adam", "adam", "adam", "sgd", "momentum", "lion", "muon"]),
    },
    optional={
        "bytes_per_parameter": st.sampled_from(["16", "18", "8"]),
        "master_dtype": st.sampled_from(["remainder", "fp32", "fp16", "bf16"]),
        "moment_dtype": st.sampled_from(["bf16", "fp8"]),
        "gradient_dtype": st.sampled_from(["bf16", "fp32"]),
        "gather_dtype": st.just("fp8"),
        "attention_flops": st.just("full"),
        "expert_capacity": st.just(1.25),
        "reserved_bytes": st.just(1e9),
        "batch_rampup": st.just((64, 64, 100_000)),
    },
)


def legal(data: st.DataObject, driver: str) -> Run:
    """A generated run that breaks no rule of its engine, with every field filled."""
    model = model_of(data.draw(MODELS, "model"))
    cluster = cluster_of(data.draw(st.sampled_from([8, 16, 64]), "ranks"))
    layout = Layout(**data.draw(layouts(model, driver), "layout"))
    job = Job(global_batch=data.draw(st.sampled_from([256, 512]), "batch"), **data.draw(JOBS, "job"))
    try:
        case, _ = case_of(model, job, cluster, layout, driver)
    except InputError:  # an engine without the module, precision or optimizer
        reject()
    assume(all(bool(rule.legal(case)) for rule in rules_of(driver)))
    return Run(case.model, case.job, case.cluster, case.layout, case.engine)


def differences(before: Run, after: Run, written: Written) -> list[str]:
    """Fields that came back as something else, though the writer did not name them."""
    named = {one.path.partition(".")[2] for one in written.lost}
    idle = {"galore_rank"} | ({"cp_kind"} if before.layout.cp == 1 else set())
    idle |= {"moe_dispatch", "overlap_ep"} if before.layout.ep == 1 else set()
    idle |= {"overlap_tp", "keep_gathered"} if not before.layout.sp or before.layout.tp == 1 else set()
    idle |= {"recompute_group"} if before.layout.recompute != "full" else set()
    found = []
    for record, again in ((before.layout, after.layout), (before.job, after.job)):
        for field in fields(record):
            if field.name in named | idle | STATE | {"split"} or (field.name == "reduce_dtype" and named & STATE):
                continue
            one, two = getattr(record, field.name), getattr(again, field.name)
            if one != two and list(map(str, [one])) != list(map(str, [two])):
                found.append(f"{field.name}: {one} became {two}")
    return [*found, *_split(before, after, named), *_bytes(before, after, named)]


def _split(before: Run, after: Run, named: set[str]) -> list[str]:
    sizes = [
        chunk_sizes(run.model.layers, run.layout.pp, run.layout.vpp, tuple(run.layout.split), run.engine.counts_ends)
        for run in (before, after)
    ]
    return [] if sizes[0] == sizes[1] or named & {"split", "vpp", "pp"} else [f"layers {sizes[0]} became {sizes[1]}"]


def _bytes(before: Run, after: Run, named: set[str]) -> list[str]:
    """Bytes a parameter: a recipe has several names, its bytes are what counts."""
    if named & (STATE | {"optimizer", "precision", "gather_dtype"}):
        return []
    one, two = (recipe_of(run.job, engine(before.engine.name), run.cluster.accelerator) for run in (before, after))
    wire = {"reduced": 0, "reduced_sharded": 0} if "reduce_dtype" in named else {}
    one, two = (replace(each, name="", adam_touched=0, **wire) for each in (one, two))  # Adam under the recipe's name
    return [] if one == two else [f"bytes {one} became {two}"]


def back(run: Run, found: Found, driver: str) -> Run:
    return completed(run, found.job, found.layout, driver)


@SOME
@given(st.data())
def test_megatron_arguments_come_back_as_they_were_written(data: st.DataObject) -> None:
    run = legal(data, "megatron")

    written = megatron.write(run)
    found = megatron.read(written.text.encode())

    assert differences(run, back(run, found, "megatron"), written) == []
    assert found.ranks == run.cluster.ranks
    assert found.missing == () and found.kept == ()
    assert found.model is not None
    same = replace(run.model, name="", family="", notes=(), blocks=())
    assert replace(found.model, name="", family="", notes=(), blocks=()) == same
    assert [block.parts for block in found.model.blocks] == [block.parts for block in run.model.blocks]


@SOME
@given(st.data())
def test_a_deepspeed_file_comes_back_as_it_was_written(data: st.DataObject) -> None:
    run = legal(data, "deepspeed")

    written = deepspeed.write(run)
    found = deepspeed.read(written.text.encode())

    assert (
        differences(
            run,
            back(run, replace(found, job=replace(found.job, sequence_length=run.job.sequence_length)), "deepspeed"),
            written,
        )
        == []
    )
    assert found.kept == ()
    assert {one.path for one in written.lost} >= {"model", "job.sequence_length"}
    assert {one.field for one in found.missing} == {"model", "sequence_length"}


def test_a_field_that_is_dropped_in_silence_is_found() -> None:
    (cluster,) = clusters("16xh100-sxm")
    bill = count(model_of("llama-3.1-8b"), Job(2048, 64), cluster, Layout(tp=2, loss_chunks=1), "megatron")
    run = Run(bill.model, bill.job, bill.cluster, bill.layout, bill.engine)
    written = megatron.write(run)

    for flag in ("--sequence-parallel", "--overlap-grad-reduce", "--bf16", "--use-distributed-optimizer"):
        found = megatron.read(written.text.replace(flag + "\n", "\n").encode())
        assert differences(run, back(run, found, "megatron"), written)


@pytest.mark.parametrize("name", ["llama-3.1-405b", "qwen3-235b-a22b", "kimi-k2", "gpt3-175b"])
def test_models_of_usual_kinds_have_words_in_megatron(name: str) -> None:
    bill = count(model_of(name), Job(1024, 64), cluster_of(64), Layout(), "megatron")

    written = megatron.write(Run(bill.model, bill.job, bill.cluster, bill.layout, bill.engine))

    assert [one for one in written.lost if one.path == "model"] == []


def test_a_name_with_a_line_end_does_not_leave_its_comment() -> None:
    bill = count(
        replace(model_of("llama-3.1-8b"), name="a\nrm -rf x"), Job(1024, 64), cluster_of(8), Layout(), "megatron"
    )

    written = megatron.write(Run(bill.model, bill.job, bill.cluster, bill.layout, bill.engine))

    assert "for a?rm -rf x on" in written.text.splitlines()[1]


@pytest.mark.parametrize("name", ["gemma-2-27b", "qwen3-next-80b-a3b", "gpt-oss-20b"])
def test_a_model_that_megatrons_flags_have_no_words_for_is_lost_whole(name: str) -> None:
    bill = count(model_of(name), Job(1024, 64), cluster_of(64), Layout(), "megatron")

    written = megatron.write(Run(bill.model, bill.job, bill.cluster, bill.layout, bill.engine))

    assert [one.value for one in written.lost if one.path == "model"] == [name]
    assert "--num-layers" not in written.text and "--tensor-model-parallel-size" in written.text
