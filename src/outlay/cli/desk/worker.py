"""One worker of the desk: a process that reads questions from standard input and answers on standard output.

A question is one line of JSON: command, words, config, file, other. What comes back are frames: a line with a kind
(progress, answer, errors, fault) and a length, and so many bytes of JSON. A worker that is stopped is killed.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

from ...errors import InputError
from .answers import answer
from .blame import blamed, errors_of
from .saying import Saying

SPACE = 3 * 2**30  # bytes of address space beside what is there without a question


def work() -> None:
    """Answer until standard input ends."""
    questions, frames = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed does not get between the frames
    sys.stdin = io.TextIOWrapper(io.BytesIO())
    with tempfile.TemporaryDirectory(prefix="outlay-desk-") as empty:
        os.chdir(empty)  # a name is never found to be a file by chance
        with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
            _warm()
            _limit()
            for line in questions:
                _answer(json.loads(line), frames)
        os.chdir("/")


def _limit() -> None:
    """Bound what one question may take of the machine's memory, where the system can."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (held + SPACE if hard < 0 else min(held + SPACE, hard), hard))


def _warm() -> None:
    """Load what most questions need, before the first one waits for it."""
    answer("count", {"words": {"model": "llama-3.1-8b", "on": "8xh100-sxm"}})


def _answer(question: dict[str, Any], frames: IO[bytes]) -> None:
    words = question.get("words") or {}
    try:
        saying = Saying(lambda record: _say(frames, "progress", record))
        _say(frames, "answer", blamed(answer(question["command"], question, saying), words))
    except InputError as error:
        _say(frames, "errors", errors_of(error, words))
    except MemoryError:
        _say(frames, "fault", {"what": "space"})
    except Exception as error:  # a fault of the program: its kind is said, and nothing of where it stands
        _say(frames, "fault", {"what": type(error).__name__})


def _say(frames: IO[bytes], kind: str, record: dict[str, Any]) -> None:
    body = json.dumps(record, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    content = body.encode("utf-8", "backslashreplace")
    frames.write(b"%s %d\n" % (kind.encode(), len(content)))
    frames.write(content)
    frames.flush()


if __name__ == "__main__":
    work()
