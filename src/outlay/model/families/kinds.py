"""The distinct kinds of layer of a model, and their names: words for what tells them apart."""

from collections.abc import Sequence

from ..model import Block, Sublayer
from ..parts import Attention, CompressedAttention, Experts, FeedForward
from .family import Facts, Family


def blocks(family: Family, facts: Facts) -> tuple[tuple[Block, ...], tuple[int, ...]]:
    """The distinct kinds of layer, in order of appearance, and the kind of each layer."""
    layers = [family.layer(facts, place) for place in range(facts.layers)]
    seen = tuple(dict.fromkeys(layers))
    places = {kind: place for place, kind in enumerate(seen)}
    made = tuple(Block(name, kind) for name, kind in zip(_names(seen), seen, strict=True))
    return made, tuple(places[kind] for kind in layers)


def _names(kinds: Sequence[tuple[Sublayer, ...]]) -> list[str]:
    """A name for each kind: mixer, span and feed-forward part, each only where kinds differ in it."""
    words = [_words(kind) for kind in kinds]
    tells = [len({word[place] for word in words if word[place]}) > 1 for place in range(3)]
    plain = [[word for word, told in zip(each, tells, strict=True) if told and word] for each in words]
    names = ["-".join(told) or each[2] or each[0] for told, each in zip(plain, words, strict=True)]
    return [name if names.count(name) == 1 else f"{name}-{names[:place].count(name) + 1}"
            for place, name in enumerate(names)]  # fmt: skip


SPANS = {(False, False): "sliding", (False, True): "compressed", (True, True): "sparse"}


def _words(kind: tuple[Sublayer, ...]) -> tuple[str, str, str]:
    parts = [part for sublayer in kind for part in sublayer.parts]
    mixers = [part for part in parts if not isinstance(part, FeedForward | Experts)]
    attention = next((part for part in mixers if isinstance(part, Attention)), None)
    compressed = next((part for part in mixers if isinstance(part, CompressedAttention)), None)
    if compressed:
        return "", SPANS[compressed.index_heads > 0, compressed.rate > 0], "moe"
    span = "" if attention is None else "sliding" if attention.window else "chunked" if attention.chunk else "full"
    experts = any(isinstance(part, Experts) for part in parts)
    dense = any(isinstance(part, FeedForward) for part in parts)
    return "+".join(dict.fromkeys(part.kind for part in mixers)), span, "moe" if experts else "dense" if dense else ""
