"""Rules that two options of one layout break together: cells of a block that are no layout of the engine."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..layout.case import Case
from ..layout.rules import Rule, rules_of


@cache
def rules_of_options(engine: str) -> tuple[Rule, ...]:
    """Those of the engine."""
    return tuple(rule for rule in rules_of(engine) if rule.couples)


def illegal_cells(case: Case, shape: tuple[int, ...]) -> tuple[NDArray[np.bool_] | None, Mapping[str, int]]:
    """Which cells of a block break a rule, and how many each rule was the first to reject; None where none does."""
    illegal, rejected = None, dict[str, int]()
    for rule in rules_of_options(case.engine.name):
        obeyed: Any = rule.legal(case)
        if np.all(obeyed):
            continue
        illegal = np.zeros(shape, bool) if illegal is None else illegal
        before = int(np.count_nonzero(illegal))
        illegal |= ~np.broadcast_to(obeyed, shape)
        rejected[rule.code] = int(np.count_nonzero(illegal)) - before
    return illegal, rejected
