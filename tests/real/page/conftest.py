"""A server, a browser, and a page that fails its test where it logs an error or asks for anything outside."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from asking import Opening

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without a browser these tests are skipped, and say why."""
    why = None if CHROMIUM else "no chromium on this machine"
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        why = "playwright is not installed"
    for item in items:
        if why and "page" in item.path.parts:
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """A server on a free port."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-P", "-m", "outlay", "serve", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=dict(os.environ))
    at = f"http://127.0.0.1:{port}"
    try:
        _wait(process, f"{at}/static/icon.svg")
        yield at
    finally:
        process.terminate()
        process.communicate(timeout=20)


def _wait(process: "subprocess.Popen[bytes]", address: str) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if process.poll() is not None:
            pytest.fail(f"the server ended: {process.communicate()[1].decode()}")
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.1)
    pytest.fail("the server does not answer")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for all tests, without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as made:
        found = made.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


class Watched:
    """What a page logs, and what it asks for."""

    def __init__(self, own: str) -> None:
        self.own, self.expected = own, ""
        self.errors: list[str] = []
        self.outside: list[str] = []
        self.requests: list[str] = []

    def console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(f"{message.text} {message.location.get('url', '')}")

    def request(self, request: Any) -> None:
        self.requests.append(request.url)
        if not request.url.startswith((self.own, "blob:", "data:")):
            self.outside.append(request.url)

    def wrong(self) -> list[str]:
        """Errors that the test did not expect, and requests to anywhere else."""
        return [each for each in self.errors if not self.expected or self.expected not in each] + self.outside


@pytest.fixture
def visit(server: str, browser: Any) -> Iterator[Opening]:
    """Open an address. What the page logs as an error, or asks of anybody else, fails the test.

    An answer of status 422 is logged by the browser itself: `expected` names what may stand in the log.
    """
    made: list[tuple[Any, Watched]] = []

    def open_page(path: str = "/", expected: str = "", **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "base_url": server} | options)
        context.set_default_timeout(40_000)
        watched = Watched(server)
        watched.expected = expected
        page = context.new_page()
        page.on("console", watched.console)
        page.on("pageerror", lambda error: watched.errors.append(str(error)))
        page.on("request", watched.request)
        page.watched = watched
        made.append((context, watched))
        page.goto(path)
        return page

    yield open_page
    wrong = [each for _, watched in made for each in watched.wrong()]
    for context, _ in made:
        context.close()
    assert wrong == []
