"""The parts that layers are made of: a file a kind, each with its dimensions and its rows.

Those that few models have are loaded by the families that use them.
"""

from typing import Annotated, Any, TypeAlias

from .attention import Attention
from .compressed import CompressedAttention
from .experts import Experts
from .feed_forward import FeedForward
from .part import Part

__all__ = ["AnyPart", "Attention", "CompressedAttention", "Experts", "FeedForward", "every_kind"]


def every_kind() -> tuple[type[Part], ...]:
    """The class of every kind of part."""
    from .adapter import Adapter
    from .cross_attention import CrossAttention
    from .delta import DeltaNet
    from .doge import DynamicMask, ProductKeys
    from .lightning import Lightning
    from .mamba import Mamba, Mamba2
    from .per_layer import PerLayerInput, PerLayerTable
    from .projection import Projection
    from .recurrent import ChannelMix, RecurrentUnit, TimeMix
    from .short_conv import ShortConv
    from .steps import LowRank, Normed, Scaling
    from .streams import AltUp, HyperConnection, StreamProjections
    from .zaya import ConvolvedHeads, RouterNetwork

    return (
        Attention, FeedForward, Experts, CompressedAttention, ConvolvedHeads, DynamicMask, ProductKeys, RouterNetwork,
        PerLayerInput, PerLayerTable, LowRank, Normed, Scaling, AltUp, HyperConnection, StreamProjections,
        CrossAttention, Projection, Mamba, Mamba2, DeltaNet, Lightning, ShortConv, RecurrentUnit, TimeMix, ChannelMix,
        Adapter,
    )  # fmt: skip


class ByKind:
    """Tells parts apart by their `kind` where they are read back from JSON."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """One schema a kind: a fault then names a field of that kind alone."""
        from dataclasses import fields

        from pydantic_core import core_schema

        known: tuple[Any, ...] = every_kind()
        named = {next(field.default for field in fields(one) if field.name == "kind"): one for one in known}
        kinds = {kind: handler.generate_schema(one) for kind, one in named.items()}
        return core_schema.tagged_union_schema(kinds, discriminator="kind")


AnyPart: TypeAlias = Annotated[Part, ByKind()]
