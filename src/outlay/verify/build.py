"""A model of ours as modules of torch, cut as a layout says: plain PyTorch, or transformers' own code. Loads torch."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

from ..job import HALF
from ..layout.case import Case
from ..model.model import Model
from ..model.parts import Attention, Experts, FeedForward
from .models import Llama, cross_entropy, split_tensors
from .ranks import AXES

CAUSAL = "sdpa_without_mask"
Loss = Callable[..., Tensor]


def parts_of(model: Model) -> tuple[Attention, FeedForward | Experts]:
    """The two parts of each layer. Raises ValueError for a model that is not of equal layers of Llama's kind."""
    attention, mlp = model.blocks[0].attention, model.blocks[0].feed_forward or model.blocks[0].experts
    if attention is None or mlp is None or len(model.blocks) > 1 or attention.latent_rank or not mlp.gated:
        raise ValueError(f"{model.name} is not of equal layers of attention and a gated feed-forward part")
    return attention, mlp


def plain_model(model: Model) -> tuple[nn.Module, Loss]:
    """A model of Llama's kind in plain PyTorch. Experts are those of Mixtral in transformers, in grouped multiplies."""
    attention, mlp = parts_of(model)
    width = mlp.width if isinstance(mlp, FeedForward) else mlp.expert_width
    built = Llama(model.hidden, model.layers, attention.heads, attention.kv_heads, width, model.vocab)
    if isinstance(mlp, Experts):
        for layer in built.layers:
            layer.mlp = mixtral_experts(model.hidden, mlp)
    return built, lambda module, tokens, targets: cross_entropy(module(tokens), targets)


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

    attention, mlp = parts_of(model)
    if not isinstance(mlp, FeedForward):
        raise ValueError(f"{model.name} has experts")
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


def layers_of(model: nn.Module) -> Iterator[Any]:
    """Its layers, in order."""
    return iter(getattr(model, "model", model).layers)


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
    """Tensor parallelism inside, FSDP2 around: each layer is a group, and all the rest is one.

    With the ends apart the embedding is a group like a layer, and final norm and head one that is not resharded after
    forward, as torchtitan wraps them. Torch's tracker runs the hooks of a group of two modules twice, so the two are
    one module here, and no others of the model.
    """
    layout = case.layout
    if layout.tp > 1:
        split_tensors(model, mesh["tensor"], layout.sp)
    if layout.zero == 0:
        return
    over = mesh[AXES[:2]] if layout.dp_replicate > 1 else mesh["shards"]
    reshard = None if layout.zero == 3 else False
    wire = torch.bfloat16 if case.reduce_bytes == HALF else torch.float32
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=wire)
    with unset_fake_temporarily():  # meshes are joined here, and those hold data
        if case.ends_apart:
            fully_shard(model.embedding, mesh=over, mp_policy=policy, reshard_after_forward=reshard)
            del model.norm, model.head
            fully_shard(model.last, mesh=over, mp_policy=policy, reshard_after_forward=False)
        for part in (*layers_of(model), model):
            fully_shard(part, mesh=over, mp_policy=policy, reshard_after_forward=reshard)
