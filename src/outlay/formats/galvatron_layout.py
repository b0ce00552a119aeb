"""A strategy for each layer as the keys of Hetu-Galvatron's strategy file: a number a layer, in one text with commas.

Source: Hetu-Galvatron, core/runtime/hybrid_parallel_config.py and utils/strategy_utils.py. Its data parallelism is ddp,
zero2, or ZeRO-3 where `dp_types_enc` is 1: no ZeRO-1. It has no interleaving; `use_sp` is Ulysses.
"""

from collections.abc import Sequence
from typing import Any

from ..layout.axes import Layout
from ..layout.case import Case

PIPELINES = {"1f1b": "pipedream_flush", "gpipe": "gpipe"}
DATA = {0: "ddp", 2: "zero2", 3: "zero2"}


def says(layout: Layout) -> bool:
    """Whether its strategy file can say a cut, its strategies apart."""
    plain = layout.cp * layout.ep * layout.etp * layout.vpp * layout.dp_replicate == 1
    return bool(plain and layout.schedule in PIPELINES)


def strategy_file(case: Case, degrees: Sequence[int], again: Sequence[bool], division: Sequence[int]) -> dict[str, Any]:
    """The keys of a cut whose layers have these degrees, and run again or not; `division` is the layers of each stage.

    Without the kind of data parallelism where it has none like it.
    """
    at, layers = case.layout, len(degrees)
    found: dict[str, Any] = {
        "pp_deg": int(at.pp),
        "tp_sizes_enc": _listed(degrees),
        "tp_consecutive_flags": _listed([1] * layers),
        "use_sp": _listed([0] * layers),
        "checkpoint": _listed([int(one) for one in again]),
        "global_bsz": int(case.job.global_batch),
        "chunks": int(case.micro_batches),
        "pp_division": _listed(division),
        "pipeline_type": PIPELINES[at.schedule],
        "vtp": int(at.tp),
        "vsp": 0,
    }
    if at.zero in DATA:
        found |= {"dp_types_enc": _listed([int(at.zero == 3)] * layers), "default_dp_type": DATA[at.zero]}
    return found


def _listed(values: Sequence[int]) -> str:
    return ",".join(map(str, values))
