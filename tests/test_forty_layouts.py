"""The forty questions in every format: legal where they come from, and written, refused by a rule, or lost in words."""

import pytest

from forty_layouts import QUESTIONS, Question, bill_of, run_for
from outlay.formats.known import FORMATS, read
from test_format_round_trip import back, differences


def test_there_are_forty_and_each_has_its_name() -> None:
    assert len(QUESTIONS) == 40 == len({one.name for one in QUESTIONS})


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one.name)
def test_each_is_legal_for_its_engine(question: Question) -> None:
    assert bill_of(question).violations == ()


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_holds_each_or_says_what_is_lost(name: str) -> None:
    form, written = FORMATS[name], 0
    for question in QUESTIONS:
        run = run_for(question, form)
        if run is None:
            continue
        made = form.write(run)
        found = form.read(made.text.encode())
        again = back(run, found, found.engine)
        written += 1
        assert read(made.text.encode()).framework == found.framework, question.name  # it is taken for what it is
        if bill_of(question).engine.name in form.ENGINES:
            assert differences(run, again, made) == [], question.name
        # A model that the format has no word for is lost by name, and then missing in the file.
        gone = any(one.path.startswith("model") for one in made.lost)
        serious = [one for one in found.findings if one.serious and not (gone and one.got.startswith("model"))]
        assert serious == [], question.name
    assert written > 5
