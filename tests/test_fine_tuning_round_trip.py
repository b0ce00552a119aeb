"""What a file of fine-tuning holds comes back from it: over generated legal layouts, all but what the writer named."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st

from outlay.bill import case_of
from outlay.engines.tables import kernel_set
from outlay.errors import InputError
from outlay.formats import axolotl, llamafactory, trainer
from outlay.formats.leaving_out import completed
from outlay.formats.setting import Found, Run
from outlay.job import Job
from outlay.layout.axes import Layout
from outlay.layout.rules import rules_of
from outlay.layout.training_rules import matrices
from outlay.model.trained import named_targets
from test_format_round_trip import back as rewritten
from test_format_round_trip import cluster_of, differences, model_of
from test_format_round_trip import legal as legal_run

FORMATS: dict[str, ModuleType] = {"axolotl": axolotl, "llama-factory": llamafactory, "trainer": trainer}
SOME = settings(
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
POWERS = st.sampled_from([1, 1, 1, 2, 4])
MODELS = st.sampled_from(["llama-3.1-8b", "mixtral-8x7b", "qwen3-8b", "gemma-2-9b", "smollm3-3b", "gpt3-175b"])


@st.composite
def layouts(draw: st.DrawFn, driver: str) -> dict[str, Any]:
    """Fields of a layout, most of them at what is usual."""
    made: dict[str, Any] = {
        "tp": draw(POWERS),
        "cp": draw(st.sampled_from([1, 1, 1, 2])),
        "micro_batch": draw(st.sampled_from([1, 2])),
        "recompute": draw(st.sampled_from(["none", "full"])),
        "zero": draw(st.sampled_from([0, 1, 2, 3] if driver == "deepspeed" else [0, 2, 3])),
        "offload_optimizer": draw(st.sampled_from([0.0, 0.0, 1.0])),
        "offload_parameters": draw(st.sampled_from([0.0, 0.0, 1.0])),
        "overlap_dp": draw(st.sampled_from([True, True, False])),
    }
    if driver == "deepspeed":
        made["ep"] = draw(st.sampled_from([1, 1, 1, 2]))
    if driver == "hf_trainer":
        made["dp_replicate"] = draw(st.sampled_from([1, 1, 2]))
        made["cp_kind"] = draw(st.sampled_from(["ring", "all_gather"]))
        made["accumulate_whole"] = draw(st.sampled_from([True, True, False]))
        made["gather_unit"] = draw(st.sampled_from(["layer", "layer", "model"]))
    if made["recompute"] == "full":
        made["offload_activations"] = draw(st.sampled_from([0.0, 0.0, 1.0, 0.5]))
        made |= draw(st.sampled_from([{}, {}, {"recompute_layers": 16}]))
    return made


ADAPTERS = st.sampled_from(
    [
        {}, {}, {"adapter": "lora"}, {"adapter": "qlora", "adapter_rank": 64},
        {"adapter": "dora", "adapter_targets": ("q_proj", "v_proj")},
        {"adapter": "lora", "frozen_format": "int8"}, {"adapter": "qlora", "frozen_format": "nf4"},
        {"adapter": "lora", "frozen_format": "fp8"}, {"adapter": "lora", "adapter_targets": ("attention",)},
        {"frozen": ("embedding",)},
    ]
)  # fmt: skip
JOBS = st.fixed_dictionaries(
    {
        "sequence_length": st.sampled_from([1024, 2048]),
        "tokens": st.sampled_from([0.0, 0.0, 2048e6]),
        "precision": st.sampled_from(["bf16", "bf16", "fp16", "fp32", "fp8", "fp8_rowwise", "fp8_tensorwise"]),
        "optimizer": st.sampled_from(["adam", "adam", "adam8bit", "adafactor", "lion", "galore", "sgd", "momentum"]),
    },
    optional={
        "bytes_per_parameter": st.sampled_from(["16", "8", "fsdp2"]),
        "gradient_dtype": st.sampled_from(["bf16", "fp32"]),
        "reduce_dtype": st.sampled_from(["bf16", "fp32"]),
        "reserved_bytes": st.just(1e9),
    },
)


def legal(data: st.DataObject, driver: str) -> Run:
    """A generated run that breaks no rule of its engine, with every field filled."""
    model = model_of(data.draw(MODELS, "model"))
    cluster = cluster_of(data.draw(st.sampled_from([8, 16]), "ranks"))
    layout = Layout(**data.draw(layouts(driver), "layout"))
    job = Job(global_batch=256, **data.draw(JOBS, "job"), **data.draw(ADAPTERS, "adapter"))
    try:
        case, _ = case_of(model, job, cluster, layout, driver)
    except InputError:
        reject()
    assume(all(bool(rule.legal(case)) for rule in rules_of(driver)))
    return Run(case.model, case.job, case.cluster, case.layout, case.engine)


def targets(run: Run) -> frozenset[str]:
    """The matrices of the model with an adapter."""
    return named_targets(run.job.adapter_targets) & matrices(run.model, kernel_set(run.engine.kernels))


def back(run: Run, found: Found) -> Run:
    """The run of a file on the cluster that it was written for."""
    dp = run.cluster.ranks // ((found.layout.tp or 1) * (found.layout.cp or 1))
    assert found.job.global_batch == found.accumulated * dp
    return completed(run, found.job, found.layout, found.engine)


@pytest.mark.parametrize("driver", ["hf_trainer", "deepspeed"])
@pytest.mark.parametrize("name", FORMATS)
@SOME
@given(st.data())
def test_a_file_of_fine_tuning_comes_back_as_it_was_written(name: str, driver: str, data: st.DataObject) -> None:
    form, run = FORMATS[name], legal(data, driver)

    written = form.write(run)
    found = form.read(written.text.encode())

    assert form.is_of(written.text)
    assert (found.engine, found.ranks) == (driver, run.cluster.ranks)
    again = back(run, found)
    named = {one.path.rpartition(".")[2] for one in written.lost}
    apart = {"global_batch"} if named & {"tp", "cp", "pp"} else set()  # other data-parallel ranks, another batch
    apart |= {
        text for text in differences(run, again, written) if text.startswith("bytes") and "frozen_format" in named
    }
    apart |= {"gather_dtype", "reduce_dtype", "frozen_format"} if "precision" in named else set()  # they follow it
    apart |= {"adapter_targets"} if targets(run) == targets(again) else set()  # `attention` is its matrices by name
    found_again = differences(run, again, written)
    assert [text for text in found_again if text.partition(":")[0] not in apart and text not in apart] == []
    assert [one.text for one in found.kept] == []
    assert [one for one in found.findings if one.serious] == []
    assert found.missing == () and found.model == run.model


@SOME
@given(st.data())
def test_the_megatron_backend_of_llama_factory_comes_back_as_it_was_written(data: st.DataObject) -> None:
    run = legal_run(data, "megatron")

    written = llamafactory.write(run)
    found = llamafactory.read(written.text.encode())

    assert (found.engine, found.ranks, found.model) == ("megatron", run.cluster.ranks, run.model)
    assert differences(run, rewritten(run, found, "megatron"), written) == []
    assert [one.text for one in found.kept] == []
    assert [one.code for one in found.findings] == ["LLF007"]
