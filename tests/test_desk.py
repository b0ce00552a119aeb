"""The desk: whatever words a question has, its answer is a record or faults, and never anything else."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlay.cli.commands import COMMANDS
from outlay.cli.desk.answers import answer
from outlay.cli.desk.blame import errors_of
from outlay.cli.desk.described import described
from outlay.cli.desk.words import FILES, given_of
from outlay.cli.flags import FACE
from outlay.errors import Fault, InputError

ASKED = ("count", "legal", "advice", "ranks", "draw", "explain", "export", "bubble", "check")
USUAL: dict[str, Any] = {"model": "llama-3.1-8b", "on": "8xh100-sxm", "seq": "4096", "batch": "16"}
TRIED = ("0", "1", "2", "3", "4", "8", "-1", "1.5", "", " ", "x", "true", "1e400", "9" * 40, "full", "best", "64,64",
         "é", "\x00", "\ud800", "none", "5%", "1..8", "10ms", "megatron", "memory", "step", "llama-3.1-8b", "../x",
         "<b>")  # fmt: skip
WORDS = sorted({name[2:] for one in COMMANDS for flag in one.flags() for name in flag.forms if name.startswith("--")})


@settings(max_examples=300)
@given(
    command=st.sampled_from(ASKED),
    words=st.dictionaries(
        st.sampled_from(WORDS), st.sampled_from(TRIED) | st.booleans() | st.text(max_size=8), max_size=3
    ),
)
def test_any_words_are_answered_or_are_faults(command: str, words: dict[str, Any]) -> None:
    question: dict[str, Any] = {"words": USUAL | words}
    if command == "check":
        question["file"] = {"name": "t.sh", "text": "pretrain_gpt.py --tensor-model-parallel-size 2 --bf16"}
    try:
        said: Any = answer(command, question)
    except InputError as error:
        said = errors_of(error, question["words"])
        assert all(set(one) <= {"code", "what", "rule", "got", "fix", "flag"} for one in said["errors"])

    json.dumps(said, allow_nan=False)


def test_every_flag_of_a_question_is_a_word_or_is_refused_by_name() -> None:
    for command in COMMANDS:
        for flag in command.flags():
            word = flag.names[0][2:]
            value: Any = True if flag.switch else "8xh100-sxm" if flag.name == "on" else "llama-3.1-8b:teacher"
            if flag.name in FILES or flag in FACE:
                with pytest.raises(InputError) as raised:
                    given_of(command.name, {word: value})
                assert [fault.code for fault in raised.value.faults] == ["WEB002"], (command.name, word)
            else:
                assert given_of(command.name, {word: value}).values[flag.name] == value


@pytest.mark.parametrize(
    ("word", "name"), [("seq", "sequence_length"), ("sequence-length", "sequence_length"), ("mbs", "micro_batch")]
)
def test_a_word_has_the_names_of_its_flag(word: str, name: str) -> None:
    assert given_of("count", {word: "7"}).values[name] == "7"


def test_a_switch_is_set_taken_back_and_left_out() -> None:
    assert given_of("count", {"overlap-tp": True}).values["overlap_tp"] is True
    assert given_of("count", {"no-sp": True}).values["sp"] is False
    assert given_of("count", {"sp": "false"}).values["sp"] is False
    assert "advise" not in given_of("count", {"advise": False}).values


def test_a_word_given_in_two_spellings_is_a_fault() -> None:
    with pytest.raises(InputError) as raised:
        given_of("count", {"seq": "1", "sequence-length": "2"})
    assert [fault.code for fault in raised.value.faults] == ["CLI002"]


@pytest.mark.parametrize(
    ("fault", "words", "flag"),
    [
        (Fault("JOB000", "--seq cannot be used", "", "", ""), {"sequence-length": "x"}, "sequence-length"),
        (Fault("HW003", "no hardware is given", "", "", "--on 64xh100-sxm"), {}, "on"),
        (Fault("MOD007", "no model is called x", "", "", "y"), {"model": "x"}, "model"),
        (Fault("XYZ001", "something", "", "", "else"), {}, None),
    ],
)
def test_a_fault_names_the_word_that_it_is_about(fault: Fault, words: dict[str, str], flag: str | None) -> None:
    assert errors_of(InputError(fault), words)["errors"][0].get("flag") == flag


def test_the_description_names_no_word_that_is_refused() -> None:
    for command, words in described({}).items():
        refused = {name.replace("_", "-") for name in FILES} | {"json", "plain", "debug"}
        assert not refused & set(words), command
        assert "on" in words or command in ("bubble", "drill")
