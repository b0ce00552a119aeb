"""Checkpoints of torch on a chain of layers that keep two tensors each: what stands after the forward pass, what at the
peak of the backward pass, and how often layers run, counted in tensors."""

import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from outlay.memory.activations import checkpoint_units
from outlay.memory.recompute import advances, revolve
from outlay.memory.ways import Operation, curve

pytestmark = pytest.mark.filterwarnings("ignore")
SIZE = 1024  # values of every tensor
BYTES = 4 * SIZE
TAPE = 2  # tensors that a layer keeps: the inputs of its two operations


class Standing(TorchDispatchMode):
    """Counts the tensors of full size that stand: each storage once, from its operation until it is freed."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[int] = set()
        self.most = self.now = 0
        self.ran: Counter[Any] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        self.ran[func] += 1
        if isinstance(made, Tensor) and made.untyped_storage().nbytes() == BYTES:
            self._watch(made.untyped_storage())
        return made

    def _watch(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key not in self.seen:
            self.seen.add(key)
            self.now += 1
            self.most = max(self.most, self.now)
            weakref.finalize(storage, self._gone, key)

    def _gone(self, key: int) -> None:
        self.seen.discard(key)
        self.now -= 1


class Scaled(torch.autograd.Function):
    """An operation that keeps its input, and whose backward pass needs no tensor but the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        return gradient.mul_(x) if gradient.untyped_storage().nbytes() == BYTES else gradient * x


def part(count: int) -> Callable[[Tensor], Tensor]:
    """Some layers in a row, of two operations each."""

    def run(x: Tensor) -> Tensor:
        for _ in range(TAPE * count):
            x = Scaled.apply(x)  # type: ignore[no-untyped-call]
        return x

    return run


EXP, CLONE = torch.ops.aten.exp.default, torch.ops.aten.clone.default


def measured(layers: int, segments: int) -> tuple[int, int, int]:
    """Tensors that stand after the forward pass, the most of the backward pass, and operations that ran again."""
    leaf = torch.randn(SIZE, requires_grad=True)
    with Standing() as standing:
        x = leaf * 1
        for _ in range(segments):
            x = checkpoint(part(layers // segments), x, use_reentrant=False)
        loss = x.sum()
        del x
        stored, before = standing.now, standing.ran[CLONE]
        standing.most = standing.now
        loss.backward()
        return stored, standing.most, standing.ran[CLONE] - before


@pytest.mark.parametrize("segments", [1, 2, 4, 8, 16])
def test_segments_store_their_inputs_and_peak_in_the_one_that_runs_again(segments: int) -> None:
    stored, peak, again = measured(16, segments)

    assert stored == segments
    assert peak == segments - 1 + TAPE * 16 // segments + 1 == checkpoint_units(16, segments, TAPE)
    assert again == TAPE * 16


def test_the_best_number_of_segments_is_that_of_the_whole_tape() -> None:
    peaks = {segments: measured(64, segments)[1] for segments in (1, 2, 4, 8, 16, 32, 64)}

    assert peaks[8] == peaks[16] == min(peaks.values()) == 24
    assert all(peak == checkpoint_units(64, segments, TAPE) for segments, peak in peaks.items())


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
