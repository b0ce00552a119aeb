"""A case: one complete question. Every field is filled, so formulas need no defaults."""

from dataclasses import dataclass

from ..cluster.accelerator import Cluster
from ..engines.engine import Engine, Recipe
from ..job import Job
from ..model.model import Model
from ..quantities import Count
from ..schedule.bubble import Schedule
from .axes import Layout


@dataclass(frozen=True)
class Case:
    """What is trained, the task, where, by what and how: a layout, or a grid of them."""

    model: Model
    job: Job
    cluster: Cluster
    engine: Engine
    recipe: Recipe
    schedule: Schedule
    layout: Layout

    @property
    def micro_batches(self) -> Count:
        """Micro-batches that a pipeline runs in one step: M = global batch / (dp x micro-batch)."""
        return self.job.global_batch / (self.layout.dp * self.layout.micro_batch)
