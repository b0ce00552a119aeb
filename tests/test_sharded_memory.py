"""Peaks that torch's memory tracker found under FSDP2 (torch 2.13), without token ids and targets.

`tests/real/test_memory_sharded.py` runs these layouts in torch; here the figures stand, so that no change of a formula
passes by them where there is no torch.
"""

from dataclasses import replace
from typing import Any

import pytest

import outlay
from outlay.bill import case_of, load
from outlay.engines.tables import engine_names
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


APART = outlay.load_engine("fsdp2-uncompiled")
TOGETHER = replace(APART, ends_apart=False)  # embedding, final norm and head are the root's own group


def loaded(model: ours.Model, sequence: int, engine: outlay.Engine, micro_batches: int = 1, **axes: Any) -> Any:
    at = Layout(**{"micro_batch": 1, "zero": 3} | axes)
    job = outlay.Job(sequence_length=sequence, global_batch=micro_batches * at.dp_shard, precision="bf16")
    cluster = outlay.load_cluster(f"{at.dp_shard * (at.tp or 1)}xh100-sxm")
    return load(case_of(model, job, cluster, at, engine)[0])


TRACKED_TOGETHER = [
    (llama(3), 4096, {"dp_shard": 8}, 5_777_848_448, "behind"),
    (llama(3), 4096, {"dp_shard": 64, "recompute": "full"}, 3_824_670_592, "behind"),
    (llama(3), 4096, {"dp_shard": 8, "tp": 8, "sp": True, "recompute": "full"}, 722_274_432, "behind"),
    (llama(3), 4096, {"dp_shard": 8, "tp": 8, "sp": False}, 1_177_393_284, "logits"),
    (llama(2, 128256), 1024, {"dp_shard": 64, "recompute": "full"}, 6_610_121_564, "ends"),
    (llama(3), 4096, {"dp_shard": 8, "zero": 2}, 6_912_952_448, "logits"),
    (experts(2), 4096, {"dp_shard": 64}, 3_418_180_060, "behind"),
]
TRACKED_APART = [
    (llama(3), 4096, {"dp_shard": 8}, 5_342_136_448, "logits"),
    (llama(3), 4096, {"dp_shard": 64, "recompute": "full"}, 3_046_414_464, "behind"),
    (llama(3), 4096, {"dp_shard": 8, "tp": 8, "sp": True, "recompute": "full"}, 658_530_432, "ends"),
    (llama(2, 128256), 1024, {"dp_shard": 8, "tp": 8, "sp": False, "recompute": "full"}, 1_816_436_828, "ends"),
    (llama(2, 128256), 1024, {"dp_shard": 64, "recompute": "full"}, 3_925_053_532, "backward"),
    (llama(4, 128256), 1024, {"dp_shard": 8, "recompute": "full"}, 6_998_270_116, "ends"),
    (llama(2, 128256), 1024, {"dp_shard": 64, "zero": 2, "recompute": "full"}, 5_411_950_684, "backward"),
    (llama(12), 512, {"dp_shard": 4, "recompute": "full"}, 13_200_984_516, "behind"),
    (llama(6, 64000), 512, {"dp_shard": 64, "recompute": "full"}, 2_763_460_844, "behind"),
    (llama(1, 128256), 1024, {"dp_shard": 64}, 4_345_543_224, "behind"),
    (experts(2), 4096, {"dp_shard": 64}, 3_088_419_420, "behind"),
]


def is_tracked(
    engine: outlay.Engine, model: ours.Model, sequence: int, axes: dict[str, Any], tracked: int, part: str
) -> None:
    at = loaded(model, sequence, engine, **axes)
    stage = at.stages[0]

    assert float(allocated_bytes(stage, at.case)) == pytest.approx(tracked, rel=2e-4)
    assert peak_parts(stage, at.case)[part] > 0
    assert sum(peak_parts(stage, at.case).values()) == pytest.approx(float(allocated_bytes(stage, at.case)), rel=1e-12)


def test_a_head_that_shares_its_table_with_the_embedding_holds_the_gradient_of_the_whole_table() -> None:
    """Gemma-2-27B: 256,000 words of 4,608 numbers, and the final norm, 2 bytes each."""
    at = loaded(outlay.load_model("gemma-2-27b"), 1024, APART, dp_shard=8)

    assert peak_parts(at.stages[0], at.case)["whole"] == 2 * (256_000 * 4_608 + 4_608)


@pytest.mark.parametrize(("model", "sequence", "axes", "tracked", "part"), TRACKED_TOGETHER)
def test_a_peak_is_what_torch_tracked_where_the_ends_are_one_group(
    model: ours.Model, sequence: int, axes: dict[str, Any], tracked: int, part: str
) -> None:
    is_tracked(TOGETHER, model, sequence, axes, tracked, part)


@pytest.mark.parametrize(("model", "sequence", "axes", "tracked", "part"), TRACKED_APART)
def test_a_peak_is_what_torch_tracked_where_embedding_and_head_are_wrapped_apart(
    model: ours.Model, sequence: int, axes: dict[str, Any], tracked: int, part: str
) -> None:
    is_tracked(APART, model, sequence, axes, tracked, part)


@pytest.mark.parametrize(("engine", "tracked"), [(APART, 7_824_466_084), (TOGETHER, 8_637_655_204)])
def test_a_peak_with_gradients_that_wait_whole_is_what_torch_tracked(engine: outlay.Engine, tracked: int) -> None:
    at = loaded(llama(4), 2048, engine, 2, dp_shard=8, recompute="full", accumulate_whole=True)
    assert float(allocated_bytes(at.stages[0], at.case)) == pytest.approx(tracked, rel=2e-4)


def test_torchtitan_and_fsdp2_wrap_the_ends_apart_and_no_other_engine_does() -> None:
    apart = {name for name in engine_names() if outlay.load_engine(name).ends_apart}
    assert apart == {"fsdp2", "fsdp2-uncompiled", "fsdp2-torchtitan", "fsdp2-2024"}


def test_ends_that_share_a_table_are_one_group() -> None:
    tied = replace(llama(3), tied=True)
    apart, together = (loaded(tied, 4096, engine, dp_shard=8) for engine in (APART, TOGETHER))
    assert float(allocated_bytes(apart.stages[0], apart.case)) == float(
        allocated_bytes(together.stages[0], together.case)
    )


def test_in_a_pipeline_an_embedding_of_its_own_is_resharded_after_each_pass() -> None:
    """`tests/real/test_verify_pipeline.py` holds each stage against torch's own pipelining."""
    peaks = [
        outlay.count(
            llama(4),
            outlay.Job(4096, 16),
            outlay.load_cluster("16xh100-sxm"),
            Layout(pp=2, zero=3, dp_shard=8, micro_batch=1),
            engine,
        ).memory.peak_bytes
        for engine in (APART, TOGETHER)
    ]
    assert peaks[0] < peaks[1]
