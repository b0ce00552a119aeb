"""How large every named dimension is on one rank: the only place where a layout divides anything."""

from ..engines.engine import Engine, KernelSet
from ..formula import ceil, divide, maximum, minimum, where
from ..job import AUTO, Job, gathered_value_of
from ..model.model import Block, Model
from ..model.operations import Sizes
from ..model.parts import Attention, CompressedAttention, Experts
from ..model.parts.part import Dimension
from ..quantities import Count, Flag, Real, Share, Tokens
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


def deals_scan(layout: Layout, engine: Engine) -> Flag:
    """Whether context parallelism deals the heads of recurrent parts: under Ulysses; in some engines always."""
    deals: Flag = (layout.cp_kind == "ulysses") | (engine.scan_context == "heads")
    return deals


def keeps_gathered(layout: Layout, kernels: KernelSet) -> Flag:
    """Whether gathered inputs wait for the backward pass: as the layout says, else as the kernels do."""
    return kernels.keeps_gathered if layout.keep_gathered is AUTO else layout.keep_gathered


def _exchange_sizes(layout: Layout, engine: Engine, kernels: KernelSet) -> dict[str, Count]:
    """Groups of the axes, their strides in the order tp, cp, ep, dp, pp, and how often each collective passes."""
    again = 0 if keeps_gathered(layout, kernels) else 1
    deals = where(deals_scan(layout, engine), 1, 0)
    return {
        "tp": layout.tp, "tp_stride": 1, "cp": layout.cp, "cp_stride": layout.tp,
        "etp": layout.etp, "etp_stride": 1, "ep": layout.ep, "ep_stride": layout.etp,
        "with_sp": where(layout.sp, 1, 0), "scatter_forward": where(layout.sp, 1, 2),
        "gather_back": where(layout.sp, 1 + again, 2),
        "deals_heads": deals, "passes_states": 1 - deals,
    }  # fmt: skip


def on_rank(pieces: tuple[Dimension, ...], layout: Layout, dealers: Count = 1) -> Real:
    """Values of a dimension on one rank: its units over the ranks that cut them, one at least where they are copied,
    or one for each of the ranks (`dealers`) that heads are dealt to."""
    ranks = {"none": 1, "tp": layout.tp, "etp": layout.etp, "ep": layout.ep}
    held: list[Count] = []
    for piece in pieces:
        units = piece.units / ranks[piece.cut] if piece.cut != "none" else piece.units
        if piece.copied or piece.dealt:
            units = maximum(units, dealers if piece.dealt else 1)
        held.append(units * piece.width)
    return sum(held[1:], held[0]) if held else 0


def compressed_keys(sequence: Tokens, rate: Count, selected: Count) -> Tokens:
    """Compressed keys a token sees on average: one for each whole `rate` tokens up to it, `selected` of them at most.

    Exact where the sequence is a multiple of the rate: the mean over i of min(selected, floor(i / rate)).
    """
    made: Tokens = sequence / rate
    most: Tokens = where(selected > 0, minimum(selected, made), made)
    return maximum(mean_keys(made, selected) - most * (rate - 1) / (rate * made), 0)


def _compressed_sizes(at: CompressedAttention, job: Job, here: dict[str, Count]) -> dict[str, Count]:
    """What attention sees of a window and of compressed keys; context parallelism gathers the compressed ones."""
    document = minimum(job.document, job.sequence_length)
    counts_seen = job.attention_flops == "causal"
    near, made = mean_keys(document, at.window), document / at.rate if at.rate else 0
    far = compressed_keys(document, at.rate, at.selected) if at.rate else 0
    full = minimum(at.window, document) + (minimum(at.selected, made) if at.selected else made)
    every = compressed_keys(document, at.rate, 0) if at.rate else 0
    return {
        "span": job.sequence_length + (job.sequence_length / at.rate if at.rate else 0),
        "keys": near + far, "counted_keys": near + far if counts_seen else full,
        "all_keys": every, "counted_all_keys": every if counts_seen else made,
        "ring_kv": here["compressed"] + here["index_compressed"], "swap": 0, "hides": 0,
    }  # fmt: skip


def _attention_sizes(
    at: Attention, job: Job, layout: Layout, here: dict[str, Count], kernels: KernelSet
) -> dict[str, Count]:  # fmt: skip
    """What an attention core sees, and what context parallelism exchanges for it."""
    sequence = minimum(minimum(at.chunk or job.sequence_length, job.document), job.sequence_length)
    window = at.window or at.selected
    full = minimum(window or sequence, sequence)
    swapped, ring = layout.cp_kind == "ulysses", layout.cp_kind == "ring"
    counts_seen = job.attention_flops == "causal"
    keys, every = mean_keys(sequence, window), mean_keys(minimum(job.document, job.sequence_length), 0)
    k, v = here["k"], here["v"]
    copies = tokens_on_rank(job, layout) * at.active
    return {
        "span": job.sequence_length, "keys": keys, "counted_keys": keys if counts_seen else full,
        "all_keys": every, "counted_all_keys": every if counts_seen else job.sequence_length,
        "chosen": divide(minimum(at.selected, job.sequence_length), at.index_block), "C": copies,
        "Y": divide(copies, at.experts),
        "ring_kv": where(swapped, 0, k + v), "swap": where(swapped, here["q"] + k + v + here["o"], 0),
        "swapped_output": where(swapped & (layout.cp > 1), here["o"], 0),
        "hides": where(ring, 1, 0),
        "in_ring": where(ring & (layout.cp > 1), kernels.ring_attention, 1),
        "ring_output": where(ring & (layout.cp > 1), here["o"] * layout.cp, 0),
    }  # fmt: skip


def _launches(layout: Layout, engine: Engine) -> dict[str, Count]:
    """What a layer takes at least on the host, which launches its kernels and its collectives one by one where they are
    no CUDA graph: two all-reduces a pass, or two gathers and two scatters."""
    collectives = where(layout.tp > 1, where(layout.sp, 4, 2), 0) * engine.layer_floor_collective_seconds
    return {
        "host_floor": where(layout.graphs == "none", engine.layer_floor_seconds + collectives, 0),
        "host_floor_back": where(layout.graphs == "none", engine.layer_floor_back_seconds + collectives, 0),
    }


def _waits(layout: Layout, engine: Engine, here: dict[str, Count]) -> dict[str, Count]:
    """What a layer with experts waits for: the router's choices, and the host, which reads how many tokens each expert
    of a rank has before it launches their multiplies. A whole step in one CUDA graph has neither."""
    several, whole = here["E"] > 1, where(layout.graphs == "full", 0, 1)
    floor = where(layout.graphs == "partial", engine.expert_floor_partial, whole) * engine.expert_floor_seconds
    return {
        "router_wait": whole * engine.router_seconds,
        "host_floor": where(several, floor, here["host_floor"]),
        "host_floor_back": where(several, engine.expert_floor_back * floor, here["host_floor_back"]),
    }


def sent_share(job: Job) -> Share:
    """Routed copies that a rank sends over those that its tokens choose: a capacity drops some, or pads to it."""
    bound: Share = where(job.expert_capacity > 0, minimum(job.expert_capacity, 1), 1)
    return where(job.pad_to_capacity, job.expert_capacity, bound)


def received_share(job: Job) -> Share:
    """Tokens of the busiest expert rank over the mean: as unequal as experts are, at most the capacity."""
    bound: Share = minimum(job.expert_imbalance, job.expert_capacity)
    free: Share = where(job.expert_capacity > 0, bound, job.expert_imbalance)
    return where(job.pad_to_capacity, job.expert_capacity, free)


def _expert_sizes(
    part: Experts, job: Job, layout: Layout, scattered: Tokens, hidden: Count, experts: Count
) -> dict[str, Count]:  # fmt: skip
    """How many tokens reach the experts of a rank, and what their exchange carries."""
    chosen = scattered * part.active
    dispatched, routed = chosen * sent_share(job), chosen * layout.etp * received_share(job)
    gathers = layout.moe_dispatch == "all_gather"
    stream = part.latent_width or hidden
    return {
        "fan_out": where(layout.moe_dispatch == "deduplicated", part.active, 0),
        "choices": chosen, "D": dispatched, "R": routed, "X": divide(routed, experts), "S_all": scattered * layout.ep,
        "arrived": where(gathers, 0, where(layout.ep > 1, stream / layout.etp, 0)),
        "exchanged": where(gathers, 0, stream), "gathered": where(gathers, stream, 0),
        "copies": where(gathers, 0, 2 * (dispatched + routed)) + (scattered if part.shared_width else 0),
    }  # fmt: skip


def _part_sizes(
    block: Block, model: Model, job: Job, layout: Layout, engine: Engine, scattered: Tokens, kernels: KernelSet
) -> dict[str, Count]:  # fmt: skip
    dealers: Count = where(deals_scan(layout, engine), layout.cp, 1)
    dimensions = [named for part in block.parts for named in part.dimensions().items()]
    here = {name: on_rank(pieces, layout, dealers) for name, pieces in dimensions}
    if block.parts:
        here |= _launches(layout, engine)
    if block.attention:
        here |= _attention_sizes(block.attention, job, layout, here, kernels)
    if block.compressed:
        here |= _compressed_sizes(block.compressed, job, here)
    if block.experts:
        here |= _expert_sizes(block.experts, job, layout, scattered, model.hidden, here["E"])
        here |= _waits(layout, engine, here)
    return here


def sizes(model: Model, block: Block, job: Job, layout: Layout, engine: Engine, kernels: KernelSet) -> Sizes:
    """Name -> size on one rank. `T` tokens of a micro-batch, `S` those left by sequence parallelism, `G` where gathered
    inputs wait, `W` the same where another row keeps the scattered input, `choices` of tokens for experts, `D` routed
    copies sent, `R` received, `X` tokens an expert, `E` experts."""
    tokens = tokens_on_rank(job, layout)
    scattered, kept = tokens / layout.sliced, keeps_gathered(layout, kernels)
    own = where(layout.apart, 1, 0) if model.tied else 1
    vocab = padded_vocabulary(model.vocab, layout.tp, engine.vocab_multiple)
    return {
        "none": 0, "one": 1, "two": 2, "multiply_add": MULTIPLY_ADD, "value": job.activation_bytes,
        "T": tokens, "T_all": tokens * layout.cp, "S": scattered,
        "G": tokens if kept else scattered,
        "W": where(layout.sp, tokens, 0) if kept else 0,
        "loss_part": 1 / layout.loss_chunks, "chunked": where(layout.loss_chunks > 1, 1, 0),
        "byte": 1, "adapter_rank": job.adapter_rank, "plain_gradient": 0 if engine.dummy_gradients else 1,
        "sequences": layout.micro_batch, "sequences_all": layout.micro_batch * layout.cp,
        "hidden": model.hidden, "pair": 2 * model.hidden, "stream": model.streams * model.hidden,
        "positions": model.positions, "extra": model.extra_parameters,
        "own_head": own, "vocab": vocab, "table_rows": vocab + model.spare_vectors / layout.tp,
        "table": model.embedding_width or model.hidden, "hides": 0, "in_ring": 1, "ring_output": 0,
        "gathered_value": gathered_value_of(job, engine),
        "tp_copied": where(layout.micro_batch > 1, engine.tp_copied, 0),
        "rank_skew": engine.rank_skew_seconds, "router_wait": 0, "host_floor": 0, "host_floor_back": 0,
        **_exchange_sizes(layout, engine, kernels),
        **_part_sizes(block, model, job, layout, engine, scattered, kernels),
    }  # fmt: skip
