"""The rows of each kind of layer, and of the two ends of a model. Dimension names are those of `layout.sizes`."""

from ..engines.engine import Kernel, KernelSet
from .model import Block, Model
from .operations import Attention, Linear, Move, Pointwise, Row

GATHER = {"times": "with_sp", "times_back": "gather_back"}  # into a column-parallel matrix
SCATTER = {"times": "scatter_forward", "times_back": "with_sp"}  # out of a row-parallel matrix


def _norm(
    model: Model, kernels: KernelSet, name: str, tokens: str = "S", width: str = "hidden", **more: object
) -> Pointwise:
    kernel = kernels.rms_norm if model.norm == "rms" else kernels.layer_norm
    how: dict[str, object] = {"weights": width, "per": "one" if model.norm == "rms" else "two"} | more
    return Pointwise(name, tokens, width, kernel, **how)  # type: ignore[arg-type]


def _head_norms(model: Model, block: Block, kernels: KernelSet) -> tuple[Row, ...]:
    """Norms of q and k: one head wide and shared by the heads, or over all heads together."""
    if block.attention.head_norm == "none":
        return ()
    if block.attention.head_norm == "all":
        return _norm(model, kernels, "q_norm", "T", "q"), _norm(model, kernels, "k_norm", "T", "k")
    return (
        _norm(model, kernels, "q_norm", "T", "q", weights="head_dim", groups="heads"),
        _norm(model, kernels, "k_norm", "T", "k", weights="head_dim", groups="kv_heads"),
    )


def _grouped_inputs(model: Model, block: Block, kernels: KernelSet) -> tuple[Row, ...]:
    return (
        Move("gather_qkv", "tp", "T", "hidden", **GATHER),
        Linear("qkv", "T", "hidden", "qkv", waits="G", biased=block.attention.qkv_bias),
        *_head_norms(model, block, kernels),
    )


def _latent_inputs(model: Model, block: Block, kernels: KernelSet) -> tuple[Row, ...]:
    """Multi-head latent attention, in its expanded form: the down projections run on each rank's own tokens."""
    bias = block.attention.qkv_bias
    keys = (
        Linear("kv_down", "S", "hidden", "latent", biased=bias),
        _norm(model, kernels, "kv_norm", "S", "latent", weights="kv_rank"),
        Move("gather_latent", "tp", "T", "latent", **GATHER),
        Linear("kv_up", "T", "kv_rank", "kv_up", waits="G"),
    )
    if not block.attention.query_rank:
        return Move("gather_q", "tp", "T", "hidden", **GATHER), Linear("q", "T", "hidden", "q", waits="G"), *keys
    return (
        Linear("q_down", "S", "hidden", "q_rank", waits="S", biased=bias),
        _norm(model, kernels, "q_norm", "S", "q_rank"),
        Move("gather_q", "tp", "T", "q_rank", **GATHER),
        Linear("q_up", "T", "q_rank", "q", waits="G"),
        *keys,
    )


def _residual(model: Model, kernels: KernelSet, name: str) -> Pointwise:
    return Pointwise(name, "S", "hidden", kernels.residual, mask=kernels.mask * model.dropout)


def _attention(model: Model, block: Block, kernels: KernelSet) -> tuple[Row, ...]:
    at = block.attention
    core = Attention(
        "attention",
        fused=kernels.fused_attention,
        scores_keep=kernels.scores_keep + kernels.dropped_scores_keep * model.dropout,
        scores_move=kernels.scores_move,
        scores_move_back=kernels.scores_move_back,
        sinks=at.sinks,
    )
    return (
        *([_norm(model, kernels, "input_norm")] if block.norms != "after" else []),
        *(_latent_inputs if at.latent_rank else _grouped_inputs)(model, block, kernels),
        Pointwise("rotate", "T", "qkv", kernels.rotate),
        Move("ring_kv", "cp", "T_all", "ring_kv", times_back="two"),
        Move("swap_heads", "cp", "T", "swap", "all_to_all"),
        core,
        Linear("proj", "T", "o", "hidden", waits="T", biased=at.out_bias),
        Move("scatter_proj", "tp", "T", "hidden", **SCATTER),
        *([_norm(model, kernels, "attention_norm")] if block.norms != "before" else []),
        _residual(model, kernels, "residual"),
    )


def _mlp(name: str, width: str, waits: str, block: Block, kernels: KernelSet) -> tuple[Row, ...]:
    part = block.feed_forward
    kernel = kernels.gated_activation if part.gated else kernels.plain_activation
    return (
        Move(f"gather_{name}", "tp", "T", "hidden", **GATHER),
        Linear(f"{name}_up", "T", "hidden", f"{width}_in", waits=waits, biased=part.bias),
        Pointwise(f"{name}_activation", "T", f"{width}_in", kernel),
        Linear(f"{name}_down", "T", width, "hidden", waits="T", biased=part.bias),
        Move(f"scatter_{name}", "tp", "T", "hidden", **SCATTER),
    )


def _experts(block: Block, kernels: KernelSet) -> tuple[Row, ...]:
    part = block.feed_forward
    activation = kernels.gated_activation if part.gated else kernels.plain_activation
    permute = kernels.permute
    unpermute = Kernel(permute.moves, permute.moves_back, keeps=1 if kernels.keeps_expert_output else 0)
    return (
        Linear("router", "S", "hidden", "router", waits="S", biased=part.router_bias),
        Pointwise("router_scores", "S", "router", Kernel(3, 3, keeps_bytes=kernels.router_keeps_expert)),
        Pointwise("router_choices", "D", "one", Kernel(3, 3, keeps_bytes=kernels.router_keeps_choice)),
        Move("dispatch", "ep", "D", "exchanged", "all_to_all"),
        Move("dispatch_gather", "ep", "S_all", "gathered"),
        Move("gather_experts", "etp", "R", "hidden"),
        Pointwise("permute", "R", "hidden", permute),
        Linear("expert_up", "X", "hidden", "expert_in", waits="R", copies="E", biased=part.expert_bias),
        Pointwise("expert_activation", "R", "expert_in", activation),
        Linear("expert_down", "X", "expert", "hidden", waits="R", copies="E", biased=part.expert_bias),
        Pointwise("unpermute", "R", "hidden", unpermute),
        Move("scatter_experts", "etp", "R", "hidden"),
        Move("combine", "ep", "D", "exchanged", "all_to_all"),
        Move("combine_scatter", "ep", "S_all", "gathered"),
        *(_mlp("shared", "shared", "W", block, kernels) if part.shared_width else ()),
    )


def rows(model: Model, block: Block, kernels: KernelSet) -> tuple[Row, ...]:
    """The operations of one kind of layer, in the order of the forward pass."""
    before = [_norm(model, kernels, "post_norm", shared_input=block.parallel)] if block.norms != "after" else []
    after = [_norm(model, kernels, "feed_forward_norm")] if block.norms != "before" else []
    inner = _experts(block, kernels) if block.feed_forward.experts else _mlp("mlp", "ffn", "G", block, kernels)
    return *_attention(model, block, kernels), *before, *inner, *after, _residual(model, kernels, "residual_2")


def embedding_rows(model: Model, kernels: KernelSet) -> tuple[Row, ...]:
    """What the first stage does before its layers."""
    mask = kernels.mask * model.dropout
    return (
        Pointwise("embedding", "S", "hidden", Kernel(2, 2), weights="vocab", per="hidden", mask=mask),
        Move("scatter_embedding", "tp", "T", "hidden", **SCATTER),
        *(
            [Pointwise("positions", "S", "hidden", Kernel(2, 1), weights="positions", per="hidden")]
            if model.positions
            else []
        ),
        *([_norm(model, kernels, "embedding_norm")] if model.embedding_norm else []),
    )


def head_rows(model: Model, kernels: KernelSet) -> tuple[Row, ...]:
    """What the last stage does after its layers: final norm, logits, loss."""
    return (
        _norm(model, kernels, "final_norm"),
        Move("gather_head", "tp", "T", "hidden", **GATHER),
        Linear("head", "T", "hidden", "vocab", waits="G", owned="own_head", half=True),
        Pointwise("loss", "T", "vocab", kernels.loss, extra=kernels.loss_workspace),
    )
