"""Who counts the parts of a sweep: this process, processes beside it, or a Ray cluster. All give the same bytes."""

import contextlib
import os
import pickle
import signal
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import forkserver, get_context, resource_tracker
from multiprocessing.connection import Connection
from threading import Thread, current_thread, main_thread
from typing import Any

from ...errors import Fault, InputError
from ...formats.sweep_parquet import library, part_of
from ...search.sweep.study import Study
from ...search.sweep.summary import Summary, Wanted

MOST_DEATHS = 5  # of workers with no part counted between them; on Ray, over one part
AHEAD = 2  # parts a worker that wait for it: it never waits for us
ONE_CORE: Mapping[str, str] = {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # of a worker's libraries
Counted = Iterator[tuple[int, bytes, Summary]]
_asked: list[tuple[Study, Wanted]] = []  # of a worker process


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def counted_here(study: Study, parts: Sequence[int], wanted: Wanted) -> Counted:
    """Every part, in this process."""
    for part in parts:
        yield part, *part_of(study, part, wanted)


def prepare_workers(workers: int) -> None:
    """What takes time before a part is counted, begun while the study is still being read. Of several workers, the
    process that they are copies of: a new one, since a copy of this one would hold the lock of the folder, which ends
    with this one. A worker alone is this process; it takes one core, as each of several does."""
    if workers > 1:
        resource_tracker.ensure_running()  # it lets interrupts through again, so it comes before they are held back
    with _on_one_core(), _uninterrupted():
        if workers == 1:
            library()
        else:
            forkserver.set_forkserver_preload([__name__])
            forkserver.ensure_running()


@contextlib.contextmanager
def _on_one_core() -> Iterator[None]:
    """Around what starts threads or processes: libraries take one core each."""
    before = {name: os.environ.get(name) for name in ONE_CORE}
    os.environ.update(ONE_CORE)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def counted_beside(study: Study, parts: Sequence[int], wanted: Wanted, workers: int) -> Counted:
    """Every part, in processes of this machine. One that dies is replaced, and its parts are counted again."""
    prepare_workers(workers)
    left, deaths = dict.fromkeys(parts), 0
    while left:
        try:
            for part, content, summary in _pooled(pickle.dumps((study, wanted)), list(left), workers):
                del left[part]
                deaths = 0
                yield part, content, summary
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


def _pooled(asked: bytes, parts: list[int], workers: int) -> Counted:
    """The same until a worker dies, which ends the pool."""
    context = get_context("forkserver")
    told, life = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, context, initializer=_ready, initargs=(asked, told))
    waiting, parts = dict[Future[tuple[bytes, Summary]], int](), parts[::-1]
    try:
        while parts or waiting:
            while parts and len(waiting) < AHEAD * workers:
                with _uninterrupted():
                    waiting[pool.submit(_count, parts[-1])] = parts[-1]
                parts.pop()
            for done in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(done), *done.result()
    finally:
        life.close()
        pool.shutdown(wait=True, cancel_futures=True)
        told.close()


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Around what starts a process: it leaves interrupts to its parent, from its first moment on, and is started whole
    or not at all. The parent is interrupted afterwards: a mask is of one thread, and the system may choose another."""
    came: list[int] = []
    mine = current_thread() is main_thread()  # which alone has handlers
    handler = signal.signal(signal.SIGINT, lambda number, _: came.append(number)) if mine else None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if mine:
            signal.signal(signal.SIGINT, handler)
    if came:
        raise KeyboardInterrupt


def _ready(asked: bytes, life: Connection) -> None:
    """Make a worker process ready: it ends when its parent ends, or lets go of it, and leaves interrupts to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with, args=(life,), daemon=True).start()
    library()
    _asked.append(pickle.loads(asked))


def _end_with(life: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        life.recv_bytes()
    os._exit(1)


def _count(part: int) -> tuple[bytes, Summary]:
    study, wanted = _asked[0]
    return part_of(study, part, wanted)


def counted_by_ray(study: Study, parts: Sequence[int], wanted: Wanted, address: str | None) -> Counted:
    """Every part, on a Ray cluster: a running one, or one of this machine's cores that ends with the sweep."""
    from .ray import cluster_of

    ray: Any
    with cluster_of(address) as ray:
        task, held = ray.remote(max_retries=0, num_cpus=1)(part_of), ray.put(study)
        ahead = AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting, left, deaths = dict[Any, int](), list(reversed(parts)), Counter[int]()
        while left or waiting:
            while left and len(waiting) < ahead:
                part = left.pop()
                waiting[task.remote(held, part, wanted)] = part
            (done, *_), _ = ray.wait(list(waiting), num_returns=1)
            part = waiting.pop(done)
            try:
                content, summary = ray.get(done)
            except ray.exceptions.RayTaskError:
                raise
            except ray.exceptions.RayError:  # its worker or its machine died
                deaths[part] += 1
                if deaths[part] >= MOST_DEATHS:
                    raise InputError(_dying(part)) from None
                left.append(part)
                continue
            yield part, content, summary
