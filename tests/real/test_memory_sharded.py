"""Memory of one step under FSDP2 against torch's own tracker: states and tape to the byte, the peak, and where it is.

Widths are real, layers are few: nothing has data. The largest moment is found by torch, the counted one by formulas.
"""

from dataclasses import replace

import pytest

import outlay
from outlay.errors import InputError
from outlay.layout.axes import Layout
from outlay.model import model as ours
from outlay.verify.comparison import Comparison
from outlay.verify.comparisons.memory import compare_memory

pytestmark = pytest.mark.filterwarnings("ignore")
PEAK = 1e-3  # what is left: numbers of a few bytes a token, such as the places of targets in cut logits
APART = outlay.load_engine("fsdp2-uncompiled")
TOGETHER = replace(APART, ends_apart=False)  # all but the layers is one group, which the root has by default
TRANSFORMERS = 0.012  # its norm keeps a copy in fp32 and not its input, of the layer that runs again


def block(hidden: int, heads: int, kv_heads: int, part: ours.FeedForward | ours.Experts) -> ours.Block:
    return ours.decoder_block("layer", ours.Attention(heads, kv_heads, hidden // heads, hidden // heads), part)


def llama(layers: int, hidden: int = 4096, kv_heads: int = 8, width: int = 14336, vocab: int = 32000) -> ours.Model:
    """A model of Llama's kind, with heads of 128."""
    part = ours.FeedForward(width)
    return ours.Model("llama", "llama", hidden, vocab, (block(hidden, hidden // 128, kv_heads, part),), (0,) * layers)


def experts(layers: int, count: int, active: int, width: int) -> ours.Model:
    """A small mixture."""
    part = ours.Experts(count, active, width)
    return ours.Model("experts", "mixtral", 2048, 32000, (block(2048, 16, 4, part),), (0,) * layers)


def compared(
    model: ours.Model,
    sequence: int,
    engine: outlay.Engine | str = "fsdp2-uncompiled",
    micro_batches: int = 1,
    **axes: object,
) -> dict[str, Comparison]:
    """All comparisons of one layout, by name."""
    at = Layout(**{"micro_batch": 1, "zero": 3} | axes)  # type: ignore[arg-type]
    copies = (at.dp_shard or 1) * (at.dp_replicate or 1)
    job = outlay.Job(sequence_length=sequence, global_batch=micro_batches * at.micro_batch * copies, precision="bf16")
    cluster = outlay.load_cluster(f"{copies * (at.tp or 1)}xh100-sxm")
    driver = outlay.load_engine(engine) if isinstance(engine, str) else engine
    return {each.name: each for each in compare_memory(model, job, cluster, at, driver)}


def holds(found: dict[str, Comparison], within: float = PEAK) -> None:
    for name in ("weights", "gradients", "optimizer", "tape"):
        assert found[name].measured > 0
        assert found[name].counted == found[name].measured, found[name]
    assert found["peak"].agrees(within), found["peak"]
    assert found["peak"].measured > found["weights"].measured + found["optimizer"].measured
    assert found["place of the peak"].agrees(), found["place of the peak"]


wrapped = pytest.mark.parametrize("engine", [APART, TOGETHER], ids=["ends apart", "ends together"])


@wrapped
@pytest.mark.parametrize("ranks", [8, 64])
@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_a_sharded_llama_holds_what_is_counted(ranks: int, recompute: str, engine: outlay.Engine) -> None:
    holds(compared(llama(3), 4096, engine, dp_shard=ranks, recompute=recompute))


@wrapped
@pytest.mark.parametrize("recompute", ["none", "full"])
@pytest.mark.parametrize("sliced", [False, True], ids=["tp", "tp and sp"])
def test_sharding_around_tensor_parallelism_holds_what_is_counted(
    sliced: bool, recompute: str, engine: outlay.Engine
) -> None:
    holds(compared(llama(3), 4096, engine, dp_shard=8, tp=8, sp=sliced, recompute=recompute))


@wrapped
def test_copies_of_shards_hold_what_the_shards_hold(engine: outlay.Engine) -> None:
    holds(compared(llama(3), 4096, engine, dp_shard=8, dp_replicate=8))


@wrapped
def test_weights_that_are_not_resharded_stay_gathered(engine: outlay.Engine) -> None:
    holds(compared(llama(3), 4096, engine, dp_shard=8, zero=2))


def test_a_short_sequence_is_largest_where_the_ends_of_a_large_vocabulary_scatter_their_gradients() -> None:
    found = compared(llama(2, vocab=128256), 1024, TOGETHER, dp_shard=64, recompute="full")

    holds(found)
    assert found["place of the peak"].note == "counted: ends; torch: ends"


@pytest.mark.parametrize("zero", [3, 2])
def test_a_head_of_its_own_is_largest_there_where_it_scatters_its_gradient(zero: int) -> None:
    found = compared(llama(2, vocab=128256), 1024, dp_shard=64, zero=zero, recompute="full")

    holds(found)
    assert found["place of the peak"].note == "counted: head; torch: head"


@pytest.mark.parametrize("cut", [1, 8])
def test_an_embedding_of_its_own_is_largest_where_its_gradient_is_scattered_at_the_end(cut: int) -> None:
    """Over few ranks the gradients of all layers stand then; under tensor parallelism a partial sum of all rows."""
    found = compared(llama(4, vocab=128256), 1024, dp_shard=8, tp=cut, recompute="full")

    holds(found)
    assert found["place of the peak"].note == "counted: ends; torch: ends"


def test_the_first_layer_is_largest_where_the_embedding_is_gathered_ahead_of_its_backward_pass() -> None:
    found = compared(llama(2, vocab=64000), 2048, dp_shard=8, recompute="full")

    holds(found)
    assert found["place of the peak"].note == "counted: layer; torch: layer 0"


def test_ends_that_are_thought_to_be_one_group_are_found() -> None:
    """A count of one way of wrapping is held against the other."""
    found = compared(llama(2, vocab=128256), 1024, APART, dp_shard=64, recompute="full")
    other = compared(llama(2, vocab=128256), 1024, TOGETHER, dp_shard=64, recompute="full")

    assert other["peak"].counted > 1.6 * found["peak"].measured


def test_over_few_ranks_the_gradients_that_grow_make_a_later_layer_the_largest() -> None:
    """Each layer that is done leaves a shard of its gradients, larger here than the input that it frees."""
    found = compared(llama(5), 1024, TOGETHER, dp_shard=8, recompute="full")

    holds(found)
    assert found["place of the peak"].note == "counted: layer; torch: layer 1"  # the last that gathers one ahead


@pytest.mark.parametrize(
    ("engine", "place"), [(APART, "layer 3"), (TOGETHER, "layer 2")], ids=["ends apart", "ends together"]
)
@pytest.mark.parametrize("micro_batches", [2, 3])
def test_beside_gradients_that_wait_whole_stands_what_is_added_to_them_and_what_is_scattered(
    micro_batches: int, engine: outlay.Engine, place: str
) -> None:
    found = compared(llama(4), 2048, engine, micro_batches, dp_shard=8, recompute="full", accumulate_whole=True)

    assert found["tape"].counted == found["tape"].measured
    assert found["peak"].agrees(PEAK), found["peak"]
    assert found["place of the peak"].note == f"counted: layer; torch: {place}"


def test_a_head_of_its_own_scatters_its_gradient_that_waited_whole_beside_all_others() -> None:
    found = compared(llama(4, vocab=128256), 1024, APART, 2, dp_shard=8, recompute="full", accumulate_whole=True)

    assert found["peak"].agrees(PEAK), found["peak"]
    assert found["place of the peak"].note == "counted: head; torch: head"


@pytest.mark.parametrize(("layers", "count", "active", "width", "ranks"), [(3, 8, 2, 1024, 8), (2, 64, 4, 768, 64)])
def test_a_mixture_of_experts_holds_what_is_counted(
    layers: int, count: int, active: int, width: int, ranks: int
) -> None:
    holds(compared(experts(layers, count, active, width), 4096, dp_shard=ranks))


def test_full_recompute_of_experts_holds_what_is_counted() -> None:
    holds(compared(experts(3, 64, 4, 768), 4096, dp_shard=64, recompute="full"))


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_llama_of_transformers_holds_what_is_counted(recompute: str) -> None:
    holds(compared(llama(3), 2048, "hf_trainer", dp_shard=8, micro_batch=2, recompute=recompute), TRANSFORMERS)


def test_a_count_without_the_gradients_that_wait_to_be_scattered_is_found() -> None:
    without = replace(outlay.load_engine("fsdp2-uncompiled"), scatters_blocks=False)
    found = compared(llama(3), 2048, without, dp_shard=64, recompute="full")

    assert found["tape"].agrees()
    assert not found["peak"].agrees(0.02)


def test_a_loss_that_is_thought_fused_is_found() -> None:
    found = compared(llama(2, vocab=128256), 4096, "fsdp2", dp_shard=64)

    assert not found["peak"].agrees(0.02)


def test_a_pipeline_is_not_compared() -> None:
    with pytest.raises(InputError, match="VER001"):
        compare_memory(
            llama(4),
            outlay.Job(sequence_length=4096, global_batch=32, precision="bf16"),
            outlay.load_cluster("16xh100-sxm"),
            Layout(pp=2, dp_shard=8, zero=3, micro_batch=1),
            outlay.load_engine("fsdp2-uncompiled"),
        )
