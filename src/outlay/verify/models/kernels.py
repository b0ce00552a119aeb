"""Kernels that torch has on a GPU and not on a CPU, each as one operation that keeps the same. Loads torch."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Partial


@torch.library.custom_op("outlay::rms_norm", mutates_args=())
def rms_norm(x: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """An RMS norm in one kernel: what it gives, and one fp32 statistic a token."""
    out, scale = torch.empty_like(x), x.new_empty((*x.shape[:-1], 1), dtype=torch.float32)
    for part, into, of in zip(*map(rows_of, (x, out, scale)), strict=True):
        of.copy_(torch.rsqrt(part.float().pow(2).mean(-1, keepdim=True) + eps))
        into.copy_(part * of * weight)
    return out, scale


ROWS = 64  # that a kernel on a CPU takes at a time: what it holds beside them is small, as in one on a GPU


def rows_of(x: Tensor) -> tuple[Tensor, ...]:
    """Some rows after the others, each a part of the same memory."""
    found: tuple[Tensor, ...] = x.split(ROWS, dim=-2)
    return found


@rms_norm.register_fake
def _(x: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), x.new_empty((*x.shape[:-1], 1), dtype=torch.float32)


@torch.library.custom_op("outlay::rms_norm_backward", mutates_args=())
def rms_norm_backward(grad: Tensor, x: Tensor, weight: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Its backward pass in one kernel: the gradients of the input and of the weight."""
    back, own = torch.empty_like(x), torch.zeros(weight.shape, dtype=torch.float32, device=x.device)
    for part, of, into, come in zip(*map(rows_of, (x, scale, back, grad)), strict=True):
        unit, inner = part * of, come * weight
        mean = (inner * unit).mean(-1, keepdim=True)
        into.copy_(of * (inner - unit * mean))
        own += (come * unit).sum(dim=tuple(range(x.dim() - 1)))
    return back, own.to(weight.dtype)


@rms_norm_backward.register_fake
def _(grad: Tensor, x: Tensor, weight: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(weight)


class FusedNorm(torch.autograd.Function):
    """An RMS norm as a fused kernel runs it: it keeps its input and one fp32 statistic a token, and copies nothing."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        out, scale = rms_norm(local(x), local(weight), eps)
        ctx.save_for_backward(x, weight, scale)
        return like(out, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight, scale = ctx.saved_tensors
        back, own = rms_norm_backward(local(grad), local(x), local(weight), scale)
        return like(back, x), like(own, x, Partial()), None


@torch.library.custom_op("outlay::attention", mutates_args=())
def attention(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Causal attention in one kernel, values as wide as they are: what it gives, and one fp32 statistic a score row."""
    scores = (q @ k.transpose(-1, -2)).float() / q.shape[-1] ** 0.5
    scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
    return scores.softmax(-1).to(v.dtype) @ v, scores.logsumexp(-1)


@attention.register_fake
def _(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(v), v.new_empty(v.shape[:-1], dtype=torch.float32)


@torch.library.custom_op("outlay::attention_backward", mutates_args=())
def attention_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, rows: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Its backward pass in one kernel, the scores computed again: the gradients of queries, keys and values."""
    scale = q.shape[-1] ** -0.5
    scores = (q @ k.transpose(-1, -2)).float() * scale
    hidden = torch.ones_like(scores, dtype=torch.bool).triu(1)
    weights = (scores - rows.unsqueeze(-1)).exp().masked_fill(hidden, 0)
    inner = grad.float() @ v.float().transpose(-1, -2) - (grad * out).float().sum(-1, keepdim=True)
    back = (weights * inner * scale).to(q.dtype)
    return back @ k, back.transpose(-1, -2) @ q, weights.to(v.dtype).transpose(-1, -2) @ grad


@attention_backward.register_fake
def _(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


class FusedAttention(torch.autograd.Function):
    """Attention as a fused kernel runs it: it keeps what it reads, what it gives, and a statistic a row of scores."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out, rows = attention(q, k, v)
        ctx.save_for_backward(q, k, v, out, rows)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = attention_backward(grad, *ctx.saved_tensors)
        return q, k, v


def local(tensor: Tensor) -> Tensor:
    """The part of a tensor that this rank holds."""
    return tensor._local_tensor if isinstance(tensor, DTensor) else tensor


def like(part: Tensor, whole: Tensor, *placements: Any) -> Tensor:
    """This rank's part of a tensor that is spread as another one is, or otherwise."""
    if not isinstance(whole, DTensor):
        return part
    return DTensor.from_local(part, whole.device_mesh, placements or whole.placements, run_check=False)


class Dropout(nn.Module):
    """Dropout whose mask takes one byte a value, as on a GPU. (On a CPU, F.dropout keeps it in the input's type.)"""

    def forward(self, x: Tensor) -> Tensor:
        return torch.native_dropout(x, 0.1, True)[0]
