"""Other planners on the same rows: their figures add up from what they publish, and stand beside exactly those rows."""

from dataclasses import replace

import numpy as np
import pytest

from outlay.validate import OWN, as_json, compare_files
from outlay.validate.page import markdown
from outlay.validate.peers import Peer, beside, peers, uncompared
from outlay.validate.row import Row
from outlay.validate.table import sources
from outlay.validate.tiers import AGAIN

# MooreThreads/SimuMax docs/b200/b200_release_v1.2_summary.md @4dcaae5: real ms, perf ms, real alloc GiB, perf alloc GiB
# of the 23 cases that the table of measured runs has.
SIMUMAX_B200 = (
    (725.5, 698.81, 60.68, 60.51),
    (366.6, 343.59, 45.63, 45.40),
    (603.2, 584.91, 104.30, 103.52),
    (452.2, 452.45, 114.00, 113.08),
    (1387.0, 1309.8, 60.68, 60.51),
    (676.2, 630.64, 45.63, 45.40),
    (1101.7, 1054.5, 104.30, 103.52),
    (771.6, 761.96, 114.00, 113.08),
    (5376.5, 4975.9, 60.68, 60.51),
    (1727.7, 1534.5, 44.70, 44.37),
    (2718.6, 2619.0, 114.00, 113.08),
    (1074.6, 1072.7, 87.08, 86.88),
    (907.3, 860.73, 81.59, 81.31),
    (476.0, 452.92, 52.89, 52.68),
    (258.8, 255.83, 38.57, 38.38),
    (1935.4, 1870.8, 87.08, 86.88),
    (1716.8, 1600.4, 81.59, 81.31),
    (7046.4, 6659.3, 87.08, 86.88),
    (6604.1, 6038.7, 81.59, 81.31),
    (3455.4, 3210.6, 52.89, 52.68),
    (1984.7, 1814.3, 87.03, 86.55),
    (2003.6, 1896.2, 139.22, 139.13),
    (10577.6, 10043.5, 118.13, 116.50),
)

# calculon-ai/calculon @caa4b11, `bin/calculon llm-validation`: Profile and Calc of its table End-to-end
# (arXiv:2205.05198, Table 5), full recompute and selective, as it prints them.
CALCULON = (
    (1.42, 1.40), (1.10, 1.14), (18.13, 18.03), (13.75, 13.64), (49.05, 49.89), (37.83, 34.47), (94.42, 90.08),
    (71.49, 66.04),
)  # fmt: skip


def one(name: str, facts: str, quantity: str = "step_time") -> Peer:
    (found,) = (peer for peer in peers() if (peer.name, peer.facts, peer.quantity) == (name, facts, quantity))
    return found


def row(facts: str = "vTrain", error: float = 0.1, **more: object) -> Row:
    made = Row("f", 2, "s", "m", "a", "bf16", "compared", facts=facts, step_time_error=error, peak_mem_error=-error)
    return replace(made, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("peer", "pairs"),
    [
        (one("SimuMax", "SimuMax B200"), [(real, perf) for real, perf, _, _ in SIMUMAX_B200]),
        (one("SimuMax", "SimuMax B200", "peak_mem"), [(real, perf) for _, _, real, perf in SIMUMAX_B200]),
        (one("Calculon", "Korthikanti et al. 2022"), CALCULON),
    ],
    ids=["SimuMax, times", "SimuMax, memory", "Calculon"],
)
def test_a_planners_errors_add_up_from_what_it_prints(peer: Peer, pairs: list[tuple[float, float]]) -> None:
    errors = np.array([predicted / measured - 1 for measured, predicted in pairs])

    assert peer.rows == len(pairs)
    assert peer.mean == pytest.approx(np.abs(errors).mean(), abs=5e-5)
    assert peer.bias == pytest.approx(errors.mean(), abs=1e-4)


@pytest.mark.parametrize("peer", peers(), ids=lambda peer: f"{peer.name}, {peer.facts}, {peer.mean}")
def test_every_planner_is_on_a_source_that_is_known_and_says_how(peer: Peer) -> None:
    assert peer.facts in {source.name for source in sources()}
    assert peer.kind in ("published", "measured") and peer.release and peer.how and peer.source
    assert peer.bias is None or abs(peer.bias) <= peer.mean


def test_a_planner_stands_beside_all_its_rows_or_not_at_all() -> None:
    rows = [row(error=0.1 if place % 2 else -0.2) for place in range(83)]
    others = [row(facts="MaxText") for _ in range(9)]

    found = beside([*rows, *others])

    assert [each.peer.name for each in found] == ["SimuMax", "Calculon", "Calculon", "llm-analysis", "llm-analysis"]
    assert {round(each.mean, 9) for each in found} == {round((41 * 0.1 + 42 * 0.2) / 83, 9)}
    assert {round(each.bias, 9) for each in found} == {round((41 * 0.1 - 42 * 0.2) / 83, 9)}
    assert beside(rows[:-1]) == () and beside([*rows, row()]) == ()


def test_a_run_that_two_files_print_counts_once() -> None:
    rows = [row() for _ in range(83)]

    assert beside([*rows, row(step_time_unscored=AGAIN, error=9.0)]) == beside(rows)


def test_a_row_that_its_table_contradicts_is_among_the_rows() -> None:
    rows = [row() for _ in range(82)]

    assert beside([*rows, row(step_time_unscored="u jumps")]) and not beside(rows)


def test_a_peak_is_compared_with_a_peak() -> None:
    found = beside([row(facts="SimuMax B200") for _ in range(23)])

    assert [(each.peer.quantity, round(each.bias, 9)) for each in found] == [("step_time", 0.1), ("peak_mem", -0.1)]


def test_the_page_and_the_object_have_calculon_beside_the_eight_rows_of_korthikanti() -> None:
    found = compare_files([OWN])
    page = "\n".join(markdown(found))
    (each,) = as_json(found)["peers"]
    mine = [row.step_time_error or 0.0 for row in found.rows if "2205.05198" in row.source]

    assert each["mean"] == pytest.approx(np.abs(mine).mean()) and len(mine) == 8
    assert each["peer"]["name"] == "Calculon"
    assert "| step time, Korthikanti et al. 2022 | 8 |" in page and "| Calculon caa4b11 | 3.7 % | -2.3 % |" in page
    assert all(f"- {name} {why}"[:60] in page for name, why in uncompared())


def test_a_page_without_the_rows_of_a_planner_says_nothing_of_planners() -> None:
    found = compare_files([OWN])

    assert "planner" not in "\n".join(markdown(replace(found, rows=found.rows[:7])))
