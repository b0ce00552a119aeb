"""Peaks that torch's memory tracker found under FSDP2 (torch 2.13), without token ids and targets.

`tests/real/test_memory_sharded.py` runs these layouts in torch; here the figures stand, so that no change of a formula
passes by them where there is no torch.
"""

from typing import Any

import pytest

import outlay
from outlay.bill import case_of, load
from outlay.holding import peak_parts
from outlay.layout.axes import Layout
from outlay.memory.peak import allocated_bytes
from outlay.model import model as ours


def llama(layers: int, vocab: int = 32000) -> ours.Model:
    part = ours.decoder_block("layer", ours.Attention(32, 8, 128, 128), ours.FeedForward(14336))
    return ours.Model("llama", "llama", 4096, vocab, (part,), (0,) * layers)


def experts(layers: int) -> ours.Model:
    part = ours.decoder_block("layer", ours.Attention(16, 4, 128, 128), ours.Experts(64, 4, 768))
    return ours.Model("experts", "mixtral", 2048, 32000, (part,), (0,) * layers)


def loaded(model: ours.Model, sequence: int, **axes: Any) -> Any:
    at = Layout(**{"micro_batch": 1, "zero": 3} | axes)
    job = outlay.Job(sequence_length=sequence, global_batch=at.dp_shard, precision="bf16")
    cluster = outlay.load_cluster(f"{at.dp_shard * (at.tp or 1)}xh100-sxm")
    return load(case_of(model, job, cluster, at, "fsdp2-uncompiled")[0])


TRACKED = [
    (llama(3), 4096, {"dp_shard": 8}, 5_777_848_448, "behind"),
    (llama(3), 4096, {"dp_shard": 64, "recompute": "full"}, 3_824_670_592, "behind"),
    (llama(3), 4096, {"dp_shard": 8, "tp": 8, "sp": True, "recompute": "full"}, 722_274_432, "behind"),
    (llama(3), 4096, {"dp_shard": 8, "tp": 8, "sp": False}, 1_177_393_284, "logits"),
    (llama(2, 128256), 1024, {"dp_shard": 64, "recompute": "full"}, 6_610_121_564, "ends"),
    (llama(3), 4096, {"dp_shard": 8, "zero": 2}, 6_912_952_448, "logits"),
    (experts(2), 4096, {"dp_shard": 64}, 3_418_180_060, "behind"),
]


@pytest.mark.parametrize(("model", "sequence", "axes", "tracked", "part"), TRACKED)
def test_a_peak_is_what_torch_tracked(
    model: ours.Model, sequence: int, axes: dict[str, Any], tracked: int, part: str
) -> None:
    at = loaded(model, sequence, **axes)
    stage = at.stages[0]

    assert float(allocated_bytes(stage, at.case)) == pytest.approx(tracked, rel=2e-4)
    assert peak_parts(stage, at.case)[part] > 0
    assert sum(peak_parts(stage, at.case).values()) == pytest.approx(float(allocated_bytes(stage, at.case)), rel=1e-12)


def test_a_head_that_shares_its_table_with_the_embedding_holds_the_gradient_of_the_whole_table() -> None:
    """Gemma-2-27B: 256,000 words of 4,608 numbers, and the final norm, 2 bytes each."""
    at = loaded(outlay.load_model("gemma-2-27b"), 1024, dp_shard=8)

    assert peak_parts(at.stages[0], at.case)["whole"] == 2 * (256_000 * 4_608 + 4_608)
