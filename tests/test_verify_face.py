"""outlay verify, as far as it needs no torch: what it asks, what it says, and what it says where torch is missing."""

import json
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

import outlay
from outlay.bill import Bill
from outlay.cli.flags import Given
from outlay.cli.main import main
from outlay.cli.verifying import config_behind
from outlay.errors import InputError
from outlay.show.schema import OUTPUT_SCHEMAS
from outlay.show.text import Style
from outlay.show.verified import verified_lines, verified_record
from outlay.verify import layout, limits, versions
from outlay.verify.comparison import Comparison
from outlay.verify.launched import LAUNCHED
from outlay.verify.models.configs import with_layers
from outlay.verify.scaled import seen_by
from outlay.verify.subject import KINDS, USUAL, Checked, NotRun
from outlay.verify.verified import Verified
from test_import import foreign
from test_json import faults

ROOT = Path(__file__).parent.parent
ASKED = ["verify", "llama-3.1-8b", "--on", "64xh100-sxm", "--seq", "4096"]
EQUAL = Checked("states", Comparison("weights", 8.0, 8.0, "B"))
NEAR = Checked("peak", Comparison("peak", 99.0, 100.0, "B", "without ids"), 0.02)
MEANT = Checked("flops", Comparison("forward FLOPs", 1.0, 2.0, "FLOPs"), reason="the class runs them twice")
WRONG = Checked("tape", Comparison("tape", 1.0, 2.0, "B"))
LEFT = NotRun(("schedule",), "one stage is no pipeline")


def bill(**axes: Any) -> Bill:
    job = outlay.Job(sequence_length=4096, precision="bf16")
    layout = outlay.Layout(**axes)
    cluster = outlay.load_cluster("64xh100-sxm")
    return outlay.count(outlay.load_model("llama-3.1-8b"), job, cluster, layout, "fsdp2-uncompiled")


def text_of(*checked: Checked) -> str:
    return " ".join(" ".join(verified_lines(bill(), Verified(checked, (LEFT,), ("4 of 32 layers",)), Style())).split())


def without_torch(monkeypatch: pytest.MonkeyPatch, found: dict[str, str]) -> None:
    """As if exactly these were installed."""

    def version(name: str) -> str:
        if name not in found:
            raise PackageNotFoundError(name)
        return found[name]

    monkeypatch.setattr(versions, "version", version)


def test_the_answer_comes_first_and_says_what_was_not_run() -> None:
    assert text_of(EQUAL, NEAR).startswith(
        "AGREES 2 of 2 comparisons with torch 2.13.0 and transformers 5.24.0; 1 kind"
    )
    assert text_of(EQUAL, WRONG).startswith(
        "DISAGREES 1 of 2 comparisons with torch 2.13.0 and transformers 5.24.0: tape"
    )
    assert text_of(EQUAL, MEANT).startswith("AGREES 1 of 2 comparisons")
    assert text_of().startswith("NOT RUN nothing is compared")
    assert "schedule: one stage is no pipeline" in text_of(EQUAL)
    assert "SCALED 4 of 32 layers" in text_of(EQUAL)


def test_each_comparison_says_both_figures_and_whether_they_agree() -> None:
    said = text_of(EQUAL, NEAR, MEANT, WRONG)

    assert "weights, B 8 8 1.000000 exact" in said
    assert "peak, B 99 100 0.990000 within 2.00 %" in said
    assert "forward FLOPs 1 2 0.500000 see note" in said and "the class runs them twice" in said
    assert "tape, B 1 2 0.500000 DIFFERS" in said


def test_what_differs_for_a_known_reason_is_neither_agreement_nor_disagreement() -> None:
    assert MEANT.agrees is None and EQUAL.agrees is True and WRONG.agrees is False
    assert Verified((MEANT,), (), ()).wrong == ()
    assert Checked("flops", Comparison("forward FLOPs", 2.0, 2.0, "FLOPs"), reason="no").agrees is True


@pytest.mark.parametrize("found", [Verified((EQUAL, NEAR, MEANT, WRONG), (LEFT,), ("x",)), None])
def test_the_schema_holds(found: Verified | None) -> None:
    record = json.loads(json.dumps(verified_record(bill() if found else bill(tp=3), found)))

    assert faults(OUTPUT_SCHEMAS["verify"](), record) == []
    assert record["agrees"] is False
    assert verified_record(bill(), Verified((EQUAL, MEANT), (), ()))["agrees"] is True


def test_without_torch_one_line_says_the_way_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_torch(monkeypatch, {})

    assert main(ASKED) == 2
    said = capsys.readouterr().err
    assert "torch and transformers are not installed" in said and "VER002" in said
    assert 'pip install "outlay[verify]"' in said


def test_another_version_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    without_torch(monkeypatch, {"torch": "2.9.1+cu128", "transformers": "5.24.0"})

    assert main([*ASKED, "--json"]) == 2
    (fault,) = json.loads(capsys.readouterr().out)["errors"]
    assert (fault["code"], fault["got"]) == ("VER003", "torch 2.9.1")


def test_the_version_of_torch_for_cpus_is_that_version(monkeypatch: pytest.MonkeyPatch) -> None:
    without_torch(monkeypatch, {"torch": "2.13.0+cpu", "transformers": "5.24.0"})

    assert versions.versions_fault() is None


def test_all_faults_of_a_question_are_said_together(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_torch(monkeypatch, {})

    assert main([*ASKED, "--only", "peak,tapes", "--layers", "0", "--json"]) == 2
    found = json.loads(capsys.readouterr().out)["errors"]
    assert [fault["code"] for fault in found] == ["VER004", "UNI003", "VER002"]
    assert found[0]["fix"] == "--only tape"


def test_a_layout_that_breaks_rules_is_not_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_torch(monkeypatch, versions.WANTED)

    assert main([*ASKED, "--tp", "3"]) == 1
    assert capsys.readouterr().out.startswith("NOT LEGAL")


def test_the_extra_brings_exactly_the_versions_that_are_asked_for() -> None:
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["verify"]

    assert extra == [f"{name}=={version}" for name, version in versions.WANTED.items()]


def test_torch_is_loaded_only_where_it_runs() -> None:
    assert not foreign("import outlay.cli.verifying, outlay.show.verified") & {"torch", "transformers"}


def test_a_config_is_cut_with_what_it_lists_by_layer() -> None:
    config = {
        "model_type": "gpt_oss", "num_hidden_layers": 4, "hidden_size": 64, "vocab_size": 100, "head_dim": 8,
        "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 32, "num_local_experts": 4,
        "num_experts_per_tok": 2, "layer_types": ["sliding_attention", "full_attention"] * 2, "sliding_window": 16,
    }  # fmt: skip
    cut = with_layers(config, 3)

    assert cut is not None
    assert cut["num_hidden_layers"] == 3 and cut["layer_types"] == config["layer_types"][:3]  # type: ignore[index]
    assert len(config["layer_types"]) == 4  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"model": "-"}, "standard input"),
        ({"model": "llama-3.1-8b", "family": "llama"}, "--as"),
    ],
)
def test_where_there_is_no_config_the_reason_is_said(given: dict[str, str], words: str) -> None:
    config, missing = config_behind(Given(given))

    assert config is None and words in missing


def test_a_name_of_the_catalogue_has_its_config() -> None:
    config, missing = config_behind(Given({"model": "llama-3.1-8b"}))

    assert config is not None and config["hidden_size"] == 4096 and missing == ""


@pytest.mark.parametrize(
    ("axes", "engine", "words"),
    [
        ({"cp": 2}, "fsdp2-uncompiled", "cp 2"),
        ({}, "megatron", "engine megatron"),
        ({"offload_optimizer": 1.0}, "fsdp2-uncompiled", "offload"),
        ({"recompute": "full", "recompute_layers": 3}, "fsdp2-uncompiled", "some layers"),
        ({"zero": 0}, "fsdp2-uncompiled", "zero 0"),
    ],
)
def test_what_torch_is_not_run_with_is_said_in_one_line(axes: dict[str, Any], engine: str, words: str) -> None:
    job, cluster = outlay.Job(sequence_length=4096, precision="bf16"), outlay.load_cluster("64xh100-sxm")
    layout = outlay.Layout(**axes)
    case, _ = outlay.bill.case_of(outlay.load_model("llama-3.1-8b"), job, cluster, layout, engine)
    why = limits.cut_otherwise(case) or limits.kept_otherwise(case)

    assert words in why and "\n" not in why


@pytest.mark.parametrize(
    ("name", "built"),
    [
        ("llama-3.1-8b", True), ("qwen2.5-7b", True), ("mixtral-8x7b", True), ("llama-3.2-1b", True),
        ("qwen3-8b", True), ("deepseek-v2-lite", True), ("deepseek-v3.2", False), ("gemma-2-9b", False),
        ("gpt3-175b", False),
    ],
)  # fmt: skip
def test_only_models_that_are_the_same_layer_by_layer_are_built(name: str, built: bool) -> None:
    job, cluster = outlay.Job(sequence_length=4096, precision="bf16"), outlay.load_cluster("8xh100-sxm")
    model = outlay.load_model(name)
    case, _ = outlay.bill.case_of(model, job, cluster, outlay.Layout(), "fsdp2-uncompiled")

    assert (limits.built_otherwise(model, case) == "") == built


def test_a_kind_that_there_is_not_is_refused_with_the_nearest() -> None:
    from outlay.cli.verifying import kinds

    assert kinds(None) == USUAL and set(KINDS) - set(USUAL) == {"pipeline", "step"}
    assert kinds("peak, flops") == ("flops", "peak")
    with pytest.raises(InputError, match="VER004"):
        kinds("")


def test_another_rank_of_torchrun_says_nothing_but_what_its_machine_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in LAUNCHED:
        monkeypatch.setenv(name, "1")
    asked = [*ASKED, "--pp", "2", "--only", "pipeline"]
    without_torch(monkeypatch, versions.WANTED)

    assert main([*asked, "--layers", "0"]) == 0  # a fault that the first rank says too
    assert main([*asked, "--tp", "3"]) == 0  # a layout that breaks rules
    assert capsys.readouterr() == ("", "")
    without_torch(monkeypatch, {})
    assert main(asked) == 2
    assert "VER002" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "way"),
    [
        (MemoryError(), "VER008", "--layers 2"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"), "VER008", "--only"),
        (ImportError("libtorch_cpu.so: cannot open shared object file"), "VER009", 'pip install "outlay[verify]"'),
    ],
)
def test_what_keeps_torch_from_running_is_one_line_with_a_way_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, code: str, way: str
) -> None:
    def fails(*_: object) -> Verified:
        raise error

    without_torch(monkeypatch, versions.WANTED)
    monkeypatch.setattr(layout, "verify", fails)

    assert main([*ASKED, "--json"]) == 2
    (fault,) = json.loads(capsys.readouterr().out)["errors"]
    assert fault["code"] == code and way in fault["fix"]


def test_any_other_error_of_a_run_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="shape"), versions.told_faults():
        raise RuntimeError("shape mismatch")


def test_a_comparison_on_a_class_does_not_take_lost_memory_for_a_refusal() -> None:
    def fails() -> tuple[Comparison, ...]:
        raise MemoryError

    with pytest.raises(MemoryError):
        layout.attempted(fails)


def test_layers_are_cut_to_as_many_as_stand_at_one_moment_of_the_whole_model() -> None:
    """DeepSeek-V3: three dense layers, then experts; three layers in a row are gathered, gathered and scattered."""
    assert seen_by((0, 0, 0, *(1,) * 58), 1) == 6
    assert seen_by((0, 1) * 24, 1) == 3  # never three: two of the last kind, as far as the model has them
    assert seen_by((0, 1), 1) == 2
