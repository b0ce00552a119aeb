"""What launchers and loggers put before a line: the rank, the time."""

import re
from datetime import datetime, timezone

# Each with the launcher that writes it. The rank of `[default0]:` is that inside a node, and of srun that of a task.
RANKS = (
    re.compile(r"^\s*\[rank ?(\d{1,7})\]:?", re.IGNORECASE),  # torchrun --role rank
    re.compile(r"^\s*\[[A-Za-z_]{1,40}(\d{1,7})\]:"),  # torchrun --tee
    re.compile(r"^\[\d{1,7},(?:mpirank:)?(\d{1,7})[^\]]{0,40}\]<std(?:out|err)>"),  # mpirun, SageMaker
    re.compile(r"^\s*(\d{1,7}):\s"),  # srun --label
    re.compile(r"\[Rank (\d{1,7})\]"),  # Megatron-LM, DeepSpeed
)
WHEN = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?")
SHORT_YEAR = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d):(\d\d):(\d\d)")
PLACE = 160  # characters in which a prefix stands
COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][0-9A-B]|\[(?:\d{1,3};){0,4}\d{1,3}m")


def rank_of(text: str) -> int | None:
    """The rank before a line; None where none stands there."""
    head = text[:PLACE]
    found = next((match for pattern in RANKS if (match := pattern.search(head))), None)
    return int(found[1]) if found else None


def when_of(text: str) -> float | None:
    """The time in a line, in seconds."""
    head = text[:PLACE]
    match, short = WHEN.search(head), None if WHEN.search(head) else SHORT_YEAR.search(head)
    try:
        if match:
            year, month, day, hour, minute, second = (int(match[index]) for index in range(1, 7))
            part = float(f"0.{match[7]}") if match[7] else 0.0
        elif short:
            month, day, year, hour, minute, second = (int(short[index]) for index in range(1, 7))
            part = 0.0
        else:
            return None
        return datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc).timestamp() + part  # noqa: UP017
    except (ValueError, OverflowError):
        return None


def plain(text: str) -> str:
    """A line without colours, also those whose escape was lost on the way, and without zero bytes."""
    bare = COLOURS.sub("", text) if "[" in text else text
    return bare.replace("\0", "") if "\0" in bare else bare
