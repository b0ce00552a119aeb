"""Measured peaks of a log beside the bill's figures of the same kind, and of the same stage where the rank is known."""

from dataclasses import dataclass

from ..bill import Bill
from ..formats.logs.record import Held, Log
from .predict import memory_at

LEVELS = {"allocated": "allocated", "active": "allocated", "reserved": "reserved", "device": "nvidia-smi"}
STATE = ("weights", "gradients", "optimizer", "buffers")


@dataclass(frozen=True)
class MemoryBeside:
    """A measured peak beside the bill's figure of the same kind."""

    held: Held
    predicted: float
    band: tuple[float, float]
    inside: bool
    largest: tuple[tuple[str, float], ...]  # items of the peak beside the state, the largest first
    grown: float  # since the first figure of the log
    optimizer_bytes: float


def _less_than_worst(held: Held, bill: Bill) -> float:
    """What the stage of the rank that was read holds less than the worst one, which the bill's figures are of."""
    layout, memory = bill.layout, bill.memory
    stage = (held.rank or 0) // int(layout.tp * layout.cp * layout.dp)
    if held.rank is None or stage >= len(memory.ranks):
        return 0.0
    slack = bill.engine.slack_share if held.kind == "reserved" else 0.0
    return (memory.allocated_bytes - memory.ranks[stage].allocated_bytes) * (1 + slack)


def memories_of(log: Log, bill: Bill) -> tuple[MemoryBeside, ...]:
    """Each measured kind that a bill has too."""
    found = []
    for held in log.memory:
        if held.kind not in LEVELS or bill.violations:
            continue
        predicted, (low, high) = memory_at(LEVELS[held.kind], bill)
        less = _less_than_worst(held, bill)
        predicted, low, high = predicted - less, low - less, high - less
        rest = sorted(
            ((one.name, one.value) for one in bill.memory.items if one.name not in STATE), key=lambda one: -one[1]
        )
        states = next((one.value for one in bill.memory.items if one.name == "optimizer"), 0.0)
        grown, inside = held.bytes - held.first_bytes, low <= held.bytes <= high
        found.append(MemoryBeside(held, predicted, (low, high), inside, tuple(rest[:2]), grown, states))
    return tuple(found)
