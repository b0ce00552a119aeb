"""A batch that grows: its sizes are Megatron's, and its steps add up."""

from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlay import Bill, InputError, Job, Layout, count, load_cluster, load_model
from outlay.cli.main import main
from outlay.rampup import batches
from outlay.show.record import record
from outlay.show.schema import bill_schema

LLAMA_8B = load_model("llama-3-8b")


def grown(batch: int, rampup: tuple[int, ...], tokens: float = 0.0, **axes: int) -> Bill:
    """The bill of a job whose batch grows."""
    job = Job(2048, batch, tokens=tokens, batch_rampup=rampup)
    return count(LLAMA_8B, job, load_cluster("8xh100-sxm"), Layout(**axes))


def step_by_step(start: int, increment: int, samples: int, batch: int) -> dict[int, int]:
    """Steps at each size, one step after another, as Megatron's calculator takes them."""
    rises = (batch - start) // increment
    each = samples / rises
    found: dict[int, int] = {}
    consumed = 0
    while (size := batch if consumed > samples else start + int(consumed / each) * increment) < batch:
        found[size] = found.get(size, 0) + 1
        consumed += size
    return found


def test_the_example_of_megatrons_manual_has_126_sizes_of_2380_samples() -> None:
    """Megatron-LM, --rampup-batch-size 16 8 300000 with a global batch of 1024."""
    *ramp, (last, none) = batches(Job(2048, 1024, batch_rampup=(16, 8, 300_000)))
    assert (len(ramp), ramp[0][0], last, none) == (126, 16, 1024, 0)
    assert [size for size, _ in ramp] == list(range(16, 1024, 8))
    assert all(abs(size * steps - 300_000 / 126) < 1024 for size, steps in ramp)
    assert 300_000 <= sum(size * steps for size, steps in ramp) < 300_000 + 1024


@given(st.integers(1, 64), st.integers(1, 32), st.integers(1, 30), st.integers(1, 20_000))
def test_sizes_and_steps_are_those_of_one_step_after_another(
    start: int, increment: int, rises: int, samples: int
) -> None:
    batch = start + rises * increment
    *ramp, _ = batches(Job(2048, batch, batch_rampup=(start, increment, samples)))
    assert dict(ramp) == step_by_step(start, increment, samples, batch)


def test_the_run_is_the_ramp_and_then_the_whole_batch() -> None:
    found = grown(64, (16, 16, 6400), tokens=2048 * 64_000, pp=2, tp=2)
    ramp = found.rampup
    assert ramp is not None
    assert [size.global_batch for size in ramp.sizes] == [16, 32, 48]
    rest = -(-(64_000 - ramp.tokens // 2048) // 64)
    assert ramp.run_steps == ramp.steps + rest
    assert isclose(ramp.run_seconds, ramp.seconds + rest * found.step.seconds)
    assert isclose(ramp.seconds, sum(size.steps * size.step_seconds for size in ramp.sizes))


def test_each_size_costs_what_a_job_of_that_batch_costs_and_idles_more_than_the_whole_batch() -> None:
    found = grown(64, (16, 16, 6400), pp=2, tp=2)
    assert found.rampup is not None
    for size in found.rampup.sizes:
        alone = grown(size.global_batch, (), pp=2, tp=2)
        assert isclose(size.step_seconds, alone.step.seconds)
        assert isclose(size.idle_share, 1 / (size.global_batch // 2 + 1))  # P 2, M = batch / 2
        assert size.idle_share > 1 / (64 // 2 + 1)
    assert found.rampup.sizes[-1].idle_share < found.rampup.idle_share < found.rampup.sizes[0].idle_share


def test_a_run_that_ends_inside_the_ramp_never_reaches_the_whole_batch() -> None:
    *ramp, last = batches(Job(2048, 64, tokens=2048 * 1600.0, batch_rampup=(16, 16, 6400)))
    assert ramp == [(16, 100)]
    assert last == (64, 0)


@pytest.mark.parametrize(
    ("batch", "rampup", "code"),
    [
        (64, (16, 16, 6400), ""),
        (64, (64, 16, 6400), ""),
        (64, (16, 32, 6400), "BAT002"),
        (64, (80, 16, 6400), "BAT002"),
        (64, (16, 0, 6400), "BAT002"),
        (64, (16, 16), "BAT002"),
        (64, (12, 4, 6400), "BAT003"),
    ],
)
def test_a_ramp_reaches_the_global_batch_in_whole_increments_that_all_ranks_share(
    batch: int, rampup: tuple[int, ...], code: str
) -> None:
    found = grown(batch, rampup)
    assert [each.code for each in found.violations] == ([code] if code else [])
    assert (found.rampup is None) == bool(code)


def test_with_chunks_every_size_is_whole_rounds_of_micro_batches() -> None:
    assert [each.code for each in grown(64, (6, 2, 6400), pp=4, vpp=2).violations] == ["BAT003"]
    assert grown(64, (8, 8, 6400), pp=4, vpp=2).violations == ()


def test_the_ramp_is_in_the_answer_and_in_the_record(capsys: pytest.CaptureFixture[str]) -> None:
    words = "count llama-3-8b --on 8xh100-sxm --seq 2048 --batch 64 --tokens 1B --rampup 16,16,64e2"
    assert main(words.split()) == 0
    printed = capsys.readouterr().out
    assert "RAMP      batch 16 to 48 in 3 sizes: " in printed
    found = record(grown(64, (16, 16, 6400)))["rampup"]
    assert set(found) == set(bill_schema()["properties"]["rampup"]["required"])
    assert "rampup" not in record(grown(64, ()))


def test_a_list_that_is_no_ramp_is_refused_with_its_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["count", "llama-3-8b", "--on", "8xh100-sxm", "--rampup", "16,x"]) == 2
    assert "START,INCREMENT,SAMPLES" in capsys.readouterr().err
    with pytest.raises(InputError):
        grown(64, (16, 16, -1))
