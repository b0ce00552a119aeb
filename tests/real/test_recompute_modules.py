"""Modules of a layer that run again, on real tensors: what torch still keeps, and that the gradients are the same.

A plain checkpoint is torch's own. The one that drops its output too frees the output's storage once the next module has
run, and fills it again before that module's backward pass, as Megatron-Core's CheckpointWithoutOutput does.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
from test_loss_chunks import Standing
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from outlay.engines.tables import engine, kernel_set
from outlay.job import Job
from outlay.layer import unpadded
from outlay.layout.axes import ALONE
from outlay.layout.sizes import sizes
from outlay.model import model as ours
from outlay.model.blocks import rows
from outlay.model.modules import checkpoints
from outlay.model.policies import POLICIES
from outlay.sums import split_moves, sum_freed, sum_kept
from outlay.verify.comparisons.saved import Kept
from outlay.verify.models.llama import Attention, Block, SwiGLU

pytestmark = pytest.mark.filterwarnings("ignore")
BATCH, TOKENS, HIDDEN, HEADS, KV_HEADS, WIDTH = 2, 128, 256, 8, 2, 384
CHOICES = [
    (),
    ("core_attn",),
    ("mlp",),
    ("layernorm",),
    ("core_attn", "mlp"),
    ("layernorm", "mlp"),
    ("core_attn", "layernorm", "mlp"),
]


class Run(torch.autograd.Function):
    """A module without its graph: it keeps its input alone."""

    @staticmethod
    def forward(ctx: Any, owner: "WithoutOutput", x: Tensor) -> Tensor:
        ctx.owner = owner
        ctx.save_for_backward(x)
        owner.saved = ctx
        with torch.no_grad():
            return owner.module(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor | None]:  # type: ignore[override]
        torch.autograd.backward(ctx.owner.fresh, gradient)
        return None, ctx.owner.again.grad


class WithoutOutput:
    """A module that runs again, and whose output is dropped until what read it runs backward."""

    def __init__(self, module: Callable[[Tensor], Tensor]) -> None:
        self.module, self.saved = module, None

    def __call__(self, x: Tensor) -> Tensor:
        self.out: Tensor = Run.apply(self, x)  # type: ignore[no-untyped-call]
        return self.out

    def drop(self, behind: Tensor) -> None:
        self.out.untyped_storage().resize_(0)
        behind.register_hook(self.fill)

    def fill(self, _: Tensor) -> None:
        (x,) = self.saved.saved_tensors  # type: ignore[attr-defined]
        self.again = x.detach().requires_grad_()
        with torch.enable_grad():
            self.fresh = self.module(self.again)
        self.out.untyped_storage().resize_(self.fresh.untyped_storage().nbytes())
        self.out.data.copy_(self.fresh.detach())


class CoreAgain(Attention):
    """Attention whose core runs again."""

    def forward(self, x: Tensor) -> Tensor:
        parts = (part(x).unflatten(-1, (-1, self.dim)).transpose(1, 2) for part in (self.q, self.k, self.v))
        return self.out(checkpoint(self.core, *parts, use_reentrant=False))

    def core(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return out.transpose(1, 2).flatten(2)


def forward(block: Block, x: Tensor, modules: tuple[str, ...]) -> Tensor:
    """A layer of Llama's kind, some modules of which run again."""
    norms = [WithoutOutput(norm) if "layernorm" in modules else norm for norm in (block.attention_norm, block.mlp_norm)]
    attended = block.attention(norms[0](x))
    if isinstance(norms[0], WithoutOutput):
        norms[0].drop(attended)
    middle = x + attended
    normed = norms[1](middle)
    fed = checkpoint(block.mlp, normed, use_reentrant=False) if "mlp" in modules else block.mlp(normed)
    if isinstance(norms[1], WithoutOutput):
        norms[1].drop(fed)
    return middle + fed


def passed(modules: tuple[str, ...]) -> tuple[int, Tensor, Iterator[Tensor]]:
    """Bytes kept of one layer, and the gradients of its input and weights."""
    torch.manual_seed(1)
    attention = (CoreAgain if "core_attn" in modules else Attention)(HIDDEN, HEADS, KV_HEADS)
    block = Block(HIDDEN, attention, SwiGLU(HIDDEN, WIDTH)).to(torch.bfloat16)
    leaf = torch.randn(BATCH, TOKENS, HIDDEN, dtype=torch.bfloat16, requires_grad=True)
    kept = Kept(block)
    with kept.hooks:
        out = forward(block, leaf * 1, modules)
    found = kept.bytes
    out.float().pow(2).sum().backward()
    assert leaf.grad is not None
    return found, leaf.grad, (weight.grad for weight in block.parameters() if weight.grad is not None)


def counted(modules: tuple[str, ...]) -> float:
    """What the rows say."""
    dim = HIDDEN // HEADS
    block = ours.decoder_block("layer", ours.Attention(HEADS, KV_HEADS, dim, dim), ours.FeedForward(WIDTH))
    model = ours.Model("llama", "llama", HIDDEN, 100, (block,), (0,))
    kernels = kernel_set("pytorch")
    here = dict(
        sizes(model, block, Job(BATCH * TOKENS, 1, precision="bf16"), ALONE, unpadded(engine("fsdp2")), kernels)
    )
    found = rows(model, block, kernels)
    return float(sum_kept(split_moves(found)[0], here) - sum_freed(checkpoints(found, modules, kernels), here, 0, 0))


@pytest.mark.parametrize("modules", CHOICES, ids=lambda names: " ".join(names) or "nothing")
def test_a_layer_keeps_what_its_modules_leave_to_the_byte(modules: tuple[str, ...]) -> None:
    assert passed(modules)[0] == counted(modules)


@pytest.mark.parametrize("modules", CHOICES[1:], ids=" ".join)
def test_modules_that_run_again_give_the_same_gradients(modules: tuple[str, ...]) -> None:
    _, plain, weights = passed(())
    _, again, others = passed(modules)

    assert torch.equal(plain, again)
    assert all(torch.equal(one, other) for one, other in zip(weights, others, strict=True))


def test_the_real_checkpoint_frees_its_inside() -> None:
    """Gate, up, their silu and product; outputs and statistics of the norms; a statistic a head."""
    tokens = BATCH * TOKENS
    whole = passed(())[0]

    assert whole - passed(("mlp",))[0] == 2 * tokens * 4 * WIDTH
    assert whole - passed(("layernorm",))[0] == 2 * tokens * (2 * HIDDEN + 4)
    assert whole - passed(("core_attn",))[0] == 4 * tokens * HEADS


# --- operations that are saved ---------------------------------------------------------------------------------------


def saving(every: int) -> Callable[..., CheckpointPolicy]:
    """torchtitan's policy: attention cores are saved, and one of so many matrix multiplies."""
    calls: Counter[bool] = Counter()

    def decide(ctx: Any, operation: Any, *_: Any, **__: Any) -> CheckpointPolicy:
        if operation is torch.ops.aten.mm.default:
            calls[ctx.is_recompute] += 1
            kept = (calls[ctx.is_recompute] - 1) % every == 0
        else:
            kept = operation is torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
        return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE

    return decide


@pytest.mark.parametrize(("policy", "every"), POLICIES.items())
def test_operations_that_are_saved_leave_what_is_counted(policy: str, every: int) -> None:
    torch.manual_seed(1)
    block = Block(HIDDEN, Attention(HIDDEN, HEADS, KV_HEADS), SwiGLU(HIDDEN, WIDTH)).to(torch.bfloat16)
    leaf = torch.randn(BATCH, TOKENS, HIDDEN, dtype=torch.bfloat16, requires_grad=True)
    with Standing() as standing:
        standing.seen |= {weight.untyped_storage()._cdata for weight in block.parameters()}
        context = partial(create_selective_checkpoint_contexts, saving(every))
        out = checkpoint(lambda x: forward(block, x, ()), leaf * 1, use_reentrant=False, context_fn=context)
        kept = standing.now - out.untyped_storage().nbytes()
    out.float().pow(2).sum().backward()
    assert leaf.grad is not None and torch.equal(leaf.grad, passed(())[1])

    assert kept == counted((policy,))
