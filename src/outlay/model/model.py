"""The model: its shape as frozen data. A layer is a block; layers of one kind are counted once and multiplied."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Attention:
    """Attention of one block: grouped-query, or latent (MLA) where `latent_rank` > 0.

    Under MLA `head_dim` is the part of a query or key without position (nope), `rope_dim` the part with it,
    `value_dim` the width of a value, and `kv_heads` equals `heads`.
    """

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    window: int = 0  # keys a token sees, itself included; 0 = all before it
    qkv_bias: bool = False  # under MLA: on the two down projections
    out_bias: bool = False
    head_norm: Literal["none", "head", "all"] = "none"  # norm of q and k: one head wide, or over all heads
    sinks: bool = False  # one learned logit a head
    query_rank: int = 0  # MLA: 0 = queries straight from the hidden vector
    latent_rank: int = 0
    rope_dim: int = 0


@dataclass(frozen=True)
class FeedForward:
    """The feed-forward part of one block: dense (`width`), or experts (`experts` > 0) with an optional shared one."""

    width: int = 0
    gated: bool = True  # three matrices (SwiGLU, GeGLU), else two
    bias: bool = False  # on the dense matrices, and on those of the shared expert
    experts: int = 0
    active: int = 0  # experts a token is sent to
    expert_width: int = 0
    expert_bias: bool = False
    router_bias: bool = False
    shared_width: int = 0  # all shared experts together


@dataclass(frozen=True)
class Block:
    """One kind of layer."""

    name: str
    attention: Attention
    feed_forward: FeedForward
    norms: Literal["before", "after", "both"] = "before"  # where the norms stand: of the input, the output, or both
    parallel: bool = False  # attention and feed-forward read the same input and are added


@dataclass(frozen=True)
class Model:
    """A decoder-only language model. `pattern` gives the index in `blocks` of each layer, in order."""

    name: str
    family: str
    hidden: int
    vocab: int
    blocks: tuple[Block, ...]
    pattern: tuple[int, ...]
    norm: Literal["rms", "layer"] = "rms"  # one weight a value, or weight and bias
    tied: bool = False  # the head uses the embedding's matrix
    positions: int = 0  # learned position vectors
    embedding_norm: bool = False
    dropout: bool = False  # dropout after attention and feed-forward, and inside attention
    trained_length: int = 0  # tokens; the sequence length of its training, 0 if not stated
    mtp_layers: int = 0  # multi-token prediction modules: counted beside the model, never inside it
    notes: tuple[str, ...] = field(default=())  # what the reader assumed, and what it does not count

    @property
    def layers(self) -> int:
        """How many layers the model has."""
        return len(self.pattern)
