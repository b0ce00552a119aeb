"""What --json prints: its keys, its numbers, and that it can be read back."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outlay import Job, Layout, count, load_cluster, load_model
from outlay.cli.main import main
from outlay.search.advice import advise
from outlay.show.record import dumps, record
from outlay.show.restore import restore
from outlay.show.schema import OUTPUT_SCHEMAS, input_schema

DEMO = ["llama-3.1-70b", "--on", "64xh100-sxm", "--tp", "8", "--pp", "4", "--seq", "8192", "--batch", "512"]
CASES = {
    "fits": "llama-3.1-70b --on 64xh100-sxm --tp 8 --pp 4 --seq 8192 --batch 512",
    "impossible": "llama-3.1-70b --on 8xh100-sxm --tp 8 --seq 8192 --batch 8",
    "nothing left": "llama-3.1-8b --on 8xh100-sxm --reserved 90GB",
    "not legal": "llama-3.1-70b --on 64xh100-sxm --tp 3 --pp 5 --batch 7",
    "experts": "mixtral-8x7b --on 64xh100-sxm --tp 4 --ep 8 --pp 2 --seq 4096 --batch 256",
    "latent": "deepseek-v3 --on 256xh100-sxm --ep 64 --seq 4096 --batch 1024 --engine fsdp2",
    "interleaved": "llama-3.1-70b --on 64xh100-sxm --tp 8 --pp 4 --vpp 5 --seq 8192 --batch 512",
    "one card": "llama-3.1-8b --on a100-sxm-80 --seq 2048",
    "whole run": "llama-3.1-8b --on 8xp5.48xlarge --seq 8192 --batch 64 --tokens 1T --storage 10GB/s --mtbf published"
    " --restart 10min --pue 1.2 --measured 9.8k",
    "offload": "llama-3.1-8b --on 8xh100-sxm --engine deepspeed --zero 3 --offload-parameters 1 --offload-optimizer 1",
}


def printed(capsys: pytest.CaptureFixture[str], words: str | list[str]) -> tuple[str, Any]:
    """The text that a command prints with --json, and its value."""
    main([*(words.split() if isinstance(words, str) else words), "--json"])
    text = capsys.readouterr().out
    return text, json.loads(text, parse_constant=refused)


def refused(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


# --- keys -----------------------------------------------------------------------------------------------------------


def test_a_bill_has_exactly_the_keys_of_its_description(capsys: pytest.CaptureFixture[str]) -> None:
    _, bill = printed(capsys, ["count", *DEMO])

    assert list(bill) == [
        "schema", "version", "model", "job", "cluster", "layout", "engine", "memory", "step", "derived", "bubble",
        "traffic", "saved", "binds", "violations", "assumptions", "conventions",
    ]  # fmt: skip
    assert list(bill["model"]) == ["name", "parameters", "shape"]
    assert list(bill["model"]["parameters"]) == ["total", "active", "embedding", "mtp"]
    assert list(bill["memory"]) == [
        "unsharded_state_bytes", "state_bytes", "activation_bytes", "peak_bytes", "capacity_bytes", "usable_bytes",
        "allocated_bytes", "reserved_bytes", "device_bytes",
        "verdict", "worst_rank", "items", "ranks",
    ]  # fmt: skip
    assert list(bill["step"]) == [
        "seconds", "band_seconds", "items", "tokens_per_second", "tokens_per_second_per_device", "mfu", "hfu",
        "model_flops",
    ]  # fmt: skip
    assert list(bill["bubble"]) == [
        "share", "span_share", "seconds", "slots", "useful_slots", "held_slots", "definition",
    ]  # fmt: skip
    assert bill["derived"] == {"dp": 2, "edp": 16, "micro_batches": 256}
    assert list(bill["traffic"]["items"][0]) == ["axis", "bytes", "seconds", "exposed_seconds", "link", "grows_with"]
    assert list(bill["memory"]["items"][0]) == ["name", "bytes", "kind", "low", "high", "band"]
    assert list(bill["step"]["items"][0]) == ["name", "seconds", "kind", "low", "high", "band"]
    assert bill["engine"] == "megatron"


def faults(schema: dict[str, Any], value: Any, path: str = "$") -> list[str]:
    """Where a value breaks a schema, for the words of JSON Schema that outlay's own schemas use."""
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{path}: {value!r} not in {schema['enum']}"]
    if "const" in schema:
        return [] if value == schema["const"] else [f"{path}: {value!r}"]
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "number": (int, float),
        "integer": int,
        "boolean": bool,
        "null": type(None),
    }
    wanted = schema.get("type", list(kinds))
    allowed = [wanted] if isinstance(wanted, str) else wanted
    if not any(
        isinstance(value, kinds[kind]) and (kind == "boolean" or not isinstance(value, bool)) for kind in allowed
    ):
        return [f"{path}: {value!r} is not {wanted}"]
    found = []
    if isinstance(value, int | float) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        found.append(f"{path}: {value} out of range")
    if isinstance(value, dict):
        properties, more = schema.get("properties", {}), schema.get("additionalProperties", True)
        found += [f"{path}: lacks {key}" for key in schema.get("required", []) if key not in value]
        for key, each in value.items():
            if key not in properties and more is False:
                found.append(f"{path}: {key} is not described")
            found += faults(properties.get(key, more if isinstance(more, dict) else {}), each, f"{path}.{key}")
    if isinstance(value, list):
        found += [
            fault
            for index, each in enumerate(value)
            for fault in faults(schema.get("items", {}), each, f"{path}[{index}]")
        ]
    return found


@pytest.mark.parametrize("words", CASES.values(), ids=CASES)
def test_the_schema_of_a_bill_holds_for_every_kind_of_answer(capsys: pytest.CaptureFixture[str], words: str) -> None:
    _, bill = printed(capsys, f"count {words}")

    assert faults(OUTPUT_SCHEMAS["bill"](), bill) == []


def test_the_schema_of_a_bubble_holds(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ("--micro-batches 32", "--at-most 5%", "--micro-batches 32 --slot 30ms", "--micro-batches 32 --vpp 2"):
        assert faults(OUTPUT_SCHEMAS["bubble"](), printed(capsys, f"bubble --pp 8 {words}")[1]) == []


def test_the_schema_of_a_validation_holds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from outlay.validate.read import HEADER

    file = tmp_path / "runs.csv"
    row = dict.fromkeys(HEADER, "") | {
        "source": "x",
        "model": "llama-3.1-8b",
        "accelerator": "h100-sxm",
        "n_accel": "8",
    }
    file.write_text(",".join(HEADER) + "\n" + ",".join(row.values()) + "\n")
    _, found = printed(capsys, f"validate {file}")

    assert len(found["rows"]) == 1
    assert faults(OUTPUT_SCHEMAS["validate"](), found) == []


def test_the_schema_of_published_choices_holds(capsys: pytest.CaptureFixture[str]) -> None:
    _, found = printed(capsys, "validate --choices BLOOM 128K")

    assert len(found["choices"]) == 2
    assert faults(OUTPUT_SCHEMAS["choices"](), found) == []


def test_the_check_of_a_schema_can_fail(capsys: pytest.CaptureFixture[str]) -> None:
    _, bill = printed(capsys, ["count", *DEMO])
    schema = OUTPUT_SCHEMAS["bill"]()
    bill["more"] = 1
    bill["memory"]["verdict"] = "perhaps"
    del bill["step"]["mfu"]

    assert len(faults(schema, bill)) == 3


@pytest.mark.parametrize("name", ["job", "layout", "bill", "bubble", "validate", "choices"])
def test_every_schema_is_printed(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(["schema", name]) == 0
    assert json.loads(capsys.readouterr().out)["type"] == "object"


def test_the_schema_of_inputs_has_the_ranges_and_sentences_of_the_fields(capsys: pytest.CaptureFixture[str]) -> None:
    main(["schema", "layout"])
    found = json.loads(capsys.readouterr().out)

    assert found["properties"]["tp"]["minimum"] == 1
    assert found["properties"]["zero"]["maximum"] == 3
    assert set(found["properties"]) == set(Layout.__dataclass_fields__)
    assert all(each["description"] for each in found["properties"].values())
    assert found["additionalProperties"] is False
    assert set(input_schema("job", {})["properties"]) == set(Job.__dataclass_fields__)


# --- numbers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", CASES.values(), ids=CASES)
def test_every_number_is_finite_and_every_share_lies_in_0_to_1(capsys: pytest.CaptureFixture[str], words: str) -> None:
    text, bill = printed(capsys, f"count {words}")
    shares = [bill["step"]["mfu"], bill["step"]["hfu"], bill["bubble"]["share"], bill["binds"]["share"]]

    assert "NaN" not in text and "Infinity" not in text
    assert all(share is None or 0 <= share <= 1 for share in shares)


def test_a_figure_without_meaning_is_null_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    _, table = printed(capsys, "count llama-3.1-70b --on 1,32xh100-sxm --tp 8 --pp 4 --seq 8192 --batch 512")
    row = table["rows"][0]

    assert row["step"]["mfu"] is None
    assert "step.mfu is null: it has no meaning here" in row["assumptions"]


@pytest.mark.parametrize("words", CASES.values(), ids=CASES)
def test_parts_add_up_to_their_totals(capsys: pytest.CaptureFixture[str], words: str) -> None:
    _, bill = printed(capsys, f"count {words}")

    assert math.isclose(
        sum(item["bytes"] for item in bill["memory"]["items"]), bill["memory"]["peak_bytes"], rel_tol=1e-9
    )
    assert math.isclose(sum(item["seconds"] for item in bill["step"]["items"]), bill["step"]["seconds"], rel_tol=1e-9)
    assert all(item["low"] <= item["bytes"] <= item["high"] for item in bill["memory"]["items"])
    assert all((item["band"] is None) == (item["kind"] == "exact") for item in bill["memory"]["items"])


def test_equal_input_gives_the_same_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, ["count", *DEMO])[0] == printed(capsys, ["count", *DEMO])[0]


# --- read back ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", CASES.values(), ids=CASES)
def test_a_bill_that_is_read_back_is_counted_to_the_same_bill(capsys: pytest.CaptureFixture[str], words: str) -> None:
    text, bill = printed(capsys, f"count {words}")
    asked = restore(bill)
    again = count(asked.model, asked.job, asked.cluster, asked.layout, asked.engine)

    whole = replace(again, assumptions=asked.assumptions)
    assert dumps(record(whole, advise(whole))).replace("\n", "") == "".join(text.split("\n"))


ASSUMED = {
    "loud defaults": "llama-3.1-8b --on 8xh100-sxm",
    "types given": "llama-3.1-8b --on 8xh100-sxm --master-dtype fp32 --moment-dtype fp32 --gradient-dtype fp32",
    "bytes given": "llama-3.1-8b --on 8xh100-sxm --bytes 18 --zero 1 --mbs 1 --precision bf16",
    "derived": "llama-3.1-8b --on 8xh100-sxm --bytes derived --optimizer muon",
    "adapters": "llama-3.1-8b --on 8xh100-sxm --adapter qlora --engine hf_trainer",
    "a pipeline of scans": "mamba2-2.7b --on 16xmi300x --pp 2",
}


@pytest.mark.parametrize("words", [*CASES.values(), *ASSUMED.values()], ids=[*CASES, *ASSUMED])
def test_a_bill_that_is_read_back_says_again_what_was_assumed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: str
) -> None:
    text, bill = printed(capsys, f"count {words}")
    file = tmp_path / "bill.json"
    file.write_text(text)
    main(["memory", *words.split()])
    asked = capsys.readouterr().out
    main(["memory", str(file)])

    assert capsys.readouterr().out == asked
    assert printed(capsys, ["count", str(file)])[1]["assumptions"] == bill["assumptions"]


def test_two_bills_compare_as_their_layouts_do(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    layouts, common = ["tp=8 pp=4", "tp=4 pp=8"], "llama-3.1-70b --on 64xh100-sxm --seq 8192 --batch 512"
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for layout, file in zip(layouts, files, strict=True):
        flags = " ".join(f"--{step.replace('=', ' ')}" for step in layout.split())
        file.write_text(printed(capsys, f"count {common} {flags}")[0])

    main(["compare", *layouts, *common.split()])
    asked = capsys.readouterr().out
    main(["compare", *map(str, files)])
    assert capsys.readouterr().out == asked


def test_what_is_given_beside_a_bill_is_no_longer_assumed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text, bill = printed(capsys, f"count {ASSUMED['loud defaults']}")
    file = tmp_path / "bill.json"
    file.write_text(text)
    _, given = printed(capsys, f"count {file} --zero 1 --tp 2")

    assert {"zero 1 (--zero)", "dp shard 8 (--dp-shard)"} <= {*bill["assumptions"]}
    assert "zero 1 (--zero)" not in given["assumptions"] and "dp shard 4 (--dp-shard)" in given["assumptions"]
    assert given["job"]["global_batch"] == bill["job"]["global_batch"]
    assert not any(text.startswith("GLOBAL BATCH") for text in given["assumptions"])


def test_a_record_holds_no_numpy() -> None:
    model, cluster = load_model("mixtral-8x7b"), load_cluster("64xh100-sxm")
    made = record(count(model, Job(4096, 256), cluster, Layout(tp=4, ep=8, pp=2)))
    waiting: list[Any] = [made]
    for value in waiting:
        assert type(value) in (dict, list, str, int, float, bool, type(None)), type(value)
        waiting += list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def test_a_table_is_a_row_of_bills(capsys: pytest.CaptureFixture[str]) -> None:
    _, table = printed(capsys, "count llama-3.1-70b --on 32,64xh100-sxm --tp 8 --pp 4 --seq 8192 --batch 512")
    _, alone = printed(capsys, ["count", *DEMO])

    assert list(table) == ["schema", "version", "rows"]
    assert table["rows"][1] == alone


def test_faults_are_one_object_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["count", "llama-3.1-70b", "--on", "64xh100-smx", "--tp", "0", "--json"])
    out, err = capsys.readouterr()
    found = json.loads(out)

    assert (code, err) == (2, "")
    assert list(found) == ["errors"]
    assert [list(fault) for fault in found["errors"]] == [["code", "what", "rule", "got", "fix"]] * 2


def test_a_broken_rule_is_in_the_full_object(capsys: pytest.CaptureFixture[str]) -> None:
    _, bill = printed(capsys, f"count {CASES['not legal']}")

    assert bill["memory"]["verdict"] is None
    assert {"LAY003", "BAT001"} <= {each["code"] for each in bill["violations"]}
    assert any(each["legal_values"] for each in bill["violations"]) and bill["violations"][0]["nearest"]


@pytest.mark.parametrize("command", ["memory", "traffic"])
def test_one_cost_by_itself_keeps_the_names_of_the_bill(capsys: pytest.CaptureFixture[str], command: str) -> None:
    _, alone = printed(capsys, [command, *DEMO])
    _, bill = printed(capsys, ["count", *DEMO])

    assert alone["schema"] == f"outlay.{command}.1"
    if command == "memory":
        assert alone["memory"] == bill["memory"]
    else:
        assert alone["traffic"]["items"] == bill["traffic"]["items"]
