"""The closed forms of the schedules over their whole ranges."""

from collections.abc import Callable

import pytest

import drawn_laws
from schedule_cases import cases
from schedule_laws import LAWS, Law, mismatches


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_a_closed_form_and_the_timeline_never_differ(law: Law) -> None:
    tried, wrong = mismatches(law, cases(law.__name__, whole=True))

    assert wrong == []
    assert tried >= 40


@pytest.mark.parametrize("law", drawn_laws.LAWS, ids=lambda law: law.__name__)
def test_schedules_that_no_engine_runs_do_not_differ_from_theirs(law: Callable[..., drawn_laws.Case]) -> None:
    tried = [(case, *law(*case)) for case in drawn_laws.cases(law.__name__, whole=True)]

    assert [each for each in tried if each[1] != each[2]] == []
