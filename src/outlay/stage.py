"""One stage of a pipeline with the costs of what it holds: every sum over its layers, computed once.

What a layout then does to a stage (recompute, overlap, sharding) acts on these sums, so it costs a grid nothing more
for a second kind of layer.
"""

from dataclasses import dataclass
from functools import cached_property

from .formula import each, maximum, minimum, total
from .layer import LayerCosts, ModelCosts
from .layout.stages import Stage
from .quantities import Bytes, Count, Params, Seconds


@dataclass(frozen=True)
class Held:
    """So many layers of one kind on one stage."""

    name: str
    layers: Count
    costs: LayerCosts

    @cached_property
    def some(self) -> Count:
        """1 where the stage has such layers, else 0."""
        return minimum(self.layers, 1)


def held_layers(held: Held) -> Count:
    """Layers of one kind."""
    return held.layers


def held_dense(held: Held) -> Params:
    """Parameters outside experts, of the layers of one kind."""
    return held.layers * held.costs.dense_parameters


def held_experts(held: Held) -> Params:
    """Expert parameters, of the layers of one kind."""
    return held.layers * held.costs.expert_parameters


def held_block(held: Held) -> Params:
    """Parameters of one layer, where the stage has such layers."""
    return held.some * (held.costs.dense_parameters + held.costs.expert_parameters)


def held_kept(held: Held) -> Bytes:
    """Tapes of the layers of one kind, one micro-batch."""
    return held.layers * held.costs.kept


def held_kept_selective(held: Held) -> Bytes:
    """Tapes of the layers of one kind where the attention core is recomputed, one micro-batch."""
    return held.layers * held.costs.kept_selective


def held_entry(held: Held) -> Bytes:
    """Inputs of the layers of one kind, one micro-batch."""
    return held.layers * held.costs.entry


def held_tape(held: Held) -> Bytes:
    """One layer's tape, where the stage has such layers."""
    return held.some * held.costs.kept


def held_core_tape(held: Held) -> Bytes:
    """What one layer's attention core keeps, where the stage has such layers."""
    return held.some * (held.costs.kept - held.costs.kept_selective)


def held_forward(held: Held) -> Seconds:
    """Kernels of the forward pass."""
    return held.layers * held.costs.forward


def held_core(held: Held) -> Seconds:
    """Attention cores of the forward pass."""
    return held.layers * held.costs.core_forward


def held_gradients(held: Held) -> Seconds:
    """Kernels of the backward pass: gradients of inputs and of weights."""
    return held.layers * (held.costs.input_gradient + held.costs.weight_gradient)


def held_weight_gradient(held: Held) -> Seconds:
    """Kernels of the weight gradients."""
    return held.layers * held.costs.weight_gradient


def held_tensor_forward(held: Held) -> Seconds:
    """Tensor-parallel exchange of the forward pass."""
    return held.layers * held.costs.tp.forward


def held_tensor_backward(held: Held) -> Seconds:
    """Tensor-parallel exchange of the backward pass."""
    return held.layers * held.costs.tp.backward


def held_context_forward(held: Held) -> Seconds:
    """Exposed context-parallel exchange of the forward pass."""
    return held.layers * held.costs.context_forward


def held_context_backward(held: Held) -> Seconds:
    """Exposed context-parallel exchange of the backward pass."""
    return held.layers * held.costs.context_backward


def held_expert_forward(held: Held) -> Seconds:
    """Exchange between experts in the forward pass."""
    return held.layers * (held.costs.ep.forward + held.costs.etp.forward)


def held_expert_backward(held: Held) -> Seconds:
    """Exchange between experts in the backward pass."""
    return held.layers * (held.costs.ep.backward + held.costs.etp.backward)


@dataclass(frozen=True)
class StageCosts:
    """One stage: layers of each kind, and the two ends of the model where they stand. Costs are of one rank."""

    name: str
    rank: Count
    layers: tuple[Held, ...]
    ends: tuple[Held, ...]  # embedding, head
    head: Count
    unevenness: Count = 1  # layers if all its chunks were as its largest, over those it has
    stages: Count = 1  # of a pipeline that it stands for: all of them where the model is whole, 1/v of one for a chunk

    @cached_property
    def parts(self) -> tuple[Held, ...]:
        """Layers and ends."""
        return self.layers + self.ends

    @cached_property
    def layer_count(self) -> Count:
        """Layers of the stage, of all kinds."""
        return total(each(held_layers, self.layers))

    @cached_property
    def dense_parameters(self) -> Params:
        """Parameters of the stage, experts apart."""
        return total(each(held_dense, self.parts))

    @cached_property
    def expert_parameters(self) -> Params:
        """Expert parameters of the stage."""
        return total(each(held_experts, self.parts))

    @cached_property
    def end_parameters(self) -> Params:
        """Parameters of the ends on the stage."""
        return total(each(held_dense, self.ends))

    @cached_property
    def block_parameters(self) -> Params:
        """Parameters of the largest layer of the stage."""
        return maximum(each(held_block, self.layers))

    @cached_property
    def kept(self) -> Bytes:
        """Tapes of one micro-batch."""
        return total(each(held_kept, self.layers))

    @cached_property
    def kept_selective(self) -> Bytes:
        """Tapes of one micro-batch where the attention core is recomputed."""
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
    def largest_core(self) -> Bytes:
        """What the attention core that keeps most would keep, of one layer."""
        return maximum(each(held_core_tape, self.layers))

    @cached_property
    def forward(self) -> Seconds:
        """Kernels of the layers, forward."""
        return total(each(held_forward, self.layers))

    @cached_property
    def core_forward(self) -> Seconds:
        """Attention cores of the layers, forward."""
        return total(each(held_core, self.layers))

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

    @cached_property
    def tensor_forward(self) -> Seconds:
        """Tensor-parallel exchange of the layers, forward."""
        return total(each(held_tensor_forward, self.layers))

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
    def context_backward(self) -> Seconds:
        """Exposed context-parallel exchange of the layers, backward."""
        return total(each(held_context_backward, self.layers))

    @cached_property
    def expert_forward(self) -> Seconds:
        """Exchange between experts, forward."""
        return total(each(held_expert_forward, self.layers))

    @cached_property
    def expert_backward(self) -> Seconds:
        """Exchange between experts, backward."""
        return total(each(held_expert_backward, self.layers))


def stage_costs(stage: Stage, costs: ModelCosts, stages: Count = 1) -> StageCosts:
    """Join what a stage holds with what each part costs."""
    layers = tuple(Held(each.name, count, each) for each, count in zip(costs.layers, stage.counts, strict=True))
    ends = Held("embedding", stage.embedding, costs.embedding), Held("head", stage.head, costs.head)
    return StageCosts(stage.name, stage.rank, layers, ends, stage.head, stage.unevenness, stages)
