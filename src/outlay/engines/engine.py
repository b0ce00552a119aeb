"""What an engine fixes: the bytes of a parameter, the kernels it runs, its buffers and its habits."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """Bytes a parameter: weights, gradients, and optimizer state (master weights and moments)."""

    name: str
    weights: float  # B, what forward and backward read
    gradients: float  # B
    optimizer: float  # B, master weights and moments

    @property
    def bytes_per_parameter(self) -> float:
        """All of it together, before anything is divided."""
        return self.weights + self.gradients + self.optimizer


@dataclass(frozen=True)
class Kernel:
    """One memory-bound kernel, per value of its width: what it moves, and what it keeps for its backward pass."""

    moves: float  # values read and written, forward
    moves_back: float  # the same, backward
    keeps: float = 0  # values of the activation's type
    keeps_bytes: float = 0  # B a value besides: fp32 copies, masks
    keeps_group: float = 0  # B a group (a token; a head of a token): statistics


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
    permute: Kernel  # routed tokens into the order of their experts, and back
    loss: Kernel  # cross entropy, over the logits of this rank
    loss_workspace: float  # B a logit at the moment of the loss, beyond what is kept
    mask: float  # B a value of a dropout mask
    fused_attention: bool  # no score is ever kept
    scores_keep: float  # B a score that unfused attention keeps
    dropped_scores_keep: float  # B a score more where attention has dropout
    scores_move: float  # B a score read and written, forward
    scores_move_back: float  # B a score read and written, backward
    attention_share: float  # of the matrix rate; 0 = what the accelerator's fused kernel reaches
    keeps_gathered: bool  # under sp, gathered inputs wait for the backward pass; else they are gathered again
    keeps_expert_output: bool  # each routed copy of an expert's output waits to be weighted
    router_keeps_expert: float  # B a token and expert
    router_keeps_choice: float  # B a token and chosen expert
    elementwise: float  # time of memory-bound kernels over their bytes at full rate
    source: str


@dataclass(frozen=True)
class Engine:
    """One engine and release."""

    name: str
    title: str
    recipe: str
    kernels: str
    zero: int  # its usual ZeRO stage
    zero_stages: tuple[int, ...]  # those it has
    vocab_multiple: int  # the vocabulary is padded to a multiple of this times tp
    compute_bytes: float  # B of a gathered weight
    gathered_blocks: int  # blocks whose weights stand gathered at one time under ZeRO-3
    gathers_ends: bool  # embedding and head are gathered once a micro-batch and stay, under ZeRO-3
    gathers_again: bool  # ZeRO-2 cuts the weights again after each backward pass, and gathers them for the next
    defers_sync: bool  # with a pipeline, gradients stay whole until the last backward pass, then are scattered once
    reduce_bytes: float  # B of a gradient on the wire
    splits_sends: bool  # a stage sends each tensor-parallel rank's slice, also without sp
    pipelines: bool
    counts_ends: bool  # embedding and head count as layers when layers are shared by stages
    workspace_bytes: float  # B, libraries' workspaces and communication buffers
    workspace_low: float
    workspace_high: float
    slack_share: float  # reserved over allocated, less one
    slack_low: float
    slack_high: float
    weights_sharded_from: int  # ZeRO stage from which weights are sharded
    tp_hidden: float  # share of tensor-parallel exchange that overlap_tp hides
    dp_hidden: float  # share of compute under which data-parallel exchange can run
    dp_exposed: float  # least share of data-parallel exchange that shows
    step_seconds: float  # s, what a step costs besides: gradient norm, scaler, data, Python
    backward_exposed: float  # share of the backward tensor-parallel exchange that is not hidden, without sp
    optimizer_traffic: float  # B a parameter read and written by one optimizer step
    host_memory: float  # B/s of host memory that an offloaded optimizer step reaches, for one accelerator
    time_band: float  # share of a step's time, up and down
    source: str
