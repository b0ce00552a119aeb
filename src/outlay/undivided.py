"""The parameters of a model by itself: the rows under the layout that divides nothing."""

from dataclasses import dataclass, replace
from functools import cache

from .engines.tables import engine, kernel_set
from .job import Job
from .layer import is_expert, split_moves, sum_flops, sum_parameters, unpadded
from .layout.axes import ALONE
from .layout.sizes import sizes
from .layout.stages import whole
from .model.blocks import embedding_rows, head_rows, rows
from .model.model import Block, Model
from .model.operations import Attention, Row, Sizes


@dataclass(frozen=True)
class Component:
    """One component of a layer kind, or of an end."""

    part: str  # kind of layer, or an end
    name: str
    each: int  # parameters of one
    layers: int  # how many layers of the kind


@dataclass(frozen=True)
class Parameters:
    """Counts of one model. `active` has both embeddings; `mtp` stands beside and is in neither."""

    total: int
    active: int
    embedding: int
    mtp: int
    components: tuple[Component, ...]


PLAIN = Job(sequence_length=1, global_batch=1, precision="bf16")


def plain_sizes(model: Model, block: Block, job: Job = PLAIN) -> Sizes:
    """Sizes of the undivided model: nothing is cut, nothing is padded."""
    driver = unpadded(engine("megatron"))
    return sizes(model, block, job, ALONE, driver, kernel_set(driver.kernels))


def _work(all_rows: tuple[Row, ...]) -> tuple[Row, ...]:
    return split_moves(all_rows)[0]


def _idle_experts(model: Model) -> int:
    """Parameters of experts that one token does not reach, on every layer."""
    idle = 0
    for block, count in zip(model.blocks, whole(model).counts, strict=True):
        part = block.feed_forward
        if part.experts:
            chosen = tuple(row for row in rows(model, block, kernel_set("transformer_engine")) if is_expert(row))
            experts = int(sum_parameters(chosen, plain_sizes(model, block)))
            idle += int(count) * experts // part.experts * (part.experts - part.active)
    return idle


def _multi_token(model: Model) -> int:
    """Multi-token prediction modules: a layer of the last kind, two norms in, a projection of 2h x h, a norm out.

    They share embedding and head with the model. Source: DeepSeek-V3 report; file size of its published checkpoint.
    """
    if not model.mtp_layers:
        return 0
    block = model.blocks[model.pattern[-1]]
    layer = int(sum_parameters(_work(rows(model, block, kernel_set("transformer_engine"))), plain_sizes(model, block)))
    return model.mtp_layers * (layer + 2 * model.hidden * model.hidden + 3 * model.hidden)


@cache
def parameters(model: Model) -> Parameters:
    """Count a model's parameters, exactly: tied matrices once, buffers never."""
    kernels = kernel_set("transformer_engine")
    found: list[Component] = []
    for block, count in zip(model.blocks, whole(model).counts, strict=True):
        here = plain_sizes(model, block)
        work = _work(rows(model, block, kernels))
        found += [Component(block.name, row.name, int(row.parameters(here)), int(count)) for row in work]
    here = plain_sizes(model, model.blocks[0])
    ends = {"embedding": embedding_rows(model, kernels), "head": head_rows(model, kernels)}
    for part, them in ends.items():
        found += [Component(part, row.name, int(row.parameters(here)), 1) for row in _work(them)]
    components = tuple(component for component in found if component.each)
    amount = sum(component.each * component.layers for component in components)
    table = model.vocab * model.hidden * (1 if model.tied else 2)
    return Parameters(amount, amount - _idle_experts(model), table, _multi_token(model), components)


def sequence_flops(model: Model, job: Job) -> float:
    """Model FLOPs of one sequence's forward pass, attention as the job counts it; every expert loaded alike."""
    layers, _ = layer_flops(model, job)
    here = plain_sizes(model, model.blocks[0], job)
    return float(layers + sum_flops(_work(head_rows(model, kernel_set("transformer_engine"))), here))


def layer_flops(model: Model, job: Job) -> tuple[float, float]:
    """FLOPs of one sequence's forward pass through all layers, and of the attention cores among them."""
    kernels, alike = kernel_set("transformer_engine"), replace(job, expert_imbalance=1)
    layers = cores = 0.0
    for count, block in zip(whole(model).counts, model.blocks, strict=True):
        work, here = _work(rows(model, block, kernels)), plain_sizes(model, block, alike)
        layers += float(count) * float(sum_flops(work, here))
        cores += float(count) * float(sum_flops(tuple(row for row in work if isinstance(row, Attention)), here))
    return layers, cores
