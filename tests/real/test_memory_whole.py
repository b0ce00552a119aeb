"""Memory of one step of a model that nothing shards, wholly in bf16, against torch's MemTracker."""

import pytest

import outlay
from outlay.layout.axes import Layout
from outlay.model import model as ours
from outlay.verify.comparison import Comparison
from outlay.verify.comparisons.memory import compare_memory

pytestmark = pytest.mark.filterwarnings("ignore")
HIDDEN, VOCAB = 4096, 32000


def compared(**axes: object) -> dict[str, Comparison]:
    """All comparisons of three layers of Llama's kind, by name."""
    block = ours.decoder_block("layer", ours.Attention(32, 8, 128, 128), ours.FeedForward(14336))
    model = ours.Model("llama", "llama", HIDDEN, VOCAB, (block,), (0,) * 3)
    job = outlay.Job(sequence_length=4096, global_batch=1, precision="bf16", bytes_per_parameter="8")
    at = Layout(**{"micro_batch": 1, "zero": 0, "dp_shard": 1} | axes)  # type: ignore[arg-type]
    cluster = outlay.load_cluster(f"{at.tp or 1}xh100-sxm")
    return {each.name: each for each in compare_memory(model, job, cluster, at, outlay.load_engine("fsdp2-uncompiled"))}


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_one_card_holds_what_is_counted(recompute: str) -> None:
    found = compared(recompute=recompute)

    assert all(
        found[name].counted == found[name].measured > 0 for name in ("weights", "gradients", "optimizer", "tape")
    )
    assert found["peak"].agrees(1e-6)


@pytest.mark.parametrize("sliced", [False, True], ids=["tp", "tp and sp"])
def test_a_rank_of_eight_holds_what_is_counted_and_the_whole_gradient_of_the_embedding(sliced: bool) -> None:
    """DTensor makes the gradient of a table cut by rows as a partial sum: on each rank as large as the whole table."""
    found = compared(tp=8, sp=sliced)

    assert all(found[name].counted == found[name].measured > 0 for name in ("weights", "optimizer", "tape"))
    assert found["gradients"].measured - found["gradients"].counted == 2 * VOCAB * HIDDEN * 7 / 8
    assert "partial sum" in found["gradients"].note
    assert found["peak"].agrees(1e-3)  # where the backward pass begins: before there is that gradient
