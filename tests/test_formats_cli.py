"""`outlay export` and `outlay convert`: what they print, write and refuse, and what they say beside the file."""

import json
import os
import random
import re
from pathlib import Path

import pytest

from outlay.cli.main import main
from outlay.show.schema import OUTPUT_SCHEMAS
from test_cli import run
from test_json import faults

MODEL = ["llama-3.1-8b", "--on", "16xh100-sxm", "--seq", "4096", "--batch", "64"]
DEEPSPEED = '{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2,' \
    ' "zero_optimization": {"stage": 3}, "bf16": {"enabled": true}, "steps_per_print": 10}'  # fmt: skip


def test_megatron_arguments_go_to_standard_output_and_losses_to_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "export", "megatron", *MODEL, "--tp", "2", "--reserved", "2GiB")

    assert code == 0 and out.startswith("#!/bin/bash\n# Megatron-LM with megatron-core 0.19. Written by outlay")
    assert "  --tensor-model-parallel-size 2\n" in out and 'pretrain_gpt.py "${ARGS[@]}" "$@"' in out
    assert "LOST      job.reserved_bytes (--reserved 2147483648.0)" in err.replace("--reserved-bytes", "--reserved")
    assert "# NOT IN THIS FILE: job.reserved_bytes" in out


def test_the_usual_engine_is_that_of_the_framework(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "export", "deepspeed", *MODEL, "--zero", "3")

    assert code == 0 and json.loads(out)["zero_optimization"] == {"stage": 3, "overlap_comm": True}
    assert "LOST      model llama-3.1-8b: it is set in code" in err
    assert "launch: deepspeed --num_nodes 2 --num_gpus 8 train.py" in err
    assert "counted with" not in err


def test_what_a_bill_or_a_plan_printed_is_exported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main(["count", *MODEL, "--tp", "4", "--json"])
    (tmp_path / "bill.json").write_text(capsys.readouterr().out)
    main(["plan", *MODEL, "--json", "--tp", "2", "--pp", "1", "--no-offload"])
    (tmp_path / "plan.json").write_text(capsys.readouterr().out)

    for name, tp in (("bill", 4), ("plan", 2)):
        code, out, _ = run(capsys, "export", "megatron", str(tmp_path / f"{name}.json"))
        assert code == 0 and f"--tensor-model-parallel-size {tp}\n" in out


def test_a_bill_of_another_engine_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main(["count", *MODEL, "--engine", "fsdp2", "--json"])
    (tmp_path / "bill.json").write_text(capsys.readouterr().out)

    code, out, err = run(capsys, "export", "megatron", str(tmp_path / "bill.json"))

    assert code == 0 and "--data-parallel-sharding-strategy optim_grads_params" in out
    assert "counted with the kernels and bytes of fsdp2" in err
    assert "job.bytes_per_parameter" in err


def test_files_are_written_whole_and_never_over_others(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    assert run(capsys, "export", "deepspeed", *MODEL, "-o", str(path))[:2] == (0, "")
    notes = (tmp_path / "ds.json.notes.md").read_text()
    assert json.loads(path.read_text())["train_batch_size"] == 64
    assert "- launch: deepspeed" in notes and "- model llama-3.1-8b: it is set in code" in notes
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]

    code, _, err = run(capsys, "export", "deepspeed", *MODEL, "-o", str(path))
    assert code == 2 and err.count("OUT001") == 2
    assert run(capsys, "export", "deepspeed", *MODEL, "-o", str(path), "--force")[0] == 0
    os.remove(path)
    assert "OUT001" in run(capsys, "export", "deepspeed", *MODEL, "-o", str(path))[2] and not path.exists()


def test_a_layout_that_breaks_a_rule_is_not_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    code, out, _ = run(capsys, "export", "deepspeed", *MODEL, "--pp", "2", "--zero", "3", "-o", str(path))

    assert code == 1 and "LAY031" in out and not path.exists()


def test_the_rules_of_the_framework_hold_for_a_bill_of_another(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "export", "deepspeed", *MODEL, "--engine", "megatron", "--pp", "2", "--zero", "2")

    assert code == 1 and "LAY031" in out


@pytest.mark.parametrize(
    "words", [["export", "deepspeed", *MODEL], ["export", "deepspeed", *MODEL, "--zero", "3", "--pp", "2"]]
)
def test_the_schema_of_an_export_holds(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    main([*words, "--json"])

    assert faults(OUTPUT_SCHEMAS["export"](), json.loads(capsys.readouterr().out)) == []


def test_a_conversion_asks_by_name_for_what_a_file_does_not_say(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "ds.json"
    path.write_text(DEEPSPEED)

    code, out, err = run(capsys, "convert", str(path), "megatron")
    assert (code, out) == (2, "") and re.findall(r"error: (\S+|no hardware) is", err) == [
        "MODEL",
        "--seq",
        "no hardware",
    ]
    assert "the file is for 16 ranks" in err

    code, out, err = run(
        capsys, "convert", str(path), "megatron", "llama-3.1-8b", "--on", "16xh100-sxm", "--seq", "4096"
    )
    assert code == 0
    assert "--micro-batch-size 2\n" in out and "--global-batch-size 64\n" in out and "--grad-reduce-in-bf16" in out
    assert "NOT READ  1 setting that no count needs: steps_per_print 10" in err


def test_a_conversion_there_and_back_keeps_the_layout(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script, back = tmp_path / "train.sh", tmp_path / "again.sh"
    assert main(["export", "megatron", *MODEL, "--tp", "2", "--pp", "2", "--vpp", "2", "-o", str(script)]) == 0
    assert main(["convert", str(script), "megatron", "--on", "16xh100-sxm", "-o", str(back)]) == 0
    capsys.readouterr()

    assert [line for line in back.read_text().splitlines() if line[:1] != "#"] == [
        line for line in script.read_text().splitlines() if line[:1] != "#"
    ]


def test_a_conversion_says_what_it_read_in_json_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "train.sh"
    main(["export", "megatron", *MODEL, "--tp", "2", "-o", str(path)])
    path.write_text(path.read_text() + "# $(rm -rf /)\nX=$(rm -rf /)\n")
    capsys.readouterr()

    code = main(["convert", str(path), "deepspeed", "--on", "8xh100-sxm", "--json"])
    found = json.loads(capsys.readouterr().out)

    assert code == 0 and faults(OUTPUT_SCHEMAS["export"](), found) == []
    assert any("$(rm -rf /) is shown, not run" in note for note in found["read"]["notes"])
    assert any("16 ranks, --on has 8" in note for note in found["notes"])
    assert "layout.sp" in {one["field"] for one in found["lost"]}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["export"], "CLI004"),
        (["export", "megatrom", *MODEL], "FMT001"),
        (["export", "megatron", *MODEL, "-o", "/no/such/folder/f.sh"], "OUT002"),
        (["convert"], "CLI004"),
        (["convert", "/no/such/file", "megatron"], "FMT002"),
        (["convert", "pyproject.toml", "megatron"], "FMT004"),
    ],
)
def test_questions_that_cannot_be_read(capsys: pytest.CaptureFixture[str], words: list[str], code: str) -> None:
    assert main([*words, "--json"]) == 2
    assert code in [fault["code"] for fault in json.loads(capsys.readouterr().out)["errors"]]


# --- check ----------------------------------------------------------------------------------------------------------


def test_a_clean_file_that_fits_exits_with_0(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "train.sh"
    main(["export", "megatron", *MODEL, "--tp", "4", "-o", str(path)])
    capsys.readouterr()

    code, out, err = run(capsys, "check", str(path), "llama-3.1-8b", "--on", "16xh100-sxm")

    assert (code, err) == (0, "")
    assert out.startswith("SAYS      train.sh runs a model of 8.030 billion parameters with tp 4, dp_shard 4, zero 1,")
    assert "0 errors, 0 warnings" in " ".join(out.split()) and "\nFITS " in out


def test_a_model_without_its_query_groups_is_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "train.sh"
    main(["export", "megatron", *MODEL, "--tp", "4", "-o", str(path)])
    path.write_text("\n".join(line for line in path.read_text().splitlines() if "query" not in line))
    capsys.readouterr()

    assert main(["check", str(path), "llama-3.1-8b", "--on", "16xh100-sxm", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)

    assert faults(OUTPUT_SCHEMAS["check"](), found) == []
    assert [(one["code"], one["fix"]) for one in found["findings"]] == [
        ("MEG007", "--group-query-attention --num-query-groups 8")
    ]
    assert found["bill"]["model"]["parameters"]["total"] == 8_835_567_616


def test_a_rule_of_run_time_is_found_before_the_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "train.sh"
    main(["export", "megatron", *MODEL, "--pp", "4", "--vpp", "2", "-o", str(path)])
    path.write_text(path.read_text().replace("--global-batch-size 64", "--global-batch-size 24"))
    capsys.readouterr()

    code, out, _ = run(capsys, "check", str(path), "--on", "16xh100-sxm")

    assert code == 1 and "LAY013" in out  # 6 micro-batches, 4 stages: Megatron-LM says so only in its schedule


def test_what_a_bill_still_needs_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    path.write_text(DEEPSPEED.replace('"gradient_accumulation_steps": 2', '"gradient_accumulation_steps": "auto"'))

    code, out, err = run(capsys, "check", str(path))

    assert (code, err) == (0, "") and "DSP002" in out
    assert [line[10:].split(" is")[0] for line in out.splitlines() if line.startswith("NEEDS")] == [
        "MODEL", "--seq", "no hardware",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('deepspeed --num_gpus 8 t.py\n{"train_batch_size": 9, "train_micro_batch_size_per_gpu": 1,'
         ' "gradient_accumulation_steps": 1}', "DSP001"),
        ('{"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}', "DSP004"),
        ('deepspeed --num_gpus 8 t.py\n{"train_batch_size": 8, "tensor_parallel": {"autotp_size": 3}}', "DSP005"),
        ("--num-layers 8 --hidden-size 64 --num-attention-heads 4 --vocab-size 9 --num-experts 2"
         " --moe-layer-freq ([0]*3+[1]*6)", "MEG006"),
        ("--num-layers 9 --hidden-size 64 --num-attention-heads 4 --vocab-size 9 --pipeline-model-parallel-size 4"
         " --decoder-first-pipeline-num-layers 1", "MEG003"),
        ("--num-layers 9 --recompute-num-layers 2", "MEG002"),
        ("torchrun --nproc-per-node 8 p.py --num-layers 9 --tensor-model-parallel-size 3", "MEG004"),
    ],
)  # fmt: skip
def test_each_finding_has_its_code(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, code: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)

    main(["check", str(path), "--json"])

    assert code in [one["code"] for one in json.loads(capsys.readouterr().out)["findings"]]


NUMBERS = ("0", "1", "3", "7", "64", "1000", "-2", "1.5", "999999999999", "1e30")


@pytest.mark.parametrize("framework", ["megatron", "deepspeed"])
def test_a_file_of_any_numbers_is_never_a_fault_of_the_program(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, framework: str
) -> None:
    path, chance = tmp_path / "file", random.Random(3)
    more = ["--ep", "4", "--tp", "2"] if framework == "megatron" else ["--zero", "3"]
    main(["export", framework, "mixtral-8x7b", *MODEL[1:], *more])
    text = capsys.readouterr().out
    places = [match.span() for match in re.finditer(r"(?<=[ :])\d+", text)]

    for _ in range(100):
        start, end = chance.choice(places)
        path.write_text(text[:start] + chance.choice(NUMBERS) + text[end:])
        code = main(["check", str(path), "mixtral-8x7b", "--on", "16xh100-sxm", "--seq", "4096", "--json"])
        said = capsys.readouterr().out
        assert code in (0, 1, 2) and "CLI000" not in said
