"""Small steps around the large parts of a layer: scales, norms and low-rank paths."""

from dataclasses import dataclass
from typing import Literal

from ...engines.engine import KernelSet
from ..operations import Linear, Pointwise, Row
from .kernels import FIXED_SCALE, SCALES
from .part import Dimensions, Frame, norm, whole


@dataclass(frozen=True)
class Scaling:
    """Learned scales and shifts of hidden vectors."""

    of: str
    vectors: int
    kind: Literal["scaling"] = "scaling"

    def dimensions(self) -> Dimensions:
        """Nothing is cut."""
        return {f"{self.of}_vectors": whole(self.vectors)}

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """One pass over the stream."""
        return (Pointwise(f"{self.of}_scale", "S", "hidden", SCALES, weights="hidden", per=f"{self.of}_vectors"),)


@dataclass(frozen=True)
class Normed:
    """A norm of its own, where no part stands behind or before it."""

    of: str
    choices: int = 0  # of a router: a scale for each
    kind: Literal["normed"] = "normed"

    def dimensions(self) -> Dimensions:
        """Nothing is cut."""
        return {f"{self.of}_choices": whole(self.choices)}

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """The norm, and the scales of a router's choices."""
        choices = f"{self.of}_choices"
        scales = Pointwise(f"{self.of}_scales", "S", choices, FIXED_SCALE, weights=choices)
        return norm(frame, kernels, f"{self.of}_norm"), *((scales,) if self.choices else ())


@dataclass(frozen=True)
class LowRank:
    """A learned residual (Laurel): down to a few values and up again."""

    rank: int
    kind: Literal["laurel"] = "laurel"

    def dimensions(self) -> Dimensions:
        """Nothing is cut."""
        return {"laurel": whole(self.rank)}

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """Down, up."""
        return (
            Linear("laurel_down", "S", "hidden", "laurel", waits="none" if shared else "S"),
            Linear("laurel_up", "S", "laurel", "hidden", waits="S"),
        )
