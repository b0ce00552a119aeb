"""Failures: the interval between checkpoints against Daly's figures, and the time against a closed form and a game."""

import json
import math
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from outlay import Bill, InputError, Job, Layout, count, explain_count, load_cluster, load_model
from outlay.__main__ import main
from outlay.reading import parts
from outlay.show.record import record
from outlay.show.restore import restore
from outlay.show.terminal import bill_lines
from outlay.show.text import Style
from outlay.step.goodput import (
    cluster_mtbf,
    daly_interval,
    failures_each,
    goodput_share,
    observed_mtbf,
    spent_seconds,
    young_interval,
)
from outlay.whole_run import goodput_of, run_of

PLAIN = Style(width=100)
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
LLAMA = load_model("llama-3.1-8b")


def daly_time(interval: float, write: float, restart: float, mtbf: float) -> float:
    """Expected time for one interval of work. Daly 2006, equation 20: M e^(R / M) (e^((t + C) / M) - 1)."""
    return mtbf * math.exp(restart / mtbf) * (math.exp((interval + write) / mtbf) - 1)


def played(interval: float, write: float, restart: float, mtbf: float, times: int) -> dict[str, float]:
    """The mean time of one interval over many played ones, by what it went to: nothing of the formulas is used."""
    dice = random.Random(7)
    spent = dict.fromkeys(("training", "writing", "lost", "restarting"), 0.0)
    for _ in range(times):
        while (alive := dice.expovariate(1 / mtbf)) < interval + write:
            spent["lost"] += alive
            while (alive := dice.expovariate(1 / mtbf)) < restart:
                spent["restarting"] += alive
            spent["restarting"] += restart
        spent["training"] += interval
        spent["writing"] += write
    return {name: value / times for name, value in spent.items()}


def cheapest(write: float, restart: float, mtbf: float) -> float:
    """The interval that costs least by the exact expectation, found by cutting the range in three."""
    low, high = 1e-6 * mtbf, 20 * mtbf + 20 * write

    def overhead(interval: float) -> float:
        return math.log(math.expm1(min((interval + write) / mtbf, 500.0))) - math.log(interval) + restart / mtbf

    for _ in range(200):
        third = (high - low) / 3
        low, high = (low + third, high) if overhead(low + third) > overhead(high - third) else (low, high - third)
    return (low + high) / 2


durations = st.floats(1.0, 1e6)
small = st.floats(1e-5, 0.5)  # of the time between failures


# --- published figures ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mtbf", "interval"), [(24 * HOUR, 117), (6 * HOUR, 57), (15 * MINUTE, 9.1)])
def test_the_interval_is_the_one_that_daly_prints(mtbf: float, interval: float) -> None:
    """Daly 2006, figures 3 to 5: a checkpoint of 5 min, restarts of 10 min; the optimum in minutes."""
    found = float(daly_interval(5 * MINUTE, mtbf)) / MINUTE
    assert found == pytest.approx(interval, abs=0.5 if interval > 10 else 0.05)


def test_a_large_published_run_failed_every_three_hours() -> None:
    """Llama Team 2024, table 5: 419 unexpected interruptions in 54 days on 16,384 H100; one in about three hours."""
    each = float(observed_mtbf(54 * DAY, 16_384, 419))
    assert each / HOUR == pytest.approx(50_677, abs=1)
    assert float(cluster_mtbf(each, 16_384)) / HOUR == pytest.approx(3.09, abs=0.01)


# --- against the exact expectation ------------------------------------------------------------------------------------


@given(small, small, small, durations)
def test_the_parts_add_up_to_dalys_expectation(interval: float, write: float, restart: float, mtbf: float) -> None:
    args = (interval * mtbf, write * mtbf, restart * mtbf, mtbf)
    assert float(spent_seconds(*args)) == pytest.approx(daly_time(*args), rel=1e-9)
    assert all(value >= 0 for value in parts(spent_seconds, *args).values())


@pytest.mark.parametrize(
    ("interval", "write", "restart", "mtbf"),
    [(57 * MINUTE, 5 * MINUTE, 10 * MINUTE, 6 * HOUR), (9.1 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE)],
)
def test_a_game_of_failures_takes_as_long(interval: float, write: float, restart: float, mtbf: float) -> None:
    """40,000 intervals played; the mean of each part within three of its standard errors, about 3 %."""
    seen = played(interval, write, restart, mtbf, 40_000)
    counted = parts(spent_seconds, interval, write, restart, mtbf)
    assert list(seen) == list(counted)
    for name, value in counted.items():
        assert value == pytest.approx(seen[name], rel=0.03), name


# --- laws -------------------------------------------------------------------------------------------------------------


@given(st.floats(1e-6, 1.0), durations)
def test_dalys_interval_costs_next_to_nothing_more_than_the_cheapest(ratio: float, mtbf: float) -> None:
    """Within 0.4 % for a checkpoint of up to half of M, and within 2 % up to M."""
    write = ratio * mtbf
    best = daly_time(cheapest(write, 0.0, mtbf), write, 0.0, mtbf) / cheapest(write, 0.0, mtbf)
    interval = float(daly_interval(write, mtbf))
    assert 1 - 1e-9 <= daly_time(interval, write, 0.0, mtbf) / interval / best <= (1.004 if ratio <= 0.5 else 1.02)


@given(st.floats(1e-6, 0.5), durations)
def test_dalys_interval_is_never_worse_than_youngs(ratio: float, mtbf: float) -> None:
    write = ratio * mtbf
    young, daly = float(young_interval(write, mtbf)), float(daly_interval(write, mtbf))
    assert daly_time(daly, write, 0.0, mtbf) / daly <= daly_time(young, write, 0.0, mtbf) / young * (1 + 1e-12)


@given(st.floats(1e-7, 1e-4), durations)
def test_where_a_checkpoint_is_quick_both_intervals_are_one(ratio: float, mtbf: float) -> None:
    write = ratio * mtbf
    assert float(daly_interval(write, mtbf)) == pytest.approx(float(young_interval(write, mtbf)), rel=6e-3)


@given(small, small, durations, st.floats(1.01, 100.0))
def test_goodput_falls_with_more_failures(write: float, restart: float, mtbf: float, more: float) -> None:
    at = (write * mtbf, restart * mtbf)
    assert 0 < float(goodput_share(*at, mtbf / more)) < float(goodput_share(*at, mtbf)) < 1


@given(small, small, durations, st.floats(1.01, 10.0))
def test_goodput_falls_with_longer_checkpoints_and_longer_restarts(
    write: float, restart: float, mtbf: float, more: float
) -> None:
    at = float(goodput_share(write * mtbf, restart * mtbf, mtbf))
    assert float(goodput_share(write * mtbf, more * restart * mtbf, mtbf)) < at
    assert float(goodput_share(write * mtbf * more, restart * mtbf, mtbf)) < at


@given(small, small, durations, st.floats(1e-3, 1e3))
def test_goodput_does_not_depend_on_the_unit_of_time(write: float, restart: float, mtbf: float, unit: float) -> None:
    whole = goodput_share(write * mtbf, restart * mtbf, mtbf)
    other = goodput_share(write * mtbf * unit, restart * mtbf * unit, mtbf * unit)
    assert float(whole) == pytest.approx(float(other), rel=1e-9)


@given(st.floats(1e-12, 1e-3), st.floats(1e-12, 1e-3))
def test_a_cluster_that_hardly_fails_loses_half_an_interval_a_failure(interval: float, write: float) -> None:
    assume(interval + write > 1e-9)
    spent = parts(spent_seconds, interval, write, 0.0, 1.0)
    failures = float(failures_each(interval, write, 1.0))
    assert spent["lost"] / failures == pytest.approx((interval + write) / 2, rel=1e-2)


def test_a_cluster_that_fails_faster_than_it_writes_never_finishes() -> None:
    share = float(goodput_share(1e9, 1e9, 1.0))
    assert 0 <= share < 1e-100
    assert math.isfinite(float(spent_seconds(1.0, 1e9, 1e9, 1.0)))


# --- a bill -----------------------------------------------------------------------------------------------------------


def bill(on: str = "1024xh100-sxm", mtbf: float | None = 50_000 * HOUR, **site: Any) -> Bill:
    cluster = replace(load_cluster(on), storage_bandwidth=1e11, mtbf_seconds=mtbf, **site)
    return count(LLAMA, Job(8192, 1024, tokens=15e12), cluster, Layout(zero=1), "megatron")


def test_a_bill_has_the_goodput_of_its_own_checkpoint_and_cluster() -> None:
    found = goodput_of(bill(restart_seconds=600.0))
    assert found is not None
    write = 14 * 8_030_261_248 / 1e11  # bytes a parameter of Megatron-Core's checkpoint
    assert found.write_seconds == pytest.approx(write)
    assert found.mtbf_seconds == pytest.approx(50_000 * HOUR / 1024)
    assert found.young_interval_seconds == pytest.approx(math.sqrt(2 * write * found.mtbf_seconds))
    read = bill().saved.read_seconds
    assert read is not None and found.restart_seconds == pytest.approx(600 + read)
    exact = daly_time(found.interval_seconds, write, found.restart_seconds, found.mtbf_seconds)
    assert found.share == pytest.approx(found.interval_seconds / exact, rel=1e-9)
    assert found.share + found.writing_share + found.lost_share + found.restarting_share == pytest.approx(1)


def test_the_run_with_failures_is_longer_by_the_goodput_in_every_figure() -> None:
    of = bill("128xp5.48xlarge", restart_seconds=600.0)
    without, found = run_of(of), goodput_of(of)
    assert without is not None and found is not None and found.run is not None
    for name in ("seconds", "accelerator_hours", "dollars", "energy_kwh"):
        assert getattr(found.run, name) == pytest.approx(getattr(without, name) / found.share)
        low, high = getattr(found.run, f"band_{name}")
        assert low < getattr(found.run, name) < high
    assert found.run.steps == without.steps
    assert found.failures == pytest.approx(found.run.seconds / found.mtbf_seconds)


def test_without_failures_or_without_a_storage_there_is_no_goodput() -> None:
    quiet = bill(mtbf=None)
    assert goodput_of(quiet) is None and "goodput" not in record(quiet)
    bare = count(LLAMA, Job(8192, 1024), replace(load_cluster("1024xh100-sxm"), mtbf_seconds=1.8e8), Layout(zero=1))
    assert goodput_of(bare) is None
    assert "GOODPUT   --storage 200GB/s is needed" in "\n".join(bill_lines(bare, PLAIN))


def test_a_layout_that_breaks_a_rule_has_no_goodput() -> None:
    cluster = replace(load_cluster("8xh100-sxm"), storage_bandwidth=1e11, mtbf_seconds=1.8e8)
    broken = count(LLAMA, Job(8192, 8), cluster, Layout(tp=3))
    assert broken.violations and goodput_of(broken) is None


def test_without_tokens_there_is_a_share_and_no_run() -> None:
    cluster = replace(load_cluster("8xh100-sxm"), storage_bandwidth=1e11, mtbf_seconds=1.8e8)
    found = goodput_of(count(LLAMA, Job(8192, 8), cluster, Layout(zero=1)))
    assert found is not None
    assert 0.99 < found.share < 1 and found.run is None and found.failures is None


def test_the_goodput_explains_itself_and_says_what_it_lacks() -> None:
    cluster = replace(load_cluster("64xh100-sxm"), storage_bandwidth=1e11, mtbf_seconds=1.8e8)
    ask = (LLAMA, Job(8192, 64), cluster, Layout(zero=1))
    found = goodput_of(count(*ask))
    assert found is not None and explain_count("goodput", *ask).value == pytest.approx(found.share, rel=1e-12)
    with pytest.raises(InputError) as caught:
        explain_count("goodput", LLAMA, Job(8192, 64), replace(cluster, storage_bandwidth=None), Layout(zero=1))
    assert [(fault.code, fault.got) for fault in caught.value.faults] == [("EXP003", "--storage is missing")]


# --- the faces --------------------------------------------------------------------------------------------------------


ASK = ["count", "llama-3.1-8b", "--on", "64xh100-sxm", "--seq", "8192", "--batch", "64", "--tokens", "1T"]
SITE = ["--storage", "100GB/s", "--mtbf", "50000h", "--restart", "10min", "--pue", "1.2"]
Shown = pytest.CaptureFixture[str]


def printed(capsys: Shown, *words: str) -> Any:
    main([*ASK, *words, "--json"])
    return json.loads(capsys.readouterr().out)


def test_the_flags_of_the_site_are_in_the_cluster(capsys: Shown) -> None:
    found = printed(capsys, *SITE)
    cluster = found["cluster"]
    assert (cluster["mtbf_seconds"], cluster["restart_seconds"], cluster["pue"]) == (1.8e8, 600, 1.2)
    assert 0.9 < found["goodput"]["share"] < 1


@pytest.mark.parametrize(("text", "seconds"), [("2083.5d", 2083.5 * DAY), ("3e6 min", 1.8e8), ("180000000s", 1.8e8)])
def test_a_duration_of_a_site_has_its_unit(capsys: Shown, text: str, seconds: float) -> None:
    assert printed(capsys, "--mtbf", text)["cluster"]["mtbf_seconds"] == seconds


def test_the_published_failures_are_used_where_they_are_asked_for_and_are_named(capsys: Shown) -> None:
    found = printed(capsys, "--mtbf", "published", "--storage", "100GB/s")
    assert found["cluster"]["mtbf_seconds"] / HOUR == pytest.approx(50_677, abs=1)
    assert any("419 unexpected interruptions" in text for text in found["assumptions"])
    assert not any("419" in text for text in printed(capsys, *SITE)["assumptions"])


@pytest.mark.parametrize(
    ("flag", "text", "code"),
    [
        *(("--mtbf", text, "UNI006") for text in ("0h", "-1h", "often", "1e30h", "nan", "5 lightyears")),
        *(("--restart", text, "UNI006") for text in ("0s", "soon", "-10min")),
        *(("--pue", text, "UNI007") for text in ("0.9", "0", "11", "good", "nan")),
    ],
)
def test_what_is_no_duration_or_no_pue_is_refused(capsys: Shown, flag: str, text: str, code: str) -> None:
    assert main([*ASK, f"{flag}={text}", "--json"]) == 2
    (fault,) = json.loads(capsys.readouterr().out)["errors"]
    assert fault["code"] == code


def test_a_printed_bill_gives_the_same_run_again(capsys: Shown) -> None:
    made = printed(capsys, *SITE, "--measured", "9.8k")
    asked = restore(json.loads(json.dumps(made)))
    again = record(count(asked.model, asked.job, asked.cluster, asked.layout, asked.engine))
    for section in ("run", "goodput", "measured"):
        assert again[section] == made[section]


def test_a_file_of_a_cluster_can_say_its_failures(
    tmp_path: Any, capsys: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "lab.toml"
    text = 'accelerator = "h100-sxm"\nranks = 8\nmtbf_seconds = "50000 h"\nrestart_seconds = "10 min"\npue = 1.1\n'
    file.write_text(text)
    cluster = load_cluster(str(file))
    assert (cluster.mtbf_seconds, cluster.restart_seconds, cluster.pue) == (1.8e8, 600.0, 1.1)
    assert main(["hardware", str(file), "--toml"]) == 0
    file.write_text(capsys.readouterr().out)
    again = load_cluster(str(file))
    assert (again.mtbf_seconds, again.restart_seconds, again.pue) == (1.8e8, 600.0, 1.1)


def test_the_answer_says_the_interval_the_shares_and_the_run() -> None:
    text = " ".join(" ".join(bill_lines(bill(restart_seconds=600.0), PLAIN)).split())
    assert "GOODPUT" in text and "a failure every 2.03 days on 1,024 cards" in text
    assert "is work that failures lose" in text and "failures in" in text
    assert "--restart 10min adds" not in text
    assert "--restart 10min adds" in " ".join(" ".join(bill_lines(bill(), PLAIN)).split())


def test_a_run_that_never_ends_is_said_and_has_no_days() -> None:
    of = bill(mtbf=1.0)
    found = goodput_of(of)
    assert found is not None and found.share < 1e-6 and found.run is None
    text = " ".join(" ".join(bill_lines(of, PLAIN)).split())
    assert "GOODPUT none: a failure every" in text and "the run never ends" in text
