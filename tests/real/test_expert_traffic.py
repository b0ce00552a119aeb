"""What torch's own operations read and write around experts with biases, as Megatron-Core runs them.

Every operation of an eager framework is a kernel that reads its inputs and writes its output. A mode sees each of them,
forward and backward, and adds up their bytes; views move nothing.
"""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from outlay.engines.tables import kernel_set

ROWS, WIDTH, EXPERTS = 512, 256, 4
SMALL = ROWS * 8  # bytes of what is broadcast: biases and weights of tokens
KERNELS = kernel_set("transformer_engine")


class Moved(TorchDispatchMode):
    """Bytes that operations read and write, what is small left out."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        made = [one for one in tree_leaves(out) if isinstance(one, Tensor)]
        read = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        there = {one.untyped_storage().data_ptr() for one in read}
        view = not func._schema.is_mutable and any(one.untyped_storage().data_ptr() in there for one in made)
        if not view:
            sizes = [one.numel() * one.element_size() for one in (*read, *made)]
            self.bytes += sum(size for size in sizes if size > SMALL)
        return out


def passes(run: Any, *inputs: Tensor) -> tuple[int, int]:
    """Bytes of a forward and of its backward pass."""
    with Moved() as forward:
        out = run(*inputs)
    gradient = torch.ones_like(out)
    with Moved() as backward:
        out.backward(gradient)
    return forward.bytes, backward.bytes


def cut_off(x: Tensor) -> Tensor:
    """Gate and up, each cut off, side by side again."""
    gate, up = x.chunk(2, -1)
    return torch.cat((gate.clamp(max=7.0), up.clamp(-7.0, 7.0)), -1)


def with_biases(given: Tensor, biases: Tensor, weights: Tensor) -> Tensor:
    """The bias of each expert times the weight of each of its tokens, added expert by expert, in fp32."""
    each = zip(given.split(ROWS // EXPERTS), biases, weights.split(ROWS // EXPERTS), strict=True)
    return torch.cat([one + bias * weight for one, bias, weight in each]).to(given.dtype)


def test_cutting_off_gate_and_up_moves_what_is_counted() -> None:
    values = torch.randn(ROWS, 2 * WIDTH, dtype=torch.bfloat16, requires_grad=True)
    forward, backward = passes(cut_off, values)

    assert forward == KERNELS.clamp.moves * 2 * values.numel()
    assert backward == KERNELS.clamp.moves_back * 2 * values.numel()


def test_biases_behind_experts_move_what_is_counted() -> None:
    given = torch.randn(ROWS, WIDTH, dtype=torch.bfloat16, requires_grad=True)
    biases = torch.randn(EXPERTS, WIDTH, dtype=torch.bfloat16, requires_grad=True)
    weights = torch.rand(ROWS, 1, requires_grad=True)
    forward, backward = passes(with_biases, given, biases, weights)

    assert forward == KERNELS.expert_bias.moves * 2 * given.numel()
    assert backward == KERNELS.expert_bias.moves_back * 2 * given.numel()
