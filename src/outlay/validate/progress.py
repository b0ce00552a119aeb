"""A line of progress for whoever waits: after two seconds, at most twice a second, with the time that is left."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

AFTER, EVERY = 2.0, 0.5  # s


@dataclass
class Progress:
    """Called after each row with the rows done and the rows in all; writes one line that replaces itself."""

    write: Callable[[str], object]  # such as sys.stderr.write
    clock: Callable[[], float] = time.monotonic
    words: str = "rows"
    began: float = field(init=False)
    last: float = field(init=False, default=float("-inf"))
    shown: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.began = self.clock()

    def __call__(self, done: int, total: int) -> None:
        """One row more is done; with none done, what is timed begins now."""
        now = self.clock()
        self.began = self.began if done else now
        spent = now - self.began
        if done < total and spent >= AFTER and now - self.last >= EVERY:
            self.last, self.shown = now, True
            left = spent / done * (total - done)
            self.write(f"\r{done:,} of {total:,} {self.words}, {left:.0f} s left ")

    def close(self) -> None:
        """Wipe the line, if there is one."""
        if self.shown:
            self.write("\r" + " " * 60 + "\r")
