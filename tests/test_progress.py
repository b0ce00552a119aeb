"""What a search says while it goes on: how far it is, and the best layout so far, which who stops it keeps."""

import json
from typing import Any

import pytest

from models import H100S, LLAMA_8B, LLAMA_70B
from outlay import Job, count, load_cluster, load_model
from outlay.cli.desk import saying
from outlay.cli.desk.saying import EVERY, Saying
from outlay.search.blocks import Grid
from outlay.search.plan import Ranked, plan
from outlay.search.progress import First
from outlay.search.several import How, longest

JOB = Job(8192, 512)


class Heard:
    """Every word of a search, each with the layout of that moment."""

    def __init__(self) -> None:
        self.words: list[tuple[int, int, float, Ranked | None]] = []

    def __call__(self, counted: int, legal: int, best: float, first: First = None, /) -> None:
        self.words.append((counted, legal, best, first() if first else None))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of every word, to be set."""
    now = [0.0]
    monkeypatch.setattr(saying.time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize("width", ["middle", "full"])
def test_every_word_has_the_best_layout_of_its_moment(width: Any) -> None:
    heard = Heard()
    found = plan(LLAMA_8B, Job(4096, 64), load_cluster("8xh100-sxm"), width=width, progress=heard)
    told = [(best, first) for _, _, best, first in heard.words if first]
    assert len(told) == len(heard.words) > 0
    for best, first in told:
        bill = count(found.model, found.job, found.cluster, first.layout, found.engine)
        assert first.seconds == best
        assert first.seconds == pytest.approx(bill.step.seconds, rel=1e-12)
        assert first.peak_bytes == pytest.approx(bill.memory.peak_bytes, rel=1e-12)
        assert bill.memory.verdict == "fits"
    bests = [best for best, _ in told]
    assert bests == sorted(bests, reverse=True)
    assert told[-1][1] == found.best[0]


def test_a_search_that_passes_layouts_over_says_when_it_ends() -> None:
    heard = Heard()
    plan(LLAMA_8B, Job(4096, 64), load_cluster("8xh100-sxm"), width="full", progress=heard)
    *before, last = [(counted, legal) for counted, legal, _, _ in heard.words]
    assert {legal for _, legal in before} == {0}
    assert last == (before[-1][0], before[-1][0])


def test_where_nothing_fits_the_smallest_is_told() -> None:
    heard = Heard()
    found = plan(load_model("llama-3.1-405b"), JOB, load_cluster("8xh100-sxm"), width="lean", progress=heard)
    *_, (_, _, best, first) = heard.words
    assert best == float("inf")
    assert first is not None and found.smallest is not None
    assert first == found.smallest
    assert saying.so_far(first)["verdict"] == "does_not_fit"


def test_no_layout_is_made_for_a_word_that_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    layouts_at = Grid.layouts_at

    def noted(grid: Grid, rows: Any, cells: Any) -> Any:
        made.append(len(rows))
        return layouts_at(grid, rows, cells)

    monkeypatch.setattr(Grid, "layouts_at", noted)
    words: list[float] = []
    plan(LLAMA_70B, JOB, H100S, progress=lambda counted, legal, best, first=None: words.append(best))
    told, made[:] = made[:], []
    plan(LLAMA_70B, JOB, H100S)
    assert len(words) > 3
    assert told == made


def test_progress_is_said_with_a_share_the_time_left_and_the_layout(clock: list[float]) -> None:
    found = plan(LLAMA_70B, JOB, H100S, width="lean", best=1).best[0]
    said: list[dict[str, Any]] = []
    say = Saying(said.append)
    for at, counted in ((1.0, 25), (1.1, 26), (2.0, 50), (2.1, 100)):
        clock[0] = at
        say(counted, 100, found.seconds, lambda: found)
    assert [each["share"] for each in said] == [0.25, 0.5, 1.0]  # the second came too soon after the first
    assert [each["seconds_left"] for each in said] == [3.0, 2.0, 0.0]  # the last one is said at once
    best = said[0]["best"]
    assert best["seconds"] == found.bill.step.seconds
    assert best["peak_bytes"] == found.bill.memory.peak_bytes
    assert best["verdict"] == found.bill.memory.verdict == "fits"
    assert best["layout"]["tp"] == found.layout.tp and f"--tp {found.layout.tp}" in best["flags"]
    assert (best["model"], best["cluster"], best["sequence_length"]) == ("llama-3.1-70b", "64xh100-sxm", 8192)
    assert json.loads(json.dumps(said, allow_nan=False)) == said


def test_what_fitted_stays_while_a_later_search_finds_nothing(clock: list[float]) -> None:
    def at_each_word(say: Saying) -> Any:
        def tell(counted: int, legal: int, best: float, first: First = None, /) -> None:
            clock[0] += 2 * EVERY
            say(counted, legal, best, first)

        return tell

    said: list[dict[str, Any]] = []
    how = How(width="lean", best=1, progress=at_each_word(Saying(said.append)))
    found = longest(LLAMA_70B, Job(8192, 64), load_cluster("32xh100-sxm"), how)
    verdicts = [each["best"]["verdict"] for each in said]
    lengths = [each["best"]["sequence_length"] for each in said]
    assert "does_not_fit" in {tried.verdict for tried in found.tried}
    assert "does_not_fit" not in verdicts[verdicts.index("fits") :]
    assert max(lengths) == found.plan.job.sequence_length


def test_a_word_takes_a_layout_and_no_bill(monkeypatch: pytest.MonkeyPatch) -> None:
    found = plan(LLAMA_70B, JOB, H100S, width="lean", best=1).best[0]
    monkeypatch.setattr("outlay.search.plan.count", lambda *_: pytest.fail("a bill was made"))
    assert saying.so_far(found)["seconds"] == found.seconds
