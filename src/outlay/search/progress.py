"""What a search says while it goes on: how far it is, and the best layout so far."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from .plan import Ranked

First: TypeAlias = "Callable[[], Ranked | None] | None"


class Progress(Protocol):
    """Called after each block of a search."""

    def __call__(self, counted: int, legal: int, best: float, first: First = None, /) -> None:
        """So many layouts are counted, of `legal` (0: some are passed over, so nobody knows yet); the best takes so
        many seconds, without end where none fits. `first` makes that layout, or the smallest where none fits: a call
        takes about a millisecond, so most blocks pass without one."""
