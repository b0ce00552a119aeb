"""One stage of a pipeline with the costs of what it holds: every sum over its layers, computed once.

What a layout then does to a stage acts on these sums, so it costs a grid nothing more for a second kind of layer.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .formula import each, kept, maximum, total
from .held import (
    Held,
    HeldShapes,
    held_again,
    held_backward,
    held_block,
    held_copies,
    held_dense,
    held_dequantised,
    held_differentiated,
    held_entry,
    held_entry_of_one,
    held_experts,
    held_forward,
    held_freed,
    held_frozen_bytes,
    held_gradients,
    held_kept,
    held_kept_selective,
    held_modules,
    held_moments,
    held_orthogonalised,
    held_shapes,
    held_tape,
    held_trained,
    held_weight_gradient,
)
from .layer import ModelCosts
from .layout.stages import Stage
from .quantities import Bytes, Count, Params, Seconds
from .stage_exchange import StageExchange


@dataclass(frozen=True)
class StageCosts(StageExchange):
    """One stage: layers of each kind, and the two ends of the model where they stand. Costs are of one rank."""

    head: Count
    unevenness: Count = 1  # most layers that its passes in flight may be in, over those if its chunks were equal
    matrices: tuple[HeldShapes, ...] = ()  # for whose gradients an engine's kernels write a tensor
    stages: Count = 1  # of a pipeline that it stands for: all where the model is whole, a share of one for a chunk

    @cached_property
    def parts(self) -> tuple[Held, ...]:
        """Layers and ends."""
        return self.layers + self.ends

    @cached_property
    def differentiated(self) -> Count:
        """Layers of the stage that a backward pass runs through, of all kinds."""
        return total(each(held_differentiated, self.layers))

    @cached_property
    def dense_parameters(self) -> Params:
        """Trained parameters of the stage, experts apart."""
        return total(each(held_dense, self.parts))

    @cached_property
    def expert_parameters(self) -> Params:
        """Trained expert parameters of the stage."""
        return total(each(held_experts, self.routed))

    @cached_property
    def routed(self) -> tuple[Held, ...]:
        """Parts that have trained experts."""
        return tuple(held for held in self.parts if np.any(held.costs.expert_parameters))

    @kept
    def having(self, kind: str, what: str) -> tuple[Held, ...]:
        """Parts whose dense parameters or experts have such a cost at all."""
        return tuple(held for held in self.parts if np.any(getattr(held.costs.owned(kind), what)))

    @kept
    def frozen_bytes(self, kind: str) -> Bytes:
        """Bytes of frozen weights, dense or expert."""
        return total(each(held_frozen_bytes, self.parts, kind))

    @cached_property
    def end_frozen_bytes(self) -> Bytes:
        """Bytes of frozen weights of the ends on the stage."""
        return total(each(held_frozen_bytes, self.ends, "dense"))

    @kept
    def once(self, ends_stay: bool = False, apart: bool = False) -> tuple[Held, ...]:
        """Parts whose weights are read once a micro-batch: no backward pass runs through them.

        `ends_stay`: the ends stay gathered through a micro-batch, so that they are among these; `apart`: the head
        alone does.
        """
        stay = (False, True) if apart else (True, True)
        ends = zip(self.ends, stay, strict=True)
        staying = tuple(end for end, stays in ends if (ends_stay and stays) or not end.costs.differentiated)
        return *(held for held in self.layers if not held.costs.differentiated), *staying

    @kept
    def read_once(self, kind: str) -> Bytes:
        """Bytes of frozen weights that no backward pass reads, dense or expert."""
        return total(each(held_frozen_bytes, self.once(), kind))

    @kept
    def whole_bytes(self, weight: Bytes) -> Bytes:
        """All weights of the stage gathered: `weight` a trained parameter, frozen ones as they are kept."""
        trained: Params = self.dense_parameters + self.expert_parameters
        return weight * trained + self.frozen_bytes("dense") + self.frozen_bytes("expert")

    @kept
    def copies(self, kind: str) -> Bytes:
        """Quantised copies of weights, dense or expert."""
        return total(each(held_copies, self.having(kind, "copies"), kind))

    @kept
    def moments(self, kind: str) -> Bytes:
        """The optimizer's moments, dense or expert."""
        return total(each(held_moments, self.having(kind, "moments"), kind))

    @kept
    def orthogonalised(self, kind: str) -> Seconds:
        """Time in which the optimizer orthogonalises matrices, dense or expert."""
        return total(each(held_orthogonalised, self.having(kind, "orthogonalised"), kind))

    @cached_property
    def end_parameters(self) -> Params:
        """Trained parameters of the ends on the stage."""
        return total(each(held_dense, self.ends))

    @kept
    def block_bytes(self, weight: Bytes) -> Bytes:
        """The largest layer of the stage gathered: `weight` a trained parameter, frozen ones as they are kept."""
        return maximum(each(held_block, self.layers, weight))

    @cached_property
    def largest_trained(self) -> Params:
        """Trained parameters of the layer that has most."""
        return maximum(each(held_trained, self.layers))

    @cached_property
    def dequantised(self) -> Bytes:
        """The largest frozen matrix of any kind of layer that is dequantised before each use: one at a time."""
        return maximum(each(held_dequantised, self.parts))

    @cached_property
    def kept(self) -> Bytes:
        """Tapes of one micro-batch."""
        return total(each(held_kept, self.layers))

    @cached_property
    def kept_selective(self) -> Bytes:
        """Tapes of one micro-batch where modules are recomputed."""
        return total(each(held_kept_selective, self.layers))

    @cached_property
    def entry(self) -> Bytes:
        """Inputs of the layers, one micro-batch."""
        return total(each(held_entry, self.layers))

    @cached_property
    def largest_tape(self) -> Bytes:
        """The tape of the layer that keeps most."""
        return maximum(each(held_tape, self.layers))

    @cached_property
    def largest_freed(self) -> Bytes:
        """What the recomputed module that frees most frees, of one layer."""
        return maximum(each(held_freed, self.layers))

    @cached_property
    def largest_backward(self) -> Bytes:
        """Gradients of values in the backward pass of the layer that holds most."""
        return maximum(each(held_backward, self.layers))

    @cached_property
    def largest_entry(self) -> Bytes:
        """The input of the layer that has most."""
        return maximum(each(held_entry_of_one, self.layers))

    @cached_property
    def shapes(self) -> Params:
        """Values of one matrix of each shape that the stage has."""
        return total(each(held_shapes, self.matrices))

    @cached_property
    def forward(self) -> Seconds:
        """Kernels of the layers, forward."""
        return total(each(held_forward, self.layers))

    @cached_property
    def whole_again(self) -> Seconds:
        """Kernels of the layers as full recompute runs them again."""
        return total(each(held_again, self.layers))

    @cached_property
    def modules_forward(self) -> Seconds:
        """Kernels of the modules that selective recompute runs again."""
        return total(each(held_modules, self.layers))

    @cached_property
    def gradients(self) -> Seconds:
        """Kernels of the layers, backward."""
        return total(each(held_gradients, self.layers))

    @cached_property
    def weight_gradients(self) -> Seconds:
        """Kernels of the weight gradients, ends included: the pass that waits for nothing."""
        return total(each(held_weight_gradient, self.parts))

    @cached_property
    def end_forward(self) -> Seconds:
        """Kernels of the ends, forward."""
        return total(each(held_forward, self.ends))

    @cached_property
    def end_kernels(self) -> Seconds:
        """Kernels of the ends, forward and backward."""
        return self.end_forward + total(each(held_gradients, self.ends))


def stage_costs(stage: Stage, costs: ModelCosts, stages: Count = 1) -> StageCosts:
    """Join what a stage holds with what each part costs."""
    layers = tuple(Held(each.name, count, each) for each, count in zip(costs.layers, stage.counts, strict=True))
    ends = Held("embedding", stage.embedding, costs.embedding), Held("head", stage.head, costs.head)
    parts = (*layers, *ends)
    matrices = tuple(HeldShapes(of.name, tuple(parts[at] for at in of.parts), of.values) for of in costs.shapes)
    return StageCosts(stage.name, stage.rank, layers, ends, stage.head, stage.unevenness, matrices, stages)
