"""The model of a row: a catalogue model with the same dimensions or name, else one built from the dimensions."""

import re
from dataclasses import replace
from functools import cache

from ..model import catalogue
from ..model.model import Model, decoder_block
from ..model.parts import Attention, Experts, FeedForward
from . import words
from .read import Run, Skip
from .table import Source, catalogue_name, dimensions, style_of, styles

EXPERTS = r"\bmoe\b|experts?\b|\d+x\d+b|[-_ ]a\d+b|deepseek|grok|kimi|gpt[-_ ]?oss|mixtral|switch"
COLUMNS = ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab")


Given = dict[str, int | None]  # dimensions by their columns, None where nothing is published


def model_of(run: Run, source: Source, sequence: int) -> tuple[Model, tuple[str, ...]]:
    """The model of a row, and what was assumed. Raises Skip where the row does not tell."""
    given: Given = {column: run.count(column) for column in COLUMNS}
    name = run.text("model")
    # GPTs are called by their size, and each table means its own: such a name alone is not the catalogue's
    named = None if source.style.startswith("gpt") and not given["layers"] else _named(name, given, run.text("other"))
    if named:
        return _from_catalogue(named, given)
    reported, report = dimensions(name, run.text("source"))
    wanting = {column: value for column, value in reported.items() if given.get(column) is None}
    given |= wanting
    for column in ("layers", "hidden"):
        if given[column] is None:
            raise Skip(f"{column} not published")
    model, said = _built(run, source, given, sequence)
    return model, (*((f"{', '.join(wanting)} from {report}",) if wanting else ()), *said)


def _named(name: str, given: Given, remarks: str) -> Model | None:
    """The catalogue model of that name, if no dimension of the row disagrees."""
    found = catalogue_name(name) or _catalogued(_plain(name))
    if not found:
        return None
    model = _trimmed(_loaded(found), given["layers"], words.dense_layers_of(remarks))
    shape = dict(zip(COLUMNS, _shape(model), strict=True))
    if model.experts > 0:
        shape |= {"ffn": 0, "kv_heads": 0}  # tables print either width of an expert model, and heads of a latent one
    agree = all(value is None or not shape[column] or shape[column] == value for column, value in given.items())
    return model if agree else None


def _trimmed(model: Model, layers: int | None, dense: int | None) -> Model:
    """A model of dense layers and then layers with experts, with so many of each; the same where nothing is said."""
    if layers is None or dense is None or layers <= dense:
        return model
    pattern = (*model.pattern[:1] * dense, *model.pattern[-1:] * (layers - dense))
    return replace(model, name=f"{model.name}-l{layers}", pattern=pattern, mtp_layers=0, mtp_blocks=())


_loaded = cache(catalogue.load)  # rows of one model are many


@cache
def _catalogued(plain: str) -> str:
    return next((one for one in catalogue.names() if _plain(one) == plain), "")


def _plain(name: str) -> str:
    """A name without what tables write differently: capitals, blanks, hyphens, a release after it."""
    return re.sub(r"[^a-z0-9.]", "", re.sub(r"\s+2\d\.\d\d\b", "", name.lower()))


@cache
def _shape(model: Model) -> tuple[int, ...]:
    block = model.blocks[model.pattern[-1]]
    heads = (block.attention.heads, block.attention.kv_heads) if block.attention else (0, 0)
    width = block.feed_forward.width if block.feed_forward else 0
    return model.layers, model.hidden, *heads, width, model.vocab


def _from_catalogue(model: Model, given: Given) -> tuple[Model, tuple[str, ...]]:
    blank = [column for column in COLUMNS if given[column] is None]
    said = (f"{', '.join(blank)} not published: {model.name} of the catalogue",) if blank else ()
    return model, said


def _built(run: Run, source: Source, given: Given, sequence: int) -> tuple[Model, tuple[str, ...]]:
    said = []
    experts = words.experts_of(run.text("other"))
    if not experts[0] and re.search(EXPERTS, " ".join(map(run.text, ("model", "other", "notes"))), re.IGNORECASE):
        raise Skip("experts are not in the header, and the model is not in the catalogue at this size")
    style = style_of(run.text("model"), source)
    if not style:
        raise Skip("the shape of the layers is not known: neither source nor name tells")
    if given["vocab"] is None and source.vocab:
        given = given | {"vocab": source.vocab}
        said.append(f"vocabulary {source.vocab:,}")
    sizes = _sizes(given, style)
    model = _model(style, sequence, experts, *sizes)
    alike = _alike(model)
    if alike:
        return alike, (*said, f"{alike.name} of the catalogue has these dimensions")
    return model, (*said, f"shape of {style}: {styles()[style].says}")


def _sizes(given: Given, style: str) -> tuple[int, int, int, int, int, int, int]:
    for column in ("heads", "vocab"):
        if given[column] is None:
            raise Skip(f"{column} not published")
    layers, hidden, heads, kv_heads, ffn, vocab = (given[column] or 0 for column in COLUMNS)
    if not ffn and styles()[style].gated:
        raise Skip("ffn not published")
    width = given.get("head_dim") or hidden // heads
    if not given.get("head_dim") and hidden % heads:
        raise Skip(f"{heads} heads do not divide hidden {hidden:,}")
    if layers > 10_000:
        raise Skip(f"{layers:,} layers are beyond any model")
    return layers, hidden, heads, kv_heads or heads, width, ffn or 4 * hidden, vocab


@cache
def _model(
    style: str, sequence: int, experts: tuple[int, int],
    layers: int, hidden: int, heads: int, kv_heads: int, width: int, ffn: int, vocab: int,
) -> Model:  # fmt: skip
    """A decoder of one kind of layer."""
    shape = styles()[style]
    attention = Attention(heads, kv_heads, width, width, qkv_bias=shape.bias, out_bias=shape.bias)
    if experts[0]:
        block = decoder_block("moe", attention, Experts(*experts, ffn, shape.gated))
    else:
        block = decoder_block("dense", attention, FeedForward(ffn, shape.gated, bias=shape.bias))
    return Model(
        f"{style}-l{layers}-h{hidden}", style, hidden, vocab, (block,), (0,) * layers,
        norm=shape.norm, norm_weights=1 if shape.norm == "rms" else 2, tied=shape.tied, dropout=shape.dropout,
        positions=sequence if shape.positions else 0,
        trained_length=sequence,
    )  # fmt: skip


@cache
def _alike(model: Model) -> Model | None:
    """A catalogue model that counts the same: equal dimensions, blocks and ends."""
    for other in map(_loaded, catalogue.names()):
        same = (_shape(other), other.blocks, other.norm, other.tied, other.dropout) == (
            _shape(model), model.blocks, model.norm, model.tied, model.dropout,
        )  # fmt: skip
        if same and bool(other.positions) == bool(model.positions) and other.positions >= model.positions:
            return other
    return None
