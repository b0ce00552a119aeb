"""Checkpoint segments of a chain of equal layers against torch's own checkpoints, counted in tensors."""

from ...memory.activations import checkpoint_units
from ..comparison import Comparison


def compare_segments(layers: int, segments: int) -> tuple[Comparison, ...]:
    """What g segments store, the most that stands, and what runs again. Segments divide the layers.

    A layer keeps two tensors as large as its input. In the backward pass the inputs of the segments before stand, the
    tape of the one that runs again, and one gradient: (g - 1) + 2 L/g + 1.
    """
    from .standing import TAPE, segmented_step

    stored, peak, again = segmented_step(layers, segments)
    return (
        Comparison("stored", segments, stored, "tensors"),
        Comparison("peak", float(checkpoint_units(layers, segments, TAPE)), peak, "tensors"),
        Comparison("run again", TAPE * layers, again, "operations"),
    )
