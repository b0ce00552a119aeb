"""The parts that layers are made of: a file a kind, each with its dimensions and its rows."""

from typing import Annotated, Any, TypeAlias, get_args

from .adapter import Adapter
from .attention import Attention
from .compressed import CompressedAttention
from .cross_attention import CrossAttention
from .delta import DeltaNet
from .doge import DynamicMask, ProductKeys
from .experts import Experts
from .feed_forward import FeedForward
from .lightning import Lightning
from .mamba import Mamba, Mamba2
from .per_layer import PerLayerInput, PerLayerTable
from .projection import Projection
from .recurrent import ChannelMix, RecurrentUnit, TimeMix
from .short_conv import ShortConv
from .steps import LowRank, Normed, Scaling
from .streams import AltUp, HyperConnection, StreamProjections
from .zaya import ConvolvedHeads, RouterNetwork

__all__ = ["AnyPart", "Attention", "CompressedAttention", "CrossAttention", "Experts", "FeedForward", "Projection"]


class ByKind:
    """Tells parts apart by their `kind` where they are read back from JSON."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """One schema a kind: a fault then names a field of that kind alone."""
        from pydantic_core import core_schema

        kinds = {one.__dataclass_fields__["kind"].default: handler.generate_schema(one) for one in get_args(source)}
        return core_schema.tagged_union_schema(kinds, discriminator="kind")


AnyPart: TypeAlias = Annotated[
    Attention | FeedForward | Experts | CompressedAttention | ConvolvedHeads | DynamicMask | ProductKeys | RouterNetwork
    | PerLayerInput | PerLayerTable | LowRank | Normed | Scaling | AltUp | HyperConnection | StreamProjections
    | CrossAttention | Projection | Mamba | Mamba2 | DeltaNet | Lightning | ShortConv | RecurrentUnit | TimeMix
    | ChannelMix | Adapter,
    ByKind(),
]  # fmt: skip
