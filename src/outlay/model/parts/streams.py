"""Parts of models whose layers carry several streams of hidden vectors, and mix them around each step."""

from dataclasses import dataclass
from typing import Literal

from ...engines.engine import KernelSet
from ..operations import Linear, Pointwise, Row
from .kernels import COLLAPSED, CORRECTED, EXPANDED, MIXING, PREDICTED, SCALE, SCALES, STREAMS_NORM, with_one
from .part import Dimensions, Frame, norm, whole


@dataclass(frozen=True)
class HyperConnection:
    """Manifold-constrained hyper-connections around one step of a layer.

    "collapse": weights from all streams, and one vector from them; "expand": the step's output onto all streams, which
    are mixed by a matrix of streams x streams; "head": the last collapse. Source: DeepSeek-V4's class in transformers.
    """

    of: str
    streams: int
    step: Literal["collapse", "expand", "head"]
    kind: Literal["hyper_connection"] = "hyper_connection"

    def dimensions(self) -> Dimensions:
        """Nothing is cut."""
        head = self.step == "head"
        return {
            "streams": whole(self.streams),
            "mixing": whole(self.streams if head else (2 + self.streams) * self.streams),
            "mixing_scales": whole(1 if head else 3),
        }

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """Weights and collapse; or the mix and the expansion."""
        one = 1 / self.streams  # of what all streams hold
        if self.step == "expand":
            return (Pointwise(f"{self.of}_expand", "S", "stream", with_one(EXPANDED, one), work="streams"),)
        return (
            Pointwise(f"{self.of}_streams_norm", "S", "stream", STREAMS_NORM),
            Linear(f"{self.of}_mixing", "S", "stream", "mixing", biased=True),
            Pointwise(f"{self.of}_mixing_weights", "S", "mixing", MIXING, weights="mixing_scales"),
            Pointwise(f"{self.of}_collapse", "S", "stream", with_one(COLLAPSED, one, kept=False)),
        )


@dataclass(frozen=True)
class AltUp:
    """Alternating updates: one stream goes through the layer, the others are predicted from all and then corrected.

    Source: Gemma 3n's class in transformers.
    """

    streams: int
    step: Literal["predict", "correct"]
    kind: Literal["altup"] = "altup"

    def dimensions(self) -> Dimensions:
        """Nothing is cut."""
        return {"streams": whole(self.streams), "stream_pairs": whole(self.streams**2)}

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """A router, its coefficients, and the update; the router's weights serve both steps."""
        predicts = self.step == "predict"
        one = 1 / self.streams  # of what all streams hold
        own = "one" if predicts else "none"
        router = (
            norm(frame, kernels, f"{self.step}_norm", weights="hidden" if predicts else "none"),
            Linear(f"{self.step}_router", "S", "hidden", "streams", waits="S", owned=own),
            Linear(f"{self.step}_weights", "S", "streams", "stream_pairs" if predicts else "streams", waits="S"),
        )
        if predicts:
            return *router, Pointwise("predict_streams", "S", "stream", PREDICTED, work="streams")
        return (
            *router,
            Pointwise("correct_streams", "S", "stream", with_one(CORRECTED, one, back=False)),
            Pointwise("corrected_scale", "S", "hidden", SCALES, weights="hidden"),
        )


@dataclass(frozen=True)
class StreamProjections:
    """The further streams made from the embedding, each by a matrix; or brought back behind the last layer."""

    further: int  # hidden values of all further streams
    step: Literal["spread", "join"]
    kind: Literal["stream_projections"] = "stream_projections"

    def dimensions(self) -> Dimensions:
        """Nothing is cut."""
        return {"further": whole(self.further)}

    def rows(self, frame: Frame, kernels: KernelSet, shared: bool) -> tuple[Row, ...]:
        """One matrix of hidden x hidden a stream, and the scaling of what comes out."""
        if self.step == "spread":
            made = Linear("spread_streams", "S", "hidden", "further", waits="S")
        else:
            made = Linear("join_streams", "S", "further", "hidden", waits="S")
        return made, Pointwise(f"{self.step}_scale", "S", "further", SCALE)
