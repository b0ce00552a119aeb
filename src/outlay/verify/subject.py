"""What is verified, and what comes of it: comparisons that agree or not, and what was not run."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..cluster.accelerator import Cluster
from ..engines.engine import Engine
from ..job import Job
from ..layout.axes import Layout
from ..model.model import Model
from .comparison import Comparison
from .configs import Config
from .pipeline import ASLEEP, Pacing, PipelineRun

if TYPE_CHECKING:
    from .step import Stepped

USUAL = ("parameters", "flops", "states", "tape", "peak", "traffic", "schedule")
KINDS = (*USUAL, "pipeline", "step")  # what takes real time is run where it is asked for
ROUNDING = 1e-12  # of a figure that is exact: sums of shares in floating point
PEAK = 0.02


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


@dataclass(frozen=True)
class Verified:
    """What agrees, what does not, what was not run, and how the layout was scaled down."""

    checked: tuple[Checked, ...]
    not_run: tuple[NotRun, ...]
    scaled: tuple[str, ...]
    pipeline: PipelineRun | None = None
    step: "Stepped | None" = None  # a real run, where one was asked for

    @property
    def wrong(self) -> tuple[Checked, ...]:
        """The comparisons that disagree."""
        return tuple(one for one in self.checked if one.agrees is False)


Found = Iterator[Checked | NotRun]
