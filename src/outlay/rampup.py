"""A batch that grows: the steps and tokens that a run spends at each size of its batch, and what they cost."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from .job import Job
from .layout.case import Case
from .memory.peak import Stages
from .stage import StageCosts
from .step.total import idle_share, step_seconds


@dataclass(frozen=True)
class Size:
    """One size of the batch: how long it lasts, and what a step of it costs."""

    global_batch: int
    steps: int
    tokens: int
    step_seconds: float
    idle_share: float


@dataclass(frozen=True)
class Ramp:
    """The sizes before the batch is whole, together, and the run that they begin."""

    sizes: tuple[Size, ...]
    steps: int
    tokens: int
    seconds: float
    idle_share: float  # of the ramp's time
    run_steps: int  # of all tokens; 0 where they are not said
    run_seconds: float


def batches(job: Job) -> Iterator[tuple[int, int]]:
    """Each size of the batch and its steps, the whole one last: Megatron's `--rampup-batch-size`.

    From START to the global batch by INCREMENT: each size lasts SAMPLES x INCREMENT / (global batch - START) samples,
    in whole steps. Without tokens the whole batch has 0 steps. Source: megatron/core/num_microbatches_calculator.py.
    """
    start, increment, samples = job.batch_rampup
    rises = (job.global_batch - start) // increment
    each = samples / max(1, rises)
    most = job.tokens / job.sequence_length if job.tokens else float("inf")
    done = 0
    while done < min(samples, most) and int(done / each) < rises:
        level = int(done / each)
        size = start + level * increment
        steps = ceil((min((level + 1) * each, most) - done) / size)
        done += steps * size
        yield size, steps
    yield job.global_batch, max(0, ceil((most - done) / job.global_batch)) if job.tokens else 0


def ramp_of(stages: Stages, whole: StageCosts, case: Case) -> Ramp | None:
    """What the growing batch of a job costs; None where the batch does not grow."""
    if not case.job.batch_rampup:
        return None
    *found, last = (_size(stages, whole, case, size, steps) for size, steps in batches(case.job))
    seconds = sum(size.steps * size.step_seconds for size in found)
    idle = sum(size.steps * size.step_seconds * size.idle_share for size in found)
    steps = sum(size.steps for size in found)
    return Ramp(
        sizes=tuple(found),
        steps=steps,
        tokens=sum(size.tokens for size in found),
        seconds=seconds,
        idle_share=idle / seconds if seconds else 0.0,
        run_steps=steps + last.steps if case.job.tokens else 0,
        run_seconds=seconds + last.steps * last.step_seconds if case.job.tokens else 0.0,
    )


def _size(stages: Stages, whole: StageCosts, case: Case, batch: int, steps: int) -> Size:
    """One size: the same stages with fewer micro-batches."""
    at = replace(case, job=replace(case.job, global_batch=batch))
    tokens = steps * batch * case.job.sequence_length
    return Size(batch, steps, tokens, float(step_seconds(stages, whole, at)), float(idle_share(whole, at)))
