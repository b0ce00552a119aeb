"""`outlay export`, `convert` and `check` with files of fine-tuning: the batch of the ranks, what is asked for."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from test_cli import run

MODEL = ["llama-3.1-8b", "--on", "8xh100-sxm", "--seq", "4096", "--batch", "64"]
LORA = {
    "model_name_or_path": "meta-llama/Llama-3.1-8B", "stage": "sft", "finetuning_type": "lora", "lora_rank": 8,
    "cutoff_len": 4096, "per_device_train_batch_size": 2, "gradient_accumulation_steps": 4, "bf16": True,
}  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lora.yaml"
    path.write_text(yaml.safe_dump(LORA))
    return path


def checked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = run(capsys, "check", *words, "--json")
    return code, json.loads(out)


@pytest.mark.parametrize(("on", "more", "batch"), [("8xh100-sxm", [], 64), ("2xh100-sxm", [], 16),
                                                   ("8xh100-sxm", ["--batch", "32"], 32)])  # fmt: skip
def test_the_ranks_of_on_make_the_batch(
    capsys: pytest.CaptureFixture[str], file: Path, on: str, more: list[str], batch: int
) -> None:
    code, said = checked(capsys, str(file), "--on", on, *more)

    assert (code, said["bill"]["job"]["global_batch"], said["needs"]) == (0, batch, [])
    assert said["bill"]["model"]["name"] == "llama-3.1-8b"
    assert said["bill"]["job"]["adapter"] == "lora" and said["bill"]["engine"] == "hf_trainer"


def test_tensor_parallel_ranks_that_a_flag_adds_make_a_smaller_batch(
    capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    _, said = checked(capsys, str(file), "--on", "8xh100-sxm", "--tp", "2")

    assert said["bill"]["job"]["global_batch"] == 32


def test_a_file_that_rests_on_another_asks_for_it_and_takes_a_flag(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "full.yaml"
    path.write_text(yaml.safe_dump(LORA | {"finetuning_type": "full", "deepspeed": "ds_z3_config.json"}))

    code, said = checked(capsys, str(path), "--on", "8xh100-sxm")
    assert code == 0 and said["bill"] is None
    assert [(one["what"], "ds_z3_config.json" in one["got"]) for one in said["needs"]] == [("--zero is missing", True)]

    _, said = checked(capsys, str(path), "--on", "8xh100-sxm", "--zero", "3")
    assert (said["bill"]["layout"]["zero"], said["bill"]["engine"]) == (3, "deepspeed")


def test_an_error_of_the_framework_is_exit_1(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(yaml.safe_dump(LORA | {"fp16": True}))

    code, said = checked(capsys, str(path), "--on", "8xh100-sxm")

    assert code == 1 and [one["code"] for one in said["findings"]] == ["LLF003"]


@pytest.mark.parametrize("name", ["axolotl", "llama-factory", "trainer"])
def test_an_export_is_checked_clean_and_counts_what_was_exported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    path = tmp_path / "out.txt"
    flags = ["--engine", "deepspeed", "--zero", "2", "--recompute", "full", "--adapter", "qlora"]
    code, out, _ = run(capsys, "export", name, *MODEL, *flags, "--json", "-o", str(path))
    made = json.loads(out)
    assert (code, made["framework"], made["lost"]) == (0, name, [])
    _, out, _ = run(capsys, "count", *MODEL, *flags, "--json")
    bill = json.loads(out)

    code, said = checked(capsys, str(path), "--on", "8xh100-sxm")

    assert code == 0 and said["findings"] == [] and said["read"]["ranks"] == 8
    for part in ("layout", "memory", "step"):
        assert said["bill"][part] == bill[part]


def test_one_file_becomes_another_frameworks(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    code, out, err = run(capsys, "convert", str(file), "axolotl", "--on", "8xh100-sxm")

    made = yaml.safe_load(out)
    assert code == 0 and "READ" in err
    assert {name: made[name] for name in ("adapter", "lora_r", "sequence_len", "micro_batch_size")} == {
        "adapter": "lora", "lora_r": 8, "sequence_len": 4096, "micro_batch_size": 2,
    }  # fmt: skip
    assert made["gradient_accumulation_steps"] == 4 and made["gradient_checkpointing"] is True


def test_a_name_with_a_line_end_leaves_neither_comment_nor_string(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "a'\"\nb: c.json"
    config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
              "intermediate_size": 128, "vocab_size": 256}  # fmt: skip
    path.write_text(json.dumps(config))

    for name in ("axolotl", "llama-factory", "trainer"):
        code, out, _ = run(capsys, "export", name, str(path), "--on", "8xh100-sxm", "--seq", "64", "--batch", "8")
        assert code == 0 and not any(line.startswith("b: c") for line in out.splitlines())
        if name == "trainer":
            compile(out, "train.py", "exec")
        else:
            assert "b" not in yaml.safe_load(out)
