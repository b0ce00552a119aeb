"""One figure, counted and measured."""

from dataclasses import dataclass, field
from math import inf


@dataclass(frozen=True)
class Comparison:
    """outlay's count beside an engine's."""

    name: str
    counted: float
    measured: float
    unit: str  # B, or a word such as tensors
    note: str = ""  # what the measured figure leaves out, or what explains a difference
    least: bool = field(default=False, kw_only=True)  # the counted figure is a bound: the measured one is not below it

    @property
    def ratio(self) -> float:
        """Counted over measured; 1 where both are 0."""
        if self.measured == 0:
            return 1.0 if self.counted == 0 else inf
        return self.counted / self.measured

    def agrees(self, within: float = 0.0) -> bool:
        """Whether both are equal, or differ by no more than a share of the measured one; a bound, whether it holds."""
        if self.least:
            return self.measured >= self.counted
        return abs(self.counted - self.measured) <= within * abs(self.measured)


@dataclass(frozen=True)
class Banded(Comparison):
    """A modelled figure beside a measured one: they agree where the measured one lies inside its band."""

    low: float = 0.0
    high: float = 0.0

    def agrees(self, within: float = 0.0) -> bool:
        """Whether the measured one is inside the band, whatever `within` says."""
        return self.low <= self.measured <= self.high
