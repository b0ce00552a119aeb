"""Many splits of one pipeline counted at once, and what each rank costs with each number of layers."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...layer import ModelCosts
from ...layout.case import Case
from ...layout.stages import Stage, rank_chunks, whole
from ...memory.peak import peak, peak_of
from ...schedule.bubble import fill_and_drain
from ...stage import StageCosts, stage_costs
from ...step.compute import optimizer_seconds
from ...step.overlap import exposed_data, wire_seconds
from ...step.total import idle_parts, pass_seconds, step_seconds
from ...step.traffic import data_seconds

Array = NDArray[Any]
TERMS = (pass_seconds, data_seconds, wire_seconds, optimizer_seconds)  # of a stage: the step knows the largest of each


@dataclass(frozen=True)
class Pipeline:
    """One layout without its split, and the costs of its layers: what splits are counted with."""

    case: Case
    costs: ModelCosts

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Ranks, and chunks a rank."""
        return int(self.case.layout.pp), int(self.case.layout.vpp)

    @cached_property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """The chunks of each rank, along the model."""
        pp, vpp = self.shape
        return tuple(rank_chunks(pp, vpp, rank, bool(self.case.layout.folded)) for rank in range(pp))

    @cached_property
    def least(self) -> Array:
        """Layers that each chunk has at least: one; none in those that hold an end of the model."""
        pp, vpp = self.shape
        chunks = np.ones(pp * vpp, int)
        chunks[[0, -1]] = 0
        return chunks

    @cached_property
    def even(self) -> Array:
        """Layers over all chunks as even as it goes, where there is one for each that has to hold one."""
        each, more = divmod(self.case.model.layers - int(self.least.sum()), len(self.least))
        return self.least + each + (np.arange(len(self.least)) < more)

    @cached_property
    def before(self) -> Array:
        """Layers of each kind before each layer, and all at the end: (layers + 1, kinds)."""
        kinds = np.asarray(self.case.model.pattern)[:, None] == np.arange(len(self.case.model.blocks))
        return np.concatenate((np.zeros((1, kinds.shape[1])), kinds.cumsum(0)))

    def stage(self, rank: int, counts: Array, unevenness: Array) -> StageCosts:
        """A rank with its layers of each kind, arrays along the first axis."""
        ends = int(rank == 0), int(self.places[rank][-1] == len(self.least) - 1)
        found = Stage(f"stage {rank}", rank, tuple(counts.T), *ends, unevenness)
        return stage_costs(found, self.costs)

    def terms(self, stage: StageCosts) -> tuple[Array, Array]:
        """The times of a rank that the step knows, one under the other, and its peak."""
        size = np.shape(stage.layers[0].layers)
        times = [np.broadcast_to(term(stage, self.case), size) for term in TERMS]
        return np.asarray(times, float), np.broadcast_to(peak_of(stage, self.case), size)

    def stages(self, sizes: Array) -> tuple[StageCosts, ...]:
        """All ranks of some splits, each a row of `sizes`: layers of each chunk, along the model."""
        ends = np.cumsum(sizes, 1)
        counts = self.before[ends] - self.before[ends - sizes]
        return tuple(
            self.stage(rank, counts[:, places].sum(1), unevennesses(sizes[:, places]))
            for rank, places in enumerate(map(list, self.places))
        )

    def chunk_passes(self, sizes: Array) -> Array:
        """One micro-batch through each chunk of some splits: (splits, chunks)."""
        ends = np.cumsum(sizes, 1)
        counts = self.before[ends] - self.before[ends - sizes]
        last = len(self.least) - 1
        found = []
        for place in range(last + 1):
            held = Stage(f"chunk {place}", place, tuple(counts[:, place].T), int(place == 0), int(place == last))
            chunk = stage_costs(held, self.costs, 1 / self.shape[1])  # what a rank recomputes is shared by its chunks
            found.append(np.broadcast_to(pass_seconds(chunk, self.case), len(sizes)))
        return np.stack(found, 1)

    def rows(self, passes: Array) -> Array:
        """The slowest chunks of all rows together, of the passes through each chunk of some splits."""
        pp, vpp = self.shape
        rows: Array = passes.reshape(-1, vpp, pp).max(2).sum(1)
        return rows

    def counted(self, sizes: Array) -> tuple[Array, Array]:
        """Step and peak of some splits."""
        stages = self.stages(sizes)
        every = stage_costs(whole(self.case.model), self.costs, self.shape[0])
        found = step_seconds(stages, every, self.case), peak(stages, self.case)
        seconds, peaks = (np.broadcast_to(each, len(sizes)) for each in found)
        return seconds, peaks

    @cached_property
    def grows(self) -> bool:
        """Whether a step takes no less where its slowest stage takes longer: what more hides behind that is not more.

        It is so with two micro-batches and more, unless nearly all of the data-parallel exchange hides behind them.
        """
        every = stage_costs(whole(self.case.model), self.costs, self.shape[0])
        parts = idle_parts(pass_seconds(every, self.case), every, self.case)
        much = 1e9  # seconds of an exchange that nothing hides whole
        hidden = exposed_data(much, 0.0, self.case) - exposed_data(much, 1.0, self.case)
        return bool(self.case.micro_batches + fill_and_drain(0.0, 1.0, parts) >= hidden)


def unevennesses(sizes: Array) -> Array:
    """`unevenness` of many ranks at once: chunks along the last axis."""
    held = np.maximum(sizes.sum(-1), 1)
    means = sizes.cumsum(-1) / np.arange(1, sizes.shape[-1] + 1)
    return np.where(sizes.sum(-1) > 0, sizes.shape[-1] * means.max(-1) / held, 1.0)
