"""The matrix that makes logits, where the loss runs through its tokens part by part."""

from dataclasses import dataclass

from ..quantities import Bytes, Count, PlainBytes
from .operations import Linear, Sizes


@dataclass(frozen=True)
class Head(Linear):
    """The head. Where the loss runs by chunks, its backward pass runs chunk by chunk too, before that of the layers."""

    collects: PlainBytes = 4  # B a value: torchtitan, components/loss.py, ChunkedLossWrapper: GradAccumulator in fp32

    def workspace(self, here: Sizes) -> Bytes:
        """Beside the logits of a chunk: gradients of its input and of its matrix, as they collect, and the chunk's."""
        made: Count = self.trained * here["plain_gradient"] * here[self.outs]
        gradients: Bytes = self.collects * here[self.tokens] + 2 * here["value"] * made
        return here["chunked"] * here[self.ins] * gradients
