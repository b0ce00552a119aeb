"""Comparisons with engines, as far as they need none."""

from math import inf

from outlay.verify.comparison import Comparison
from outlay.verify.comparisons.kinds import ITEMS, items_of
from outlay.verify.comparisons.memory import PLACES, place_of
from test_import import foreign

LIGHT = (
    "comparison", "comparisons.flops", "comparisons.kinds", "comparisons.memory", "comparisons.parameters",
    "comparisons.saved", "comparisons.schedule", "comparisons.segments", "comparisons.traffic", "launched", "layout",
    "limits", "models.configs", "pipelines.run", "pipelines.stages", "scaled", "steps.classes", "steps.profiled",
    "steps.run", "steps.sizing", "subject", "verified", "versions",
)  # fmt: skip


def test_a_comparison_says_its_ratio_and_whether_both_agree() -> None:
    found = Comparison("peak", 102.0, 100.0, "B")

    assert found.ratio == 1.02
    assert found.agrees(0.02) and not found.agrees(0.019) and not found.agrees()
    assert Comparison("gradients", 0.0, 0.0, "B").ratio == 1.0
    assert Comparison("gradients", 1.0, 0.0, "B").ratio == inf


def test_bytes_of_torch_add_up_by_item_and_none_is_lost() -> None:
    snapshot = {kind: 10**place for place, kind in enumerate(ITEMS)}
    found = items_of(snapshot)

    assert sum(found.values()) == sum(snapshot.values())
    assert found["gathered"] == snapshot["Unsharded Param"] + snapshot["All Gather"]
    assert found["buckets"] == snapshot["Unsharded Grad"] + snapshot["Reduce Scatter"]


def test_the_parts_of_a_moment_tell_its_place() -> None:
    moments = [{"logits": 1.0}, {"recomputed": 0.0, "behind": 1.0}, {"ends": 1.0}, {"weights": 1.0}]

    assert tuple(place_of(parts) for parts in moments) == PLACES


def test_a_comparison_loads_its_engine_only_when_it_runs() -> None:
    assert foreign("import " + ", ".join(f"outlay.verify.{name}" for name in LIGHT)) == set()
