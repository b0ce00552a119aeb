"""Plain flags narrow a space: a field keeps the values that were given; contradictions are refused, all at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from ..errors import Fault, InputError, quoted
from ..layout.complete import flag
from .space import DEGREES, MOST_CELLS, Space

LISTS = (
    "overlap_tp", "overlap_ep", "overlap_dp", "offload_optimizer", "offload_parameters", "offload_activations",
)  # fmt: skip
NAMES = (*DEGREES, "schedule", "recompute", "recompute_modules", "zero", "hybrid", *LISTS)


@dataclass(frozen=True)
class Span:
    """A range: the declared values from low to high."""

    low: int
    high: int

    def inside(self, declared: Iterable[Any]) -> tuple[Any, ...]:
        """Those of some values that are in it."""
        return tuple(each for each in declared if self.low <= each <= self.high)


def _unknown(name: str) -> Fault:
    rule = f"a search goes through {', '.join(NAMES)}"
    return Fault(
        "PLN001", f"{quoted(name)} is not searched", rule, quoted(name), "leave it out, or count one layout with it"
    )


def _ordered(values: Iterable[Any], declared: Sequence[Any]) -> tuple[Any, ...]:
    """Values in the order of the space, those that it has not behind them: which layout of equal ones is named first
    does not depend on how a list was written."""
    places = {value: place for place, value in enumerate(declared)}
    return tuple(sorted(values, key=lambda value: (places.get(value, len(places)), value)))


def _zero(space: Space, narrowed: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    """ZeRO stages that were given, and whether shards may or must stay inside domains."""
    stages = narrowed.get("zero", tuple({stage for stage, _ in space.zero}))
    inside = narrowed.get("hybrid", (False, True))
    pairs = tuple(pair for pair in space.zero if pair[0] in stages and bool(pair[1]) in inside)
    more = sorted({*stages} - {stage for stage, _ in space.zero}) if False in inside else []
    return *pairs, *((stage, 0) for stage in more)


def narrow(space: Space, **given: tuple[Any, ...]) -> Space:
    """The space with only these values: `narrow(space, tp=(1, 2, 4), recompute=("none",), offload_optimizer=(0.0,))`.

    Raises InputError (PLN001 an unknown name, PLN002 a field without a value).
    """
    faults = [_unknown(name) for name in given if name not in NAMES]
    faults += [
        Fault("PLN002", f"{flag(name)} has no value", "a list of values, or a range", "nothing", f"{flag(name)} 1,2,4")
        for name, values in given.items()
        if not values
    ]
    if faults:
        raise InputError(*faults)
    degrees = {name: _ordered(given.get(name, values), values) for name, values in space.degrees.items()}
    recompute = tuple(pair for pair in space.recompute if pair[0] in given.get("recompute", (pair[0],)))
    lists: dict[str, Any] = {name: _ordered(given[name], getattr(space, name)) for name in LISTS if name in given}
    if "recompute_modules" in given:
        lists["recompute_modules"] = tuple(given["recompute_modules"])
    if "recompute_modules" in given or ("selective", 0) not in recompute:
        lists["other_modules"] = ()
    if "schedule" in given:
        lists["schedules"] = _ordered(given["schedule"], space.schedules)
    return replace(space, degrees=degrees, recompute=recompute, zero=_zero(space, given), **lists)


def unsearchable(space: Space) -> list[Fault]:
    """What keeps a space from being searched: no value of an option is left, or there are more rows than can be
    listed."""
    faults = []
    for name in ("zero", "recompute"):
        if not getattr(space, name):
            rule = "every searched field keeps a value; --space wide declares the most"
            fix = "--space wide, or without --hybrid" if name == "zero" else "--recompute none,full"
            faults.append(Fault("PLN006", f"no declared value of --{name} is left", rule, "nothing", fix))
    cells = prod(map(len, space.degrees.values()))
    if cells > MOST_CELLS:
        rule = f"degrees make {MOST_CELLS:,} combinations at most"
        faults.append(Fault("PLN008", "the space is too large", rule, f"{cells:,}", "shorter lists of values"))
    return faults
