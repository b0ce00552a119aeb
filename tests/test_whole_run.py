"""A whole run: days, accelerator-hours, money and energy with their bands, against published accounts."""

from dataclasses import replace
from typing import Any

import pytest

from outlay import Bill, Job, Layout, count, load_cluster, load_model
from outlay.cluster.catalogue import accelerator, accelerator_names
from outlay.show.record import record
from outlay.show.terminal import bill_lines
from outlay.show.text import Style
from outlay.step.energy import run_energy
from outlay.whole_run import HOUR, KWH, run_of

PLAIN = Style(width=100)
LLAMA = load_model("llama-3.1-8b")


def bill(on: str = "8xp5.48xlarge", pue: float | None = None, **task: Any) -> Bill:
    job = Job(**({"sequence_length": 8192, "global_batch": 64, "tokens": 1e12} | task))
    return count(LLAMA, job, replace(load_cluster(on), pue=pue), Layout(zero=1))


def test_bloom_took_the_energy_that_its_account_says() -> None:
    """Luccioni et al. 2022, section 4.2: 1,082,990 GPU hours at 400 W are 433,196 kWh."""
    power = accelerator("a100-sxm-80").power_watts
    assert float(run_energy(1_082_990 * HOUR, 1, power, 1.0, 1.0)) / KWH == pytest.approx(433_196, abs=1)


def test_a_run_is_its_steps_and_each_figure_follows() -> None:
    of = bill()
    run = run_of(of)
    assert run is not None
    assert run.steps == 1_907_349  # 1e12 over 64 x 8,192 tokens, rounded up
    assert run.seconds == pytest.approx(1_907_349 * of.step.seconds)
    assert run.accelerator_hours == pytest.approx(64 * run.seconds / 3600)
    assert run.dollars == pytest.approx(8 * 55.04 * run.seconds / 3600)  # eight nodes of p5.48xlarge
    assert run.energy_kwh == pytest.approx(0.7 * run.accelerator_hours)  # 700 W each


@pytest.mark.parametrize("name", ["seconds", "accelerator_hours", "dollars", "energy_kwh"])
def test_the_band_of_each_figure_is_that_of_the_step(name: str) -> None:
    of = bill()
    run, (low, high) = run_of(of), of.step.band_seconds
    value, band = getattr(run, name), getattr(run, f"band_{name}")
    assert band == pytest.approx((value * low / of.step.seconds, value * high / of.step.seconds))
    assert band[0] < value < band[1]


def test_a_batch_that_grows_makes_the_run_longer_and_its_band_too() -> None:
    plain, grown = (run_of(bill(global_batch=256, batch_rampup=rises)) for rises in ((), (64, 64, 1_000_000)))
    assert plain is not None and grown is not None
    assert grown.steps > plain.steps and grown.seconds > plain.seconds
    assert grown.band_seconds[1] / grown.seconds == pytest.approx(plain.band_seconds[1] / plain.seconds)


def test_the_overhead_of_the_site_multiplies_the_energy_alone() -> None:
    plain, site = run_of(bill()), run_of(bill(pue=1.2))
    assert plain is not None and site is not None and plain.energy_kwh and site.energy_kwh
    assert site.energy_kwh == pytest.approx(1.2 * plain.energy_kwh)
    assert (site.seconds, site.dollars) == (plain.seconds, plain.dollars)


def test_without_tokens_there_is_no_run() -> None:
    of = bill(tokens=0.0)
    assert run_of(of) is None
    assert "run" not in record(of) and "RUN" not in "\n".join(bill_lines(of, PLAIN))


def test_a_card_whose_power_nobody_says_has_no_energy_and_says_so() -> None:
    of = bill("64xv100-sxm2-32", precision="fp16")
    run = run_of(of)
    assert run is not None and run.energy_kwh is run.band_energy_kwh is None
    assert "no energy: the power of v100-sxm2-32 is not known" in " ".join("\n".join(bill_lines(of, PLAIN)).split())


def test_a_cluster_without_a_price_has_no_money() -> None:
    run = run_of(bill("64xh100-sxm"))
    assert run is not None and run.dollars is run.band_dollars is None and run.energy_kwh


def test_the_answer_says_what_of_the_power_is_drawn_and_what_is_left_out() -> None:
    text = " ".join("\n".join(bill_lines(bill(), PLAIN)).split())
    assert "a card draws all of its 700 W (assumed), hosts and network not counted, without the site's" in text
    assert "without failures (--mtbf)" in text
    assert "PUE 1.2" in " ".join("\n".join(bill_lines(bill(pue=1.2), PLAIN)).split())


@pytest.mark.parametrize(
    ("name", "watts"),
    [
        *(("h100-sxm", 700), ("a100-sxm-80", 400), ("h200-sxm", 700), ("b200", 1000), ("gb200", 1200)),
        *(("mi300x", 750), ("tpu-v4", 192), ("gaudi2", 600), ("h20", 500)),
    ],
)
def test_the_power_of_a_card_is_the_published_one(name: str, watts: float) -> None:
    assert accelerator(name).power_watts == watts


def test_every_power_that_is_known_has_a_likely_size() -> None:
    known = [accelerator(name).power_watts for name in accelerator_names() if accelerator(name).power_watts]
    assert len(known) >= 25
    assert all(150 <= watts <= 1500 for watts in known)


@pytest.mark.parametrize(("tokens", "word", "size"), [(1e9, "", 1), (1e12, "thousand ", 1e3), (1e14, "million ", 1e6)])
def test_costs_are_printed_in_the_unit_that_their_line_names(tokens: float, word: str, size: float) -> None:
    of = bill(tokens=tokens)
    run = run_of(of)
    assert run is not None
    line = next(line.strip() for line in bill_lines(of, PLAIN) if line.strip().startswith(f"{word}card-hours  "))
    printed = float(line.removeprefix(f"{word}card-hours").split()[0].replace(",", ""))
    assert size * printed == pytest.approx(run.accelerator_hours, rel=1e-3)
