"""The rows of each kind of layer, and of the two ends of a model. Dimension names are those of `layout.sizes`."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, count

from ..engines.engine import KernelSet
from .head import Head
from .model import Block, Model, Sublayer
from .moves import Move
from .operations import Attention, Linear, Pointwise, Row
from .parts.kernels import LOOKUP, NOTHING, POSITIONS
from .parts.part import GATHER, SCATTER, norm
from .scan import Scan

NORMS = ("input_norm", "post_norm")


def _residual(model: Model, kernels: KernelSet, name: str) -> Pointwise:
    return Pointwise(name, "S", "hidden", kernels.residual, mask=kernels.mask * model.dropout, passes=0)


def _norm_names() -> Iterator[str]:
    yield from NORMS
    yield from (f"norm_{place}" for place in count(3))


def _residual_names() -> Iterator[str]:
    yield "residual"
    yield from (f"residual_{place}" for place in count(2))


def rows(model: Model, block: Block, kernels: KernelSet) -> tuple[Row, ...]:
    """The operations of one kind of layer, in the order of the forward pass."""
    norms, residuals = _norm_names(), _residual_names()
    found = (_sublayer(model, sublayer, kernels, norms, residuals) for sublayer in block.sublayers)
    return tuple(apart(chain.from_iterable(found)))


def apart(found: Iterable[Row]) -> Iterator[Row]:
    """The same rows; the name of one that comes again has its number behind it."""
    seen: Counter[str] = Counter()
    for row in found:
        seen[row.name] += 1
        yield row if seen[row.name] == 1 else replace(row, name=f"{row.name}_{seen[row.name]}")


def _sublayer(
    model: Model, sublayer: Sublayer, kernels: KernelSet, norms: Iterator[str], residuals: Iterator[str]
) -> Iterator[Row]:  # fmt: skip
    for place, part in enumerate(sublayer.parts):
        shared = place > 0
        found: list[Row] = []
        if sublayer.norms in ("before", "both") and (sublayer.own_norms or not shared):
            found.append(norm(model, kernels, next(norms), shared_input=shared))
        found += part.rows(model, kernels, shared and not sublayer.own_norms)
        if sublayer.norms in ("after", "both"):
            alone = len(sublayer.parts) == 1
            name = FEED_FORWARD.get(part.kind, part.kind) if alone else part.kind
            found.append(norm(model, kernels, f"{name}_norm"))
        if sublayer.adds:
            found.append(_residual(model, kernels, next(residuals)))
        yield from map(_without_weights, found) if sublayer.borrowed else found


FEED_FORWARD = {"experts": "feed_forward"}  # kinds that take another one's place, and its names


def _without_weights(row: Row) -> Row:
    """The same operation with weights that are counted elsewhere."""
    if isinstance(row, Linear):
        return replace(row, owned="none")
    if isinstance(row, Attention):
        return replace(row, sinks=False)
    return replace(row, weights="none") if isinstance(row, Pointwise | Scan) else row


def embedding_rows(model: Model, kernels: KernelSet) -> tuple[Row, ...]:
    """What the first stage does before its layers."""
    mask, positions = kernels.mask * model.dropout, POSITIONS
    return (
        Pointwise("embedding", "S", "table", LOOKUP, weights="table_rows", per="table", mask=mask),
        Move("scatter_embedding", "tp", "T", "table", **{**SCATTER, "sent_back": "value"}),
        *([Linear("project_in", "S", "table", "hidden", waits="S")] if model.embedding_width else []),
        *(
            [Pointwise("positions", "S", "hidden", positions, weights="positions", per="hidden")]
            if model.positions
            else []
        ),
        *([norm(model, kernels, "embedding_norm")] if model.embedding_norm else []),
        *rows(model, model.ends[0], kernels),
        *([Pointwise("extra", "none", "none", NOTHING, weights="extra")] if model.extra_parameters else []),
    )


def _has_logits(kernels: KernelSet) -> bool:
    """Whether the loss keeps logits; a loss that is fused with the head makes and frees them in pieces."""
    return kernels.loss.keeps > 0 or kernels.loss.keeps_bytes > 0


def head_rows(model: Model, kernels: KernelSet) -> tuple[Row, ...]:
    """What the last stage does after its layers: final norm, logits, loss."""
    return (
        *rows(model, model.ends[1], kernels),
        *([norm(model, kernels, "final_norm")] if model.final_norm else []),
        *([Linear("project_out", "S", "hidden", "table", waits="S")] if model.embedding_width else []),
        Move("gather_head", "tp", "T", "table", **{**GATHER, "sent": "value"}),
        Head("head", "T", "table", "vocab", waits="G", owned="own_head", half=True, grows=True),
        *([Pointwise("head_bias", "T", "vocab", NOTHING, weights="vocab")] if model.head_bias else []),
        Pointwise(
            "loss", "T", "vocab", kernels.loss,
            extra=kernels.loss_workspace, extra_cut=kernels.cut_loss_workspace, turns=_has_logits(kernels),
            part="loss_part",
        ),
    )  # fmt: skip
