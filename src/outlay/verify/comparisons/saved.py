"""What autograd really keeps for the backward pass, byte by byte, of one layer of GPT-3's kind on real tensors."""

from dataclasses import replace
from typing import TYPE_CHECKING

from ...engines.tables import engine, kernel_set
from ...job import Job
from ...layer import unpadded
from ...layout.axes import ALONE
from ...layout.sizes import sizes
from ...model.blocks import rows
from ...model.model import Model, decoder_block
from ...model.parts import Attention, FeedForward
from ...sums import split_moves, sum_kept
from ..comparison import Comparison

if TYPE_CHECKING:
    from torch import Tensor, UntypedStorage, dtype, nn

KERNELS = "megatron_local"  # of 2022: every score is written out


class Kept:
    """Saved-tensor hooks that add up what is packed: each storage once, those of weights and buffers never."""

    def __init__(self, module: "nn.Module") -> None:
        from torch.autograd.graph import saved_tensors_hooks

        self.owned = {storage(weight)._cdata for weight in (*module.parameters(), *module.buffers())}
        self.found: dict[int, UntypedStorage] = {}
        self.hooks = saved_tensors_hooks(self.pack, lambda tensor: tensor)

    def pack(self, tensor: "Tensor") -> "Tensor":
        """Note the storage under a tensor that is kept."""
        held = storage(tensor)
        if held._cdata not in self.owned:
            self.found[held._cdata] = held
        return tensor

    @property
    def bytes(self) -> int:
        """What is kept; to be read while the graph is alive."""
        return sum(held.nbytes() for held in self.found.values())


def storage(tensor: "Tensor") -> "UntypedStorage":
    """The memory under a tensor, or under the part of it that this rank holds."""
    from torch.distributed.tensor import DTensor

    return (tensor._local_tensor if isinstance(tensor, DTensor) else tensor).untyped_storage()


def block_pass(block: "nn.Module", shape: tuple[int, int, int], kind: "dtype | None" = None) -> int:
    """Bytes kept by one block on real tensors (batch, sequence, hidden), bf16 unless told. Its backward pass runs."""
    import torch

    x = torch.randn(shape, dtype=kind or torch.bfloat16, requires_grad=True) * 1  # as what another layer made
    kept = Kept(block)
    with kept.hooks:
        out = block(x)
    found = kept.bytes
    out.float().sum().backward()
    return found


def compare_saved(batch: int, sequence: int, hidden: int, heads: int) -> tuple[Comparison, ...]:
    """A GPT layer with dropout against the textbook's 34 s b h + 5 a s^2 b, and against its rows, in bf16."""
    import torch

    from ..models.other_layers import EagerAttention, GPTBlock

    block = GPTBlock(hidden, EagerAttention(hidden, heads, sequence), dropout=True).to(torch.bfloat16)
    for norm in (block.attention_norm, block.mlp_norm):
        norm.float()  # so that their statistics are fp32, as on a GPU
    kept = block_pass(block, (batch, sequence, hidden))
    textbook = 34 * sequence * batch * hidden + 5 * heads * sequence**2 * batch
    statistics = 2 * 8 * sequence * batch
    note = "without what two norms keep, two fp32 statistics a token each; the causal mask is a buffer"
    return (
        Comparison("34sbh + 5as^2b", textbook, kept - statistics, "B", note),
        Comparison("tape of a GPT layer", counted_layer(batch, sequence, hidden, heads), kept, "B"),
    )


def counted_layer(batch: int, sequence: int, hidden: int, heads: int) -> float:
    """Bytes that the rows of that layer keep."""
    attention = Attention(heads, heads, hidden // heads, hidden // heads, qkv_bias=True, out_bias=True)
    block = decoder_block("gpt", attention, FeedForward(4 * hidden, gated=False, bias=True))
    model = Model("gpt", "gpt2", hidden, 1, (block,), (0,), norm="layer", dropout=True)
    job = Job(sequence_length=sequence, global_batch=batch, precision="bf16")
    kernels = kernel_set(KERNELS)
    here = sizes(model, block, job, replace(ALONE, micro_batch=batch), unpadded(engine("fsdp2")), kernels)
    return float(sum_kept(split_moves(rows(model, block, kernels))[0], here))
