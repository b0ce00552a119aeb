"""Attention: grouped-query, or latent (MLA), with what families add to it."""

from dataclasses import dataclass
from typing import Literal

from ...cluster.efficiency import WIDE
from ...engines.engine import KernelSet
from ..moves import Move
from ..operations import Attention as Core
from ..operations import Linear, Pointwise, Row
from ..scan import Scores
from .kernels import CHOICES, DIFFERENCE, INDEX, PRODUCT, SIGMOID_AGAIN, SWAPPED
from .pairs import mixed_inputs, mixed_output
from .part import GATHER, SCATTER, Dimensions, Frame, copied, cut, norm, whole


@dataclass(frozen=True)
class Attention:
    """Grouped-query attention, or latent attention (MLA) where `latent_rank` > 0.

    Under MLA `head_dim` is the part of a query or key without position (nope), `rope_dim` the part with it,
    `value_dim` the width of a value, and `kv_heads` equals `heads`.
    """

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    window: int = 0  # keys a token sees, itself included; 0 = all before it
    chunk: int = 0  # the sequence is cut into chunks, and a token sees those of its own before it
    qkv_bias: bool = False  # under MLA: on the two down projections
    out_bias: bool = False
    head_norm: Literal["none", "head", "heads", "all", "bare"] = "none"  # of q and k, see `_head_norms`
    norm_width: int = 0  # weights a head of norms over all; 0: head_dim
    sinks: bool = False  # one learned logit a head
    gate_width: int = 0  # an output gate: values a head
    gate_bias: bool = False
    values: Literal["projected", "keys"] = "projected"  # "keys": a value is the key before its norm and rotation
    borrowed: bool = False  # keys and values are an earlier layer's
    query_rank: int = 0  # MLA: 0 = queries straight from the hidden vector
    latent_rank: int = 0
    rope_dim: int = 0
    index_heads: int = 0  # of an indexer that selects keys; 0 where an earlier layer's selection serves
    index_dim: int = 0
    selected: int = 0  # keys that the indexer leaves to a token
    index_block: int = 1  # neighbouring keys that are selected together
    experts: int = 0  # pairs of query and output projections: a mixture of attention heads
    active: int = 0  # pairs that a token is sent to; `heads` has the heads of so many
    out_norm: int = 0  # weights a head of a norm before the output projection
    paired: bool = False  # reads the stream beside the embedding, twice as wide, through a norm of its own
    differential: bool = False  # heads in pairs, each with both halves of the values, and one output a pair
    kind: Literal["attention"] = "attention"

    def dimensions(self) -> Dimensions:
        """Heads are cut; those of keys and values are copied where they are fewer than the ranks."""
        width = self.head_dim + self.rope_dim
        q, o = cut(self.heads, width), cut(self.heads, self.value_dim)
        k, v = copied(self.kv_heads, width), copied(self.kv_heads, self.value_dim)
        own = () if self.borrowed else (k,) if self.values == "keys" else (k, v)
        return {
            "heads": (cut(self.heads),),
            "kv_heads": (copied(self.kv_heads),),
            "head_dim": whole(self.head_dim),
            "q": (q,),
            "k": () if self.borrowed else (k,),
            "v": () if self.borrowed else (v,),
            "o": (o,),
            "qkv": (q, *own),
            "gate": (cut(self.heads, self.gate_width),),
            "out_norm": (cut(self.heads, self.out_norm),),
            "lambdas": whole(4 * self.head_dim),
            "head_pairs": (cut(self.heads // 2),),
            "q_rank": whole(self.query_rank),
            "kv_rank": whole(self.latent_rank),
            "latent": whole(self.latent_rank + self.rope_dim),
            "kv_up": (cut(self.heads, self.head_dim + self.value_dim),),
            "index_q": whole(self.index_heads * self.index_dim),
            "index_heads": whole(self.index_heads),
            "index_dim": whole(self.index_dim),
            "index_scores": whole(self.index_heads * (self.index_dim + (1 if self.latent_rank else 0))),
            "q_normed": (cut(self.heads, self.norm_width or width),),
            "k_normed": (copied(self.kv_heads, self.norm_width or width),),
            "kv": (k, v),
            "pair": (copied(self.kv_heads, width),),
            "pairs": whole(self.experts),
        }

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """Projections, the core, the output projection."""
        inputs = self._latent_inputs if self.latent_rank else self._grouped_inputs
        return (
            *inputs(frame, kernels, shared),
            Pointwise("rotate", "T", "qkv", kernels.rotate),
            Move("ring_kv", "cp", "T_all", "ring_kv", times_back="two"),
            Move("swap_heads", "cp", "T", "swap", "all_to_all"),
            self._core(frame, kernels),
            Pointwise("ring_output", "T", "ring_output", kernels.ring_output),
            Pointwise("swapped_output", "T", "swapped_output", SWAPPED),
            *self._gate(),
            *self._out_norm(frame, kernels),
            *(mixed_output(kernels) if self.experts else self._output()),
            Move("scatter_proj", "tp", "T", "hidden", **SCATTER),
        )

    def _output(self) -> tuple[Row, ...]:
        return (Linear("proj", "T", "o", "hidden", waits="T", biased=self.out_bias),)

    def _core(self, frame: Frame, kernels: KernelSet) -> Core:
        width = self.head_dim + self.rope_dim
        return Core(
            "attention",
            fused=kernels.fused_attention,
            scores_keep=kernels.scores_keep + kernels.dropped_scores_keep * frame.dropout,
            scores_move=kernels.scores_move,
            scores_move_back=kernels.scores_move_back,
            sinks=self.sinks,
            slowed=kernels.misaligned_core if width % 8 else 1,
            width=min(width, WIDE),
        )

    def _out_norm(self, frame: Frame, kernels: KernelSet) -> tuple[Row, ...]:
        """A norm of the output; differential attention subtracts the outputs of a pair before it."""
        if self.differential:
            return (
                Scores("second_values", "T", "o"),
                Pointwise("difference", "T", "o", DIFFERENCE, weights="lambdas"),
                norm(frame, kernels, "out_norm", "T", "o", weights="none", groups="head_pairs"),
            )
        return (norm(frame, kernels, "out_norm", "T", "o", weights="out_norm"),) if self.out_norm else ()

    def _gate(self) -> tuple[Row, ...]:
        """An output gate: its own columns of the query projection, a sigmoid, a product."""
        if not self.gate_width:
            return ()
        return (
            Linear("gate", "T", "hidden", "gate", biased=self.gate_bias),
            Pointwise("gate_sigmoid", "T", "gate", SIGMOID_AGAIN),
            Pointwise("gated_output", "T", "o", PRODUCT),
        )

    def _grouped_inputs(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        waits = "W" if shared else "G"
        stream = "pair" if self.paired else "hidden"
        plain = (Linear("qkv", "T", stream, "qkv", waits=waits, biased=self.qkv_bias, matrices=3),)
        return (
            *([norm(frame, kernels, "pair_norm", "S", "pair")] if self.paired else []),
            Move("gather_qkv", "tp", "T", stream, **GATHER),
            *(mixed_inputs(kernels, waits) if self.experts else plain),
            *self._head_norms(frame, kernels),
            *self._block_indexer(frame, kernels),
        )

    def _head_norms(self, frame: Frame, kernels: KernelSet) -> tuple[Row, ...]:
        """Norms of q and k: a head wide with weights of all heads ("head"), of each ("heads", never a shift) or without
        ("bare"); or over all heads together ("all")."""
        if self.head_norm == "none":
            return ()
        if self.head_norm == "heads":
            made = (
                norm(frame, kernels, "q_norm", "T", "q", per="one", groups="heads"),
                norm(frame, kernels, "k_norm", "T", "k", per="one", groups="kv_heads"),
            )
        elif self.head_norm == "all":
            made = (
                norm(frame, kernels, "q_norm", "T", "q", weights="q_normed"),
                norm(frame, kernels, "k_norm", "T", "k", weights="k_normed"),
            )
        else:
            weights = "none" if self.head_norm == "bare" else "head_dim"
            made = (
                norm(frame, kernels, "q_norm", "T", "q", weights=weights, groups="heads"),
                norm(frame, kernels, "k_norm", "T", "k", weights=weights, groups="kv_heads"),
            )
        return made[:1] if self.borrowed else made

    def _latent_inputs(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """Multi-head latent attention, in its expanded form: the down projections run on each rank's own tokens."""
        bias = self.qkv_bias
        keys = (
            Linear("kv_down", "S", "hidden", "latent", biased=bias),
            norm(frame, kernels, "kv_norm", "S", "latent", weights="kv_rank"),
            Move("gather_latent", "tp", "T", "latent", **GATHER),
            Linear("kv_up", "T", "kv_rank", "kv_up", waits="G"),
        )
        if not self.query_rank:
            queries = Linear("q", "T", "hidden", "q", waits="W" if shared else "G")
            return Move("gather_q", "tp", "T", "hidden", **GATHER), queries, *keys
        return (
            Linear("q_down", "S", "hidden", "q_rank", waits="none" if shared else "S", biased=bias),
            norm(frame, kernels, "q_norm", "S", "q_rank"),
            Move("gather_q", "tp", "T", "q_rank", **GATHER),
            Linear("q_up", "T", "q_rank", "q", waits="G"),
            *keys,
            *self._indexer(kernels),
        )

    def _indexer(self, kernels: KernelSet) -> tuple[Row, ...]:
        """The indexer of sparse attention: every rank scores all keys with a few small heads, then keeps the best."""
        if not self.index_heads:
            return ()
        return (
            Linear("index_q", "S", "q_rank", "index_q"),
            Linear("index_k", "S", "hidden", "index_dim"),
            Pointwise("index_norm", "S", "index_dim", kernels.layer_norm, weights="index_dim", per="two"),
            Linear("index_weights", "S", "hidden", "index_heads"),
            Pointwise("index_inputs", "S", "index_scores", INDEX),
            Scores("index_scores", "S", "index_scores"),
            Pointwise("index_choices", "S", "chosen", CHOICES),
        )

    def _block_indexer(self, frame: Frame, kernels: KernelSet) -> tuple[Row, ...]:
        """The same where blocks of keys are selected, by each head for its own group, and hidden vectors are read.

        A token sees on average half of its own block; the block is counted whole.
        """
        if not self.index_heads:
            return ()
        return (
            Linear("index_q", "S", "hidden", "index_q"),
            norm(frame, kernels, "index_q_norm", "S", "index_q", weights="index_dim", groups="index_heads"),
            Linear("index_k", "S", "hidden", "index_dim"),
            norm(frame, kernels, "index_k_norm", "S", "index_dim"),
            Pointwise("index_inputs", "S", "index_scores", INDEX),
            Scores("index_scores", "S", "index_scores"),
            Pointwise("index_choices", "S", "chosen", CHOICES),
        )
