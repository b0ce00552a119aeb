"""Element-wise recurrences: the real-gated linear recurrent unit (RG-LRU), and RWKV's mixing over time and channels.

What their recurrences multiply element by element is no model FLOP here. Kept bytes follow from the formulas, each
input once; no kernel's save list was read.
"""

from dataclasses import dataclass
from typing import Literal

from ...engines.engine import KernelSet
from ..moves import Move
from ..operations import Linear, Pointwise, Row
from ..scan import Scan
from .kernels import BOTH, CHANNEL_MIXES, SILU, TIME_MIXES
from .part import GATHER, SCATTER, Dimensions, Frame, cut, whole
from .scanning import FLOAT, FP32, convolve, exchange, project_in, project_out, tail, taps


@dataclass(frozen=True)
class RecurrentUnit:
    """RG-LRU between two branches, of which one is a gate. Its own gates are block diagonal, a block a head."""

    width: int
    heads: int
    taps: int = 4
    kind: Literal["rg_lru"] = "rg_lru"

    def dimensions(self) -> Dimensions:
        """Heads are cut."""
        each = self.width // self.heads
        inner = cut(self.heads, each)
        return {
            "scan_in": (cut(self.heads, 2 * each),),
            "conv": (inner,),
            "inner": (inner,),
            "scan_heads": (cut(self.heads),),
            "head_width": whole(each),
            "head_gates": whole(2 * each),
            "scan_moves": (cut(self.heads, (4 + FP32) * each),),
            "scan_keeps": (cut(self.heads, 3 * each),),
            "scan_bytes": (cut(self.heads, FLOAT * each),),
            "scan_swap": (cut(self.heads, 3 * each),),
            "state": (cut(self.heads, FP32 * each), *tail((inner,), self.taps)),
            **taps(self.taps, True),
        }

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """In, convolution, gates, the recurrence, the other branch, out."""
        return (
            *project_in(shared, biased=True),
            *exchange(),
            Pointwise("branch_activation", "T", "inner", SILU),
            convolve(),
            Linear("scan_gates", "T", "head_width", "head_gates", copies="scan_heads", biased=True),
            Scan("recurrence", "T", "scan_moves", keeps="scan_keeps", keeps_bytes="scan_bytes", weights="inner"),
            Pointwise("gated_output", "T", "inner", BOTH),
            *project_out(biased=True),
        )


@dataclass(frozen=True)
class TimeMix:
    """RWKV-4 in the place of attention: receptance, key and value of a token mixed with the one before it."""

    width: int  # channels
    kind: Literal["time_mix"] = "time_mix"

    def dimensions(self) -> Dimensions:
        """Channels are cut."""
        return {
            "inner": (cut(self.width),),
            "mixes": whole(3),
            "scan_heads": (cut(self.width),),
            "scan_weights": (cut(self.width, 2),),
            "scan_moves": (cut(self.width, 4),),
            "scan_keeps": (cut(self.width, 3),),
            "scan_bytes": (cut(self.width, FLOAT),),
            "scan_swap": (cut(self.width, 4),),
            "state": (cut(self.width, 3 * FP32),),
        }

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """Mixed inputs, three projections, the recurrence, out."""
        return (
            Move("gather_scan", "tp", "T", "hidden", **GATHER),
            Pointwise("time_mixes", "T", "hidden", TIME_MIXES, weights="hidden", per="mixes"),
            *(Linear(name, "T", "hidden", "inner", waits="T") for name in ("key", "value", "receptance")),
            *exchange(),
            Scan(
                "time_mixing", "T", "scan_moves", keeps="scan_keeps", keeps_bytes="scan_bytes", weights="scan_weights"
            ),
            *project_out(),
        )


@dataclass(frozen=True)
class ChannelMix:
    """RWKV-4 in the place of a feed-forward part: two matrices, and a gate as wide as the stream."""

    width: int
    kind: Literal["channel_mix"] = "channel_mix"

    def dimensions(self) -> Dimensions:
        """Its width is cut."""
        return {"ffn": (cut(self.width),), "channel_mixes": whole(2)}

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """Mixed inputs, up, activation, down, and the gate on each rank's own tokens."""
        return (
            Move("gather_mlp", "tp", "T", "hidden", **GATHER),
            Pointwise("channel_mixes", "T", "hidden", CHANNEL_MIXES, weights="hidden", per="channel_mixes"),
            Linear("mlp_up", "T", "hidden", "ffn", waits="T"),
            Pointwise("mlp_activation", "T", "ffn", kernels.plain_activation),
            Linear("mlp_down", "T", "ffn", "hidden", waits="T"),
            Move("scatter_mlp", "tp", "T", "hidden", **SCATTER),
            Linear("mlp_gate", "S", "hidden", "hidden", waits="S"),
            Pointwise("gated_mlp", "S", "hidden", BOTH),
        )
