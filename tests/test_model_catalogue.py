"""The catalogue: its models, the exact parameters of each, and how a name finds one."""

import json
from pathlib import Path

import pytest

from outlay.errors import Fault, InputError
from outlay.model import catalogue
from outlay.model.huggingface import read_config
from outlay.undivided import parameters
from test_families import table

TESTS = Path(__file__).parent

# Total and active parameters of the language model, as transformers 5.24.0 builds it.
COUNTED = {row["file"]: (int(row["total"]), int(row["active"])) for row in table("real_configs.csv")}
WHOLE = [TESTS / "configs" / f"{name}.json" for name in COUNTED]

# Exact totals that the authors print on their model cards and in announcements.
PUBLISHED = {
    "bloom-176b": 176_247_271_424,
    "codestral-mamba-7b": 7_285_403_648,
    "gpt-neox-20b": 20_554_567_680,
    "pythia-410m": 405_334_016,
    "pythia-1.4b": 1_414_647_808,
    "pythia-2.8b": 2_775_208_960,
    "pythia-6.9b": 6_857_302_016,
    "pythia-12b": 11_846_072_320,
}


def fault_of(text: str, **options: str) -> Fault:
    with pytest.raises(InputError) as caught:
        catalogue.find(text, **options)
    (fault,) = caught.value.faults
    assert all((fault.what, fault.rule, fault.got, fault.fix))
    return fault


@pytest.mark.parametrize("name", COUNTED)
def test_a_model_of_the_catalogue_has_the_parameters_that_transformers_builds(name: str) -> None:
    counted = parameters(catalogue.load(name))

    assert (counted.total, counted.active) == COUNTED[name]


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_model_of_the_catalogue_has_the_total_that_its_authors_print(name: str) -> None:
    assert parameters(catalogue.load(name)).total == PUBLISHED[name]


def test_deepseek_v2_has_the_parameters_that_transformers_builds() -> None:
    # DeepseekV2Config of the facts, AutoModelForCausalLM on the meta device, transformers 5.24; the paper says 236B
    assert parameters(catalogue.load("deepseek-v2")).total == 235_741_434_880


def test_whole_files_are_there_to_compare_with() -> None:
    assert len(WHOLE) == 55


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
        ("gpt-22b", 22.1), ("gpt-175b", 174.6), ("gpt3-175b", 174.6), ("llama-2-13b", 13.016), ("opt-175b", 174.6),
    ],
)  # fmt: skip
def test_a_published_model_has_its_published_size(name: str, billions: float) -> None:
    assert parameters(catalogue.load(name)).total / 1e9 == pytest.approx(billions, abs=0.06)


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


def test_a_model_is_read_once_and_no_answer_can_change_it() -> None:
    """Its facts are a copy for each who asks; the model itself is frozen through and through, so all share it."""
    first = catalogue.find("llama-3.1-8b")
    catalogue.entry("llama-3.1-8b").config["hidden_size"] = 1
    assert catalogue.find("Llama-3.1-8B") is first
    assert first.hidden == 4096
    assert catalogue.find("llama-3.1-8b", family="mistral") is not first
    assert all(isinstance(hash(catalogue.load(name)), int) for name in catalogue.names())
