"""The commands as tests on torch run them, where nothing reads a command line."""

from collections.abc import Callable
from typing import Any

from outlay.cli.commands import COMMANDS
from outlay.cli.flags import Given

Ask = Callable[..., tuple[int, dict[str, Any]]]  # of a config and flags: the exit code, and what --json prints


def run(name: str, given: Given) -> int:
    """Run a command and print its answer; the exit code."""
    return {each.name: each for each in COMMANDS}[name].run(given)
