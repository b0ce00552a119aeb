"""Real files with changes, ten thousand times."""

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings

from mutated_configs import check_mutated, mutated_configs

SEEN: Counter[str] = Counter()


@settings(max_examples=10_000, suppress_health_check=list(HealthCheck))
@given(mutated_configs())
def test_ten_thousand_changed_configs_are_models_or_refusals(config: dict[str, Any]) -> None:
    SEEN[check_mutated(config)] += 1


def test_both_answers_were_given_often() -> None:
    assert min(SEEN["read"], SEEN["refused"]) > 1_000
