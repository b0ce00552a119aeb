"""What recurrent parts have in common: a projection in, a short convolution, a scan, a projection out.

Every recurrent part names its dimensions alike: `scan_in` what the projection gives, `conv` the channels of the
convolution, `inner` what goes into the projection out, `scan_heads` what context parallelism may deal out, `state` what
one sequence passes on to the tokens behind it. A layer has one such part at most.
"""

from collections.abc import Iterable
from dataclasses import replace

from ...engines.engine import Kernel
from ..moves import Move
from ..operations import Linear, Pointwise, Row
from .kernels import CONVOLUTION
from .part import GATHER, SCATTER, SUM, Dimension, Dimensions, whole

FP32 = 2  # values of a 16-bit type that one in fp32 takes
FLOAT = 4  # B, one value in fp32


def times(pieces: Iterable[Dimension], factor: float) -> tuple[Dimension, ...]:
    """Pieces so many times as wide."""
    return tuple(replace(piece, width=piece.width * factor) for piece in pieces)


def taps(count: int, biased: bool) -> Dimensions:
    """The taps of a depthwise convolution, and its weights a channel."""
    return {"taps": whole(count), "conv_weights": whole(count + biased)}


def tail(channels: tuple[Dimension, ...], count: int) -> tuple[Dimension, ...]:
    """The last columns that a convolution needs of the tokens before."""
    return times(channels, count - 1)


def project_in(shared: bool, biased: bool = False) -> tuple[Row, ...]:
    """All that the part reads of the stream, in one column-parallel projection."""
    return (
        Move("gather_scan", "tp", "T", "hidden", **GATHER),
        Linear("scan_in", "T", "hidden", "scan_in", waits="W" if shared else "G", biased=biased),
    )


def convolve(kernel: Kernel = CONVOLUTION, width: str = "conv") -> Pointwise:
    """A depthwise convolution along the sequence, and its activation; each rank has its own channels."""
    return Pointwise("conv", "T", width, kernel, weights="conv", per="conv_weights", work="taps")


def exchange() -> tuple[Row, ...]:
    """Context parallelism deals heads in and out (Ulysses, some engines always), or each rank gets all states."""
    return (
        Move("swap_scan", "cp", "T", "scan_swap", "all_to_all", times="deals_heads", times_back="deals_heads"),
        Move("pass_states", "cp", "sequences_all", "state", times="passes_states", times_back="passes_states"),
    )


def sum_statistic(name: str) -> Move:
    """A norm over values that tensor parallelism cuts: every rank needs the sum."""
    return Move(name, "tp", "T", "one", **SUM)


def project_out(waits: str = "T", biased: bool = False) -> tuple[Row, ...]:
    """The row-parallel projection back to the stream."""
    return (
        Linear("scan_out", "T", "inner", "hidden", waits=waits, biased=biased),
        Move("scatter_scan", "tp", "T", "hidden", **SCATTER),
    )
