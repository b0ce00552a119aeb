"""What comes of all comparisons of one layout."""

from dataclasses import dataclass

from .pipelines.run import PipelineRun
from .steps.run import Stepped
from .subject import Checked, NotRun


@dataclass(frozen=True)
class Verified:
    """What agrees, what does not, what was not run, and how the layout was scaled down."""

    checked: tuple[Checked, ...]
    not_run: tuple[NotRun, ...]
    scaled: tuple[str, ...]
    pipeline: PipelineRun | None = None
    step: Stepped | None = None  # a real run, where one was asked for

    @property
    def wrong(self) -> tuple[Checked, ...]:
        """The comparisons that disagree."""
        return tuple(one for one in self.checked if one.agrees is False)
