"""Lines that any framework may print beside its steps: evaluation, checkpoints, traces, settings, nvidia-smi."""

import re
from collections.abc import Iterator

from .numbers import MIB
from .record import Event, Fact, Line, Mark, Memory

NAME, TITLE, LOOKS_FOR, WARM = "beside", "", "", 0
SIGNS = ("heckpoint", "alidat", "valuat", "rofil", "race", "NCCL_P2P", "utOfMemory", "out of memory")
SMI = re.compile(r"\|\s*(?P<held>\d{1,7})MiB / {1,4}(?P<all>[1-9]\d{0,6})MiB\s*\|")  # a card's row of its table
MARKS = {
    "evaluation": re.compile(r"(?i)\bvalidat(?:e|ion)\b.{0,40}\b(?:loss|step)\b|Running Evaluation|evaluating on"),
    "checkpoint": re.compile(
        r"(?i)sav(?:ed|ing)\b(?!.{0,40}(?:disabled|false)).{0,60}\bcheckpoint|checkpoint\b.{0,60}\bsaved\b"
    ),
    "profiler": re.compile(r"(?i)(?:dump|sav|export|writ)\w{0,4}\b.{0,40}\b(?:profil\w*|traces?)\b"),
    "out of memory": re.compile(r"OutOfMemoryError|CUDA out of memory"),
    "NCCL_P2P_DISABLE=1": re.compile(r"NCCL_P2P_DISABLE\W{1,4}1\b"),
}


class Reader:
    """Reads the lines of one log."""

    def take(self, line: Line) -> Iterator[Event]:
        """What a line says."""
        text = line.text
        if "MiB /" in text and (match := SMI.search(text)):
            yield Memory("device", float(match["held"]) * MIB, line.rank)
            yield Fact("capacity_bytes", float(match["all"]) * MIB)
            return
        if any(sign in text for sign in SIGNS):
            for name, pattern in MARKS.items():
                if pattern.search(text):
                    yield Mark(name)
                    return
