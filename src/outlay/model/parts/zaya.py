"""What Zaya adds to attention and experts: queries and keys mixed along the sequence, and a network for the router."""

from dataclasses import dataclass
from typing import Literal

from ...engines.engine import KernelSet
from ..operations import Linear, Pointwise, Row
from .kernels import CARRY, CONVOLUTION, NOTHING, SILU
from .part import Dimensions, Frame, copied, cut, norm, whole


@dataclass(frozen=True)
class ConvolvedHeads:
    """Queries and keys go through two causal convolutions: channel by channel, then inside each head."""

    heads: int
    kv_heads: int
    head_dim: int
    channel_taps: int
    head_taps: int
    kind: Literal["convolved_heads"] = "convolved_heads"

    def dimensions(self) -> Dimensions:
        """Heads are cut, each with its channels."""
        width = self.head_dim
        return {
            "mixed": (cut(self.heads, width), copied(self.kv_heads, width)),
            "mixed_groups": (cut(self.heads), copied(self.kv_heads)),
            "mixed_head": whole(width),
            "mixed_taps": whole(width * self.head_taps),
            "channel_taps": whole(self.channel_taps),
            "channel_weights": whole(self.channel_taps + 1),
            "key_scales": (copied(self.kv_heads),),
        }

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """The two convolutions, the sum with what they read, and a learned scale for the keys of a head."""
        return (
            Pointwise(
                "channel_convolution", "T", "mixed", CONVOLUTION, weights="mixed", per="channel_weights",
                work="channel_taps",
            ),
            Linear("head_convolution", "T", "mixed_taps", "mixed_head", copies="mixed_groups", biased=True),
            Pointwise("mixed_sum", "T", "mixed", CONVOLUTION),
            Pointwise("key_scales", "T", "key_scales", NOTHING, weights="key_scales"),
        )  # fmt: skip


@dataclass(frozen=True)
class RouterNetwork:
    """The network before a router's last matrix: down to a few values, and two layers of its own."""

    width: int
    carries: bool  # adds what the router of the layer before it made, scaled
    kind: Literal["router_network"] = "router_network"

    def dimensions(self) -> Dimensions:
        """Nothing is cut."""
        return {"router_in": whole(self.width)}

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """Down, carry, norm, two matrices with an activation each."""
        carry = Pointwise("router_carry", "S", "router_in", CARRY, weights="router_in")
        return (
            Linear("router_down", "S", "hidden", "router_in", biased=True),
            *((carry,) if self.carries else ()),
            norm(frame, kernels, "router_norm", "S", "router_in"),
            Linear("router_1", "S", "router_in", "router_in", waits="S", biased=True),
            Pointwise("router_activation_1", "S", "router_in", SILU),
            Linear("router_2", "S", "router_in", "router_in", waits="S", biased=True),
            Pointwise("router_activation_2", "S", "router_in", SILU),
        )
