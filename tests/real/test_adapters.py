"""What frozen matrices and adapters keep for the backward pass, and how many parameters they train, in torch."""

import pytest
import torch
from torch import Tensor, nn

from outlay.engines.tables import engine, kernel_set
from outlay.job import Job
from outlay.layer import inventory, passed_back
from outlay.layout.axes import ALONE
from outlay.layout.sizes import sizes
from outlay.model import model as ours
from outlay.model.operations import Row
from outlay.sums import split_moves, sum_kept, sum_parameters
from outlay.verify.models.llama import Attention, Block, SwiGLU
from test_tapes import SHAPES, Kept, block_pass, llama_block

HEADS, KV_HEADS, WIDTH, RANK = 8, 2, 384, 8
NAMES = {
    "q_proj": ("attention", "q"), "k_proj": ("attention", "k"), "v_proj": ("attention", "v"),
    "o_proj": ("attention", "out"),
    "gate_proj": ("mlp", "gate"), "up_proj": ("mlp", "up"), "down_proj": ("mlp", "down"),
}  # fmt: skip
TARGETS = [("q_proj", "v_proj"), ("o_proj",), ("gate_proj", "down_proj"), ("k_proj", "up_proj"), tuple(NAMES)]


class Adapted(nn.Module):
    """A frozen matrix, and B A beside it."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        like = {"bias": False, "dtype": base.weight.dtype}
        self.base, self.a = base, nn.Linear(base.in_features, RANK, **like)
        self.b = nn.Linear(RANK, base.out_features, **like)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.base(x) + self.b(self.a(x)) * 2.0
        return out


def frozen_block(hidden: int, targets: tuple[str, ...]) -> Block:
    """A layer of frozen matrices, some with an adapter."""
    block = Block(hidden, Attention(hidden, HEADS, KV_HEADS), SwiGLU(hidden, WIDTH))
    for weight in block.parameters():
        weight.requires_grad = False
    for target in targets:
        part, name = NAMES[target]
        owner = getattr(block, part)
        setattr(owner, name, Adapted(getattr(owner, name)))
    return block


def counted(shape: tuple[int, int, int], job: Job) -> tuple[float, float]:
    """Bytes that a frozen layer keeps, and the parameters it trains."""
    batch, _, hidden = shape
    block = llama_block(hidden, KV_HEADS, WIDTH)
    model = ours.Model("block", "block", hidden, 100, (block,), (0,))
    kernels = kernel_set("pytorch")
    here = sizes(model, block, job, ALONE, engine("fsdp2"), kernels)
    work: tuple[Row, ...] = split_moves(inventory(model, job, kernels)[block.name])[0]
    kept = batch * sum_kept(passed_back(work), here)
    return float(kept), float(sum_parameters(tuple(row for row in work if row.trained), here))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("targets", TARGETS, ids=" ".join)
def test_a_layer_with_adapters_keeps_what_its_rows_keep_to_the_byte(
    bf16: None, shape: tuple[int, int, int], targets: tuple[str, ...]
) -> None:
    job = Job(shape[1], 1, precision="bf16", adapter="lora", adapter_rank=RANK, adapter_targets=targets)
    block = frozen_block(shape[2], targets)
    kept, trained = counted(shape, job)

    assert trained == sum(weight.numel() for weight in block.parameters() if weight.requires_grad)
    assert block_pass(block, shape) == kept


@pytest.mark.parametrize("shape", SHAPES)
def test_a_frozen_layer_keeps_no_input_of_a_matrix(bf16: None, shape: tuple[int, int, int]) -> None:
    job = Job(shape[1], 1, precision="bf16", frozen=("layers",))
    kept, trained = counted(shape, job)

    assert trained == 0
    assert block_pass(frozen_block(shape[2], ()), shape) == kept


@pytest.mark.parametrize("shape", SHAPES)
def test_a_frozen_trunk_keeps_nothing_and_the_head_behind_it_is_trained(
    bf16: None, shape: tuple[int, int, int]
) -> None:
    batch, tokens, hidden = shape
    trunk, head = frozen_block(hidden, ()), nn.Linear(hidden, 64, bias=False, dtype=torch.bfloat16)
    hooked = Kept(trunk)
    with hooked.hooks:
        out = trunk(torch.randn(batch, tokens, hidden, dtype=torch.bfloat16))
    head(out).float().sum().backward()

    kept, trained = counted(shape, Job(tokens, 1, precision="bf16", frozen=("embedding", "layers")))
    assert head.weight.grad is not None and trained == 0
    assert hooked.bytes == kept == 0


def test_a_frozen_layer_passes_its_gradient_on(bf16: None) -> None:
    x = torch.randn(1, 64, 128, dtype=torch.bfloat16, requires_grad=True)
    frozen_block(128, ())(x).float().sum().backward()

    assert x.grad is not None and x.grad.abs().sum() > 0
