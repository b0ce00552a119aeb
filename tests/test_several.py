"""Several searches for one answer: each is a plan of its own, and the chosen one is the least by its objective."""

import json

import pytest

from models import LLAMA_8B
from outlay import InputError, Job, load_cluster, plan
from outlay.cli.main import main
from outlay.search.several import STEP, How, best_of, longest

JOB = Job(4096, 64)
LEAN = How(width="lean", best=1)
PRICED = ("1xp5.48xlarge", "2xp4de.24xlarge")


def test_the_cheapest_cluster_gives_most_tokens_for_a_dollar() -> None:
    clusters = [load_cluster(name) for name in PRICED]
    found = best_of(LLAMA_8B, JOB, clusters, LEAN, by="money")
    costs = []
    for cluster in clusters:
        alone = plan(LLAMA_8B, JOB, cluster, width="lean", best=1)
        hourly = cluster.dollars()
        assert hourly is not None
        costs.append(hourly / (alone.best[0].bill.step.tokens_per_second * 3600) * 1e6)
    assert [each.dollars_per_million_tokens for each in found.tried] == pytest.approx(costs)
    assert found.plan.cluster == clusters[costs.index(min(costs))]


def test_the_fastest_cluster_trains_most_tokens() -> None:
    clusters = [load_cluster(name) for name in ("8xa100-sxm-80", "8xb200", "8xh100-sxm")]
    found = best_of(LLAMA_8B, JOB, clusters, LEAN, by="tokens")
    rates = [each.tokens_per_second for each in found.tried]
    assert found.plan.cluster.name == "8xb200"
    assert found.plan.best[0].bill.step.tokens_per_second == max(rate for rate in rates if rate)


def test_money_is_not_compared_without_a_price() -> None:
    with pytest.raises(InputError) as refused:
        best_of(LLAMA_8B, JOB, [load_cluster("8xh100-sxm"), load_cluster("8xb200")], LEAN, by="money")
    assert [fault.code for fault in refused.value.faults] == ["PLN010", "PLN010"]


def test_the_longest_sequence_fits_and_one_step_more_does_not() -> None:
    cluster = load_cluster("8xh100-sxm")
    found = longest(LLAMA_8B, Job(global_batch=8), cluster, LEAN)
    length = int(found.plan.job.sequence_length)
    assert found.plan.best
    assert length % STEP == 0 and length > 32_768
    assert not plan(LLAMA_8B, Job(length + STEP, 8), cluster, width="lean", best=1).best
    verdicts = {each.sequence_length: each.verdict for each in found.tried}
    assert all((verdict == "fits") == (tokens <= length) for tokens, verdict in verdicts.items())
    assert len(found.tried) < 30


def test_where_even_the_shortest_sequence_does_not_fit_it_is_the_answer_that_it_does_not() -> None:
    found = longest(LLAMA_8B, Job(global_batch=1), load_cluster("1xa10"), LEAN)
    assert not found.plan.best
    assert [each.sequence_length for each in found.tried] == [STEP]


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["--on", ",".join(PRICED), "--objective", "money"], "CHEAPEST"),
        (["--on", "8xh100-sxm,8xb200", "--objective", "tokens"], "MOST"),
        (["--on", "8xh100-sxm", "--objective", "sequence"], "LONGEST"),
    ],
)
def test_the_answer_comes_first(capsys: pytest.CaptureFixture[str], words: list[str], key: str) -> None:
    question = ["plan", "llama-3.1-8b", "--batch", "8", "--seq", "4096", "--space", "lean", "--best", "1", *words]
    assert main(question) == 0
    assert capsys.readouterr().out.startswith(key)
    main([*question, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["objective"] == words[-1]
    assert {"name", "sequence_length", "tokens_per_second"} <= set(found["tried"][0])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--on", "8xh100-sxm,8xb200", "--objective", "sequence"], "PLN007"),
        (["--on", "8xh100-sxm", "--objective", "money"], "PLN007"),
        (["--on", "8xh100-sxm,8xb200", "--objective", "money"], "PLN010"),
        (["--on", "8xh100-sxm", "--objective", "glory"], "PLN003"),
    ],
)
def test_an_objective_that_does_not_fit_its_clusters_is_refused(
    capsys: pytest.CaptureFixture[str], words: list[str], code: str
) -> None:
    assert main(["plan", "llama-3.1-8b", "--seq", "4096", "--batch", "8", *words]) == 2
    assert code in capsys.readouterr().err
