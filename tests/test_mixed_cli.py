"""`--mixed` on the command line: what it prints, in words and in JSON, and what it refuses."""

import json

import pytest

from outlay.cli.main import main
from outlay.show.schema import OUTPUT_SCHEMAS
from test_json import faults

DEMO = "llama-3.1-70b --on 64xh100-sxm --seq 8192 --batch 512"


def answer(capsys: pytest.CaptureFixture[str], words: str) -> tuple[int, str]:
    code = main([*words.split()])
    return code, capsys.readouterr().out


def part(out: str) -> str:
    """The lines under MIXED, on one."""
    lines = out.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("MIXED"))
    end = next(at for at in range(start + 1, len(lines)) if not lines[at].startswith("   "))
    return " ".join(" ".join(lines[start:end]).split())


def test_a_count_says_what_each_stage_does_and_what_that_saves(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = answer(capsys, f"count {DEMO} --tp 4 --pp 4 --mixed recompute")
    said = part(out)

    assert code == 1 and out.startswith("DOES NOT FIT")  # the layout that is asked about; a mix of its layers would
    assert "64.0 s a step, 74.0 GiB: 2.78 s (4.16 %) less a step than the best uniform plan (66.8 s, 74.0 GiB:" in said
    assert "--tp 4 --pp 4 --recompute full --recompute-layers 6); proved" in said
    assert "stage 0: layers 0..5 full, 6..19 none" in said
    assert "stages 1..3: every layer none" in said
    assert "not Megatron-LM: its flags" in said and "PyTorch: torch.utils.checkpoint" in said


def test_degrees_by_layer_are_galvatron_s_alone(capsys: pytest.CaptureFixture[str]) -> None:
    said = part(answer(capsys, f"count {DEMO} --tp 4 --pp 4 --mixed tp")[1])

    assert "tp 8 none" in said and "tp 4 none" in said
    assert "Hetu-Galvatron's alone, which is no engine that is counted here" in said


def test_nothing_gained_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = answer(capsys, f"count {DEMO} --tp 4 --pp 8 --mixed recompute")

    assert code == 0
    assert part(out).startswith("MIXED recompute layer by layer: nothing gained, proved: no mix is faster than")


def test_no_mix_that_fits_is_an_answer_of_no(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = answer(capsys, "count llama-3.1-70b --on 8xh100-sxm --seq 4096 --batch 64 --tp 8 --mixed recompute")

    assert code == 1
    assert part(out).startswith("MIXED recompute layer by layer: no mix fits for sure")


def test_the_json_of_a_count_holds_to_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = answer(capsys, f"count {DEMO} --tp 4 --pp 4 --mixed recompute,tp --json")
    found = json.loads(out)
    mixed = found["mixed"]

    assert code == 1
    assert faults(OUTPUT_SCHEMAS["bill"](), found) == []
    assert mixed["what"] == ["recompute", "tp"]
    assert mixed["uniform"]["seconds"] - mixed["best"]["seconds"] == pytest.approx(mixed["gain_seconds"])
    layers = [run for stage in mixed["best"]["stages"] for run in stage["layers"]]
    assert sum(run["last"] - run["first"] + 1 for run in layers) == 80


def test_the_keys_of_a_galvatron_file_have_a_number_a_layer(capsys: pytest.CaptureFixture[str]) -> None:
    out = answer(capsys, f"count {DEMO} --tp 4 --pp 4 --zero 3 --mixed tp --json")[1]
    best = json.loads(out)["mixed"]["best"]
    keys = best["galvatron"]

    assert all(len(keys[name].split(",")) == 80 for name in ("tp_sizes_enc", "checkpoint", "dp_types_enc", "use_sp"))
    assert (keys["pp_deg"], keys["pp_division"], keys["vtp"]) == (4, "20,20,20,20", best["layout"]["tp"])
    assert set(keys["dp_types_enc"].split(",")) == {"1"}


def test_a_plan_has_the_mix_beside_its_first(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = answer(capsys, f"plan {DEMO} --best 3 --space lean --mixed recompute --json")
    found = json.loads(out)

    assert code == 0
    assert faults(OUTPUT_SCHEMAS["plan"](), found) == []
    assert found["mixed"]["uniform"]["seconds"] <= found["best"][0]["bill"]["step"]["seconds"]
    assert found["mixed"]["best"]["seconds"] <= found["mixed"]["uniform"]["seconds"]
    assert found["mixed"]["cuts"] > 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (f"count {DEMO} --tp 4 --pp 4 --mixed everything", "MIX001"),
        (f"plan {DEMO} --mixed ,", "MIX001"),
        (f"plan {DEMO} --engine fsdp2 --mixed tp", "MIX002"),
        (f"count {DEMO} --tp 4 --pp 4 --recompute full --recompute-layers 3 --mixed tp", "MIX003"),
        ("count llama-3.1-8b --on 8,16xh100-sxm --mixed tp", "HW003"),
    ],
)
def test_what_cannot_be_mixed_is_refused(words: str, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words.split(), "--json"]) == 2
    assert [fault["code"] for fault in json.loads(capsys.readouterr().out)["errors"]] == [code]
