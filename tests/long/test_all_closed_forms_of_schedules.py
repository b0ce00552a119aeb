"""The closed forms of the schedules over their whole ranges."""

import pytest

from schedule_cases import cases
from schedule_laws import LAWS, Law, mismatches


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_a_closed_form_and_the_timeline_never_differ(law: Law) -> None:
    tried, wrong = mismatches(law, cases(law.__name__, whole=True))

    assert wrong == []
    assert tried >= 40
