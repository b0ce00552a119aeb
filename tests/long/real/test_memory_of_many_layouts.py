"""Memory under FSDP2 against torch's tracker, over many models, worlds and lengths. Needs torch; minutes."""

from itertools import product

import pytest

import outlay
from outlay.layout.axes import Layout
from outlay.model import model as ours
from outlay.verify.comparisons.memory import compare_memory

pytestmark = pytest.mark.filterwarnings("ignore")
SHAPES = {  # hidden, heads, key-value heads, width, vocabulary
    "7B": (4096, 32, 32, 11008, 32000),
    "8B": (4096, 32, 8, 14336, 128256),
    "70B": (8192, 64, 8, 28672, 128256),
    "small": (2048, 32, 8, 8192, 128256),
}
LAYOUTS = [
    {"dp_shard": 8}, {"dp_shard": 64}, {"dp_shard": 128}, {"dp_shard": 8, "dp_replicate": 8},
    {"dp_shard": 8, "zero": 2}, {"dp_shard": 8, "tp": 8, "sp": True}, {"dp_shard": 8, "tp": 8, "sp": False},
    {"dp_shard": 2, "tp": 4, "sp": True},
]  # fmt: skip
CASES = [*product(SHAPES, (2, 4), (512, 4096, 16384), ("none", "full"), range(len(LAYOUTS)))]


@pytest.mark.parametrize(("name", "layers", "sequence", "recompute", "number"), CASES)
def test_what_one_rank_holds_is_what_is_counted(
    name: str, layers: int, sequence: int, recompute: str, number: int
) -> None:
    hidden, heads, kv_heads, width, vocab = SHAPES[name]
    attention = ours.Attention(heads, kv_heads, hidden // heads, hidden // heads)
    block = ours.decoder_block("layer", attention, ours.FeedForward(width))
    model = ours.Model(name, "llama", hidden, vocab, (block,), (0,) * layers)
    at = Layout(**{"micro_batch": 1, "zero": 3, "recompute": recompute} | LAYOUTS[number])
    copies = at.dp_shard * (at.dp_replicate or 1)
    job = outlay.Job(sequence_length=sequence, global_batch=copies, precision="bf16")
    cluster = outlay.load_cluster(f"{copies * (at.tp or 1)}xh100-sxm")
    engine = outlay.load_engine("fsdp2-uncompiled")
    *exact, peak, _ = compare_memory(model, job, cluster, at, engine)

    assert all(each.counted == each.measured for each in exact)
    assert peak.agrees(0.02), peak
