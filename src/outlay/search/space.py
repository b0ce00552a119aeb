"""The declared space: which values every field of a layout may take, and how many combinations that makes.

Fields that constrain each other are *degrees*: their product is filtered once by the rules. Fields that constrain
nothing are *options*: every legal row of degrees takes every option, so a block needs no mask.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

from ..cluster.accelerator import Cluster
from ..engines.engine import Engine
from ..job import Job
from ..layout.degrees import divisors, powers
from ..model.model import Model

Width = Literal["lean", "middle", "wide"]

SCHEDULES = ("1f1b", "gpipe", "interleaved")
DEGREES = ("tp", "cp", "pp", "ep", "etp", "vpp", "micro_batch", "sp", "cp_kind", "moe_dispatch")

# Shares of a stage's layers that are recomputed in full, in parts of `QUARTERS`; none and selective stand before them.
QUARTERS = {"lean": 1, "middle": 4, "wide": 4}
OFFLOAD = {"lean": (0.0,), "middle": (0.0, 1.0), "wide": (0.0, 0.5, 1.0)}
OVERLAP = {"lean": (True,), "middle": (True,), "wide": (False, True)}
ZERO = {
    "lean": ((1, False), (2, False), (3, False)),
    "middle": ((0, False), (1, False), (2, False), (3, False), (1, True), (3, True)),
    "wide": ((0, False), (1, False), (2, False), (3, False), (1, True), (3, True)),
}
MICRO_BATCHES = (1, 2, 3, 4, 6, 8, 12, 16)
LONGEST_PIPELINE = 64
MOST_CHUNKS = 16


@dataclass(frozen=True)
class Space:
    """Values of every field. `zero` pairs a ZeRO stage with whether shards stay inside a scale-up domain (HSDP)."""

    degrees: Mapping[str, tuple[Any, ...]]
    schedules: tuple[str, ...]
    recompute: tuple[tuple[str, int], ...]  # kind, and quarters of the stage's layers under `full`
    quarters: int
    zero: tuple[tuple[int, bool], ...]
    overlap_tp: tuple[bool, ...]
    overlap_dp: tuple[bool, ...]
    offload_optimizer: tuple[float, ...]
    tp_within_node: bool = False
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def options(self) -> int:
        """Combinations of the options."""
        lists = (self.recompute, self.zero, self.overlap_tp, self.overlap_dp, self.offload_optimizer)
        return prod(map(len, lists))

    @property
    def size(self) -> int:
        """Combinations of everything, legal or not."""
        return prod(map(len, self.degrees.values())) * len(self.schedules) * self.options


def _recompute(quarters: int) -> tuple[tuple[str, int], ...]:
    return ("none", 0), ("selective", 0), *(("full", quarter) for quarter in range(1, quarters + 1))


def declare(model: Model, job: Job, cluster: Cluster, engine: Engine, width: Width = "wide") -> Space:
    """The space of a question before flags narrow it."""
    experts = max(block.feed_forward.experts for block in model.blocks)
    chunks = divisors(model.layers, MOST_CHUNKS) if not experts else (1, 2, 3, 4, 5, 6, 8)
    degrees: dict[str, tuple[Any, ...]] = {
        "tp": powers(min(cluster.inside.size, 64, cluster.ranks)),
        "cp": powers(min(64, cluster.ranks, job.sequence_length // 256 or 1)),
        "pp": divisors(cluster.ranks, min(model.layers, LONGEST_PIPELINE)),
        "ep": divisors(experts, cluster.ranks) if experts else (1,),
        "etp": powers(min(cluster.inside.size, 8)) if experts else (1,),
        "vpp": chunks,
        "micro_batch": MICRO_BATCHES,
        "sp": (False, True),
        "cp_kind": ("ring",),
        "moe_dispatch": ("all_to_all",),
    }
    stages = (3, 2, 0) if engine.name == "fsdp2" and width == "lean" else None
    return Space(
        degrees=degrees,
        schedules=SCHEDULES,
        recompute=_recompute(QUARTERS[width]),
        quarters=QUARTERS[width],
        zero=tuple((stage, False) for stage in stages) if stages else ZERO[width],
        overlap_tp=OVERLAP[width],
        overlap_dp=OVERLAP[width],
        offload_optimizer=OFFLOAD[width],
    )
