"""A rank of Llama-3.1-70B's widths beside the same in torch: its layers cut, its mesh of 64 ranks and more whole.

Needs torch; a minute each. The seconds are printed, and no more than 4 GB of this process are taken.
"""

import resource
import sys
import time
from typing import Any

import pytest

from outlay.cli.flags import Given
from outlay.cli.question import read_question
from outlay.cli.verifying import config_behind
from outlay.verify.layout import verify
from outlay.verify.subject import Subject

pytestmark = pytest.mark.filterwarnings("ignore")
MOST_BYTES = 4e9
ONE = {"model": "llama-3.1-70b", "sequence_length": "4096"}
KINDS = ("parameters", "flops", "states", "tape", "peak", "traffic", "schedule")
MESHES = [
    ({"on": "64xh100-sxm", "tp": "8"}, 4, 10),
    ({"on": "512xh100-sxm", "tp": "8", "dp_replicate": "4"}, 4, 10),
    ({"on": "256xh100-sxm"}, 4, 9),
    ({"on": "128xh100-sxm", "pp": "4", "global_batch": "256"}, 6, 21),
]


@pytest.mark.parametrize(("flags", "layers", "comparisons"), MESHES)
def test_a_rank_of_seventy_billion_agrees_in_everything(
    flags: dict[str, str], layers: int, comparisons: int, capsys: pytest.CaptureFixture[str]
) -> None:
    given = Given(ONE | flags)
    bill = read_question(given, engine="fsdp2-uncompiled").bill()
    subject = Subject(bill.model, bill.job, bill.cluster, bill.layout, bill.engine, *config_behind(given))
    begin = time.monotonic()
    found = verify(subject, KINDS, layers)
    with capsys.disabled():
        sys.stderr.write(f"{flags}: {time.monotonic() - begin:.0f} s, {taken() / 1e9:.1f} GB\n")

    assert bill.violations == ()
    assert len(found.checked) >= comparisons, [one.comparison.name for one in found.checked]
    assert [one for one in found.checked if one.agrees is not True] == []
    assert taken() < MOST_BYTES


def taken() -> Any:
    """The most bytes that this process held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
