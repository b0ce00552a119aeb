"""What offload asks of the host: what it frees on an accelerator stands in host memory."""

from collections.abc import Sequence
from dataclasses import replace
from math import floor
from typing import Any

import numpy as np

from ..errors import Fault
from ..formula import each, maximum
from ..layout.case import Case
from ..layout.complete import flag
from ..quantities import GB
from ..stage import StageCosts
from .activations import activation_bytes
from .states import gradient_bytes, optimizer_bytes, weight_bytes

OFFLOADS = ("offload_optimizer", "offload_parameters", "offload_activations")


def hosted(stages: Sequence[StageCosts], case: Case) -> Any:
    """Bytes that one accelerator of the worst stage keeps on its host; of a grid, an array.

    It is the least: engines also pin staging buffers there, which are not counted.
    """
    if not any(np.any(getattr(case.layout, name)) for name in OFFLOADS):
        return 0.0
    here: dict[str, Any] = dict.fromkeys(OFFLOADS, 0.0)
    whole = replace(case, layout=replace(case.layout, **here))
    return maximum(each(_moved, stages, whole, case))


def _moved(stage: StageCosts, whole: Case, case: Case) -> Any:
    held = (weight_bytes, gradient_bytes, optimizer_bytes, activation_bytes)
    return sum(part(stage, whole) - part(stage, case) for part in held)


def hosting(held: float, case: Case) -> tuple[str, ...]:
    """What a bill says of host memory, where something stands in it."""
    if held <= 0:
        return ()
    there = case.cluster.host_bytes
    has = "and the host has it (not checked)" if there is None else f"of {there / GB:,.0f} GB that its node has for it"
    return (f"offload: {held / GB:,.1f} GB of host memory an accelerator, {has}",)


def unhosted(held: float, case: Case) -> Fault | None:
    """LAY042: the node has less host memory than offload needs; None where it has enough, or nobody says how much."""
    there = case.cluster.host_bytes
    if there is None or held <= there:
        return None
    shares = {name: float(getattr(case.layout, name)) for name in OFFLOADS if getattr(case.layout, name)}
    fitting = {name: floor(100 * share * there / held) / 100 for name, share in shares.items()}
    return Fault(
        "LAY042",
        "offload needs more host memory than the node has",
        "what is offloaded from the accelerators of a node fits its host memory",
        f"{held / GB:,.1f} GB an accelerator, {there / GB:,.1f} GB there ({case.cluster.name})",
        " ".join(f"{flag(name)} {share:g}" for name, share in fitting.items()),
    )
