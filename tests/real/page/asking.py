"""Questions of the tests of the page: as an address, and as the command line answers them."""

import contextlib
import io
import json
from collections.abc import Callable
from functools import cache
from typing import Any

Opening = Callable[..., Any]
WORDS = {"model": "llama-3.1-70b", "on": "64xh100-sxm", "tp": "8", "pp": "4", "seq": "8192", "batch": "512"}


def run(*arguments: str) -> str:
    """What the command line prints."""
    from outlay.cli.main import main

    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(out):
        main(arguments)
    out.seek(0)
    return out.read()


@cache
def answered(*arguments: str) -> Any:
    """What the command line prints with --json."""
    return json.loads(run(*arguments, "--json"))


@cache
def printed(*arguments: str) -> str:
    """What the command line prints for people, in one line a keyword."""
    text = run(*arguments, "--plain").replace("\n          ", " ")
    return "\n".join(" ".join(part.split()) for part in text.splitlines())


def flags(words: dict[str, str]) -> list[str]:
    """Words as arguments: the model, and each flag."""
    rest = ((f"--{name}", value) for name, value in words.items() if name != "model")
    return [words["model"], *(each for pair in rest for each in pair if each != "true")]


def address(words: dict[str, str], tab: str = "bill") -> str:
    """The address of a question."""
    return f"/{tab}?" + "&".join(f"{name}={value}" for name, value in words.items())
