"""The progress of a search as a record, a few times a second: how far it is, and the best layout so far."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...search.plan import Ranked
    from ...search.progress import First

Record = dict[str, Any]
EVERY = 0.2  # seconds between two words of progress


class Saying:
    """Called after each block of a search, or of several for one answer; `say` gets what is worth a word."""

    def __init__(self, say: Callable[[Record], None]) -> None:
        self.say = say
        self.began = self.last = time.monotonic()
        self.now = self.done = 0
        self.best: Record | None = None

    def __call__(self, counted: int, legal: int, best: float, first: "First" = None, /) -> None:
        """One block more is counted. `legal` is 0 where how many will be depends on what is found."""
        if counted < self.now:  # another search of the same question
            self.done += self.now
        self.now, at = counted, time.monotonic()
        if at - self.last < EVERY and counted != legal:
            return
        self.last = at
        rate = (self.done + counted) / max(at - self.began, 1e-9)
        self._look(first)
        self.say({
            "done": counted,
            "of": legal or None,
            "share": min(1.0, counted / legal) if legal else None,
            "seconds_left": max(0, legal - counted) / rate if legal else None,
            "best": self.best,
        })  # fmt: skip

    def _look(self, first: "First") -> None:
        """Keep the newest that fits; where none does, the smallest. One that fitted an earlier search stays until then:
        a longer sequence or a larger model may have none."""
        ranked = first() if first else None
        made = so_far(ranked) if ranked else None
        if made and (made["verdict"] == "fits" or self.best is None or self.best["verdict"] != "fits"):
            self.best = made


def so_far(ranked: "Ranked") -> Record:
    """One layout as progress tells it: what it is, of which question, its peak and time as the search counts them."""
    from ...search.fitting import limits
    from ...show.layouts import layout_flags
    from ...show.record import plain

    case, at = ranked.case, limits(ranked.case)
    flags = layout_flags(ranked.layout, case.model, case.engine)
    verdict = "fits" if ranked.peak_bytes <= at.fits else "tight" if ranked.peak_bytes <= at.tight else "does_not_fit"
    return {
        "model": case.model.name,
        "cluster": case.cluster.name,
        "sequence_length": case.job.sequence_length,
        "layout": plain(ranked.layout),
        "flags": flags if flags.startswith("--") else "",
        "verdict": verdict,
        "seconds": ranked.seconds,
        "peak_bytes": ranked.peak_bytes,
    }
