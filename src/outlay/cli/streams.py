"""Standard output and standard error: what is written to them, and what is done where they take nothing."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import TextIO


class UnsaidError(Exception):
    """Standard output does not take the answer: a full disk, say. That its reader left is a BrokenPipeError."""


def open_streams() -> None:
    """Make both ready: where one is closed, what is written to it goes nowhere."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8 still gets its answer


def let_go(*streams: TextIO) -> None:
    """Drop what a stream did not take: Python writes it once more when it ends, and would complain."""
    for stream in streams:
        with contextlib.suppress(Exception):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Around what writes an answer: raises BrokenPipeError where its reader left, UnsaidError where none is taken."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        let_go(sys.stdout)
        raise UnsaidError(error.strerror) from None


def say(text: str) -> None:
    """Print an answer."""
    with answering():
        print(text)


def complain(text: str) -> None:
    """Print to standard error. Where that takes nothing, the exit code alone tells."""
    try:
        print(text, file=sys.stderr, flush=True)
    except BrokenPipeError:
        raise
    except OSError:
        let_go(sys.stderr)
