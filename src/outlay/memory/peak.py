"""The peak of one rank, and of the worst."""

from dataclasses import dataclass

from ..engines.engine import Engine
from ..formula import maximum, total
from ..layer import StageCosts
from ..layout.case import Case
from ..quantities import Bytes
from .activations import activation_bytes, logits_bytes, recompute_bytes
from .states import gathered_bytes, gradient_bytes, optimizer_bytes, weight_bytes


@dataclass(frozen=True)
class Candidates:
    """The three stages of which one is the worst: the first, the heaviest between, and the last."""

    first: StageCosts
    middle: StageCosts
    last: StageCosts


def allocated_bytes(stage: StageCosts, case: Case) -> Bytes:
    """What one rank of a stage allocates at its peak: exact in its parts, their sum a bound (not all peak at once)."""
    return total(
        weights=weight_bytes(stage, case),
        gradients=gradient_bytes(stage, case),
        optimizer=optimizer_bytes(stage, case),
        gathered=gathered_bytes(stage, case),
        activations=activation_bytes(stage, case),
        recomputed=recompute_bytes(stage, case),
        logits=logits_bytes(stage, case),
    )


def buffer_bytes(allocated: Bytes, engine: Engine) -> Bytes:
    """Workspaces and communication buffers, and what the allocator reserves beyond what is allocated. Modelled."""
    return total(workspace=engine.workspace_bytes, slack=engine.slack_share * allocated)


def peak_of(stage: StageCosts, case: Case) -> Bytes:
    """Peak memory of one rank of a stage."""
    allocated: Bytes = allocated_bytes(stage, case)
    return total(allocated=allocated, buffers=buffer_bytes(allocated, case.engine))


def peak(stages: Candidates, case: Case) -> Bytes:
    """The worst rank: in the first stage, the heaviest between, or the last."""
    return maximum(
        first=peak_of(stages.first, case), middle=peak_of(stages.middle, case), last=peak_of(stages.last, case)
    )
