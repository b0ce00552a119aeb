"""The page of exercises: one exercise of a set, and the grades of what was typed into its boxes."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...drill.exercise import Exercise
from ...drill.grading import grade_in_turn
from ...drill.sets import exercise
from ...errors import Fault, InputError
from ...show import drill_page as page
from ...show.record import plain
from ...show.report.faults import faults_html
from ..drilling import Asked, asked_of
from ..drilling_flags import COUNT
from ..flags import Given
from ..values import Faults
from .words import given_of

Question = Mapping[str, Any]


def drilled(question: Question) -> dict[str, Any]:
    """The parts of the page, and its address where a seed was drawn; or what is wrong with its words, as HTML too."""
    words = {str(word): str(text) for word, text in (question.get("words") or {}).items()}
    answers = [str(text) for text in question.get("answers") or ()]
    controls = {"controls": page.controls_html(words, COUNT)}
    try:
        given = _given(words, answers)
        faults = Faults()
        asked = asked_of(given, faults)
        faults.stop()
    except InputError as error:
        said = [plain(fault) for fault in error.faults]
        return {"errors": said, "html": controls | {"exercise": faults_html(said), "another": "/drill"}}
    if "seed" not in words:
        return {"address": page.address({**_set(asked), **_number(words)})}
    sheet = _sheet(asked, answers)
    again = {word: text for word, text in sheet.words.items() if word != "seed"}
    html = controls | {
        "exercise": page.exercise_html(sheet),
        "numbers": page.numbers_html(sheet),
        "another": page.address(again).replace("&", "&amp;"),
        "command": _command(asked, sheet.number),
    }
    return {"html": html}


def _given(words: Mapping[str, str], answers: Sequence[str]) -> Given:
    """The words as the command takes them. Raises InputError."""
    typed = {"answer": "; ".join(answers)} if any(text.strip() for text in answers) else {}
    given = given_of("drill", {**words, **typed})
    if given.on("solutions"):
        rule = "the page says what is right once an answer is given"
        fix = "leave it out, or outlay drill --solutions"
        raise InputError(Fault("WEB002", "--solutions is not taken here", rule, "--solutions", fix))
    return given


def _set(asked: Asked) -> dict[str, str]:
    """The words of a set, those that are as usual left out."""
    made = {"topic": asked.topic} if asked.topic else {}
    made |= {"level": str(asked.level), "seed": str(asked.seed)}
    return made | ({"count": str(asked.count)} if asked.count != COUNT else {})


def _number(words: Mapping[str, str]) -> dict[str, str]:
    return {"number": words["number"]} if "number" in words else {}


def _sheet(asked: Asked, answers: Sequence[str]) -> page.Sheet:
    number = asked.number or 1
    one = exercise(asked.topic, asked.level, asked.seed, number)
    typed = _typed(answers, one)
    return page.Sheet(_set(asked), asked.count, number, one, typed, grade_in_turn(typed, one))


def _typed(answers: Sequence[str], one: Exercise) -> tuple[str, ...]:
    """What was typed for each part: a box each, or all in one text with ; between, as on the command line."""
    several = len(one.parts) > 1
    texts = answers[0].split(";") if len(answers) == 1 and several else list(answers)
    return tuple(text.strip() for text in [*texts, *([""] * len(one.parts))][: len(one.parts)])


def _command(asked: Asked, number: int) -> str:
    """The same exercise on the command line."""
    words = {word: text for word, text in _set(asked).items() if word not in ("topic", "count")}
    flags = " ".join(f"--{word} {text}" for word, text in {**words, "number": str(number)}.items())
    return f"outlay drill {asked.topic} {flags}".replace("  ", " ")
