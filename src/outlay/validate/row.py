"""One row of a file of measured runs, and what came of it."""

from dataclasses import dataclass
from typing import Literal

from .table import Tier


@dataclass(frozen=True)
class Row:
    """One row of a file: what was measured, what is predicted, and the signed error predicted / measured - 1."""

    file: str
    line: int
    source: str
    model: str
    accelerator: str
    precision: str
    status: Literal["compared", "skipped"]
    reason: str = ""  # why it was skipped; of a compared row, the rules that it breaks
    measured_step_time_s: float | None = None
    predicted_step_time_s: float | None = None
    step_time_error: float | None = None
    step_time_in_band: bool | None = None
    step_time_tier: Tier = 0  # that its step time is scored in; 0: none
    step_time_composed: bool = False  # its measured time adds up from profiled parts
    step_time_unscored: str = ""  # why it is in none, or not in the first
    measured_peak_mem_gib: float | None = None
    predicted_peak_mem_gib: float | None = None
    peak_mem_error: float | None = None
    peak_mem_in_band: bool | None = None
    peak_mem_score: Literal["", "allocator", "device"] = ""  # the group that its peak is scored in
    peak_mem_unscored: str = ""  # why it is reported and not scored
    time_from: str = ""  # the columns that the measured time is from
    memory_is: str = ""  # unit and level of the measured memory
    engine: str = ""
    layout: str = ""  # what was counted: accelerators, degrees, micro-batch
    facts: str = ""  # the name of its source in the table of sources
    assumed: tuple[str, ...] = ()
