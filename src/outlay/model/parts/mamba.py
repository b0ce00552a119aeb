"""Selective state spaces: Mamba-1, whose scan is element-wise, and Mamba-2, whose scan is matrix products in chunks."""

from dataclasses import dataclass, replace
from typing import Literal

from ...engines.engine import KernelSet
from ..moves import Move
from ..operations import Linear, Pointwise, Row
from ..scan import Scan
from .kernels import CONVOLUTION, GATED_NORM, IN_SCAN, REPEATED
from .part import SUM, Dimension, Dimensions, Frame, cut, norm, whole
from .scanning import (
    FLOAT,
    FP32,
    convolve,
    exchange,
    project_in,
    project_out,
    sum_statistic,
    tail,
    taps,
)

SAVED_EVERY = 2048  # tokens between the states that the scan of Mamba-1 keeps; source: state-spaces/mamba, its kernel

# What the five kernels of Mamba-2's scan move, in values of 16 bit a token; source: state-spaces/mamba
# mamba_ssm/ops/triton, ssd_chunk_state.py, ssd_state_passing.py, ssd_bmm.py, ssd_chunk_scan.py.
SSD_VALUES = 3  # a channel: x read for the states and for the output, which is written
SSD_STATES = 6  # a state: written and read in fp32, handed on and read in 16 bit
SSD_STEPS = 12  # a head: time steps and their sums, in fp32
SSD_SHARED = 4  # a group: B and C read twice; C B' written and read in fp32, a value a token of the chunk
SSD_BACK = 3.2  # backward over forward: states made again, eleven values a channel and seventeen a state
SSD_SLOWED = 1.9  # time over that of these bytes; measured: 128 heads of 64, state 128, run 12.6 to 12.9 million tokens
# a second on H100 (vllm-project/vllm pull request 27299, the kernels before it, 8,192 and 16,384 tokens)


@dataclass(frozen=True)
class Mamba:
    """Mamba-1. Tensor parallelism cuts channels, and sums what they give to the time step and to B and C.

    Model FLOPs of the scan by convention, 9 a channel and state and 2 a channel (as VMamba counts them): they are
    element-wise, no counter of matrix products sees them, and their time is that of the bytes they move. Kept is what
    MambaInnerFn of state-spaces/mamba saves: both halves of the projection, time step rank, B and C twice, the scan's
    output and a state in fp32 every 2,048 tokens. Convolution output, time steps and what goes into the projection out
    are computed again. Where a class runs them apart, these wait too, and SelectiveScanFn saves its own copies of gate
    and input, in the order of tokens. Source: mamba_ssm/ops/selective_scan_interface.py.
    """

    width: int  # channels
    state: int  # values a channel
    rank: int  # of the projection that gives the time step
    taps: int = 4
    heads: int = 1  # groups of channels with a time step, B and C of their own
    conv_bias: bool = True
    bias: bool = False  # of the projections in and out
    norms: Literal["none", "weights", "bare"] = "none"  # of the time step's input, B and C
    apart: bool = False  # convolution, scan and projection out are kernels of their own
    kind: Literal["mamba"] = "mamba"

    def dimensions(self) -> Dimensions:
        """Channels are cut, or the heads that they are in."""
        alone = self.heads == 1
        each, heads = self.width // self.heads, cut(self.heads) if not alone else Dimension(1)
        inner = cut(self.width) if alone else cut(self.heads, each)

        def channels(width: float) -> Dimension:
            return Dimension(inner.units, inner.width * width, "tp")

        def shared(width: int) -> Dimension:
            return Dimension(heads.units, width, heads.cut)

        swapped = channels(3)
        copies = 2 if self.apart and self.norms != "none" else 4  # of B and C; norms of their own keep their input
        return {
            "scan_in": (channels(2),),
            "conv": (inner,),
            "inner": (inner,),
            "scan_heads": (inner,) if alone else (heads,),
            "state_heads": (heads,),
            "head_channels": (inner,) if alone else whole(each),
            "step_rank": whole(self.rank),
            "step_state": whole(self.rank + 2 * self.state),
            "norms": whole(3),
            "scan_weights": (channels(self.state + 1),),
            "scan_arithmetic": (channels((9 * self.state + 2) / 2),),
            "scan_moves": (channels(4), shared(2 * self.state)),
            "scan_keeps": (channels(6 if self.apart else 2), shared(self.rank + copies * self.state)),
            "scan_bytes": (channels(FLOAT * 2 * self.state / SAVED_EVERY),),
            "scan_swap": (swapped,),
            "state": (channels(FP32 * self.state), *tail((inner,), self.taps)),
            **taps(self.taps, self.conv_bias),
        }

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """In, convolution, time step and B and C, the scan, out."""
        return (
            *project_in(shared, self.bias),
            *exchange(),
            convolve(CONVOLUTION if self.apart else REPEATED),
            Linear("step_state", "T", "head_channels", "step_state", copies="state_heads"),
            *([Move("sum_step_state", "tp", "T", "step_state", **SUM)] * (self.heads == 1)),
            *self._norms(frame, kernels),
            Linear("step", "T", "step_rank", "head_channels", copies="state_heads", biased=True),
            Scan(
                "scan", "T", "scan_moves", arithmetic="scan_arithmetic", keeps="scan_keeps", keeps_bytes="scan_bytes",
                weights="scan_weights",
            ),
            *project_out("T" if self.apart else "none", self.bias),
        )  # fmt: skip

    def _norms(self, frame: Frame, kernels: KernelSet) -> tuple[Row, ...]:
        if self.norms == "none":
            return ()
        weights = "none" if self.norms == "bare" else "step_state"
        return (norm(frame, kernels, "step_state_norms", "T", "step_state", weights=weights, groups="norms"),)


@dataclass(frozen=True)
class Mamba2:
    """Mamba-2. Tensor parallelism cuts heads and groups; one group alone is on every rank.

    FLOPs are those of its kernel: in chunks, C B' a group, and a head's outputs and states. Kept is what
    MambaSplitConv1dScanCombinedFn of state-spaces/mamba saves: all that the projection gives, the scan's output and
    the statistics of its norm, one a group. Convolution, states and the gated norm are computed again. Where norm and
    projection out are no part of that kernel, it gates, and their inputs wait too. A group alone is normed over the
    channels of all ranks.
    """

    heads: int
    head_dim: int
    state: int  # values a channel
    groups: int  # of heads with B and C in common
    chunk: int  # tokens
    taps: int = 4
    conv_bias: bool = True
    in_bias: bool = False
    out_bias: bool = False
    normed: bool = True  # the gated output, group by group
    kind: Literal["mamba2"] = "mamba2"

    def dimensions(self) -> Dimensions:
        """Heads and groups are cut, never through."""
        inner = cut(self.heads, self.head_dim)

        def groups(width: int, dealt: bool = False) -> Dimension:
            return Dimension(self.groups, width, "tp" if self.groups > 1 else "none", dealt=dealt)

        return {
            "scan_in": (cut(self.heads, 2 * self.head_dim + 1), groups(2 * self.state)),
            "conv": (inner, groups(2 * self.state)),
            "conv_here": (inner, groups(2 * self.state, dealt=True)),
            "inner": (inner,),
            "scan_heads": (cut(self.heads),),
            "norm_groups": (groups(1),),
            "scan_weights": (cut(self.heads, 3),),
            "scan_work": (
                groups(self.chunk * self.state, dealt=True),
                cut(self.heads, (self.chunk + 2 * self.state) * self.head_dim),
            ),
            "scan_moves": (
                cut(self.heads, SSD_VALUES * self.head_dim + SSD_STEPS + self._states()),
                groups(SSD_SHARED * (self.state + self.chunk), dealt=True),
            ),
            "scan_keeps": (cut(self.heads, 2 * self.head_dim + 1),),
            "scan_swap": (cut(self.heads, 3 * self.head_dim + 1), groups(2 * self.state, dealt=True)),
            "state": (
                cut(self.heads, FP32 * self.head_dim * self.state),
                *tail((inner, groups(2 * self.state)), self.taps),
            ),
            **taps(self.taps, self.conv_bias),
        }  # fmt: skip

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """In, convolution, the scan, gated norm, out."""
        return (
            *project_in(shared, self.in_bias),
            *exchange(),
            convolve(REPEATED, "conv_here"),
            Scan(
                "scan",
                "T",
                "scan_moves",
                work="scan_work",
                keeps="scan_keeps",
                weights="scan_weights",
                back=SSD_BACK,
                slowed=SSD_SLOWED,
            ),
            *self._gated(frame, kernels),
            *project_out("none" if kernels.fuses_scan else "T", self.out_bias),
        )

    def _states(self) -> float:
        """What the states of a chunk add to the values that a head's token moves."""
        return SSD_STATES * self.head_dim * self.state / self.chunk

    def _gated(self, frame: Frame, kernels: KernelSet) -> tuple[Row, ...]:
        """The gate in the scan's kernel and a norm behind it, or both in one."""
        gate = Pointwise("gate", "T", "inner", IN_SCAN)
        if not self.normed:
            return (gate,)
        summed = (sum_statistic("sum_gated_norm"),) if self.groups == 1 else ()
        normed = norm(frame, kernels, "gated_norm", "T", "inner", groups="norm_groups")
        if kernels.fuses_scan:
            return *summed, replace(normed, kernel=GATED_NORM)
        return gate, *summed, normed
