"""The parameters of a model by itself: the rows under the layout that divides nothing."""

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

from .cluster.efficiency import Rates
from .engines.recipe import Recipe
from .engines.tables import engine, kernel_set
from .job import Job
from .layer import inventory, owned, passed_back, unpadded
from .layout.axes import ALONE
from .layout.sizes import sizes
from .layout.stages import whole
from .model.blocks import embedding_rows, head_rows, rows
from .model.model import Block, Model
from .model.modules import checkpoints
from .model.operations import Attention, Linear, Row, Sizes
from .model.reads import only_added
from .sums import split_moves, sum_flops, sum_flops_back, sum_parameters


@dataclass(frozen=True)
class Component:
    """One component of a layer kind, or of an end."""

    part: str  # kind of layer, or an end
    name: str
    each: int  # parameters of one
    layers: int  # how many layers of the kind


@dataclass(frozen=True)
class Parameters:
    """Counts of one model. `active` has both embeddings, no extra parameters; `mtp` is in neither."""

    total: int
    active: int
    embedding: int
    mtp: int
    components: tuple[Component, ...]


NO_TIME = Rates(1, 1, 1, 1, 1, 0, 0)  # where only bytes are asked for
ALIKE: dict[str, Any] = {"expert_imbalance": 1, "expert_capacity": 0, "pad_to_capacity": False}  # every token, once
PLAIN = Job(sequence_length=1, global_batch=1, precision="bf16")


def plain_sizes(model: Model, block: Block, job: Job = PLAIN) -> Sizes:
    """Sizes of the undivided model: nothing is cut, nothing is padded."""
    driver = unpadded(engine("megatron"))
    return sizes(model, block, job, ALONE, driver, kernel_set(driver.kernels))


def _work(all_rows: tuple[Row, ...]) -> tuple[Row, ...]:
    return split_moves(all_rows)[0]


def _idle_experts(model: Model) -> int:
    """Parameters of experts that one token does not reach, on every layer: of feed-forward parts and of attention."""
    idle = 0
    for block, count in zip(model.blocks, whole(model).counts, strict=True):
        here, them = plain_sizes(model, block), rows(model, block, kernel_set("transformer_engine"))
        for part, copies in ((block.experts, "E"), (block.attention, "pairs")):
            if part and part.experts:
                chosen = tuple(row for row in them if isinstance(row, Linear) and row.copies == copies)
                experts = int(sum_parameters(chosen, here))
                idle += int(count) * experts // part.experts * (part.experts - part.active)
    return idle


def _multi_token(model: Model) -> int:
    """Multi-token prediction modules: a layer, two norms in, a projection of 2h x h, a norm out.

    The layer is of the last kind, where the model does not say. They share embedding and head with the model.
    Source: DeepSeek-V3 report; file size of its published checkpoint; transformers, MtpLayer.
    """
    blocks = model.mtp_blocks or (model.blocks[model.pattern[-1]],) * model.mtp_layers
    kernels = kernel_set("transformer_engine")
    layers = sum(int(sum_parameters(_work(rows(model, block, kernels)), plain_sizes(model, block))) for block in blocks)
    return layers + len(blocks) * (2 * model.hidden * model.hidden + 3 * model.hidden)


@cache
def parameters(model: Model) -> Parameters:
    """Count a model's parameters, exactly: tied matrices once, buffers never."""
    kernels = kernel_set("transformer_engine")
    found: list[Component] = []
    for block, count in zip(model.blocks, whole(model).counts, strict=True):
        here = plain_sizes(model, block)
        work = _work(rows(model, block, kernels))
        found += [Component(block.name, row.name, int(row.parameters(here)), int(count)) for row in work]
    for end, them in zip(model.ends, (embedding_rows(model, kernels), head_rows(model, kernels)), strict=True):
        here = plain_sizes(model, end)
        found += [Component(end.name, row.name, int(row.parameters(here)), 1) for row in _work(them)]
    components = tuple(component for component in found if component.each)
    amount = sum(component.each * component.layers for component in components)
    width = model.embedding_width or model.hidden
    table = width * (model.vocab * (1 if model.tied else 2) + model.spare_vectors)
    active = amount - _idle_experts(model) - model.extra_parameters
    return Parameters(amount, active, table, _multi_token(model), components)


@dataclass(frozen=True)
class State:
    """State of a whole model before anything is divided, in bytes."""

    parameters: int
    weights: float
    gradients: float
    optimizer: float
    trained: int  # parameters, those of adapters among them

    @property
    def bytes(self) -> float:
        """All of it: the wall."""
        return self.weights + self.gradients + self.optimizer

    def each(self, name: str) -> float:
        """Bytes of one of the three a parameter, on average over the model."""
        amount: float = getattr(self, name) / self.parameters
        return amount


@lru_cache(maxsize=8)
def _sections(model: Model, job: Job) -> tuple[tuple[float, tuple[Row, ...], Sizes], ...]:
    """How often each kind of layer and each end stands in the model, its rows without collectives, and their sizes."""
    found = inventory(model, job, kernel_set("transformer_engine")).values()
    kinds = zip((*whole(model).counts, 1, 1), (*model.blocks, *model.ends), found, strict=True)
    return tuple((float(count), _work(them), plain_sizes(model, block, job)) for count, block, them in kinds)


@cache
def state_of(model: Model, recipe: Recipe, job: Job = PLAIN) -> State:
    """The state of a model under a recipe: exact where every parameter costs the same, and by shape where not.

    What is frozen keeps its weight alone, and adapters come on top.
    """
    trained = weights = moments = 0.0
    for count, work, here in _sections(model, job):
        held = owned(work, here, NO_TIME, recipe)
        own = float(sum_parameters(tuple(row for row in work if row.trained), here))
        trained += count * own
        weights += count * float(recipe.weights * own + held.copies + held.frozen_bytes)
        moments += count * float(held.moments)
    return State(
        parameters(model).total, weights, recipe.gradients * trained, recipe.master * trained + moments, int(trained)
    )


def sequence_flops(model: Model, job: Job) -> float:
    """Model FLOPs of one sequence's forward pass, attention as the job counts it; every expert loaded alike."""
    alike = replace(job, **ALIKE)
    return sum(count * float(sum_flops(work, here)) for count, work, here in _sections(model, alike))


def attention_flops(model: Model, job: Job) -> float:
    """Those of the attention cores alone."""
    cores = (
        (count, tuple(row for row in work if isinstance(row, Attention)), here)
        for count, work, here in _sections(model, replace(job, **ALIKE))
    )
    return sum(count * float(sum_flops(work, here)) for count, work, here in cores)


def backward_flops(model: Model, job: Job) -> float:
    """Model FLOPs of one sequence's backward pass: twice the forward pass, less what frozen matrices do not need.

    None below the first trained weight.
    """
    alike = replace(job, **ALIKE)
    return sum(count * float(sum_flops_back(passed_back(work), here)) for count, work, here in _sections(model, alike))


def layer_flops(model: Model, job: Job, modules: tuple[str, ...], drops_unread: bool = False) -> tuple[float, float]:
    """FLOPs of one sequence's forward pass through all layers, and of some modules of them.

    Layers that no backward pass runs through are left out: they are never computed again; with `drops_unread` the
    matrix too whose output nothing reads but the sum of the stream.
    """
    layers = again = 0.0
    sections = list(_sections(model, replace(job, **ALIKE)))
    for count, work, here in sections[: len(model.blocks)]:
        found = checkpoints(work, modules, kernel_set("transformer_engine"))
        unread = only_added(work) if drops_unread else ()
        layers += count * float(sum_flops(passed_back(work), here) - sum_flops(passed_back(unread), here))
        again += count * sum(float(sum_flops(one.work, here)) for one in found)
    return layers, again
