"""What each rank does: every task in turn, all ranks at the same time, the first one keeping the file. Loads torch."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

import torch
import torch.distributed as dist

from ..together import here
from .kernels import kernel_of
from .tasks import Measured, Run, Task, measured, on_core
from .wires import collective_of, group_of
from .working import Working

WARM = 2  # runs that are not counted: memory is taken, threads and libraries start
LEAST, MOST = 5, 40  # times that are taken of a task
SHORTEST = 2e-3  # s of one time: shorter runs are timed several at once
SEED = 1


@dataclass(frozen=True)
class Pace:
    """How long a task is measured."""

    seconds: float = 0.3


def measure(tasks: Sequence[Task], working: Working, pace: Pace) -> list[Measured]:
    """Measure what the working file does not have; the whole list, on every rank."""
    torch.manual_seed(SEED)
    if here().type == "cpu":
        torch.set_num_threads(1)  # a rank is one core, also where torchrun started it
    first = dist.get_rank() == 0
    told: list[dict[str, Measured]] = [working.done(tasks) if first else {}]
    dist.broadcast_object_list(told)
    done = told[0]
    if first:
        working.begin(done)
    groups = dict[tuple[int, int], dist.ProcessGroup]()
    for task in tasks:
        if task.key in done:
            continue
        done[task.key] = _measured(task, groups, pace)
        if first:
            working.add(done[task.key])
    return [done[task.key] for task in tasks]


def _measured(task: Task, groups: dict[tuple[int, int], dist.ProcessGroup], pace: Pace) -> Measured:
    """The times of all ranks; of a collective those of its slowest rank, which ends it."""
    device = here()
    together = task.kind == "collectives"
    if together:
        _, many, stride = task.sizes
        if (many, stride) not in groups:
            groups[many, stride] = group_of(many, stride)
        call = collective_of(task, groups[many, stride], device)
    else:
        call = kernel_of(task, device)
    own = _sampled(call, device, pace)
    gathered: list[list[Run]] = [[] for _ in range(dist.get_world_size())]
    dist.all_gather_object(gathered, own)
    if together:
        return measured(task, [max(run.seconds for run in runs) for runs in zip(*gathered, strict=True)])
    kernels = task.sizes[0] if task.kind == "launch" else 1
    times, core = on_core([run for one in gathered for run in one], device.type == "cpu")
    return measured(task, [seconds / kernels for seconds in times], core)


def _sampled(call: Callable[[], object], device: torch.device, pace: Pace) -> list[Run]:
    """Times of one run. All ranks take as many, begin each together, and so share memory and wires as in a step."""
    for _ in range(WARM):
        call()
    once = _agreed(_timed(call, 1, device).seconds, device)
    batch = max(1, ceil(SHORTEST / once))
    times = min(MOST, max(LEAST, ceil(pace.seconds / (once * batch))))
    found = []
    for _ in range(times):
        dist.barrier()
        found.append(_timed(call, batch, device))
    return found


def _timed(call: Callable[[], object], batch: int, device: torch.device) -> Run:
    _finish(device)
    began, worked = time.perf_counter(), time.process_time()
    for _ in range(batch):
        call()
    _finish(device)
    seconds, ran = time.perf_counter() - began, time.process_time() - worked
    return Run(max(1e-9, seconds / batch), min(1.0, ran / max(1e-9, seconds)))


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _agreed(seconds: float, device: torch.device) -> float:
    """The longest of all ranks, so that they agree on how many runs they do."""
    longest = torch.tensor([seconds], dtype=torch.float64, device=device)
    dist.all_reduce(longest, dist.ReduceOp.MAX)
    return float(longest)
