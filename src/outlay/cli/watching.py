"""outlay watch: the log of a job that runs or ran, its pace, and the bill of its layout beside it."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import Fault, InputError, quoted
from ..formats.logs.known import Reading
from ..formats.logs.lines import CHUNK, STDIN, Splitter, chunks_of, unreadable
from ..formats.logs.questions import found_of, holds_arguments, with_found
from ..formats.logs.record import Log
from ..formats.setting import Found
from ..validate.watched import watched
from .exporting import asked_of
from .flags import Given
from .output import Told, shown, style_of
from .streams import say

if TYPE_CHECKING:
    from ..bill import Bill

ASKED = ("FMT006",)  # what the question beside a log lacks
POLL = 0.5  # seconds between two looks at a file that grows
EVERY = 10


def watch(given: Given) -> Told:
    """Read a log, and say how the job goes beside its bill. Exit 1: outside the band of the bill."""
    from ..show.watch import watch_lines
    from ..show.watch_record import watch_record

    path = given.text("log")
    if path is None:
        rule, fix = "watch LOG [MODEL]", "outlay watch train.log --on 64xh100-sxm"
        raise InputError(Fault("CLI004", "no log is given", rule, "nothing", fix))
    every = _every(given)
    reading = Reading()
    with suppress(KeyboardInterrupt):
        if given.on("follow") and path != STDIN:
            _follow(given, path, reading, every)
        else:
            _read(given, path, reading, every)
    log = reading.log()
    question = found_of(log)
    bill, needs = _bill(given, log, question)
    found = watched(with_found(log, question), bill)
    title = "standard input" if path == STDIN else Path(path).name
    yes = not found.outside
    return Told(lambda: watch_record(found, needs), lambda style: watch_lines(found, needs, title, style), yes)


def _every(given: Given) -> int:
    """How many steps a line of --follow stands for."""
    text = given.text("every")
    if text is None:
        return EVERY
    if text.isascii() and text.isdigit() and int(text[:9]) > 0:
        return int(text[:9])
    raise InputError(
        Fault("LOG003", "--every cannot be read", "a whole number of steps, 1 or more", quoted(text), "10")
    )


def _read(given: Given, path: str, reading: Reading, every: int) -> None:
    """A log to its end; with --follow, standard input with a line now and then."""
    splitter, said = Splitter(), Said(given, reading, every)
    for chunk in chunks_of(path):
        for line in splitter.take(chunk):
            reading.take(line)
        said.now()
    for line in splitter.rest():
        reading.take(line)


class Said:
    """What --follow prints while it reads: a line every so many steps."""

    def __init__(self, given: Given, reading: Reading, every: int) -> None:
        self._given, self._reading, self._every = given, reading, every
        self._last: int | None = None
        self._bill: Bill | None = None

    def now(self) -> None:
        """One line, where enough steps went by."""
        if not self._given.on("follow") or self._given.on("as_json"):
            return
        at = self._reading.at
        if at is None or (self._last is not None and 0 <= at - self._last < self._every):
            return
        from ..show.watch import pace_line

        log = self._reading.log()
        if self._last is None:  # what is wrong with the question is told now, not when the job ends
            self._bill, _ = _bill(self._given, log, found_of(log))
        self._last = at
        style = style_of(sys.stdout, self._given.on("plain"))
        say("\n".join(shown(line, style.colour) for line in pace_line(watched(log, self._bill), style)))


def _follow(given: Given, path: str, reading: Reading, every: int) -> None:
    """A file that grows, until the job's last step or an interrupt."""
    splitter, said = Splitter(), Said(given, reading, every)
    for chunk in _growing(path, reading):
        for line in splitter.take(chunk):
            reading.take(line)
        said.now()


def _growing(path: str, reading: Reading) -> Iterator[bytes]:
    """What a file holds, and what is added to it. One that is cut short is read again from its start."""
    place = 0
    while True:
        try:
            with open(path, "rb") as file:
                place = 0 if os.fstat(file.fileno()).st_size < place else place
                file.seek(place)
                while piece := file.read(CHUNK):
                    place += len(piece)
                    yield piece
        except (OSError, ValueError) as error:
            raise unreadable(path, getattr(error, "strerror", None) or str(error)) from None
        if reading.ended:
            return
        time.sleep(POLL)


def _bill(given: Given, log: Log, found: Found) -> "tuple[Bill | None, tuple[Fault, ...]]":
    """The bill of the log's own arguments, or of the flags; None where nothing says the model."""
    named = given.text("model") is not None or given.text("config") is not None
    if not named and not holds_arguments(log):
        return None, ()
    try:
        return asked_of(Given(given.values | {"file": given.text("log")}), found).bill(), ()
    except InputError as error:
        if any(fault.code not in ASKED for fault in error.faults):
            raise
        return None, error.faults
