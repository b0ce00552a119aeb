"""The closed form of a schedule that no engine runs, beside its timing diagram."""

from collections.abc import Sequence
from typing import Any

from ..schedule.stated import STATED
from ..schedule.times import Times
from ..show.text import percent
from .passes import Plan


def law_of(plan: Plan, times: Times) -> tuple[str, ...]:
    """What the closed form says of these numbers, where there is one and the stages are equal."""
    row = STATED.get(plan.name)
    if row is None:
        return ()
    parts = [_one(value) for value in (times.forward, times.input_gradient, times.weight_gradient)]
    if row.idle is None or None in parts or times.send != 0:
        return (f"no closed form: {row.where}",) if row.idle is None else ()
    passes = [(part or 0) * plan.depth / plan.pp for part in parts]
    if not row.holds(*passes, plan.pp, plan.micro_batches):
        return (f"the closed form of {plan.name} holds where {row.where}: not here",)
    idle = float(row.idle(*passes, plan.pp, plan.micro_batches))
    share = idle / (idle + plan.micro_batches * sum(passes))
    return (f"the closed form gives {percent(share)} over the makespan ({row.where})",)


def _one(value: Any) -> float | None:
    """The duration that all stages have."""
    if not isinstance(value, Sequence):
        return float(value)
    return float(value[0]) if len(set(value)) == 1 else None
