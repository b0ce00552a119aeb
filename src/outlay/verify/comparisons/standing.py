"""Tensors that stand while a chain of operations runs: each storage once, from its operation until it is freed.

Loads torch.
"""

import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

SIZE = 1024  # values of every tensor
BYTES = 4 * SIZE
TAPE = 2  # tensors that a layer keeps: the inputs of its two operations
AGAIN = torch.ops.aten.clone.default  # what an operation runs forward


class Standing(TorchDispatchMode):
    """Counts the tensors of full size that stand, and how often each operation ran."""

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
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return gradient.mul_(x) if gradient.untyped_storage().nbytes() == BYTES else gradient * x


def part(count: int) -> Callable[[Tensor], Tensor]:
    """Some layers in a row, of two operations each."""

    def run(x: Tensor) -> Tensor:
        for _ in range(TAPE * count):
            x = Scaled.apply(x)
        return x

    return run


def segmented_step(layers: int, segments: int) -> tuple[int, int, int]:
    """Tensors that stand after the forward pass, the most of the backward pass, and operations that ran again."""
    leaf = torch.randn(SIZE, requires_grad=True)
    with Standing() as standing:
        x = leaf * 1
        for _ in range(segments):
            x = checkpoint(part(layers // segments), x, use_reentrant=False)
        loss = x.sum()
        del x
        stored, before = standing.now, standing.ran[AGAIN]
        standing.most = standing.now
        loss.backward()
        return stored, standing.most, standing.ran[AGAIN] - before
