"""Checkpoints of torch on a chain of layers that keep two tensors each: what stands after the forward pass, what at the
peak of the backward pass, and how often layers run, counted in tensors."""

import weakref
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from outlay import Job, Layout, load_cluster
from outlay.bill import case_of
from outlay.memory.recompute import advances, revolve
from outlay.memory.ways import Operation, curve
from outlay.model import model as ours
from outlay.search.recompute.operations import Layer
from outlay.search.recompute.stages import Group, recompute
from outlay.show.recompute.policy import saved, uncompiled
from outlay.verify.comparisons.segments import compare_segments
from outlay.verify.comparisons.standing import SIZE, Standing
from outlay.verify.models.llama import Attention, Block, SwiGLU

pytestmark = pytest.mark.filterwarnings("ignore")
EXP = torch.ops.aten.exp.default


@pytest.mark.parametrize(("layers", "segments"), [(16, 1), (16, 2), (16, 4), (16, 8), (16, 16), (64, 8), (64, 16)])
def test_segments_store_their_inputs_and_peak_in_the_one_that_runs_again(layers: int, segments: int) -> None:
    stored, peak, again = compare_segments(layers, segments)

    assert stored.agrees() and stored.measured == segments
    assert peak.agrees() and peak.measured == segments - 1 + 2 * layers // segments + 1
    assert again.agrees() and again.measured == 2 * layers


def test_the_best_number_of_segments_is_that_of_the_whole_tape() -> None:
    peaks = {segments: compare_segments(64, segments)[1] for segments in (1, 2, 4, 8, 16, 32, 64)}

    assert peaks[8].measured == peaks[16].measured == min(peak.measured for peak in peaks.values()) == 24
    assert all(peak.agrees() for peak in peaks.values())


def chain(x: Tensor, layers: int) -> Tensor:
    """Layers of two operations."""
    for _ in range(layers):
        x = torch.cos(torch.sin(x))
    return x


def test_the_binomial_plan_runs_a_real_chain_with_its_slots_and_steps() -> None:
    """Torch runs the plan by hand: no more inputs stand than slots, and the gradient is that of the whole chain."""
    layers, slots, steps = 24, 4, 0
    first = torch.randn(SIZE, dtype=torch.float64)
    kept, current, gradient = dict[int, Tensor](), first, torch.ones_like(first)
    for action, start, end in revolve(layers, slots):
        if action == "keep":
            kept[start] = current
        elif action == "advance":
            current, steps = chain(kept[start], end - start), steps + end - start
        elif action == "back":
            source = kept.get(start, current).detach().requires_grad_()
            torch.cos(torch.sin(source)).backward(gradient)
            assert source.grad is not None
            gradient = source.grad
        else:
            del kept[start]
            current = kept[max(kept)] if kept else first
        assert len(kept) <= slots
    whole = first.clone().requires_grad_()
    chain(whole, layers).sum().backward()

    assert steps == advances(layers, slots)
    assert torch.equal(gradient, whole.grad)


def test_a_policy_saves_what_it_names_and_runs_the_rest_again() -> None:
    """A layer of three operations: dropping the outputs of two of them frees what the curve says, and takes it."""

    def three(x: Tensor) -> Tensor:
        return torch.cos(torch.exp(torch.sin(x)))  # cos keeps its input, exp its output: one tensor; sin keeps x

    def keeps(saved: set[Any]) -> tuple[int, int]:
        def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op in saved else CheckpointPolicy.PREFER_RECOMPUTE

        leaf = torch.randn(SIZE, requires_grad=True)
        with Standing() as standing:
            x = leaf * 1
            out = checkpoint(
                three, x, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(policy)
            )
            loss = out.sum()
            del x, out
            stored, before = standing.now, standing.ran[EXP]
            loss.backward()
            return stored - 1, standing.ran[EXP] - before  # the input stands anyway

    rows = [Operation("sin", 1.0), Operation("exp", 1.0, 0.0, 1.0, (0,)), Operation("cos", 1.0)]
    points = {point.again: point for point in curve(rows, 1.0)}

    assert keeps({EXP}) == (1 - points[()].freed, points[()].seconds) == (1, 0)
    assert keeps(set()) == (1 - points[0, 1].freed, 1) == (0, 1)


# --- the printed policy, on a real layer ----------------------------------------------------------------------------

HIDDEN, WIDTH, HEADS, LENGTH = 64, 192, 4, 128
ATEN, NORM = torch.ops.aten, torch.ops.outlay.rms_norm.default
# Which operation of a layer each of these makes the output of, or a tensor that it keeps, in the order in which they
# run. Values are not rotated, so the third product is both what `qkv` and what `rotate` gives.
MADE: dict[Any, list[str]] = {
    ATEN.mm.default: ["qkv", "qkv", "qkv rotate", "proj", "mlp_up", "mlp_up", "mlp_down"],
    ATEN._scaled_dot_product_flash_attention_for_cpu.default: ["attention"],
    ATEN.add.Tensor: ["rotate", "rotate", "residual", "residual_2"],
    ATEN.mul.Tensor: [*[""] * 5, "mlp_activation"],
    NORM: ["input_norm", "post_norm"],
    ATEN.silu.default: ["mlp_activation"],
}
# How often each of these runs in an operation: what tells that it ran again.
RUNS = {"qkv": (ATEN.mm.default, 3), "proj": (ATEN.mm.default, 1), "mlp_up": (ATEN.mm.default, 2),
        "mlp_down": (ATEN.mm.default, 1), "input_norm": (NORM, 1), "post_norm": (NORM, 1),
        "attention": (ATEN._scaled_dot_product_flash_attention_for_cpu.default, 1),
        "mlp_activation": (ATEN.silu.default, 1)}  # fmt: skip


class Held(TorchDispatchMode):
    """Counts the bytes of all storages that were made and stand, and how often each operation of torch ran."""

    def __init__(self, layer: Block) -> None:
        super().__init__()
        self.weights = {weight.untyped_storage()._cdata for weight in layer.parameters()}
        self.sizes: dict[int, int] = {}
        self.ran: Counter[Any] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        self.ran[func] += 1
        for each in made if isinstance(made, tuple) else (made,):
            if isinstance(each, Tensor):
                self._watch(each.untyped_storage())
        return made

    def _watch(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key not in self.sizes and key not in self.weights:
            self.sizes[key] = storage.nbytes()
            weakref.finalize(storage, self.sizes.pop, key, None)


def policy_of(saved: set[str]) -> Callable[..., CheckpointPolicy]:
    """Saves what the operations of these names give and keep; counts the calls of each pass to know which is which."""
    calls: Counter[tuple[Any, bool]] = Counter()

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        if op not in MADE:
            return CheckpointPolicy.PREFER_RECOMPUTE
        place = calls[op, ctx.is_recompute]
        calls[op, ctx.is_recompute] += 1
        named = not saved.isdisjoint(MADE[op][place].split())
        return CheckpointPolicy.MUST_SAVE if named else CheckpointPolicy.PREFER_RECOMPUTE

    return policy


def run_layer(saved: set[str] | None) -> tuple[int, Counter[Any], Tensor]:
    """Bytes that stand between the passes but for the output, what the backward pass ran, and the input's gradient."""
    torch.manual_seed(0)
    layer = Block(HIDDEN, Attention(HIDDEN, HEADS, HEADS, rotate=True), SwiGLU(HIDDEN, WIDTH))
    leaf = torch.randn(1, LENGTH, HIDDEN, requires_grad=True)
    with Held(layer) as held:
        x = leaf * 1
        if saved is None:
            out = layer(x)
        else:
            contexts = partial(create_selective_checkpoint_contexts, policy_of(saved))
            out = checkpoint(layer, x, use_reentrant=False, context_fn=contexts)
        del x
        stands = sum(held.sizes.values()) - out.untyped_storage().nbytes()
        before = held.ran.copy()
        out.sum().backward()
    assert leaf.grad is not None
    return stands, held.ran - before, leaf.grad


def printed(share: float) -> tuple[list[Group], Layer]:
    """The groups of the best plan of such layers in a share of their memory, and what one of them is."""
    attention, mlp = ours.Attention(HEADS, HEADS, HIDDEN // HEADS, HIDDEN // HEADS), ours.FeedForward(WIDTH)
    block = ours.decoder_block("layer", attention, mlp)
    model = ours.Model("llama", "llama", HIDDEN, 1024, (block,), (0,) * 8)
    job = Job(sequence_length=LENGTH, global_batch=1, precision="fp32")
    case = case_of(model, job, load_cluster("1xh100-sxm"), Layout(), "fsdp2")[0]
    found = recompute(case, share * recompute(case).choices[0].needed)
    return list(found.groups), found.plan.room.layers[0]


@pytest.mark.parametrize("share", [0.3, 0.45, 0.6, 0.75, 0.9])
def test_the_printed_policy_keeps_its_bytes_and_runs_what_it_says_in_a_real_layer(share: float) -> None:
    groups, layer = printed(share)
    partly = [group for group in groups if group.again and not group.length]
    _, plain, gradient = run_layer(None)

    assert partly
    for group in partly:
        stands, ran, same = run_layer({*saved(group, layer)})
        again = Counter[Any]()
        for name in (*group.again, *uncompiled(group, layer)):
            again.update(dict([RUNS[name]]) if name in RUNS else {})
        if "qkv" in uncompiled(group, layer) and "rotate" in saved(group, layer):
            again[ATEN.mm.default] -= 1  # the values are saved as they come
        counted = {op: ran[op] - plain[op] for op, _ in RUNS.values()}
        assert torch.equal(same, gradient)
        assert {op: count for op, count in counted.items() if count} == again
        assert stands == group.kept
