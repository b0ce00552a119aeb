"""What an engine fixes: the bytes of a parameter, the kernels it runs, its buffers and its habits."""

from dataclasses import dataclass
from typing import Literal

from ..quantities import PlainBandwidth, PlainBytes, PlainSeconds, PlainShare
from .profile import Profile

MEGATRON = ("megatron", "megatron-0.15", "megatron-2022", "megatron-2021", "zero_bubble")  # Megatron-LM itself


@dataclass(frozen=True)
class Kernel:
    """One memory-bound kernel, per value of its width: what it moves, and what it keeps for its backward pass."""

    moves: float  # values read and written, forward
    moves_back: float  # the same, backward
    keeps: float = 0  # values of the activation's type
    keeps_bytes: PlainBytes = 0  # a value of the width, besides: fp32 copies, masks
    keeps_group: PlainBytes = 0  # a group (a token; a head of a token): statistics


@dataclass(frozen=True)
class KernelSet:
    """The kernels of one engine and release: what each keeps is what the tape holds."""

    name: str
    rms_norm: Kernel
    layer_norm: Kernel
    gated_activation: Kernel  # over gate and up together
    plain_activation: Kernel
    rotate: Kernel  # positions, bias and transposes of q, k and v
    residual: Kernel
    gated_norm: Kernel  # of what a delta rule gives, times its gate
    permute: Kernel  # routed tokens into the order of their experts, and back
    clamp: Kernel  # of gate and up, before an activation that does not clamp itself
    expert_bias: Kernel  # added to what experts give, each times its weight, where no multiply adds it
    loss: Kernel  # cross entropy, over the logits of this rank
    loss_workspace: PlainBytes  # a logit, at the moment of the loss, beyond what is kept
    cut_loss_workspace: PlainBytes  # the same where tensor parallelism cuts the vocabulary
    mask: PlainBytes  # a value of a dropout mask
    fused_attention: bool  # no score is ever kept
    fuses_norms: bool  # the norm before a matrix is one kernel with it: nothing of it can run again by itself
    fuses_scan: bool  # norms and projections around a scan are in its kernel; else the input of each waits
    scores_keep: PlainBytes  # a score that unfused attention keeps
    dropped_scores_keep: PlainBytes  # a score, more where attention has dropout
    scores_move: PlainBytes  # read and written, a score, forward
    scores_move_back: PlainBytes  # read and written, a score, backward
    attention_shares: tuple[tuple[str, float, float], ...]  # of the matrix rate, by the begin of an accelerator's name
    attention_fill: float  # blocks of attention a multiprocessor, with which half of the device is busy
    grouped_rows: float  # rows an expert with which a grouped multiply reaches half its rate
    grouped_rows_back: float  # the same of the weights' gradient
    keeps_gathered: bool  # under sp, gathered inputs wait for the backward pass; else they are gathered again
    keeps_expert_output: bool  # each routed copy of an expert's output waits to be weighted
    holds_copies: bool  # routed copies on both sides of both exchanges stand until a layer's output is combined
    router_keeps_expert: PlainBytes  # a token and expert
    router_keeps_choice: PlainBytes  # a token and chosen expert
    elementwise: float  # time of memory-bound kernels over their bytes at full rate
    misaligned_core: float  # time of the core where a head is not a multiple of 8 values wide, over that of one that is
    narrow_heads: tuple[tuple[str, float, float], ...]  # width that a score costs besides its products, by the same
    ring_attention: float  # time of the core in the pieces of a ring, over that of the core in one
    ring_output: Kernel  # what corrects a value of its output, for each piece of the ring
    source: str

    def attention_on(self, accelerator: str) -> tuple[float, float]:
        """What its own attention core reaches on an accelerator, forward and backward; 0 where it takes the usual."""
        return _on(self.attention_shares, accelerator)

    def narrow_on(self, accelerator: str) -> tuple[float, float]:
        """Width that a score costs besides its products on an accelerator; 0 where it was not measured."""
        return _on(self.narrow_heads, accelerator)


def _on(known: tuple[tuple[str, float, float], ...], accelerator: str) -> tuple[float, float]:
    """The pair of the first begin of a name that fits; else zeros."""
    found = (pair for begin, *pair in known if accelerator.startswith(begin))
    forward, back = next(found, (0.0, 0.0))
    return forward, back


@dataclass(frozen=True)
class Workspaces:
    """What libraries of matrix multiplies take from a framework's allocator on one accelerator."""

    held: PlainBytes  # from the first step on
    grouped: PlainBytes  # more, where experts are multiplied in groups


@dataclass(frozen=True)
class TimeBands:
    """How far a step's measured time lies from its count, up or down: what each part of a case adds, as shares."""

    engine: PlainShare
    precision: PlainShare
    experts: PlainShare
    accelerator: PlainShare
    kind: Literal["measured", "assumed"]  # measured where every share that is above 0 is


@dataclass(frozen=True)
class Engine:
    """One engine and release."""

    name: str
    title: str
    recipe: str
    recipe_fp16: str  # the same for fp16 runs
    kernels: str
    precisions: tuple[str, ...]  # of the matrix multiplies, those it has
    optimizers: tuple[str, ...]  # those it has by a name of its own
    axes: tuple[str, ...]  # of tp, cp, pp, ep and etp, those it has
    zero: int  # its usual ZeRO stage
    zero_stages: tuple[int, ...]  # those it has
    zero_with_pp: int  # the highest that it runs with a pipeline
    usual_zero_with_pp: int  # with a pipeline its usual stage is no higher
    zero_with_tp: int  # the same with tensor parallelism
    schedules: tuple[str, ...]  # orders of a pipeline that it runs, the usual first; a search goes through these
    cp_kinds: tuple[str, ...]  # of context parallelism, the usual first
    scan_context: str  # what it does for recurrent parts: "heads" dealt, "states" handed on, "none"
    recompute: str  # its usual kind
    recomputes: tuple[str, ...]  # the kinds it has
    recompute_modules: tuple[str, ...]  # those that it recomputes under `selective`, the usual first
    drops_unread: bool  # full recompute leaves out a matrix whose output is only added to the stream
    chunks_loss: bool  # head and loss can run through the tokens part by part
    expert_capacity: tuple[str, ...]  # what it does beyond a capacity of experts: "drop" tokens, "pad" to it
    recompute_part: str  # of a stage's layers under `full`: any, every_nth, or all
    splits_layers: bool  # it takes the layers of each stage from the user; else it cuts the layers itself
    copies_kv_heads: bool  # key/value heads fewer than tp are copied to several ranks
    even_rounds: bool  # interleaving shares micro-batches equally by rounds; else groups of pp
    slices_sequence: bool  # it has sequence parallelism, and uses it with tensor parallelism unless told otherwise
    chooses_gathered: bool  # it takes from the user whether gathered inputs wait; else its kernels decide
    overlap_needs_sp: bool  # tensor-parallel exchange overlaps with sequence parallelism alone
    vocab_multiple: int  # the vocabulary is padded to a multiple of this times tp
    compute_bytes: PlainBytes  # of a gathered weight
    gathered_blocks: int  # blocks whose weights stand gathered at one time under ZeRO-3
    gathers_ends: bool  # embedding and head are gathered once a micro-batch and stay, under ZeRO-3
    ends_apart: bool  # the embedding is a group like a block; final norm and head are one that stays alone
    gathers_again: bool  # ZeRO-2 cuts the weights again after each backward pass, and gathers them for the next
    defers_sync: bool  # with a pipeline, gradients stay whole until the last backward pass, then are scattered once
    accumulates_whole: bool  # the same without one, where micro-batches accumulate
    offloads: tuple[str, ...]  # what it moves to host memory: optimizer, parameters, activations
    offloads_gradients: str  # sharded gradients leave with what is offloaded: optimizer, parameters, none
    reduce_bytes: PlainBytes  # of a gradient on the wire
    reduce_bytes_fp16: PlainBytes  # the same in fp16 runs
    narrows_sharded: bool  # from ZeRO-2 on gradients are reduced in the type of the matrix multiplies
    bucket_elements: float  # gradients in a bucket that is allocated whole, from ZeRO-1 on; twice where one is sent
    casts_weights: bool  # replicas keep a copy of their fp32 weights in the type of the matrix multiplies
    copies_gradients: bool  # replicas copy their gradients into buckets
    dummy_gradients: PlainBytes  # a value of one matrix of each shape, which its kernels write instead of a gradient
    workspaces: tuple[str, ...]  # libraries whose workspaces are tensors of the framework: rows of their table
    gather_buffers: float  # buffers of a layer's gathered input that stay, under sp
    wraps_loss: bool  # the loss is inside what is wrapped: its backward pass begins with a block gathered ahead
    scatters_blocks: bool  # a block's weights are gathered ahead, its gradients scattered while the next block runs
    frees_gradients: bool  # sharded gradients of a step come with its backward pass, and go with its update
    receives_all: (
        bool  # a stage has a tensor for each message of a step, and holds what it gave until the backward pass
    )
    held_logits: PlainBytes  # a logit that the last stage of a pipeline holds beside its loss
    splits_sends: bool  # a stage sends each tensor-parallel rank's slice, also without sp
    counts_ends: bool  # embedding and head count as layers when layers are shared by stages
    workspace_bytes: PlainBytes  # communication buffers, and what libraries take outside the framework's allocator
    workspace_low: PlainBytes
    workspace_high: PlainBytes
    slack_share: PlainShare  # reserved over allocated, less one
    slack_low: PlainShare
    slack_high: PlainShare
    weights_sharded_from: int  # ZeRO stage from which weights are sharded
    tp_copied: float  # times that a buffer of tp's gathers and scatters is read or written to put sequences in order
    tp_hidden: PlainShare  # share of tensor-parallel exchange that overlap_tp hides
    dp_hidden: PlainShare  # share of compute under which data-parallel exchange can run
    dp_exposed: PlainShare  # least share of data-parallel exchange that shows
    step_seconds: PlainSeconds  # what a step costs besides: gradient norm, scaler, data, Python
    backward_exposed: PlainShare  # share of the backward tensor-parallel exchange that is not hidden, without sp
    optimizer_traffic: PlainBytes  # read and written, a parameter, by one optimizer step
    host_memory: PlainBandwidth  # of host memory that an offloaded optimizer step reaches, for one accelerator
    saved_copies: tuple[float, ...]  # of the trained weights in a checkpoint, by ZeRO stage
    saves_wide: bool  # master weights and moments are written in fp32, in whatever types they are kept
    saves_shared_from: int  # ZeRO stage from which ranks with the same state share the writing; 4: the first writes it
    loads_whole: tuple[str, ...]  # who holds a whole model on a host as it loads, by ZeRO stage: rank, node, job, none
    moves_whole: bool  # under ZeRO-3 a model that was not made in parts is moved whole to each accelerator
    ep_hidden: PlainShare  # share of the exchange between experts that overlap_ep hides
    router_seconds: PlainSeconds  # a layer with experts and direction: choices, and their bookkeeping
    layer_floor_seconds: PlainSeconds  # least forward time of a layer, whose kernels the host launches one by one
    layer_floor_back_seconds: PlainSeconds  # the same of its backward pass
    layer_floor_collective_seconds: PlainSeconds  # what each collective of the layer adds to both
    expert_floor_seconds: PlainSeconds  # the same of a layer with experts, whose sizes the host waits for
    expert_floor_partial: PlainShare  # of that, where parts of the layer are CUDA graphs
    expert_floor_back: float  # its backward pass over its forward pass
    wire_accesses: float  # bytes of device memory that a byte of data-parallel exchange costs the kernels beside it
    straggler_share: PlainShare  # of the work, that a step waits longer a doubling of its nodes
    rank_skew_seconds: PlainSeconds  # that a pass of tensor parallelism waits for its slowest rank
    source: str
    profile: Profile | None = None  # whose constants stand in it and in its kernel set
