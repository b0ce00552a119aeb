"""`outlay check`: several files of one run, what contradicts what, every format of the answer, and corrected copies."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from outlay.cli.main import main
from outlay.formats.deepspeed import read as read_deepspeed
from outlay.formats.edited import UnmendableError, edited
from outlay.formats.megatron import read as read_megatron
from outlay.formats.said import said_in
from outlay.show.schema import OUTPUT_SCHEMAS
from test_cli import run
from test_json import faults

CASES = Path(__file__).parent / "check_cases"
SMALL = "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --vocab-size 32000 --seq-length 2048"
TRAINER = """#!/bin/bash
torchrun --nproc-per-node 8 train.py --per_device_train_batch_size 2 --gradient_accumulation_steps 4 \\
  --bf16 True --deepspeed ds.json
"""
DEEP = {
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "zero_optimization": {"stage": 2},
    "bf16": {"enabled": True},
}


def answer(capsys: pytest.CaptureFixture[str], *words: str | Path) -> dict[str, Any]:
    main(["check", *map(str, words), "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def codes(found: dict[str, Any]) -> list[str]:
    return [one["code"] for one in found["findings"]]


def put(folder: Path, name: str, text: str | dict[str, Any]) -> Path:
    path = folder / name
    path.write_text(text if isinstance(text, str) else json.dumps(text, indent=2))
    return path


# --- which words are files ------------------------------------------------------------------------------------------


def test_a_config_json_among_the_files_is_the_model(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    deep = put(tmp_path, "ds.json", DEEP | {"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2})
    config = Path(__file__).parent / "configs" / "llama-3.1-8b.json"
    model = put(tmp_path, "config.json", config.read_text())

    for words in ([deep, model], [model, deep], [deep, tmp_path], [deep, "llama-3.1-8b"]):
        found = answer(capsys, *words, "--on", "8xh100-sxm", "--seq", "2048")
        assert [Path(one["path"]).name for one in found["files"]] == ["ds.json"]
        assert found["bill"]["model"]["parameters"]["total"] == 8_030_261_248


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], "CLI004", "no file is given"),
        (["llama-3.1-8b"], "CLI004", "no file is given"),
        (["{a}", "{a}"], "CLI005", "is given twice"),
        (["{a}", "{folder}/./a.sh"], "CLI005", "is given twice"),
        (["-", "-"], "CLI005", "standard input is given twice"),
        (["{a}", "llama-3.1-8b", "mixtral-8x7b"], "CLI005", "mixtral-8x7b"),
        (["{a}", "no-such-model"], "MOD007", "no-such-model"),
        (["{folder}/none.sh"], "FMT002", "No such file"),
        (["{folder}"], "FMT002", "directory"),
        (["{a}", "{binary}", "{empty}"], "FMT002", "bin.sh, line 1 column 1: byte 0xff"),
        (["{a}", "{binary}", "{empty}"], "FMT004", "empty.sh"),
        (["{a}", "--format", "xml"], "CLI002", "full, concise, json, github"),
    ],
)
def test_questions_that_cannot_be_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], code: str, said: str
) -> None:
    put(tmp_path, "a.sh", f"x {SMALL}")
    put(tmp_path, "empty.sh", "")
    (tmp_path / "bin.sh").write_bytes(b"\xff\xfe\x00\x01"[::-1] + b"\xff")
    (tmp_path / "bin.sh").write_bytes(b"\xff\x00\x01\xd8")
    paths = {"a": tmp_path / "a.sh", "binary": tmp_path / "bin.sh", "empty": tmp_path / "empty.sh", "folder": tmp_path}

    assert main(["check", *(word.format(**paths) for word in words), "--json"]) == 2
    found = json.loads(capsys.readouterr().out)["errors"]

    assert code in [one["code"] for one in found]
    assert said in " ".join(" ".join(one.values()) for one in found)


# --- several files of one run ---------------------------------------------------------------------------------------


def test_files_of_one_run_are_joined(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    deep, script = put(tmp_path, "ds.json", DEEP), put(tmp_path, "train.sh", TRAINER)

    found = answer(capsys, deep, script, "llama-3.1-8b", "--on", "8xh100-sxm", "--seq", "2048")

    assert faults(OUTPUT_SCHEMAS["check"](), found) == []
    assert codes(found) == []  # what is "auto" is filled by the script, which names the file that is there
    bill = found["bill"]
    assert (bill["job"]["global_batch"], bill["layout"]["micro_batch"], bill["layout"]["zero"]) == (64, 2, 2)
    assert (bill["engine"], found["read"]["ranks"]) == ("deepspeed", 8)


@pytest.mark.parametrize(
    ("deep", "code", "said"),
    [
        ({"train_micro_batch_size_per_gpu": 4}, "CHK001", "4 (line 2) in ds.json, --per_device_train_batch_size 2"),
        ({"gradient_accumulation_steps": 8}, "CHK001", "8 (line 3) in ds.json, --gradient_accumulation_steps 4"),
        ({"bf16": {"enabled": False}, "fp16": {"enabled": True}}, "CHK002", "fp16.enabled fp16"),
        ({"train_batch_size": 32}, "CHK009", "32 is not 2 x 4 x 8 = 64"),
        (
            {"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4},
            "CHK004",
            "4 ranks in ds.json",
        ),
    ],
)
def test_what_two_files_contradict_each_other_in_is_an_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, deep: dict[str, Any], code: str, said: str
) -> None:
    paths = put(tmp_path, "ds.json", DEEP | deep), put(tmp_path, "train.sh", TRAINER)

    found = [one for one in answer(capsys, *paths)["findings"] if one["severity"] == "error"]

    assert [one["code"] for one in found] == [code]
    assert said in found[0]["got"] and found[0]["file"].endswith("ds.json")


def test_a_file_that_is_named_and_not_given_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (one,) = answer(capsys, put(tmp_path, "train.sh", TRAINER))["findings"]

    assert (one["code"], one["line"], one["got"]) == ("CHK008", 3, "ds.json")


def test_two_sections_of_one_file_that_differ_are_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = "model:\n  num_layers: 8\n  seq_length: 4096\ndataset:\n  sequence_length: 2048\n"

    found = answer(capsys, put(tmp_path, "a.yaml", text))["findings"]

    assert [(one["code"], one["line"]) for one in found if one["code"].startswith("CHK")] == [("CHK005", 5)]


@pytest.mark.parametrize(
    ("named", "model", "right"),
    [
        ("LLaMADecoderLayer", "llama-3.1-8b", "LlamaDecoderLayer"),
        ("BertLayer", "gpt2-xl", "GPT2Block"),
        ("GPT2Block", "qwen3-8b", "Qwen3DecoderLayer"),
    ],
)
def test_a_class_to_wrap_that_the_model_does_not_have_is_an_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, named: str, model: str, right: str
) -> None:
    text = "accelerate launch --fsdp_transformer_layer_cls_to_wrap {} train.py --bf16 --per_device_train_batch_size 1\n"
    path = put(tmp_path, "train.sh", text.format(named))

    (one,) = answer(capsys, path, model)["findings"]
    run(capsys, "check", str(path), model, "--fix")

    assert (one["code"], one["severity"], one["line"], one["fix"]) == ("CHK011", "error", 1, right)
    assert (tmp_path / "train.fixed.sh").read_text() == text.format(right)
    assert answer(capsys, put(tmp_path, "b.sh", text.format(right)), model)["findings"] == []
    assert answer(capsys, put(tmp_path, "b.sh", text.format("MyOwnBlock")), model)["findings"] == []


def test_different_models_and_another_cluster_are_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    one = put(tmp_path, "a.sh", f"torchrun --nproc-per-node 8 x.py {SMALL}")
    two = put(tmp_path, "b.yaml", "num_layers: 12\nhidden_size: 1024\nnum_attention_heads: 16\nvocab_size: 32000\n")

    found = answer(capsys, one, two, "--on", "4xh100-sxm")

    assert {"CHK006", "CHK010"} <= set(codes(found))
    assert "8 ranks in the files, 4 in --on" in json.dumps(found)


def test_each_framework_says_the_same_quantity_under_its_own_name() -> None:
    texts = (
        "x --micro-batch-size 4 --fp16",
        '{"train_micro_batch_size_per_gpu": 4, "fp16": {"enabled": true}}',
        "per_device_train_batch_size: 4\nmixed_precision: fp16\n",
        "tokens:\n  micro_batch_size: 4\nfp16: true\n",
        "[training]\nmicro_batch_size = 4\nmixed_precision = 'fp16'\n",
    )

    assert [{(one.quantity, one.value) for one in said_in(text)} for text in texts] == [
        {("micro-batch", "4"), ("precision", "fp16")}
    ] * len(texts)


# --- the answer -----------------------------------------------------------------------------------------------------


def test_errors_come_first_and_then_what_costs_most(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = f"""torchrun --nproc-per-node 8 x.py {SMALL} --global-batch-size 36 --bf16 \\
  --recompute-num-layers 2 --num-query-groups 4 --use-distributed-optimiser \\
  --micro-batch-size 2 --swiglu --tensor-model-parallel-size 2
"""
    found = answer(capsys, put(tmp_path, "a.sh", text), "--on", "8xh100-sxm")["findings"]

    assert [one["code"] for one in found] == ["MEG008", "MEG005", "MEG021", "MEG002"]
    costs = [one["cost"]["peak_bytes"] if one["cost"] else 0 for one in found[1:]]
    assert costs[0] > costs[1] > costs[2] == 0


def test_what_a_finding_costs_is_the_bill_less_that_of_the_mended_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = f"torchrun --nproc-per-node 8 x.py {SMALL} --global-batch-size 64 --bf16 --num-query-groups 4\n"
    one, two = (
        put(tmp_path, "a.sh", text),
        put(tmp_path, "b.sh", text.replace("--num", "--group-query-attention --num")),
    )

    before, after = (answer(capsys, path, "--on", "8xh100-sxm") for path in (one, two))

    (cost,) = [each["cost"] for each in before["findings"]]
    assert cost["peak_bytes"] == before["bill"]["memory"]["peak_bytes"] - after["bill"]["memory"]["peak_bytes"] > 0
    assert cost["seconds"] == before["bill"]["step"]["seconds"] - after["bill"]["step"]["seconds"] > 0


def test_concise_is_a_line_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(CASES / "glm_air.sh")
    code, out, err = run(capsys, "check", path, "--format", "concise")

    assert (code, err) == (1, "")
    assert out.splitlines() == [
        f"{path}:25:5: MEG015 4 stages do not divide 46 layers",
        f"{path}:27:5: MEG020 the experts' degrees do not divide 32 ranks",
        "2 errors, 0 warnings",
    ]


def test_github_commands_are_escaped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = put(tmp_path, "a,b:c 100%.sh", f"x {SMALL} --micro-batch-size 1 --recompute-num-layers 4\n")

    code, out, _ = run(capsys, "check", str(path), "--on", "8xh100-sxm", "--format", "github")
    first, verdict = out.splitlines()

    assert code == 0
    assert re.match(r"::warning file=[^,:]*a%2Cb%3Ac 100%25\.sh,line=1,col=\d+,title=MEG002 layers[^:]*::layers", first)
    assert "%0Arule: " in first and "%0Afix: " in first
    assert verdict.startswith("::notice file=") and ",title=FITS::FITS%3A" not in verdict and "::FITS: " in verdict


@pytest.mark.parametrize(
    ("form", "start"), [("concise", "{path}:2:3: FMT003 "), ("github", "::error file={path},line=2")]
)
def test_a_file_that_cannot_be_read_is_a_line_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, form: str, start: str
) -> None:
    path = put(tmp_path, "a.sh", 'x --num-layers 2\ny "open')

    code, out, _ = run(capsys, "check", str(path), "--format", form)

    assert code == 2 and out.startswith(start.format(path=path))


def test_json_is_a_format_and_holds_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(CASES / "two_hundred_lines.sh")
    outs = [run(capsys, "check", path, "--on", "64xh100-sxm", *how)[1] for how in (["--json"], ["--format", "json"])]

    assert outs[0] == outs[1]
    assert faults(OUTPUT_SCHEMAS["check"](), json.loads(outs[0])) == []
    assert main(["check", "none.sh", "--format=json"]) == 2 and json.loads(capsys.readouterr().out)["errors"]


def test_many_findings_are_counted_by_code(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    wrong = " ".join(f"--{name}s 1" for name in ("lora-ran", "train-iter", "exit-interval"))
    names = (
        "tensor-model-parallel-siz hidden-siz num-layer kv-channel seq-lengt micro-batch-siz global-batch-siz vocab-siz"
    )
    text = f"x {wrong} " + " ".join(
        f"--{name} 2" for name in (names + " ffn-hidden-siz init-method-st num-expert").split()
    )

    _, out, _ = run(capsys, "check", str(put(tmp_path, "a.sh", text + " --bf16")))

    assert out.count("\nwarning: ") <= 10
    found = len(codes(answer(capsys, tmp_path / "a.sh")))
    assert (f"MEG005 x {found - 10}" in out) is (found > 10)


def test_a_better_layout_is_named_with_the_flags_of_the_framework(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    main(["export", "megatron", "llama-3.1-8b", "--on", "16xh100-sxm", "--tp", "4", "--seq", "4096", "--batch", "64"])
    path = put(tmp_path, "a.sh", capsys.readouterr().out)

    found = answer(capsys, path, "--on", "16xh100-sxm")

    for one in found["better"]:
        assert one["seconds"] < found["bill"]["step"]["seconds"]
        assert one["settings"] and all(re.match(r"(no )?--[a-z]", text) for text in one["settings"])
    degrees = next(one for one in found["better"] if one["flags"] == "--tp 2")
    assert degrees["settings"] == ["--tensor-model-parallel-size 2"]


def test_a_better_layout_of_deepspeed_is_a_path_of_its_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    deep = put(tmp_path, "ds.json", DEEP | {"train_batch_size": 16, "train_micro_batch_size_per_gpu": 2})
    words = [deep, "llama-3.1-8b", "--on", "8xh100-sxm", "--seq", "2048"]

    said = [text for one in answer(capsys, *words)["better"] for text in one["settings"]]

    assert said and all(re.match(r"(no )?[a-z_.]+( |$)", text) for text in said)


# --- corrected copies -----------------------------------------------------------------------------------------------


def test_a_copy_beside_the_file_is_corrected_and_the_file_stays(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = (CASES / "two_hundred_lines.sh").read_text()
    path = put(tmp_path, "train.sh", text)

    code, out, _ = run(capsys, "check", str(path), "llama-3.1-70b", "--on", "64xh100-sxm", "--fix")

    copy = tmp_path / "train.fixed.sh"
    assert code == 1 and path.read_text() == text and copy.exists()
    before, after = text.splitlines(), copy.read_text().splitlines()
    assert len(before) == len(after) + 1  # one setting went with its line
    assert sum(line not in after for line in before) == 3  # all others are as they were
    assert (
        "\n--- train.sh\n+++ train.fixed.sh\n@@ " in out and "\nLEFT      MEG008" in out and "LEFT      MEG014" in out
    )
    assert {"MEG007", "MEG021", "MEG023", "MEG002"}.isdisjoint(codes(answer(capsys, copy, "llama-3.1-70b")))


def test_a_copy_is_never_written_over_anything(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = put(tmp_path, "a.sh", f"x {SMALL} --sequence-parallel\n")
    other = put(tmp_path, "a.fixed.sh", "mine")

    for words in (
        [],
        ["-o", str(path)],
        ["-o", str(path), "--force"],
        ["-o", str(tmp_path / "no" / "x.sh")],
        ["-o", "-"],
    ):
        assert run(capsys, "check", str(path), "--fix", *words)[0] == 2
    assert (path.read_text(), other.read_text()) == (f"x {SMALL} --sequence-parallel\n", "mine")

    assert run(capsys, "check", str(path), "--fix", "--force")[0] == 0
    assert other.read_text() == f"x {SMALL}\n"
    assert run(capsys, "check", str(path), "--fix", "-o", str(tmp_path / "b.sh"))[0] == 0
    assert (tmp_path / "b.sh").read_text() == f"x {SMALL}\n"


def test_nothing_is_written_where_nothing_can_be_mended(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = put(tmp_path, "a.sh", f"torchrun --nproc-per-node 8 x.py {SMALL} --tensor-model-parallel-size 3\n")

    _, out, _ = run(capsys, "check", str(path), "--fix")

    assert "FIXED     nothing in a.sh" in out and "LEFT      MEG004" in out
    put(tmp_path, "a.sh", f"x {SMALL}\n")
    assert "FIXED     nothing in a.sh: there is no finding" in run(capsys, "check", str(path), "--fix")[1]
    assert [one.name for one in tmp_path.iterdir()] == ["a.sh"]


def mended(text: str, read: Any = read_megatron) -> str:
    content = text.encode()
    return edited(content, [one for one in read(content).findings if one.edits]).decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x --num-layers 8 --sequence-parallel --bf16", "x --num-layers 8 --bf16"),
        ("x --num-layers 8 \\\n  --sequence-parallel \\\n  --bf16\n", "x --num-layers 8 \\\n  --bf16\n"),
        ("x --num-layers 8 \\\n  --sequence-parallel\necho\n", "x --num-layers 8 \\\n\necho\n"),
        (
            "A=(\n  --num-layers 8\n  --sequence-parallel  # sp\n)\nx ${A[@]}\n",
            "A=(\n  --num-layers 8\n  # sp\n)\nx ${A[@]}\n",
        ),
        ("A=(--sequence-parallel --num-layers 8)\nx ${A[@]}\n", "A=( --num-layers 8)\nx ${A[@]}\n"),
        ('A="--num-layers 8 --sequence-parallel"\r\nx $A\r\n', 'A="--num-layers 8"\r\nx $A\r\n'),
        ("x --num-layers 8 --recompute-num-layers=2 -y", "x --num-layers 8 -y"),
        ("x --num-layers 8 --recompute-num-layers $N --bf16", "x --num-layers 8 --recompute-num-layers $N --bf16"),
        ("num_layers: 8\nsequence_parallel: true  # sp\nbf16: true\n", "num_layers: 8\nbf16: true\n"),
        ("x --num-layers 8 --tensor-model-paralel-size 2", "x --num-layers 8 --tensor-model-parallel-size 2"),
        ("\ufeffx --num-layers 8 --sequence-parallel", "\ufeffx --num-layers 8"),
    ],
)
def test_only_the_setting_at_fault_changes(before: str, after: str) -> None:
    assert mended(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"zero_optimization": {"stage": 2, "cpu_offload": true}}',
         '{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}'),
        ('{\n  "zero_optimization": {"stage": 2},\n  "amp": {"enabled": {}, "x": "}"},\n  "bf16": {}\n}',
         '{\n  "zero_optimization": {"stage": 2},\n  "bf16": {}\n}'),
        ('{"bf16": {}, "nebula": [1, 2]}', '{"bf16": {}}'),
        ('// launch: deepspeed --num_gpus 8 t.py\n{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2,\n'
         ' "gradient_accumulation_steps": 3 /* three */}',
         '// launch: deepspeed --num_gpus 8 t.py\n{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2,\n'
         ' "gradient_accumulation_steps": 2 /* three */}'),
        ('{"pipeline": {"stages": 2}, "zero_optimization": {"stage": 3}}',
         '{"pipeline": {"stages": 2}, "zero_optimization": {"stage": 1}}'),
    ],
)  # fmt: skip
def test_json_keeps_all_but_the_setting_at_fault(before: str, after: str) -> None:
    assert mended(before, read_deepspeed) == after


def test_utf_16_and_places_that_do_not_fit() -> None:
    text = "x --num-layers 8 --sequence-parallel"
    (one,) = read_megatron(text.encode()).findings

    assert edited(b"\xff\xfe" + text.encode("utf-16-le"), [one]) == b"\xff\xfe" + "x --num-layers 8".encode("utf-16-le")
    for other in (b"x", b"x --num-layers 8 \n--sequence-parallel", b"  sequence_parallel .... True"):
        with pytest.raises(UnmendableError):
            edited(other, [one])
