"""Tensors for the messages of a pipeline, where an engine has one for each micro-batch: torch's own pipelining.

Inputs and output gradients are received into tensors that stay. The first of these are the inputs that tapes hold, and
what a stage has given is held until its backward pass: one more where it sends, one less where it receives.
"""

import numpy as np

from ..formula import where
from ..layout.case import Case
from ..layout.sizes import padded_vocabulary, tokens_on_rank
from ..quantities import Bytes, Count
from ..stage import StageCosts
from .activations import in_flight


def receiving(stage: StageCosts, case: Case) -> tuple[StageCosts, ...]:
    """The stage, where there are messages, and its engine receives them so."""
    return (stage,) if case.engine.receives_all and np.any(case.layout.pp > 1) else ()


def received_bytes(stage: StageCosts, case: Case) -> Bytes:
    """A tensor for each input and output gradient of a step: the first chunk has no input, the last no gradient."""
    chunks: Count = 2 * case.layout.vpp - stage.ends[0].layers - stage.head
    return case.micro_batches * chunks * stage.largest_entry


def given_bytes(stage: StageCosts, case: Case) -> Bytes:
    """What chunks gave and still hold, less inputs that their tapes hold already: what the first chunk gave, less the
    last chunk's inputs. Exact where a rank has one chunk.
    """
    first: Count = stage.ends[0].layers * in_flight(stage, case)
    last: Count = stage.head * head_passes(stage, case)
    return (first - last) * stage.largest_entry


def head_passes(stage: StageCosts, case: Case) -> Count:
    """Passes whose head has run and whose backward pass has not, at the most."""
    return case.schedule.head_in_flight(
        stage.rank, case.layout.pp, case.layout.vpp, case.micro_batches, case.round_size
    )


def held_logits_bytes(stage: StageCosts, case: Case) -> Bytes:
    """Logits that the last stage gave, beside its loss's own copy."""
    rows: Count = padded_vocabulary(case.model.vocab, case.layout.tp, case.engine.vocab_multiple)
    logits: Count = tokens_on_rank(case.job, case.layout) * rows
    return stage.head * head_passes(stage, case) * case.engine.held_logits * logits


def message_buffer_bytes(stage: StageCosts, case: Case) -> Bytes:
    """All of these."""
    held: Bytes = received_bytes(stage, case) + given_bytes(stage, case) + held_logits_bytes(stage, case)
    return where(case.layout.pp > 1, held, 0)
