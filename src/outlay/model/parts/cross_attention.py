"""Attention whose keys and values come from another sequence: the tokens of an image."""

from dataclasses import dataclass
from typing import Literal

from ...engines.engine import KernelSet
from ..moves import Move
from ..operations import Linear, Pointwise, Row
from .kernels import CROSS_CORE, SCALE
from .part import GATHER, SCATTER, Dimensions, Frame, copied, cut, norm, whole


@dataclass(frozen=True)
class CrossAttention:
    """Queries of text over keys of an image, behind a learned scalar.

    The length of the other sequence is not in a config: keys, values and scores have parameters, and neither FLOPs
    nor bytes.
    """

    heads: int
    kv_heads: int
    head_dim: int
    kind: Literal["cross_attention"] = "cross_attention"

    def dimensions(self) -> Dimensions:
        """Heads are cut; those of keys and values are copied where they are fewer than the ranks."""
        k = copied(self.kv_heads, self.head_dim)
        return {
            "heads": (cut(self.heads),),
            "head_dim": whole(self.head_dim),
            "q": (cut(self.heads, self.head_dim),),
            "k": (k,),
            "image_kv": (k, k),
        }

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """Projections, the core, the output projection, the scalar."""
        return (
            Move("gather_q", "tp", "T", "hidden", **GATHER),
            Linear("q", "T", "hidden", "q", waits="W" if shared else "G"),
            norm(frame, kernels, "q_norm", "T", "q", weights="head_dim", groups="heads"),
            Linear("image_kv", "none", "hidden", "image_kv"),
            norm(frame, kernels, "image_k_norm", "none", "k", weights="head_dim"),
            Pointwise("cross_attention", "T", "q", CROSS_CORE),
            Linear("proj", "T", "q", "hidden", waits="T"),
            Move("scatter_proj", "tp", "T", "hidden", **SCATTER),
            Pointwise("attention_scale", "S", "hidden", SCALE, weights="one"),
        )
