"""A loss over chunks of the tokens, as torchtitan's ChunkedLossWrapper runs it: what stands at its peak, measured.

Head, loss and their backward pass run chunk by chunk; the gradients of the hidden vectors collect in fp32.
"""

import weakref
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from outlay.engines.tables import engine, kernel_set
from outlay.job import Job
from outlay.layer import unpadded
from outlay.layout.axes import ALONE
from outlay.layout.sizes import sizes
from outlay.model import model as ours
from outlay.model.blocks import head_rows
from outlay.sums import split_moves

pytestmark = pytest.mark.filterwarnings("ignore")
TOKENS, HIDDEN, VOCAB = 512, 64, 8192
CHUNKS = [1, 2, 4, 8, 16]


class Standing(TorchDispatchMode):
    """Bytes of the storages that operations made and that stand, and their peak."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[int] = set()
        self.now = self.most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else (made,):
            if isinstance(tensor, Tensor) and tensor.untyped_storage()._cdata not in self.seen:
                self.watch(tensor.untyped_storage())
        return made

    def watch(self, held: torch.UntypedStorage) -> None:
        key, size = held._cdata, held.nbytes()
        self.seen.add(key)
        self.now += size
        self.most = max(self.most, self.now)
        weakref.finalize(held, self.gone, key, size)

    def gone(self, key: int, size: int) -> None:
        self.seen.discard(key)
        self.now -= size


def chunked(head: nn.Linear, hidden: Tensor, targets: Tensor, chunks: int) -> Tensor:
    """The gradient of the hidden vectors: of the mean loss, chunk by chunk."""
    collected = torch.zeros_like(hidden, dtype=torch.float32)
    size = hidden.shape[0] // chunks
    for part, (some, few) in enumerate(zip(hidden.split(size), targets.split(size), strict=True)):
        leaf = some.detach().requires_grad_()
        functional.cross_entropy(head(leaf).float(), few, reduction="sum").div(hidden.shape[0]).backward()
        collected[part * size : (part + 1) * size] = leaf.grad
    return collected


def peak(chunks: int) -> tuple[int, Tensor]:
    torch.manual_seed(1)
    head = nn.Linear(HIDDEN, VOCAB, bias=False, dtype=torch.bfloat16)
    hidden, targets = torch.randn(TOKENS, HIDDEN, dtype=torch.bfloat16), torch.randint(VOCAB, (TOKENS,))
    with Standing() as standing:
        made = chunked(head, hidden, targets, chunks)
    return standing.most, made


def counted(chunks: int) -> float:
    """What the rows of head and loss say of one pass: logits, the loss's copies, and what collects."""
    block = ours.decoder_block("layer", ours.Attention(1, 1, HIDDEN, HIDDEN), ours.FeedForward(HIDDEN))
    model = ours.Model("llama", "llama", HIDDEN, VOCAB, (block,), (0,))
    kernels, job = kernel_set("pytorch_composite"), Job(TOKENS, 1, precision="bf16")
    layout = replace(ALONE, loss_chunks=chunks)
    here = sizes(model, model.ends[1], job, layout, unpadded(engine("fsdp2-uncompiled")), kernels)
    found = {row.name: row for row in split_moves(head_rows(model, kernels))[0]}
    return float(found["loss"].kept(here) + found["loss"].workspace(here) + found["head"].workspace(here))


def test_one_chunk_is_the_loss_of_all_tokens() -> None:
    assert counted(1) == 12 * VOCAB * TOKENS


@pytest.mark.parametrize("chunks", CHUNKS[1:])
def test_a_chunk_has_its_share_of_the_logits_beside_what_collects(chunks: int) -> None:
    assert counted(chunks) == 12 * VOCAB * TOKENS / chunks + 4 * HIDDEN * TOKENS + 2 * 2 * VOCAB * HIDDEN


@pytest.mark.parametrize("chunks", CHUNKS[1:])
def test_real_chunks_stand_as_counted(chunks: int) -> None:
    assert peak(chunks)[0] == pytest.approx(counted(chunks), rel=0.02)


def test_chunks_give_the_gradient_of_the_whole() -> None:
    torch.testing.assert_close(peak(8)[1], peak(1)[1], rtol=0.02, atol=1e-5)
