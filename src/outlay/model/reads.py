"""Which row of a layer reads the output of which: what the tape of a row is the input of."""

from collections.abc import Iterator, Sequence

from .operations import Attention, Linear, Pointwise, Row
from .scan import Scan

INPUT = -1  # the layer's own input, as a place among its rows
BRANCHES = ("none", "W")  # what a linear's input waits along where another row keeps the same input
STREAM = ("S", "G", "W")  # the same where a row reads the layer's own tokens, not those sent to its experts
MIXERS = ("rotate", "residual")  # rows that read all that was produced and not read yet; so do the cores


def sources(rows: Sequence[Row]) -> Iterator[frozenset[int]]:
    """The rows whose outputs each row reads: the row before it, but for rows that share an input, or read several.

    What rows do not say is taken as a chain: then more runs again than must, never less. Exchanges are left out.
    """
    found: list[frozenset[int]] = []
    open_outputs: set[int] = set()
    for place, row in enumerate(rows):
        shared = _same_input(row, rows[:place])
        if shared is not None:
            source = found[shared]
        elif place == 0:
            source = frozenset({INPUT})
        elif row.name.startswith(MIXERS) or isinstance(row, Attention | Scan):
            source = frozenset(open_outputs or {place - 1})
        else:
            source = frozenset({place - 1})
        open_outputs = (open_outputs - source) | {place}
        found.append(source)
        yield source


def _same_input(row: Row, before: Sequence[Row]) -> int | None:
    """An earlier row that reads the same tensor."""
    for place in range(len(before) - 1, -1, -1):
        other = before[place]
        if isinstance(row, Linear) and row.waits in BRANCHES:
            if isinstance(other, Linear) and other.ins == row.ins and other.waits in STREAM:
                return place
        elif isinstance(row, Pointwise) and row.shared_input:
            if isinstance(other, Pointwise) and other.width == row.width and not other.shared_input:
                return place
        else:
            return None
    return None


def is_silent(row: Row) -> bool:
    """Whether a row has no kernel of its own: what it keeps, the row before it keeps."""
    return (isinstance(row, Pointwise) and row.kernel.moves == 0) or (isinstance(row, Linear) and row.tokens == "none")


def only_added(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The matrix at the end of a layer whose output nothing reads but the sum of the stream: no backward pass needs it.

    None where a norm or a weight stands between them.
    """
    work = [row for row in rows if isinstance(row, Linear | Pointwise | Attention | Scan)]
    while work and (work[-1].name.startswith("residual") or is_silent(work[-1])):
        work.pop()
    return (work[-1],) if work and isinstance(work[-1], Linear) and work[-1].copies == "one" else ()
