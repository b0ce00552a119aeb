"""Every fault that words can make names the word that caused it: one word of a good question is changed, and blamed."""

from typing import Any

import pytest

from outlay.cli.desk.answers import answer
from outlay.cli.desk.blame import blamed, broken_by, errors_of, word_of
from outlay.cli.desk.words import FILES, command_of
from outlay.cli.flags import FACE
from outlay.engines.tables import engine_names
from outlay.errors import Fault, InputError
from outlay.layout.rules import rules_of

COUNTED = {"model": "llama-3.1-8b", "on": "8xh100-sxm", "seq": "4096", "batch": "16"}
GOOD: dict[str, dict[str, Any]] = {
    "count": COUNTED,
    "plan": COUNTED | {"space": "lean", "best": "1", "tp": "1"},
    "draw": COUNTED | {"pp": "4"},
    "explain": COUNTED | {"quantity": "memory"},
    "export": COUNTED | {"framework": "megatron"},
    "bubble": {"pp": "4", "micro-batches": "8"},
}
BAD = ("0", "7", "x", "1e400", "64,64", "../x", "fp8")
BOTH = {("BAT001", "batch"), ("LAY023", "batch")}  # a batch that is too small for degrees: either can be changed
COMMON = {"name": "t.sh", "text": "pretrain_gpt.py --tensor-model-parallel-size 2 --bf16"}


def faults(command: str, words: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """What stands against a question: faults of its words, or rules that its layout breaks."""
    try:
        record = blamed(answer(command, {"words": words, **more}), words)
    except InputError as error:
        found: list[dict[str, Any]] = errors_of(error, words)["errors"]
        return found
    return list(record.get("violations", []))


def own_words(command: str) -> list[str]:
    """The words of a command that may be asked over HTTP."""
    flags = [flag.names[0][2:] for flag in command_of(command).flags() if flag.name not in FILES and flag not in FACE]
    return [*(one.name for one in command_of(command).positionals), *flags]


@pytest.mark.parametrize("command", [name for name in GOOD if name != "plan"])
def test_the_one_word_that_was_changed_is_blamed(command: str) -> None:
    good = GOOD[command]
    assert faults(command, good) == []
    common = set(own_words("count")) if command != "count" else set()
    wrong = [
        (word, value, fault["code"], fault.get("flag"))
        for word in own_words(command)
        if word not in common
        for value in BAD
        for fault in faults(command, good | {word: value})
        if fault.get("flag") != word and (fault["code"], fault.get("flag")) not in BOTH
    ]
    assert wrong == []


def test_the_one_word_of_a_plan_that_was_changed_is_blamed() -> None:
    good = GOOD["plan"]
    tried = [(word, value) for word in own_words("plan") for value in ("x", "1e400", "9" * 30)]
    wrong = [
        (word, value, fault["code"], fault.get("flag"))
        for word, value in tried
        if word not in ("best", "space", "tp")
        for fault in faults("plan", good | {word: value})
        if fault.get("flag") != word
    ]
    assert wrong == []


QUESTIONS: list[tuple[str, dict[str, Any], str, str]] = [
    ("count", {"tp": "8", "pp": "3", "on": "64xh100-sxm"}, "LAY001", "pp"),
    ("count", {"pp": "3", "on": "24xh100-sxm"}, "LAY009", "pp"),
    ("count", {"pp": "4", "split": "8,8,8,9"}, "LAY011", "split"),
    ("count", {"pp": "4", "split": "8,8,8,8", "engine": "deepspeed"}, "LAY035", "split"),
    ("count", {"pp": "2", "zero": "3", "engine": "deepspeed"}, "LAY031", "zero"),
    ("count", {"pp": "2", "schedule": "zbv", "vpp": "1"}, "LAY012", "vpp"),
    ("count", {"batch": "3"}, "BAT001", "batch"),
    ("count", {"recompute": "full", "recompute-layers": "99"}, "LAY019", "recompute-layers"),
    ("count", {"recompute-modules": "moe", "recompute": "selective"}, "RCP002", "recompute-modules"),
    ("count", {"model": "mixtral-8x7b", "ep": "3"}, "LAY016", "ep"),
    ("count", {"rampup": "3,5,100"}, "BAT002", "rampup"),
    ("count", {"precision": "mxfp8"}, "JOB002", "precision"),
    ("count", {"model": "no-such-model"}, "MOD007", "model"),
    ("count", {"on": "8xnothing"}, "HW001", "on"),
    ("count", {"engine": "x"}, "ENG001", "engine"),
    ("count", {"nothing": "1"}, "CLI001", "nothing"),
    ("count", {"config": "x.toml"}, "WEB002", "config"),
    ("explain", {"quantity": "nothing"}, "EXP001", "quantity"),
    ("export", {"framework": "nothing"}, "FMT001", "framework"),
    ("bubble", {"schedule": "nothing"}, "CFG003", "schedule"),
    ("draw", {"micro-batches": "8"}, "DRW002", "micro-batches"),
    ("plan", {"why": "tp=x"}, "PLN009", "why"),
    ("plan", {"tp": "3"}, "LAY001", "tp"),
    ("plan", {"pp": "64"}, "LAY001", "pp"),
    ("plan", {"split": "8,8"}, "PLN003", "split"),
    ("plan", {"objective": "money"}, "PLN007", "objective"),
    ("plan", {"headroom": "200%"}, "PLN003", "headroom"),
]


@pytest.mark.parametrize(
    ("command", "words", "code", "word"), QUESTIONS, ids=[f"{row[2]} {row[3]}" for row in QUESTIONS]
)
def test_a_fault_of_several_words_blames_the_one_that_is_wrong(
    command: str, words: dict[str, Any], code: str, word: str
) -> None:
    found = {fault["code"]: fault.get("flag") for fault in faults(command, GOOD[command] | words)}
    assert found.get(code) == word


@pytest.mark.parametrize("engine", engine_names())
def test_every_rule_of_a_layout_has_a_word_and_it_is_the_one_that_was_given(engine: str) -> None:
    words = set(own_words("count")) | {"dp-shard"}
    for rule in rules_of(engine):
        violation = {"code": rule.code, "what": rule.what, "rule": rule.rule, "fix": "", "nearest": ()}
        word = broken_by(violation, {})
        assert word in words, rule.code
        assert broken_by(violation, {str(word): "7", "on": "8xh100-sxm"}) == word


def test_a_word_beside_a_file_of_a_run_is_blamed_too() -> None:
    found = {fault["what"]: fault.get("flag") for fault in faults("check", {"on": "x"}, file=COMMON)}
    assert found == {"MODEL is missing": "model", "--seq is missing": "seq", "--on names no hardware": "on"}


def test_a_model_or_a_cluster_that_is_missing_is_blamed_by_its_name() -> None:
    found = [(fault["code"], fault.get("flag")) for fault in faults("count", {"seq": "4096"})]
    assert ("CLI004", "model") in found
    assert {flag for _, flag in found} == {"model", "on"}


def test_a_broken_rule_keeps_all_that_the_command_prints_of_it() -> None:
    words = COUNTED | {"tp": "7"}
    plain, told = answer("count", {"words": words})["violations"], faults("count", words)
    assert [{name: each[name] for name in each if name != "flag"} for each in told] == plain


def test_a_broken_rule_has_its_word_wherever_it_stands_in_an_answer() -> None:
    words = {"words": COUNTED | {"tp": "7"}}
    first = blamed(answer("first", words), words["words"])["record"]["violations"]
    table = {"words": words["words"] | {"on": "8,16xh100-sxm"}}
    rows = blamed(answer("count", table), table["words"])["rows"]
    assert {each["flag"] for each in first} == {"tp"}
    assert [{each["flag"] for each in row["violations"]} for row in rows] == [{"tp"}, {"tp"}]


def test_what_is_about_no_word_says_none() -> None:
    assert word_of(Fault("XYZ001", "something", "", "", "else"), {"tp": "2"}) is None
    assert blamed({"schema": "outlay.bubble.1"}, {}) == {"schema": "outlay.bubble.1"}
