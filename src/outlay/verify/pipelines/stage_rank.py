"""One rank of a pipeline under torch's own pipelining, on tensors without data: what stands, and what is sent.

The order is ours, read by torch's runtime of any order. Loads torch; private names of 2.13.
"""

import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
from torch.distributed.pipelining.stage import PipelineStage
from torch.utils.checkpoint import checkpoint

from ...job import HALF
from ...layout.case import Case
from ...layout.stages import chunk_layers, rank_chunks
from ...schedule.listing import to_csv
from ...simulated import order_of
from ..comparisons.collectives import Call, Log
from ..comparisons.tracking import Places, ShardedTracker, Snapshot, WholeTracker, plain, shapes_apart
from ..models.build import plain_model, recomputed, uneven
from ..models.llama import Llama, cross_entropy
from ..models.ranks import one_of

MESH = ("pipeline", "copies", "shards")


class Known(PipelineStage):
    """A stage whose messages have known shapes: nothing is asked of its neighbours."""

    def _warmup_forward_vote(self, *args: Any, **more: Any) -> Any:
        return SimpleNamespace(item=lambda: 1)

    _warmup_backward_result = _warmup_forward_vote


class Part(nn.Module):
    """The layers of one chunk, with the end of the model that stands there."""

    def __init__(self, model: Llama, layers: list[int], first: bool, last: bool) -> None:
        super().__init__()
        self.embedding = model.embedding if first else None
        self.layers = nn.ModuleList(model.layers[layer] for layer in layers)
        self.last, self.recompute = model.last if last else None, model.recompute

    def forward(self, x: Tensor) -> Tensor:
        x = x if self.embedding is None else self.embedding(x)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.recompute else layer(x)
        return x if self.last is None else self.last(x)


@dataclass(frozen=True)
class Held:
    """What one rank held in its second step."""

    tape: int  # the most activations that stand where a backward pass begins
    peak: Snapshot
    update: Snapshot
    tensors: int
    beyond: float  # parameters beyond an even share


@dataclass(frozen=True)
class Chunks:
    """The chunks of one rank, ready to run."""

    parts: list[Part]
    stages: list[Known]
    step: Callable[[], None]
    inputs: tuple[Tensor, Tensor]
    groups: dict[str, str]  # axis of each group, by its name


@contextmanager
def chunks_of(case: Case, rank: int) -> Iterator[Chunks]:
    """The chunks of one rank under a schedule. Nothing else may have a process group meanwhile."""
    at, logs = case.layout, logging.getLogger("torch.distributed.pipelining.schedules")
    with one_of(int(at.world), int(rank * at.dp)):
        mesh = init_device_mesh("cpu", (at.pp, at.dp_replicate, at.dp_shard), mesh_dim_names=MESH)
        groups = {mesh.get_group(name).group_name: axis for name, axis in zip(MESH, ("pp", "dp", "dp"), strict=True)}
        with FakeTensorMode():
            kept = chunk_layers(
                case.model.layers, at.pp, at.vpp, tuple(at.split or ()), case.engine.counts_ends, bool(at.folded)
            )
            places, last = rank_chunks(at.pp, at.vpp, rank, bool(at.folded)), len(kept) - 1
            torch.set_default_dtype(torch.float32 if at.zero else torch.bfloat16)
            try:
                model: Any = plain_model(case.model)[0]
            finally:
                torch.set_default_dtype(torch.float32)
            recomputed(model, at.recompute)
            parts = [Part(model, kept[place], place == 0, place == last) for place in places]
            del model
            if at.zero:
                cut(parts, mesh, case)
            level, logs.level = logs.level, logging.CRITICAL
            try:
                yield scheduled(parts, places, last, mesh.get_group("pipeline"), groups, case)
            finally:
                logs.level = level


def cut(parts: list[Part], mesh: Any, case: Case) -> None:
    """FSDP2 around each layer and each end, as torchtitan wraps them."""
    wire = torch.bfloat16 if case.reduce_bytes == HALF else torch.float32
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=wire)
    over = mesh[MESH[1:]] if case.layout.dp_replicate > 1 else mesh["shards"]
    how = {"mesh": over, "mp_policy": policy}
    with unset_fake_temporarily():  # meshes are joined here, and those hold data
        for part in parts:
            if part.last is not None:
                fully_shard(part.last, **how, reshard_after_forward=False)
            for one in (part.embedding, *part.layers, part):
                if one is not None:
                    fully_shard(one, **how, reshard_after_forward=case.layout.zero == 3)


def scheduled(
    parts: list[Part], places: tuple[int, ...], last: int, group: Any, groups: dict[str, str], case: Case
) -> Chunks:
    """A rank's stages under the order of the case, as torch runs it."""
    many, model = int(case.micro_batches), case.model
    shape = (int(case.layout.micro_batch), int(case.job.sequence_length))
    ids = torch.zeros(shape, dtype=torch.long)

    def message(width: int) -> Tensor:
        return torch.empty(*shape, width, dtype=torch.bfloat16, requires_grad=True)

    stages = [
        Known(
            part, place, last + 1, torch.device("cpu"), group=group,
            input_args=(message(model.hidden) if place else ids,),
            output_args=(message(model.hidden if place < last else model.vocab),),
        )
        for part, place in zip(parts, places, strict=True)
    ]  # fmt: skip
    engine = _PipelineScheduleRuntime(stages, many, loss_fn=cross_entropy, scale_grads=False)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "order.csv"
        file.write_text(to_csv(order_of(case, many)), encoding="utf-8")
        engine._load_csv(str(file), format="compute_only")
    for stage in stages:
        stage.has_backward = True
    given = [(ids,) if 0 in places else ()] * many
    targets = [ids.clone()] * many

    def step() -> None:
        engine._step_microbatches(given, [{}] * many, targets, [], return_outputs=False)

    return Chunks(parts, stages, step, (ids, targets[0]), groups)


def held_by(case: Case, rank: int) -> Held:
    """Two steps of AdamW of a rank with one chunk; the second is told."""
    with chunks_of(case, rank) as chunks:
        (part,), (stage,) = chunks.parts, chunks.stages
        optimizer = torch.optim.AdamW(part.parameters(), lr=1e-4, fused=True)
        tracker = (ShardedTracker if case.layout.zero else WholeTracker)(part, optimizer, {})
        tracker.track_inputs(chunks.inputs)
        tapes: list[int] = []
        forward, backward = stage.forward_one_chunk, stage.backward_one_chunk

        @wraps(forward)
        def ahead(*args: Any, **more: Any) -> Any:
            tracker.reset_mod_stats()  # torch's tracker knows one pass at a time
            return forward(*args, **more)

        @wraps(backward)
        def back(*args: Any, **more: Any) -> None:
            tapes.append(now().get("Activation", 0))  # with the loss, where it is here
            backward(*args, **more)

        def now() -> Snapshot:
            return plain(tracker.get_tracker_snapshot("current"))

        stage.forward_one_chunk, stage.backward_one_chunk = ahead, back
        with tracker, shapes_apart():
            for _ in range(2):
                tracker.places = Places()
                tapes.clear()
                chunks.step()
                optimizer.step()
                update = now()
                optimizer.zero_grad()
        peak = max(tracker.places.peaks.values(), key=lambda found: sum(found.values()))
        return Held(max(tapes), peak, update, len(list(part.parameters())), uneven(part))


def sent_by(case: Case, rank: int) -> dict[str, list[Call]]:
    """The collectives and messages of a rank's second step, by axis."""
    with chunks_of(case, rank) as chunks:
        chunks.step()
        with Log() as logged:
            chunks.step()
        found: dict[str, list[Call]] = {"pp": [], "dp": []}
        for call in logged.calls:
            found[chunks.groups[call.group]].append(call)
        return found
