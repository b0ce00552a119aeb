"""Files as people paste them, each with a fault that was asked about in public: found, and named in words that help.

What a file needs a reader for that is not there yet is expected to fail, strictly: it must be let in with the reader.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from outlay.cli.main import main

CASES = Path(__file__).parent / "check_cases"


def checked(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The answer to some files of the folder, with what else is on the command line."""
    paths = [str(CASES / word) if (CASES / word).exists() else word for word in words]
    code = main(["check", *paths, "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert code in (0, 1), found
    return found


def named(found: dict[str, Any], code: str) -> str:
    """All that is said under a code: findings, and rules of the layout."""
    said = [*found["findings"], *(found["bill"] or {"violations": []})["violations"]]
    return " | ".join(
        f"{one['what']}; {one['rule']}; {one['got']}; {one['fix']}" for one in said if one["code"] == code
    )


CASE_ROWS: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = [
    # layers and stages
    (("seven_layers.sh",), "MEG015", ("2 stages do not divide 7 layers", "7 layers / 2 stages = 3.5")),
    (("forty_layers.sh",), "MEG015", ("40 layers / 16 stages = 2.5", "1, 2, 4, 5, 8, 10")),
    (
        ("thirty_layers.sh",),
        "MEG015",
        ("30 layers / 4 stages = 7.5", "dropped the rest", "first-pipeline-num-layers 7"),
    ),
    (("glm_air.sh",), "MEG015", ("46 layers / 4 stages = 11.5", "num-layers 11 --decoder-last-pipeline-num-layers 11")),
    (("glm_air.sh",), "MEG020", ("32 ranks / (etp 1 x ep 16 x pp 4) = 0.5", "64 ranks")),
    (("sixty_layers.yaml",), "MEG015", ("60 layers / 8 stages = 7.5", "first-pipeline-num-layers 6")),
    # heads
    (("twelve_kv_heads.sh",), "MEG012", ("12 key/value heads", "multiple of tensor-model-parallel-size, or a divisor")),
    (("twenty_eight_heads.sh",), "MEG017", ("28 heads / 8 = 3.5", "--tensor-model-parallel-size 1, 2, 4;")),
    (("fifty_two_heads.sh",), "MEG017", ("52 heads / 8 = 6.5", "--tensor-model-parallel-size 1, 2, 4;")),
    # the two products
    (("effective_degree.sh",), "MEG020", ("4 ranks / (etp 1 x ep 4 x pp 2) = 0.5", "8 ranks")),
    (("one_process.sh",), "MEG004", ("1 rank in the launch / (cp 2) = 0.5", "2 ranks")),
    (("llama3_70b.sh",), "MEG004", ("8 ranks in the launch / (tp 8 x pp 2) = 0.5", "16 ranks")),
    (("two_nodes.sh",), "MEG022", ("16 ranks / (tp 8 x pp 2) = 1 data-parallel rank",)),
    # micro-batches
    (("few_micro_batches.sh",), "MEG009", ("4 micro-batches, 8 stages, 2 chunks", "--global-batch-size 16")),
    (("interleaving.sh",), "MEG009", ("24 / (2 x 2) = 6 micro-batches, 4 stages, 2 chunks", "16 or 32")),
    (("batch_of_six.sh",), "MEG008", ("6 / (1 x 4) = 1.5 micro-batches", "4 or 8 sequences")),
    (("batch_lowered.sh",), "MEG008", ("6 / (1 x 4) = 1.5",)),
    # DeepSpeed, by itself and with its launcher
    (("four_ranks.json", "one_of_four.sh"), "CHK004", ("4 ranks in four_ranks.json", "1 in one_of_four.sh")),
    (("apps_ds.json", "apps_train.sh"), "CHK009", ("8 is not 2 x 8 x 8 = 128", "train_batch_size 128")),
    (("apps_ds.json", "apps_train.sh"), "CHK007", ("5e-05", "2e-5", '"lr": "auto" in apps_ds.json')),
    (("elastic_mp1.json",), "DSP006", ("64 / (16 ranks / model parallel 1) = 4", '_per_gpu": 4')),
    (("elastic_mp2.json",), "DSP006", ("64 / (16 ranks / model parallel 2) = 8", '_per_gpu": 8')),
    (("elastic_mp4.json",), "DSP006", ("64 / (16 ranks / model parallel 4) = 16", '_per_gpu": 16')),
    (("pipeline_zero2.json",), "DSP007", ("a pipeline does not go with ZeRO-2", "reduce", "in each", '"stage": 1')),
    # the eight most common errors, but for the type of the pipeline's messages, which no flag sets
    (("common_errors.sh",), "MEG004", ("12 ranks in the launch / (tp 4 x cp 2) = 1.5", "16 ranks")),
    (("common_errors.sh",), "MEG016", ("virtual stages without a pipeline",)),
    (("common_errors.sh",), "MEG017", ("30 heads / 4 = 7.5",)),
    (("common_errors.sh",), "MEG018", ("expert parallelism in a model without experts",)),
    (("common_errors.sh",), "MEG019", ("fp16 and bf16 are both on",)),
    (("more_errors.sh",), "MEG001", ("--sequence-parallel has no effect with tensor-model-parallel-size 1",)),
    (("more_errors.sh",), "MEG020", ("6 ranks / (etp 1 x ep 4 x pp 1) = 1.5", "4 ranks")),
]


@pytest.mark.parametrize(("words", "code", "parts"), CASE_ROWS, ids=lambda value: "-".join(map(str, value))[:40])
def test_the_fault_is_found_and_named(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: str, parts: tuple[str, ...]
) -> None:
    said = named(checked(capsys, *words), code) + ";"

    assert [part for part in parts if part not in said] == [], said


def test_a_finding_stands_at_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    found = checked(capsys, "thirty_layers.sh")["findings"]

    assert [(one["code"], one["line"], one["column"]) for one in found] == [("MEG015", 18, 5)]


@pytest.mark.parametrize("name", ["two_kv_heads.sh", "legal_grid.sh", "deepseek_r1.sh", "same_in_megatron.sh"])
def test_what_is_legal_has_no_finding(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert checked(capsys, name)["findings"] == []


def test_the_split_that_is_run_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "16,16,16,13 layers a stage" in checked(capsys, "deepseek_r1.sh")["says"]


def test_experts_are_cut_inside_data_parallelism(capsys: pytest.CaptureFixture[str]) -> None:
    bill = checked(capsys, "same_in_megatron.sh", "--on", "8xh100-sxm")["bill"]

    assert (bill["derived"]["dp"], bill["derived"]["edp"], bill["derived"]["micro_batches"]) == (2, 1, 8)


def test_seventy_billion_parameters_leave_no_room_on_sixteen_cards_of_80_gb(capsys: pytest.CaptureFixture[str]) -> None:
    bill = checked(capsys, "two_nodes.sh", "--on", "16xa100-sxm-80")["bill"]

    assert bill["memory"]["verdict"] != "fits"
    assert bill["model"]["parameters"]["total"] == 70_553_706_496
    assert bill["memory"]["state_bytes"] > 79e9  # 18 bytes x 70.55 billion / 16


def test_a_batch_that_is_lowered_in_silence_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    (one,) = checked(capsys, "batch_lowered.sh")["findings"]

    assert (one["code"], one["severity"]) == ("MEG008", "warning")


# --- files of other formats ----------------------------------------------------------------------------------------

OTHERS: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    (("recipe_overrides.yaml", "--on", "256xh100-sxm"), ('"megatron-bridge"', "LAY009", "60 layers")),
    (("torchtitan.toml", "qwen3-30b-a3b", "--on", "8xh100-sxm"), ("4 key/value heads / 8",)),
    (("nanotron.yaml", "--on", "8xh100-sxm"), ("1 micro-batch",)),
    (("accelerate_zero2.yaml", "accelerate_train.sh"), ("CHK001", "4 (line 3)", "accumulation")),
    (("accelerate_zero2.yaml", "accelerate_train.sh"), ("CHK002", "fp16", "bf16")),
    (("accelerate_fsdp.yaml", "llama-3.1-8b"), ("CHK011", "LLaMADecoderLayer", "LlamaDecoderLayer")),
    (("accelerate_parallelism.yaml",), ("ACC", "16", "8")),
    (("maxtext.yaml",), ("MTX", "-1")),
    (("pipeline_dtype.yaml",), ("BRG", "pipeline_dtype")),
    (("qwen3_moe_full.yaml", "qwen3-30b-a3b", "--on", "8xh100-sxm"), ('"global_batch": 16',)),
]


@pytest.mark.parametrize(("words", "parts"), OTHERS, ids=lambda value: "-".join(map(str, value))[:50])
def test_the_fault_of_another_format_is_found(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    said = json.dumps(checked(capsys, *words))

    assert [part for part in parts if part not in said] == []
