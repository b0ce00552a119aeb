"""Worker processes: a question that takes too long is ended, too many are refused, and the next one is answered."""

import asyncio
import io
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from outlay.cli.desk import worker
from outlay.cli.serving import WORKER
from outlay.web import desks as module
from outlay.web.desks import BusyError, Desks, FailedError, Said

COUNT: dict[str, Any] = {"command": "count", "words": {"model": "llama-3.1-8b", "on": "8xh100-sxm"}}
LONG = {"command": "draw", "words": {"pp": "64", "micro-batches": "20000", "schedule": "zb_h2", "forward": "10ms",
                                     "backward": "20ms"}}  # fmt: skip


def with_desks(run: Callable[[Desks], Awaitable[Any]], workers: int = 1) -> Any:
    async def all_of_it() -> Any:
        desks = Desks((sys.executable, *WORKER), workers, 1)
        await desks.open()
        try:
            return await run(desks)
        finally:
            await desks.close()

    return asyncio.run(all_of_it())


def test_a_question_that_takes_too_long_is_ended_and_the_next_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(desks: Desks) -> tuple[str, Said]:
        await desks.ask(COUNT)
        monkeypatch.setattr(module, "USUAL_SECONDS", 0.05)
        with pytest.raises(FailedError) as raised:
            await desks.ask(LONG)
        monkeypatch.setattr(module, "USUAL_SECONDS", 60.0)
        return raised.value.fault.code, await desks.ask(COUNT)

    code, said = with_desks(run)
    assert code == "WEB004"
    assert said.kind == "answer" and json.loads(said.content)["schema"] == "outlay.bill.1"


def test_a_question_beyond_those_that_may_wait_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(desks: Desks) -> list[Any]:
        monkeypatch.setattr(module, "WAITING", 2)
        return await asyncio.gather(*(desks.ask(COUNT) for _ in range(5)), return_exceptions=True)

    found = with_desks(run)
    assert sum(isinstance(each, Said) for each in found) >= 2
    assert sum(isinstance(each, BusyError) for each in found) >= 1


PLAN = {"command": "plan", "words": {**COUNT["words"], "seq": "8192", "batch": "64", "space": "lean"}}


def test_a_search_that_nobody_waits_for_any_more_leaves_its_place() -> None:
    async def run(desks: Desks) -> Said:
        busy = asyncio.ensure_future(desks.ask(LONG))
        await asyncio.sleep(0.1)
        waiting = asyncio.ensure_future(desks.ask(PLAN))
        await asyncio.sleep(0.1)
        for task in (waiting, busy):
            task.cancel()
        await asyncio.gather(waiting, busy, return_exceptions=True)
        return await desks.ask(PLAN)

    assert with_desks(run).kind == "answer"


def test_searches_beyond_those_at_a_time_are_refused() -> None:
    async def run(desks: Desks) -> list[Any]:
        return await asyncio.gather(desks.ask(PLAN), desks.ask(PLAN), return_exceptions=True)

    assert [type(each) for each in with_desks(run)] == [Said, BusyError]


def test_a_worker_says_what_kind_of_fault_it_met_and_nothing_of_where(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("/home/me/secret")

    monkeypatch.setattr(worker, "answer", broken)
    frames = io.BytesIO()

    worker._answer({"command": "count"}, frames)

    assert frames.getvalue() == b'fault 19\n{"what":"KeyError"}'


def test_a_worker_without_memory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def large(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(worker, "answer", large)
    frames = io.BytesIO()

    worker._answer({"command": "count"}, frames)

    assert frames.getvalue() == b'fault 16\n{"what":"space"}'
    with pytest.raises(FailedError) as raised:
        module._checked(Said("fault", b'{"what":"space"}'))
    assert raised.value.fault.code == "WEB004"
