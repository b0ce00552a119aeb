"""Attention over a window of keys and over compressed ones (DeepSeek-V4): one key a token, which is its value too."""

from dataclasses import dataclass
from typing import Literal

from ...engines.engine import KernelSet
from ..moves import Move
from ..operations import Attention as Core
from ..operations import Linear, Pointwise, Row
from ..scan import Scores
from .kernels import INDEX, POOL, TURNED_BACK
from .part import GATHER, SCATTER, Dimensions, Frame, cut, norm, whole


@dataclass(frozen=True)
class CompressedAttention:
    """Attention whose keys are those of a window, and one compressed key for every `rate` tokens before.

    All heads share one key, and a key is also its value. Queries come through `query_rank`; the output leaves through
    `out_groups` groups of heads, each projected to `out_rank` values. `overlap`: a compressed key is made from two
    neighbouring windows. An indexer leaves `selected` compressed keys to a token, 0 leaves all.
    Source: DeepSeek-V4's class in transformers.
    """

    heads: int
    head_dim: int
    query_rank: int
    out_groups: int
    out_rank: int
    window: int
    rate: int = 0  # 0: no compressed keys
    overlap: bool = False
    index_heads: int = 0
    index_dim: int = 0
    selected: int = 0
    chunk: int = 0
    kind: Literal["compressed_attention"] = "compressed_attention"

    def dimensions(self) -> Dimensions:
        """Heads and groups of them are cut; the shared key and the indexer are whole on every rank."""
        series, rate = 2 if self.overlap else 1, self.rate or 1
        key, index = series * self.head_dim, series * self.index_dim
        compressed = self.head_dim / rate if self.rate else 0
        return {
            "heads": (cut(self.heads),),
            "head_dim": whole(self.head_dim),
            "q_rank": whole(self.query_rank),
            "q": (cut(self.heads, self.head_dim),),
            "k": whole(self.head_dim + compressed),
            "v": (),
            "o": (cut(self.heads, self.head_dim),),
            "compressed": whole(compressed),
            "compressor": whole(2 * key),
            "pooled": whole(self.rate * key),
            "out_groups": (cut(self.out_groups),),
            "out_group": whole(self.heads * self.head_dim // self.out_groups),
            "out_rank": whole(self.out_rank),
            "out_ranks": (cut(self.out_groups, self.out_rank),),
            "index_q": whole(self.index_heads * self.index_dim),
            "index_heads": whole(self.index_heads),
            "index_dim": whole(self.index_dim),
            "index_compressed": whole(self.index_dim / rate),
            "index_compressor": whole(2 * index),
            "index_pooled": whole(self.rate * index),
            "index_scores": whole(self.index_heads * (self.index_dim + 1)),
        }

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """Queries, the shared key, compressed keys, the core, the grouped output projection."""
        return (
            *self._queries(frame, kernels, shared),
            Linear("key", "S", "hidden", "head_dim"),
            norm(frame, kernels, "k_norm", "S", "head_dim"),
            Move("gather_key", "tp", "T", "head_dim", **GATHER),
            *(self._compressor(frame, kernels) if self.rate else ()),
            *(self._indexer(frame, kernels) if self.index_heads else ()),
            Pointwise("rotate", "T", "q", kernels.rotate),
            Move("ring_kv", "cp", "T_all", "ring_kv", times_back="two"),
            Core(
                "attention", fused=kernels.fused_attention, scores_keep=kernels.scores_keep,
                scores_move=kernels.scores_move, scores_move_back=kernels.scores_move_back, sinks=True,
            ),
            Pointwise("rotate_back", "T", "o", TURNED_BACK),
            Linear("out_groups", "T", "out_group", "out_rank", copies="out_groups"),
            Linear("proj", "T", "out_ranks", "hidden", waits="T"),
            Move("scatter_proj", "tp", "T", "hidden", **SCATTER),
        )  # fmt: skip

    def _queries(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        return (
            Linear("q_down", "S", "hidden", "q_rank", waits="none" if shared else "S"),
            norm(frame, kernels, "q_norm", "S", "q_rank"),
            Move("gather_q", "tp", "T", "q_rank", **GATHER),
            Linear("q_up", "T", "q_rank", "q", waits="G"),
            norm(frame, kernels, "q_head_norm", "T", "q", weights="none", groups="heads"),
        )

    def _compressor(self, frame: Frame, kernels: KernelSet) -> tuple[Row, ...]:
        """Keys and gates of every token, and their weighted sum over a window, with a bias a place in it."""
        return (
            Linear("compress", "S", "hidden", "compressor"),
            Pointwise("compress_windows", "S", "compressor", POOL, weights="pooled"),
            norm(frame, kernels, "compressed_norm", "S", "compressed", weights="head_dim"),
            Move("gather_compressed", "tp", "T", "compressed", **GATHER),
        )

    def _indexer(self, frame: Frame, kernels: KernelSet) -> tuple[Row, ...]:
        """A smaller compressor, whose keys every rank scores with a few small heads."""
        return (
            Linear("index_q", "S", "q_rank", "index_q"),
            Linear("index_compress", "S", "hidden", "index_compressor"),
            Pointwise("index_windows", "S", "index_compressor", POOL, weights="index_pooled"),
            norm(frame, kernels, "index_norm", "S", "index_compressed", weights="index_dim"),
            Linear("index_weights", "S", "hidden", "index_heads"),
            Pointwise("index_inputs", "S", "index_q", INDEX),
            Scores("index_scores", "S", "index_scores"),
        )
