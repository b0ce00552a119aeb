"""Who counts the parts of a sweep: this process, processes beside it, or a Ray cluster. All give the same bytes."""

import contextlib
import os
import pickle
import signal
import traceback
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import forkserver, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
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
    """Every part, in processes of this machine. One that dies is replaced, and its parts are counted again.

    Each worker has a pipe of its own. One queue for all would end with the first worker that dies while it writes: the
    others hold it open, and its reader waits for the rest of a message that nobody will send."""
    prepare_workers(workers)
    asked, left = pickle.dumps((study, wanted)), list(reversed(parts))
    crew, deaths = list[Worker](), 0
    try:
        while left or any(worker.parts for worker in crew):
            while left and len(crew) < workers:
                with _uninterrupted():
                    crew.append(_started(asked))
                crew[-1].take(left.pop())
            for worker in crew:
                while left and len(worker.parts) < AHEAD:
                    worker.take(left.pop())
            ready = wait([worker.pipe for worker in crew])
            for worker in [each for each in crew if each.pipe in ready]:
                try:
                    answer = worker.pipe.recv()
                except (EOFError, OSError):
                    crew.remove(worker)
                    lost = worker.ended()
                    left.extend(reversed(lost))
                    deaths += bool(lost)
                    if deaths >= MOST_DEATHS:
                        raise InputError(_dying(left[-1])) from None
                    continue
                deaths = 0
                if isinstance(answer, Exception):
                    raise answer
                yield worker.parts.popleft(), *answer
    finally:
        for worker in crew:
            worker.ended()


def _dying(part: int) -> Fault:
    rule = "a worker that dies is replaced, and its part is counted again"
    got = f"{MOST_DEATHS} deaths one after another, first at part {part:,}"
    return Fault(
        "SWP012", "workers die again and again", rule, got, "fewer --workers, if memory is short; else --workers 1"
    )


@dataclass(frozen=True)
class Worker:
    """A process that counts the parts it is handed, in their order; the pipe to it; the parts it has not answered."""

    process: BaseProcess
    pipe: Connection
    parts: deque[int]

    def take(self, part: int) -> None:
        """Hand it a part. A worker that has died is found out when its pipe is read."""
        self.parts.append(part)
        with contextlib.suppress(OSError):
            self.pipe.send(part)

    def ended(self) -> deque[int]:
        """End the process, whatever it does: the parts that are left to others."""
        self.process.kill()
        self.process.join()
        self.pipe.close()
        return self.parts


def _started(asked: bytes) -> Worker:
    context = get_context("forkserver")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(asked, theirs), daemon=True)
    process.start()
    theirs.close()  # so that the pipe ends with the worker
    return Worker(process, ours, deque())


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


def _work(asked: bytes, pipe: Connection) -> None:
    """The whole life of a worker: it answers part after part, ends with its parent, and leaves interrupts to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    library()
    study, wanted = pickle.loads(asked)
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(_answered(study, pipe.recv(), wanted))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _answered(study: Study, part: int, wanted: Wanted) -> tuple[bytes, Summary] | Exception:
    try:
        return part_of(study, part, wanted)
    except Exception as error:  # raised where the sweep is: a worker that fails is none that dies
        error.add_note(traceback.format_exc())
        return error


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
