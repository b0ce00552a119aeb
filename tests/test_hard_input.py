"""Hard inputs: odd files, huge numbers, repeated flags, texts that move the cursor. Each is answered, or is a fault."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outlay import InputError, Job, Layout, Model, count, load_cluster, load_model
from outlay.cli.main import main
from outlay.cli.output import shown
from outlay.model.catalogue import entry
from outlay.show.terminal import loud_notes
from outlay.show.text import PLAIN
from outlay.validate.read import HEADER

MODEL, ON = "llama-3.1-8b", "--on 8xh100-sxm"
Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ask:
    """One command line, with a text on standard input: exit, standard output, standard error."""

    def asked(words: str | list[str], given: object = None) -> tuple[int, str, str]:
        text = given if isinstance(given, str) else json.dumps(given)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        code = main(words.split() if isinstance(words, str) else words)
        return code, *capsys.readouterr()

    return asked


def faults(ask: Ask, words: str | list[str], given: object = None) -> list[dict[str, str]]:
    more = words.split() if isinstance(words, str) else words
    code, out, _ = ask([*more, "--json"], given)
    assert code == 2
    found: list[dict[str, str]] = json.loads(out)["errors"]
    return found


def codes(ask: Ask, words: str | list[str], given: object = None) -> list[str]:
    return [fault["code"] for fault in faults(ask, words, given)]


def bill(ask: Ask, words: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(ask(f"{words} --json")[1])
    return made


# --- the --config file ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["{a=1}", "[1]", "3", "true"])
@pytest.mark.parametrize("key", ["model", "on", "engine", "family", "part"])
def test_a_key_of_the_file_that_is_no_text_is_named(ask: Ask, tmp_path: Path, key: str, value: str) -> None:
    given = {"model": f'"{MODEL}"', "on": '"8xh100-sxm"'} | {key: value}
    path = tmp_path / "run.toml"
    path.write_text("".join(f"{name} = {text}\n" for name, text in given.items()))
    found = faults(ask, f"count --config {path}")

    assert [(fault["code"], fault["what"]) for fault in found] == [("CFG007", f"{key} is not a text")]


def test_all_keys_that_are_no_texts_are_said_at_once(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("model = 3\non = {a=1}\nengine = [1]\n[layout]\ntp = 0\n")

    assert codes(ask, f"count --config {path}") == ["CFG007", "CFG007", "CFG007", "LAY000"]


def test_a_flag_stands_in_for_a_key_that_is_no_text(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("on = 3\n")

    assert ask(f"count {MODEL} --config {path} {ON} --tp 8 --seq 8192 --batch 8")[0] == 0


def test_an_empty_config_names_no_file(ask: Ask) -> None:
    (found,) = faults(ask, ["count", MODEL, *ON.split(), "--config", ""])

    assert (found["code"], found["got"]) == ("CFG001", "an empty text")


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("time", ["1e308", "1e12", "31536001", "infinity"])
def test_a_duration_beyond_a_year_is_refused(ask: Ask, time: str) -> None:
    assert codes(ask, f"bubble --pp 8 --micro-batches 32 --slot {time}") == ["UNI002"]


def test_a_year_is_still_a_duration(ask: Ask) -> None:
    code, out, _ = ask("bubble --pp 10000000 --micro-batches 10000000 --slot 31536000 --json")

    assert code == 0 and json.loads(out)["bubble"]["seconds"] > 0


def test_a_pipeline_of_a_hundred_thousand_stages_is_refused(ask: Ask) -> None:
    (found,) = faults(ask, f"count {MODEL} {ON} --pp 100000")

    assert found["code"] == "LAY000" and "pp x vpp" in found["rule"]


def test_a_scaling_table_has_64_rows_at_most(ask: Ask) -> None:
    (found,) = faults(ask, f"count {MODEL} --on {','.join(map(str, range(1, 3000)))}xh100-sxm")

    assert (found["code"], found["got"]) == ("HW004", "2,999 clusters")
    assert len(json.loads(ask(f"count {MODEL} --on {','.join(['8'] * 64)}xh100-sxm --json")[1])["rows"]) == 64


# --- a bill that is read back -----------------------------------------------------------------------------------------

BROKEN = [
    ("cluster.ranks", 0),
    ("cluster.ranks", 10**18),
    ("cluster.inside.bandwidth", 0),
    ("cluster.outside.bandwidth", 0.0),
    ("cluster.inside.share", 0),
    ("cluster.inside.share", 1.5),
    ("cluster.inside.size", 0),
    ("cluster.accelerator.memory_bandwidth", 0),
    ("cluster.accelerator.host_bandwidth", 0),
    ("cluster.accelerator.matmul_share", 0),
    ("cluster.accelerator.attention_share", 0),
    ("cluster.accelerator.memory_share", 0),
    ("cluster.accelerator.bf16_flops", 10**400),
    ("model.shape.hidden", 10**400),
    ("model.shape.hidden", 0),
    ("model.shape.blocks.0.sublayers.0.parts.0.kv_heads", 0),
    ("model.shape.blocks.0.sublayers.0.parts.0.value_dim", 0),
]


@pytest.mark.parametrize(("path", "value"), BROKEN, ids=[f"{number} {path}" for number, (path, _) in enumerate(BROKEN)])
def test_a_figure_of_a_bill_that_nothing_can_be_divided_by_is_named(ask: Ask, path: str, value: float) -> None:
    made = bill(ask, f"count {MODEL} {ON}")
    here: Any = made
    *inner, last = path.split(".")
    for key in inner:
        here = here[int(key)] if key.isdigit() else here[key]
    here[last] = value
    (found,) = faults(ask, "count -", made)

    assert (found["code"], found["what"]) == ("CFG005", f"{path} of the bill cannot be used")


def test_a_bill_of_an_accelerator_without_a_matrix_rate_is_refused(ask: Ask) -> None:
    made = bill(ask, f"count {MODEL} {ON}")
    made["cluster"]["accelerator"] |= {"bf16_flops": 0, "fp16_flops": 0}

    assert codes(ask, "count -", made) == ["CFG005"]


def test_a_bill_nested_too_deeply_is_no_bill(ask: Ask) -> None:
    deep = '{"schema": "outlay.bill.1", "model": ' + "[" * 900 + "]" * 900 + "}"

    assert codes(ask, "count -", deep) == ["CFG004"]


def test_a_bill_with_another_engine_takes_its_recipe_and_zero(ask: Ask) -> None:
    made = bill(ask, f"count {MODEL} {ON} --seq 8192")
    code, out, _ = ask("count - --engine fsdp2 --json", made)
    again, plain = json.loads(out), bill(ask, f"count {MODEL} {ON} --seq 8192 --engine fsdp2")

    assert code == 0 and again["violations"] == []
    assert [again[part] for part in ("job", "layout", "memory")] == [
        plain[part] for part in ("job", "layout", "memory")
    ]


def test_a_bill_on_another_accelerator_takes_its_precision(ask: Ask) -> None:
    made = bill(ask, f"count {MODEL} {ON} --seq 8192")

    assert made["job"]["precision"] == "bf16"
    assert json.loads(ask("count - --on 8xv100-sxm2-32 --json", made)[1])["job"]["precision"] == "fp16"


def test_what_a_bill_holds_beside_the_defaults_of_its_time_is_kept(ask: Ask) -> None:
    made = bill(ask, f"count {MODEL} {ON} --seq 8192 --zero 3 --precision fp8")
    again = json.loads(ask("count - --engine megatron-2022 --on 16xh100-sxm --json", made)[1])

    assert (again["layout"]["zero"], again["job"]["precision"], again["layout"]["dp_shard"]) == (3, "fp8", 16)


# --- the command line -------------------------------------------------------------------------------------------------


def test_a_repeated_flag_is_named_beside_the_other_faults(ask: Ask) -> None:
    found = faults(ask, f"count {MODEL} --tp 2 --tp 4 --seq x --frob 1")

    assert [fault["code"] for fault in found] == ["CLI001", "CLI002", "JOB000", "HW003"]
    assert (found[1]["what"], found[1]["got"]) == ("--tp is given several times", "--tp and --tp")


@pytest.mark.parametrize("words", ["--mbs 2 --micro-batch 4 --mbs=1", "--sp --no-sp", "--sp --sp --sp"])
def test_a_flag_repeated_under_another_name_is_one_fault(ask: Ask, words: str) -> None:
    assert codes(ask, f"count {MODEL} {ON} {words}") == ["CLI002"]


@pytest.mark.parametrize(
    "words", ["count -x", f"count -x {MODEL}", f"count --frob {MODEL}", "validate -x", "validate --foo"]
)
def test_an_unknown_flag_is_never_a_model_or_a_file(ask: Ask, words: str) -> None:
    flag = next(word for word in words.split() if word.startswith("-"))
    first = faults(ask, words)[0]

    assert (first["code"], first["got"]) == ("CLI001", f'"{flag}"')
    assert "MOD007" not in codes(ask, words)


def test_the_value_after_an_unknown_flag_is_no_model(ask: Ask) -> None:
    assert codes(ask, f"count -tp 8 {MODEL} {ON}") == ["CLI001"]


def test_a_dash_where_nothing_reads_standard_input_is_said_in_words(ask: Ask) -> None:
    (found,) = faults(ask, "validate -")

    assert (found["code"], found["got"]) == ("CLI005", '"-"')


@pytest.mark.parametrize(
    ("words", "code"), [("--on 8xh100-sxm --split -1,33", "LAY000"), ("--on -8xh100-sxm", "HW002")]
)
def test_a_value_that_begins_with_a_minus_is_read_as_the_value(ask: Ask, words: str, code: str) -> None:
    assert codes(ask, f"count {MODEL} {words}") == [code]


# --- texts from files -------------------------------------------------------------------------------------------------


def test_validate_prints_nothing_that_moves_the_cursor(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(",".join(HEADER) + "\n" + "a\x1b[31mred\x9b,," + "m\x1b[2J" + "," * (len(HEADER) - 3) + "\n")
    _, out, _ = ask(f"validate {path}")

    assert "is not known" in out
    assert all(line.isprintable() for line in out.splitlines())


def test_a_bill_prints_nothing_that_moves_the_cursor(ask: Ask) -> None:
    made = bill(ask, f"count {MODEL} {ON}")
    made["cluster"]["name"] = made["cluster"]["inside"]["name"] = "8x\x1b[2Jh100"
    made["model"]["shape"]["notes"] = ["GLOBAL BATCH \x1b[31m"]
    made["cluster"]["accelerator"]["name"] = "\x9b31m"
    _, out, _ = ask("count -", made)
    made["layout"]["\x1b[31m"] = 1
    err = ask("count -", made)[2]

    assert out and err
    assert all(line.isprintable() for line in (out + err).splitlines())


def test_a_loud_note_is_printed_without_controls() -> None:
    assert loud_notes(["GLOBAL BATCH 1 \x1b[2J"], PLAIN) == ["NOTE      GLOBAL BATCH 1 ?[2J"]


def test_a_line_keeps_our_own_colours_alone() -> None:
    assert shown("\x1b[1;32mFITS\x1b[0m \x1b[2J\x07", colour=True) == "\x1b[1;32mFITS\x1b[0m ?[2J?"
    assert shown("\x1b[1mFITS", colour=False) == "?[1mFITS"


# --- Python -----------------------------------------------------------------------------------------------------------


def refused(job: Job, layout: Layout) -> list[str]:
    with pytest.raises(InputError) as caught:
        count(load_model(MODEL), job, load_cluster("16xh100-sxm"), layout)
    return [fault.what for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"tp": 10**400}, "tp is outside its range"),
        ({"tp": 10**5000}, "tp is outside its range"),
        ({"offload_optimizer": 10**400}, "offload_optimizer is outside its range"),
        ({"split": "abc"}, "split is not a list of counts"),
        ({"split": (16, 16.0)}, "split is not a list of counts"),
        ({"split": (16, -16)}, "split is not a list of counts"),
        ({"split": (16, True)}, "split is not a list of counts"),
        ({"sp": "yes"}, "sp is not a switch"),
        ({"sp": 3}, "sp is not a switch"),
    ],
    ids=["tp", "tp-huge", "offload", "text", "float", "negative", "flag", "words", "number"],
)
def test_a_layout_of_odd_values_is_refused(values: dict[str, Any], what: str) -> None:
    assert refused(Job(8192, 16), Layout(**values)) == [what]


def test_a_job_of_a_huge_number_is_refused() -> None:
    assert refused(Job(sequence_length=10**400), Layout()) == ["sequence_length is outside its range"]


def test_a_split_may_be_a_list() -> None:
    split: Any = [16, 16]
    cluster = load_cluster("16xh100-sxm")

    assert count(load_model(MODEL), Job(8192, 16), cluster, Layout(pp=2, split=split)).violations == ()


def test_a_model_is_read_from_a_path_and_from_a_mapping(tmp_path: Path) -> None:
    config, path = entry(MODEL).config, tmp_path / "config.json"
    path.write_text(json.dumps(config))
    made: list[Model] = [load_model(path), load_model(tmp_path), load_model(config)]

    assert [model.blocks for model in made] == [load_model(MODEL).blocks] * 3


@pytest.mark.parametrize("source", [Path("no/such.json"), Path(MODEL), {}, None, 3, [1]], ids=str)
def test_what_is_no_model_is_a_fault(source: Any) -> None:
    with pytest.raises(InputError):
        load_model(source)


@pytest.mark.parametrize("named", [{"family": 3}, {"part": ["text_config"]}], ids=str)
def test_a_family_or_a_part_that_is_no_text_is_a_fault(named: Any) -> None:
    with pytest.raises(InputError, match="is not a text"):
        load_model(MODEL, **named)


# --- words ------------------------------------------------------------------------------------------------------------


def test_what_differs_from_row_to_row_is_not_assumed_for_all(ask: Ask) -> None:
    out = ask(f"count {MODEL} --on 8,16xh100-sxm --seq 8192")[1]

    assert "dp shard" not in out and "zero 1 (--zero)" in " ".join(out.split())
    assert "mfu: model FLOPs over the dense bf16 rate" in " ".join(out.split())


def test_two_accelerators_in_one_table_have_conventions_of_their_own(ask: Ask) -> None:
    out = " ".join(ask(f"count {MODEL} --on 8xh100-sxm,8xv100-sxm2-32 --seq 8192")[1].split())

    assert "bf16 or fp16" in out and "mfu: of each row by itself" in out


def test_scaling_is_said_of_clusters_that_hold_the_job_alone(ask: Ask) -> None:
    none = ask("count llama-3.1-70b --on 8,16xh100-sxm --seq 8192")[1]
    some = ask("count llama-3.1-70b --on 8,32,64xh100-sxm --tp 8 --seq 4096 --recompute full")[1]

    assert "scaling: no cluster holds the job" in none and "100 %" not in none
    rows = {
        line.split()[0]: line.split()[-2]
        for line in some.splitlines()
        if line.startswith("  ") and "xh100" in line[:14]
    }
    assert rows["8xh100-sxm"] == "-" and "scaling: tokens/s a card over those of 32xh100-sxm" in some


def test_no_change_is_advised_for_a_part_below_two_percent(ask: Ask) -> None:
    out = " ".join(ask("count qwen3-0.6b --on 4xh100-sxm --seq 2048 --batch 4096")[1].split())

    assert "NEXT nothing: arithmetic" in out and "no part that a layout changes reaches 2 % of" in out


def test_a_change_is_advised_for_a_part_of_two_percent_and_more(ask: Ask) -> None:
    out = ask(f"count {MODEL} {ON} --seq 8192 --batch 8 --tp 8 --recompute selective")[1]

    assert "NEXT      " in out and "NEXT      nothing" not in out


def test_an_accelerator_without_bf16_has_no_rate_of_it(ask: Ask) -> None:
    out = ask("hardware v100")[1]

    assert "0.00" not in out and out.splitlines()[2].split()[3] == "-"
    assert "no bf16" in ask("hardware v100-sxm2-32")[1]
