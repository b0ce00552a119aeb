"""Exercises: every answer by another rule, answers of every kind read and graded, sets that a class can share."""

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay.cli.main import main
from outlay.drill.exercise import Exercise, Part, Slip
from outlay.drill.grading import NEAR, grade
from outlay.drill.sets import AT, TOPICS, exercise, exercises
from outlay.show.drill import shown
from outlay.show.schema import OUTPUT_SCHEMAS
from test_json import faults

Given = dict[str, Fraction]


# --- the same answers by counting ------------------------------------------------------------------------------------


def ends(pp: int) -> Iterator[list[int]]:
    """When each stage is done with a micro-batch, for one after the other: it waits for the stage before and itself."""
    free = [0] * pp
    while True:
        done = 0
        for stage in range(pp):
            done = free[stage] = max(done, free[stage]) + 1
        yield list(free)


def slots(pp: int, many: int) -> int:
    return next(islice(ends(pp), many - 1, None))[-1]


def idle(pp: int, many: int) -> Fraction:
    return Fraction(slots(pp, many) - many, slots(pp, many))


def needed(at: Given) -> Fraction:
    for many, done in enumerate(ends(int(at["pp"])), 1):
        if Fraction(done[-1] - many, done[-1]) <= at["share"]:
            return Fraction(many)
    raise AssertionError


def state_of(at: Given) -> Fraction:
    return at["parameters"] * (2 + 2 + 4 + 4 + 4)


def tape_of(at: Given) -> Fraction:
    values = 1 + 3 + 1 + 1 + 4  # input, projections, attention output, d and 4d of the feed-forward part
    return sum((at["tokens"] * values * at["hidden"] * 2 for _ in range(int(at["layers"]))), Fraction(0))


def least_stored(at: Given) -> tuple[int, Fraction]:
    layers = int(at["layers"])
    return min(((g, g + Fraction(layers, g)) for g in range(1, layers + 1)), key=lambda each: each[1])


def kept_of(at: Given) -> Fraction:
    return at["parameters"] * 16 - (1 - at["trained"]) * at["parameters"] * 14


def memory_of(at: Given, again: bool) -> Fraction:
    segments = Fraction(float(at["layers"]) ** 0.5)
    tape = tape_of(at) / at["layers"] * (segments + at["layers"] / segments) if again else tape_of(at)
    return state_of(at) / at["ranks"] + tape


def binds(at: Given, again: bool) -> str:
    whole, held = memory_of(at, again), state_of(at) / at["ranks"]
    return "nothing" if whole <= at["card"] else "state" if 2 * held >= whole else "activations"


def stairs(at: Given) -> tuple[str, ...]:
    pp, many = int(at["pp"]), int(at["micro_batches"])
    rows = [["."] * slots(pp, many) for _ in range(pp)]
    for batch, done in enumerate(islice(ends(pp), many), 1):
        for rank in range(pp):
            rows[rank][done[rank] - 1] = str(batch)
    return tuple(map("".join, rows))


RULES: dict[str, Callable[[Given], object]] = {
    "idle share": lambda at: idle(int(at["pp"]), int(at["micro_batches"])),
    "idle time of a rank": lambda at: (
        at["slot"] * (slots(int(at["pp"]), int(at["micro_batches"])) - at["micro_batches"])
    ),
    "least number of micro-batches": needed,
    "slots of the step then": lambda at: Fraction(slots(int(at["pp"]), int(needed(at)))),
    "slots of the step": lambda at: Fraction(slots(int(at["pp"]), int(at["micro_batches"]))),
    "idle share of one stage": lambda at: idle(1, 9),
    "idle share with one stage": lambda at: idle(1, 9),
    "idle share with one micro-batch": lambda at: idle(int(at["pp"]), 1),
    "the share that it tends to": lambda at: Fraction(0),
    "the staircase": stairs,
    "state in all": state_of,
    "state of one rank": lambda at: state_of(at) / at["ranks"],
    "resident state": kept_of,
    "times less than with all trained": lambda at: at["parameters"] * 16 / kept_of(at),
    "activations": tape_of,
    "state and activations": lambda at: state_of(at) + tape_of(at),
    "the best g": lambda at: Fraction(least_stored(at)[0]),
    "layers stored then": lambda at: least_stored(at)[1],
    "times less": lambda at: at["layers"] / least_stored(at)[1],
    "memory of one rank": lambda at: memory_of(at, again=False),
    "what does not fit": lambda at: binds(at, again=False),
    "memory of one rank then": lambda at: memory_of(at, again=True),
    "what does not fit then": lambda at: binds(at, again=True),
    "bytes a rank sends": lambda at: at["parameters"] * 2,
    "time of the exchange": lambda at: at["parameters"] * 2 / at["bandwidth"],
    "its share of the step": lambda at: 1 - at["compute"] / (at["compute"] + at["parameters"] * 2 / at["bandwidth"]),
}
SETS = [(topic, level) for level, topics in AT.items() for topic in topics]


@pytest.mark.parametrize(("topic", "level"), SETS)
def test_a_thousand_answers_are_those_of_another_rule(topic: str, level: int) -> None:
    found = exercises(topic, level, seed=level, count=1_000 // len(SETS) + 2)
    for one in found:
        for part in one.parts:
            right = RULES[part.ask](dict(one.given))
            if isinstance(right, Fraction) and isinstance(part.answer, Fraction):
                assert abs(right - part.answer) <= abs(right) * Fraction(1, 10**12), (one.text, part.ask)
            else:
                assert part.answer == right, (one.text, part.ask)


def every(level: int = 0) -> list[tuple[Exercise, Part]]:
    found = [one for topic, at in SETS if level in (0, at) for one in exercises(topic, at, 11, 20)]
    return [(one, part) for one in found for part in one.parts]


def test_the_answer_as_it_is_shown_is_right() -> None:
    for one, part in every():
        first = shown(part).partition(" (")[0].partition(" = ")[0]
        assert grade(first, part).right, (one.text, part.ask, first)


def test_a_known_mistake_is_wrong_and_is_named() -> None:
    slips = [(part, slip) for _, part in every() for slip in part.slips]
    units = {"bytes": "B", "seconds": "s"}
    for part, slip in slips:
        of = slip.answer
        if part.unit == "share" and of > 1:
            continue  # not a share: sent back
        found = grade(f"{of.numerator}/{of.denominator} {units.get(part.unit, '')}", part)
        assert not found.right and found.said in {each.said for each in part.slips}, (part, slip)
    assert len(slips) > 200


@given(st.sampled_from(every()), st.floats(0.011, 0.9), st.booleans())
def test_what_is_off_by_more_than_a_percent_is_wrong(at: tuple[Exercise, Part], off: float, more: bool) -> None:
    part = at[1]
    if not isinstance(part.answer, Fraction) or not part.answer:
        return
    wrong = part.answer * Fraction(1 + off if more else 1 - off)
    unit = {"bytes": "B", "seconds": "s", "share": "%"}.get(part.unit, "")
    text = f"{float(wrong * 100 if part.unit == 'share' else wrong):.12g} {unit}"

    assert not grade(text, part).right


@given(st.text(max_size=40) | st.text("0123456789.,/%eE+- _GKMiBbsmx;", max_size=30), st.sampled_from(every()))
def test_no_answer_of_any_kind_breaks_the_grader(text: str, at: tuple[Exercise, Part]) -> None:
    found = grade(text, at[1])

    assert found.readable or (not found.right and at[1].wanted in found.said)


SHARE = Part("idle share", "share", Fraction(7, 39), ())
SIZE = Part("state", "bytes", Fraction(12_500_000_000), (), (Slip(Fraction(25 * 10**9), "twice"),))
TIME = Part("time", "seconds", Fraction(28, 100), ())
WHOLE = Part("micro-batches", "whole", Fraction(1_133), ())


@pytest.mark.parametrize(
    ("part", "typed"),
    [
        *((SHARE, text) for text in ("17.9 %", "7/39", "0.179", "17,9%", "14 / 78", ".1795", "= 17.95 percent")),
        *((SHARE, text) for text in ("７／３９", "１７．９％", "7\u204439")),
        *((SIZE, text) for text in ("12.5 GB", "11.64 GiB", "12500 MB", "12,500 MB", "12,5 gb", "1.25e10 B")),
        *((SIZE, text) for text in ("12 500 MB", "12_500MB", "0.0125 TB", "12.5 gbytes", "25/2 GB")),
        *((TIME, text) for text in ("0.28 s", "280 ms", "0,28 seconds", "280000 us", "28/100 s")),
        *((WHOLE, text) for text in ("1133", "1,133", "1 133", "1133.0")),
    ],
)  # fmt: skip
def test_the_right_answer_is_right_however_it_is_written(part: Part, typed: str) -> None:
    assert grade(typed, part).right


@pytest.mark.parametrize(
    ("part", "typed"),
    [(SHARE, "7/32"), (SHARE, "-17.9 %"), (SHARE, "0.2"), (SIZE, "12.5 GiB"), (TIME, "28 ms"), (WHOLE, "1132"),
     (WHOLE, "1133.5"), (SHARE, "17.9e2 %"), (SHARE, "100 %")],
)  # fmt: skip
def test_a_wrong_answer_is_wrong(part: Part, typed: str) -> None:
    found = grade(typed, part)
    assert found.readable and not found.right


@pytest.mark.parametrize(
    ("part", "typed", "said"),
    [
        (SHARE, "abc", "it is not a number"), (SHARE, "", "it is not a number"), (SHARE, "7/0", "divided by 0"),
        (SHARE, "17.9", "with a percent sign it would be read"), (SHARE, "17.9 GB", "'GB' is not a unit"),
        (SIZE, "12.5", "it has no unit"), (SIZE, "12.5 Gb", "bits"), (SIZE, "100 Gbit", "bits"),
        (SIZE, "12.5 s", "'s' is not a unit"), (TIME, "0.28", "it has no unit"), (SHARE, "1,02,3", "commas"),
        (SHARE, "nan", "not a number"), (SHARE, "inf", "not a number"), (SHARE, "1e999 %", "'e999 %' is not a unit"),
        (SHARE, "9" * 300, "it is not a number"), (SHARE, "\x1b[31m7/39", "it is not a number"),
        (WHOLE, "10\u00b2", "raised digits"), (SHARE, "1\u00bd", "fractions of one letter"),
        (WHOLE, "0x10", "'x10' is not a unit"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_sent_back_with_what_is_wanted(part: Part, typed: str, said: str) -> None:
    found = grade(typed, part)
    assert not found.readable and said in found.said and part.wanted in found.said


def test_units_taken_for_each_other_and_lost_zeros_are_named() -> None:
    assert "GiB" in grade("12.5 GiB", SIZE).said
    assert grade("1.25 GB", SIZE).said == "the digits are right, and the size is 10 times too small"
    assert grade("25 GB", SIZE).said == "twice"


def test_half_a_percent_off_is_right_and_a_little_more_is_not() -> None:
    assert grade(str(float(SHARE.answer * (1 + NEAR * Fraction(99, 100)))), SHARE).right  # type: ignore[operator]
    assert not grade(str(float(SHARE.answer * (1 + NEAR * Fraction(101, 100)))), SHARE).right  # type: ignore[operator]


def test_a_drawn_staircase_is_graded_rank_by_rank() -> None:
    one = exercise("staircase", 3, 7, 1)
    part = one.parts[0]
    rows = list(part.answer)  # type: ignore[arg-type]

    assert grade(" / ".join(rows), part).right
    assert grade("/".join(row.rstrip(".") for row in rows), part).right
    assert grade("/".join(rows).replace(".", "_"), part).right
    assert grade("\r\n".join(rows), part).right and grade("\n".join(rows) + "\n", part).right
    assert grade("/".join([*rows[:2], rows[1], *rows[3:]]), part).said == "rank 2 is wrong: it starts 1 slot too early"
    assert "in order" in grade("/".join([rows[0][::-1], *rows[1:]]), part).said
    assert "rows" in grade("/".join(rows[1:]), part).said
    assert not grade("12a/.12", part).readable


# --- sets and the command --------------------------------------------------------------------------------------------


def test_equal_seeds_give_equal_sets_and_others_do_not() -> None:
    assert exercises("", 2, 7, 20) == exercises("", 2, 7, 20)
    assert exercises("", 2, 7, 20) != exercises("", 2, 8, 20)
    assert exercises("", 2, 7, 20)[4] == exercise("", 2, 7, 5)
    assert {one.topic for one in exercises("", 2, 7, len(TOPICS))} == set(TOPICS)


def test_the_object_holds_its_schema_and_no_answer_unless_asked(capsys: pytest.CaptureFixture[str]) -> None:
    schema = OUTPUT_SCHEMAS["drill"]()
    assert main(["drill", "--seed", "7", "--level", "3", "--json"]) == 0
    asked = json.loads(capsys.readouterr().out)
    assert main(["drill", "--seed", "7", "--level", "3", "--json", "--solutions"]) == 0
    solved = json.loads(capsys.readouterr().out)

    assert faults(schema, asked) == faults(schema, solved) == []
    assert "answer" not in json.dumps(asked)
    assert all(part["answer"] is not None and part["why"] for one in solved["exercises"] for part in one["parts"])


def test_an_answer_is_graded_alone(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["drill", "bubble", "--level", "2", "--seed", "7", "--number", "3"]
    one = exercise("bubble", 2, 7, 3)
    right = "; ".join(shown(part).partition(" =")[0] for part in one.parts)

    assert main([*words, "--answer", right]) == 0
    assert "RIGHT" in capsys.readouterr().out
    assert main([*words, "--answer", "1 %; 1 ms"]) == 1
    assert capsys.readouterr().out.count("WRONG") == 2
    assert main([*words, "--answer", "1 %"]) == 2
    assert "DRL003" in capsys.readouterr().err


def test_a_set_is_asked_in_turn_and_the_end_of_the_input_ends_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from io import StringIO

    one, two = exercises("bubble", 1, 7, 2)
    monkeypatch.setattr("sys.stdin", StringIO(f"what?\n{shown(one.parts[0]).partition(' =')[0]}\n"))
    assert main(["drill", "bubble", "--seed", "7", "--count", "2"]) == 1
    said = capsys.readouterr().out
    assert "AGAIN" in said and "RIGHT" in said and "SCORE     1 of 1" in said and two.text[:30] in said

    answers = "\n".join(shown(each.parts[0]).partition(" =")[0] for each in (one, two))
    monkeypatch.setattr("sys.stdin", StringIO(answers + "\n"))
    assert main(["drill", "bubble", "--seed", "7", "--count", "2"]) == 0
    assert "SCORE     2 of 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--seed", "seven"], "DRL002"), (["--seed", "-1"], "DRL002"), (["--seed", "9" * 20], "DRL002"),
        (["--level", "4"], "DRL001"), (["binds"], "DRL001"), (["bubbel"], "DRL001"), (["--count", "0"], "UNI003"),
        (["--answer", "7/39"], "DRL002"),
    ],
)  # fmt: skip
def test_a_set_that_cannot_be_made_is_said(capsys: pytest.CaptureFixture[str], words: list[str], code: str) -> None:
    assert main(["drill", *words]) == 2
    assert code in capsys.readouterr().err
