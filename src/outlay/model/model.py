"""The model: its shape as frozen data. A layer is a block; layers of one kind are counted once and multiplied."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeVar

from .parts import AnyPart, Attention, CompressedAttention, Experts, FeedForward

PartKind = TypeVar("PartKind", bound=AnyPart)


@dataclass(frozen=True)
class Sublayer:
    """Parts that read the stream together and are added to it; usually one."""

    parts: tuple[AnyPart, ...]
    norms: Literal["before", "after", "both", "none"] = "before"  # of the input, the output, both, or nowhere
    own_norms: bool = False  # each part has a norm of its own before it, else one serves all
    adds: bool = True  # its output is added to the stream, else it takes the stream's place
    borrowed: bool = False  # its weights are another layer's, and are counted there


@dataclass(frozen=True)
class Block:
    """One kind of layer."""

    name: str
    sublayers: tuple[Sublayer, ...]

    @cached_property
    def parts(self) -> tuple[AnyPart, ...]:
        """All parts, in order."""
        return tuple(part for sublayer in self.sublayers for part in sublayer.parts)

    @cached_property
    def attention(self) -> Attention | None:
        """Its attention, if it has one."""
        return next(of_kind(Attention, self.parts), None)

    @cached_property
    def compressed(self) -> CompressedAttention | None:
        """Its attention over compressed keys, if it has one."""
        return next(of_kind(CompressedAttention, self.parts), None)

    @cached_property
    def experts(self) -> Experts | None:
        """Its experts, if it has any."""
        return next(of_kind(Experts, self.parts), None)

    @cached_property
    def feed_forward(self) -> FeedForward | None:
        """Its dense feed-forward part, if it has one."""
        return next(of_kind(FeedForward, self.parts), None)


def with_extra(model: "Model", parameters: int) -> "Model":
    """The model with parameters beside it, such as those of a vision tower."""
    said = f"extra parameters {parameters:,}: on the first stage; no FLOPs and no activations of them are counted"
    kept = (note for note in model.notes if not note.startswith("extra parameters "))
    return replace(model, extra_parameters=parameters, notes=(*kept, said))


def of_kind(kind: type[PartKind], parts: Iterable[AnyPart]) -> Iterator[PartKind]:
    """The parts of one kind."""
    return (part for part in parts if isinstance(part, kind))


def decoder_block(
    name: str,
    attention: AnyPart,
    feed_forward: AnyPart,
    norms: Literal["before", "after", "both", "none"] = "before",
    parallel: bool = False,
) -> Block:
    """The usual layer: attention, then feed-forward; parallel, both read one stream through norms of their own."""
    if parallel:
        return Block(name, (Sublayer((attention, feed_forward), norms, own_norms=True),))
    return Block(name, (Sublayer((attention,), norms), Sublayer((feed_forward,), norms)))


@dataclass(frozen=True)
class Model:
    """A decoder-only language model. `pattern` gives the index in `blocks` of each layer, in order."""

    name: str
    family: str
    hidden: int
    vocab: int
    blocks: tuple[Block, ...]
    pattern: tuple[int, ...]
    norm: Literal["rms", "layer"] = "rms"
    norm_weights: int = 1  # parameters a value of a norm: a scale; 2 with a shift, 0 without both
    final_norm: bool = True
    tied: bool = False  # the head uses the embedding's matrix
    head_bias: bool = False
    positions: int = 0  # learned position vectors
    spare_vectors: int = 0  # vectors of the embedding that the head does not have
    embedding_norm: bool = False
    embedding_width: int = 0  # of a vector in the table, projected to hidden and back; 0: hidden
    streams: int = 1  # copies of the hidden vector that go from layer to layer
    before: tuple[AnyPart, ...] = ()  # parts between the embedding and the first layer
    after: tuple[AnyPart, ...] = ()  # parts between the last layer and the head
    dropout: bool = False  # dropout after attention and feed-forward, and inside attention
    trained_length: int = 0  # tokens; the sequence length of its training, 0 if not stated
    mtp_layers: int = 0  # multi-token prediction modules: counted beside the model, never inside it
    mtp_blocks: tuple[Block, ...] = ()  # their layers; where it is empty, each has one of the last kind
    extra_parameters: int = 0  # beside the language model: trained, on the first stage, whole on every tp rank
    notes: tuple[str, ...] = field(default=())  # what the reader assumed, and what it does not count

    @property
    def layers(self) -> int:
        """How many layers the model has."""
        return len(self.pattern)

    @cached_property
    def experts(self) -> int:
        """Experts of a layer that has them; 0 without."""
        return max((part.experts for part in of_kind(Experts, self.parts)), default=0)

    @cached_property
    def parts(self) -> tuple[AnyPart, ...]:
        """All parts of all kinds of layer."""
        return tuple(part for block in self.blocks for part in block.parts)

    @cached_property
    def ends(self) -> tuple[Block, Block]:
        """What stands before the first layer and behind the last one, beside embedding and head."""
        return tuple(
            Block(name, (Sublayer(parts, "none", adds=False),) if parts else ())
            for name, parts in (("embedding", self.before), ("head", self.after))
        )  # type: ignore[return-value]
