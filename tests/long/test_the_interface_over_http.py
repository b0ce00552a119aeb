"""The server at length: ten thousand cases made from its own description, thirty clients for a minute, memory flat."""

import asyncio
import statistics
import sys
import time
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode

from serving import WORDS, served, workers_of

CASES = 10_000
CLIENTS, SECONDS = 30, 60


def say(text: str) -> None:
    """A figure, for those who run this with -s."""
    sys.stdout.write(f"{text}\n")


def resident(pids: list[int]) -> int:
    """Bytes that these processes hold."""
    pages = (int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return sum(pages) * 4096


def test_no_case_of_the_own_description_meets_a_fault_of_the_program() -> None:
    """Every answer has a status and a shape that the description names, whatever the question."""
    statuses: Counter[int] = Counter()
    with served() as (client, _):
        described = client.get("/openapi.json").json()
        schema = schemathesis.openapi.from_dict(described)
        paths = [path for path, methods in described["paths"].items() if "post" in methods]  # the others have no body
        for path, mode in product(paths, GenerationMode):
            cases = schema[path]["POST"].as_strategy(generation_mode=mode)
            statuses += tried(
                str(client.base_url), cases, CASES // (2 * len(paths)) + 1, mode is GenerationMode.POSITIVE
            )
    say(f"{statuses.total():,} cases of {len(paths)} operations: {dict(statuses)}")
    assert statuses.total() >= CASES
    assert statuses[200] >= CASES / 20


def tried(address: str, cases: Any, number: int, laid: bool) -> Counter[int]:
    """The statuses of so many cases of one operation."""
    statuses: Counter[int] = Counter()

    @settings(max_examples=number, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(case=cases)
    def ask(case: Any) -> None:
        if laid:
            over_a_question(case)
        said = case.call(base_url=address)
        statuses[said.status_code] += 1
        assert said.status_code < 500, said.text
        assert said.status_code == 200 or said.json()["errors"]

    ask()
    return statuses


def over_a_question(case: Any) -> None:
    """Lay two of the words over a question that has an answer: of all words at random, one nearly always is a fault."""
    words = case.body.get("words", {}) if isinstance(case.body, dict) else {}
    if isinstance(words, dict) and case.path != "/api/bubble":
        case.body["words"] = WORDS | dict([*words.items()][:2])


def test_thirty_clients_are_answered_for_a_minute() -> None:
    with served() as (client, process):
        client.get("/")
        time.sleep(6)  # all workers are there
        pids = [process.pid, *workers_of(process)]
        asyncio.run(clients(str(client.base_url), 5))
        before = resident(pids)
        found = asyncio.run(clients(str(client.base_url), SECONDS))
        grown = resident(pids) - before
    waits = sorted(wait for wait, _ in found)
    statuses = {status for _, status in found}
    ninety_five = waits[int(0.95 * len(waits))]
    say(f"{len(waits):,} answers, median {statistics.median(waits) * 1e3:.0f} ms, 95 % {ninety_five * 1e3:.0f} ms, "
          f"memory {grown / 2**20:+.1f} MiB")  # fmt: skip
    assert statuses == {200}
    assert len(waits) == CLIENTS * SECONDS
    assert ninety_five <= 0.150
    assert grown <= 20 * 2**20


async def clients(address: str, seconds: int) -> list[tuple[float, int]]:
    """The waits and statuses of so many clients, each with a question a second."""
    limits = httpx.Limits(max_connections=CLIENTS, max_keepalive_connections=CLIENTS)
    async with httpx.AsyncClient(base_url=address, timeout=30, trust_env=False, limits=limits) as client:
        many = await asyncio.gather(*(one(client, number, seconds) for number in range(CLIENTS)))
    return [each for found in many for each in found]


async def one(client: httpx.AsyncClient, number: int, seconds: int) -> list[tuple[float, int]]:
    """One client: a question a second about a layout that fits, never the same twice in a row."""
    began, found = time.perf_counter() + number / CLIENTS, []
    for second in range(seconds):
        await asyncio.sleep(max(0.0, began + second - time.perf_counter()))
        words = WORDS | {"pp": str(2 ** (1 + second % 3)), "batch": str(512 + 64 * ((number + second) % 8))}
        at = time.perf_counter()
        said = await client.post("/api/count", json={"words": words})
        found.append((time.perf_counter() - at, said.status_code))
    return found


@pytest.mark.parametrize("number", range(3))
def test_a_first_page_comes_within_a_second(number: int) -> None:
    began = time.perf_counter()
    with served() as (client, _):
        assert client.get("/").status_code == 200
        spent = time.perf_counter() - began
    say(f"first page after {spent:.2f} s")
    assert spent <= 1.0
