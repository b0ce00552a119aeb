"""Layers of other families: GPT-2 with every score written out, and latent attention. Loads torch."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from .kernels import Dropout, FusedAttention
from .llama import Norm, angles, linear, rotated


class EagerAttention(nn.Module):
    """Attention of 2022: biases, every score written out, dropout on the scores. The causal mask is a buffer."""

    def __init__(self, hidden: int, heads: int, positions: int, recompute: bool = False) -> None:
        super().__init__()
        self.dim, self.drop, self.recompute = hidden // heads, Dropout(), recompute
        self.q, self.k, self.v, self.out = (linear(hidden, hidden, bias=True) for _ in range(4))
        self.register_buffer("future", torch.ones(positions, positions, dtype=torch.bool).triu(1))

    def core(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = (q @ k.transpose(-1, -2) / math.sqrt(self.dim)).masked_fill(self.future, -math.inf)
        return (self.drop(scores.softmax(-1)) @ v).transpose(1, 2).flatten(2)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part(x).unflatten(-1, (-1, self.dim)).transpose(1, 2) for part in (self.q, self.k, self.v))
        out = checkpoint(self.core, q, k, v, use_reentrant=False) if self.recompute else self.core(q, k, v)
        return self.out(out)


class GPTBlock(nn.Module):
    """A layer of GPT-2 or GPT-3. The norms' weights stay in fp32, so that their statistics are fp32, as on a GPU."""

    def __init__(self, hidden: int, attention: nn.Module, dropout: bool) -> None:
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.attention = attention
        self.mlp = nn.Sequential(linear(hidden, 4 * hidden, True), nn.GELU(), linear(4 * hidden, hidden, True))
        self.drop: Callable[[Tensor], Tensor] = Dropout() if dropout else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop(self.attention(self.attention_norm(x)))
        return x + self.drop(self.mlp(self.mlp_norm(x)))


class LatentAttention(nn.Module):
    """Latent attention in its expanded form. `copied` copies the values out of the matrix they share with the keys."""

    def __init__(
        self, hidden: int, heads: int, key: int, rope: int, value: int, query: int, latent: int, copied: bool
    ) -> None:
        super().__init__()
        self.heads, self.key, self.rope, self.value, self.latent, self.copied = heads, key, rope, value, latent, copied
        self.q_down: nn.Module = linear(hidden, query) if query else nn.Identity()
        self.q_norm: nn.Module = Norm(query) if query else nn.Identity()
        self.q_up = linear(query or hidden, heads * (key + rope))
        self.kv_down, self.kv_norm = linear(hidden, latent + rope), Norm(latent)
        self.kv_up, self.out = linear(latent, heads * (key + value)), linear(heads * value, hidden)

    def forward(self, x: Tensor) -> Tensor:
        q = self.q_up(self.q_norm(self.q_down(x))).unflatten(-1, (self.heads, -1))
        q, q_turned = q.split([self.key, self.rope], -1)
        latent, k_turned = self.kv_down(x).split([self.latent, self.rope], -1)
        k, v = self.kv_up(self.kv_norm(latent)).unflatten(-1, (self.heads, -1)).split([self.key, self.value], -1)
        cos, sin = angles(q_turned.transpose(1, 2))
        tables = cos.unsqueeze(1), sin.unsqueeze(1)
        turned = rotated(k_turned.unsqueeze(2), *tables).expand(-1, -1, self.heads, -1)
        q, k = torch.cat((q, rotated(q_turned, *tables)), -1), torch.cat((k, turned), -1)
        v = v.contiguous() if self.copied else v
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        alike = q.is_cuda or self.value == self.key + self.rope  # as torch's own fused kernel on a CPU wants it
        out = (
            functional.scaled_dot_product_attention(q, k, v, is_causal=True) if alike else FusedAttention.apply(q, k, v)
        )
        return self.out(out.transpose(1, 2).flatten(2))
