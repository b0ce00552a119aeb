"""Adapters: low-rank paths beside projections that several layers share, each with weights of its own."""

from dataclasses import dataclass
from typing import Literal

from ...engines.engine import KernelSet
from ..operations import Linear, Row
from .part import Dimensions, Frame, cut, whole


@dataclass(frozen=True)
class Adapter:
    """Beside the projections into attention, or into the feed-forward part. Their inputs wait there."""

    beside: Literal["attention", "mlp"]
    rank: int
    units: int  # of what comes out: heads, or the width
    width: int  # values a unit
    spare: int = 0  # more of each that are there and never read
    kind: Literal["adapter"] = "adapter"

    def dimensions(self) -> Dimensions:
        """What comes out is cut; the low rank is on every rank."""
        return {
            f"{self.beside}_rank": whole(self.rank),
            f"{self.beside}_spare": whole(self.spare * self.rank),
            f"{self.beside}_adapted": (cut(self.units, self.width),),
        }

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """Down, up."""
        of = self.beside
        stream, names = ("pair", ("q", "k", "v")) if of == "attention" else ("hidden", ("mlp",))
        return tuple(row for name in names for row in (
            Linear(f"{name}_adapter_down", "T", stream, f"{of}_rank"),
            Linear(f"{name}_adapter_up", "T", f"{of}_rank", f"{of}_adapted", waits="T"),
            Linear(f"{name}_spare_down", "none", stream, f"{of}_spare"),
            Linear(f"{name}_spare_up", "none", f"{of}_spare", f"{of}_adapted"),
        )[: 4 if self.spare else 2])  # fmt: skip
