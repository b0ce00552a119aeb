"""A short real training run of one case on the devices at hand: one rank's part of it. Loads torch.

What runs is torch's own: FSDP2, tensor and sequence parallelism, its pipelining runtime, a fused AdamW. Ours are the
layers, in plain PyTorch.
"""

import gc
import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd import DeviceType
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import loss_parallel
from torch.profiler import ProfilerActivity, profile

from ...layout.case import Case
from ..models.llama import cross_entropy
from ..models.ranks import AXES
from ..together import here
from .devices import described
from .made import made
from .profiled import ON_A_CPU, ON_A_DEVICE, Kernel, Moments, Ran, moments_of
from .staged import staged

STEPS = ("pipeline", *AXES)  # the mesh of a run, the slowest axis first
LEARNING = 1e-4
MEMORY = "[memory]"  # what torch's profiler calls an allocation


def trained(case: Case, warm: int, timed: int) -> Ran:
    """Run a case, as one of its ranks within a process group of all. Nothing else may run on the devices."""
    device = here()
    torch.manual_seed(0)
    step = step_of(case, device)
    for _ in range(warm):
        step()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    seconds = timed_steps(step, timed, device)
    peak = kept = 0
    if device.type == "cuda":
        peak, kept = torch.cuda.max_memory_allocated(device), torch.cuda.max_memory_reserved(device)
    if device.type == "cuda":
        profiled_step(step, device)  # the first one waits for the profiler itself
    moments, held = profiled_step(step, device)
    return Ran(dist.get_rank(), described(device), seconds, peak or held, kept, moments)


# --- what is run --------------------------------------------------------------------------------------------------


def step_of(case: Case, device: torch.device) -> Callable[[], None]:
    """One training step of this rank, weights and states made."""
    at = case.layout
    shape = (int(at.pp), int(at.dp_replicate), int(at.dp_shard), int(at.tp))
    mesh = init_device_mesh(device.type, shape, mesh_dim_names=STEPS)
    many, width = int(case.micro_batches), int(at.micro_batch)
    tokens = torch.randint(case.model.vocab, (many * width, case.job.sequence_length), device=device)
    targets = tokens.roll(-1, 1)
    within: Callable[[], Any] = loss_parallel if at.tp > 1 else nullcontext
    if at.pp > 1:
        passes, models = staged(case, mesh, device, (tokens, targets))
    else:
        models = [made(case, mesh, device)]
        passes = whole_passes(case, models[0], tokens, targets)
    optimizer = adam(models)

    def step() -> None:
        with within():
            passes()
        optimizer.step()
        optimizer.zero_grad()

    return step


def whole_passes(case: Case, model: nn.Module, tokens: Tensor, targets: Tensor) -> Callable[[], None]:
    """Forward and backward pass of each micro-batch through a model that is not cut into stages."""
    many, at = int(case.micro_batches), case.layout
    batches = [*zip(tokens.chunk(many), targets.chunk(many), strict=True)]
    whole = bool(at.accumulate_whole or at.zero == 0)

    def passes() -> None:
        for turn, (inputs, aims) in enumerate(batches):
            last = turn == many - 1
            if isinstance(model, FSDPModule) and whole:
                model.set_requires_gradient_sync(last)
            elif isinstance(model, FSDPModule) and at.dp_replicate > 1:
                model.set_requires_all_reduce(last)
            cross_entropy(model(inputs), aims).backward()

    return passes


def adam(models: list[nn.Module]) -> torch.optim.Optimizer:
    """AdamW in one kernel, which takes no mixture of whole and spread tensors."""
    weights = [weight for model in models for weight in model.parameters()]
    spread = [weight for weight in weights if isinstance(weight, DTensor)]
    whole = [weight for weight in weights if not isinstance(weight, DTensor)]
    groups = [{"params": group} for group in (spread, whole) if group]
    return torch.optim.AdamW(groups, lr=LEARNING, fused=True)


# --- what is measured ---------------------------------------------------------------------------------------------


def timed_steps(step: Callable[[], None], count: int, device: torch.device) -> tuple[float, ...]:
    """Seconds of each step. The host runs ahead of a GPU as it does in training: events mark where steps end."""
    together_here(device)
    if device.type == "cuda":
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
        marks[0].record()
        for mark in marks[1:]:
            step()
            mark.record()
        torch.cuda.synchronize(device)
        return tuple(a.elapsed_time(b) / 1e3 for a, b in pairwise(marks))
    ends = [time.perf_counter()]
    for _ in range(count):
        step()
        ends.append(time.perf_counter())
    return tuple(b - a for a, b in pairwise(ends))


def together_here(device: torch.device) -> None:
    """All ranks, with nothing left to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    dist.barrier()


def profiled_step(step: Callable[[], None], device: torch.device) -> tuple[Moments, int]:
    """One step under the profiler: whose kernels ran when, and on a CPU the most that tensors held."""
    gpu = device.type == "cuda"
    held = 0 if gpu else standing_bytes()
    together_here(device)
    with profile(activities=[ProfilerActivity.CUDA if gpu else ProfilerActivity.CPU], profile_memory=not gpu) as seen:
        began = time.perf_counter()
        step()
        if gpu:
            torch.cuda.synchronize(device)
        seconds = time.perf_counter() - began
    events = seen.profiler.kineto_results.events()
    kernels = kernels_of(events, DeviceType.CUDA if gpu else DeviceType.CPU)
    return moments_of(kernels, seconds, ON_A_DEVICE if gpu else ON_A_CPU), 0 if gpu else held + most_of(events)


def kernels_of(events: Any, kind: Any) -> list[Kernel]:
    """The kernels of a GPU, its copies among them; or the operations of a CPU. No span that only names others."""
    found = []
    for event in events:
        spans = event.is_user_annotation() or event.is_hidden_event() or event.name() == MEMORY
        if event.device_type() == kind and not spans and (kind != DeviceType.CPU or operation(event.name())):
            found.append(Kernel(event.name(), event.start_ns() / 1e9, event.end_ns() / 1e9))
    return found


def operation(name: str) -> bool:
    """Whether a span of a CPU is an operation or a collective, and no node of the graph around it."""
    return ("::" in name and not name.startswith("autograd::")) or name.startswith("gloo:")


def most_of(events: Any) -> int:
    """The most bytes that allocations of a CPU add to what stood before."""
    now = most = 0
    for event in sorted((each for each in events if each.name() == MEMORY), key=lambda each: each.start_ns()):
        if event.device_type() == DeviceType.CPU:
            now += event.nbytes()
            most = max(most, now)
    return most


def standing_bytes() -> int:
    """Bytes of all tensors that stand, each storage once."""
    gc.collect()
    sizes = {}
    for each in gc.get_objects():
        if isinstance(each, Tensor) and not isinstance(each, DTensor) and each.device.type == "cpu":
            storage = each.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
    return sum(sizes.values())
