"""Bytes that torch's collectives carry, logged on eight ranks of which one is real, against the traffic formulas.

A log holds the whole tensor of each collective and the size of its group; what one rank sends follows by the ring.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._composable.replicate_with_fsdp import replicate
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor.parallel import loss_parallel

import outlay
from outlay.engines.engine import Engine
from outlay.engines.tables import kernel_set
from outlay.layout.axes import ALONE, Layout
from outlay.layout.sizes import sizes
from outlay.model import model as ours
from outlay.model.blocks import embedding_rows, head_rows, rows
from outlay.sums import split_moves
from outlay.verify.comparisons.collectives import Call, Log, sent, whole_bytes
from outlay.verify.models.llama import Attention, Block, Llama, SwiGLU, cross_entropy, split_tensors

pytestmark = pytest.mark.filterwarnings("ignore")
RANKS, BATCH, TOKENS = 8, 2, 128
HIDDEN, LAYERS, HEADS, WIDTH, VOCAB = 256, 4, 8, 512, 1000
ENDS = VOCAB * HIDDEN, HIDDEN + VOCAB * HIDDEN  # parameters of the embedding; of the final norm and the head
N = sum(ENDS) + LAYERS * (4 * HIDDEN * HIDDEN + 3 * HIDDEN * WIDTH + 2 * HIDDEN)
ACTIVATION = 2 * BATCH * TOKENS * HIDDEN  # B of the hidden vectors of one micro-batch

ATTENTION = ours.Attention(HEADS, HEADS, HIDDEN // HEADS, HIDDEN // HEADS)
BLOCK = ours.decoder_block("layer", ATTENTION, ours.FeedForward(WIDTH))
MODEL = ours.Model("small", "llama", HIDDEN, VOCAB, (BLOCK,), (0,) * LAYERS)
FSDP2 = outlay.load_engine("fsdp2")


# --- data parallelism -----------------------------------------------------------------------------------------------


@contextmanager
def small_model() -> Iterator[tuple[Llama, Tensor]]:
    """The model and its tokens, without data."""
    with FakeTensorMode():
        yield Llama(HIDDEN, LAYERS, HEADS, HEADS, WIDTH, VOCAB), torch.zeros(BATCH, TOKENS, dtype=torch.long)


def logged_step(
    wrap: Callable[[Llama], None], micro_batches: int = 1, before: Callable[[Llama, bool], None] | None = None
) -> list[Call]:
    """The collectives of a second step. `before` is called ahead of each micro-batch, with whether it is the last."""
    with small_model() as (model, tokens):
        wrap(model)

        def step() -> None:
            for turn in range(micro_batches):
                if before:
                    before(model, turn == micro_batches - 1)
                cross_entropy(model(tokens), tokens.clone()).backward()

        step()
        with Log() as log:
            step()
    return log.calls


def sharded(mesh: DeviceMesh, reshard: bool | None, reduce: torch.dtype = torch.float32) -> Callable[[Llama], None]:
    """FSDP2 around each layer and around the rest, with one answer to whether weights are resharded after forward."""
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduce)

    def wrap(model: Llama) -> None:
        for part in (*model.layers, model):
            fully_shard(part, mesh=mesh, mp_policy=policy, reshard_after_forward=reshard)

    return wrap


def bill(layout: Layout, micro_batches: int = 1, engine: Engine = FSDP2) -> outlay.Bill:
    """Our bill of a step of so many micro-batches."""
    batch = layout.dp * BATCH * micro_batches
    job = outlay.Job(sequence_length=TOKENS, global_batch=batch, precision="bf16")
    whole = replace(layout, micro_batch=BATCH)
    return outlay.count(MODEL, job, outlay.load_cluster(f"{whole.world}xh100-sxm"), whole, engine)


def counted(axis: str, layout: Layout, micro_batches: int = 1, engine: Engine = FSDP2) -> float:
    """Bytes one rank sends on an axis in a step."""
    return next(item.bytes for item in bill(layout, micro_batches, engine).traffic if item.axis == axis)


ZERO3, ZERO2, ZERO0 = (replace(ALONE, dp_shard=8, zero=zero) for zero in (3, 2, 0))
RESHARDS_ALL = replace(FSDP2, gathers_ends=False)  # every group is resharded after forward, the root too
TOGETHER = replace(FSDP2, ends_apart=False)  # embedding, final norm and head are the root's own group
HSDP = replace(ALONE, dp_replicate=2, dp_shard=4, zero=3)


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_zero_3_gathers_every_weight_twice_a_micro_batch_and_scatters_every_gradient(
    mesh: DeviceMesh, micro_batches: int
) -> None:
    calls = logged_step(sharded(mesh, reshard=True), micro_batches)

    assert whole_bytes(calls, "gather") == 4 * N * micro_batches
    assert whole_bytes(calls, "scatter") == 4 * N * micro_batches
    assert sent(calls) == counted("dp", ZERO3, micro_batches, RESHARDS_ALL)


def test_gradients_reduced_in_bf16_are_half(mesh: DeviceMesh) -> None:
    calls = logged_step(sharded(mesh, True, torch.bfloat16))

    assert whole_bytes(calls, "gather") + whole_bytes(calls, "scatter") == 3 * 2 * N
    assert sent(calls) == counted("dp", ZERO3, engine=replace(RESHARDS_ALL, reduce_bytes=2))


def test_full_recompute_needs_no_third_gather(mesh: DeviceMesh) -> None:
    def wrap(model: Llama) -> None:
        model.recompute = True
        sharded(mesh, True)(model)

    assert sent(logged_step(wrap)) == counted("dp", ZERO3, engine=RESHARDS_ALL)


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_by_default_the_root_stays_gathered_from_forward_to_backward(mesh: DeviceMesh, micro_batches: int) -> None:
    """reshard_after_forward left out: layers are gathered twice a micro-batch, what the root holds itself once."""
    calls = logged_step(sharded(mesh, reshard=None), micro_batches)

    assert whole_bytes(calls, "gather") == (4 * N - 2 * sum(ENDS)) * micro_batches
    assert whole_bytes(calls, "gather") / N == pytest.approx(3.673 * micro_batches, abs=1e-3 * micro_batches)


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_an_engine_whose_root_stays_gathered_sends_what_fsdp2_sends_by_default(
    mesh: DeviceMesh, micro_batches: int
) -> None:
    calls = logged_step(sharded(mesh, reshard=None), micro_batches)

    assert TOGETHER.gathers_ends
    assert sent(calls) == counted("dp", ZERO3, micro_batches, TOGETHER)


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_with_the_embedding_apart_it_is_gathered_twice_and_the_head_once(mesh: DeviceMesh, micro_batches: int) -> None:
    """As torchtitan wraps: embedding, layers, then final norm and head together, which alone are not resharded.

    No weight is needed for an embedding's backward pass; it is gathered for it all the same.
    """
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)

    def wrap(model: Llama) -> None:
        for part in (model.embedding, *model.layers):
            fully_shard(part, mesh=mesh, mp_policy=policy, reshard_after_forward=True)
        fully_shard([model.norm, model.head], mesh=mesh, mp_policy=policy, reshard_after_forward=False)
        fully_shard(model, mesh=mesh, mp_policy=policy)

    calls = logged_step(wrap, micro_batches)

    assert FSDP2.ends_apart
    assert whole_bytes(calls, "gather") == (4 * N - 2 * ENDS[1]) * micro_batches
    assert sent(calls) == counted("dp", ZERO3, micro_batches)


def test_zero_2_gathers_once_and_scatters_once(mesh: DeviceMesh) -> None:
    calls = logged_step(sharded(mesh, reshard=False))

    assert whole_bytes(calls, "gather") == 2 * N
    assert whole_bytes(calls, "scatter") == 4 * N
    assert sent(calls) == counted("dp", ZERO2)


def test_zero_2_gathers_once_a_micro_batch(mesh: DeviceMesh) -> None:
    calls = logged_step(sharded(mesh, reshard=False), micro_batches=3)

    assert whole_bytes(calls, "gather") == 3 * 2 * N
    assert sent(calls) == counted("dp", ZERO2, micro_batches=3)


@pytest.fixture(scope="module")
def two_by_four(eight_ranks: None) -> DeviceMesh:
    return init_device_mesh("cpu", (2, 4), mesh_dim_names=("replicate", "shard"))


def test_copies_of_shards_add_an_all_reduce_of_one_shard(two_by_four: DeviceMesh) -> None:
    calls = logged_step(sharded(two_by_four, reshard=True))

    assert {call.ranks for call in calls} == {4, 2}
    assert whole_bytes(calls, "reduce") == 4 * N // 4
    assert sent(calls) == counted("dp", HSDP, engine=RESHARDS_ALL)


def test_copies_are_reduced_once_a_step_where_the_trainer_says_so(two_by_four: DeviceMesh) -> None:
    """As torchtitan does; without that call FSDP2 reduces the copies at every micro-batch."""
    wrap = sharded(two_by_four, reshard=True)
    once = logged_step(wrap, 3, before=lambda model, last: model.set_requires_all_reduce(last))
    every = logged_step(wrap, 3)

    assert sent(once) == counted("dp", HSDP, micro_batches=3, engine=RESHARDS_ALL)
    assert whole_bytes(every, "reduce") == 3 * whole_bytes(once, "reduce")


def test_replicas_all_reduce_their_gradients_once(mesh: DeviceMesh) -> None:
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)

    def wrap(model: Llama) -> None:
        for part in (*model.layers, model):
            replicate(part, mesh=mesh, mp_policy=policy)

    one = logged_step(wrap)
    three = logged_step(wrap, 3, before=lambda model, last: model.set_requires_gradient_sync(last))

    assert whole_bytes(one, "reduce") == 4 * N
    assert sent(one) == counted("dp", ZERO0)
    assert sent(three) == counted("dp", ZERO0, micro_batches=3)  # with no sync before the last


# --- data parallelism of a pipeline's stage --------------------------------------------------------------------------

STAGE_LAYERS, MICRO_BATCHES = 3, 4


class Watched(PipelineStage):
    """A stage that notes how many bytes of whole gradients it holds after each backward pass."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.held: list[int] = []

    def backward_one_chunk(self, *args: Any, **more: Any) -> None:
        super().backward_one_chunk(*args, **more)
        self.held.append(whole_gradients(self.submod))


def whole_gradients(stage: nn.Module) -> int:
    """Bytes of gradients that wait, not yet sharded, in any of the types FSDP2 keeps them in."""
    groups = [group for layer in stage for group in fully_shard.state(layer)._fsdp_param_groups]
    weights = [weight for group in groups for weight in group.fsdp_params]
    plain = [weight._unsharded_param.grad for weight in weights if hasattr(weight, "_unsharded_param")]
    summed = [weight.unsharded_accumulated_grad for weight in weights]
    return sum(gradient.nbytes for gradient in (*plain, *summed) if gradient is not None)


@dataclass(frozen=True)
class StageStep:
    """What one step of a stage did: its collectives, the whole gradients it held, and its parameters."""

    calls: list[Call]
    held: list[int]
    parameters: int


def stage_step(
    eight_by_one: DeviceMesh, reshard: bool, micro_batches: int = MICRO_BATCHES, schedule: type = Schedule1F1B
) -> StageStep:
    """One step of torch's own pipeline stage around FSDP2. A single stage: its neighbours would change nothing here."""
    stage = nn.Sequential(*(Block(64, Attention(64, 4, 4), SwiGLU(64, 128)) for _ in range(STAGE_LAYERS)))
    owned = sum(weight.numel() for weight in stage.parameters())
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in stage:
        fully_shard(layer, mesh=eight_by_one["data"], mp_policy=policy, reshard_after_forward=reshard)
    fully_shard(stage, mesh=eight_by_one["data"], mp_policy=policy, reshard_after_forward=reshard)
    stage_of_one = Watched(stage, 0, 1, torch.device("cpu"), group=eight_by_one["pipe"].get_group())
    runner = schedule(stage_of_one, micro_batches, loss_fn=lambda out, target: out.float().sum())
    x = torch.zeros(micro_batches, 16, 64, requires_grad=True)
    runner.step(x, target=x)  # the first step also runs the stage once to learn its shapes
    stage_of_one.held = []
    with Log() as log:
        runner.step(x, target=x)
    return StageStep(log.calls, stage_of_one.held, owned)


@pytest.fixture(scope="module")
def eight_by_one(eight_ranks: None) -> DeviceMesh:
    return init_device_mesh("cpu", (1, 8), mesh_dim_names=("pipe", "data"))


schedules = pytest.mark.parametrize("schedule", [Schedule1F1B, ScheduleGPipe])


@schedules
def test_a_pipelines_stage_scatters_its_gradients_once_a_step_and_holds_them_whole_until_then(
    eight_by_one: DeviceMesh, schedule: type
) -> None:
    step = stage_step(eight_by_one, reshard=False, schedule=schedule)

    assert whole_bytes(step.calls, "scatter") == 4 * step.parameters
    assert whole_bytes(step.calls, "gather") == 2 * step.parameters
    assert step.held == [4 * step.parameters] * MICRO_BATCHES


@schedules
def test_a_stage_that_reshards_gathers_once_a_forward_pass_and_once_more(
    eight_by_one: DeviceMesh, schedule: type
) -> None:
    """Weights gathered for a backward pass stay until the next forward pass ends: M + 1 gathers, not 2M."""
    step = stage_step(eight_by_one, reshard=True, schedule=schedule)

    assert whole_bytes(step.calls, "gather") == 2 * step.parameters * (MICRO_BATCHES + 1)
    assert whole_bytes(step.calls, "scatter") == 4 * step.parameters


def piped(zero: int) -> Layout:
    """Two stages, each over eight ranks."""
    return replace(ALONE, pp=2, dp_shard=8, zero=zero)


@pytest.mark.parametrize("zero", [2, 3])
def test_a_stage_sends_no_more_for_more_micro_batches_than_torch_does(eight_by_one: DeviceMesh, zero: int) -> None:
    one, many = (sent(stage_step(eight_by_one, zero == 3, turns).calls) for turns in (1, MICRO_BATCHES))

    ours = counted("dp", piped(zero), MICRO_BATCHES) / counted("dp", piped(zero))
    assert ours == pytest.approx(many / one, rel=1e-12)


@pytest.mark.parametrize("zero", [2, 3])
def test_a_bill_holds_a_stages_gradients_whole(eight_by_one: DeviceMesh, zero: int) -> None:
    """In fp32 whole gradients take as much as all eight shards of fp32 weights."""
    step = stage_step(eight_by_one, reshard=zero == 3)
    held = {item.name: item.value for item in bill(piped(zero), MICRO_BATCHES).memory.items}

    assert max(step.held) == 4 * step.parameters
    assert held["gradients"] == 8 * held["weights"]


# --- tensor parallelism ---------------------------------------------------------------------------------------------

LOSS = 3 * 4 * BATCH * TOKENS  # B of the all-reduces of a loss on cut logits: maximum, sum and target, fp32 a token
TP8, TP8_SP = replace(ALONE, tp=8, micro_batch=BATCH), replace(ALONE, tp=8, sp=True, micro_batch=BATCH)
layouts = pytest.mark.parametrize("layout", [TP8, TP8_SP], ids=["tp8", "tp8 and sp"])


def logged_passes(mesh: DeviceMesh, layout: Layout, recompute: bool = False) -> tuple[list[Call], list[Call]]:
    """The collectives of a forward pass, and of the backward pass after it."""
    with small_model() as (model, tokens), loss_parallel():
        model.recompute = recompute
        split_tensors(model, mesh, layout.sp)
        with Log() as log:
            loss = cross_entropy(model(tokens), tokens.clone())
            forward = list(log.calls)
            loss.backward()
    return forward, log.calls[len(forward) :]


def counted_passes(layout: Layout) -> tuple[float, float]:
    """Bytes one rank sends forward and backward: the moves of four layers and both ends."""
    kernels = kernel_set("pytorch")
    job = outlay.Job(sequence_length=TOKENS, global_batch=BATCH, precision="bf16")
    here = sizes(MODEL, BLOCK, job, layout, FSDP2, kernels)
    ends = [*embedding_rows(MODEL, kernels), *head_rows(MODEL, kernels)]
    moves = split_moves([*rows(MODEL, BLOCK, kernels) * LAYERS, *ends])[1]["tp"]
    return sum(move.sent_forward(here) for move in moves), sum(move.sent_backward(here) for move in moves)


@layouts
def test_tensor_parallelism_sends_what_its_moves_send_in_both_directions(
    bf16: None, mesh: DeviceMesh, layout: Layout
) -> None:
    """Beside them a loss on cut logits reduces three fp32 numbers a token, which no move counts."""
    forward, backward = logged_passes(mesh, layout)
    loss = [call for call in forward if call.whole == LOSS // 3]

    assert len(loss) == 3
    assert (sent(forward) - sent(loss), sent(backward)) == counted_passes(layout)


def test_without_sp_a_layer_makes_four_all_reduces_and_each_end_one(bf16: None, mesh: DeviceMesh) -> None:
    forward, backward = logged_passes(mesh, TP8)

    assert [call.whole for call in forward].count(ACTIVATION) == 2 * LAYERS + 1
    assert [call.whole for call in backward] == [ACTIVATION] * (2 * LAYERS + 1)
    assert {call.kind for call in forward + backward} == {"reduce"}


def test_with_sp_a_layer_makes_four_gathers_and_four_scatters(bf16: None, mesh: DeviceMesh) -> None:
    """Not six gathers: gathered inputs are kept for the backward pass, not gathered again."""
    forward, backward = logged_passes(mesh, TP8_SP)

    for kind in ("gather", "scatter"):
        assert whole_bytes(forward + backward, kind) == (4 * LAYERS + 2) * ACTIVATION


@layouts
def test_a_bill_counts_the_tensor_parallel_bytes_of_a_step(bf16: None, mesh: DeviceMesh, layout: Layout) -> None:
    forward, backward = logged_passes(mesh, layout)
    moved = [call for call in forward + backward if call.whole == ACTIVATION]

    assert counted("tp", layout, micro_batches=3) == pytest.approx(3 * sent(moved), rel=1e-12)


@layouts
def test_full_recompute_sends_all_of_a_layers_forward_again_but_its_last_collective(
    bf16: None, mesh: DeviceMesh, layout: Layout
) -> None:
    """torch stops a recompute at the last tensor that the backward pass needs, which lies before that collective. The
    formula counts the whole forward pass again, as Megatron runs it."""
    forward, backward = logged_passes(mesh, layout, recompute=True)
    moved = [call for call in forward + backward if call.whole == ACTIVATION]
    last = LAYERS * (1 if layout.sp else 2) * ACTIVATION * 7 / 8

    again = replace(layout, recompute="full", recompute_layers=LAYERS)
    assert counted("tp", again) == pytest.approx(sent(moved) + last, rel=1e-12)
