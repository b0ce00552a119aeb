"""Schedules that no engine runs: their closed forms and published figures against their orders, run pass by pass."""

import json
from collections.abc import Callable
from fractions import Fraction

import pytest

from drawn_laws import LAWS, Case, cases, drawn
from outlay.cli.main import main
from outlay.schedule.checks import checked
from outlay.schedule.laws import SCHEDULES
from outlay.schedule.orders import controllable, facts, growing, names, one_f_one_b_v, order
from outlay.schedule.orders.growing import Placed
from outlay.schedule.stated import STATED

ENGINES = {*SCHEDULES, "dualpipe"}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_a_closed_form_and_the_timeline_never_differ(law: Callable[..., Case]) -> None:
    tried = [(case, *law(*case)) for case in cases(law.__name__, whole=False)]

    assert [each for each in tried if each[1] != each[2]] == []
    assert len(tried) >= {"v_of_1f1b": 28, "chimera": 400}.get(law.__name__, 28)


def test_a_wrong_law_would_be_seen() -> None:
    """V-Half's form of an even P, taken for an odd one."""
    wrong = [P for P in range(3, 15) if drawn("v_half", P, 3 * P, (1, 1, 1), 2).makespan != 18 * P + 3 * P - 7]

    assert wrong == [*range(3, 15, 2)]


def test_each_schedule_that_is_only_drawn_says_what_is_known_of_it() -> None:
    assert set(names()) - ENGINES == set(STATED)


@pytest.mark.parametrize("name", [name for name, row in STATED.items() if row.idle])
def test_the_stated_forms_are_the_laws(name: str) -> None:
    """The formulas that are printed, on the numbers of the orders."""
    row, v = STATED[name], 2 if facts(name).chunks == "two" else 1
    tried = 0
    for P in (2, 4, 6, 8):
        for M in (2 * P, 3 * P, 5 * P):
            for f, b, w in ((6, 6, 6), (10, 12, 9), (20, 3, 4)):
                if row.holds(v * f, v * b, v * w, P, M):
                    timeline = drawn(name, P, M, (f, b, w), v)
                    tried += 1
                    idle = row.idle(v * f, v * b, v * w, P, M)  # type: ignore[misc]
                    held = [row.held(r, P, M, 2) for r in range(P)]  # type: ignore[misc]
                    assert timeline.makespan - M * v * (f + b + w) == pytest.approx(idle)
                    assert max(held) == max(timeline.peak_in_flight)
                    assert row.most or held == list(timeline.peak_in_flight)
    assert tried >= 12


# --- what others state ----------------------------------------------------------------------------------------------


def relative(name: str, P: int, M: int, costs: tuple[int, int, int]) -> float:
    """Bubble in units of 1F1B's: equal ranks, two chunks each."""
    timeline = drawn(name, P, M, costs, 2)
    return float(Fraction(timeline.makespan - 2 * M * sum(costs), 2 * (P - 1) * sum(costs)))


@pytest.mark.parametrize(
    ("name", "costs", "share"),
    [
        ("v_half", (10, 12, 9), 0.509),
        ("v_min", (10, 12, 9), 1.392),  # worse than 1F1B
        ("1f1b_v", (10, 12, 9), 0.793),
        ("v_half", (2, 3, 1), 1.071),
        ("v_min", (2, 3, 1), 3.0),
    ],
)
def test_real_proportions_of_f_b_w_leave_more_than_the_published_bubble(
    name: str, costs: tuple[int, int, int], share: float
) -> None:
    assert round(relative(name, 8, 32, costs), 3) == share


@pytest.mark.parametrize(("P", "least", "half", "full"), [(4, 0.611, 0.278, 0.83), (8, 0.643, 0.405, 0.79)])
def test_the_published_shares_of_1f1b_are_limits(P: int, least: float, half: float, full: float) -> None:
    """2/3 for V-Min and 1/2 for V-Half are what they tend to (README of sail-sg/zero-bubble-pipeline-parallelism)."""
    found = [relative(name, P, 3 * P, (1, 1, 1)) for name in ("v_min", "v_half")]

    assert [round(each, 3) for each in found] == [least, half]
    assert relative("1f1b_v", P, 4 * P, (1, 1, 1)) == pytest.approx(full, abs=0.005)
    assert [relative(name, 60, 180, (1, 1, 1)) for name in ("v_min", "v_half")] == pytest.approx(
        [2 / 3, 1 / 2], abs=0.03
    )


def test_the_v_schedules_of_the_readme_hold_a_half_and_a_third() -> None:
    """Activations of 1F1B on the first rank: all of them for ZBV, half for V-Half, a third for V-Min, in the limit."""
    peaks = {name: max(drawn(name, 48, 144, (1, 1, 1), 2).peak_in_flight) for name in ("zbv", "v_half", "v_min")}

    assert peaks == {"zbv": 48, "v_half": 25, "v_min": 17}


def test_chimera_loses_against_1f1b_where_a_backward_pass_is_twice_a_forward_pass() -> None:
    shares = [drawn("chimera", D, N, (1, 1, 1)).bubble_share for D, N in ((4, 4), (4, 16), (8, 32))]

    assert [round(each, 3) for each in shares] == [0.25, 0.172, 0.238]
    assert [round(drawn("1f1b", D, N, (1, 1, 1)).bubble_share, 3) for D, N in ((4, 16), (8, 32))] == [0.158, 0.179]


def test_the_published_form_of_chimera_is_that_of_equal_passes() -> None:
    for D, N in ((4, 4), (4, 16), (8, 32)):
        assert drawn("chimera", D, N, (2, 1, 1)).bubble_share == pytest.approx((D - 2) / (2 * N + D - 2))


@pytest.mark.parametrize(("D", "share"), [(4, 0.667), (8, 0.824)])
def test_gems_idles_as_recalled(D: int, share: float) -> None:
    assert drawn("gems", D, 4000, (1, 1, 1)).bubble_share == pytest.approx(share, abs=5e-4)


@pytest.mark.parametrize(("P", "shares"), [(4, (0.333, 0.213, 0.119)), (8, (0.368, 0.238, 0.135))])
def test_hanayo_idles_as_an_independent_greedy_order_does_and_not_as_published(
    P: int, shares: tuple[float, ...]
) -> None:
    found = [round(drawn("hanayo", P, P, (1, 1, 1), 2 * W).bubble_share, 3) for W in (1, 2, 4)]
    published = [round((2 * P - 2) / (3 * P * W + P - 1), 3) for W in (1, 2, 4)]

    assert tuple(found) == shares
    assert all(abs(one - other) > 5e-4 for one, other in zip(found, published))


# --- orders ---------------------------------------------------------------------------------------------------------


def test_a_long_order_is_the_one_made_pass_by_pass() -> None:
    """Where the middle of a short one is repeated, on every rank, for every kind of P."""
    for P in (1, 2, 3, 4, 5, 6, 7, 12, 21, 32):
        makers: list[tuple[str, Callable[[int], list[Placed]]]] = [
            ("v_half", lambda M, P=P: controllable.ranks(controllable.half_offsets(P), M)),
            ("v_min", lambda M, P=P: controllable.ranks(controllable.least_offsets(P), M)),
            ("1f1b_v", lambda M, P=P: one_f_one_b_v.ranks(P, M)),
        ]
        for name, make in makers:
            M = 2 * P + 14
            rows = growing.grown(make, M, M)
            assert [list(row) for row in order(name, P, M, 2).ranks] == rows, (name, P)


def test_every_short_order_can_run() -> None:
    for name in ("v_half", "v_min", "1f1b_v", "hanayo"):
        for P in (1, 2, 3, 5, 8):
            for M in range(1, 2 * P + 3):
                checked(order(name, P, M, 2).ranks)


def test_an_asynchronous_schedule_says_its_versions_and_how_old_they_are() -> None:
    one, two, flushed = facts("pipedream"), facts("pipedream_2bw"), facts("1f1b")

    assert [one.weights_held(4, r) for r in range(4)] == [4, 3, 2, 1]
    assert [one.staleness(4, r) for r in range(4)] == [3, 2, 1, 0]
    assert [two.weights_held(4, r) for r in range(4)] == [2] * 4
    assert (one.asynchronous(4), two.asynchronous(4), flushed.asynchronous(4)) == (True, True, False)
    assert [facts(name).weights_held(4, 0) for name in ("chimera", "gems", "dualpipe", "hanayo")] == [2, 2, 2, 1]


# --- the command line -----------------------------------------------------------------------------------------------


def answered(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str]:
    code = main(line.split())
    return code, capsys.readouterr().out


def test_a_diagram_says_what_it_does_not_show(capsys: pytest.CaptureFixture[str]) -> None:
    for name, word in (
        ("bpipe", "no rank holds more than 3"),
        ("pipedream", "4 - r versions"),
        ("pipedream_2bw", "2 versions"),
        ("gems", "held twice"),
    ):
        _, out = answered(capsys, f"draw --schedule {name} --pp 4 --micro-batches 8 --json")
        assert any(word in note for note in json.loads(out)["notes"])


def test_a_diagram_and_a_bubble_stand_beside_their_closed_form(capsys: pytest.CaptureFixture[str]) -> None:
    slices = "--schedule seq1f1b --slices 4 --pp 4 --micro-batches 8 --forward 10ms --backward 20ms"
    for line, share in (("draw " + slices, 3 / 35), ("bubble --simulate " + slices, 3 / 35)):
        _, out = answered(capsys, line + " --json")
        record = json.loads(out)
        assert (record["bubble"] if "bubble" in record else record["idle"])["share"] == pytest.approx(share)
    _, out = answered(capsys, "draw --pp 4 --micro-batches 8 --schedule v_min --json")
    assert "the closed form gives 18.6 %" in " ".join(json.loads(out)["notes"])  # 11 / (48 + 11)
    _, out = answered(capsys, "draw --pp 4 --micro-batches 5 --schedule v_min --json")
    assert "not here" in " ".join(json.loads(out)["notes"])
    _, out = answered(capsys, "draw --pp 4 --micro-batches 5 --schedule hanayo --json")
    assert "no closed form" in " ".join(json.loads(out)["notes"])


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("draw --schedule zbv --slices 4 --pp 4 --micro-batches 8", "DRW002"),
        ("draw --schedule hanayo --vpp 3 --pp 4 --micro-batches 8", "SCH003"),
        ("draw --schedule chimera --pp 4 --micro-batches 6", "SCH004"),
        ("draw llama-3.1-8b --on 8xh100-sxm --pp 2 --memory-cap 3", "DRW002"),
        ("draw --schedule bpipe --pp 5 --micro-batches 6", "SCH005"),
        ("draw --schedule seq1f1b --slices 2 --pp 8 --micro-batches 3", "SCH004"),
        ("count llama-3.1-8b --on 32xh100-sxm --pp 4 --schedule v_half", "LAY000"),
        ("plan llama-3.1-8b --on 32xh100-sxm --schedule gems", "PLN003"),
        ("export megatron llama-3.1-8b --on 32xh100-sxm --pp 4 --schedule hanayo", "LAY000"),
    ],
)
def test_what_cannot_be_is_refused_by_name(capsys: pytest.CaptureFixture[str], line: str, code: str) -> None:
    assert main([*line.split(), "--json"]) == 2
    errors = json.loads(capsys.readouterr().out)["errors"]

    assert [each["code"] for each in errors] == [code]
    assert code not in ("LAY000", "PLN003") or "no engine here runs" in errors[0]["rule"]
