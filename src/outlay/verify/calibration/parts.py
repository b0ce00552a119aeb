"""The memory-bound parts of a model as PyTorch runs them without a compiler: what each moves by count, to be timed."""

from dataclasses import dataclass

from ...engines.engine import Kernel, KernelSet
from ...engines.tables import kernel_set
from ...model.operations import Pointwise
from .tasks import BYTES, Task

KERNELS = "pytorch_eager"  # the kernel set that is run
ENGINE = "fsdp2-uncompiled"  # the engine that has it
NORM, ROTATE, GATE, RESIDUAL, LOSS = NAMES = ("rms_norm", "rotate", "gated_activation", "residual", "loss")
BACK = "_back"


@dataclass(frozen=True)
class Sizes:
    """A model's sizes on a rank, for the mix of its parts."""

    tokens: int
    hidden: int
    width: int  # of the feed-forward part
    vocab: int
    query: int
    keys: int
    head: int
    layers: int


PARTS = {
    False: Sizes(1024, 1024, 2816, 8192, 1024, 512, 64, 16),
    True: Sizes(4096, 4096, 14336, 32768, 4096, 1024, 128, 32),
}
"""Of the standard set, by whether it is a GPU's."""


def kernel_of(name: str, kernels: KernelSet) -> Kernel:
    """One kernel of a set."""
    found: Kernel = getattr(kernels, name)
    return found


def part_tasks(of: Sizes, precision: str) -> list[Task]:
    """Every part of a model of equal layers, as often as it has it."""
    rotated = of.query + of.keys
    each = (
        (NORM, (of.tokens, of.hidden, 0, 0), 2 * of.layers + 1),
        (ROTATE, (of.tokens, rotated + of.keys, rotated, of.head), of.layers),
        (GATE, (of.tokens, 2 * of.width, 0, 0), of.layers),
        (RESIDUAL, (of.tokens, of.hidden, 0, 0), 2 * of.layers),
        (LOSS, (of.tokens, of.vocab, 0, 0), 1),
    )
    return [task for name, sizes, times in each for task in both_passes(name, sizes, precision, times)]


def both_passes(name: str, sizes: tuple[int, ...], precision: str, times: float) -> list[Task]:
    """A part forward and backward. Its work is the bytes that are counted for it."""
    kernel = kernel_of(name, kernel_set(KERNELS))
    values = sizes[0] * sizes[1] * BYTES[precision]
    ways = ((name, kernel.moves), (name + BACK, kernel.moves_back))
    return [Task("elementwise", what, sizes, precision, float(moves * values), weight=times) for what, moves in ways]


def part_of(row: Pointwise) -> str:
    """Which part an operation is; an empty text where it is another one."""
    kernels = kernel_set(KERNELS)
    return next((name for name in NAMES if kernel_of(name, kernels) == row.kernel), "")
