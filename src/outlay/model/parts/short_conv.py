"""A gated short convolution in the place of attention."""

from dataclasses import dataclass
from typing import Literal

from ...engines.engine import KernelSet
from ..operations import Pointwise, Row
from .kernels import CONVOLUTION, PRODUCT
from .part import Dimensions, Frame, cut
from .scanning import convolve, exchange, project_in, project_out, tail, taps


@dataclass(frozen=True)
class ShortConv:
    """Three projections B, C and x: C conv(B x). Tensor parallelism cuts the channels."""

    width: int  # channels
    taps: int = 3
    bias: bool = False
    kind: Literal["short_conv"] = "short_conv"

    def dimensions(self) -> Dimensions:
        """Channels are cut."""
        channels = cut(self.width)
        return {
            "scan_in": (cut(self.width, 3),),
            "conv": (channels,),
            "inner": (channels,),
            "scan_heads": (channels,),
            "scan_swap": (cut(self.width, 4),),
            "state": tail((channels,), self.taps),
            **taps(self.taps, self.bias),
        }

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """In, a product, convolution, a product, out."""
        return (
            *project_in(shared, self.bias),
            *exchange(),
            Pointwise("conv_input", "T", "scan_in", CONVOLUTION),
            convolve(),
            Pointwise("conv_output", "T", "inner", PRODUCT),
            *project_out(biased=self.bias),
        )
