"""A frozen matrix that is kept in fewer bits than it is multiplied in."""

from dataclasses import dataclass

from ..cluster.efficiency import Rates
from ..quantities import Bytes, Count, PlainBytes, Seconds
from .operations import Linear, Sizes


@dataclass(frozen=True)
class Quantised(Linear):
    """A frozen matrix in a format that no multiply reads: it is dequantised, then multiplied, in every pass.

    Source: Dettmers et al. 2023, QLoRA, section 3: a 4-bit weight is dequantised to the type of the multiplies each
    time it is used, forward and backward; bitsandbytes, MatMul4Bit.
    """

    stored: PlainBytes = 0  # B a value as it is kept
    largest: str = "none"  # outputs of its largest matrix in the checkpoint: one is dequantised at a time

    def dequantised(self, here: Sizes, rates: Rates) -> Seconds:
        """Its values read as they are kept, and written in the type of the activations."""
        values: Count = here[self.copies] * here[self.ins] * here[self.outs]
        return values * (self.stored + here["value"]) / rates.memory + rates.launch

    def forward(self, here: Sizes, rates: Rates) -> Seconds:
        """Dequantised, then multiplied."""
        multiplied: Seconds = Linear.forward(self, here, rates)
        return multiplied + self.dequantised(here, rates)

    def input_gradient(self, here: Sizes, rates: Rates) -> Seconds:
        """Dequantised once more."""
        multiplied: Seconds = Linear.input_gradient(self, here, rates)
        return multiplied + self.dequantised(here, rates)

    def one_dequantised(self, here: Sizes) -> Bytes:
        """The matrix that stands dequantised while it is multiplied."""
        return here["value"] * here[self.ins] * here[self.largest]
