"""Who counts the parts of a sweep: this process, processes beside it, or a Ray cluster. All give the same bytes."""

import contextlib
import os
import pickle
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

from ...errors import Fault, InputError
from ...formats.sweep_parquet import part_bytes
from ...search.sweep.study import Study

MOST_DEATHS = 5  # of workers with no part counted between them; on Ray, over one part
AHEAD = 2  # parts a worker that wait for it: it never waits for us
Counted = Iterator[tuple[int, bytes]]
_study: list[Study] = []  # of a worker process


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def counted_here(study: Study, parts: Sequence[int]) -> Counted:
    """Every part, in this process."""
    for part in parts:
        yield part, part_bytes(study, part)


def counted_beside(study: Study, parts: Sequence[int], workers: int) -> Counted:
    """Every part, in processes of this machine. One that dies is replaced, and its parts are counted again."""
    left, deaths = dict.fromkeys(parts), 0
    while left:
        try:
            for part, content in _pooled(study, list(left), workers):
                del left[part]
                deaths = 0
                yield part, content
        except BrokenProcessPool:
            deaths += 1
            if deaths >= MOST_DEATHS:
                raise InputError(_dying(next(iter(left)))) from None


def _dying(part: int) -> Fault:
    rule = "a worker that dies is replaced, and its part is counted again"
    got = f"{MOST_DEATHS} deaths one after another, first at part {part:,}"
    return Fault(
        "SWP012", "workers die again and again", rule, got, "fewer --workers, if memory is short; else --workers 1"
    )


def _pooled(study: Study, parts: list[int], workers: int) -> Counted:
    """The same until a worker dies, which ends the pool."""
    context = get_context("spawn")  # a copy of this process would hold the lock of the folder
    told, life = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, context, initializer=_ready, initargs=(pickle.dumps(study), told))
    waiting, parts = dict[Future[bytes], int](), parts[::-1]
    try:
        while parts or waiting:
            while parts and len(waiting) < AHEAD * workers:
                with _uninterrupted():
                    waiting[pool.submit(_count, parts[-1])] = parts[-1]
                parts.pop()
            for done in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(done), done.result()
    finally:
        life.close()
        pool.shutdown(wait=True, cancel_futures=True)
        told.close()


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Around what may start a worker: it leaves interrupts to its parent, from its first moment on."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _ready(study: bytes, life: Connection) -> None:
    """Make a worker process ready: it ends when its parent ends, or lets go of it."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    Thread(target=_end_with, args=(life,), daemon=True).start()
    _study.append(pickle.loads(study))


def _end_with(life: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        life.recv_bytes()
    os._exit(1)


def _count(part: int) -> bytes:
    return part_bytes(_study[0], part)


def counted_by_ray(study: Study, parts: Sequence[int], address: str | None) -> Counted:
    """Every part, on a Ray cluster: a running one, or one of this machine's cores that ends with the sweep."""
    from .ray import cluster_of

    ray: Any
    with cluster_of(address) as ray:
        task, held = ray.remote(max_retries=0, num_cpus=1)(part_bytes), ray.put(study)
        ahead = AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting, left, deaths = dict[Any, int](), list(reversed(parts)), Counter[int]()
        while left or waiting:
            while left and len(waiting) < ahead:
                part = left.pop()
                waiting[task.remote(held, part)] = part
            (done, *_), _ = ray.wait(list(waiting), num_returns=1)
            part = waiting.pop(done)
            try:
                content = ray.get(done)
            except ray.exceptions.RayTaskError:
                raise
            except ray.exceptions.RayError:  # its worker or its machine died
                deaths[part] += 1
                if deaths[part] >= MOST_DEATHS:
                    raise InputError(_dying(part)) from None
                left.append(part)
                continue
            yield part, content
