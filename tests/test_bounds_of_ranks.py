"""What no order goes below because of a few ranks: never above the shortest order, and all ranks together are it."""

import random
from collections.abc import Iterator

import pytest

from outlay.schedule.synthesis.best import best, problem_of
from outlay.schedule.synthesis.exact import available, bounded, proved
from outlay.schedule.synthesis.greedy import listed, rules
from outlay.schedule.synthesis.problem import Problem, least
from outlay.schedule.times import Extra, Times
from sought_cases import sought

pytestmark = pytest.mark.skipif(not available(), reason="the extra `exact` is not installed")
LONG = 60.0  # seconds; none of these takes more than a few


def small(many: int) -> Iterator[Problem]:
    """Two or three ranks, one to three chunks, a V or a loop, messages, stages and weight gradients that differ."""
    draw = random.Random(11)
    for _ in range(many):
        pp, micro_batches, chunks = draw.randint(2, 3), draw.randint(2, 3), draw.choice((1, 2, 2, 3))
        costs = [draw.choice(([draw.randint(1, 6) for _ in range(pp * chunks)], draw.randint(1, 6))) for _ in "FI"]
        last = draw.choice((Extra(), Extra(2, 1, 3)))
        times = Times(*costs, draw.randint(1, 6), last=last, send=draw.choice((0, 0, 2)))
        place = draw.choice(("loop", "snake")) if chunks == 2 else "loop"
        yield problem_of(times, pp, micro_batches, chunks, place, draw.choice((1, 1.5, 2, 3)))


def shortest(question: Problem) -> int:
    """The makespan that the whole constraint program proves, which knows nothing of these bounds."""
    found = proved(question, min(listed(question, rule) for rule in rules(question))[1], LONG)
    assert found.makespan == found.bound
    return found.makespan


def test_no_group_of_ranks_says_more_than_the_shortest_order_takes_and_all_of_them_say_it() -> None:
    above_the_formulas = 0
    for question in small(24):
        known, most = shortest(question), 2 * shortest(question)
        groups = [(r,) for r in range(question.pp)] + [(r, question.pp - 1) for r in range(question.pp - 1)]
        found = [bounded(question, ranks, LONG, (0, most))[0] for ranks in groups]
        whole, stopped = bounded(question, tuple(range(question.pp)), LONG, (0, most))

        assert max(found) <= known
        assert (whole, stopped) == (known, False)
        above_the_formulas += max(found) > least(question)
    assert above_the_formulas >= 6


def test_one_rank_of_a_v_proves_what_the_formulas_leave_open() -> None:
    """F, I, W of 10, 12, 9 on four ranks, three micro-batches held: the formulas say 552, the shortest takes 561."""
    question = sought(2, 4, 8, (10, 12, 9), 3)

    assert least(question) * question.tick == 552
    assert bounded(question, (3,), LONG, (least(question), 600))[0] * question.tick == 561


def test_a_bound_that_is_known_is_kept_and_none_is_above_the_order_that_is_known() -> None:
    question = sought(2, 3, 4, (2, 3, 1), 2)
    exact = shortest(question)

    assert bounded(question, (0,), LONG, (exact - 1, exact + 5))[0] in (exact - 1, exact)
    assert bounded(question, (2,), LONG, (0, exact))[0] <= exact
    assert proved(question, listed(question, next(rules(question)))[1], LONG, None, exact).bound == exact


def test_the_bound_of_few_ranks_reaches_the_answer() -> None:
    found = best(sought(2, 4, 8, (10, 12, 9), 3), LONG, prove=True)

    assert (found.makespan * found.problem.tick, found.proved) == (561, True)
