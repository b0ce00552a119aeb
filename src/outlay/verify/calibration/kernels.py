"""The kernels that are timed, as a framework runs them: each makes a new tensor for what comes out. Loads torch."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from ..models.llama import Norm, angles, cross_entropy, rotated
from .parts import BACK, GATE, LOSS, NORM, RESIDUAL, ROTATE
from .shapes import COPIED
from .tasks import FORWARD, INPUT_GRADIENT, Task

TYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
Call = Callable[[], object]


def kernel_of(task: Task, device: torch.device) -> Call:
    """One run of a task that needs no other rank."""
    makers = {"matmul": _matmul, "attention": _attention, "memory": _memory, "elementwise": _part, "launch": _launch}
    return makers[task.kind](task, device)


def _matmul(task: Task, device: torch.device) -> Call:
    """y = x W', dx = dy W, dW = dy' x, as `linear` of torch runs them."""
    tokens, ins, outs = task.sizes
    kind: dict[str, Any] = {"dtype": TYPES[task.precision], "device": device}
    if task.what == FORWARD:
        x, weight = torch.randn(tokens, ins, **kind), torch.randn(outs, ins, **kind)
        return lambda: functional.linear(x, weight)
    gradient = torch.randn(tokens, outs, **kind)
    if task.what == INPUT_GRADIENT:
        weight = torch.randn(outs, ins, **kind)
        return lambda: gradient @ weight
    x = torch.randn(tokens, ins, **kind)
    return lambda: gradient.t() @ x


def _attention(task: Task, device: torch.device) -> Call:
    """The fused causal core, or its backward pass."""
    sequences, heads, keys, width, tokens = task.sizes
    kind = {"dtype": TYPES[task.precision], "device": device}
    made = [torch.randn(sequences, tokens, many, width, **kind).transpose(1, 2) for many in (heads, keys, keys)]
    back = task.what != FORWARD
    q, k, v = (each.requires_grad_(back) for each in made)

    def core() -> torch.Tensor:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=heads != keys)

    if not back:
        return core
    out = core()
    gradient = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)


def _memory(task: Task, device: torch.device) -> Call:
    (values,) = task.sizes
    left, right = (torch.randn(values, device=device).to(TYPES[task.precision]) for _ in range(2))
    if task.what == COPIED:
        return lambda: right.copy_(left)
    return lambda: left + right


def _part(task: Task, device: torch.device) -> Call:
    """A part of a model, or its backward pass; of a residual that is the sum of two gradients."""
    tokens, width, rotated_width, head = task.sizes
    name, back = task.what.removesuffix(BACK), task.what.endswith(BACK)
    kind: dict[str, Any] = {"dtype": TYPES[task.precision], "device": device}
    wide = width // 2 if name == GATE else width
    shape = (1, rotated_width // head, tokens, head) if name == ROTATE else (1, tokens, wide)
    inputs = [torch.randn(shape, **kind).requires_grad_(back) for _ in range(2 if name in (GATE, RESIDUAL) else 1)]
    if name == NORM:
        norm = Norm(width, fused=device.type == "cpu").to(**kind)  # torch has a fused one on a GPU
        inputs.append(norm.weight)
    if name == RESIDUAL:
        left, right = (each.detach() for each in inputs)
        return lambda: left + right
    tables = [each.to(device) for each in angles(inputs[0])] if name == ROTATE else []
    targets = torch.randint(wide, (1, tokens), device=device)
    parts: dict[str, Call] = {
        NORM: lambda: norm(inputs[0]),
        ROTATE: lambda: rotated(inputs[0], *tables),
        GATE: lambda: functional.silu(inputs[0]) * inputs[1],
        LOSS: lambda: cross_entropy(inputs[0], targets),
    }
    if not back:
        return parts[name]
    out: Any = parts[name]()
    gradient = torch.randn_like(out)
    return lambda: torch.autograd.grad(out, inputs, gradient, retain_graph=True)


def _launch(task: Task, device: torch.device) -> Call:
    """Tiny kernels in a row. On a GPU they are one graph, so that the gaps are its own, not the host's."""
    (many,) = task.sizes
    tiny = torch.zeros(1, device=device)

    def all_of_them() -> None:
        for _ in range(many):
            tiny.add_(1)

    if device.type != "cuda":
        return all_of_them
    all_of_them()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # NCCL's own threads go on meanwhile
        all_of_them()
    replay: Call = graph.replay
    return replay
