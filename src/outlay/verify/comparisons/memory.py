"""Memory of one step against PyTorch's memory trackers: states, the tape, and the peak, on tensors without data.

One rank of many, one micro-batch a step: FSDP2, copies of its shards too, or nothing sharded; alone or around tensor
parallelism. Where the engine's kernels are transformers', its Llama is what runs; else a model in plain PyTorch.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ...bill import case_of, load
from ...cluster.accelerator import Cluster
from ...engines.engine import Engine
from ...errors import Fault, InputError
from ...holding import peak_parts
from ...job import HALF, Job
from ...layout.axes import Layout
from ...layout.case import Case
from ...memory.activations import activation_bytes
from ...memory.moments import logits_bytes
from ...memory.peak import allocated_bytes
from ...memory.states import gradient_bytes, library_bytes, optimizer_bytes, weight_bytes
from ...model.model import Model
from ...stage import StageCosts
from ..comparison import Comparison
from .kinds import items_of

if TYPE_CHECKING:
    from .tracking import Tracked

SCALARS = 4 + 4  # B: the loss, and the weight of its targets
COUNTER = 4  # B: the optimizer counts the steps of each tensor in fp32
NUMBER = 8  # B of a token id, a target or a position
HEAD, LAYER, ENDS, UPDATE = PLACES = ("head", "layer", "ends", "update")  # where a step can be at its largest
TABLE = "torch keeps the embedding's gradient whole on each rank: its row-wise backward pass gives a partial sum"
IDS = "without token ids and targets"


class Rank(NamedTuple):
    """What one rank did in one step, the tensors it trains, and the parameters it has beyond an even share."""

    step: "Tracked"
    tensors: int
    beyond: float


def track(case: Case) -> Rank:
    """One step of a case in torch."""
    from ..models.build import first_rank, layers_of, plain_model, transformers_llama, uneven
    from .tracking import tracked_step

    build = transformers_llama if case.engine.kernels == "transformers" else plain_model
    with first_rank(case, build) as rank:
        step = tracked_step(rank.model, layers_of(rank.model), rank.loss, rank.inputs, int(case.micro_batches))
        return Rank(step, len(list(rank.model.parameters())), uneven(rank.model))


def compare_memory(model: Model, job: Job, cluster: Cluster, layout: Layout, engine: Engine) -> tuple[Comparison, ...]:
    """States, tape, peak and its place. Raises InputError as `count` does, and for what torch is not run with here."""
    case, _ = case_of(model, job, cluster, layout, engine)
    if fault := not_run(case):
        raise InputError(fault)
    return tuple(_compared(case, load(case).stages[0], track(case)))


def not_run(case: Case) -> Fault | None:
    """What no step in torch is built for."""
    at = case.layout
    cuts = (at.cp, at.pp, at.ep, at.etp)
    sharded = at.zero >= 2
    alone = at.zero == 0 and at.dp == 1 and case.recipe.weights == case.recipe.gradients == HALF
    waits = sharded and at.accumulate_whole
    if cuts == (1, 1, 1, 1) and (sharded or alone) and (waits or case.micro_batches == 1):
        return None
    return Fault(
        "VER001",
        "this layout is not run against PyTorch",
        "FSDP2 (--zero 3 or 2), also with --dp-replicate; or one copy of all in bf16 (--zero 0"
        " --bytes 8); both with --tp and --sp, one micro-batch a step, or several with --accumulate-whole",
        f"cp {at.cp}, pp {at.pp}, ep {at.ep}, etp {at.etp}, zero {at.zero}, dp_shard {at.dp_shard},"
        f" {float(case.micro_batches):g} micro-batches",
        "--zero 3 --dp-shard 8",
    )


def extras(case: Case) -> dict[str, int]:
    """What the real code keeps after the forward pass and no row counts: a few numbers a token, by name."""
    tokens = int(case.layout.micro_batch * case.job.sequence_length)
    found = {"the loss and the weight of its targets": SCALARS}
    if case.engine.kernels == "transformers":
        head = case.model.blocks[0].attention.head_dim  # type: ignore[union-attr]
        found["rotary tables"] = 2 * 2 * case.job.sequence_length * head
        found["shifted targets"] = NUMBER * (tokens + (case.layout.micro_batch == 1))
        if case.layout.recompute == "full":
            found["positions"] = NUMBER * case.job.sequence_length
    if case.layout.recompute == "full":
        return found
    each = [case.model.blocks[kind] for kind in case.model.pattern]
    kept = sum((14 * part.active + 4) * tokens + 4 * part.experts for block in each if (part := block.experts))
    turned = sum(of.rope_dim for block in each if (of := block.attention))
    more = {  # as Mixtral's router happens to keep them; as latent attention makes them in each layer
        "indices of experts": kept,
        "rotary tables of each layer": 2 * 2 * case.job.sequence_length * turned,
    }
    return found | {name: size for name, size in more.items() if size}


def _compared(case: Case, stage: StageCosts, rank: Rank) -> Iterator[Comparison]:
    step, recipe = rank.step, case.recipe
    held, peak, apart = items_of(step.after_update), items_of(step.peak), extras(case)
    beyond = f"without {rank.beyond:,.0f} parameters beyond an even share, of rows that the ranks do not divide"
    more = [beyond] if rank.beyond else []
    weights = held["weights"] - recipe.weights * rank.beyond
    yield Comparison("weights", float(weight_bytes(stage, case)), weights, "B", *more)
    spread = [TABLE] if case.layout.zero == 0 and case.layout.tp > 1 else more
    if case.micro_batches == 1:  # else they stand whole until the last backward pass, and are shards after it
        gradients = held["gradients"] - recipe.gradients * rank.beyond
        yield Comparison("gradients", float(gradient_bytes(stage, case)), gradients, "B", *spread)
    yield Comparison(
        "optimizer",
        float(optimizer_bytes(stage, case)),
        held["optimizer"] - COUNTER * rank.tensors - 2 * recipe.weights * rank.beyond,
        "B",
        ", ".join([f"without the counters of steps, {COUNTER} B a tensor", *more]),
    )
    yield Comparison(
        "tape",
        float(activation_bytes(stage, case) + logits_bytes(stage, case)),
        items_of(step.after_forward)["activations"] - sum(apart.values()),
        "B",
        f"after the forward pass, {IDS}, and without "
        + ", ".join(f"{name} ({size:,} B)" for name, size in apart.items()),
    )
    yield compared_peak(stage, case, peak)
    if case.layout.zero == 0:
        return  # MemTracker does not tell whose backward pass runs
    ours, theirs = place_of(peak_parts(stage, case)), PLACE_OF.get(step.place, LAYER)
    yield Comparison(
        "place of the peak", PLACES.index(ours), PLACES.index(theirs), "place", f"counted: {ours}; torch: {step.place}"
    )


def compared_peak(stage: StageCosts, case: Case, peak: Mapping[str, int]) -> Comparison:
    """The largest moment of a stage; `peak` are its bytes by item, as torch's tracker has them."""
    counted = float(allocated_bytes(stage, case) - library_bytes(stage, case))
    note = f"{IDS}, and without workspaces of libraries"
    return Comparison("peak", counted, sum(peak.values()) - peak["inputs"], "B", note)


PLACE_OF = {"forward": HEAD, "loss": HEAD, "head": HEAD, "ends": ENDS, "update": UPDATE}  # of torch's places


def place_of(parts: dict[str, float]) -> str:
    """Where a stage is at its largest, by the parts of that moment."""
    if "recomputed" in parts:
        return LAYER
    if "logits" in parts:
        return HEAD
    return ENDS if parts.keys() & {"ends", "unit", "table"} else UPDATE
