"""Delta rules: Gated DeltaNet, and Kimi Delta Attention (KDA), whose decay has a value a channel."""

from dataclasses import dataclass, replace
from typing import Literal

from ...engines.engine import KernelSet
from ..operations import Linear, Pointwise, Row
from ..scan import Scan
from .kernels import QUERY_KEY_NORMS
from .part import Dimensions, Frame, cut, whole
from .scanning import FLOAT, FP32, convolve, exchange, project_in, project_out, tail, taps

CHUNK = 64  # tokens, of the public kernels; source: flash-linear-attention, chunk_gated_delta_rule and chunk_kda


@dataclass(frozen=True)
class DeltaNet:
    """Gated DeltaNet, or KDA where the decay is a value a channel. Tensor parallelism cuts the heads.

    FLOPs are those of the kernel of flash-linear-attention, which forms the inverse of each chunk's triangle and
    multiplies it with keys and values. Kept is what that kernel saves: queries and keys after their norms, repeated to
    the value heads, values, decays, strengths and the chunks' matrices; then what the gated norm and the projection
    out save. Read from the kernels' save lists. Where the rule has no norms, those of queries and keys keep them too,
    before they are repeated.
    """

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    taps: int = 4
    decay: Literal["head", "channel"] = "head"
    gates: Literal["projected", "low_rank", "full"] = "projected"  # how decay and output gate come from the stream
    kind: Literal["delta"] = "delta"

    def dimensions(self) -> Dimensions:
        """Heads of keys and of values are cut."""
        k, v, dk, dv = self.key_heads, self.value_heads, self.key_dim, self.value_dim
        by_channel = self.decay == "channel"
        gates = dv if self.gates != "low_rank" else 0
        decay = (dk if self.gates == "full" else 0) if by_channel else 1
        keys, values = cut(k, 2 * dk), cut(v, dv)
        # a 16-bit matrix of a chunk's tokens a head: the inverse, and for KDA that of queries and keys
        matrices = CHUNK * (2 if by_channel else 1)
        # a decay and a strength a head, and a decay a channel; statistics of queries and keys where the rule has norms
        floats = 2 + (dk if by_channel else 0)
        return {
            "scan_in": (keys, cut(v, dv + gates + decay + 1)),
            "conv": (keys, values),
            "inner": (values,),
            "scan_heads": (cut(k), cut(v)),
            "delta_heads": (cut(v),),
            "delta_value": whole(dv),
            "gate_rank": whole(dv),
            "decay_gate": (cut(v, dk),),
            "scan_weights": (cut(v, 1 + (dk if by_channel else 1)),),
            "scan_work": (cut(v, CHUNK * (3 * dk + 2 * dv) + 3 * dk * dv),),
            "scan_moves": (cut(v, 2 * dk + 2 * dv + (FP32 * dk if by_channel else FP32) + FP32),),
            "scan_keeps": (cut(v, 2 * dk + dv + matrices),),
            "scan_bytes": (cut(v, FLOAT * floats),),
            "scan_bytes_normed": (cut(v, FLOAT * (floats + 2)),),
            "normed": (keys,),
            "normed_heads": (cut(k, 2),),
            "scan_swap": (keys, cut(v, 2 * dv + gates + decay + 1)),
            "state": (cut(v, FP32 * dk * dv), *tail((keys, values), self.taps)),
            **taps(self.taps, False),
        }

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """In, gates, convolution, the rule, gated norm, out."""
        return (
            *project_in(shared),
            *self._low_rank(),
            *exchange(),
            convolve(),
            *self._rule(kernels),
            Pointwise("gated_norm", "T", "inner", kernels.gated_norm, weights="delta_value", groups="delta_heads"),
            *project_out(),
        )  # fmt: skip

    def _rule(self, kernels: KernelSet) -> tuple[Row, ...]:
        """The rule; norms of queries and keys are in its kernel, or before they are repeated: their output waits."""
        rule = Scan(
            "delta_rule", "T", "scan_moves", work="scan_work", keeps="scan_keeps", keeps_bytes="scan_bytes",
            weights="scan_weights",
        )  # fmt: skip
        if kernels.fuses_scan:
            return (replace(rule, keeps_bytes="scan_bytes_normed"),)
        return Pointwise("query_key_norms", "T", "normed", QUERY_KEY_NORMS, groups="normed_heads"), rule

    def _low_rank(self) -> tuple[Row, ...]:
        """Decay and output gate through a vector as wide as a head, which every rank has."""
        if self.gates != "low_rank":
            return ()
        return (
            Linear("decay_down", "T", "hidden", "gate_rank"),
            Linear("decay_up", "T", "gate_rank", "decay_gate", waits="T"),
            Linear("gate_down", "T", "hidden", "gate_rank"),
            Linear("gate_up", "T", "gate_rank", "inner", waits="T"),
        )
