"""A mixture of experts: a router, routed experts, and an optional shared one that every token goes through."""

from dataclasses import dataclass, replace
from typing import Literal

from ...engines.engine import KernelSet
from ..moves import Move
from ..operations import Linear, Pointwise, Row
from .feed_forward import dense_rows
from .kernels import NOTHING, ROUTER, SHARED_GATE
from .part import Dimension, Dimensions, Frame, cut, whole

ROUTED = "router_choices"  # behind it the host waits for how many tokens each expert has


@dataclass(frozen=True)
class Experts:
    """A feed-forward part of experts."""

    experts: int
    active: int  # experts a token is sent to
    expert_width: int
    gated: bool = True
    expert_bias: bool = False
    clamped: bool = False  # gate and up are cut off on both sides before their activation
    router_bias: bool = False  # a learned bias of the router, also where it only corrects the choice
    shared_width: int = 0  # all shared experts together
    shared_bias: bool = False
    shared_gate: bool = False  # one learned gate of the shared expert
    latent_width: int = 0  # experts work on vectors so wide, projected down and up around them; 0: on hidden vectors
    latent_bias: bool = False
    spare: int = 0  # choices of the router that no expert stands behind
    out_bias: bool = False  # one bias of the weighted sum, not of each expert
    router_width: int = 0  # of what the router's last matrix reads, from a network before it; 0: the hidden vector
    kind: Literal["experts"] = "experts"

    def dimensions(self) -> Dimensions:
        """Experts are dealt over ep, the width of each is cut by etp; a shared one is cut as a dense part is."""
        wide = 2 if self.gated else 1
        return {
            "shared": (cut(self.shared_width),),
            "shared_in": (cut(self.shared_width, wide),),
            "expert": (Dimension(self.expert_width, cut="etp"),),
            "expert_in": (Dimension(self.expert_width, wide, "etp"),),
            "router": whole(self.experts + self.spare),
            "expert_latent": whole(self.latent_width),
            "E": (Dimension(self.experts, cut="ep"),),
        }

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """Router, dispatch, two grouped multiplies, combine; then the shared expert."""
        stream = "expert_latent" if self.latent_width else "hidden"
        return (
            *self._router(kernels, shared),
            *self._latent("latent_down", "hidden", "expert_latent", "none"),
            Move("dispatch", "ep", "D", "exchanged", "all_to_all", fan_out="fan_out"),
            Move("dispatch_gather", "ep", "S_all", "gathered"),
            *self._grouped(kernels, stream),
            Move("combine", "ep", "D", "exchanged", "all_to_all", fan_out="fan_out"),
            Move("combine_scatter", "ep", "S_all", "gathered"),
            *self._latent("latent_up", "expert_latent", "hidden", "S"),
            *([Pointwise("experts_bias", "S", "hidden", NOTHING, weights="hidden")] if self.out_bias else []),
            *self._shared(kernels),
        )

    def _latent(self, name: str, ins: str, outs: str, waits: str) -> tuple[Row, ...]:
        """A projection to or from the narrower vectors of the experts."""
        return (Linear(name, "S", ins, outs, waits=waits, biased=self.latent_bias),) if self.latent_width else ()

    def _router(self, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        scores = replace(ROUTER, keeps_bytes=kernels.router_keeps_expert)
        choices = replace(ROUTER, keeps_bytes=kernels.router_keeps_choice)
        stream = "router_in" if self.router_width else "hidden"
        waits = "none" if shared and not self.router_width else "S"
        return (
            Linear("router", "S", stream, "router", waits=waits, biased=self.router_bias),
            Pointwise("router_scores", "S", "router", scores),
            Pointwise(ROUTED, "choices", "one", choices),
        )

    def _grouped(self, kernels: KernelSet, stream: str) -> tuple[Row, ...]:
        activation = kernels.gated_activation if self.gated else kernels.plain_activation
        permute = kernels.permute
        unpermute = replace(permute, keeps=1 if kernels.keeps_expert_output else 0)
        return (
            Move("gather_experts", "etp", "R", stream),
            Pointwise("permute", "R", stream, permute, grows=1),
            Linear("expert_up", "X", stream, "expert_in", waits="R", copies="E", biased=self.expert_bias),
            *([Pointwise("expert_clamp", "R", "expert_in", kernels.clamp)] if self.clamped else []),
            Pointwise("expert_activation", "R", "expert_in", activation, grows=1, passes=1.5 if self.gated else 2),
            Linear("expert_down", "X", "expert", stream, waits="R", copies="E", biased=self.expert_bias),
            *([Pointwise("expert_bias", "R", stream, kernels.expert_bias)] if self.expert_bias else []),
            Pointwise(
                "unpermute", "R", stream, unpermute, grows=2, stands="copies" if kernels.holds_copies else "none"
            ),
            Move("scatter_experts", "etp", "R", stream),
        )

    def _shared(self, kernels: KernelSet) -> tuple[Row, ...]:
        if not self.shared_width:
            return ()
        rows = dense_rows("shared", "shared", "W", self.gated, self.shared_bias, kernels)
        if not self.shared_gate:
            return rows
        kept = SHARED_GATE
        return *rows, Linear("shared_gate", "S", "hidden", "one"), Pointwise("gated_shared", "S", "hidden", kept)
