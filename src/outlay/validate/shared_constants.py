"""The constants of the tables that are fits over published steps: the rows each rests on, and counts under others."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from typing import Any

from ..bill import load
from ..engines.profile import DRIVER, HARDWARE, KERNELS, Constant, Profile
from ..engines.profiled import profiled
from ..engines.tables import facts_of, kernels_of, precision
from ..layout.case import Case
from ..step.total import step_seconds
from .constants import Sought, Together
from .table import entries

LINKS = {"link": "inside", "nic": "top"}  # of a constant's name, and the level of the cluster
QUANTISED = ("fp8_share", "mxfp8_share", "fp4_share")
LEAST, BELOW = 1e-6, 0.98  # the least value, and where a constant at its bound starts, so that it may move

Values = Mapping[tuple[str, str], float]
"""The values of constants, by what they are of and by name."""


@dataclass(frozen=True)
class Shared:
    """One number that was fitted, and which rows' counts it stands in."""

    names: tuple[str, ...]  # of the constants that it moves, at the ratio that they have
    accelerators: tuple[str, ...] = ()  # none: any
    engines: tuple[str, ...] = ()  # engines in whose rows it stands; those that inherit it have it too
    kernels: str = ""  # the kernel set that it is of
    most: float = inf  # bound that its fit was given
    cards: str = ""  # the accelerators in a word, where there are several

    @property
    def of(self) -> str:
        """What it is of, in words."""
        cards = (self.cards,) if self.cards else self.accelerators
        return ", ".join(filter(None, (*self.engines[:1], self.kernels, *cards)))

    def stands_in(self, case: Case) -> bool:
        """Whether the count of a case has it."""
        at = self.names[0]
        if self.accelerators and case.cluster.accelerator.name not in self.accelerators:
            return False
        if at in QUANTISED:
            return precision(case.job.precision).share == at
        if self.kernels:
            return case.engine.kernels == self.kernels
        return not self.engines or _fact(case.engine.name, at) in [_fact(name, at) for name in self.engines]

    def sought(self, case: Case) -> Together:
        """It as something that a fit seeks, from the values that a case has."""
        return tuple(_sought(self, name, value_in(case, name)) for name in self.names)


@cache
def _fact(engine: str, name: str) -> str:
    """A fact of an engine with its source: equal where one inherits it from the other."""
    return repr(facts_of(engine)[name])


def _sought(shared: Shared, name: str, start: float) -> Sought:
    low, high, _ = {**HARDWARE, **KERNELS, **DRIVER}.get(name, (0.0, 1.0, ""))
    high = min(high, shared.most)
    return Sought(shared.of, name, min(start, BELOW * high), max(low, LEAST), high)


@dataclass(frozen=True)
class Basis:
    """Constants that were fitted together, and the rows that they rest on."""

    name: str
    facts: tuple[str, ...]
    constants: tuple[Shared, ...]
    accelerator: str = ""  # pattern
    model: str = ""  # pattern
    experts: bool | None = None

    def holds(self, facts: str, model: str, case: Case) -> bool:
        """Whether they rest on a row."""
        if facts not in self.facts or self.experts not in (None, bool(case.model.experts)):
            return False
        return bool(re.search(self.accelerator, case.cluster.accelerator.name) and re.search(self.model, model))


@cache
def bases() -> tuple[Basis, ...]:
    """Every group of constants that were fitted together, in the order in which they are fitted again."""
    return tuple(_basis(entry) for entry in entries("fitted.toml", "basis"))


def _basis(entry: Mapping[str, Any]) -> Basis:
    return Basis(**{**entry, "constants": tuple(map(_shared, entry["constants"]))})


def _shared(entry: Mapping[str, Any]) -> Shared:
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    return Shared(**values)


def value_in(case: Case, name: str) -> float:
    """The value of a constant in a case."""
    level, _, rest = name.partition("_")
    if level in LINKS:
        return float(getattr(getattr(case.cluster, LINKS[level]), rest))
    kernels = kernels_of(case.engine)
    forward, back = kernels.attention_on(case.cluster.accelerator.name)
    of_kernels = {
        "elementwise": kernels.elementwise, "attention_share": forward, "attention_back_share": back,
        "loss_moves": kernels.loss.moves, "loss_moves_back": kernels.loss.moves_back,
    }  # fmt: skip
    return float(of_kernels.get(name) or getattr(case.cluster.accelerator, name, None) or getattr(case.engine, name))


def counted(case: Case, shared: Sequence[Shared], values: Values) -> float:
    """Seconds of a step with other values of some constants that stand in its case."""
    found = {(each, name): values[each.of, name] for each in shared for name in each.names if (each.of, name) in values}
    own = {name: value for (each, name), value in found.items() if name in HARDWARE and not each.kernels}
    driver = {name: value for (each, name), value in found.items() if name in {**KERNELS, **DRIVER} and name not in own}
    rest: dict[str, Any] = {name: value for (_, name), value in found.items() if name not in {**own, **driver}}
    engine = replace(case.engine, **rest)
    of_engine = engine.name if driver else ""
    profile = Profile("refitted", case.cluster.accelerator.name, _constants(own), of_engine, _constants(driver))
    cluster, engine = profiled(profile, case.cluster, engine)
    loaded = load(replace(case, cluster=cluster, engine=engine))
    return float(step_seconds(loaded.stages, loaded.whole, loaded.case))


def _constants(values: Mapping[str, float]) -> tuple[Constant, ...]:
    return tuple(Constant(name, value, "measured", "a fit") for name, value in values.items())
