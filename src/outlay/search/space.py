"""The declared space: which values every field of a layout may take, and how many combinations that makes.

Fields that constrain each other are *degrees*: their product is filtered once by the rules. Fields that constrain
nothing are *options*: every legal row of degrees takes every option, so a block needs no mask.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

from ..cluster.accelerator import Cluster
from ..engines.engine import Engine
from ..job import Job
from ..layout.degrees import divisors, powers
from ..layout.recipe_rules import zero_stages
from ..model.model import Model
from ..model.modules import other_modules, usual_modules

Width = Literal["lean", "middle", "wide", "full"]

DEGREES = (
    "tp", "cp", "pp", "ep", "etp", "vpp", "micro_batch", "sp", "cp_kind", "moe_dispatch", "graphs", "loss_chunks",
)  # fmt: skip

# Full recompute of 1/n, 2/n .. n/n of a stage's layers; 24 has more divisors, for engines that take every n-th layer.
PARTS = {"lean": 1, "middle": 8, "wide": 8, "full": 24}
OFFLOAD = {"lean": (0.0,), "middle": (0.0, 1.0), "wide": (0.0, 0.5, 1.0), "full": (0.0, 0.5, 1.0)}
OVERLAP = {"lean": (True,), "middle": (True,), "wide": (False, True), "full": (False, True)}
# ZeRO stage, and in how many scale-up domains shards stay (HSDP); 0: in all.
WIDE_ZERO = ((0, 0), (1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (3, 1))
ZERO = {
    "lean": ((1, 0), (2, 0), (3, 0)),
    "middle": ((0, 0), (1, 0), (2, 0), (3, 0), (1, 1), (3, 1)),
    "wide": WIDE_ZERO,
    "full": (*WIDE_ZERO, *((stage, domains) for domains in (2, 4, 8) for stage in (1, 2, 3))),
}
MICRO_BATCHES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
LONGEST_PIPELINE = 64
MOST_CHUNKS = 16
MOST_CONTEXT = 64
DISPATCHES = ("all_to_all", "deduplicated")
MOST_CELLS = 20_000_000  # combinations of degrees, legal or not, that a search lists


@dataclass(frozen=True)
class Space:
    """Values of every field that a search goes through."""

    degrees: Mapping[str, tuple[Any, ...]]
    schedules: tuple[str, ...]
    recompute: tuple[tuple[str, int], ...]  # kind, and parts of the stage's layers under `full`
    recompute_modules: tuple[str, ...]  # under `selective`
    other_modules: tuple[tuple[str, ...], ...]  # and other choices of them
    parts: int
    zero: tuple[tuple[int, int], ...]  # stage, and scale-up domains in which shards stay; 0: in all
    overlap_tp: tuple[bool, ...]
    overlap_ep: tuple[bool, ...]
    overlap_dp: tuple[bool, ...]
    offload_optimizer: tuple[float, ...]
    offload_parameters: tuple[float, ...]
    offload_activations: tuple[float, ...]

    @property
    def options(self) -> int:
        """Combinations of the options."""
        hidden = (self.overlap_tp, self.overlap_ep, self.overlap_dp)
        away = (self.offload_optimizer, self.offload_parameters, self.offload_activations)
        again = len(self.recompute) + len(self.other_modules)
        return again * prod(map(len, (self.zero, *hidden, *away)))

    @property
    def domains(self) -> tuple[int, ...]:
        """The numbers of scale-up domains in which shards may stay, each once."""
        return tuple(sorted({domains for _, domains in self.zero if domains}))

    @property
    def size(self) -> int:
        """Combinations of everything, legal or not."""
        return prod(map(len, self.degrees.values())) * len(self.schedules) * self.options


def recompute_choices(parts: int, engine: Engine) -> tuple[tuple[str, int], ...]:
    """Nothing, modules, and every share of the layers, of those that the engine has."""
    shares = {"any": range(1, parts + 1), "every_nth": divisors(parts), "all": (parts,)}[engine.recompute_part]
    every = (("none", 0), ("selective", 0), *(("full", part) for part in shares))
    return tuple(pair for pair in every if pair[0] in engine.recomputes)


def declare(model: Model, job: Job, cluster: Cluster, engine: Engine, width: Width = "wide") -> Space:
    """The space of a question before flags narrow it: lean, middle, wide or full.

    `full` holds also what costs time to search and seldom wins: every kind of context parallelism and of dispatch of
    the engine, exchange between experts that is hidden, parts of a layer in CUDA graphs, weights and activations in
    host memory, other modules and finer numbers of layers recomputed, shards inside several domains.
    """
    experts, full = model.experts, width == "full"
    degrees: dict[str, tuple[Any, ...]] = {
        "tp": powers(min(cluster.inside.size, cluster.ranks)),
        "cp": powers(min(MOST_CONTEXT, cluster.ranks, job.sequence_length // 256 or 1)),
        "pp": divisors(cluster.ranks, min(model.layers, LONGEST_PIPELINE)),
        "ep": divisors(experts, cluster.ranks) if experts else (1,),
        "etp": powers(min(cluster.inside.size, 8, cluster.ranks)) if experts else (1,),
        "vpp": (1, 2, 3, 4, 5, 6, 8) if experts else divisors(model.layers, MOST_CHUNKS),
        "micro_batch": tuple(size for size in MICRO_BATCHES if size <= job.global_batch),
        "sp": (False, True),
        "cp_kind": engine.cp_kinds if full else engine.cp_kinds[:1],
        "moe_dispatch": DISPATCHES if full and experts else DISPATCHES[:1],
        "graphs": ("partial",) if full and experts and engine.expert_floor_seconds else ("none",),  # never slower
        "loss_chunks": (1,),
    }
    stages = zero_stages(job, engine)
    all_or_none = (0.0, 1.0) if full else (0.0,)
    return Space(
        degrees=degrees,
        schedules=tuple(dict.fromkeys((*engine.schedules, "1f1b"))),  # 1F1B: also of no pipeline
        recompute=recompute_choices(PARTS[width], engine),
        recompute_modules=usual_modules(model, engine),
        other_modules=other_modules(model, engine) if full else (),
        parts=PARTS[width],
        zero=tuple(pair for pair in ZERO[width] if pair[0] in stages) or ((engine.zero, 0),),
        overlap_tp=OVERLAP[width],
        overlap_ep=(False, True) if full and experts and engine.ep_hidden else (False,),
        overlap_dp=OVERLAP[width],
        offload_optimizer=OFFLOAD[width] if "optimizer" in engine.offloads else (0.0,),
        offload_parameters=all_or_none if "parameters" in engine.offloads else (0.0,),
        offload_activations=OFFLOAD["wide"] if full and "activations" in engine.offloads else (0.0,),
    )
