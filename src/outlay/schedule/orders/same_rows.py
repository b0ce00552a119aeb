"""BPipe, PipeDream and PipeDream-2BW: the passes of 1F1B, with other rules for activations and for weights.

Sources: Kim et al. 2023 (BPipe); Narayanan et al. 2019 (PipeDream) and 2021 (PipeDream-2BW).

BPipe pairs rank r with rank P - 1 - r: of the P - r and r + 1 micro-batches that they hold, the fuller hands what is
above half to the other and takes it back in time. PipeDream and its 2BW are asynchronous: no step ends, so nothing
drains, and a micro-batch meets weights that are older than those it changes.
"""

from collections.abc import Callable, Iterator

from ...errors import Fault
from .facts import OrderFacts, Schedule, Shape, described, micro_batch_fault, no_faults
from .one_f_one_b import rank

ENDLESS = "asynchronous: no step ends, so filling and draining are paid once a run and not once a step; "


def balanced(pp: int, micro_batches: int) -> int:
    """Micro-batches that no rank of BPipe exceeds: half of what a pair holds. ceil((P + 1) / 2) where M >= P."""
    pairs = (min(micro_batches, pp - r) + min(micro_batches, r + 1) for r in range(pp))
    return max(-(-both // 2) for both in pairs)


def handed(pp: int, micro_batches: int, r: int) -> int:
    """Micro-batches that a rank of BPipe has away at the most; each went once over the link of its pair, and back."""
    return max(0, min(micro_batches, pp - r) - balanced(pp, micro_batches))


def bpipe_said(shape: Shape) -> str:
    """What the picture of 1F1B does not show of BPipe."""
    P, M, _, _ = shape
    most, away = balanced(P, M), handed(P, M, 0)
    return (
        f"in flight is counted before ranks r and {P} - 1 - r share: then no rank holds more than {most}; rank 0 has"
        f" {away} away at the most. Each that is handed over costs its activations twice on the link, not drawn here"
    )


def pipedream_said(shape: Shape) -> str:
    """What a picture of a run of so many micro-batches does not show of PipeDream."""
    P = shape.pp
    return f"{ENDLESS}rank r keeps {P} - r versions of its weights, up to {P - 1} updates old"


def two_said(shape: Shape) -> str:
    """The same of PipeDream-2BW."""
    return f"{ENDLESS}every rank keeps 2 versions of its weights, 1 update old, and updates once in M micro-batches"


def bpipe_faults(shape: Shape) -> Iterator[Fault]:
    """Ranks in pairs."""
    if shape.pp % 2:
        what = "bpipe cannot take this number of ranks"
        yield Fault("SCH005", what, "P is even: ranks are paired", described(shape), f"--pp {shape.pp + 1}")


def two_faults(shape: Shape) -> Iterator[Fault]:
    """Gradients of P micro-batches and more are added up before the weights change."""
    rule = "M >= P: weights change once in M micro-batches, and two versions are enough"
    yield from micro_batch_fault("pipedream_2bw", shape, rule, lambda M: shape.pp <= M)


def _rows_of_1f1b(facts: OrderFacts, faults: Callable[[Shape], Iterator[Fault]] = no_faults) -> Schedule:
    return Schedule(facts, lambda shape: [rank(r, shape) for r in range(shape.pp)], faults)


BPIPE = _rows_of_1f1b(
    OrderFacts("bpipe", "one", "loop", 1, "vpp 1, pp even; any number of micro-batches", bpipe_said), bpipe_faults
)
PIPEDREAM = _rows_of_1f1b(
    OrderFacts(
        "pipedream", "one", "loop", 1, "vpp 1; any number of micro-batches", pipedream_said,
        versions=lambda pp, r: pp - r, staleness=lambda pp, r: pp - 1 - r,
    )
)  # fmt: skip
PIPEDREAM_2BW = _rows_of_1f1b(
    OrderFacts(
        "pipedream_2bw", "one", "loop", 1, "vpp 1; pp micro-batches or more", two_said,
        versions=lambda pp, r: 2, staleness=lambda pp, r: 1,
    ),
    two_faults,
)  # fmt: skip
