"""One matrix of the hidden width, in the place of a part that was cut away, or between the last layer and the head."""

from dataclasses import dataclass
from typing import Literal

from ...engines.engine import KernelSet
from ..operations import Linear, Pointwise, Row
from .part import Dimensions, Frame, norm


@dataclass(frozen=True)
class Projection:
    """A square matrix, the same on every tensor-parallel rank, which runs it on the rank's own tokens."""

    bias: bool = False
    normed: bool = False  # its input is the output of a norm of its own
    activated: bool = False
    kind: Literal["projection"] = "projection"

    def dimensions(self) -> Dimensions:
        """None of its own: it is as wide as the stream."""
        return {}

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """A norm, the matrix, an activation."""
        waits = "none" if shared and not self.normed else "S"
        return (
            *([norm(frame, kernels, "projection_norm")] if self.normed else []),
            Linear("projection", "S", "hidden", "hidden", waits=waits, biased=self.bias),
            *([Pointwise("activation", "S", "hidden", kernels.plain_activation)] if self.activated else []),
        )
