"""So many layers of one kind on one stage, and what they cost together."""

from dataclasses import dataclass
from functools import cached_property

from .formula import minimum, where
from .layer import LayerCosts
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


def held_differentiated(held: Held) -> Count:
    """Layers of one kind, where a backward pass runs through them."""
    return where(held.costs.differentiated, held.layers, 0)


def held_dense(held: Held) -> Params:
    """Trained parameters outside experts, of the layers of one kind."""
    return held.layers * held.costs.dense_parameters


def held_experts(held: Held) -> Params:
    """Expert parameters, of the layers of one kind."""
    return held.layers * held.costs.expert_parameters


def held_frozen_bytes(held: Held, kind: str) -> Bytes:
    """Bytes of frozen weights, dense or expert, of the layers of one kind."""
    return held.layers * held.costs.owned(kind).frozen_bytes


def held_copies(held: Held, kind: str) -> Bytes:
    """Quantised copies of weights, dense or expert, of the layers of one kind."""
    return held.layers * held.costs.owned(kind).copies


def held_moments(held: Held, kind: str) -> Bytes:
    """The optimizer's moments, of the layers of one kind."""
    return held.layers * held.costs.owned(kind).moments


def held_orthogonalised(held: Held, kind: str) -> Seconds:
    """Time in which the optimizer orthogonalises matrices, of the layers of one kind."""
    return held.layers * held.costs.owned(kind).orthogonalised


def held_block(held: Held, weight: Bytes) -> Bytes:
    """Gathered weights of one layer, where the stage has such layers: frozen ones as they are kept."""
    trained: Params = held.costs.dense_parameters + held.costs.expert_parameters
    frozen: Bytes = held.costs.dense.frozen_bytes + held.costs.expert.frozen_bytes
    return held.some * (weight * trained + frozen)


def held_dequantised(held: Held) -> Bytes:
    """The largest frozen matrix of one layer that is dequantised before each use."""
    return held.costs.dequantised


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


def held_backward(held: Held) -> Bytes:
    """Gradients of values in the backward pass of one layer, its output's among them, where there are such layers."""
    gradients: Bytes = held.costs.entry + held.costs.backward
    return where(held.costs.differentiated, held.some * gradients, 0)


def held_entry_of_one(held: Held) -> Bytes:
    """The input of one layer, where there are such layers."""
    return held.some * held.costs.entry


def held_shapes(held: Held) -> Params:
    """Values of one matrix of each shape, where there are such layers."""
    return held.some * held.costs.shapes


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
