"""The dense feed-forward part, and its rows, which a shared expert has too."""

from dataclasses import dataclass
from typing import Literal

from ...engines.engine import KernelSet
from ..moves import Move
from ..operations import Linear, Pointwise, Row
from .kernels import SCALE
from .part import GATHER, SCATTER, Dimensions, Frame, cut, norm, whole


@dataclass(frozen=True)
class FeedForward:
    """A dense feed-forward part."""

    width: int
    gated: bool = True  # three matrices (SwiGLU, GeGLU), else two
    bias: bool = False
    inner_norm: bool = False  # a norm before the last matrix
    learned: int = 0  # parameters of its activation function
    scaled: bool = False  # a learned scalar on its output
    kind: Literal["feed_forward"] = "feed_forward"

    def dimensions(self) -> Dimensions:
        """Its width is cut."""
        wide = 2 if self.gated else 1
        return {"ffn": (cut(self.width),), "ffn_in": (cut(self.width, wide),), "activation": whole(self.learned)}

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """Up, activation, down."""
        gather, up, activation, *down = dense_rows(
            "mlp", "ffn", "W" if shared else "G", self.gated, self.bias, kernels, learned="activation"
        )  # fmt: skip
        return (
            gather,
            up,
            activation,
            *([norm(frame, kernels, "inner_norm", "T", "ffn")] if self.inner_norm else []),
            *down,
            *([Pointwise("mlp_scale", "S", "hidden", SCALE, weights="one")] if self.scaled else []),
        )


def dense_rows(
    name: str, width: str, waits: str, gated: bool, bias: bool, kernels: KernelSet, learned: str = "none"
) -> tuple[Row, ...]:  # fmt: skip
    """Up, activation, down, between the exchanges of tensor parallelism."""
    kernel, passes = (kernels.gated_activation, 1.5) if gated else (kernels.plain_activation, 2)
    return (
        Move(f"gather_{name}", "tp", "T", "hidden", **GATHER),
        Linear(f"{name}_up", "T", "hidden", f"{width}_in", waits=waits, biased=bias, matrices=2 if gated else 1),
        Pointwise(
            f"{name}_activation", "T", f"{width}_in", kernel, weights=learned, grows=int(name == "mlp"), passes=passes
        ),
        Linear(f"{name}_down", "T", width, "hidden", waits="T", biased=bias),
        Move(f"scatter_{name}", "tp", "T", "hidden", **SCATTER),
    )
