"""The limits of a study: a range for a column of its answers. All faults are kept."""

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from ...errors import Fault, nearest, quoted
from ...search.sweep.rows import ANSWER
from ...search.sweep.study import Axis, Limit
from ..values import BYTES, COUNTS, PERCENT, Faults, number

NAMES = ("ranks", *(name for name, kind in ANSWER.items() if kind in ("whole", "number")))
OF_A_RUN = ("days", "accelerator_hours", "dollars", "dollars_low", "dollars_high")  # they need the tokens to train on
RULE = "a limit is a range LOW..HIGH of a column; either end may be left out"


def read_limits(
    table: Any, place: Callable[[str, str], str], axes: Mapping[str, Axis], faults: Faults
) -> tuple[Limit, ...]:  # fmt: skip
    """The limits of the [limits] table; those that no answer can keep to are refused."""
    found = []
    for key, value in table.items():
        where = place("limits", key)
        if key not in NAMES:
            close = nearest(key, NAMES)
            fix = f"did you mean {' or '.join(close)}?" if close else "remove it"
            rule = f"a limit is of {', '.join(NAMES)}"
            faults.add(Fault("SWP002", f"nothing is called {quoted(key)}", rule, where, fix))
            continue
        limit = _limit(key, str(value), where, faults)
        if limit and key in OF_A_RUN and "tokens" not in axes:
            rule = "days, hours and dollars are of a whole run, whose tokens the study says"
            faults.add(Fault("SWP005", f"no answer has {key}", rule, where, 'tokens = "1T"'))
        found += [limit] if limit else []
    return tuple(found)


def _limit(key: str, text: str, where: str, faults: Faults) -> Limit | None:
    units = BYTES if key.endswith("_bytes") else PERCENT if key == "mfu" else COUNTS
    ends = [part.strip() for part in text.split("..")]
    low, high = [number(part, units) for part in ends] if len(ends) == 2 else (None, None)
    if len(ends) != 2 or not any(ends) or (low is None and ends[0]) or (high is None and ends[1]):
        faults.add(
            Fault("SWP003", f"{key} is not a range", RULE, f"{quoted(text)}   ({where})", f'{key} = "..30" or "30.."')
        )
        return None
    limit = Limit(key, -inf if low is None else float(low), inf if high is None else float(high))
    if limit.low > limit.high:
        fix = f'{key} = "{ends[1]}..{ends[0]}"'
        faults.add(
            Fault("SWP005", f"the limits of {key} contradict each other", RULE, f"{quoted(text)}   ({where})", fix)
        )
        return None
    return limit
