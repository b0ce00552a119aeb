"""Stages of a pipeline that last as long as asked, run by torch's own runtime on real ranks. Loads torch.

A stage sleeps, or multiplies matrices, for its forward pass and for each of its gradients. torch calls the weight
gradient where its order says so, also on the first stage: it is given as the stage's `dw_builder`.
"""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import (
    PipelineScheduleSingle,
    _PipelineSchedule,
    _PipelineScheduleRuntime,
    get_schedule_class,
)

from ..together import here

WIDTH, ROWS = 16, 2  # of what is sent: small, so that a message costs its latency
SQUARE = {"cpu": 256, "cuda": 4096}  # a matrix that is multiplied
LEAST_STEPS, MOST_STEPS = 2, 4  # that are timed
ALIKE = 0.01  # share by which the two shortest steps differ where nothing disturbed them
ROUND_TRIPS = 20
WRAPPED = {"forward_one_chunk": "F", "backward_one_chunk": "B", "backward_weight_one_chunk": "W"}


class Asked(NamedTuple):
    """A pipeline to be run: what travels to its ranks."""

    listing: str  # the order, as torch reads it
    homes: tuple[int, ...]  # the rank of each stage
    micro_batches: int
    seconds: tuple[tuple[float, float, float], ...]  # of each stage: forward, input gradient, weight gradient
    title: str = ""  # torch's class of the same schedule; "" where it has none
    computes: bool = False  # multiplies instead of sleeping


class Done(NamedTuple):
    """One operation that a rank has done, as torch writes it, with its start and end in nanoseconds."""

    name: str
    start: int
    end: int


class Seen(NamedTuple):
    """What one rank has done. Times are those of rank 0's clock, within `clock` nanoseconds."""

    steps: tuple[tuple[Done, ...], ...]
    listed: tuple[str, ...] = ()  # the operations of torch's own class, untimed
    refused: str = ""  # what torch said to the order, where it takes it not
    backend: str = ""
    clock: int = 0


class Pace:
    """Spends seconds on one rank, asleep or at work; nothing while it rests."""

    def __init__(self, device: torch.device, computes: bool) -> None:
        self.device, self.computes, self.rests = device, computes, True
        size = SQUARE.get(device.type, SQUARE["cpu"])
        self.matrix = torch.rand(size, size, device=device) / size if computes else torch.zeros(0)
        self.each = self._calibrated() if computes else 0.0

    def spend(self, seconds: float) -> None:
        """Let so much time pass."""
        if self.rests:
            return
        if not self.computes:
            self.wait()
            time.sleep(seconds)
            return
        for _ in range(round(seconds / self.each)):
            torch.mm(self.matrix, self.matrix)

    def wait(self) -> None:
        """Until an accelerator has done what it was given: only then the clock tells when something ends."""
        if self.device.type == "cuda":
            torch.cuda.current_stream().synchronize()

    def _calibrated(self) -> float:
        """Seconds of one multiply, the best of five runs of twenty."""
        found = []
        for _ in range(5):
            self.wait()
            began = time.monotonic()
            for _ in range(20):
                torch.mm(self.matrix, self.matrix)
            self.wait()
            found.append((time.monotonic() - began) / 20)
        return min(found)


class Spent(torch.autograd.Function):
    """Takes its time forward, and backward for the input gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, pace: Pace, forward: float, backward: float) -> torch.Tensor:
        """The input, later."""
        ctx.pace, ctx.seconds = pace, backward
        pace.spend(forward)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        """The gradient, later."""
        ctx.pace.spend(ctx.seconds)
        return gradient.clone(), None, None, None


class Stage(torch.nn.Module):
    """A stage of a model, as far as time sees it. Its weight makes torch ask the first stage for a gradient too."""

    def __init__(self, pace: Pace, seconds: tuple[float, float, float]) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(WIDTH, device=pace.device))
        self.pace, self.seconds = pace, seconds

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Forward; its input gradient comes with autograd."""
        return Spent.apply(x + self.weight, self.pace, *self.seconds[:2])

    def weight_gradient(self) -> None:
        """The weight gradient, which torch calls by itself."""
        self.pace.spend(self.seconds[2])


def logged(stage: PipelineStage, pace: Pace, log: list[Done]) -> None:
    """Let a stage write down what torch calls, and when."""

    def wrap(name: str, kind: str) -> None:
        call = getattr(stage, name)

        def timed(micro_batch: int, *inputs: Any, **named: Any) -> Any:
            done = "I" if kind == "B" and not named.get("full_backward", True) else kind
            pace.wait()
            start = time.monotonic_ns()
            found = call(micro_batch, *inputs, **named)
            pace.wait()
            log.append(Done(f"{stage.stage_index}{done}{micro_batch}", start, time.monotonic_ns()))
            return found

        setattr(stage, name, timed)

    for name, kind in WRAPPED.items():
        wrap(name, kind)


def run_pipelines(asked: Sequence[Asked]) -> list[Seen]:
    """On each rank: every pipeline, one after the other."""
    clock = Clock()
    return [_run(each, clock) for each in asked]


def _run(asked: Asked, clock: "Clock") -> Seen:
    """torch's own class once without time, for its order; ours once without, and then timed."""
    pace, log = Pace(here(), asked.computes), list[Done]()

    def stages() -> list[PipelineStage]:
        mine = [stage for stage, home in enumerate(asked.homes) if home == dist.get_rank()]
        return [_stage(asked, stage, pace, log) for stage in mine]

    listed: tuple[str, ...] = ()
    if asked.title:
        kind, made = get_schedule_class(asked.title), stages()
        one = made[0] if issubclass(kind, PipelineScheduleSingle) else made
        _step(kind(one, asked.micro_batches, loss_fn=_loss), asked, pace)
        listed = tuple(done.name for done in log)
        log.clear()
    try:
        schedule = _loaded(stages(), asked)
    except (AssertionError, RuntimeError, ValueError) as error:
        return Seen((), listed, " ".join(str(error).split())[:200])
    _step(schedule, asked, pace)
    pace.rests = False
    steps, lengths = list[tuple[Done, ...]](), list[int]()
    while len(steps) < MOST_STEPS and not _settled(lengths):
        dist.barrier()
        log.clear()
        _step(schedule, asked, pace)
        steps.append(tuple(done._replace(start=clock(done.start), end=clock(done.end)) for done in log))
        lengths.append(_makespan(steps[-1], pace.device))
    return Seen(tuple(steps), listed, "", str(dist.get_backend()), clock.within)


def _settled(lengths: list[int]) -> bool:
    """Whether steps enough have been timed: the two shortest are alike."""
    best = sorted(lengths)[:LEAST_STEPS]
    return len(best) == LEAST_STEPS and best[-1] <= best[0] * (1 + ALIKE)


def _makespan(step: tuple[Done, ...], device: torch.device) -> int:
    """From the first start to the last end of all ranks, in nanoseconds; each of them comes to the same."""
    ends = torch.tensor([-step[0].start, step[-1].end], device=device)
    dist.all_reduce(ends, dist.ReduceOp.MAX)
    return int(ends.sum().item())


def _stage(asked: Asked, stage: int, pace: Pace, log: list[Done]) -> PipelineStage:
    module = Stage(pace, asked.seconds[stage])
    made = PipelineStage(module, stage, len(asked.homes), pace.device, dw_builder=lambda: module.weight_gradient)
    logged(made, pace, log)
    return made


def _loaded(stages: list[PipelineStage], asked: Asked) -> _PipelineScheduleRuntime:
    """torch's runtime of any order, with ours."""
    schedule = _PipelineScheduleRuntime(stages, asked.micro_batches, loss_fn=_loss)
    with tempfile.TemporaryDirectory(prefix="outlay-") as folder:
        file = Path(folder) / "order.csv"
        file.write_text(asked.listing, encoding="utf-8")
        schedule._load_csv(str(file), format="compute_only")
    return schedule


def _step(schedule: _PipelineSchedule, asked: Asked, pace: Pace) -> None:
    """One step: who has the first stage gives the input, who has the last the target."""
    rank, whole = dist.get_rank(), torch.ones(ROWS * asked.micro_batches, WIDTH, device=pace.device)
    inputs = (whole,) if asked.homes[0] == rank else ()
    schedule.step(*inputs, **({"target": whole} if asked.homes[-1] == rank else {}))
    pace.wait()


def _loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (output - target).square().mean()


class Clock:
    """A rank's monotonic clock as that of rank 0. One machine has one clock; others are asked what time it is."""

    def __init__(self, now: Callable[[], int] = time.monotonic_ns) -> None:
        self.ahead = self.within = 0  # ns
        world, local = dist.get_world_size(), int(os.environ.get("LOCAL_WORLD_SIZE", "0"))
        if world != local:
            for rank in range(1, world):
                self._exchange(rank, now)

    def __call__(self, time: int) -> int:
        """A time of this rank on the clock of rank 0."""
        return time - self.ahead

    def _exchange(self, rank: int, now: Callable[[], int]) -> None:
        """`rank` asks rank 0 for its time: the answer of the shortest round trip, as of its middle."""
        told, best = torch.zeros(1, dtype=torch.int64, device=here()), None
        for _ in range(ROUND_TRIPS):
            if dist.get_rank() == 0:
                dist.recv(told, rank)
                told.fill_(now())
                dist.send(told, rank)
            elif dist.get_rank() == rank:
                asked = now()
                dist.send(told, 0)
                dist.recv(told, 0)
                theirs, answered = int(told.item()), now()
                trip = answered - asked
                if best is None or trip < best:
                    best, self.within = trip, trip // 2
                    self.ahead = (asked + answered) // 2 - theirs
