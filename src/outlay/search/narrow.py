"""Plain flags narrow a space: a field keeps the values that were given; contradictions are refused, all at once."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from ..errors import Fault, InputError, quoted
from ..layout.complete import flag
from .space import DEGREES, Space

LISTS = ("overlap_tp", "overlap_dp", "offload_optimizer", "schedules")
NAMES = (*DEGREES, "schedule", "recompute", "zero", "hybrid", "overlap_tp", "overlap_dp", "offload_optimizer")


def _unknown(name: str) -> Fault:
    rule = f"a search goes through {', '.join(NAMES)}"
    return Fault(
        "PLN001", f"{quoted(name)} is not searched", rule, quoted(name), "leave it out, or count one layout with it"
    )


def _zero(space: Space, narrowed: Mapping[str, Any]) -> tuple[tuple[int, bool], ...]:
    """ZeRO stages that were given, and whether shards may or must stay inside a domain."""
    stages = narrowed.get("zero", tuple({stage for stage, _ in space.zero}))
    inside = narrowed.get("hybrid", (False, True))
    pairs = tuple(pair for pair in space.zero if pair[0] in stages and pair[1] in inside)
    more = tuple((stage, False) for stage in stages if all(stage != pair[0] for pair in space.zero) and False in inside)
    return pairs + more


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
    degrees = {name: tuple(given.get(name, values)) for name, values in space.degrees.items()}
    recompute = tuple(pair for pair in space.recompute if pair[0] in given.get("recompute", (pair[0],)))
    lists: dict[str, Any] = {f.name: tuple(given[f.name]) for f in fields(Space) if f.name in LISTS and f.name in given}
    if "schedule" in given:
        lists["schedules"] = tuple(given["schedule"])
    return replace(space, degrees=degrees, recompute=recompute, zero=_zero(space, given), **lists)
