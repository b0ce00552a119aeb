"""Real model code in plain PyTorch, whose kept bytes, exchanges and arithmetic the counts are held against.

Loads torch: nothing imports it but the comparisons that run it.
"""

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from .kernels import FusedNorm


class Norm(nn.Module):
    def __init__(self, width: int, fused: bool = True) -> None:
        super().__init__()
        self.weight, self.fused = nn.Parameter(torch.ones(width)), fused

    def forward(self, x: Tensor) -> Tensor:
        if self.fused:
            return FusedNorm.apply(x, self.weight, 1e-5)
        return functional.rms_norm(x, x.shape[-1:], self.weight, 1e-5)


def linear(ins: int, outs: int, bias: bool = False) -> nn.Linear:
    return nn.Linear(ins, outs, bias=bias)


def angles(x: Tensor) -> tuple[Tensor, Tensor]:
    """cos and sin of every position and dimension, for tensors of shape (.., positions, dimension)."""
    steps, pairs = (torch.arange(*of, device=x.device) for of in ((x.shape[-2],), (0, x.shape[-1], 2)))
    turns = torch.outer(steps, 1e-4 ** (pairs / x.shape[-1]))
    both = torch.cat((turns, turns), -1)
    return both.cos().to(x.dtype), both.sin().to(x.dtype)


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat((-right, left), -1) * sin


class Attention(nn.Module):
    """Grouped-query attention around a fused core; norms of q and k over one head, or over all heads together."""

    def __init__(
        self,
        hidden: int,
        heads: int,
        kv_heads: int,
        rotate: bool = False,
        bias: bool = False,
        head_norm: str = "none",
        dim: int = 0,
        out_bias: bool | None = None,
    ) -> None:
        super().__init__()
        self.dim, self.rotate, self.head_norm = dim or hidden // heads, rotate, head_norm
        self.recompute = False  # the core alone
        self.tables: tuple[Tensor, Tensor] | None = None  # that layers share; else each makes its own
        queries, keys = heads * self.dim, kv_heads * self.dim
        self.q, self.k, self.v = linear(hidden, queries, bias), linear(hidden, keys, bias), linear(hidden, keys, bias)
        self.out = linear(queries, hidden, bias if out_bias is None else out_bias)
        if head_norm != "none":
            widths = (self.dim, self.dim) if head_norm == "head" else (queries, keys)
            self.q_norm, self.k_norm = map(Norm, widths)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.q(x), self.k(x), self.v(x)
        if self.head_norm == "all":
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = (part.unflatten(-1, (-1, self.dim)).transpose(1, 2) for part in (q, k, v))
        if self.head_norm == "head":
            q, k = self.q_norm(q), self.k_norm(k)
        if self.rotate:
            tables = self.tables or angles(q)
            q, k = rotated(q, *tables), rotated(k, *tables)
        out = checkpoint(self.core, q, k, v, use_reentrant=False) if self.recompute else self.core(q, k, v)
        return self.out(out)

    def core(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
        return out.transpose(1, 2).flatten(2)


class SwiGLU(nn.Module):
    def __init__(self, hidden: int, width: int) -> None:
        super().__init__()
        self.gate, self.up, self.down = linear(hidden, width), linear(hidden, width), linear(width, hidden)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    """A layer around any attention and feed-forward part: norms before, after or both; in turn, or side by side."""

    def __init__(
        self,
        hidden: int,
        attention: nn.Module,
        mlp: nn.Module,
        fused: bool = True,
        norms: str = "before",
        parallel: bool = False,
    ) -> None:
        super().__init__()
        before, after = norms != "after", norms != "before"
        self.attention_norm, self.mlp_norm = ((Norm(hidden, fused) if before else nn.Identity()) for _ in range(2))
        self.attention_out, self.mlp_out = ((Norm(hidden, fused) if after else nn.Identity()) for _ in range(2))
        self.attention, self.mlp, self.parallel = attention, mlp, parallel

    def forward(self, x: Tensor) -> Tensor:
        middle = x + self.attention_out(self.attention(self.attention_norm(x)))
        return middle + self.mlp_out(self.mlp(self.mlp_norm(x if self.parallel else middle)))


class Llama(nn.Module):
    def __init__(
        self, hidden: int, layers: int, heads: int, kv_heads: int, width: int, vocab: int, fused: bool = True
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab, hidden)
        self.layers = nn.ModuleList(
            Block(hidden, Attention(hidden, heads, kv_heads), SwiGLU(hidden, width), fused) for _ in range(layers)
        )
        self.norm, self.head = Norm(hidden, fused), linear(hidden, vocab)
        self.last = nn.Sequential(self.norm, self.head)  # what is one group of its own where the ends stand apart
        self.recompute = False

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.recompute else layer(x)
        return self.last(x)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def split_tensors(model: Llama, mesh: DeviceMesh, sliced: bool, whole_logits: bool = False) -> None:
    """Tensor parallelism of torch on a mesh; `sliced` adds sequence parallelism. Logits stay cut, or are made whole."""
    where = Shard(1) if sliced else Replicate()

    def whole() -> PrepareModuleInput:
        return PrepareModuleInput(input_layouts=(where,), desired_input_layouts=(Replicate(),))

    columns = ("attention.q", "attention.k", "attention.v", "mlp.gate", "mlp.up")
    layer = {"attention": whole(), "mlp": whole()} | {name: ColwiseParallel() for name in columns}
    layer |= {name: RowwiseParallel(output_layouts=where) for name in ("attention.out", "mlp.down")}
    ends = {
        "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=where),
        "head": ColwiseParallel(
            input_layouts=where,
            output_layouts=Replicate() if whole_logits else Shard(-1),
            use_local_output=whole_logits,
        ),
    }
    if sliced:
        layer |= {name: SequenceParallel() for name in ("attention_norm", "mlp_norm")}
        ends |= {"norm": SequenceParallel()}
    for block in model.layers:
        parallelize_module(block, mesh, layer)
    parallelize_module(model, mesh, ends)
