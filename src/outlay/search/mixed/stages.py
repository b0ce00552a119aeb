"""A layout whose layers have strategies of their own, counted by the formulas of a plain one, part by part.

A stage is cut into parts: its layers at each tensor-parallel degree, and among these the layers of each strategy. Each
part is a stage of a layout that is plain, so every term is a formula that a bill uses; the whole is

    state        the sum over degrees: parameters / tp', sharded by ZeRO over dp' ranks of their own
    tapes        passes in flight x the sum over strategies
    moment       the largest of any strategy, as if all layers of its degree followed it; the head's at its own degree
    pass         the sum over strategies, and what lays activations out anew between degrees
    exchange, optimizer   the sum over degrees: each layer's gradients at its own data-parallel degree

What a rank has once is counted once: models beside, workspaces, the tied table's exchange. With one strategy there is
one part, and each figure is that of the bill. Between degrees it is a bound: each keeps buffers of its own.
Source of the states: ZeRO, Rajbhandari et al. 2020, each layer in groups of its own; Miao et al. 2022 (Galvatron).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from ...formula import each, total
from ...layout.case import Case
from ...layout.stages import Stage, chunk_layers, counted, rank_chunks, unevenness
from ...memory.activations import in_flight, one_pass_bytes
from ...memory.moments import head_moment, layer_moment, waiting_logits
from ...memory.peak import held_state, later_bytes, peak_bytes
from ...memory.states import beside_bytes, fresh_bytes, library_bytes
from ...stage import StageCosts, stage_costs
from ...step.compute import optimizer_seconds
from ...step.overlap import wire_seconds
from ...step.total import pass_seconds
from ...step.traffic import data_seconds, tables, tied_seconds
from .ground import Ground
from .relayout import relayout_bytes, standing_bytes
from .strategies import Strategy

Plan = tuple[Strategy, ...]  # of the layers of a stage, along its chunks


@dataclass(frozen=True)
class Place:
    """One rank of a pipeline: its layers, chunk by chunk, and the ends of the model where they stand."""

    rank: int
    chunks: tuple[tuple[int, ...], ...]  # places in the model
    embedding: int
    head: int

    @property
    def layers(self) -> tuple[int, ...]:
        """All of them, along the model."""
        return tuple(layer for chunk in self.chunks for layer in chunk)


@dataclass(frozen=True)
class Mixing:
    """The same with the ends of the model, and what stages send, at one degree."""

    ground: Ground
    own: Strategy  # nothing again, at that degree

    @cached_property
    def case(self) -> Case:
        """The question, with that degree in all its layers, where nothing is computed again."""
        return self.ground.cases[self.own]

    @property
    def strategies(self) -> tuple[Strategy, ...]:
        """Those that a layer may have."""
        return self.ground.strategies

    @property
    def cases(self) -> dict[Strategy, Case]:
        """The question where all layers follow one strategy."""
        return self.ground.cases

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """The ranks of the pipeline."""
        at, model = self.case.layout, self.case.model
        folded, pp, vpp = bool(at.folded), int(at.pp), int(at.vpp)
        chunks = chunk_layers(model.layers, pp, vpp, tuple(at.split or ()), self.case.engine.counts_ends, folded)
        found = []
        for rank in range(pp):
            held = rank_chunks(pp, vpp, rank, folded)
            own = tuple(tuple(chunks[chunk]) for chunk in held)
            found.append(Place(rank, own, int(rank == 0), int(held[-1] == len(chunks) - 1)))
        return tuple(found)

    def kind(self, layer: int) -> int:
        """The kind of a layer."""
        return self.case.model.pattern[layer]

    def part(
        self, place: Place, strategy: Strategy, layers: Sequence[int], uneven: float = 1, stages: float = 1
    ) -> StageCosts:
        """Some layers of a rank as a stage by themselves; with the ends where the strategy has their degree."""
        counts = counted(self.case.model, list(layers))
        here = Stage(f"stage {place.rank}", place.rank, counts, place.embedding, place.head, uneven)
        ends = here if strategy.tp == self.own.tp else replace(here, embedding=0, head=0)
        return stage_costs(ends, self.ground.costs[strategy], stages)

    def relayout(self, one: Strategy, other: Strategy) -> float:
        """Seconds of one boundary between two degrees, both directions."""
        return self.ground.turned[one.tp, other.tp]


@dataclass(frozen=True)
class Counted:
    """One rank with a plan for its layers."""

    mixing: Mixing
    place: Place
    plan: Plan
    stages: float = 1  # that it stands for

    @cached_property
    def unevenness(self) -> float:
        """How its tapes lie over its chunks: as its layers do where all are treated alike; else as their bytes too."""
        own = unevenness([len(chunk) for chunk in self.place.chunks])
        if len(set(self.plan)) < 2 or len(self.place.chunks) < 2:
            return own
        sizes, start = [], 0
        for chunk in self.place.chunks:
            kept = (self._kept(at, layer) for at, layer in enumerate(chunk, start))
            sizes.append(round(sum(kept)))
            start += len(chunk)
        return max(own, unevenness(sizes))

    def _kept(self, at: int, layer: int) -> float:
        return self.mixing.ground.layers[self.mixing.kind(layer), self.plan[at]].tape

    def _part(self, strategy: Strategy, alike: bool) -> StageCosts:
        """Layers of one strategy; or of its degree, whatever is computed again."""
        held = zip(self.place.layers, self.plan, strict=True)
        layers = [layer for layer, own in held if own == strategy or (not alike and own.tp == strategy.tp)]
        return self.mixing.part(self.place, strategy, layers, self.unevenness, self.stages)

    @cached_property
    def used(self) -> tuple[Strategy, ...]:
        """The strategies that its layers have, one of the ends' degree first where the ends stand here."""
        found, own = sorted(set(self.plan)), self.mixing.own
        found.sort(key=lambda each_one: each_one.tp != own.tp)
        lacks = not found or (found[0].tp != own.tp and (self.place.embedding or self.place.head))
        return (own, *found) if lacks else tuple(found)

    @cached_property
    def parts(self) -> tuple[tuple[StageCosts, Case], ...]:
        """Layers of each strategy; the first part has the ends."""
        bare = replace(self.place, embedding=0, head=0)
        parts = []
        for at, strategy in enumerate(self.used):
            one = self if not at else replace(self, place=bare)
            parts.append((one._part(strategy, True), self.mixing.cases[strategy]))
        return tuple(parts)

    @cached_property
    def by_degree(self) -> tuple[tuple[StageCosts, Case], ...]:
        """Layers of each degree, whatever is computed again: what states and exchange depend on."""
        first = {strategy.tp: strategy for strategy in reversed(self.used)}
        degrees = sorted(first.values(), key=self.used.index)
        return tuple((self._part(strategy, False), self.mixing.cases[strategy]) for strategy in degrees)

    @cached_property
    def boundaries(self) -> tuple[tuple[Strategy, Strategy], ...]:
        """Neighbours of unequal degree along each chunk, which begins and ends at the degree of the layout."""
        found, start, own = [], 0, self.mixing.own
        for chunk in self.place.chunks:
            row = (own, *self.plan[start : start + len(chunk)], own)
            found += [pair for pair in pairwise(row) if pair[0].tp != pair[1].tp]
            start += len(chunk)
        return tuple(found)

    @cached_property
    def allocated(self) -> float:
        """What the rank allocates at its peak, as `allocated_bytes` counts it."""
        degrees = self.by_degree
        state = sum(float(held_state(*part)) for part in degrees)
        once = [float(beside_bytes(case)) + float(library_bytes(stage, case)) for stage, case in degrees]
        fresh = sum(float(fresh_bytes(*part)) for part in degrees)
        later = sum(float(later_bytes(*part)) for part in degrees)
        begin = self.tapes + self.moment
        return state - sum(sorted(once)[:-1]) + (max(begin, later) - fresh)

    @cached_property
    def flying(self) -> float:
        """Micro-batches in flight at its peak, in stages."""
        return float(in_flight(*self.parts[0]))

    @cached_property
    def tapes(self) -> float:
        """Tapes of all passes in flight."""
        return self.flying * sum(float(one_pass_bytes(*part)) for part in self.parts)

    @cached_property
    def moment(self) -> float:
        """The largest moment: at the head, or in a layer of any strategy; and a tensor that is laid out anew."""
        whole = {strategy: self._part(strategy, False) for strategy in self.used}
        cases = self.mixing.cases
        first = self.used[0]
        waiting = float(waiting_logits(whole[first], cases[first]))
        layers = [
            float(layer_moment(stage, cases[strategy])) + (0.0 if strategy.tp == first.tp else waiting)
            for strategy, stage in whole.items()
        ]
        turned = (standing_bytes(cases[one], cases[other]) for one, other in self.boundaries)
        return max(float(head_moment(whole[first], cases[first])), *layers) + max(turned, default=0.0)

    @cached_property
    def peak(self) -> float:
        """Its peak memory."""
        return float(peak_bytes(self.allocated, self.mixing.case.engine))

    @cached_property
    def one_pass(self) -> float:
        """Forward and backward pass of one micro-batch."""
        turned = sum(self.mixing.relayout(one, other) for one, other in self.boundaries)
        return sum(float(pass_seconds(*part)) for part in self.parts) + turned

    @property
    def relayout_bytes(self) -> float:
        """Bytes that a rank of it sends for that."""
        cases = self.mixing.cases
        return sum(relayout_bytes(cases[one], cases[other]) for one, other in self.boundaries)

    @cached_property
    def data(self) -> float:
        """Its data-parallel exchange; that of a tied table once."""
        degrees = self.by_degree
        tied = [float(total(each(tied_seconds, tables(case), case))) for _, case in degrees]
        return sum(float(data_seconds(*part)) for part in degrees) - sum(sorted(tied)[:-1])

    @cached_property
    def wire(self) -> float:
        """What that takes from the memory that its kernels use."""
        return sum(float(wire_seconds(*part)) for part in self.by_degree)

    @cached_property
    def optimizer(self) -> float:
        """Its optimizer step."""
        return sum(float(optimizer_seconds(*part)) for part in self.by_degree)
