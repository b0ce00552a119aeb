"""A case: one complete question. Every field is filled, so formulas need no defaults."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from ..cluster.accelerator import Cluster
from ..cluster.network import Group, group
from ..engines.engine import MEGATRON, Engine, TimeBands, Workspaces
from ..engines.recipe import Recipe
from ..engines.tables import precision, time_bands, workspaces
from ..formula import each, maximum, total, where
from ..job import Job
from ..model.model import Model
from ..quantities import Bytes, Count, Flag, Share
from ..schedule.flight import round_size_of
from ..schedule.laws import Schedule
from .axes import Layout
from .replicas import Replicas, groups


def narrowed(engine: Engine, case: "Case") -> Bytes:
    """By how much a gradient on the wire of an engine is another where gradients are sharded."""
    return where(case.layout.zero >= 2, case.recipe.reduced_sharded - case.recipe.reduced, 0)


@dataclass(frozen=True)
class Case:
    """What is trained, the task, where, by what and how: a layout, or a grid of them."""

    model: Model
    job: Job
    cluster: Cluster
    engine: Engine
    recipe: Recipe
    schedule: Schedule
    layout: Layout

    @cached_property
    def workspaces(self) -> Workspaces:
        """What libraries of matrix multiplies take from the framework's allocator on this accelerator."""
        at = self.cluster.accelerator
        return workspaces(self.engine.workspaces, f"{at.vendor} {at.name}")

    @cached_property
    def time_bands(self) -> TimeBands:
        """How far measured steps of this engine, precision, kind of model and accelerator lie from their counts."""
        has = "experts" if self.model.experts else ""
        return time_bands(self.engine.name, self.job.precision, has, self.cluster.accelerator.name)

    @cached_property
    def micro_batches(self) -> Count:
        """Micro-batches that a pipeline runs in one step: M = global batch / (dp x micro-batch)."""
        return self.job.global_batch / (self.layout.dp * self.layout.micro_batch)

    @cached_property
    def round_size(self) -> Count:
        """Micro-batches that an interleaved schedule takes through one chunk before the next."""
        return round_size_of(self.engine.even_rounds, self.layout.pp, self.micro_batches)

    @cached_property
    def compute_bytes(self) -> Bytes:
        """A gathered weight."""
        return self.recipe.gathered

    @cached_property
    def reduce_bytes(self) -> Bytes:
        """A gradient on the wire."""
        return self.recipe.reduced + total(each(narrowed, self.narrowing, self))

    @cached_property
    def narrowing(self) -> tuple[Engine, ...]:
        """The engine, where it reduces gradients in another type once they are sharded."""
        return (self.engine,) if self.recipe.reduced_sharded != self.recipe.reduced else ()

    @cached_property
    def optimizer_zero(self) -> Count:
        """The highest ZeRO stage that the optimizer runs with: Megatron-LM's Muon shares whole matrices, so 1.

        Source: Megatron-LM layer_wise_optimizer.py; Megatron-FSDP takes adam or sgd.
        """
        return where((self.recipe.steps > 0) & (self.engine.name in MEGATRON), 1, 3)

    @cached_property
    def orthogonal_bytes(self) -> Bytes:
        """A matrix that is gathered once more to be orthogonalised: where weights are cut, so are matrices.

        Source: Liu et al. 2025, arXiv:2502.16982, distributed Muon; whole matrices need no gather.
        """
        return where(self.layout.zero >= self.engine.weights_sharded_from, self.recipe.orthogonal, 0)

    @cached_property
    def tensor_shown(self) -> Share:
        """Share of tensor-parallel exchange that no chunk of a matrix multiply hides."""
        return where(self.layout.overlap_tp, 1 - self.engine.tp_hidden * precision(self.job.precision).tp_overlaps, 1)

    @cached_property
    def deferred(self) -> Count:
        """1 where a pipeline keeps gradients whole until its last backward pass."""
        return where(self.engine.defers_sync, where(self.layout.pp > 1, 1, 0), 0)

    @cached_property
    def accumulated(self) -> Count:
        """1 where micro-batches accumulate gradients that stay whole until the last one."""
        return where(self.layout.accumulate_whole, where(self.micro_batches > 1, 1, 0), 0)

    @cached_property
    def whole(self) -> Count:
        """1 where gradients stay whole until the last backward pass of a step, though ZeRO-2 or 3 shards them then."""
        return maximum(self.deferred, self.accumulated)

    @cached_property
    def one_unit(self) -> Count:
        """1 where the whole model is gathered as one unit: no layer is wrapped by itself."""
        return where(self.layout.gather_unit == "model", 1, 0)

    @cached_property
    def scatters(self) -> Count:
        """Reduce-scatters of the gradients in one step: one, or one a micro-batch from ZeRO-2 on."""
        return where((self.layout.zero >= 2) & (self.whole == 0), self.micro_batches, 1)

    @cached_property
    def gathers(self) -> Count:
        """All-gathers of the weights in one step: one; two a micro-batch under ZeRO-3, one and one if deferred.

        One unit stays gathered from the forward to the backward pass, as the root of FSDP does: one a micro-batch.
        """
        again: Count = where(self.engine.gathers_again, self.micro_batches, 1)
        once: Count = where((self.layout.zero >= 2) & (self.deferred == 0), again, 1)
        twice: Count = where(self.deferred > 0, self.micro_batches + 1, (2 - self.one_unit) * self.micro_batches)
        return where(self.layout.zero >= 3, twice, once)

    @cached_property
    def again(self) -> Count:
        """Gathers of the weights for backward passes in one step: one a micro-batch under ZeRO-3, unless deferred."""
        return where((self.layout.zero >= 3) & (self.deferred == 0), (1 - self.one_unit) * self.micro_batches, 0)

    @cached_property
    def spared(self) -> Count:
        """Gathers of the ends spared in one step: they stay through a micro-batch, in a pipeline through all."""
        return where(self.engine.gathers_ends, where(self.deferred > 0, self.gathers - 1, self.again), 0)

    @cached_property
    def ends_apart(self) -> bool:
        """Whether the ends of the model are groups of FSDP of their own: not where they share a table."""
        return self.engine.ends_apart and not self.model.tied

    @cached_property
    def apart(self) -> Count:
        """1 where blocks are gathered and scattered one by one, and so are the ends: no unit, and nothing that waits.

        In a pipeline nothing is resharded before the last backward pass.
        """
        return where(self.ends_apart, where(self.deferred > 0, 0, 1 - self.one_unit), 0)

    @cached_property
    def embedding_apart(self) -> Count:
        """1 where the embedding is gathered and resharded like a block, also in a pipeline."""
        return where(self.ends_apart, 1 - self.one_unit, 0)

    @cached_property
    def shares_table(self) -> Flag:
        """Whether embedding and head share a table that is trained."""
        return self.model.tied and self.job.training.table

    @cached_property
    def dense_replicas(self) -> Replicas:
        """Ranks with the same dense weights; the inner ones shard."""
        at = self.layout
        return self._replicas(*groups(at.replicas, at.shard, at.tp, at.zero >= 1, self.cluster))

    @cached_property
    def expert_replicas(self) -> Replicas:
        """Ranks with the same experts; the inner ones shard. One rank, and no exchange, where there are none."""
        at = self.layout
        if not self.model.experts:
            alone = group(1, 1, self.cluster)
            nothing: dict[str, Any] = {each.name: 0 for each in fields(Replicas)}
            return Replicas(**(nothing | dict.fromkeys(("shard", "summed"), alone)))
        return self._replicas(*groups(at.edp, at.expert_shard, at.etp * at.ep, at.zero >= 1, self.cluster))

    def _replicas(self, shard: Group, summed: Group) -> Replicas:
        sharded = self.layout.zero >= 1
        wire = (
            self.reduce_bytes,
            self.compute_bytes,
            self.recipe.ends_gathered,
            self.orthogonal_bytes,
            self.frozen_gathers,
            self.again,
        )
        return Replicas(shard, summed, sharded, self.scatters, self.gathers, self.spared, *wire)

    @cached_property
    def frozen_gathers(self) -> Count:
        """All-gathers of frozen weights in one step: none where every rank has them whole."""
        return where(self.layout.zero >= self.engine.weights_sharded_from, self.gathers, 0)

    @cached_property
    def fresh(self) -> Count:
        """1 where the gradients of a step come with its one backward pass, and go with its update."""
        return where(self.engine.frees_gradients, where(self.micro_batches == 1, 1, 0), 0)

    @cached_property
    def weight_cut(self) -> Count:
        """Ranks over which dense weights are cut."""
        return where(self.layout.zero >= self.engine.weights_sharded_from, self.layout.shard, 1)

    @cached_property
    def gradient_cut(self) -> Count:
        """Ranks over which dense gradients are cut."""
        return where((self.layout.zero >= 2) & (self.whole == 0), self.layout.shard, 1)

    @cached_property
    def optimizer_cut(self) -> Count:
        """Ranks over which the dense part of the optimizer is cut."""
        return where(self.layout.zero >= 1, self.layout.shard, 1)

    @cached_property
    def expert_weight_cut(self) -> Count:
        """Ranks over which expert weights are cut."""
        cut: Count = where(self.layout.zero >= self.engine.weights_sharded_from, self.layout.expert_shard, 1)
        return where(self.model.experts > 0, cut, 1)

    @cached_property
    def expert_gradient_cut(self) -> Count:
        """Ranks over which expert gradients are cut."""
        return where(
            (self.model.experts > 0) & (self.layout.zero >= 2) & (self.whole == 0), self.layout.expert_shard, 1
        )

    @cached_property
    def gradients_here(self) -> Share:
        """Share of the gradients that stays on the accelerator: in some engines they leave with what is offloaded."""
        with_weights: Share = where(self.engine.offloads_gradients == "parameters", self.layout.offload_parameters, 0)
        gone: Share = where(self.engine.offloads_gradients == "optimizer", self.layout.offload_optimizer, with_weights)
        return 1 - gone

    @cached_property
    def unit_gradient(self) -> Bytes:
        """A gradient of a unit that is the whole model, until it is scattered, beside the gathered weights. None where
        nothing is sharded: no weights are gathered then, and gradients are what they are elsewhere.

        First all gradients stand beside all weights; then, with the weights gone, beside the buffer that is scattered.
        Source: torch 2.13, FSDPParamGroup.post_backward and foreach_reduce.
        """
        return where(self.one_unit > 0, self.gathers_all * maximum(self.compute_bytes, self.reduce_bytes), 0)

    @cached_property
    def expert_optimizer_cut(self) -> Count:
        """Ranks over which the experts' part of the optimizer is cut."""
        return where((self.model.experts > 0) & (self.layout.zero >= 1), self.layout.expert_shard, 1)

    @cached_property
    def gathers_blocks(self) -> Count:
        """1 where weights are gathered block by block: ZeRO-3 over more than one rank."""
        return where((self.layout.zero >= 3) & (self.layout.shard > 1), 1 - self.one_unit, 0)

    @cached_property
    def made_whole(self) -> Count:
        """1 where gradients are made whole block by block, from sharded weights that are gathered."""
        blocks: Count = where(self.engine.scatters_blocks, self.gathers_blocks + self.gathers_all, 0)
        return blocks * (1 - self.one_unit)

    @cached_property
    def scattered(self) -> Count:
        """1 where they are scattered so, in each backward pass."""
        return where(self.whole > 0, 0, self.made_whole)

    @cached_property
    def summed(self) -> Count:
        """1 where they are added to gradients that stay whole, and the last backward pass scatters those."""
        return where(self.deferred > 0, 0, self.accumulated * self.made_whole)

    @cached_property
    def bucket_width(self) -> Bytes:
        """Bytes of a gradient in the buckets it passes through from ZeRO-1 on: one, and a second that fills meanwhile.

        A pipeline reduces after its last pass, so it needs no second one. Source: DeepSpeed, stage_1_and_2.py.
        """
        beside: Count = where(self.layout.overlap_dp, where(self.layout.pp > 1, 0, 1), 0)
        held: Bytes = where(self.layout.zero >= 1, (1 + beside) * self.reduce_bytes, 0)
        return where(self.engine.bucket_elements > 0, held, 0)  # no array where there is nothing

    @cached_property
    def copied_bytes(self) -> Bytes:
        """Copies of a parameter that replicas (ZeRO-0) hold: its weight cast for compute, its gradient in a bucket."""
        cast: Bytes = where(self.recipe.weights > self.compute_bytes, self.compute_bytes, 0)
        weights: Bytes = where(self.engine.casts_weights, cast, 0)
        buckets: Bytes = where(self.layout.replicas > 1, self.recipe.gradients, 0)
        gradients: Bytes = where(self.engine.copies_gradients, buckets, 0)
        held: Bytes = where(self.layout.zero == 0, weights + gradients, 0)
        return where(self.engine.casts_weights | self.engine.copies_gradients, held, 0)

    @cached_property
    def gathers_all(self) -> Count:
        """1 where sharded weights are gathered once and stay: sharded, but not resharded, or one unit."""
        sharded: Count = where(self.layout.zero >= self.engine.weights_sharded_from, 1, 0)
        resharded: Count = 3 + self.one_unit  # the stage from which layers are: none where there is one unit
        return where((self.layout.zero < resharded) & (self.layout.shard > 1), sharded, 0)
