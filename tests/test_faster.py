"""What is advised where a layout fits: each change typed in gives the step that it promises."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import LLAMA_70B
from outlay import Job, Layout, count, load_cluster, plan
from outlay.cli.main import main
from outlay.search.faster import faster

JOB, ON = Job(8192, 512), "64xh100-sxm"
LAYOUTS = st.builds(
    Layout,
    tp=st.sampled_from([4, 8]), pp=st.sampled_from([2, 4]), vpp=st.sampled_from([1, 2]),
    recompute=st.sampled_from(["none", "selective", "full"]), micro_batch=st.sampled_from([1, 2]),
    overlap_tp=st.booleans(), zero=st.sampled_from([1, 2]),
)  # fmt: skip


@given(layout=LAYOUTS)
@settings(max_examples=15, deadline=None)
def test_every_advice_fits_saves_time_and_is_never_better_than_the_best_of_the_space(layout: Layout) -> None:
    bill = count(LLAMA_70B, JOB, load_cluster(ON), layout)
    found = faster(bill)
    single = [each.seconds for each in found if "," not in each.change]
    together = [each.seconds for each in found if "," in each.change]
    assert all(second < bill.step.seconds for second in (*single, *together))
    assert all(each.peak_bytes <= bill.memory.usable_bytes for each in found)
    assert len(single) <= 3 and len(together) <= 1
    assert single == sorted(single)
    assert all(second < single[0] for second in together)
    if bill.memory.verdict != "fits":
        assert found == ()


def test_typing_an_advice_gives_its_step(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["count", "llama-3.1-70b", "--on", ON, "--seq", "8192", "--batch", "512"]
    given = {"--tp": "8", "--pp": "4", "--recompute": "full"}
    main([*words, *(word for pair in given.items() for word in pair), "--advise", "--json"])
    told = json.loads(capsys.readouterr().out)["advice"]
    assert len(told) == 4
    for each in told:
        flags = each["flag"].split()
        kept = [word for name, value in given.items() if name not in flags for word in (name, value)]
        main([*words, *kept, *flags])
        assert _seconds(capsys.readouterr().out) == pytest.approx(each["seconds"], rel=2e-3)


def _seconds(out: str) -> float:
    line = next(line for line in out.splitlines() if line.startswith("STEP"))
    return float(line.split()[1])


def test_the_best_of_a_space_has_nothing_faster_among_its_neighbours() -> None:
    best = plan(LLAMA_70B, JOB, load_cluster(ON), best=1).best[0]
    assert faster(best.bill) == ()


def test_what_does_not_fit_or_is_not_legal_is_not_made_faster() -> None:
    cluster = load_cluster(ON)
    assert faster(count(LLAMA_70B, JOB, cluster, Layout())) == ()
    assert faster(count(LLAMA_70B, JOB, cluster, Layout(tp=8, pp=3))) == ()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--zero 2 --on 64xh100-sxm --seq 8192 --batch 128", "FASTER    nothing: no single change of the layout saves"),
        (
            "--tp 3 --on 9xh100-sxm --seq 4096 --batch 63",
            "FASTER    a faster layout is sought beside one that is legal",
        ),
    ],
)
def test_that_nothing_is_faster_is_said(flags: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["count", "llama-3.1-8b", *flags.split(), "--advise"])
    assert said in capsys.readouterr().out
    main(["count", "llama-3.1-8b", *flags.split()])
    assert "FASTER" not in capsys.readouterr().out
