"""What stands while a model is loaded: whole on a host before it is cut, and on an accelerator where it is moved whole.

Of engines that read a checkpoint in parts nothing is counted: no rank holds more than in training.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..layout.case import Case
from ..quantities import Bytes
from ..stage import StageCosts
from ..undivided import state_of

By = Literal["rank", "node", "job"]


@dataclass(frozen=True)
class Loading:
    """What loading needs beside training."""

    by: By  # who holds the whole model on a host: every rank, the first of each node, or the first of all
    host_bytes: float  # of one of them
    accelerator_bytes: float | None  # of one accelerator, unless the model is made in parts; None: never whole there
    beyond_peak: bool  # whether that is more than training allocates


def whole_model(stage: StageCosts, case: Case) -> Bytes:
    """Weights of a stage before data parallelism cuts them: trained as they are kept, frozen ones in their format."""
    trained: Bytes = case.recipe.weights * (stage.dense_parameters + stage.expert_parameters)
    return trained + stage.frozen_bytes("dense") + stage.frozen_bytes("expert")


def loading_of(every: Sequence[StageCosts], allocated: float, case: Case) -> Loading | None:
    """What loading needs; None where each rank reads its own part. `allocated` is the peak of training."""
    by = case.engine.loads_whole[int(case.layout.zero)]
    if by == "none":
        return None
    host = state_of(case.model, replace(case.recipe, copies=0, frozen_copies=0), case.job).weights
    moved = case.engine.moves_whole and case.layout.zero >= 3
    one = max(float(whole_model(stage, case)) for stage in every) if moved else None
    return Loading(by, host, one, one is not None and one > allocated)  # type: ignore[arg-type]
