"""A model of ours as modules of torch, cut as a layout says: plain PyTorch, or transformers' own code. Loads torch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.distributed._composable.replicate_with_fsdp import replicate
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.parallel import loss_parallel

from ...job import HALF
from ...layout.case import Case
from ...model.model import Model
from ...model.parts import Attention, Experts, FeedForward
from .configs import HOW, Config, built
from .llama import Attention as OwnAttention
from .llama import Llama, SwiGLU, cross_entropy, split_tensors
from .other_layers import LatentAttention
from .ranks import AXES, mesh_of, one_of

CAUSAL = "sdpa_without_mask"
EXPERT_DIMENSIONS = 3  # of the weights of experts that stand in one tensor
Loss = Callable[..., Tensor]


def plain_model(model: Model) -> tuple[nn.Module, Loss]:
    """A model of Llama's kind in plain PyTorch. Experts are those of Mixtral in transformers, in grouped multiplies."""
    built = Llama(model.hidden, model.layers, 1, 1, 1, model.vocab)
    for layer, kind in zip(built.layers, model.pattern, strict=True):
        block = model.blocks[kind]
        layer.attention = plain_attention(model.hidden, block.attention)
        layer.mlp = plain_part(model.hidden, block.feed_forward or block.experts)
    if model.tied:
        built.head.weight = built.embedding.weight
    return built, lambda module, tokens, targets: cross_entropy(module(tokens), targets)


def plain_attention(hidden: int, own: Attention | None) -> nn.Module:
    """Grouped-query attention, or latent attention in its expanded form. Raises ValueError where there is none."""
    if own is None:
        raise ValueError("a layer without attention is not built")
    if own.latent_rank:
        widths = (own.head_dim, own.rope_dim, own.value_dim, own.query_rank, own.latent_rank)
        return LatentAttention(hidden, own.heads, *widths, copied=True)
    more: dict[str, Any] = {"bias": own.qkv_bias, "out_bias": own.out_bias, "head_norm": own.head_norm}
    return OwnAttention(hidden, own.heads, own.kv_heads, dim=own.head_dim, **more)


def plain_part(hidden: int, own: FeedForward | Experts | None) -> nn.Module:
    """A gated part, or experts, with a shared one beside them. Raises ValueError where there is none."""
    if own is None or not own.gated:
        raise ValueError("a layer without a gated part is not built")
    if isinstance(own, FeedForward):
        return SwiGLU(hidden, own.width)
    routed = mixtral_experts(hidden, own)
    return Shared(routed, SwiGLU(hidden, own.shared_width)) if own.shared_width else routed


class Shared(nn.Module):
    """Experts, and one beside them that sees every token."""

    def __init__(self, routed: nn.Module, shared: nn.Module) -> None:
        super().__init__()
        self.routed, self.shared = routed, shared

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.routed(x) + self.shared(x)
        return out


def mixtral_experts(hidden: int, experts: Experts) -> nn.Module:
    """The expert layer of Mixtral."""
    from transformers import AutoConfig
    from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

    config = AutoConfig.for_model(
        "mixtral",
        hidden_size=hidden,
        intermediate_size=experts.expert_width,
        num_local_experts=experts.experts,
        num_experts_per_tok=experts.active,
    )
    config._experts_implementation = "grouped_mm"
    return MixtralSparseMoeBlock(config)


def transformers_llama(model: Model) -> tuple[nn.Module, Loss]:
    """Llama in transformers, with its own loss."""
    from transformers import AttentionInterface, AttentionMaskInterface, LlamaConfig, LlamaForCausalLM
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    attention, mlp = model.blocks[0].attention, model.blocks[0].feed_forward
    if attention is None or mlp is None or len(model.blocks) > 1:
        raise ValueError(f"{model.name} is not of equal layers of attention and a feed-forward part")
    config = LlamaConfig(
        hidden_size=model.hidden,
        num_hidden_layers=model.layers,
        num_attention_heads=attention.heads,
        num_key_value_heads=attention.kv_heads,
        head_dim=attention.head_dim,
        intermediate_size=mlp.width,
        vocab_size=model.vocab,
        tie_word_embeddings=model.tied,
        use_cache=False,
    )
    # By itself it writes a mask out where tensors have no data; with data it leaves the mask to the kernel, as here.
    AttentionInterface.register(CAUSAL, sdpa_attention_forward)
    AttentionMaskInterface.register(CAUSAL, lambda *args, **more: None)
    config._attn_implementation = CAUSAL
    return LlamaForCausalLM(config), lambda module, tokens, targets: module(tokens, labels=targets).loss


def of_transformers(config: Config) -> Callable[[Model], tuple[nn.Module, Loss]]:
    """Any causal model of transformers, experts in batched multiplies. Its loss is of the logits as they are."""

    def loss(module: nn.Module, tokens: Tensor, targets: Tensor) -> Tensor:
        return cross_entropy(module(input_ids=tokens, use_cache=False).logits, targets)

    return lambda _: (built(config, **HOW), loss)


def inner_of(model: nn.Module) -> nn.Module:
    """What holds embedding and layers: the model itself, or the base of a class of transformers."""
    return model if isinstance(model, Llama) else model.base_model


def layers_of(model: nn.Module) -> Iterator[Any]:
    """Its layers, in order: the longest list of modules."""
    longest: Any = max((part for part in inner_of(model).children() if isinstance(part, nn.ModuleList)), key=len)
    return iter(longest)


def ends_of(model: nn.Module) -> tuple[nn.Module, nn.Module | list[nn.Module]]:
    """The embedding, and final norm and head together.

    Torch's tracker runs the hooks of a group of two modules twice: so in a model of ours the two are one module. Raises
    ValueError where a class has other parts with weights beside its layers.
    """
    if isinstance(model, Llama):
        del model.norm, model.head
        return model.embedding, model.last
    embedding, head = model.get_input_embeddings(), model.get_output_embeddings()
    parts = [part for part in inner_of(model).children() if part is not embedding and [*part.parameters()]]
    beside = [part for part in parts if not isinstance(part, nn.ModuleList)]
    if len(beside) != 1 or len(parts) != 1 + 1:
        raise ValueError("the class has other parts beside layers, embedding, final norm and head")
    return embedding, [*beside, head]


def unlearned(model: nn.Module) -> int:
    """Parameters that a backward pass left without a gradient."""
    return sum(weight.numel() for weight in model.parameters() if weight.grad is None)


def recomputed(model: nn.Module, kind: str) -> None:
    """Let layers, or their attention cores, run again in the backward pass."""
    if kind == "full" and isinstance(model, Llama):
        model.recompute = True
    elif kind == "full":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    elif kind == "selective":
        for layer in layers_of(model):
            layer.attention.recompute = True


def cut(model: nn.Module, mesh: DeviceMesh, case: Case) -> None:
    """Tensor parallelism inside, FSDP2 around: each layer is a group, and all the rest is one; or copies of all.

    With the ends apart the embedding is a group like a layer, and final norm and head one that is not resharded after
    forward, as torchtitan wraps them.
    """
    layout = case.layout
    if layout.tp > 1:
        split_tensors(model, mesh["tensor"], layout.sp)
        if case.model.tied:
            model.head.weight = model.embedding.weight  # torch cuts each by itself, into two tables
    if layout.dp == 1 and layout.zero == 0:
        return
    wire = torch.bfloat16 if case.reduce_bytes == HALF else torch.float32
    used = torch.bfloat16 if case.compute_bytes == HALF else torch.float32
    policy = MixedPrecisionPolicy(param_dtype=used, reduce_dtype=wire)
    with unset_fake_temporarily():  # meshes are joined here, and those hold data
        if layout.zero == 0:
            for part in (*layers_of(model), model):  # of which none is gathered
                replicate(part, mesh=mesh[AXES[layout.dp_shard > 1]], mp_policy=policy)
            return
        over = mesh[AXES[:2]] if layout.dp_replicate > 1 else mesh["shards"]
        again = {"mesh": over, "mp_policy": policy, "reshard_after_forward": None if layout.zero == 3 else False}
        again |= {"shard_placement_fn": lambda weight: inside(weight, int(layout.dp_shard))}
        if case.ends_apart:
            embedding, last = ends_of(model)
            if embedding is not None:  # of a stage that has it
                fully_shard(embedding, **again)
            if last is not None:
                fully_shard(last, **again | {"reshard_after_forward": False})
        for part in (*layers_of(model), model):
            fully_shard(part, **again)


def inside(weight: nn.Parameter, ranks: int) -> Shard | None:
    """Experts fewer than ranks are cut inside, as torchtitan cuts them: FSDP2 by itself would pad them to the ranks."""
    return Shard(1) if weight.dim() == EXPERT_DIMENSIONS and weight.size(0) < ranks else None


def uneven(model: nn.Module) -> float:
    """Parameters that the first rank holds beyond an even share, of tensors whose rows the ranks do not divide."""
    found = 0.0
    for weight in model.parameters():
        if isinstance(weight, DTensor):
            cuts = [
                weight.device_mesh.size(at) for at, place in enumerate(weight.placements) if not place.is_replicate()
            ]
            found += weight._local_tensor.numel() - weight.numel() / prod(cuts)
    return found


def padding(model: nn.Module) -> dict[int, float]:
    """Of each group of FSDP by the parameters that it gathers: the share of them that pads uneven tensors."""
    groups = [group for part in model.modules() if isinstance(part, FSDPModule) for group in groups_of(part)]
    found = {}
    for group in groups:
        ranks = getattr(group.mesh_info, "shard_mesh_size", 1)
        padded = sum(weight.padded_sharded_param_size.numel() for weight in group.fsdp_params) * ranks
        real = sum(weight._orig_size.numel() for weight in group.fsdp_params)
        found[padded] = 1 - real / padded
    return found


def groups_of(part: FSDPModule) -> list[Any]:
    """The groups of weights that one module gathers; most have one."""
    state = fully_shard.state(part)
    return list(state._fsdp_param_groups) if state else []  # none of copies


@dataclass(frozen=True)
class Rank:
    """The first rank of a layout: its part of the model, how a loss is made, its token ids and targets."""

    model: nn.Module
    loss: Loss
    inputs: tuple[Tensor, Tensor]
    axes: dict[str, str]  # of each group of ranks, by its name


@contextmanager
def first_rank(case: Case, build: Callable[[Model], tuple[nn.Module, Loss]]) -> Iterator[Rank]:
    """One rank of as many as the layout has, on tensors without data. Nothing else may have a process group meanwhile.

    Weights are fp32 where they are cast for each use, else bf16.
    """
    layout = case.layout
    with one_of(int(layout.world)):
        mesh = mesh_of(layout)
        axes = {mesh.get_group(name).group_name: axis for name, axis in zip(AXES, ("dp", "dp", "tp"))}
        with FakeTensorMode(), loss_parallel() if layout.tp > 1 else nullcontext():
            torch.set_default_dtype(torch.float32 if layout.zero or layout.dp > 1 else torch.bfloat16)
            try:
                model, loss = build(case.model)
            finally:
                torch.set_default_dtype(torch.float32)
            recomputed(model, layout.recompute)
            cut(model, mesh, case)
            tokens = torch.zeros(layout.micro_batch, case.job.sequence_length, dtype=torch.long)
            yield Rank(model, loss, (tokens, tokens.clone()), axes)
