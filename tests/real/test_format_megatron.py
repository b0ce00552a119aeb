"""Exported arguments of Megatron-LM in megatron-core 0.16.1's TransformerConfig, the last one for Python 3.11.

Not part of `make test-real`: `sh tests/frameworks.sh megatron` makes its environment and runs this file there. The
parser of 0.19.2 reads the same in test_formats.py, where it is installed.
"""

import dataclasses
import importlib
from typing import Any

import pytest
import torch

from forty_layouts import QUESTIONS, Question, run_for
from outlay.formats import megatron as form
from outlay.formats.megatron.write import flags_of_run
from outlay.formats.setting import Lost, Run

pytest.importorskip("megatron.core", reason="megatron-core 0.16.1 is not here: sh tests/frameworks.sh megatron")
CORE = importlib.import_module("megatron.core.transformer.transformer_config")
pytestmark = pytest.mark.filterwarnings("ignore")
FIELDS = {
    "num_experts": "num_moe_experts",
    "swiglu": "gated_linear_unit",
    "decoder_first_pipeline_num_layers": "num_layers_in_first_pipeline_stage",
    "decoder_last_pipeline_num_layers": "num_layers_in_last_pipeline_stage",
    "num_virtual_stages_per_pipeline_rank": "virtual_pipeline_model_parallel_size",
    "fp8_format": "fp8",
}  # of flags whose field has another name
NO_ENGINE = ("fp8", "fp8_recipe", "fp4_format", "fp4_recipe")  # TransformerConfig asks for TransformerEngine


def value_of(values: tuple[str, ...], kind: str) -> Any:
    if not values:
        return True
    if "List" in kind or "list" in kind:
        return list(values)
    text = values[0]
    for make in (int, float):
        try:
            return make(text)
        except ValueError:
            continue
    return text


def configured(question: Question) -> tuple[Any, Run, list[Lost]]:
    """The TransformerConfig that the flags of a question make."""
    run = run_for(question, form)
    assert run is not None
    flags, lost = flags_of_run(run)
    names = {one.name.removeprefix("--").replace("-", "_"): one.values for one in flags}
    latent = "multi_latent_attention" in names
    made = CORE.MLATransformerConfig if latent else CORE.TransformerConfig
    known = {each.name: str(each.type) for each in dataclasses.fields(made)}
    given = {FIELDS.get(name, name): values for name, values in names.items()}
    fields = {name: value_of(values, known[name]) for name, values in given.items() if name in known}
    fields = {name: value for name, value in fields.items() if name not in NO_ENGINE}
    fields |= {"bf16": "bf16" in names, "fp16": "fp16" in names, "add_bias_linear": "disable_bias_linear" not in names}
    # The rest as core_transformer_config_from_args of Megatron-LM's training does it.
    if "cp_comm_type" in fields and len(names["cp_comm_type"]) == 1:
        fields["cp_comm_type"] = names["cp_comm_type"][0]
    if "pipeline_model_parallel_layout" in fields:
        layouts = importlib.import_module("megatron.core.transformer.pipeline_parallel_layer_layout")
        string, stages = names["pipeline_model_parallel_layout"][0], int(names["pipeline_model_parallel_size"][0])
        fields["pipeline_model_parallel_layout"] = layouts.PipelineParallelLayerLayout.from_str(string, stages)
    narrow = torch.bfloat16 if fields["bf16"] else torch.float16 if fields["fp16"] else torch.float32
    return made(**fields | {"pipeline_dtype": narrow, "params_dtype": narrow}), run, lost


WRITTEN = [one for one in QUESTIONS if run_for(one, form) is not None]


@pytest.mark.parametrize("question", WRITTEN, ids=lambda one: one.name)
def test_megatron_core_takes_what_is_exported(question: Question) -> None:
    made, run, lost = configured(question)

    at, gone = run.layout, {one.path.partition(".")[2] for one in lost}
    assert made.tensor_model_parallel_size == at.tp and made.pipeline_model_parallel_size == at.pp
    assert made.context_parallel_size == at.cp
    assert made.sequence_parallel == (bool(at.sp) and at.tp > 1)
    if "model" not in {one.path for one in lost}:
        assert made.num_layers == run.model.layers
    if at.recompute != "none" and "recompute" not in gone:
        assert made.recompute_granularity == at.recompute
    if at.split and "split" not in gone:
        assert made.pipeline_model_parallel_layout is not None


def test_enough_questions_are_written() -> None:
    assert len(WRITTEN) > 20


@pytest.mark.parametrize(
    "changed",
    [
        {"tensor_model_parallel_size": 7},
        {"num_layers_in_first_pipeline_stage": 3, "pipeline_model_parallel_size": 4},
        {"recompute_granularity": "full"},
        {"recompute_granularity": "selective", "recompute_num_layers": 1},
        {"recompute_granularity": "selective", "recompute_modules": ["attention"]},
    ],
)
def test_it_refuses_what_does_not_fit(changed: dict[str, Any]) -> None:
    plain = {"num_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "pipeline_dtype": torch.bfloat16}

    with pytest.raises((ValueError, AssertionError, KeyError)):
        CORE.TransformerConfig(**plain | changed)
