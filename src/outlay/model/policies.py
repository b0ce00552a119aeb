"""Selective recompute by operation: outputs of matrices, of attention cores and of exchanges between experts are saved.

All else runs again, grouped multiplies too. Source: torchtitan 0.3, distributed/activation_checkpoint.py, SelectiveAC:
a list of operations to save, of whose matrix multiplies every second one runs again, and the router's always.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..engines.engine import KernelSet
from ..quantities import Bytes
from .moves import Move
from .operations import Attention, Linear, Pointwise, Row, Sizes
from .reads import INPUT, sources

POLICIES = {"all_but_matrices": 1, "all_but_other_matrices": 2}  # the first matrix of each so many is saved
NEVER = ("router",)  # matrices that run again whatever their place, and are not counted
ARRIVED = (("dispatch", "R", "arrived"), ("combine", "D", "arrived"))  # what comes from other ranks, and comes back
PIECES = {"qkv": ("q", "k", "v")}  # matrices that torch multiplies one by one
PAIRS = {"ffn_in": ("ffn", "ffn"), "shared_in": ("shared", "shared")}  # the same where there is a gate


@dataclass(frozen=True)
class Saved:
    """An output that is saved."""

    name: str
    tokens: str
    outs: str

    def bytes(self, here: Sizes) -> Bytes:
        """Its values."""
        return here["value"] * here[self.tokens] * here[self.outs]


@dataclass(frozen=True)
class Policy:
    """What a policy does in one kind of layer: rows that run again, what they free, and the outputs that are saved."""

    work: tuple[Row, ...]
    inside: tuple[Row, ...]
    reads: tuple[Row, ...]
    moves: tuple[Move, ...]
    saved: tuple[Saved, ...]


def matrices(rows: Sequence[Row], kernels: KernelSet) -> Iterator[Linear]:
    """The matrices of a layer, one by one."""
    for place, row in enumerate(rows):
        if isinstance(row, Linear) and row.tokens != "none":
            behind = rows[place + 1] if place + 1 < len(rows) else None
            gated = isinstance(behind, Pointwise) and behind.kernel == kernels.gated_activation
            pieces = PIECES.get(row.outs) or (PAIRS.get(row.outs) if gated else None) or (row.outs,)
            yield from (replace(row, name=f"{row.name} {at}", outs=outs) for at, outs in enumerate(pieces))


def policy(every: int, rows: Sequence[Row], kernels: KernelSet) -> Policy:
    """What the policy that saves one of so many matrices does in a layer."""
    work = [row for row in rows if not isinstance(row, Move)]
    single = [row for row in work if isinstance(row, Linear) and row.copies == "one" and row.name not in NEVER]
    found = list(matrices([row for row in work if row in single or not isinstance(row, Linear)], kernels))
    cores = [row for row in work if isinstance(row, Attention)]
    others = [row for row in work if row not in single and not isinstance(row, Attention)]
    exchanged = {row.name for row in rows if isinstance(row, Move) and row.axis == "ep"}
    again = [*(row for at, row in enumerate(found) if at % every), *others]
    saved = [Saved(row.name, row.tokens, row.outs) for row in found[::every]]
    read = zip(work, sources(work), strict=True)
    return Policy(
        work=tuple(again),
        inside=tuple(row for row in work if not isinstance(row, Attention)),
        reads=tuple(row for row, source in read if INPUT not in source),
        moves=tuple(row for row in rows if isinstance(row, Move) and row.name.startswith("gather_")),
        saved=(
            *saved,
            *(Saved(row.name, "T", "o") for row in cores),
            *(Saved(*arrived) for arrived in ARRIVED if arrived[0] in exchanged),
        ),
    )
