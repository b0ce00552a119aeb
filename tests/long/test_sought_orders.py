"""The list scheduler beside the constraint program on fifty random questions."""

import pytest

from outlay.schedule.synthesis.best import best
from outlay.schedule.synthesis.exact import proved
from outlay.schedule.synthesis.greedy import listed, rules
from sought_cases import questions

pytest.importorskip("ortools")


def test_the_list_scheduler_is_within_a_twentieth_of_the_best_that_is_known() -> None:
    """The constraint program starts from the list scheduler's order and has 20 s for each; most it proves."""
    ratios, ends = [], 0
    for question in questions(50):
        found = best(question, 60.0, prove=False)
        start = min(listed(question, rule) for rule in rules(question))
        exact = proved(question, start[1], 20.0)
        shortest = min(exact.makespan, found.makespan)
        ratios.append(found.makespan / shortest)
        ends += shortest == max(exact.bound, found.bound)

    assert max(ratios) <= 1.05
    assert ends >= 40
