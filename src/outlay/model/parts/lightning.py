"""Lightning attention: linear attention with a fixed decay a head, in blocks."""

from dataclasses import dataclass
from typing import Literal

from ...engines.engine import KernelSet
from ..operations import Linear, Pointwise, Row
from ..scan import Scan
from .kernels import BOTH, SILU
from .part import Dimensions, Frame, cut, norm
from .scanning import FP32, exchange, project_in, project_out, sum_statistic


@dataclass(frozen=True)
class Lightning:
    """Lightning attention. Tensor parallelism cuts the heads; the norm over all of them needs a sum.

    FLOPs count whole blocks, as its code multiplies them. Kept follows from the formulas: inputs of the activation, of
    the products, of norm, gate and projection; no public training kernel was read.
    """

    heads: int
    head_dim: int
    block: int  # tokens
    kind: Literal["lightning"] = "lightning"

    def dimensions(self) -> Dimensions:
        """Heads are cut."""
        wide = self.head_dim
        return {
            "scan_in": (cut(self.heads, 3 * wide),),
            "inner": (cut(self.heads, wide),),
            "scan_heads": (cut(self.heads),),
            "scan_work": (cut(self.heads, 2 * (self.block + wide) * wide),),
            "scan_moves": (cut(self.heads, 4 * wide),),
            "scan_keeps": (cut(self.heads, 3 * wide),),
            "scan_swap": (cut(self.heads, 4 * wide),),
            "state": (cut(self.heads, FP32 * wide * wide),),
        }

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """In, activation, blocks, norm, gate, out."""
        return (
            *project_in(shared),
            Pointwise("scan_activation", "T", "scan_in", SILU),
            *exchange(),
            Scan("lightning", "T", "scan_moves", work="scan_work", keeps="scan_keeps"),
            sum_statistic("sum_scan_norm"),
            norm(frame, kernels, "scan_norm", "T", "inner"),
            Linear("gate", "T", "hidden", "inner"),
            Pointwise("gated_output", "T", "inner", BOTH),
            *project_out(),
        )
