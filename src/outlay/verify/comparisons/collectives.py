"""A log of the collectives that this rank calls, and what each sends on a ring. Loads torch."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.distributed.distributed_c10d import ProcessGroup, _resolve_process_group
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

KINDS = {
    "reduce_scatter": "scatter", "gather": "gather", "all_reduce": "reduce", "allreduce": "reduce",
    "all_to_all": "exchange", "alltoall": "exchange", "recv": "received", "send": "message",
}  # fmt: skip


@dataclass(frozen=True)
class Call:
    """One collective: its kind, the bytes of the whole tensor, the ranks of its group, and the group's name."""

    kind: str
    whole: int
    ranks: int
    group: str = ""

    @property
    def sent(self) -> float:
        """Bytes that one rank sends on a ring: (n - 1)/n of the whole, twice that in an all-reduce. A message goes
        whole, and what is received is not sent."""
        if self.kind in ("message", "received"):
            return float(self.whole) * (self.kind == "message")
        return (1 + (self.kind == "reduce")) * self.whole * (self.ranks - 1) / self.ranks


class Log(TorchDispatchMode):
    """Every collective that passes, as this rank calls it."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if DTensor in types:
            return NotImplemented  # its parts come by themselves
        out = func(*args, **(kwargs or {}))
        if func.namespace in ("c10d", "_c10d_functional") and "wait" not in func.__name__:
            kind = next((kind for name, kind in KINDS.items() if name in func.__name__), "other")
            sizes = [part.nbytes for part in tree_leaves((args, kwargs, out)) if isinstance(part, Tensor)]
            group = group_of(args)
            self.calls.append(Call(kind, max(sizes), group.size(), group.group_name))
        return out


def group_of(args: tuple[Any, ...]) -> ProcessGroup:
    """The group of a collective: its name is the last text that a functional one takes, others take it as an object."""
    if names := [each for each in args if isinstance(each, str)]:
        return _resolve_process_group(names[-1])
    return ProcessGroup.unbox(next(each for each in args if isinstance(each, torch.ScriptObject)))


def whole_bytes(calls: list[Call], kind: str) -> int:
    """The full-side bytes of all collectives of one kind."""
    return sum(call.whole for call in calls if call.kind == kind)


def sent(calls: list[Call]) -> float:
    """Bytes that one rank sends in all of them."""
    return sum(call.sent for call in calls)
