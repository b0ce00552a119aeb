"""Constants from measured times: medians of medians, and straight lines through medians. Nothing is fitted twice.

A line is Theil's: the median of the slopes between all pairs of points, each with the distance of its points as weight
(Jaeckel 1972), so a few points that are far off do not move it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

Point = tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    """A figure, and the quartiles of what it is the median of."""

    value: float
    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Line:
    """y = start + slope x."""

    start: float
    slope: float


def weighted_quantile(values: Iterable[float], weights: Iterable[float], share: float = 0.5) -> float:
    """The value below which a share of the weight lies; the mean of two where the share falls between them."""
    pairs = sorted((value, weight) for value, weight in zip(values, weights, strict=True) if weight > 0)
    target, passed = share * sum(weight for _, weight in pairs), 0.0
    for at, (value, weight) in enumerate(pairs):
        passed += weight
        if abs(passed - target) <= 1e-12 * target and at + 1 < len(pairs):
            return (value + pairs[at + 1][0]) / 2
        if passed >= target:
            return value
    raise ValueError("no value has a weight")


def estimate(values: Sequence[float], weights: Sequence[float] | None = None) -> Estimate:
    """The weighted median of some values, and their quartiles."""
    weights = weights or [1.0] * len(values)
    low, middle, high = (weighted_quantile(values, weights, share) for share in (0.25, 0.5, 0.75))
    return Estimate(middle, low, high, len(values))


def slope_of(points: Sequence[Point]) -> float:
    """The slope of a line through points; 0 where all stand at one place."""
    pairs = [(a, b) for a, b in combinations(points, 2) if a[0] != b[0]]
    if not pairs:
        return 0.0
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairs]
    return weighted_quantile(slopes, [abs(b[0] - a[0]) for a, b in pairs])


def cost_line(points: Sequence[Point]) -> Line:
    """A time against a size: neither its start nor its slope is below 0.

    The start is the median of what is left of each point, with 1 / y as weight: an error is a share of a time, so the
    short times say where the line begins.
    """
    slope = max(0.0, slope_of(points))
    left = [y - slope * x for x, y in points]
    return Line(max(0.0, weighted_quantile(left, [1 / y for _, y in points])), slope)


def rate_and_depth(points: Sequence[tuple[float, float, float]]) -> tuple[Estimate, float | None]:
    """Rate R and depth k0 of multiplies: work / time = R / (1 + k0 / k). Points are (k, work / time, weight).

    1 / rate is a straight line over 1 / k. A depth is None where all multiplies have one k, and 0 where none is seen.
    """
    inner = {k for k, _, _ in points}
    line = [(1 / k, 1 / rate) for k, rate, _ in points]
    weights = [weight for *_, weight in points]
    slope = max(0.0, slope_of(line)) if len(inner) > 1 else 0.0
    start = weighted_quantile([y - slope * x for x, y in line], weights)
    depth = slope / start if start > 0 else 0.0
    return estimate([rate * (1 + depth / k) for k, rate, _ in points], weights), depth if len(inner) > 1 else None


def start_and_step(points: Sequence[Point]) -> tuple[float, float]:
    """The start of a collective and one step of it, from (steps, time of next to nothing); neither is below 0."""
    step = max(0.0, slope_of(points))
    start = estimate([time - step * steps for steps, time in points]).value
    if start < 0:
        return 0.0, estimate([time / steps for steps, time in points]).value
    return start, step
