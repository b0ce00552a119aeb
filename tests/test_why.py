"""What becomes of a layout that was asked about, and what more of a resource is worth."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import LLAMA_8B, LLAMA_70B
from outlay import Job, count, load_cluster, plan
from outlay.bill import case_of, load
from outlay.cli.main import main
from outlay.search.plan import Plan
from outlay.search.retimed import retime
from outlay.search.split.best import best_split, unfilled
from outlay.search.split.plan import resplit
from outlay.search.why import why
from outlay.search.worth import worths
from outlay.simulated import simulated

JOB = Job(8192, 512)


@pytest.fixture(scope="module")
def found() -> Plan:
    return plan(LLAMA_70B, JOB, load_cluster("64xh100-sxm"), best=3)


ASKED = st.fixed_dictionaries(
    {},
    optional={
        "tp": st.sampled_from([1, 2, 3, 4, 8]), "pp": st.sampled_from([1, 2, 5, 8]), "vpp": st.sampled_from([1, 2, 5]),
        "zero": st.sampled_from([0, 1, 3]), "recompute": st.sampled_from(["none", "full"]),
        "micro_batch": st.sampled_from([1, 2]), "overlap_dp": st.booleans(),
    },
)  # fmt: skip


@given(asked=ASKED)
@settings(max_examples=25, deadline=None)
def test_the_answer_is_the_plan_of_the_space_with_those_values_alone(found: Plan, asked: dict[str, Any]) -> None:
    reason = why(found, "wide", asked)
    narrowed = {name: (value,) for name, value in asked.items()}
    alone = plan(LLAMA_70B, JOB, load_cluster("64xh100-sxm"), best=1, **narrowed)
    assert reason.legal == alone.search.legal
    if not reason.legal:
        assert reason.answer == "illegal"
    elif not alone.best:
        assert reason.answer in ("does_not_fit", "tight")
        assert alone.smallest is not None and reason.ranked == alone.smallest
    else:
        assert reason.ranked == alone.best[0]
        assert reason.seconds_more == alone.best[0].bill.step.seconds - found.best[0].bill.step.seconds >= 0
        assert (reason.answer == "best") == (reason.seconds_more == 0)


def test_what_no_layout_can_have_is_named_by_the_rules_that_it_breaks(found: Plan) -> None:
    reason = why(found, "wide", {"tp": 4, "pp": 7})
    assert reason.answer == "illegal"
    assert reason.ranked is not None
    assert [each.code for each in reason.ranked.bill.violations] == ["LAY001", "LAY009"]


def test_a_module_to_recompute_can_be_asked_about_beside_what_is_illegal(found: Plan) -> None:
    reason = why(found, "wide", {"tp": 3, "recompute": "selective", "recompute_modules": "mlp"})
    assert reason.answer == "illegal"
    assert reason.ranked is not None
    assert reason.ranked.layout.recompute_modules == ("mlp",)


def test_what_the_search_left_out_may_be_faster_and_other_fields_keep_what_was_searched() -> None:
    cluster, job = load_cluster("64xh100-sxm"), Job(8192, 128)
    narrowed = plan(LLAMA_8B, job, cluster, best=1, width="lean", pp=(4,), zero=(1,))
    reason = why(narrowed, "lean", {"pp": 1})
    alone = plan(LLAMA_8B, job, cluster, best=1, width="lean", pp=(1,), zero=(1,))
    assert reason.answer == "faster"
    assert reason.ranked == alone.best[0]
    assert reason.seconds_more == alone.best[0].bill.step.seconds - narrowed.best[0].bill.step.seconds < 0
    inside = why(narrowed, "wide", {"hybrid": True})
    assert inside.ranked is not None
    assert (inside.ranked.layout.zero, inside.ranked.layout.dp_replicate) == (1, 2)
    opened = why(narrowed, "lean", {"zero": 2})
    assert opened.ranked is not None
    assert (opened.ranked.layout.pp, opened.ranked.layout.zero) == (4, 2)


def test_beside_layouts_with_their_best_split_the_asked_one_has_its_own() -> None:
    cluster, job = load_cluster("32xh100-sxm"), Job(8192, 128)
    narrowed = resplit(plan(LLAMA_8B, job, cluster, best=3, width="lean", pp=(4, 8)), 3)
    reason = why(narrowed, "lean", {"tp": 2}, split=True)
    plain = why(narrowed, "lean", {"tp": 2})
    assert reason.ranked is not None and plain.ranked is not None
    best = best_split(LLAMA_8B, job, cluster, unfilled(plain.ranked.bill))
    assert best is not None
    assert reason.ranked.layout == best.bill.layout != plain.ranked.layout
    assert reason.seconds_more == best.bill.step.seconds - narrowed.best[0].bill.step.seconds


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--pp", "4", "--why", "pp=1"), "ms faster than the best"),
        (("--pp", "1", "--tp", "1", "--zero", "0", "--why", "zero=1"), "it fits, "),
    ],
)
def test_a_value_that_was_narrowed_away_is_answered_in_words(
    flags: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["plan", "llama-3.1-8b", "--on", "16xh100-sxm", "--seq", "4096", "--batch", "64", "--space", "lean", *flags])
    printed = capsys.readouterr().out
    answer = printed.partition("WHY NOT")[2].partition("\n\n")[0]
    assert said in answer
    assert "the search left it out" in answer


def test_a_switch_is_named_by_the_flag_that_sets_it(capsys: pytest.CaptureFixture[str]) -> None:
    question = ["plan", "llama-3.1-8b", "--on", "8xh100-sxm", "--seq", "4096", "--batch", "64", "--space", "lean"]
    main([*question, "--why", "sp=false,overlap-dp=true,tp=2"])
    assert "WHY NOT   --no-sp --overlap-dp --tp 2: " in capsys.readouterr().out


def test_what_does_not_fit_says_how_much_is_too_much(found: Plan) -> None:
    reason = why(found, "wide", {"tp": 1, "pp": 1, "zero": 0})
    assert reason.answer == "does_not_fit"
    assert reason.ranked is not None
    memory = reason.ranked.bill.memory
    assert reason.bytes_over == memory.peak_bytes - memory.usable_bytes > 0


def test_a_tenth_more_of_a_rate_is_worth_what_a_card_that_has_it_takes_less(found: Plan) -> None:
    first = found.best[0].bill
    cluster = first.cluster
    faster = replace(cluster, outside=replace(cluster.outside, bandwidth=1.1 * cluster.outside.bandwidth))
    expected = count(first.model, first.job, faster, first.layout, first.engine).step.seconds
    (worth,) = (each for each in worths(found) if each.resource == cluster.outside.name)
    assert worth.seconds == expected < first.step.seconds
    assert worth.gain == pytest.approx(first.step.seconds / expected - 1)


def test_no_rate_is_worth_more_than_its_tenth_and_all_rates_together_are_worth_less_than_one(found: Plan) -> None:
    gains = [each.gain for each in worths(found) if each.times == 1.1]
    assert all(-1e-12 <= gain <= 0.1 for gain in gains)
    assert 0.05 < sum(gains) <= 0.1 + 1e-9


def test_twice_the_cards_give_at_most_twice_the_tokens(found: Plan) -> None:
    (worth,) = (each for each in worths(found) if each.resource == "cards")
    assert 0.5 < worth.gain <= 1


def test_more_memory_is_worth_the_fastest_layout_that_is_tight(found: Plan) -> None:
    (worth,) = (each for each in worths(found) if each.resource == "memory")
    tight = [point for point in found.frontier if not point.fits]
    assert worth.seconds == pytest.approx(min(point.seconds for point in tight))
    assert worth.layout in [point.layout for point in tight]
    assert 1 < worth.times < 1.2


def test_one_card_has_no_link_to_be_faster() -> None:
    alone = plan(LLAMA_8B, Job(2048, 4), load_cluster("1xb200"), best=1)
    assert alone.best
    assert not {"NVLink5", "InfiniBand NDR"} & {each.resource for each in worths(alone)}


def test_where_nothing_fits_nothing_is_worth_anything() -> None:
    assert worths(plan(LLAMA_70B, JOB, load_cluster("8xh100-sxm"), best=1, width="lean")) == ()


def test_a_plan_is_ranked_again_by_what_the_timeline_of_each_layout_takes() -> None:
    found = plan(LLAMA_8B, Job(4096, 16), load_cluster("8xh100-sxm"), best=6, pp=(2, 4))
    again = retime(found)
    seconds = [each.seconds for each in again.ranking]
    assert sorted(each.place for each in again.ranking) == [1, 2, 3, 4, 5, 6]
    assert seconds == sorted(seconds, key=lambda one: one or 0.0)
    for each in again.ranking:
        case, _ = case_of(found.model, found.job, found.cluster, each.ranked.layout, found.engine)
        assert each.seconds == simulated(load(case)).seconds
        assert each.seconds == pytest.approx(each.ranked.bill.step.seconds, rel=0.02)


def test_a_simulated_first_is_proved_where_the_last_of_the_ranking_counts_no_less() -> None:
    found = plan(LLAMA_8B, Job(4096, 16), load_cluster("8xh100-sxm"), best=6, pp=(2, 4))
    last = found.best[-1].bill.step.seconds
    again = retime(found)
    assert again.proved == ((again.ranking[0].seconds or 0.0) <= last)
    stopped = replace(found, search=replace(found.search, proved=False))
    assert not retime(stopped).proved


def test_without_a_pipeline_the_count_is_the_simulation() -> None:
    found = plan(LLAMA_8B, Job(4096, 64), load_cluster("64xh100-sxm"), best=2, pp=(1,))
    for each in retime(found).ranking:
        assert each.seconds == pytest.approx(each.ranked.bill.step.seconds, rel=1e-6)
