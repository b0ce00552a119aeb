"""Worker processes that answer questions, one at a time each. What takes too long, or is not waited for, is killed."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..errors import Fault

SEARCHES = 2  # searches at a time
WORKERS = SEARCHES + max(2, min(8, os.cpu_count() or 2))  # so that short questions never wait for a search
PAUSE = 1.0  # seconds before each further worker is started: the first page goes first
WAITING = 100  # questions that may wait for a worker
PATIENCE = 20.0  # seconds that each may wait
SECONDS = {"plan": 300.0}  # the longest that one question may take
USUAL_SECONDS = 20.0
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # workers are many, and nothing here needs more


class Said(NamedTuple):
    """One word of a worker: progress, answer, errors or fault; and its JSON."""

    kind: str
    content: bytes


class BusyError(Exception):
    """Too many questions wait already."""


class FailedError(Exception):
    """A question without an answer: what stands against it."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.what)
        self.fault = fault


@dataclass(eq=False)
class Worker:
    """One process, and whether it still answers."""

    process: asyncio.subprocess.Process

    async def ask(self, question: Mapping[str, Any]) -> AsyncGenerator[Said, None]:
        """What it says to a question: maybe progress, then one last word."""
        pipe_in, out = self.process.stdin, self.process.stdout
        assert pipe_in is not None and out is not None
        pipe_in.write(json.dumps(question).encode() + b"\n")
        await pipe_in.drain()
        while True:
            head = (await out.readline()).split()
            if len(head) != 2:
                raise ConnectionResetError
            said = Said(head[0].decode(), await out.readexactly(int(head[1])))
            yield said
            if said.kind != "progress":
                return

    def kill(self) -> None:
        """End the process at once, whatever it is at."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    async def ended(self) -> None:
        """Wait until a process that was killed is gone, its pipes closed."""
        self.kill()
        if self.process.stdin:
            self.process.stdin.close()
        await self.process.wait()
        transport = getattr(self.process, "_transport", None)
        if transport is not None:
            transport.close()


@dataclass
class Desks:
    """All workers. `command` starts one."""

    command: Sequence[str]
    workers: int = WORKERS
    searches: int = SEARCHES
    idle: "asyncio.LifoQueue[Worker]" = field(init=False)
    room: asyncio.Semaphore = field(init=False)
    all: set[Worker] = field(default_factory=set)
    tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    waiting: int = 0

    async def open(self) -> None:
        """Start the first of them, and the others soon; nothing where they are started."""
        if self.all:
            return
        self.idle, self.room = asyncio.LifoQueue(), asyncio.Semaphore(self.searches)
        await self._start()
        self._soon(self._start_others())

    async def _start_others(self) -> None:
        for _ in range(self.workers - 1):
            await asyncio.sleep(PAUSE)
            await self._start()

    def _soon(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def close(self) -> None:
        """End them."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await asyncio.gather(*(worker.ended() for worker in self.all))
        self.all.clear()

    async def _start(self) -> None:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self.command, stdin=pipe, stdout=pipe, limit=2**20, env=os.environ | ONE_THREAD
        )
        worker = Worker(process)
        self.all.add(worker)
        self.idle.put_nowait(worker)

    async def _replace(self, worker: Worker) -> None:
        """A worker whose question was given up is killed, and another one takes its place."""
        self.all.discard(worker)
        await worker.ended()
        await self._start()

    def _later(self, worker: Worker) -> None:
        worker.kill()
        self._soon(self._replace(worker))

    async def ask(self, question: Mapping[str, Any]) -> Said:
        """The last word to a question: its answer, or errors. Raises FailedError, BusyError."""
        async with self.asking(question) as words:
            async for said in words:
                if said.kind != "progress":
                    return said
        raise FailedError(unanswered("no answer"))

    @asynccontextmanager
    async def asking(self, question: Mapping[str, Any]) -> AsyncIterator[AsyncIterator[Said]]:
        """The words to a question as they come. Where the block is left before the last one, its worker is killed."""
        searches = question["command"] == "plan"
        if self.waiting >= WAITING or (searches and self.room.locked()):
            raise BusyError
        async with self.room if searches else nullcontext():
            worker = await self._free()
            async with self._asked(worker, question) as words:
                yield words

    async def _free(self) -> Worker:
        """The next worker that is free and lives."""
        self.waiting += 1
        try:
            async with asyncio.timeout(PATIENCE):
                while (worker := await self.idle.get()).process.returncode is not None:
                    self._later(worker)
                return worker
        except TimeoutError:
            raise BusyError from None
        finally:
            self.waiting -= 1

    @asynccontextmanager
    async def _asked(self, worker: Worker, question: Mapping[str, Any]) -> AsyncIterator[AsyncIterator[Said]]:
        """The words of one worker, which is free again behind the last of them."""
        done, limit = False, SECONDS.get(str(question["command"]), USUAL_SECONDS)

        async def words() -> AsyncGenerator[Said, None]:
            nonlocal done
            async with aclosing(worker.ask(question)) as all_said:
                async for said in all_said:
                    done = said.kind != "progress"
                    yield _checked(said)

        try:
            async with asyncio.timeout(limit):
                async with aclosing(words()) as said:
                    yield said
        except TimeoutError:
            raise FailedError(too_long(limit)) from None
        except (OSError, asyncio.IncompleteReadError):  # the worker ended: killed for its memory, say
            raise FailedError(unanswered("its process ended")) from None
        finally:
            if done:
                self.idle.put_nowait(worker)
            else:
                self._later(worker)


def _checked(said: Said) -> Said:
    if said.kind == "fault":
        what = json.loads(said.content)["what"]
        raise FailedError(too_large() if what == "space" else unanswered(what))
    return said


def too_long(limit: float) -> Fault:
    """The fault of a question that was stopped."""
    rule = f"over HTTP a question takes {limit:g} s at most"
    return Fault("WEB004", "the answer takes too long", rule, f"more than {limit:g} s", "a smaller one, or the command")


def too_large() -> Fault:
    """The fault of a question that takes more memory than one may."""
    rule = "over HTTP a question has 3 GiB of memory"
    return Fault("WEB004", "the answer takes too much memory", rule, "more than that", "a smaller one, or the command")


def unanswered(why: str) -> Fault:
    """The fault of a question that met a fault of the program."""
    rule = "every question gets an answer or a fault of its own"
    return Fault(
        "WEB005", "outlay met a fault of its own, which is not yours", rule, why, "report it with the question"
    )
