"""What the layers of one stage may keep, and what a layout's step takes where its passes take longer."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ...bill import Loaded, load
from ...engines.rates import rates
from ...engines.tables import kernels_of, precision
from ...layer import inventory
from ...layout.case import Case
from ...layout.sizes import sizes
from ...layout.stages import chunk_layers, rank_chunks
from ...memory.activations import in_flight, mask_bytes
from ...memory.moments import head_moment, layer_moment
from ...memory.peak import held_state, peak_bytes
from ...memory.states import fresh_bytes
from ...schedule.bubble import fill_and_drain
from ...stage import StageCosts
from ...step.overlap import exposed_data
from ...step.total import idle_parts, pass_seconds, slowest_data, step_seconds, straggler_seconds
from .operations import Layer, layer_of


def plain(case: Case) -> Case:
    """The same layout where nothing is computed again."""
    return replace(case, layout=replace(case.layout, recompute="none", recompute_layers=0))


@dataclass(frozen=True)
class StageRoom:
    """One stage: its layers, chunk by chunk, the passes it has in flight, and what stands on its rank beside them."""

    stage: StageCosts
    case: Case
    chunks: tuple[tuple[Layer, ...], ...]

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """All layers of the stage, along the model."""
        return tuple(layer for chunk in self.chunks for layer in chunk)

    @cached_property
    def passes(self) -> float:
        """Micro-batches in flight at its peak, in stages."""
        return float(in_flight(self.stage, self.case))

    @cached_property
    def near(self) -> float:
        """Share of what is kept that is not moved to the host."""
        return float(1 - self.case.layout.offload_activations)

    @cached_property
    def state(self) -> float:
        """Bytes of state, whatever the batch."""
        return float(held_state(self.stage, self.case))

    @cached_property
    def beside(self) -> float:
        """Bytes beside the layers' tapes where a layer's backward pass runs: its gradients, and dropout masks."""
        masks = self.passes * self.near * float(mask_bytes(self.stage))
        return masks + float(layer_moment(self.stage, self.case))

    @cached_property
    def standing(self) -> float:
        """Bytes that the head needs at another moment, beyond those: what runs again may use them."""
        head = float(head_moment(self.stage, self.case)) - float(layer_moment(self.stage, self.case))
        return max(0.0, head)

    @cached_property
    def room(self) -> float:
        """Bytes that are left for the layers' tapes: usable less state, buffers and what stands beside."""
        accelerator, engine = self.case.cluster.accelerator, self.case.engine
        usable = accelerator.memory_bytes - accelerator.context_bytes - self.case.job.reserved_bytes
        allocated = (usable - engine.workspace_bytes) / (1 + engine.slack_share)
        return float(allocated - self.state + fresh_bytes(self.stage, self.case) - self.beside)

    def held(self, kept: float, again: float) -> float:
        """Bytes of the tapes: what every pass keeps, and what stands while some of it runs again."""
        return self.passes * self.near * kept + again

    def needed(self, kept: float, again: float) -> float:
        """The same, and the head's moment where that is larger."""
        return self.held(kept, max(again, self.standing))

    def peak(self, kept: float, again: float) -> float:
        """Peak memory of the rank."""
        beyond = self.needed(kept, again) + self.beside - float(fresh_bytes(self.stage, self.case))
        return float(peak_bytes(self.state + max(0.0, beyond), self.case.engine))


@dataclass(frozen=True)
class Rooms:
    """The stages among which the worst one is, those with layers; and the whole model."""

    stages: tuple[StageRoom, ...]
    whole: StageRoom

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """One layer of every kind."""
        return tuple({layer.name: layer for layer in self.whole.layers}.values())


def rooms(loaded: Loaded) -> Rooms:
    """The stages of a layout, with the operations of their layers."""
    case, model, layout = loaded.case, loaded.case.model, loaded.case.layout
    kinds = _kinds(loaded)
    split, folded = tuple(layout.split or ()), bool(layout.folded)
    chunks = [
        tuple(kinds[model.pattern[layer]] for layer in chunk)
        for chunk in chunk_layers(model.layers, layout.pp, layout.vpp, split, case.engine.counts_ends, folded)
    ]
    found = []
    for stage in loaded.stages:
        own = tuple(chunks[place] for place in rank_chunks(layout.pp, layout.vpp, int(stage.rank), folded))
        if any(own):
            found.append(StageRoom(stage, case, own))
    return Rooms(tuple(found), StageRoom(loaded.whole, case, tuple(chunks)))


def _kinds(loaded: Loaded) -> list[Layer]:
    """The operations of every kind of layer."""
    case, model = loaded.case, loaded.case.model
    kernels = kernels_of(case.engine)
    speed = rates(case.cluster.accelerator, precision(case.job.precision), kernels, case.recipe)
    rows = inventory(model, case.job, kernels)
    return [
        layer_of(
            held.costs,
            rows[block.name],
            sizes(model, block, case.job, case.layout, case.engine, kernels),
            case,
            speed,
            kernels,
        )
        for block, held in zip(model.blocks, loaded.whole.layers, strict=True)
    ]


def without_recompute(case: Case) -> Loaded:
    """The costs of a layout where nothing is computed again."""
    return load(plain(case))


@dataclass(frozen=True)
class Step:
    """A step where nothing is computed again, and what it takes where backward passes take longer."""

    loaded: Loaded

    @cached_property
    def seconds(self) -> float:
        """The whole step."""
        return float(step_seconds(self.loaded.stages, self.loaded.whole, self.loaded.case))

    @cached_property
    def passes(self) -> Mapping[str, float]:
        """A pass through each stage, by its name."""
        return {stage.name: float(pass_seconds(stage, self.loaded.case)) for stage in self.loaded.stages}

    @cached_property
    def through(self) -> float:
        """A pass through the whole model."""
        return float(pass_seconds(self.loaded.whole, self.loaded.case))

    @cached_property
    def data(self) -> float:
        """The data-parallel exchange alone."""
        return float(slowest_data(self.loaded.stages, self.loaded.case))

    def longer(self, extras: Mapping[str, float], through: float) -> float:
        """Seconds more where a pass through a stage takes `extras` longer, and one through all of them `through`.

        With fill and drain, and what then hides of the data-parallel exchange.
        """
        case, whole = self.loaded.case, self.loaded.whole
        before, after = self.through, self.through + through
        slowest = max(self.passes.values())
        slower = max(seconds + extras.get(name, 0.0) for name, seconds in self.passes.items())
        idle = fill_and_drain(before, slowest, idle_parts(before, whole, case))
        idles = fill_and_drain(after, slower, idle_parts(after, whole, case))
        hidden = exposed_data(self.data, slowest, case) - exposed_data(self.data, slower, case)
        work = float(case.micro_batches) * (slower - slowest)
        return work + float(straggler_seconds(work, case)) + float(idles - idle) - float(hidden)
