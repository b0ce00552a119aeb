"""The collectives that are timed, over groups of ranks that run at the same time. Loads torch."""

from collections.abc import Callable

import torch
import torch.distributed as dist

from .tasks import EXCHANGE, GATHER, REDUCE, SCATTER, Task

VALUE = 4  # bytes of an fp32 value


def group_of(many: int, stride: int) -> dist.ProcessGroup:
    """The group of this rank among so many, each a stride from the next. Every rank has to call it."""
    world, rank = dist.get_world_size(), dist.get_rank()
    span, found = many * stride, None
    for first in range(0, world - world % span, span):
        for offset in range(stride):
            members = [first + offset + stride * at for at in range(many)]
            made = dist.new_group(members)
            found = made if rank in members else found
    if found is None:
        raise ValueError(f"groups of {many} with a stride of {stride} do not cover {world} ranks")
    return found


def collective_of(task: Task, group: dist.ProcessGroup, device: torch.device) -> Callable[[], object]:
    """One run of a collective; `buffer` bytes are the whole tensor, as the network's formulas have it."""
    buffer, many, _ = task.sizes
    part = max(1, buffer // VALUE // many)
    whole, own = torch.zeros(part * many, device=device), torch.zeros(part, device=device)
    if task.what == GATHER:
        return lambda: dist.all_gather_into_tensor(whole, own, group=group)
    if task.what == SCATTER:
        return lambda: dist.reduce_scatter_tensor(own, whole, group=group)
    if task.what == REDUCE:
        return lambda: dist.all_reduce(whole, group=group)
    if task.what == EXCHANGE:
        other = torch.zeros_like(whole)
        return lambda: dist.all_to_all_single(other, whole, group=group)
    return _send(whole, group, many)


def _send(message: torch.Tensor, group: dist.ProcessGroup, many: int) -> Callable[[], object]:
    """Every second member sends to the next one, which only receives."""
    place = dist.get_group_rank(group, dist.get_rank())
    pairs = many // 2 * 2
    if place >= pairs:
        return lambda: None
    peer = dist.get_global_rank(group, place + 1 if place % 2 == 0 else place - 1)
    if place % 2 == 0:
        return lambda: dist.send(message, peer, group=group)
    return lambda: dist.recv(message, peer, group=group)
