"""What autograd really keeps for the backward pass, byte by byte, against the rows of each kernel set.

Measured with saved-tensor hooks: each storage once, weights and buffers left out. Large models run on tensors without
data, all 32 layers of them, and small blocks on real bf16 tensors. Layers and what is kept once are compared apart:
2 and 4 layers give both, since a tape is linear in the layers, and 32 show that it is.
"""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor.parallel import loss_parallel
from transformers import AutoConfig
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

from outlay.engines.tables import engine, kernel_set
from outlay.job import Job
from outlay.layer import entry_bytes, unpadded
from outlay.layout.axes import ALONE, Layout
from outlay.layout.sizes import sizes
from outlay.model import model as ours
from outlay.model.blocks import embedding_rows, head_rows, rows
from outlay.model.modules import checkpoints
from outlay.model.operations import Row, Sizes
from outlay.sums import split_moves, sum_freed, sum_kept
from outlay.verify.comparisons.saved import Kept, block_pass
from outlay.verify.models.kernels import Dropout
from outlay.verify.models.llama import Attention, Block, Llama, SwiGLU, cross_entropy, split_tensors
from outlay.verify.models.other_layers import EagerAttention, GPTBlock, LatentAttention

pytestmark = pytest.mark.filterwarnings("ignore")
GIB = 2**30
TOKENS = 4096  # of the large models: one sequence
IDS = 8  # B a token: the embedding keeps its tokens, the loss its targets
SMALL = 4  # B once: the loss keeps the weight of all its targets


# --- what torch keeps -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """A model of Llama's kind."""

    hidden: int
    heads: int
    kv_heads: int
    width: int
    vocab: int

    def build(self, layers: int, fused: bool = True) -> Llama:
        return Llama(self.hidden, layers, self.heads, self.kv_heads, self.width, self.vocab, fused)

    @property
    def counted(self) -> ours.Model:
        dim = self.hidden // self.heads
        attention = ours.Attention(self.heads, self.kv_heads, dim, dim)
        block = ours.decoder_block("layer", attention, ours.FeedForward(self.width))
        return ours.Model("llama", "llama", self.hidden, self.vocab, (block,), (0,) * 32)


LLAMA_7B = Shape(4096, 32, 32, 11008, 32000)
LLAMA_8B = Shape(4096, 32, 8, 14336, 128256)


def whole_pass(shape: Shape, layers: int, fused: bool = True, recompute: bool = False) -> int:
    """Bytes kept by one forward pass and its loss."""
    with FakeTensorMode():
        model = shape.build(layers, fused)
        model.recompute = recompute
        tokens = torch.zeros(1, TOKENS, dtype=torch.long)
        kept = Kept(model)
        with kept.hooks:
            loss = cross_entropy(model(tokens), tokens.clone())
        return kept.bytes + 0 * loss.dim()  # the graph is alive until here


def split_pass(
    shape: Shape, layers: int, mesh: DeviceMesh, sliced: bool, loss: str = "cut", recompute: bool = False
) -> int:
    """Bytes kept by one rank of eight. The loss is of logits cut over the ranks, of whole ones, or a bare sum."""
    with FakeTensorMode(), loss_parallel() if loss == "cut" else nullcontext():
        model = shape.build(layers)
        model.recompute = recompute
        split_tensors(model, mesh, sliced, whole_logits=loss == "whole")
        tokens = torch.zeros(1, TOKENS, dtype=torch.long)
        kept = Kept(model)
        with kept.hooks:
            logits = model(tokens)
            end = logits.sum() if loss == "sum" else cross_entropy(logits, tokens.clone())
        return kept.bytes + 0 * end.dim()


def layer_and_once(two: int, four: int) -> tuple[int, int]:
    """Bytes of a layer, and those kept once, from 2 and 4 layers."""
    layer = (four - two) // 2
    return layer, two - 2 * layer


# --- what the rows keep ---------------------------------------------------------------------------------------------


def sized(model: ours.Model, kernels: str, layout: Layout, sequence: int, precision: str) -> Sizes:
    job = Job(sequence_length=sequence, global_batch=1, precision=precision)  # type: ignore[arg-type]
    return sizes(model, model.blocks[0], job, layout, unpadded(engine("fsdp2")), kernel_set(kernels))


def counted_layer(
    model: ours.Model, kernels: str, layout: Layout = ALONE, sequence: int = TOKENS, precision: str = "bf16"
) -> float:
    work = split_moves(rows(model, model.blocks[0], kernel_set(kernels)))[0]
    return sum_kept(work, sized(model, kernels, layout, sequence, precision))


def head_row(model: ours.Model, kernels: str, name: str, layout: Layout = ALONE) -> float:
    """Bytes that one row of the last stage keeps."""
    found: dict[str, Row] = {row.name: row for row in head_rows(model, kernel_set(kernels))}
    return found[name].kept(sized(model, kernels, layout, TOKENS, "bf16"))


def counted_head(model: ours.Model, kernels: str, layout: Layout = ALONE) -> float:
    return sum(head_row(model, kernels, name, layout) for name in ("final_norm", "head", "loss"))


def counted_block(
    block: ours.Block, kernels: str, shape: tuple[int, int, int], precision: str = "bf16", **more: object
) -> float:
    batch, sequence, hidden = shape
    model = ours.Model("block", "block", hidden, 100, (block,), (0,), **more)  # type: ignore[arg-type]
    return counted_layer(model, kernels, replace(ALONE, micro_batch=batch), sequence, precision)


# --- whole models, alone --------------------------------------------------------------------------------------------

WHOLE = [
    pytest.param(LLAMA_7B, True, "pytorch", 19.317, id="7B"),
    pytest.param(LLAMA_8B, True, "pytorch", 22.536, id="8B"),
    pytest.param(LLAMA_7B, False, "pytorch_composite", 25.411, id="7B with a composite norm"),
]
whole_models = pytest.mark.parametrize(("shape", "fused", "kernels", "published"), WHOLE)


@whole_models
def test_a_layer_keeps_what_its_rows_keep_to_the_byte(
    bf16: None, shape: Shape, fused: bool, kernels: str, published: float
) -> None:
    layer, once = layer_and_once(*(whole_pass(shape, layers, fused) for layers in (2, 4)))

    assert layer == counted_layer(shape.counted, kernels)
    assert once == counted_head(shape.counted, kernels) + 2 * IDS * TOKENS + SMALL


@whole_models
def test_all_32_layers_keep_the_measured_gibibytes(
    bf16: None, shape: Shape, fused: bool, kernels: str, published: float
) -> None:
    model = shape.counted
    kept = whole_pass(shape, 32, fused)

    assert kept / GIB == pytest.approx(published, abs=5e-4)
    assert (32 * counted_layer(model, kernels) + counted_head(model, kernels)) / GIB == pytest.approx(
        published, abs=5e-4
    )
    assert kept == 32 * counted_layer(model, kernels) + counted_head(model, kernels) + 2 * IDS * TOKENS + SMALL


def test_full_recompute_keeps_the_inputs_of_the_layers_and_the_head(bf16: None) -> None:
    model = LLAMA_7B.counted
    entry = entry_bytes(sized(model, "pytorch", ALONE, TOKENS, "bf16"))
    layer, once = layer_and_once(*(whole_pass(LLAMA_7B, layers, recompute=True) for layers in (2, 4)))

    assert layer == entry
    assert once == counted_head(model, "pytorch") + 2 * IDS * TOKENS + SMALL
    assert (32 * entry + counted_head(model, "pytorch")) / GIB == pytest.approx(1.551, abs=5e-4)


def tracked(shape: Shape, layers: int) -> int:
    """Bytes of activations after a forward pass, as torch's memory tracker sees its allocations."""
    with FakeTensorMode():
        model, tokens = shape.build(layers), torch.zeros(1, TOKENS, dtype=torch.long)
        targets, tracker = tokens.clone(), MemTracker()
        tracker.track_external(model, tokens, targets)
        with tracker:
            loss = cross_entropy(model(tokens), targets)
            snapshot = tracker.get_tracker_snapshot("current")[torch.device("cpu")]
        loss.backward()
    return sum(size for kind, size in snapshot.items() if getattr(kind, "value", kind) in ("Activation", "Temp"))


def test_the_memory_tracker_agrees_with_the_hooks(bf16: None) -> None:
    layer, once = layer_and_once(*(tracked(LLAMA_7B, layers) for layers in (2, 4)))

    assert layer == counted_layer(LLAMA_7B.counted, "pytorch")
    assert (32 * layer + once) / GIB == pytest.approx(19.317, abs=5e-4)


# --- whole models on eight ranks ------------------------------------------------------------------------------------

TP8, TP8_SP = replace(ALONE, tp=8), replace(ALONE, tp=8, sp=True)


@pytest.mark.parametrize("shape", [LLAMA_7B, LLAMA_8B], ids=["7B", "8B"])
@pytest.mark.parametrize("layout", [TP8, TP8_SP], ids=["tp8", "tp8 and sp"])
def test_one_rank_of_eight_keeps_what_its_rows_keep_with_the_logits_cut(
    bf16: None, mesh: DeviceMesh, shape: Shape, layout: Layout
) -> None:
    layer, once = layer_and_once(*(split_pass(shape, layers, mesh, layout.sp) for layers in (2, 4)))

    assert layer == counted_layer(shape.counted, "pytorch", layout)
    assert once == counted_head(shape.counted, "pytorch", layout) + 2 * IDS * TOKENS + SMALL


@pytest.mark.parametrize("layout", [TP8, TP8_SP], ids=["tp8", "tp8 and sp"])
def test_full_recompute_on_one_rank_of_eight_keeps_its_slice_of_the_inputs(
    bf16: None, mesh: DeviceMesh, layout: Layout
) -> None:
    passes = (split_pass(LLAMA_7B, layers, mesh, layout.sp, recompute=True) for layers in (2, 4))
    layer, once = layer_and_once(*passes)

    assert layer == entry_bytes(sized(LLAMA_7B.counted, "pytorch", layout, TOKENS, "bf16"))
    assert once == counted_head(LLAMA_7B.counted, "pytorch", layout) + 2 * IDS * TOKENS + SMALL


def test_tp8_with_whole_logits_on_every_rank_keeps_the_measured_6_397_gib(bf16: None, mesh: DeviceMesh) -> None:
    """That run gathered the logits, 4V bytes a token on each rank; our layout leaves them cut, 4V/8: hence loss x 8."""
    model = LLAMA_7B.counted
    layer, once = layer_and_once(*(split_pass(LLAMA_7B, layers, mesh, False, "whole") for layers in (2, 4)))
    whole_loss = 8 * head_row(model, "pytorch", "loss", TP8)
    head = counted_head(model, "pytorch", TP8) - head_row(model, "pytorch", "loss", TP8) + whole_loss

    assert layer == counted_layer(model, "pytorch", TP8)
    assert once == head + 2 * IDS * TOKENS + SMALL
    assert (32 * layer + once) / GIB == pytest.approx(6.397, abs=1e-3)  # 0.0001 of it are ids, which were not counted
    assert (32 * counted_layer(model, "pytorch", TP8) + head) / GIB == pytest.approx(6.397, abs=5e-4)


def test_tp8_with_sp_and_a_sum_for_a_loss_keeps_the_measured_4_131_gib(bf16: None, mesh: DeviceMesh) -> None:
    """A sum keeps no logits: what is left of the head are the final norm and the gathered input of its matrix."""
    model = LLAMA_7B.counted
    layer, once = layer_and_once(*(split_pass(LLAMA_7B, layers, mesh, True, "sum") for layers in (2, 4)))
    head = head_row(model, "pytorch", "final_norm", TP8_SP) + head_row(model, "pytorch", "head", TP8_SP)

    assert layer == counted_layer(model, "pytorch", TP8_SP)
    assert once == head + IDS * TOKENS
    assert (32 * layer + once) / GIB == pytest.approx(4.131, abs=5e-4)
    assert (32 * counted_layer(model, "pytorch", TP8_SP) + head) / GIB == pytest.approx(4.131, abs=5e-4)


# --- small blocks on real tensors -----------------------------------------------------------------------------------

SHAPES = [(2, 128, 256), (1, 256, 128), (4, 64, 256)]  # batch, sequence, hidden
shapes = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
HEADS = 8


def gpt_block(hidden: int) -> ours.Block:
    dim = hidden // HEADS
    attention = ours.Attention(HEADS, HEADS, dim, dim, qkv_bias=True, out_bias=True)
    return ours.decoder_block("gpt", attention, ours.FeedForward(4 * hidden, gated=False, bias=True))


def real_gpt(attention: nn.Module, hidden: int, dropout: bool) -> nn.Module:
    """Norm weights stay in fp32: so their statistics are fp32, as on a GPU. (bf16 ones would keep 8 B a token less.)"""
    block = GPTBlock(hidden, attention, dropout)
    block.attention_norm.float()
    block.mlp_norm.float()
    return block


@shapes
def test_recompute_of_the_attention_core_leaves_34sbh(bf16: None, shape: tuple[int, int, int]) -> None:
    b, s, h = shape
    model = ours.Model("gpt", "gpt2", h, 100, (gpt_block(h),), (0,), norm="layer", dropout=True)
    found = rows(model, model.blocks[0], kernel_set("megatron_local"))
    core = checkpoints(found, ("core_attn",), kernel_set("megatron_local"))
    here = sized(model, "megatron_local", replace(ALONE, micro_batch=b), s, "bf16")
    kept = block_pass(real_gpt(EagerAttention(h, HEADS, s, recompute=True), h, dropout=True), shape)

    assert kept == sum_kept(split_moves(found)[0], here) - sum_freed(core, here, 0, 0) == 34 * s * b * h + 16 * s * b


@shapes
@pytest.mark.parametrize("dropout", [False, True], ids=["no dropout", "dropout"])
def test_a_gpt_block_with_a_fused_core_keeps_its_rows(bf16: None, shape: tuple[int, int, int], dropout: bool) -> None:
    hidden = shape[2]
    kept = block_pass(real_gpt(Attention(hidden, HEADS, HEADS, bias=True), hidden, dropout), shape)

    assert kept == counted_block(gpt_block(hidden), "pytorch", shape, norm="layer", dropout=dropout)


def llama_block(
    hidden: int, kv_heads: int, width: int, norms: Any = "before", parallel: bool = False, **more: object
) -> ours.Block:
    attention = ours.Attention(HEADS, kv_heads, hidden // HEADS, hidden // HEADS, **more)  # type: ignore[arg-type]
    return ours.decoder_block("llama", attention, ours.FeedForward(width), norms, parallel)


@shapes
@pytest.mark.parametrize(("kv_heads", "width"), [(8, 688), (2, 384), (1, 512)], ids=["heads", "groups", "one key"])
@pytest.mark.parametrize("fused", [True, False], ids=["fused norm", "composite norm"])
def test_a_llama_block_keeps_its_rows(
    bf16: None, shape: tuple[int, int, int], kv_heads: int, width: int, fused: bool
) -> None:
    hidden = shape[2]
    block = Block(hidden, Attention(hidden, HEADS, kv_heads), SwiGLU(hidden, width), fused)
    kernels = "pytorch" if fused else "pytorch_composite"

    assert block_pass(block, shape) == counted_block(llama_block(hidden, kv_heads, width), kernels, shape)


@shapes
def test_rotary_positions_keep_only_their_tables_once(bf16: None, shape: tuple[int, int, int]) -> None:
    _, sequence, hidden = shape
    block = Block(hidden, Attention(hidden, HEADS, 2, rotate=True), SwiGLU(hidden, 384))
    tables = 2 * 2 * sequence * hidden // HEADS  # cos and sin in bf16: a model has them once

    assert block_pass(block, shape) == counted_block(llama_block(hidden, 2, 384), "pytorch", shape) + tables


@shapes
def test_in_fp32_activations_take_four_bytes_and_statistics_stay(shape: tuple[int, int, int]) -> None:
    hidden = shape[2]
    block = Block(hidden, Attention(hidden, HEADS, 2), SwiGLU(hidden, 384))

    kept = block_pass(block, shape, torch.float32)
    assert kept == counted_block(llama_block(hidden, 2, 384), "pytorch", shape, precision="fp32")


@shapes
@pytest.mark.parametrize("kind", ["head", "all"])
def test_norms_of_queries_and_keys_keep_their_rows(bf16: None, shape: tuple[int, int, int], kind: str) -> None:
    _, sequence, hidden = shape
    block = Block(hidden, Attention(hidden, HEADS, 2, rotate=True, head_norm=kind), SwiGLU(hidden, 384))
    tables = 2 * 2 * sequence * hidden // HEADS

    counted = counted_block(llama_block(hidden, 2, 384, head_norm=kind), "pytorch", shape)
    assert block_pass(block, shape) == counted + tables


@shapes
@pytest.mark.parametrize("norms", ["before", "after", "both"])
def test_norms_before_after_or_on_both_sides_keep_their_rows(
    bf16: None, shape: tuple[int, int, int], norms: str
) -> None:
    hidden = shape[2]
    block = Block(hidden, Attention(hidden, HEADS, 2), SwiGLU(hidden, 384), norms=norms)

    assert block_pass(block, shape) == counted_block(llama_block(hidden, 2, 384, norms), "pytorch", shape)


@shapes
def test_a_parallel_block_keeps_the_input_of_both_norms_once(bf16: None, shape: tuple[int, int, int]) -> None:
    hidden = shape[2]
    block = Block(hidden, Attention(hidden, HEADS, 2), SwiGLU(hidden, 384), parallel=True)

    assert block_pass(block, shape) == counted_block(llama_block(hidden, 2, 384, parallel=True), "pytorch", shape)


# --- latent attention -----------------------------------------------------------------------------------------------

LATENT = [(24, 8, 64, 32), (8, 8, 32, 24)]  # key without position, rotated part, query rank, latent rank


def latent_pair(shape: tuple[int, int, int], dims: tuple[int, int, int, int], copied: bool) -> tuple[int, float]:
    """What torch keeps, less the rotary tables, and what the rows keep. Values are as wide as keys, as fusion wants."""
    _, sequence, hidden = shape
    key, rope, query, latent = dims
    real = LatentAttention(hidden, HEADS, key, rope, key + rope, query, latent, copied)
    ranks = {"query_rank": query, "latent_rank": latent, "rope_dim": rope}
    attention = ours.Attention(HEADS, HEADS, key, key + rope, **ranks)
    counted = counted_block(ours.decoder_block("latent", attention, ours.FeedForward(256)), "pytorch", shape)
    return block_pass(Block(hidden, real, SwiGLU(hidden, 256)), shape) - 2 * 2 * sequence * rope, counted


@shapes
@pytest.mark.parametrize("dims", LATENT, ids=str)
def test_latent_attention_keeps_its_rows_where_values_are_copied(
    bf16: None, shape: tuple[int, int, int], dims: tuple[int, int, int, int]
) -> None:
    kept, counted = latent_pair(shape, dims, copied=True)

    assert kept == counted


@shapes
@pytest.mark.parametrize("dims", LATENT, ids=str)
def test_latent_attention_keeps_the_bare_keys_too_where_values_are_a_view(
    bf16: None, shape: tuple[int, int, int], dims: tuple[int, int, int, int]
) -> None:
    """Values and bare keys come out of one matrix multiply: a view of the values holds both, 2 B a key value more."""
    kept, counted = latent_pair(shape, dims, copied=False)

    assert kept == counted + 2 * HEADS * dims[0] * shape[0] * shape[1]


# --- experts --------------------------------------------------------------------------------------------------------

EXPERTS, WIDTH = 4, 96


def mixtral_experts(hidden: int, active: int) -> nn.Module:
    """The expert layer of transformers on grouped matrix multiplies."""
    config = AutoConfig.for_model(
        "mixtral", hidden_size=hidden, intermediate_size=WIDTH, num_local_experts=EXPERTS, num_experts_per_tok=active
    )
    config._experts_implementation = "grouped_mm"
    return filled(MixtralSparseMoeBlock(config))


def filled(module: nn.Module) -> nn.Module:
    """Some weights: those of experts start as whatever was in memory."""
    for weight in module.parameters():
        nn.init.normal_(weight, std=0.05)
    return module


def moe_block(hidden: int, active: int, shared: int = 0) -> ours.Block:
    part = ours.Experts(EXPERTS, active, WIDTH, shared_width=shared)
    return ours.decoder_block("experts", ours.Attention(HEADS, 2, hidden // HEADS, hidden // HEADS), part)


@shapes
@pytest.mark.parametrize("active", [1, 2, 3])
def test_an_expert_block_keeps_its_rows_and_the_indices_of_transformers(
    bf16: None, shape: tuple[int, int, int], active: int
) -> None:
    """Copies and widths are exact. Indices are as the code happens to keep them: transformers 5.24 keeps 40 B a copy
    (four int64 and two fp32) where the kernel set has 26, 4 B a token to bring weights to sum 1, 4 B an expert."""
    b, s, hidden = shape
    kept = block_pass(Block(hidden, Attention(hidden, HEADS, 2), mixtral_experts(hidden, active)), shape)

    indices = (14 * active + 4) * b * s + 4 * EXPERTS
    assert kept == counted_block(moe_block(hidden, active), "pytorch", shape) + indices


class Beside(nn.Module):
    """Routed experts and a shared one, which read the same input."""

    def __init__(self, routed: nn.Module, shared: nn.Module) -> None:
        super().__init__()
        self.routed, self.shared = routed, shared

    def forward(self, x: Tensor) -> Tensor:
        return self.routed(x) + self.shared(x)


@shapes
def test_a_shared_expert_adds_its_middle_and_not_its_input(bf16: None, shape: tuple[int, int, int]) -> None:
    hidden, shared = shape[2], 160
    routed = [Block(hidden, Attention(hidden, HEADS, 2), mixtral_experts(hidden, 2)) for _ in range(2)]
    routed[1].mlp = Beside(routed[1].mlp, SwiGLU(hidden, shared))
    without, beside = (block_pass(block, shape) for block in routed)

    counted = [counted_block(moe_block(hidden, 2, width), "pytorch", shape) for width in (0, shared)]
    assert beside - without == counted[1] - counted[0] == 8 * shared * shape[0] * shape[1]


# --- the first stage ------------------------------------------------------------------------------------------------


class Embedding(nn.Module):
    """Tokens and learned positions, and dropout of their sum."""

    def __init__(self, hidden: int, dropout: bool) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(100, hidden), nn.Embedding(256, hidden)
        self.drop = Dropout() if dropout else nn.Identity()

    def forward(self, ids: Tensor) -> Tensor:
        return self.drop(self.tokens(ids) + self.positions(torch.arange(ids.shape[1])))


@shapes
@pytest.mark.parametrize("dropout", [False, True], ids=["no dropout", "dropout"])
def test_an_embedding_keeps_a_mask_where_there_is_dropout_and_ids(
    bf16: None, shape: tuple[int, int, int], dropout: bool
) -> None:
    b, s, hidden = shape
    module = Embedding(hidden, dropout)
    kept = Kept(module)
    with kept.hooks:
        out = module(torch.zeros(b, s, dtype=torch.long))
    found = kept.bytes + 0 * out.dim()

    model = ours.Model("gpt", "gpt2", hidden, 100, (gpt_block(hidden),), (0,), "layer", positions=256, dropout=dropout)
    work = split_moves(embedding_rows(model, kernel_set("pytorch")))[0]
    counted = sum_kept(work, sized(model, "pytorch", replace(ALONE, micro_batch=b), s, "bf16"))
    assert found == counted + IDS * (b * s + s)
