"""Where answers go: text or one JSON object on standard output, faults on standard error or, with --json, as JSON."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TextIO

from ..errors import Fault
from ..show.text import LEAST_WIDTH, MOST_WIDTH, Style, safe
from .exits import INTERRUPTED, NO, YES
from .flags import Given
from .streams import complain, say

COLOURS = re.compile(r"(\x1b\[[\d;]{1,12}m)")


def style_of(stream: TextIO, plain: bool) -> Style:
    """Colour and bars for people at a terminal, and the same words without them for everything else."""
    live = stream.isatty() and not plain and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    known = stream.isatty() or os.environ.get("COLUMNS", "").isdigit()
    width = shutil.get_terminal_size((MOST_WIDTH, 24)).columns if known else MOST_WIDTH
    return Style(max(LEAST_WIDTH, min(MOST_WIDTH, width)), live, live)


@dataclass(frozen=True)
class Told:
    """An answer before it is printed: as a record, as lines, whether it says yes, and whether it was stopped early."""

    record: Callable[[], dict[str, Any]]
    lines: Callable[[Style], Iterable[str]]
    yes: bool = True
    stopped: bool = False

    @property
    def code(self) -> int:
        """What the exit says, printed or not."""
        return INTERRUPTED if self.stopped else YES if self.yes else NO

    def print(self, given: Given) -> int:
        """Print it as it was asked for; the exit code."""
        if given.on("as_json"):
            from ..show.record import dumps

            say(dumps(self.record()))
        else:
            style = style_of(sys.stdout, given.on("plain"))
            say("\n".join(shown(line, style.colour) for line in self.lines(style)))
        return self.code


def shown(line: str, colour: bool) -> str:
    """A line for the terminal: whatever a file or a bill put into it, nothing but our own colours moves the cursor."""
    return "".join(
        part if index % 2 else safe(part) for index, part in enumerate(COLOURS.split(line) if colour else [line])
    )


def tell_faults(faults: Iterable[Fault], as_json: bool, plain: bool = False) -> None:
    """Print everything that is wrong with a question."""
    if as_json:
        from ..show.record import dumps
        from ..show.record import plain as plainly

        say(dumps({"errors": [plainly(fault) for fault in faults]}))
        return
    from ..show.terminal import fault_lines

    style = style_of(sys.stderr, plain)
    complain("\n\n".join("\n".join(fault_lines(fault, style)) for fault in faults))
