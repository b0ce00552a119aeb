"""The largest model that fits: of several, by the plans of each; of one with more layers, by every number of them."""

import json
from copy import deepcopy
from typing import Any

import pytest

from models import LLAMA_8B
from outlay import Job, load_cluster, load_model, plan
from outlay.cli.main import main
from outlay.cli.several_models import named
from outlay.model.catalogue import entry, names
from outlay.model.huggingface import read_config
from outlay.model.model import Model
from outlay.model.scaled import MOST_LAYERS, period_of, with_layers
from outlay.search.several import How, deepest, largest
from outlay.show.schema import OUTPUT_SCHEMAS
from outlay.undivided import parameters
from test_json import faults

LEAN = How(width="lean", best=1, narrowed={"offload_optimizer": (0.0,)})
# Models whose config.json says the number of layers in one place and no list of them: the reader is the judge.
BY_CONFIG = ("llama-3.1-8b", "qwen2.5-7b", "mixtral-8x7b", "gemma-2-9b", "deepseek-v3", "gpt3-175b", "falcon-40b")


def words(*more: str) -> list[str]:
    return ["plan", *more[:1], "--batch", "64", "--space", "lean", "--best", "1", *more[1:]]


def told(capsys: pytest.CaptureFixture[str], code: int, *more: str) -> str:
    capsys.readouterr()
    assert main(words(*more)) == code
    return capsys.readouterr().out


# --- more layers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in BY_CONFIG if name in names()])
@pytest.mark.parametrize("more", [-2, 0, 6, 40])
def test_more_layers_are_those_of_a_config_that_says_so(name: str, more: int) -> None:
    config: dict[str, Any] = deepcopy(entry(name).config)
    key = next(key for key in ("num_hidden_layers", "n_layer", "n_layers") if key in config)
    config[key] += more
    want, got = read_config(config), with_layers(load_model(name), config[key])
    assert (got.layers, parameters(got)) == (want.layers, parameters(want))
    assert [got.blocks[kind].name for kind in got.pattern] == [want.blocks[kind].name for kind in want.pattern]


def test_kinds_of_layer_come_again_in_their_order() -> None:
    assert period_of((0, 1, 1, 1)) == 1  # first a dense layer, then experts
    assert period_of((0, 0, 1, 0, 0, 1, 0)) == 3
    assert period_of((0, 1, 2, 3)) == 4
    model = load_model("deepseek-v3")
    assert with_layers(model, 100).pattern == (0, 0, 0, *[1] * 97)
    assert with_layers(model, 2).pattern == (0, 0)
    assert with_layers(model, model.layers) is model
    assert "has 61" in with_layers(model, 100).notes[-1]


@pytest.mark.parametrize(("name", "on"), [("llama-3.1-8b", "4xa100-sxm-40"), ("mixtral-8x7b", "16xh100-sxm")])
def test_the_most_layers_fit_and_no_larger_number_does(name: str, on: str) -> None:
    model, cluster, job = load_model(name), load_cluster(on), Job(4096, 64)
    found = deepest(model, job, cluster, LEAN)
    most = found.plan.model.layers
    fits = [
        layers
        for layers in range(1, 2 * most + 1)
        if plan(with_layers(model, layers), job, cluster, width="lean", best=1, offload_optimizer=(0.0,)).best
    ]
    assert fits == [*range(1, most + 1)]
    assert {each.layers: each.verdict == "fits" for each in found.tried} == {
        each.layers: each.layers <= most for each in found.tried
    }
    assert {most, most + 1} <= {each.layers for each in found.tried}
    assert len(found.tried) < 16 and found.proved


def test_the_layers_that_are_tried_end() -> None:
    tiny = load_model("gpt2-xl")
    found = deepest(tiny, Job(128, 64), load_cluster("64xb200"), LEAN)
    assert found.plan.model.layers == MOST_LAYERS
    assert len({each.layers for each in found.tried}) == len(found.tried)


# --- one of several -------------------------------------------------------------------------------------------------


def test_the_largest_model_is_the_one_with_most_parameters_whose_own_plan_fits() -> None:
    cluster, job = load_cluster("16xh100-sxm"), Job(4096, 64)
    models = [load_model(name) for name in ("llama-3.1-8b", "mixtral-8x7b", "llama-2-13b", "llama-3.1-405b")]
    own = {each.name: plan(each, job, cluster, width="lean", best=1, offload_optimizer=(0.0,)) for each in models}
    fitting = [each for each in models if own[each.name].best]
    most = max(fitting, key=lambda each: parameters(each).total)
    found = largest(models, job, cluster, LEAN)

    assert 0 < len(fitting) < len(models)
    assert found.plan.model == most
    assert found.plan.best[0].layout == own[most.name].best[0].layout
    tried = [each.parameters for each in found.tried]
    assert tried == sorted(tried, reverse=True) and tried[-1] == parameters(most).total


def test_a_text_names_models() -> None:
    assert named("llama-3.1-8b") == ["llama-3.1-8b"]
    assert named("llama-3.1") == ["llama-3.1-405b", "llama-3.1-70b", "llama-3.1-8b"]
    assert named("llama-3.1, llama-3.1-8b,gpt2-xl") == ["llama-3.1-405b", "llama-3.1-70b", "llama-3.1-8b", "gpt2-xl"]
    assert named("nothing-so-called") == ["nothing-so-called"]
    assert named("-") == ["-"]


# --- what is said ---------------------------------------------------------------------------------------------------


def test_one_of_several_is_said_with_all_that_were_tried(capsys: pytest.CaptureFixture[str]) -> None:
    question = ("llama-3.1", "--on", "64xh100-sxm", "--no-offload", "--objective", "model")
    out = told(capsys, 0, *question)
    assert out.startswith("LARGEST   llama-3.1-70b, 70.55 billion parameters, of 3 models: fits on 64xh100-sxm")
    assert "llama-3.1-405b, which is larger, does not" in " ".join(out.split())
    assert "TRIED" in out and "SEQUENCE 131,072 TOKENS FOR EVERY MODEL" in " ".join(out.split())
    found = json.loads(told(capsys, 0, *question, "--json"))
    assert faults(OUTPUT_SCHEMAS["plan"](), found) == []
    assert found["objective"] == "model" and found["model"]["name"] == "llama-3.1-70b"
    assert [each["model"] for each in found["tried"]] == ["llama-3.1-405b", "llama-3.1-70b"]


def test_more_layers_are_said_with_what_stays(capsys: pytest.CaptureFixture[str]) -> None:
    question = ("llama-3.1-8b", "--on", "4xa100-sxm-40", "--seq", "4096", "--no-offload", "--objective", "model")
    found = json.loads(told(capsys, 0, *question, "--json"))
    assert faults(OUTPUT_SCHEMAS["plan"](), found) == []
    layers = max(each["layers"] for each in found["tried"] if each["verdict"] == "fits")
    out = " ".join(told(capsys, 0, *question).split())
    assert out.startswith(f"LARGEST {layers} layers of llama-3.1-8b's widths")
    assert "one more does not; it has 32" in out and "widths, vocabulary and the order of its kinds" in out
    assert found["best"][0]["bill"]["model"]["name"] == f"llama-3.1-8b-{layers}-layers"


@pytest.mark.parametrize("model", ["llama-3.1-405b", "llama-3.1-70b,llama-3.1-405b"])
def test_where_nothing_fits_it_is_said_what_binds(capsys: pytest.CaptureFixture[str], model: str) -> None:
    out = told(capsys, 1, model, "--on", "1xa10", "--seq", "4096", "--objective", "model")
    said = " ".join(out.split())
    assert out.startswith("IMPOSSIBLE") and "BINDS" in out and "TRIED" in out
    assert ("nor with more layers" if "," not in model else "nor of the larger model") in said


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (["llama-3.1-8b,llama-3.1-70b", "--on", "8xh100-sxm"], "PLN007"),
        (["llama-3.1-8b", "--on", "8xh100-sxm,16xh100-sxm", "--objective", "model"], "PLN007"),
        (["llama-3.1-8b,lama-4", "--on", "8xh100-sxm", "--objective", "model"], "MOD007"),
        (["llama-3.1-8b,", "--on", "8xh100-sxm", "--objective", "models"], "PLN003"),
        ([",", "--on", "8xh100-sxm", "--objective", "model"], "MOD007"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_code(
    capsys: pytest.CaptureFixture[str], more: list[str], code: str
) -> None:
    found = json.loads(told(capsys, 2, *more, "--json"))
    assert code in {fault["code"] for fault in found["errors"]}


def test_a_range_of_chunks_keeps_those_of_every_number_of_layers(capsys: pytest.CaptureFixture[str]) -> None:
    question = ("llama-3.1-8b", "--on", "8xh100-sxm", "--seq", "4096", "--no-offload", "--objective", "model")
    wide = json.loads(told(capsys, 0, *question, "--json"))
    narrow = json.loads(told(capsys, 0, *question, "--vpp", "1..16", "--pp", "1..64", "--json"))
    assert narrow["best"][0]["bill"]["step"]["seconds"] <= wide["best"][0]["bill"]["step"]["seconds"]
    assert narrow["model"]["name"] == wide["model"]["name"]


def test_models_have_the_layers_that_they_are_named_for() -> None:
    model: Model = with_layers(LLAMA_8B, 7)
    assert model.layers == 7 and model.name.endswith("-7-layers")
