"""The commands as tests on torch run them, where nothing reads a command line."""

from outlay.cli.commands import COMMANDS
from outlay.cli.flags import Given


def run(name: str, given: Given) -> int:
    """Run a command and print its answer; the exit code."""
    return {each.name: each for each in COMMANDS}[name].run(given)
