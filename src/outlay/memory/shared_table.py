"""A table that embedding and head share: three gradients of it stand at one moment of the backward pass.

The head's waits for the embedding's, and torch writes the sum of both into a tensor of its own. Source: torch 2.13 on
real tensors, torch.profiler's memory events: aten::add, not aten::add_, of the two.
"""

from ..formula import minimum, where
from ..held import held_dense
from ..layout.case import Case
from ..layout.sizes import padded_vocabulary
from ..quantities import Bytes, Count, Params
from ..stage import StageCosts


def sharing(stage: StageCosts, case: Case) -> tuple[StageCosts, ...]:
    """The stage, where the model's ends share a table that is trained, and the engine leaves its gradients to torch."""
    return (stage,) if case.shares_table and case.engine.frees_gradients else ()


def shared_gradient_bytes(stage: StageCosts, case: Case) -> Bytes:
    """One gradient of the shared table as torch makes it, on a stage that has both ends."""
    rows: Count = padded_vocabulary(case.model.vocab, case.layout.tp, case.engine.vocab_multiple)
    table: Params = minimum(rows * case.model.hidden, held_dense(stage.ends[0]))
    whole: Count = case.made_whole + case.one_unit * case.gathers_all
    width: Bytes = where(whole > 0, case.compute_bytes, case.recipe.gradients)
    return stage.head * width * table


def embedding_gradient_bytes(stage: StageCosts, case: Case) -> Bytes:
    """What stands beside the head's gradient: the embedding's, and the sum of both."""
    return 2 * shared_gradient_bytes(stage, case)
