"""The largest moment of a step: where the backward pass begins, at the head or in the first layer that it reaches.

All tapes in flight stand then, and nothing has been freed yet. Not all moments peak at once, so the largest counts.
"""

from ..formula import each, maximum, total, where
from ..layout.case import Case
from ..quantities import Bytes, Count
from ..stage import StageCosts
from .activations import recompute_bytes
from .blocks import (
    behind_bytes,
    blocks_bytes,
    growing,
    head_scatter_bytes,
    head_weight_bytes,
    scattering,
    whole_gradient_bytes,
)
from .messages import head_passes


def logits_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Inputs of final norm and head, and logits, of all passes whose head has run on the stage that has it."""
    return stage.head * head_passes(stage, case) * stage.ends[1].costs.kept


def waiting_logits(stage: StageCosts, case: Case) -> Bytes:
    """The same behind the first backward pass of the head: of all other passes, and of one that runs beside it."""
    others: Count = head_passes(stage, case) - 1 + where(case.schedule.paired, 1, 0)
    return stage.head * others * stage.ends[1].costs.kept


def scattered_bytes(stage: StageCosts, case: Case) -> Bytes:
    """What the head's input gradient is scattered into, where an engine keeps buffers of gathered inputs."""
    cut: Bytes = where(case.layout.sliced > 1, stage.largest_entry, 0)
    return case.engine.gather_buffers * cut


def head_backward_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Beyond the logits: the loss's own copies, or later the gradients of the head's input and matrix.

    With a pipeline the gradient that was sent last still stands. Where the head is a group of its own, its weights
    stand gathered, and its gradient is scattered where the logits are gone. Source: Megatron-Core's layers.py; the
    peaks of SimuMax's B200 runs; torch 2.13, FSDPMemTracker.
    """
    sent: Bytes = where(case.layout.pp > 1, stage.largest_entry, 0)
    ahead: Bytes = total(each(blocks_bytes, scattering(stage, case), case, 1))
    gradients: Bytes = stage.ends[1].costs.backward + scattered_bytes(stage, case) + sent + ahead
    loss: Bytes = stage.ends[1].costs.workspace + where(case.engine.wraps_loss, ahead, 0)
    weights: Bytes = total(each(head_weight_bytes, scattering(stage, case), case))
    scattered: Bytes = total(each(head_scatter_bytes, scattering(stage, case), case))
    return stage.head * maximum(loss=weights + loss, gradients=weights + gradients, scattered=scattered)


def head_moment(stage: StageCosts, case: Case) -> Bytes:
    """What stands at the head beside the tapes, where its backward pass begins."""
    return total(logits=logits_bytes(stage, case), backward=head_backward_bytes(stage, case))


def layer_moment(stage: StageCosts, case: Case) -> Bytes:
    """What stands in the first layer of the backward pass beside the tapes: its own tape again, and gradients.

    The logits of passes whose head has run wait. Or in a later layer, where what those behind it hold is more than what
    was freed of their tapes.
    """
    return total(
        recomputed=recompute_bytes(stage, case),
        backward=stage.largest_backward,
        blocks=total(each(blocks_bytes, scattering(stage, case), case, case.engine.gathered_blocks)),
        whole=total(each(whole_gradient_bytes, growing(stage, case), case)),
        behind=total(each(behind_bytes, growing(stage, case), case)),
        logits=waiting_logits(stage, case),
    )


def backward_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Gradients of values at the larger of both moments."""
    at_head: Bytes = head_backward_bytes(stage, case)
    return where(head_moment(stage, case) >= layer_moment(stage, case), at_head, stage.largest_backward)


def moment_bytes(stage: StageCosts, case: Case) -> Bytes:
    """The larger of both."""
    return maximum(head=head_moment(stage, case), layer=layer_moment(stage, case))
