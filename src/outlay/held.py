"""So many layers of one kind on one stage, and what they cost together."""

from dataclasses import dataclass
from functools import cached_property

from .formula import each, maximum, minimum, total, where
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


def held_trained(held: Held) -> Params:
    """Trained parameters of one layer, where the stage has such layers."""
    return held.some * (held.costs.dense_parameters + held.costs.expert_parameters)


def held_dequantised(held: Held) -> Bytes:
    """The largest frozen matrix of one layer that is dequantised before each use."""
    return held.costs.dequantised


def held_kept(held: Held) -> Bytes:
    """Tapes of the layers of one kind, one micro-batch."""
    return held.layers * held.costs.kept


def held_kept_selective(held: Held) -> Bytes:
    """Tapes of the layers of one kind where modules are recomputed, one micro-batch."""
    return held.layers * held.costs.kept_selective


def held_entry(held: Held) -> Bytes:
    """Inputs of the layers of one kind, one micro-batch."""
    return held.layers * held.costs.entry


def held_tape(held: Held) -> Bytes:
    """One layer's tape, where the stage has such layers."""
    return held.some * held.costs.kept


def held_freed(held: Held) -> Bytes:
    """What the largest of one layer's recomputed modules frees, where the stage has such layers."""
    return held.some * held.costs.freed


def held_backward(held: Held) -> Bytes:
    """What one layer holds for a moment beyond its tape, where there are such layers.

    Gradients of values in its backward pass, or copies in its forward pass; and its output, or the gradient of it.
    """
    moment: Bytes = held.costs.entry + maximum(gradients=held.costs.backward, copies=held.costs.workspace)
    return where(held.costs.differentiated, held.some * moment, 0)


def held_entry_of_one(held: Held) -> Bytes:
    """The input of one layer, where there are such layers."""
    return held.some * held.costs.entry


def held_layers(held: Held) -> Count:
    """So many."""
    return held.layers


@dataclass(frozen=True)
class HeldShapes:
    """Shapes of matrices, and the parts of a stage that have them."""

    name: str
    parts: tuple[Held, ...]
    values: Params


def held_shapes(shapes: HeldShapes) -> Params:
    """Values of one matrix of each shape, where the stage has one of the parts that have it."""
    layers: Count = total(each(held_layers, shapes.parts))
    return minimum(layers, 1) * shapes.values


def held_forward(held: Held) -> Seconds:
    """Kernels of the forward pass."""
    return held.layers * held.costs.forward


def held_again(held: Held) -> Seconds:
    """Kernels of the forward pass as full recompute runs it again."""
    return held.layers * held.costs.whole_again


def held_modules(held: Held) -> Seconds:
    """Kernels of the modules that selective recompute runs again."""
    return held.layers * held.costs.modules_forward


def held_gradients(held: Held) -> Seconds:
    """Kernels of the backward pass: gradients of inputs and of weights."""
    return held.layers * (held.costs.input_gradient + held.costs.weight_gradient)


def held_weight_gradient(held: Held) -> Seconds:
    """Kernels of the weight gradients."""
    return held.layers * held.costs.weight_gradient


def held_tensor_forward(held: Held) -> Seconds:
    """Tensor-parallel exchange of the forward pass."""
    return held.layers * held.costs.tp.forward


def held_tensor_again(held: Held) -> Seconds:
    """Tensor-parallel exchange of the modules that run again."""
    return held.layers * held.costs.tp.again


def held_tensor_backward(held: Held) -> Seconds:
    """Tensor-parallel exchange of the backward pass."""
    return held.layers * held.costs.tp.backward


def held_context_forward(held: Held) -> Seconds:
    """Exposed context-parallel exchange of the forward pass."""
    return held.layers * held.costs.context_forward


def held_context_again(held: Held) -> Seconds:
    """Exposed context-parallel exchange of the modules that run again."""
    return held.layers * held.costs.context_again


def held_context_backward(held: Held) -> Seconds:
    """Exposed context-parallel exchange of the backward pass."""
    return held.layers * held.costs.context_backward


def held_expert_forward(held: Held) -> Seconds:
    """Exchange between experts in the forward pass."""
    return held.layers * (held.costs.ep.forward + held.costs.etp.forward)


def held_expert_again(held: Held) -> Seconds:
    """Exchange between experts of the modules that run again."""
    return held.layers * (held.costs.ep.again + held.costs.etp.again)


def held_expert_backward(held: Held) -> Seconds:
    """Exchange between experts in the backward pass."""
    return held.layers * (held.costs.ep.backward + held.costs.etp.backward)
