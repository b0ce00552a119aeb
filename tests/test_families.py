"""The table of families: class defaults and flags, and the parameters of small configs of every family."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from outlay.model.families import FAMILIES, RENAMED, WRAPPERS
from outlay.model.huggingface import read_config
from outlay.model.model import Model
from outlay.undivided import parameters
from outlay.verify.comparisons.parameters import unread


def table(name: str) -> list[dict[str, str]]:
    """The rows of a table of facts beside this file."""
    return list(csv.DictReader((Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()))


# Small random configs and whole class defaults, with the parameters that transformers 5.24.0 builds of them.
CASES = [row for row in table("families_cases.csv") if row["model_type"] in {*FAMILIES, *RENAMED}]
CLASSES = {row["model_type"]: row for row in table("family_defaults.csv") if row["model_type"] in FAMILIES}


def bare(kind: str, **changed: Any) -> Model:
    """A model of a family from the fields that must be given; everything else is the class's default."""
    family = FAMILIES[kind]
    given = json.loads(CLASSES[kind]["fields"])
    keys = [key for name in (*family.core, *family.required) for key in family.keys_of(name)]
    config = {key: given[key] for key in keys if key in given} | MUST_GIVE.get(kind, {})
    return read_config(config | {"model_type": kind} | changed)


MUST_GIVE: dict[str, dict[str, Any]] = {
    "deepseek_v2": {"num_experts_per_tok": 6},
    "dots1": {"n_routed_experts": 128, "num_experts_per_tok": 6, "n_shared_experts": 2},
    "glm4_moe": {"head_dim": 42},
    "mllama_text_model": {"cross_attention_layers": [3]},
    "nemotron_h": {"hybrid_override_pattern": "ME*-"},
    "lfm2_moe": {"layer_types": ["conv"] * 32},
}
"""Fields without a class default that is a value."""


@pytest.mark.parametrize("case", CASES, ids=[f"{case['model_type']}-{i}" for i, case in enumerate(CASES)])
def test_a_small_config_has_the_parameters_that_transformers_builds(case: dict[str, str]) -> None:
    model = read_config({"model_type": case["model_type"], **json.loads(case["fields"])})
    counted = parameters(model)

    assert (counted.total + unread(model), counted.active) == (int(case["total"]), int(case["active"]))


@pytest.mark.parametrize("kind", [kind for kind, row in CLASSES.items() if row["total"]])
def test_the_defaults_of_a_class_give_its_default_model(kind: str) -> None:
    model = bare(kind)

    assert parameters(model).total + unread(model) == int(CLASSES[kind]["total"])


def test_every_family_has_small_configs() -> None:
    assert {case["model_type"] for case in CASES} >= {*FAMILIES} - WITHOUT_A_CLASS


WITHOUT_A_CLASS: set[str] = {"mllama_text_model", "nemotron-nas", "step3p7_text"}
"""Families that transformers does not have, so that it builds nothing of them."""


def test_every_field_of_a_family_has_keys() -> None:
    for family in FAMILIES.values():
        assert all(family.keys_of(name) for name in (*family.reads(), *family.fixed, *family.keys))
    assert {*RENAMED.values()} <= {*FAMILIES}
    assert {wrapper.text for wrapper in WRAPPERS.values()} <= {*RENAMED, *FAMILIES}


def test_the_norms_stand_where_the_class_has_them() -> None:
    first = {kind: bare(kind).blocks[0].sublayers[0] for kind in ("llama", "gemma2", "olmo3", "gpt_neox")}

    assert {kind: one.norms for kind, one in first.items()} == {
        "llama": "before",
        "gemma2": "both",
        "olmo3": "after",
        "gpt_neox": "before",
    }


def test_gpt_neox_is_parallel_until_switched_off() -> None:
    assert len(bare("gpt_neox").blocks[0].sublayers) == 1
    assert len(bare("gpt_neox", use_parallel_residual=False).blocks[0].sublayers) == 2


@pytest.mark.parametrize(
    ("kind", "window"), [("llama", 0), ("mistral", 4096), ("gpt_oss", 128), ("gemma2", 4096), ("olmo3", 4096)]
)
def test_the_classes_that_slide_by_default_have_their_windows(kind: str, window: int) -> None:
    assert max(part.attention.window for part in bare(kind).blocks if part.attention) == window


@pytest.mark.parametrize(
    ("kind", "active"), [("mixtral", 2), ("qwen3_moe", 8), ("deepseek_v2", 6), ("deepseek_v3", 8), ("gpt_oss", 4)]
)
def test_the_experts_a_token_reaches_by_default_are_those_of_the_class(kind: str, active: int) -> None:
    experts = bare(kind).blocks[-1].experts
    assert experts and experts.active == active


def test_gpt2_drops_out_by_default() -> None:
    assert bare("gpt2").dropout and not bare("llama").dropout
    assert bare("gpt2", attn_pdrop=0.0).dropout
    assert bare("gpt2", resid_pdrop=0.0).dropout
    assert not bare("gpt2", resid_pdrop=0.0, attn_pdrop=0.0).dropout


def test_deepseek_v3_predicts_further_tokens_by_default() -> None:
    assert bare("deepseek_v3").mtp_layers == 1
    assert bare("deepseek_v2").mtp_layers == 0


@pytest.mark.parametrize("kind", CLASSES)
def test_equal_layers_share_one_block(kind: str) -> None:
    model = bare(kind)
    assert len(set(model.blocks)) == len(model.blocks) == len({block.name for block in model.blocks})
    assert set(model.pattern) == set(range(len(model.blocks)))
