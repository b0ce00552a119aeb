"""Photographs of the page, `page-*.png`, as docs/serve.md shows them: `python docs/pictures/photograph.py`.

It needs the extra `web`, playwright and a chromium.
"""

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
QUESTION = "model=llama-3.1-70b&on=64xh100-sxm&tp=8&pp=4&seq=8192&batch=512"
JOB = "model=llama-3.1-70b&on=64xh100-sxm&seq=8192&batch=512"
SCRIPT = (ROOT / "tests" / "check_cases" / "common_errors.sh").read_text()
WIDE, PHONE = {"width": 1180, "height": 860}, {"width": 390, "height": 844}


def drawn(page: Any) -> None:
    """Wait until everything of a bill stands there."""
    page.wait_for_selector("#suggestions button")
    page.wait_for_selector("#memory .m-logits")
    page.wait_for_selector("#timeline svg[data-drawn-ms]")


def compared(page: Any) -> None:
    """Two layouts, one beside the other."""
    drawn(page)
    page.fill("#f-tp", "4")
    page.fill("#f-pp", "8")
    page.wait_for_function("() => document.querySelector('#tried-count').textContent === '(2)'")
    page.click("nav [data-tab=compare]")
    page.wait_for_selector(".pair-diagram svg[data-drawn-ms] >> nth=1")


def planned(page: Any) -> None:
    """A search that has ended."""
    page.wait_for_function("() => document.querySelector('#plan .status').textContent.startsWith('Searched')")
    page.wait_for_timeout(1000)


def checked(page: Any) -> None:
    """A script with what is wrong in it."""
    page.fill("#check-text", SCRIPT)
    page.click("#check form button.main")
    page.wait_for_selector(".finding")
    page.wait_for_timeout(500)


def explained(page: Any) -> None:
    """A figure and where it comes from."""
    drawn(page)
    page.click('#memory .parts button[data-why="memory.activations"]')
    page.wait_for_selector("#explained .derivation")


def drilled(page: Any) -> None:
    """A staircase with a slip in it, and a boundary case."""
    page.fill("#answer-0", "1234...\n.1234..\n.1234..\n...1234")
    page.fill("#answer-1", "3/4")
    page.click("#answers button")
    page.wait_for_selector("#answers svg >> nth=2")
    page.evaluate("() => scrollTo(0, 0)")


Shot = tuple[str, str, dict[str, int], str, Callable[[Any], None], bool]
SHOTS: tuple[Shot, ...] = (
    ("bill", f"/bill?{QUESTION}", {"width": 1180, "height": 1000}, "light", drawn, False),
    ("bill-dark", f"/bill?{QUESTION}", WIDE, "dark", drawn, False),
    ("explain", f"/bill?{QUESTION}", {"width": 1180, "height": 720}, "light", explained, False),
    ("plan", f"/plan?{JOB}", {"width": 1180, "height": 1250}, "light", planned, False),
    ("compare", f"/bill?{QUESTION}", {"width": 1180, "height": 1960}, "light", compared, False),
    ("check", f"/check?{QUESTION}", {"width": 1180, "height": 1250}, "light", checked, False),
    ("drill", "/drill?topic=staircase&level=3&seed=7", {"width": 1180, "height": 1180}, "light", drilled, False),
    ("phone", f"/bill?{QUESTION}", PHONE, "light", drawn, False),
)


def served() -> tuple[str, "subprocess.Popen[bytes]"]:
    """A server on a free port."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-P", "-m", "outlay", "serve", "--port", str(port)])
    at = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{at}/static/icon.svg", timeout=5).close()
            break
        except OSError:
            time.sleep(0.1)
    return at, process


def main() -> None:
    """All photographs."""
    at, process = served()
    try:
        with sync_playwright() as made:
            browser = made.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            for name, path, size, scheme, ready, whole in SHOTS:
                page = browser.new_page(base_url=at, viewport=size, color_scheme=scheme, has_touch=size is PHONE)
                page.set_default_timeout(60_000)
                page.goto(path)
                ready(page)
                page.screenshot(path=HERE / f"page-{name}.png", full_page=whole)
                page.close()
            browser.close()
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
