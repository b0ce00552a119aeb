"""Kernels of single parts, beside those of an engine's set: what each moves and keeps, and who says so.

What is moved is counted as one kernel would: each tensor is read once and written once; the backward pass reads the
gradient and what is kept, and writes a gradient for each input. What is kept is specified where `source` names the
code that saves it, and assumed where it is what the arithmetic needs. "autograd" is tools/autograd/derivatives.yaml
of PyTorch.
"""

from dataclasses import dataclass, replace
from typing import Literal

from ...engines.engine import Kernel


@dataclass(frozen=True)
class Sourced(Kernel):
    """A kernel with the kind and the source of what it keeps."""

    kind: Literal["specified", "assumed"] = "assumed"
    source: str = ""


def _said(source: str, moves: float, moves_back: float, **keeps: float) -> Sourced:
    return Sourced(moves, moves_back, kind="specified", source=source, **keeps)


def _assumed(source: str, moves: float, moves_back: float, **keeps: float) -> Sourced:
    return Sourced(moves, moves_back, kind="assumed", source=source, **keeps)


NOTHING = _assumed("added where another kernel writes: a bias, a scale a head", 0, 0)

# Activations, products and scales.
SILU = _said("autograd, silu and gelu: the input", 2, 3, keeps=1)
SIGMOID_AGAIN = _assumed("a sigmoid in place, computed again from its input", 1, 2, keeps=1)
PRODUCT = _said("autograd, mul: both inputs, of which one waits elsewhere", 3, 5, keeps=1)
BOTH = _said("autograd, mul: both inputs", 3, 5, keeps=2)
SCALE = _said("autograd, mul: the input of a learned number", 2, 3, keeps=1)
SCALES = _said("autograd, mul: the input of a learned vector, whose gradient is a sum of its own", 2, 4, keeps=1)
FIXED_SCALE = _assumed("scales of a router's choices: the scores wait elsewhere", 2, 3)
DIFFERENCE = _said("autograd, mul: two outputs a pair of heads, one of them times a learned number", 3, 5, keeps=2)
SUM_KEPT = _assumed("what comes out waits for the layers that read it", 3, 2, keeps=1)
DECAY = _assumed("exp of a product: what it reads", 2, 3, keeps=1)
LOOKUP = _said("autograd, embedding: its indices, which wait elsewhere", 2, 2)
POSITIONS = _said("autograd, add: nothing; a table's row is added in place", 2, 1)

# Attention.
SWAPPED = _assumed("the core keeps its output, and the projection the same after the exchange", 0, 0, keeps=1)
TURNED_BACK = _assumed("the core's output, turned: the projection behind it reads it", 2, 2, keeps=1)
INDEX = _assumed("queries, keys and weights of an indexer", 1, 1, keeps=1)
CHOICES = _assumed("the numbers of the keys that are selected, in int32", 2, 0, keeps_bytes=4)
CROSS_CORE = _assumed("queries in, outputs out: the keys are not this sequence's", 2, 4, keeps=1)
POOL = _said("autograd, softmax: its result, over the tokens of a window, and their weighted sum", 1, 2, keeps=1)

# Routers.
ROUTER = _assumed("softmax, top-k and bookkeeping; what waits is of the engine's kernel set", 3, 3)
SHARED_GATE = _said("autograd, mul: the shared expert's output, times a number a token", 3, 4, keeps=1)
CARRY = _assumed("what the router before it made, scaled and added", 3, 4, keeps=1)

# Recurrent parts.
CONVOLUTION = _said("Dao-AILab/causal-conv1d, causal_conv1d_interface.py: saves x", 2, 3, keeps=1)
REPEATED = _said("state-spaces/mamba, ops: saves x, and computes the convolution again", 2, 5, keeps=1)
IN_SCAN = _assumed("the gate, inside the scan's kernel: it reads and writes once more", 2, 3)
GATED_NORM = _assumed("beside the scan: what it reads waits there", 3, 6, keeps_group=4)
QUERY_KEY_NORMS = _assumed("the input and a statistic a head", 2, 3, keeps=1, keeps_group=4)
TIME_MIXES = _assumed("a token and the one before it, mixed in three ways", 4, 5, keeps=1)
CHANNEL_MIXES = _assumed("a token and the one before it, mixed in two ways", 3, 4, keeps=1)

# Several streams.
STREAMS_NORM = _assumed("the streams wait once, for all that read them", 1, 2, keeps=1, keeps_group=4)
MIXING = _assumed("weights of the mix, in fp32", 2, 3, keeps_bytes=4)
PREDICTED = _assumed("all streams, read for each of them", 2, 3, keeps=1)
EXPANDED = _assumed("all streams in and out, and the step's output, which waits", 2, 3)
COLLAPSED = _assumed("all streams in, one out", 1, 2)
CORRECTED = _assumed("all streams in and out, and the one that went through the layer, which waits", 2, 3)


def with_one(kernel: Kernel, one: float, back: bool = True, kept: bool = True) -> Kernel:
    """A kernel over all streams that moves one of them besides, forward and `back`, and keeps it where it is `kept`."""
    moves, moves_back = kernel.moves + one, kernel.moves_back + one * back
    return replace(kernel, moves=moves, moves_back=moves_back, keeps=kernel.keeps + one * kept)


def table_rows(rows: int) -> Kernel:
    """So many rows of a table are read for a value, and written back as gradients."""
    return _assumed("rows of two tables, a product and a weighted sum; the rows are read again", rows + 2, 2 * rows + 2)
