"""How large every named dimension is on one rank: the only place where a layout divides anything."""

from ..engines.engine import Engine, KernelSet
from ..formula import ceil, divide, maximum, minimum, where
from ..job import Job
from ..model.model import Attention, Block, FeedForward, Model
from ..model.operations import Sizes
from ..quantities import Count, Tokens
from .axes import Layout

MULTIPLY_ADD = 2  # FLOPs of one multiply-add, the field's convention


def tokens_on_rank(job: Job, layout: Layout) -> Tokens:
    """Tokens of one micro-batch on one rank, before sequence parallelism: b s / cp."""
    return layout.micro_batch * job.sequence_length / layout.cp


def mean_keys(sequence: Tokens, window: Tokens) -> Tokens:
    """Keys a token sees on average under a causal mask: (s + 1)/2; with a window of w keys, w - w(w - 1)/(2s)."""
    seen: Tokens = where(window > 0, minimum(window, sequence), sequence)
    return seen - seen * (seen - 1) / (2 * sequence)


def padded_vocabulary(vocab: Count, tp: Count, multiple: Count) -> Count:
    """Rows of the embedding on one tensor-parallel rank: padded to a multiple of `multiple` x tp, over tp.

    Source: Megatron-LM, --make-vocab-size-divisible-by; a multiple of 1 pads to tp alone.
    """
    return ceil(vocab / (multiple * tp)) * multiple


def _exchange_sizes(layout: Layout, kernels: KernelSet) -> dict[str, Count]:
    """Groups of the axes, their strides in the order tp, cp, ep, dp, pp, and how often each collective passes."""
    again = 0 if kernels.keeps_gathered else 1
    return {
        "tp": layout.tp, "tp_stride": 1, "cp": layout.cp, "cp_stride": layout.tp,
        "etp": layout.etp, "etp_stride": 1, "ep": layout.ep, "ep_stride": layout.etp,
        "with_sp": where(layout.sp, 1, 0), "scatter_forward": where(layout.sp, 1, 2),
        "gather_back": where(layout.sp, 1 + again, 2),
    }  # fmt: skip


def _attention_sizes(at: Attention, job: Job, layout: Layout) -> dict[str, Count]:
    heads = at.heads / layout.tp
    kv_heads = maximum(at.kv_heads / layout.tp, 1)  # fewer than tp: each is copied to several ranks
    width = at.head_dim + at.rope_dim
    q, k, v, o = heads * width, kv_heads * width, kv_heads * at.value_dim, heads * at.value_dim
    swapped = layout.cp_kind == "ulysses"
    keys = mean_keys(job.sequence_length, at.window)
    full = minimum(at.window or job.sequence_length, job.sequence_length)
    return {
        "heads": heads, "kv_heads": kv_heads, "head_dim": at.head_dim, "q": q, "k": k, "v": v, "o": o, "qkv": q + k + v,
        "q_rank": at.query_rank, "kv_rank": at.latent_rank, "latent": at.latent_rank + at.rope_dim,
        "kv_up": heads * (at.head_dim + at.value_dim), "span": job.sequence_length, "keys": keys,
        "counted_keys": keys if job.attention_flops == "causal" else full,
        "ring_kv": where(swapped, 0, k + v), "swap": where(swapped, q + k + v + o, 0),
        "hides": where(layout.cp_kind == "ring", 1, 0),
    }  # fmt: skip


def _feed_forward_sizes(
    part: FeedForward, job: Job, layout: Layout, scattered: Tokens, hidden: Count
) -> dict[str, Count]:
    wide = 2 if part.gated else 1
    dispatched = scattered * part.active
    routed = dispatched * layout.etp * job.expert_imbalance
    experts = part.experts / layout.ep
    gathers = layout.moe_dispatch == "all_gather"
    return {
        "ffn": part.width / layout.tp, "ffn_in": wide * part.width / layout.tp,
        "shared": part.shared_width / layout.tp, "shared_in": wide * part.shared_width / layout.tp,
        "expert": part.expert_width / layout.etp, "expert_in": wide * part.expert_width / layout.etp,
        "router": part.experts, "E": experts, "D": dispatched, "R": routed, "X": divide(routed, experts),
        "S_all": scattered * layout.ep, "exchanged": where(gathers, 0, hidden), "gathered": where(gathers, hidden, 0),
    }  # fmt: skip


def sizes(model: Model, block: Block, job: Job, layout: Layout, engine: Engine, kernels: KernelSet) -> Sizes:
    """Name -> size on one rank. `T` tokens of a micro-batch, `S` those left by sequence parallelism, `G` where gathered
    inputs wait, `W` the same where another row keeps the scattered input, `D` routed copies sent, `R` received,
    `X` tokens an expert, `E` experts."""
    tokens = tokens_on_rank(job, layout)
    scattered = tokens / layout.sliced
    own = where(layout.apart, 1, 0) if model.tied else 1
    return {
        "none": 0, "one": 1, "two": 2, "multiply_add": MULTIPLY_ADD, "value": job.activation_bytes,
        "T": tokens, "T_all": tokens * layout.cp, "S": scattered,
        "G": tokens if kernels.keeps_gathered else scattered,
        "W": where(layout.sp, tokens, 0) if kernels.keeps_gathered else 0,
        "hidden": model.hidden, "positions": model.positions, "own_head": own,
        "vocab": padded_vocabulary(model.vocab, layout.tp, engine.vocab_multiple),
        **_exchange_sizes(layout, kernels), **_attention_sizes(block.attention, job, layout),
        **_feed_forward_sizes(block.feed_forward, job, layout, scattered, model.hidden),
    }  # fmt: skip
