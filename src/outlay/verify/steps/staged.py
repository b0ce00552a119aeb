"""A pipeline on the ranks at hand: the layers cut into stages, in torch's runtime of any order, which runs ours. Loads
torch; private names of 2.13.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
from torch.utils.checkpoint import checkpoint

from ...layout.case import Case
from ...layout.stages import chunk_layers
from ...schedule.listing import to_csv
from ...simulated import order_of
from ..models.build import cut
from ..models.llama import Llama, cross_entropy
from .made import filled, shaped


class Slice(Llama):
    """Some layers in a row, and the ends of the model where they are at its ends."""

    def __init__(self, whole: Llama, layers: list[int], first: bool, last: bool) -> None:
        nn.Module.__init__(self)
        self.recompute = whole.recompute
        self.layers = nn.ModuleList(whole.layers[layer] for layer in layers)
        self.embedding = whole.embedding if first else None
        ends: Any = (whole.norm, whole.head, whole.last) if last else (None, None, None)
        self.norm, self.head, self.last = ends

    def forward(self, x: Tensor) -> Tensor:
        """Token ids or hidden vectors in; hidden vectors or logits out."""
        x = self.embedding(x) if self.embedding is not None else x
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.recompute else layer(x)
        return self.last(x) if self.last is not None else x


def staged(
    case: Case, mesh: DeviceMesh, device: torch.device, batch: tuple[Tensor, Tensor]
) -> tuple[Callable[[], None], list[nn.Module]]:
    """The passes of one step of this rank, and its chunks. Every rank has the whole batch: token ids and targets."""
    order = order_of(case, int(case.micro_batches))
    group, rank = mesh.get_group("pipeline"), mesh.get_local_rank("pipeline")
    held = [chunk for chunk in range(order.stages) if order.rank_of(chunk) == rank]
    chunks = {chunk: chunk_of(case, chunk, mesh, device) for chunk in held}
    stages = [PipelineStage(model, chunk, order.stages, device, group=group) for chunk, model in chunks.items()]
    runtime = _PipelineScheduleRuntime(stages, order.micro_batches, loss_fn=cross_entropy, scale_grads=False)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "order.csv"
        file.write_text(to_csv(order), encoding="utf-8")
        runtime._load_csv(str(file), format="compute_only")
    inputs = batch[:1] if 0 in held else ()
    more = {"target": batch[1]} if order.stages - 1 in held else {}

    def passes() -> None:
        runtime.step(*inputs, **more, return_outputs=False)

    return passes, [*chunks.values()]


def chunk_of(case: Case, chunk: int, mesh: DeviceMesh, device: torch.device) -> nn.Module:
    """One chunk of the pipeline, cut over its ranks and given memory."""
    at = case.layout
    sizes = chunk_layers(
        case.model.layers, int(at.pp), int(at.vpp), tuple(at.split or ()), case.engine.counts_ends, bool(at.folded)
    )
    model = Slice(shaped(case), sizes[chunk], chunk == 0, chunk == len(sizes) - 1)
    cut(model, mesh, case)
    filled(model, case, device)
    return model
