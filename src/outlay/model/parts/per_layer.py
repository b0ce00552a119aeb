"""Per-layer inputs (Gemma 3n, Gemma 4): a second table gives each layer a small vector of its own for every token."""

from dataclasses import dataclass
from typing import Literal

from ...engines.engine import KernelSet
from ..operations import Linear, Pointwise, Row
from .kernels import LOOKUP, PRODUCT, SUM_KEPT
from .part import Dimensions, Frame, cut, norm, whole


@dataclass(frozen=True)
class PerLayerTable:
    """The table of all layers' inputs, and a projection of the embedding that is added to them."""

    vectors: int
    layers: int
    width: int  # of one layer's input
    kind: Literal["per_layer_table"] = "per_layer_table"

    def dimensions(self) -> Dimensions:
        """The vocabulary is cut."""
        return {
            "inputs_vectors": (cut(self.vectors),),
            "inputs": whole(self.layers * self.width),
            "inputs_width": whole(self.width),
            "inputs_layers": whole(self.layers),
        }

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """A lookup, a projection, its norm, a sum."""
        return (
            Pointwise("inputs_table", "S", "inputs", LOOKUP, weights="inputs_vectors", per="inputs"),
            Linear("inputs_projection", "S", "hidden", "inputs", waits="S"),
            norm(frame, kernels, "inputs_norm", "S", "inputs", weights="inputs_width", groups="inputs_layers"),
            Pointwise("inputs_sum", "S", "inputs", SUM_KEPT),
        )


@dataclass(frozen=True)
class PerLayerInput:
    """One layer's input, multiplied into a gate of the stream and projected back to it."""

    width: int
    kind: Literal["per_layer_input"] = "per_layer_input"

    def dimensions(self) -> Dimensions:
        """Nothing is cut."""
        return {"layer_input": whole(self.width)}

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """Gate, product, projection."""
        return (
            Linear("input_gate", "S", "hidden", "layer_input", waits="S"),
            Pointwise("input_product", "S", "layer_input", PRODUCT),
            Linear("input_projection", "S", "layer_input", "hidden", waits="S"),
        )
