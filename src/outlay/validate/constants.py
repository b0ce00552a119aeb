"""The constants that steps can be fitted with: which there are, in which table, and what they are now."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log

from ..cluster.accelerator import Accelerator
from ..engines.engine import Engine
from ..engines.profile import DRIVER, HARDWARE, KERNELS, Constant, Profile
from ..engines.tables import kernels_of, precision
from .fit_rows import FitRow

ATTENTION, BACK = "attention_share", "attention_back_share"
HARDWARE_TABLE, ENGINE_TABLE = "accelerator", "engine"  # of a profile
LEAST_SECONDS = 1e-3  # s: where the fixed cost of a step starts from 0
FAR = log(4)  # a constant is sought between a quarter of what it is now and four times that
DIGITS = 4  # that a fitted constant is kept with


@dataclass(frozen=True)
class Sought:
    """One constant that is sought."""

    table: str  # accelerator or engine
    name: str
    start: float
    low: float
    high: float

    def at(self, step: float) -> float:
        """Its value so many natural logarithms from the start, inside its range."""
        return min(self.high, max(self.low, self.start * exp(min(FAR, max(-FAR, step)))))


Together = tuple[Sought, ...]
"""Constants that one number moves: alone, or tied at the ratio that they have."""


def candidates(rows: Sequence[FitRow]) -> tuple[Together, ...]:
    """Every constant that rows could fix: shares of the multiplies, attention, element-wise work, a step's cost."""
    case = rows[0].case
    card, engine = case.cluster.accelerator, case.engine
    numbers = Counter(precision(row.case.job.precision).share for row in rows)
    shares = [_share(card, name) for name, count in numbers.items() if count > 1]
    return tuple((each,) for each in (*shares, *_attention(card, engine), _elementwise(engine), _step(engine)))


def _sought(table: str, name: str, start: float) -> Sought:
    low, high, _ = (HARDWARE if table == HARDWARE_TABLE else {**KERNELS, **DRIVER})[name]
    return Sought(table, name, start, max(low, 1e-6), high)


def _share(card: Accelerator, name: str) -> Sought:
    return _sought(HARDWARE_TABLE, name, getattr(card, name) or card.matmul_share)


def _attention(card: Accelerator, engine: Engine) -> tuple[Sought, Sought]:
    """Those of the kernel set's own core, where it has one on this accelerator."""
    forward, back = kernels_of(engine).attention_on(card.name)
    usual = card.attention_share, card.attention_back_share or card.attention_share
    first = _sought(ENGINE_TABLE if forward else HARDWARE_TABLE, ATTENTION, forward or usual[0])
    return first, _sought(ENGINE_TABLE if back else HARDWARE_TABLE, BACK, back or usual[1])


def _elementwise(engine: Engine) -> Sought:
    return _sought(ENGINE_TABLE, "elementwise", kernels_of(engine).elementwise)


def _step(engine: Engine) -> Sought:
    return _sought(ENGINE_TABLE, "step_seconds", max(engine.step_seconds, LEAST_SECONDS))


def placed(base: Profile, constants: Sequence[Constant], tables: Sequence[str], engine: str) -> Profile:
    """The profile with some constants in place of those it has of the same names."""
    found: dict[str, list[Constant]] = {HARDWARE_TABLE: [*base.hardware], ENGINE_TABLE: [*base.kernels]}
    for constant, table in zip(constants, tables, strict=True):
        found[table] = [each for each in found[table] if each.name != constant.name] + [constant]
    hardware = tuple(sorted(found[HARDWARE_TABLE], key=lambda each: list(HARDWARE).index(each.name)))
    kernels = tuple(sorted(found[ENGINE_TABLE], key=lambda each: [*KERNELS, *DRIVER].index(each.name)))
    return replace(base, hardware=hardware, kernels=kernels, engine=engine if kernels else base.engine)


def values_at(groups: Sequence[Together], steps: Sequence[float]) -> dict[tuple[str, str], float]:
    """The value of every constant that is sought, by table and name, so many logarithms from where each starts."""
    return {
        (each.table, each.name): float(f"{each.at(step):.{DIGITS}g}")
        for group, step in zip(groups, steps, strict=True)
        for each in group
    }


def trial(base: Profile, values: dict[tuple[str, str], float], engine: str) -> Profile:
    """A profile to count with."""
    constants = [Constant(name, value, "measured", "a fit") for (_, name), value in values.items()]
    return placed(base, constants, [table for table, _ in values], engine)
