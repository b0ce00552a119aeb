"""A line for whoever waits for a search: after two seconds, at most twice a second, with the best so far."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite

from ..search.progress import First
from ..show.text import duration, short
from ..validate.progress import AFTER, EVERY

LONG = 1_000_000_000  # combinations: from here on a search may take longer than one waits without a word


@dataclass
class Waiting:
    """Called after each block of a search; writes one line that replaces itself."""

    write: Callable[[str], object]  # such as sys.stderr.write
    clock: Callable[[], float] = time.monotonic
    began: float = field(init=False)
    last: float = field(init=False, default=float("-inf"))
    done: int = field(init=False, default=0)  # layouts of the searches before this one
    now: int = field(init=False, default=0)
    width: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.began = self.clock()

    def __call__(self, counted: int, legal: int, best: float, first: First = None, /) -> None:
        """One block more is counted. `legal` is 0 where how many will be depends on what is found."""
        if counted < self.now:  # another cluster
            self.done += self.now
        self.now = counted
        at = self.clock()
        spent = at - self.began
        if (counted < legal or not legal) and spent >= AFTER and at - self.last >= EVERY:
            self.last = at
            self._say(counted, legal, best, (self.done + counted) / spent)

    def _say(self, counted: int, legal: int, best: float, rate: float) -> None:
        found = f"best {duration(best)}" if isfinite(best) else "none fits yet"
        size = f"{short(counted)} of {short(legal)} layouts" if legal else f"{short(counted)} layouts"
        left = f"{(legal - counted) / rate:.0f} s left" if legal else "those that cannot be faster are passed over"
        text = f"{size}, {short(rate)} a second, {found}, {left}"
        self.write("\r" + text.ljust(self.width))
        self.width = len(text)

    def close(self) -> None:
        """Wipe the line, if there is one."""
        if self.width:
            self.write("\r" + " " * self.width + "\r")


def announcement(combinations: int) -> str:
    """What is said before a search that may take long; else an empty text."""
    if combinations < LONG:
        return ""
    return f"searching {short(combinations)} combinations; Ctrl-C stops, and prints the best so far\n"
