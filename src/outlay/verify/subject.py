"""What is verified, and each thing that comes of it: a comparison that agrees or not, or what was not run."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ..cluster.accelerator import Cluster
from ..engines.engine import Engine
from ..job import Job
from ..layout.axes import Layout
from ..model.model import Model
from .comparison import Comparison
from .models.configs import Config

USUAL = ("parameters", "flops", "states", "tape", "peak", "traffic", "schedule")
KINDS = (*USUAL, "pipeline", "step")  # what takes real time is run where it is asked for
ROUNDING = 1e-12  # of a figure that is exact: sums of shares in floating point
PEAK = 0.02
OPERATION = 0.1  # s


class Pacing(NamedTuple):
    """How long an operation lasts in the mean, in seconds, and whether stages multiply matrices for so long."""

    operation: float = OPERATION
    computes: bool = False


ASLEEP = Pacing()


@dataclass(frozen=True)
class Subject:
    """What is verified: a complete question, and the model's config.json, or why there is none."""

    model: Model
    job: Job
    cluster: Cluster
    layout: Layout
    engine: Engine
    config: Config | None
    missing: str = ""
    pacing: Pacing = ASLEEP
    device: str = ""  # that a step runs on: cuda, cpu, or what there is


@dataclass(frozen=True)
class Checked:
    """One comparison, of which kind, and within what share both should be. `reason`: why they differ if they do."""

    kind: str
    comparison: Comparison
    within: float = ROUNDING
    reason: str = ""

    @property
    def agrees(self) -> bool | None:
        """Whether both are equal; None where they differ for a known reason."""
        return self.comparison.agrees(self.within) or (None if self.reason else False)


@dataclass(frozen=True)
class NotRun:
    """Kinds of comparison that are not run for a layout, and why: neither agreement nor disagreement."""

    kinds: tuple[str, ...]
    reason: str


Found = Iterator[Checked | NotRun]
