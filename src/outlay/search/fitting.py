"""How much a rank may hold so that a layout fits: the verdicts of a bill as bounds on its peak."""

from dataclasses import dataclass

from ..layout.case import Case
from ..memory.peak import peak_bytes


@dataclass(frozen=True)
class Limits:
    """Peaks up to which a layout surely fits, and may fit."""

    fits: float
    tight: float


def limits(case: Case) -> Limits:
    """The verdicts as bounds on the peak: the buffers' band grows with what is allocated, so each is one number."""
    accelerator, engine = case.cluster.accelerator, case.engine
    usable = accelerator.memory_bytes - accelerator.context_bytes - case.job.reserved_bytes
    surely = (usable - engine.workspace_high) / (1 + engine.slack_high)
    perhaps = (usable - engine.workspace_low) / (1 + engine.slack_low)
    return Limits(float(peak_bytes(surely, engine)), float(peak_bytes(perhaps, engine)))


def allocatable(case: Case) -> float:
    """What a rank may allocate so that it surely fits."""
    return (limits(case).fits - case.engine.workspace_bytes) / (1 + case.engine.slack_share)
