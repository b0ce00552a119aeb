"""What a run writes so that it can go on later: the checkpoint's size, and the time to write and to read it.

Gradients are not written, nor quantised copies of weights, nor what another model keeps beside.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..engines.recipe import Recipe
from ..formula import maximum, total, where
from ..job import recipe_of, types_of
from ..layout.case import Case
from ..quantities import Bandwidth, Bytes, Params, PlainBytes, PlainShare, Seconds
from ..stage import StageCosts
from ..undivided import state_of


@dataclass(frozen=True)
class Written:
    """What a checkpoint holds of one parameter."""

    copies: float  # of the weights
    weights: PlainBytes  # of one copy
    master: PlainBytes
    widened: float  # moments as written over moments as kept
    frozen: PlainShare  # 1 where frozen weights are written too, 0 where adapters are written alone


@dataclass(frozen=True)
class Saved:
    """One checkpoint: its size, and how long storage takes; no time where the bandwidth of the storage is not said."""

    bytes: float
    weights_bytes: float
    optimizer_bytes: float
    per_rank_bytes: float  # what the busiest rank writes
    read_bytes: float  # what all ranks read together, so that they can go on
    write_seconds: float | None
    read_seconds: float | None


def written_recipe(case: Case) -> Recipe:
    """A case's recipe with the types that its engine writes, and nothing that is not written."""
    wide = case.engine.saves_wide and case.recipe.master > 0 and not case.job.fixed
    job = replace(case.job, master_dtype="fp32", moment_dtype="fp32") if wide else case.job
    recipe = recipe_of(job, case.engine, case.cluster.accelerator)
    beside = types_of(job, case.engine).more_optimizer  # copies of gradients
    return replace(recipe, master=recipe.master - beside, copies=0, frozen_copies=0)


def written_of(case: Case) -> Written:
    """What the checkpoint of a case holds of one parameter."""
    recipe = written_recipe(case)
    wide = recipe.moments.vector / case.recipe.moments.vector if case.recipe.moments.vector else 1.0
    frozen = float(case.job.adapter == "none")
    return Written(case.engine.saved_copies[int(case.layout.zero)], recipe.weights, recipe.master, wide, frozen)


def saved_weights(written: Written, trained: Params, frozen: Bytes) -> Bytes:
    """Weights in a checkpoint: every copy of the trained ones, and the frozen ones where the whole model is written.

    `frozen` are the bytes of all frozen weights.
    """
    return written.copies * (written.weights * trained + written.frozen * frozen)


def saved_bytes(written: Written, trained: Params, frozen: Bytes, all_moments: Bytes) -> Bytes:
    """A checkpoint: weights, and what the optimizer needs to go on. `all_moments` are as written.

    With Adam and bf16 weights that is 2 + 4 + 4 + 4 = 14 bytes a parameter; 12 where the fp32 shard is the weight.
    Source: BLOOM's 329 GiB of weights and 2.3 TiB in all; GPT-NeoX-20B's 268 GiB.
    """
    return total(weights=saved_weights(written, trained, frozen), master=written.master * trained, moments=all_moments)


def whole_weights(written: Written, stage: StageCosts, kind: str) -> Bytes:
    """One copy of a stage's weights as written, dense or expert, before data parallelism cuts them."""
    trained: Params = where(kind == "dense", stage.dense_parameters, stage.expert_parameters)
    return written.weights * trained + written.frozen * stage.frozen_bytes(kind)


def whole_optimizer(written: Written, stage: StageCosts, kind: str) -> Bytes:
    """Master weights and moments of a stage as written, dense or expert, before data parallelism cuts them."""
    trained: Params = where(kind == "dense", stage.dense_parameters, stage.expert_parameters)
    return written.master * trained + written.widened * stage.moments(kind)


def first_writes(written: Written, stage: StageCosts, case: Case) -> Bytes:
    """What the first of the ranks that hold the same weights writes: the weights whole, and its cut of the rest."""
    weights: Bytes = whole_weights(written, stage, "dense") + whole_weights(written, stage, "expert")
    dense: Bytes = whole_optimizer(written, stage, "dense")
    experts: Bytes = whole_optimizer(written, stage, "expert")
    held: Bytes = dense / case.optimizer_cut + experts / case.expert_optimizer_cut
    return total(weights=written.copies * weights, optimizer=held)


def each_writes(written: Written, stage: StageCosts, case: Case) -> Bytes:
    """What each rank writes where all that hold the same state share it out."""
    dense: Bytes = written.copies * whole_weights(written, stage, "dense") + whole_optimizer(written, stage, "dense")
    own: Bytes = written.copies * whole_weights(written, stage, "expert") + whole_optimizer(written, stage, "expert")
    return total(dense=dense / case.layout.replicas, experts=own / maximum(1, case.layout.edp))


def rank_writes(written: Written, stage: StageCosts, case: Case) -> Bytes:
    """What the busiest rank of a stage writes."""
    shares: Bytes = each_writes(written, stage, case)
    return where(case.layout.zero >= case.engine.saves_shared_from, shares, first_writes(written, stage, case))


def rank_reads(written: Written, stage: StageCosts, case: Case) -> Bytes:
    """What one rank of a stage reads back: one copy of its weights, and its cut of the rest.

    Ranks that hold the same read the same. Source: engines load what a rank holds, unless told to share that out.
    """
    weights: Bytes = whole_weights(written, stage, "dense") / case.weight_cut
    experts: Bytes = whole_weights(written, stage, "expert") / case.expert_weight_cut
    dense: Bytes = whole_optimizer(written, stage, "dense") / case.optimizer_cut
    own: Bytes = whole_optimizer(written, stage, "expert") / case.expert_optimizer_cut
    return total(weights=weights + experts, optimizer=dense + own)


def storage_seconds(everything: Bytes, one_rank: Bytes, storage: Bandwidth, wire: Bandwidth) -> Seconds:
    """The slower of both: all bytes through the storage, or the busiest rank's bytes over its own NIC."""
    return maximum(storage=everything / storage, rank=one_rank / wire)


def saved_parts(case: Case) -> tuple[Written, float, float, float]:
    """What `saved_bytes` takes: what is written of a parameter, parameters trained, frozen bytes, moments."""
    written, recipe = written_of(case), written_recipe(case)
    state = state_of(case.model, recipe, case.job)
    frozen = state.weights - recipe.weights * state.trained
    return written, float(state.trained), frozen, state.optimizer - recipe.master * state.trained


def saved_of(every: Sequence[StageCosts], case: Case) -> Saved:
    """The checkpoint of one layout; `every` are all its stages."""
    written, trained, frozen, moments = saved_parts(case)
    whole = float(saved_bytes(written, trained, frozen, moments))
    weights = float(saved_weights(written, trained, frozen))
    busiest = max(float(rank_writes(written, stage, case)) for stage in every)
    reads = [float(rank_reads(written, stage, case)) for stage in every]
    alike = float(case.layout.tp * case.layout.cp * case.layout.dp)
    storage, top = case.cluster.storage_bandwidth, case.cluster.top
    wire = top.bandwidth * top.share
    write = float(storage_seconds(whole, busiest, storage, wire)) if storage else None
    read = float(storage_seconds(alike * sum(reads), max(reads), storage, wire)) if storage else None
    return Saved(whole, weights, whole - weights, busiest, alike * sum(reads), write, read)
