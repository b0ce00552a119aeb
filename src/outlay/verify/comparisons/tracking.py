"""Two training steps under torch's memory trackers, on tensors without data: what stands when, by kind and by place.

The second step is the one that is told: the first makes the optimizer's states. Loads torch; private names of 2.13.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed._tools.mem_tracker import MemTracker
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._sharding_prop import ShardingPropagator
from torch.utils._python_dispatch import _disable_current_modes

Snapshot = dict[str, int]  # bytes by torch's kind, "Total" left out
Watched = tuple[Snapshot, str]  # of the largest moment, and where it is

FORWARD, LOSS, HEAD, ENDS, UPDATE = "forward", "loss", "head", "ends", "update"
FIRST = "layer 0"


@dataclass(frozen=True)
class Tracked:
    """One step. Places: forward, loss, head, the layers from the last to the first as `layer 0`.., ends, update."""

    after_forward: Snapshot
    after_backward: Snapshot
    after_update: Snapshot
    peaks: dict[str, Snapshot] = field(hash=False)  # the largest moment of each place

    @property
    def place(self) -> str:
        """Where the largest moment of all is."""
        return max(self.peaks, key=lambda place: sum(self.peaks[place].values()))

    @property
    def peak(self) -> Snapshot:
        """What stands at the largest moment."""
        return self.peaks[self.place]


def plain(snapshot: dict[torch.device, dict[Any, int]]) -> Snapshot:
    """A tracker's snapshot of the one device that there is."""
    found = snapshot.get(torch.device("cpu"), {})
    return {getattr(kind, "value", kind): size for kind, size in found.items() if kind != "Total"}


class Places:
    """The largest moment of each place of a step."""

    def __init__(self) -> None:
        self.place = FORWARD
        self.most: dict[str, tuple[int, Snapshot]] = {}

    def see(self, current: dict[torch.device, dict[Any, int]]) -> None:
        """Take a look at what stands."""
        whole = current.get(torch.device("cpu"), {}).get("Total", 0)
        if whole > self.most.get(self.place, (0, {}))[0]:
            self.most[self.place] = whole, plain(current)

    @property
    def peaks(self) -> dict[str, Snapshot]:
        """What stood at each."""
        return {place: snapshot for place, (_, snapshot) in self.most.items()}


class ShardedTracker(FSDPMemTracker):
    """Torch's tracker of FSDP2, which also tells whose backward pass runs."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, names: dict[nn.Module, str]) -> None:
        super().__init__(model, optimizer)
        self.places, self.names, self.root = Places(), names, model

    def _update_peak_stats(self, peak_state: Any) -> None:
        super()._update_peak_stats(peak_state)
        self.places.see(self._curr_mem_snap)

    def _fsdp_param_group_pre_backward(self, module: FSDPModule, before: Callable[..., Any]) -> Callable[..., None]:
        tracked = super()._fsdp_param_group_pre_backward(module, before)

        def run(*args: Any, **more: Any) -> None:
            self.places.place = self.names.get(module, HEAD)
            tracked(*args, **more)

        return run

    def _fsdp_param_group_post_backward(self, module: FSDPModule, after: Callable[..., Any]) -> Callable[..., None]:
        tracked = super()._fsdp_param_group_post_backward(module, after)

        def run(*args: Any, **more: Any) -> None:
            if module is self.root:
                self.places.place = ENDS
            for weight in module._get_fsdp_state()._fsdp_param_group.fsdp_params:
                weight.accumulate_unsharded_grad_if_needed()  # torch's tracker would hold the last one through it
            tracked(*args, **more)
            if self.names.get(module) == FIRST:
                self.places.place = ENDS  # the backward pass of the layers is over

        return run


class WholeTracker(MemTracker):
    """Torch's tracker of a model that nothing shards; all of its backward pass is one place."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, names: dict[nn.Module, str]) -> None:
        super().__init__()
        self.track_external(model, optimizer)
        self.places = Places()

    def _update_peak_stats(self, peak_state: Any) -> None:
        super()._update_peak_stats(peak_state)
        self.places.see(self._curr_mem_snap)

    def track_inputs(self, inputs: tuple[Tensor, ...]) -> None:
        """Tell token ids and targets apart."""
        self.track_external(*inputs)


@contextmanager
def shapes_apart() -> Iterator[None]:
    """Let DTensor work out global shapes where no tracker looks: it makes whole tensors for that, of no memory."""
    kept = ShardingPropagator._propagate_tensor_meta_non_cached

    def apart(self: ShardingPropagator, schema: Any) -> Any:
        with _disable_current_modes():
            return kept(self, schema)

    ShardingPropagator._propagate_tensor_meta_non_cached = apart
    try:
        yield
    finally:
        ShardingPropagator._propagate_tensor_meta_non_cached = kept


def tracked_step(
    model: nn.Module,
    layers: Iterator[nn.Module],
    loss: Callable[..., Tensor],
    inputs: tuple[Tensor, ...],
    micro_batches: int = 1,
) -> Tracked:
    """The second of two steps of AdamW in one kernel. `loss` takes the model and the inputs.

    Of several micro-batches the last alone scatters gradients; their places are one.
    """
    spread = [weight for weight in model.parameters() if isinstance(weight, DTensor)]
    whole = [weight for weight in model.parameters() if not isinstance(weight, DTensor)]
    groups = [{"params": group} for group in (spread, whole) if group]  # one kernel takes no mixture of both
    optimizer = torch.optim.AdamW(groups, lr=1e-4, fused=True)
    names = {layer: f"layer {number}" for number, layer in enumerate(layers)}
    if isinstance(embedding := getattr(model, "embedding", None), FSDPModule):
        names[embedding] = ENDS
    tracker = (ShardedTracker if isinstance(model, FSDPModule) else WholeTracker)(model, optimizer, names)
    tracker.track_inputs(inputs)

    def now() -> Snapshot:
        return plain(tracker.get_tracker_snapshot("current"))

    with tracker, shapes_apart():
        for _ in range(2):
            tracker.places = Places()
            for turn in range(micro_batches):
                tracker.reset_mod_stats()
                if isinstance(model, FSDPModule):
                    model.set_requires_gradient_sync(turn == micro_batches - 1)
                tracker.places.place = FORWARD
                value = loss(model, *inputs)
                forward, tracker.places.place = now(), LOSS
                value.backward()
                del value
            backward, tracker.places.place = now(), UPDATE
            optimizer.step()
            update = now()
            optimizer.zero_grad()
    return Tracked(forward, backward, update, tracker.places.peaks)
