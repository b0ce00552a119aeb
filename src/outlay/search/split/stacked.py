"""Peak and step of layouts in arrays, with all their candidate stages at once, along an axis before all others.

A formula of a stage is then evaluated once for all of them: about half the array calls of a block.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...formula import Stacked
from ...layer import ModelCosts
from ...layout.case import Case
from ...layout.stages import Stage, candidates, whole
from ...memory.peak import Stages
from ...schedule.laws import among
from ...stage import stage_costs
from ...step.total import step_seconds

Array = NDArray[Any]


def stacked(found: tuple[Stage, ...], costs: ModelCosts, axes: int) -> Stages:
    """Candidate stages as one, whose arrays have one axis more than the `axes` of the layouts."""

    def over(values: Iterable[Any]) -> Array:
        every = np.stack(np.broadcast_arrays(*(np.asarray(value, float) for value in values)))
        return every.reshape(len(every), *[1] * (axes - 1), -1)

    counts = tuple(over(kind) for kind in zip(*(stage.counts for stage in found), strict=True))
    names = ("rank", "embedding", "head", "unevenness")
    every = {name: over(getattr(stage, name) for stage in found) for name in names}
    stages = Stacked([stage_costs(Stage("candidate", counts=counts, **every), costs)])
    stages.axes = axes + 1
    return stages


def staged(case: Case, costs: ModelCosts, axes: int) -> tuple[Case, Stages]:
    """The case with the laws of its schedules, and the stages that bind."""
    asked = replace(case, schedule=among(np.asarray(case.layout.schedule)))
    found = candidates(case.model, case.layout, case.engine.counts_ends)
    return asked, stacked(found, costs, axes)


def counted(case: Case, costs: ModelCosts, axes: int) -> tuple[Case, Stages, Any]:
    """The same with the step of every layout."""
    asked, stages = staged(case, costs, axes)
    return asked, stages, step_seconds(stages, stage_costs(whole(case.model), costs, case.layout.pp), asked)
