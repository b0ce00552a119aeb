"""The layout: the degrees by which a run is cut, and its options. Two products divide the world:
tp * cp * pp * dp = etp * ep * pp * edp = ranks."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np

from ..formula import where
from ..job import AUTO
from ..quantities import Count, Flag
from ..ranges import AtLeast, Written
from ..schedule.laws import FOLDED

Degree = Annotated[int, AtLeast(1, 1e7)]
Share0to1 = Annotated[float, AtLeast(0, 1), Written("50%", unit="share")]

SCHEDULES = Literal[
    "gpipe", "1f1b", "interleaved", "looped_bfs", "interleaved_zb", "zb_h1", "zb_h2", "zbv", "dualpipe_v"
]

NOT_VARIED = {  # in a grid
    "recompute_modules": (), "recompute_group": 1, "loss_chunks": 1, "gather_unit": "layer", "keep_gathered": AUTO,
    "overlap_ep": False, "graphs": "none",
}  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """How a run is cut. Every numeric field holds a number or, made by `Layout.grid`, a broadcastable array."""

    __pydantic_config__ = {"extra": "forbid"}

    tp: Degree = AUTO
    "tensor parallel: each matrix is cut over so many ranks"
    sp: bool = AUTO
    "sequence parallel: what tensor parallelism does not cut is cut along the sequence"
    keep_gathered: bool = AUTO
    "under sp, gathered inputs of matrices wait for the backward pass; else they are gathered again"
    cp: Degree = AUTO
    "context parallel: the sequence is cut"
    cp_kind: Literal["ring", "all_gather", "ulysses"] = AUTO
    "how context parallel ranks exchange keys and values"
    pp: Degree = AUTO
    "pipeline parallel: stages"
    vpp: Degree = AUTO
    "chunks of layers a rank (virtual stages)"
    ep: Degree = AUTO
    "expert parallel: experts are dealt over so many ranks"
    etp: Degree = AUTO
    "tensor parallel inside an expert"
    moe_dispatch: Literal["all_to_all", "all_gather", "deduplicated"] = AUTO
    "how tokens reach their experts; deduplicated: one copy to each node, as DeepEP does"
    dp_replicate: Degree = AUTO
    "data parallel: groups of ranks that hold copies of the sharded state"
    dp_shard: Degree = AUTO
    "data parallel: ranks over which state is sharded"
    zero: Annotated[int, AtLeast(0, 3)] = AUTO
    "ZeRO stage: 1 shards the optimizer, 2 also gradients, 3 also weights"
    gather_unit: Literal["layer", "model"] = AUTO
    "what ZeRO-3 gathers at one time: a layer, or the whole model where nothing is wrapped by itself"
    accumulate_whole: bool = AUTO
    "gradients stay whole until the last micro-batch, from ZeRO-2 on (no_sync); else each one scatters them"
    micro_batch: Degree = AUTO
    "sequences in a micro-batch"
    schedule: SCHEDULES = AUTO
    "order of the pipeline's passes"
    recompute: Literal["none", "selective", "full"] = AUTO
    "what the backward pass computes again: nothing, modules of every layer, or whole layers"
    recompute_modules: Annotated[tuple[str, ...], Written("core_attn,mlp")] = AUTO
    "under selective recompute: core_attn, moe_act, layernorm, mla_up_proj, mlp, moe, shared_experts, all_but_matrices"
    recompute_layers: Annotated[int, AtLeast(0)] = AUTO
    "layers a stage recomputed in full; default: all of them under full recompute"
    recompute_group: Degree = AUTO
    "layers that run again together from one kept input, where a stage recomputes all its layers; default 1"
    loss_chunks: Degree = AUTO
    "parts of the tokens that head and loss run through one after the other, so that logits of one part stand"
    split: Annotated[tuple[Annotated[int, AtLeast(0, 10_000)], ...], Written("20,20,20,20", means="one a stage")] = AUTO
    "layers of each stage, in order, or best, which is sought; default: equal"
    overlap_tp: bool = AUTO
    "hide tensor-parallel exchange under chunks of the matrix multiplies"
    overlap_ep: bool = AUTO
    "hide the exchange between experts under compute"
    graphs: Literal["none", "partial", "full"] = AUTO
    "what is captured in CUDA graphs: parts of a layer, or the whole step"
    overlap_dp: bool = AUTO
    "hide data-parallel exchange under compute"
    offload_optimizer: Share0to1 = AUTO
    "share of the optimizer state kept in host memory"
    offload_parameters: Share0to1 = AUTO
    "share of the weights kept in host memory"
    offload_activations: Share0to1 = AUTO
    "share of the kept activations moved to host memory"

    @classmethod
    def grid(cls, **axes: Any) -> "Layout":
        """The array form, for search: fields hold broadcastable arrays. Not validated; must not leave the program."""
        return cls(**(dict.fromkeys((f.name for f in fields(cls)), 0) | NOT_VARIED | axes))

    @cached_property
    def dp(self) -> Count:
        """Data-parallel ranks: copies times shards."""
        return self.dp_replicate * self.dp_shard

    @cached_property
    def world(self) -> Count:
        """Ranks of the whole layout: tp * cp * pp * dp."""
        return self.tp * self.cp * self.pp * self.dp

    @cached_property
    def replicas(self) -> Count:
        """Ranks that hold the same dense weights before sharding: dp * cp."""
        return self.dp * self.cp

    @cached_property
    def edp(self) -> Count:
        """Ranks that hold the same experts before sharding: world / (etp * ep * pp)."""
        return self.tp * self.cp * self.dp / (self.etp * self.ep)

    @cached_property
    def shard(self) -> Count:
        """Ranks over which dense state is sharded: dp_shard * cp."""
        return self.dp_shard * self.cp

    @cached_property
    def expert_shard(self) -> Count:
        """Ranks over which expert state is sharded: edp / dp_replicate."""
        return where(self.edp > self.dp_replicate, self.edp / self.dp_replicate, 1)

    @cached_property
    def sliced(self) -> Count:
        """Ranks over which sequence parallelism cuts the tokens: tp, or 1 without it."""
        return where(self.sp, self.tp, 1)

    @cached_property
    def folded(self) -> Flag:
        """Whether the pipeline is a V, whose last chunk stands on the first rank."""
        return np.isin(self.schedule, FOLDED) if isinstance(self.schedule, np.ndarray) else self.schedule in FOLDED

    @cached_property
    def apart(self) -> Flag:
        """Whether both ends of the model stand on different ranks."""
        several: Flag = (self.pp > 1) & np.logical_not(self.folded)
        return several

    @cached_property
    def selective(self) -> Flag:
        """Whether modules of every layer are recomputed."""
        return self.recompute == "selective"


def joined(layout: Layout, **changed: Any) -> Layout:
    """The same layout of arrays with some fields changed."""
    return Layout.grid(**({f.name: getattr(layout, f.name) for f in fields(Layout)} | changed))


# The layout that divides nothing: its sizes are the undivided model's.
ALONE = Layout(
    tp=1, sp=False, keep_gathered=AUTO, cp=1, cp_kind="ring", pp=1, vpp=1, ep=1, etp=1, moe_dispatch="all_to_all",
    dp_replicate=1, dp_shard=1, zero=0, gather_unit="layer", accumulate_whole=False, micro_batch=1, schedule="1f1b",
    recompute="none", recompute_modules=(), recompute_layers=0, recompute_group=1, loss_chunks=1, split=(),
    overlap_tp=False, overlap_ep=False, graphs="none", overlap_dp=False,
    offload_optimizer=0.0, offload_parameters=0.0, offload_activations=0.0,
)  # fmt: skip
