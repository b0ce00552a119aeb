"""The catalogue: its models, the exact parameters of each, and how a name finds one."""

import json
from pathlib import Path

import pytest

from closed_forms import model_parameters
from outlay.errors import Fault, InputError
from outlay.model import catalogue
from outlay.model.huggingface import read_config

TESTS = Path(__file__).parent

# Total and active parameters of the language model, as transformers 5.24.0 builds it.
COUNTED = {
    "bloom-176b-assembled": (176_247_271_424, 176_247_271_424),
    "codellama-34b": (33_743_970_304, 33_743_970_304),
    "deepseek-v2-lite": (15_706_484_224, 2_661_150_208),
    "deepseek-v3": (671_026_404_352, 37_552_282_624),
    "gemma-2-27b-assembled": (27_227_128_320, 27_227_128_320),
    "gpt-neox-20b-assembled": (20_554_567_680, 20_554_567_680),
    "gpt-oss-120b": (116_829_156_672, 5_711_982_912),
    "gpt-oss-20b": (20_914_757_184, 4_187_440_704),
    "gpt2-xl-assembled": (1_557_611_200, 1_557_611_200),
    "kimi-k2.5": (1_026_408_209_408, 32_861_477_888),
    "kimi-k2": (1_026_408_209_408, 32_861_477_888),
    "llama-2-13b-nxd": (13_016_028_160, 13_016_028_160),
    "llama-2-70b-nxd": (68_976_648_192, 68_976_648_192),
    "llama-2-7b": (6_738_415_616, 6_738_415_616),
    "llama-3-70b-nxd": (70_553_706_496, 70_553_706_496),
    "llama-3-8b-nxd": (8_030_261_248, 8_030_261_248),
    "llama-3.1-405b": (405_853_388_800, 405_853_388_800),
    "llama-3.1-70b": (70_553_706_496, 70_553_706_496),
    "llama-3.1-8b": (8_030_261_248, 8_030_261_248),
    "mimo-7b": (7_622_619_136, 7_622_619_136),
    "mistral-7b-v0.3": (7_248_023_552, 7_248_023_552),
    "mistral-nemo-12b": (12_247_782_400, 12_247_782_400),
    "mixtral-8x22b": (140_620_634_112, 39_152_031_744),
    "mixtral-8x7b": (46_702_792_704, 12_879_925_248),
    "olmo-3.1-32b": (32_233_522_176, 32_233_522_176),
    "phi-4": (14_659_507_200, 14_659_507_200),
    "qwen2.5-32b": (32_763_876_352, 32_763_876_352),
    "qwen2.5-7b": (7_615_616_512, 7_615_616_512),
    "qwen3-0.6b": (596_049_920, 596_049_920),
    "qwen3-235b-a22b": (235_093_634_560, 22_190_763_520),
    "qwen3-30b-a3b": (30_532_122_624, 3_353_032_704),
    "qwen3-32b": (32_762_123_264, 32_762_123_264),
    "qwen3-8b": (8_190_735_360, 8_190_735_360),
    "qwen3-coder-480b-a35b": (480_154_875_392, 35_474_765_312),
    "qwen3-vl-30b-a3b": (30_532_122_624, 3_353_032_704),
    "qwen3-vl-8b": (8_190_735_360, 8_190_735_360),
    "yi-34b": (34_388_917_248, 34_388_917_248),
}

WHOLE = [path for path in sorted((TESTS / "configs").glob("*.json")) if path.stem in COUNTED]


def fault_of(text: str, **options: str) -> Fault:
    with pytest.raises(InputError) as caught:
        catalogue.find(text, **options)
    (fault,) = caught.value.faults
    assert all((fault.what, fault.rule, fault.got, fault.fix))
    return fault


@pytest.mark.parametrize("name", COUNTED)
def test_a_model_of_the_catalogue_has_the_parameters_that_transformers_builds(name: str) -> None:
    model = catalogue.load(name)

    assert (model_parameters(model), model_parameters(model, active=True)) == COUNTED[name]


def test_whole_files_are_there_to_compare_with() -> None:
    assert len(WHOLE) > 10


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_a_whole_file_gives_the_same_model_as_its_facts(path: Path) -> None:
    whole, facts = read_config(path), catalogue.load(path.stem)

    assert (whole.blocks, whole.pattern, whole.tied) == (facts.blocks, facts.pattern, facts.tied)
    assert (whole.trained_length, whole.mtp_layers, whole.dropout) == (
        facts.trained_length,
        facts.mtp_layers,
        facts.dropout,
    )
    assert set(facts.notes) <= set(whole.notes)


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("gpt-1.7b", 1.7), ("gpt-3.6b", 3.6), ("gpt-7.5b", 7.5), ("gpt-18b", 18.4), ("gpt-39b", 39.1),
        ("gpt-76b", 76.1), ("gpt-145b", 145.6), ("gpt-310b", 310.1), ("gpt-530b", 529.6), ("gpt-1t", 1008.0),
        ("gpt-22b", 22.1), ("gpt-175b", 174.6), ("gpt3-175b", 174.6), ("llama-2-13b", 13.016),
    ],
)  # fmt: skip
def test_a_published_model_has_its_published_size(name: str, billions: float) -> None:
    assert model_parameters(catalogue.load(name)) / 1e9 == pytest.approx(billions, abs=0.06)


def test_the_published_gpt_models_are_tied_and_drop_out_and_have_learned_positions() -> None:
    for name in catalogue.names():
        if name.startswith(("gpt-1", "gpt-2", "gpt-3", "gpt-5", "gpt-7", "gpt3")):
            model = catalogue.load(name)
            assert model.tied and model.dropout and model.positions == model.trained_length == 2048


def test_every_model_has_a_source_and_loads() -> None:
    for name in catalogue.names():
        assert len(catalogue.entry(name).source) > 20
        assert catalogue.load(name).name == name


def test_names_are_in_order_and_each_spelling_is_one_model() -> None:
    names = catalogue.names()
    spellings = [spelling for name in names for spelling in (name, *catalogue.entry(name).also)]

    assert list(names) == sorted(names)
    assert len(spellings) == len(set(spellings))


def test_a_name_is_found_in_any_case_and_by_its_other_spelling() -> None:
    assert catalogue.load("Llama-3.1-70B") == catalogue.load("llama-3.1-70b")
    assert catalogue.load("gpt2-xl-assembled").name == "gpt2-xl"
    assert catalogue.load("llama-3-8b-nxd").name == "llama-3-8b"


def test_llama_2_13b_and_its_adapted_training_example_are_two_models() -> None:
    assert (catalogue.load("llama-2-13b").vocab, catalogue.load("llama-2-13b-nxd").vocab) == (32000, 32016)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    fault = fault_of("llama-3.1-7b")

    assert fault.code == "MOD007"
    assert "llama-3.1-70b" in fault.fix


def test_a_name_of_the_model_hub_is_answered_with_the_nearest_of_the_catalogue() -> None:
    fault = fault_of("meta-llama/Llama-3.1-70B")

    assert fault.code == "MOD001"
    assert "llama-3.1-70b" in fault.fix


def test_a_path_wins_only_with_a_separator_or_its_ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = json.dumps(catalogue.entry("gpt2-xl").config)
    (tmp_path / "llama-3.1-70b").mkdir()
    (tmp_path / "llama-3.1-70b" / "config.json").write_text(small)
    (tmp_path / "llama-3.1-70b.json").write_text(small)
    (tmp_path / "mine").write_text(small)
    monkeypatch.chdir(tmp_path)

    assert catalogue.find("llama-3.1-70b").family == "llama"
    assert catalogue.find("./llama-3.1-70b").family == "gpt2"
    assert catalogue.find("llama-3.1-70b/").name == "llama-3.1-70b"
    assert catalogue.find("llama-3.1-70b.json").family == "gpt2"
    assert catalogue.find("mine").family == "gpt2"


def test_standard_input_is_the_text_that_the_caller_read() -> None:
    text = json.dumps(catalogue.entry("gpt2-xl").config)

    assert catalogue.find("-", stdin=text) == catalogue.find("-", stdin=text.encode())
    assert fault_of("-").code == "MOD001"
    assert fault_of("-", stdin="").code == "MOD002"


@pytest.mark.parametrize(
    "text", ["", "\0", "\0/", "a" * 5000, "a/" * 3000, "\udcff", "\udcff/x.json", "none.json", ".."]
)
def test_a_text_that_means_nothing_is_refused(text: str) -> None:
    assert fault_of(text).code in ("MOD001", "MOD007")


def test_find_passes_the_family_and_the_part_on() -> None:
    assert catalogue.find("qwen3-vl-8b", part="text_config", family="qwen2").family == "qwen2"
