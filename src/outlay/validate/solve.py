"""Least squares on log(predicted / measured): Gauss-Newton in the logarithms of few constants, with bounded steps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Residuals = Callable[[Vector], Vector]  # log(predicted / measured) of every row, at the logarithms of the constants

PROBE = 0.02  # how far a constant is moved to see what rows say of it
STEP = 0.3  # the longest move of one iteration
MOST = 8  # iterations
DONE = 1e-4  # a move below this ends them
NOISE = 0.02  # what a measured step is off by, at least


@dataclass(frozen=True)
class Solution:
    """Where a fit ended."""

    at: Vector
    residuals: Vector
    slopes: NDArray[np.float64]  # of the residuals, a column a constant
    stopped: bool = False

    @property
    def loose(self) -> Vector:
        """Standard error of each constant's logarithm, with the scatter of the rows, at least NOISE."""
        free = max(1, self.residuals.size - self.at.size)
        scatter = max(NOISE, float(np.sqrt(self.residuals @ self.residuals / free)))
        return scatter * unfixed(self.slopes)


def unfixed(slopes: NDArray[np.float64]) -> Vector:
    """Standard errors for a scatter of one; infinite where rows say nothing or constants cannot be told apart."""
    square = slopes.T @ slopes
    if square.size and np.linalg.cond(square) < 1e10:
        return np.sqrt(np.diag(np.linalg.inv(square)))
    weights = np.linalg.eigh(square)
    loose = weights.eigenvectors**2 @ (1 / np.maximum(weights.eigenvalues, 1e-12))
    found: Vector = np.sqrt(loose)
    return found


def slopes_of(residuals: Residuals, at: Vector, here: Vector) -> NDArray[np.float64]:
    """How every residual moves with every constant."""
    columns = [(residuals(at + PROBE * axis) - here) / PROBE for axis in np.eye(at.size)]
    return np.stack(columns, axis=1) if columns else np.zeros((here.size, 0))


def solve(residuals: Residuals, at: Vector, gain: float = 0.0) -> Solution:
    """The best constants, from where they are, until a move makes the squares less by no more than a share of them.

    Ctrl-C keeps the best so far.
    """
    best = Solution(at, residuals(at), np.zeros((0, at.size)))
    try:
        for _ in range(MOST):
            slopes = slopes_of(residuals, best.at, best.residuals)
            best = Solution(best.at, best.residuals, slopes)
            found = _shorter(residuals, best)
            if found is None:
                break
            moved = float(np.abs(found.at - best.at).max(initial=0.0))
            less = 1 - float(found.residuals @ found.residuals) / float(best.residuals @ best.residuals)
            best = found
            if moved < DONE or less < gain:
                break
    except KeyboardInterrupt:
        return Solution(best.at, best.residuals, best.slopes, stopped=True)
    return best


def move(slopes: NDArray[np.float64], residuals: Vector) -> Vector:
    """The Gauss-Newton move, no constant by more than STEP."""
    wanted = np.linalg.lstsq(slopes, -residuals, rcond=1e-8)[0]
    found: Vector = np.clip(wanted, -STEP, STEP)
    return found


def _shorter(residuals: Residuals, here: Solution) -> Solution | None:
    """The move, or a part of it, that makes the squares less; None where none does."""
    wanted, now = move(here.slopes, here.residuals), float(here.residuals @ here.residuals)
    for part in (1.0, 0.5, 0.25):
        at = here.at + part * wanted
        found = residuals(at)
        if float(found @ found) < now * (1 - 1e-9):
            return Solution(at, found, here.slopes)
    return None


def without(solution: Solution, row: int) -> Vector:
    """Where the constants would be without one row: the Gauss-Newton move from the fit, of the other rows."""
    rest = np.arange(solution.residuals.size) != row
    return solution.at + move(solution.slopes[rest], solution.residuals[rest])


def fixed(slopes: Sequence[Vector], scatter: float = NOISE) -> Vector:
    """Standard errors of constants whose columns of slopes these are."""
    found: Vector = scatter * unfixed(np.stack(list(slopes), axis=1))
    return found
