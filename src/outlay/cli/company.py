"""Texts of --beside, --packing and --measured: other models, how documents fill a sequence, what a run reached."""

import re
from collections.abc import Mapping
from typing import Any, get_args

from ..errors import InputError
from ..job import AUTO, Beside, Measured, Packing
from ..model import catalogue
from ..undivided import parameters
from .flags import hints
from .values import number

ROLES = get_args(hints(Beside)["role"])
BESIDE_RULE = f"MODEL:ROLE or MODEL:ROLE:RANKS, several with a comma; ROLE {', '.join(ROLES)}"
PACKING_RULE = "mean=800, mean=800,spread=1.2, or mean=800,padded"
MOST_MODELS = 16
MEASURED = 1e-9, 1e15  # least and most, of tokens or seconds: beyond any that means something


def beside(value: Any) -> tuple[Any, str]:
    """The models in a text, or in a list of texts or records; or the rule that it breaks."""
    parts = value if isinstance(value, list | tuple) else str(value).strip().split(",")
    found = [one if isinstance(one, Beside) else _one_beside(one) for one in parts]
    wrong = [rule for rule in found if isinstance(rule, str)]
    return tuple(found), wrong[0] if wrong else "" if 0 < len(found) <= MOST_MODELS else BESIDE_RULE


def _one_beside(value: Any) -> Beside | str:
    if isinstance(value, Mapping):
        try:
            return Beside(**value)
        except TypeError:
            return BESIDE_RULE
    name, *rest = [step.strip() for step in str(value).split(":")]
    ranks = rest[1] if rest[1:] else "1"
    if len(rest) not in (1, 2) or rest[0] not in ROLES or not re.fullmatch(r"[1-9]\d{0,6}", ranks):
        return BESIDE_RULE
    try:
        model = catalogue.find(name)
    except InputError as error:
        return f"{error.faults[0].what}; {BESIDE_RULE}"
    role: Any = rest[0]
    return Beside(model.name, role, float(parameters(model).total), int(ranks) if rest[1:] else AUTO)


def packing(value: Any) -> tuple[Any, str]:
    """The documents in a text or a record; or the rule that it breaks."""
    if isinstance(value, Packing):
        return value, ""
    given = dict(value) if isinstance(value, Mapping) else _words(str(value))
    known = {"mean", "spread", "padded"}
    if not given or set(given) - known or "mean" not in given or not isinstance(given.get("padded", False), bool):
        return None, PACKING_RULE
    try:
        sizes = {name: float(given[name]) for name in ("mean", "spread") if name in given}
    except (TypeError, ValueError):
        return None, PACKING_RULE
    return Packing(**sizes, padded=given.get("padded", False)), ""


def _words(text: str) -> dict[str, Any]:
    pairs = [step.strip().partition("=") for step in text.split(",")]
    return {name: number if equals else True for name, equals, number in pairs}


MEASURED_RULE = "11.2k or 11200: tokens a second on one accelerator; or 4.2s or 850ms: seconds of a step"
RATES = {"": 1.0, "K": 1e3, "M": 1e6}


def measured(value: Any) -> tuple[Any, str]:
    """What a run reached, in a text, a number or a record; or the rule that it breaks."""
    if isinstance(value, Measured):
        return value, ""
    if isinstance(value, Mapping):
        try:
            return Measured(**value), ""
        except TypeError:
            return None, MEASURED_RULE
    text = str(value)
    rate, step = number(text, RATES), number(text, {"S": 1.0, "MS": 1e-3})
    found = Measured(float(rate)) if rate is not None else Measured(0.0, float(step)) if step is not None else None
    least, most = MEASURED
    good = found is not None and least <= found.tokens_per_second_per_device + found.step_seconds <= most
    return found, "" if good else MEASURED_RULE


READERS = {Beside: beside, Packing: packing, Measured: measured}  # of a field's value, by the record that it holds
