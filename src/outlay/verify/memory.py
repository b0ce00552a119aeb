"""Memory of one step against PyTorch's memory trackers: states, the tape, and the peak, on tensors without data.

One rank of many, one micro-batch a step: FSDP2, copies of its shards too, or nothing sharded; alone or around tensor
parallelism. Where the engine's kernels are transformers', its Llama is what runs; else a model in plain PyTorch.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING

from ..bill import case_of, load
from ..cluster.accelerator import Cluster
from ..engines.engine import Engine
from ..errors import Fault, InputError
from ..holding import peak_parts
from ..job import HALF, Job
from ..layout.axes import Layout
from ..layout.case import Case
from ..memory.activations import activation_bytes
from ..memory.moments import logits_bytes
from ..memory.peak import allocated_bytes
from ..memory.states import gradient_bytes, library_bytes, optimizer_bytes, weight_bytes
from ..model.model import Model
from ..stage import StageCosts
from .comparison import Comparison
from .kinds import items_of

if TYPE_CHECKING:
    from .tracking import Tracked

SCALARS = 4 + 4  # B: the loss, and the weight of its targets
COUNTER = 4  # B: the optimizer counts the steps of each tensor in fp32
NUMBER = 8  # B of a token id, a target or a position
HEAD, LAYER, ENDS, UPDATE = PLACES = ("head", "layer", "ends", "update")  # where a step can be at its largest
TABLE = "torch keeps the embedding's gradient whole on each rank: its row-wise backward pass gives a partial sum"
IDS = "without token ids and targets"


def track(case: Case) -> "tuple[Tracked, int]":
    """One step of a case in torch, and how many tensors it trains."""
    from torch import bfloat16, float32, long, set_default_dtype, zeros
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed.tensor.parallel import loss_parallel

    from .build import cut, layers_of, plain_model, recomputed, transformers_llama
    from .ranks import mesh_of, one_of
    from .tracking import tracked_step

    build = transformers_llama if case.engine.kernels == "transformers" else plain_model
    with one_of(int(case.layout.world)):
        mesh = mesh_of(case.layout)
        with FakeTensorMode(), loss_parallel() if case.layout.tp > 1 else nullcontext():
            set_default_dtype(float32 if case.layout.zero else bfloat16)
            model, loss = build(case.model)
            set_default_dtype(float32)
            recomputed(model, case.layout.recompute)
            cut(model, mesh, case)
            tokens = zeros(case.layout.micro_batch, case.job.sequence_length, dtype=long)
            inputs = (tokens, tokens.clone())
            step = tracked_step(model, layers_of(model), loss, inputs, int(case.micro_batches))
            return step, len(list(model.parameters()))


def compare_memory(model: Model, job: Job, cluster: Cluster, layout: Layout, engine: Engine) -> tuple[Comparison, ...]:
    """States, tape, peak and its place. Raises InputError as `count` does, and for what torch is not run with here."""
    case, _ = case_of(model, job, cluster, layout, engine)
    if fault := not_run(case):
        raise InputError(fault)
    step, tensors = track(case)
    return tuple(_compared(case, load(case).stages[0], step, tensors))


def not_run(case: Case) -> Fault | None:
    """What no step in torch is built for."""
    at = case.layout
    cuts = (at.cp, at.pp, at.ep, at.etp)
    sharded = at.zero >= 2 and at.dp_shard > 1
    alone = at.zero == 0 and at.dp == 1 and case.recipe.weights == case.recipe.gradients == HALF
    waits = sharded and at.accumulate_whole
    if cuts == (1, 1, 1, 1) and (sharded or alone) and (waits or case.micro_batches == 1):
        return None
    return Fault(
        "VER001",
        "this layout is not run against PyTorch",
        "FSDP2 (--zero 3 or 2, --dp-shard above 1), also with --dp-replicate; or one copy of all in bf16 (--zero 0"
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
    if (experts := case.model.blocks[0].experts) and case.layout.recompute != "full":
        indices = (14 * experts.active + 4) * tokens + 4 * experts.experts  # as Mixtral's router happens to keep them
        found["indices of experts"] = case.model.layers * indices
    return found


def _compared(case: Case, stage: StageCosts, step: "Tracked", tensors: int) -> Iterator[Comparison]:
    held, peak, apart = items_of(step.after_update), items_of(step.peak), extras(case)
    yield Comparison("weights", float(weight_bytes(stage, case)), held["weights"], "B")
    spread = TABLE if case.layout.zero == 0 and case.layout.tp > 1 else ""
    if case.micro_batches == 1:  # else they stand whole until the last backward pass, and are shards after it
        yield Comparison("gradients", float(gradient_bytes(stage, case)), held["gradients"], "B", spread)
    yield Comparison(
        "optimizer",
        float(optimizer_bytes(stage, case)),
        held["optimizer"] - COUNTER * tensors,
        "B",
        f"without the counters of steps, {COUNTER} B a tensor",
    )
    yield Comparison(
        "tape",
        float(activation_bytes(stage, case) + logits_bytes(stage, case)),
        items_of(step.after_forward)["activations"] - sum(apart.values()),
        "B",
        f"after the forward pass, {IDS}, and without "
        + ", ".join(f"{name} ({size:,} B)" for name, size in apart.items()),
    )
    yield Comparison(
        "peak",
        float(allocated_bytes(stage, case) - library_bytes(stage, case)),
        sum(peak.values()) - peak["inputs"],
        "B",
        f"{IDS}, and without workspaces of libraries",
    )
    if case.layout.zero == 0:
        return  # MemTracker does not tell whose backward pass runs
    ours, theirs = place_of(peak_parts(stage, case)), PLACE_OF.get(step.place, LAYER)
    yield Comparison(
        "place of the peak", PLACES.index(ours), PLACES.index(theirs), "place", f"counted: {ours}; torch: {step.place}"
    )


PLACE_OF = {"forward": HEAD, "loss": HEAD, "head": HEAD, "ends": ENDS, "update": UPDATE}  # of torch's places


def place_of(parts: dict[str, float]) -> str:
    """Where a stage is at its largest, by the parts of that moment."""
    if "recomputed" in parts:
        return LAYER
    if "logits" in parts:
        return HEAD
    return ENDS if "ends" in parts or "unit" in parts else UPDATE
