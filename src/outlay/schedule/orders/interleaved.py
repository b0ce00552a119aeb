"""Interleaved 1F1B: v chunks a rank, so that filling and draining take a v-th. Source: Narayanan et al. 2021.

Micro-batches go in groups of N: a group through chunk 0, then through chunk 1, and so on. Megatron-LM takes N = P
unless told otherwise. PyTorch makes floor(M / P) equal rounds: N = M / max(1, floor(M / P)); see `rounds`.
"""

from collections.abc import Iterator
from itertools import repeat

from ...errors import Fault, InputError
from ..passes import Pass, many_passes
from .facts import OrderFacts, Schedule, Shape, described, micro_batch_fault, nearest_number
from .row import alternate

ROUNDS = "PyTorch: max(1, floor(M / P)) rounds of equal size, so this number divides M"


def passes(r: int, shape: Shape, N: int) -> tuple[list[Pass], list[Pass]]:
    """All forward and all backward passes of a rank: group by group, chunk by chunk; backward from the last chunk."""
    P, M, v, _ = shape
    groups = [range(g, min(g + N, M)) for g in range(0, M, N)]
    chunks = [k for group in groups for k in range(v) for _ in group]
    batches = [m for group in groups for _ in range(v) for m in group]
    forwards = many_passes(repeat("F"), [k * P + r for k in chunks], batches)
    backwards = many_passes(repeat("B"), [(v - 1 - k) * P + r for k in chunks], batches)
    return forwards, backwards


def rank(r: int, shape: Shape) -> list[Pass]:
    """Warm-up of w = min((v - 1) N + 2 (P - 1 - r), M v) forward passes, then F and B in turn, then the rest."""
    P, M, v, group = shape
    N = group or P
    w = min((v - 1) * N + 2 * (P - 1 - r), M * v)
    forwards, backwards = passes(r, shape, N)
    # w F, (M v - w) [F B], w B
    return forwards[:w] + alternate(forwards[w:], backwards) + backwards[M * v - w :]


def rounds(pp: int, micro_batches: int) -> int:
    """Micro-batches a group by PyTorch's rule. Raises InputError (SCH004) where the rounds do not come out equal."""
    found = [*rounds_faults("interleaved", Shape(pp, micro_batches))]
    if found:
        raise InputError(*found)
    return _round_size(pp, micro_batches)


def _round_size(pp: int, micro_batches: int) -> int:
    return micro_batches // max(1, micro_batches // pp)


def rounds_faults(name: str, shape: Shape) -> Iterator[Fault]:
    """PyTorch's rule: equal rounds."""
    yield from micro_batch_fault(name, shape, ROUNDS, lambda M: M % max(1, M // shape.pp) == 0)


def group_works(P: int, M: int, N: int) -> bool:
    """One group of all micro-batches, or groups of P and more, of which the last is full or holds P at least.

    Megatron-LM refuses the rest: there the order has bubbles in its middle, or waits for itself.
    """
    return N == M or (P <= N <= M and not 0 < M % N < P)


def group_faults(name: str, shape: Shape) -> Iterator[Fault]:
    """A group that is too small or too large, or micro-batches that leave a short one."""
    P, M, _, group = shape
    N = group or P
    if group and N != M and not P <= N <= M:
        near = nearest_number(N, lambda n: group_works(P, M, n), max(M, P))
        rule = "groups hold pp to M micro-batches, or all"
        yield Fault("SCH006", f"{name} cannot take groups of {N}", rule, described(shape), f"group {near}")
    else:
        rule = f"groups of N = {N}: M >= N, and M mod N is 0 or at least pp"
        yield from micro_batch_fault(name, shape, rule, lambda m: group_works(P, m, N))


INTERLEAVED = Schedule(
    OrderFacts("interleaved", "several", "loop", 1, "vpp > 1, and a number of micro-batches that pp divides"),
    lambda shape: [rank(r, shape) for r in range(shape.pp)],
    lambda shape: group_faults("interleaved", shape),
    grouped=True,
)
