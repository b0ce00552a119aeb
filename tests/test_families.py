"""The table of families: class defaults and flags, and the parameters of small configs of every family."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from closed_forms import model_parameters
from outlay.model.families import FAMILIES, FIELDS, RENAMED, WRAPPERS
from outlay.model.huggingface import read_config
from outlay.model.model import Model

CASES = list(csv.DictReader((Path(__file__).parent / "families_cases.csv").read_text(encoding="utf-8").splitlines()))

# The fields that a file must give, as the class of transformers 5.24.0 has them, and what it builds from its defaults.
CLASSES = {
    "llama": ((4096, 32, 32, 11008, 32000), 6_738_415_616),
    "mistral": ((4096, 32, 32, 14336, 32000), 7_241_732_096),
    "qwen2": ((4096, 32, 32, 22016, 151936), 12_049_846_272),
    "qwen3": ((4096, 32, 32, 22016, 151936), 12_049_461_248),
    "mixtral": ((4096, 32, 32, 14336, 32000), 46_702_792_704),
    "qwen3_moe": ((2048, 24, 32, 6144, 151936), 15_350_731_776),
    "deepseek_v2": ((4096, 32, 32, 11008, 102400), 38_612_307_968),
    "deepseek_v3": ((7168, 61, 128, 18432, 129280), 671_026_404_352),
    "gpt_oss": ((2880, 36, 64, 2880, 201088), 116_829_156_672),
    "gemma2": ((2304, 26, 8, 9216, 256000), 2_614_341_888),
    "phi3": ((3072, 32, 32, 8192, 32064), 3_821_079_552),
    "olmo3": ((4096, 32, 32, 11008, 50304), 6_888_624_128),
    "gpt2": ((768, 12, 12, None, 50257), 124_439_808),
    "gpt_neox": ((6144, 44, 64, 24576, 50432), 20_554_567_680),
    "bloom": ((64, 2, 8, None, 250880), 16_156_544),
}


def bare(kind: str, **changed: Any) -> Model:
    """A model of a family from the fields that must be given; everything else is the class's default."""
    keys = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size")
    config = dict(zip(keys, CLASSES[kind][0], strict=True)) | {"model_type": kind}
    if kind == "deepseek_v2":
        config["num_experts_per_tok"] = 6
    return read_config(config | changed)


@pytest.mark.parametrize("case", CASES, ids=[f"{case['model_type']}-{i}" for i, case in enumerate(CASES)])
def test_a_small_config_has_the_parameters_that_transformers_builds(case: dict[str, str]) -> None:
    model = read_config({"model_type": case["model_type"], **json.loads(case["fields"])})

    assert model_parameters(model) == int(case["total"])
    assert model_parameters(model, active=True) == int(case["active"])


@pytest.mark.parametrize("kind", FAMILIES)
def test_the_defaults_of_a_class_give_its_default_model(kind: str) -> None:
    assert model_parameters(bare(kind)) == CLASSES[kind][1]


def test_every_family_has_small_configs() -> None:
    assert {case["model_type"] for case in CASES} == {*FAMILIES} == {*CLASSES}


def test_every_field_of_a_family_has_keys() -> None:
    for family in FAMILIES.values():
        assert {*family.reads(), *family.fixed, *family.keys} <= {*FIELDS}
    assert {*RENAMED.values()} <= {*FAMILIES}
    assert {wrapper.text for wrapper in WRAPPERS.values()} <= {*RENAMED, *FAMILIES}


def test_the_norms_stand_where_the_class_has_them() -> None:
    elsewhere = {kind: bare(kind).blocks[0].norms for kind in FAMILIES if bare(kind).blocks[0].norms != "before"}

    assert elsewhere == {"gemma2": "both", "olmo3": "after"}


def test_only_gpt_neox_is_parallel_and_only_until_switched_off() -> None:
    assert [kind for kind in FAMILIES if bare(kind).blocks[0].parallel] == ["gpt_neox"]
    assert not bare("gpt_neox", use_parallel_residual=False).blocks[0].parallel


def test_the_classes_that_slide_by_default_have_their_windows() -> None:
    windows = {kind: max(block.attention.window for block in bare(kind).blocks) for kind in FAMILIES}

    assert {kind: window for kind, window in windows.items() if window} == {
        "mistral": 4096,
        "gpt_oss": 128,
        "gemma2": 4096,
        "olmo3": 4096,
    }


def test_the_experts_a_token_reaches_by_default_are_those_of_the_class() -> None:
    active = {kind: bare(kind).blocks[-1].feed_forward.active for kind in FAMILIES}

    assert {kind: count for kind, count in active.items() if count} == {
        "mixtral": 2,
        "qwen3_moe": 8,
        "deepseek_v2": 6,
        "deepseek_v3": 8,
        "gpt_oss": 4,
    }


def test_only_gpt2_drops_out_by_default() -> None:
    assert [kind for kind in FAMILIES if bare(kind).dropout] == ["gpt2"]
    assert bare("gpt2", attn_pdrop=0.0).dropout
    assert bare("gpt2", resid_pdrop=0.0).dropout


def test_only_deepseek_v3_predicts_further_tokens_by_default() -> None:
    assert {kind: bare(kind).mtp_layers for kind in FAMILIES if bare(kind).mtp_layers} == {"deepseek_v3": 1}


def test_equal_layers_share_one_block() -> None:
    for kind in FAMILIES:
        model = bare(kind)
        assert len(set(model.blocks)) == len(model.blocks) == len({block.name for block in model.blocks})
        assert set(model.pattern) == set(range(len(model.blocks)))
