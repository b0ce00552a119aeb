"""What a stage exchanges inside a layer: sums over its layers and ends of what each axis takes."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .formula import each, total
from .held import (
    Held,
    held_context_again,
    held_context_backward,
    held_context_forward,
    held_expert_again,
    held_expert_backward,
    held_expert_forward,
    held_tensor_again,
    held_tensor_backward,
    held_tensor_forward,
)
from .quantities import Count, Seconds


@dataclass(frozen=True)
class StageExchange:
    """Layers of each kind, and the two ends of the model where they stand, of one rank of a stage."""

    name: str
    rank: Count
    layers: tuple[Held, ...]
    ends: tuple[Held, ...]  # embedding, head

    @cached_property
    def tensor_forward(self) -> Seconds:
        """Tensor-parallel exchange of the layers, forward."""
        return total(each(held_tensor_forward, self.layers))

    @cached_property
    def tensor_again(self) -> Seconds:
        """Tensor-parallel exchange of the modules that run again."""
        return total(each(held_tensor_again, self.layers))

    @cached_property
    def tensor_backward(self) -> Seconds:
        """Tensor-parallel exchange of the layers, backward."""
        return total(each(held_tensor_backward, self.layers))

    @cached_property
    def end_tensor_forward(self) -> Seconds:
        """Tensor-parallel exchange of the ends, forward."""
        return total(each(held_tensor_forward, self.ends))

    @cached_property
    def end_tensor_backward(self) -> Seconds:
        """Tensor-parallel exchange of the ends, backward."""
        return total(each(held_tensor_backward, self.ends))

    @cached_property
    def context_forward(self) -> Seconds:
        """Exposed context-parallel exchange of the layers, forward."""
        return total(each(held_context_forward, self.layers))

    @cached_property
    def context_again(self) -> Seconds:
        """Exposed context-parallel exchange of the modules that run again."""
        return total(each(held_context_again, self.layers))

    @cached_property
    def context_backward(self) -> Seconds:
        """Exposed context-parallel exchange of the layers, backward."""
        return total(each(held_context_backward, self.layers))

    @cached_property
    def exchanging(self) -> tuple[Held, ...]:
        """Layers that exchange tokens between experts."""
        return tuple(held for held in self.layers if np.any(held.costs.ep.forward) or np.any(held.costs.etp.forward))

    @cached_property
    def expert_forward(self) -> Seconds:
        """Exchange between experts, forward."""
        return total(each(held_expert_forward, self.exchanging))

    @cached_property
    def expert_again(self) -> Seconds:
        """Exchange between experts of the modules that run again."""
        return total(each(held_expert_again, self.exchanging))

    @cached_property
    def expert_backward(self) -> Seconds:
        """Exchange between experts, backward."""
        return total(each(held_expert_backward, self.exchanging))
