"""What of a model is trained: everything, some parts, or adapters beside frozen matrices.

A frozen matrix keeps its weight alone: no gradient, no optimizer state, and its input does not wait for backward. An
adapter is two more rows, A from the input to `rank` values and B from there to the output. Source: Hu et al. 2021.

The backward pass goes down to the first trained weight, counted by sections: the embedding, all layers together, the
head. A section that trains nothing, with nothing trained before it, has no tape, no gradients of inputs and no exchange
backward, as autograd has none. Any trained weight in a layer counts the backward pass through all layers, those before
it among them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from .blocks import apart
from .model import Block
from .moves import Move
from .operations import Attention, Linear, Pointwise, Row
from .parts.kernels import SCALE
from .quantised import Quantised

RANK = "adapter_rank"  # the dimension between A and B
RELIES = ("none", "W")  # what an input waits along where another row keeps the same one
OWN = {"T": "G", "S": "S"}  # what it waits along where no other does, by the tokens of the row that reads it

Piece = tuple[str, str]  # the name of a matrix in a checkpoint, and its output where the row has several

PIECES: Mapping[str, tuple[Piece, ...]] = {
    "qkv": (("q_proj", "q"), ("k_proj", "k"), ("v_proj", "v")),
    "q": (("q_proj", ""),),
    "q_down": (("q_a_proj", ""),),
    "q_up": (("q_b_proj", ""),),
    "kv_down": (("kv_a_proj", ""),),
    "kv_up": (("kv_b_proj", ""),),
    "proj": (("o_proj", ""),),
    "mlp_up": (("gate_proj", "ffn"), ("up_proj", "ffn")),
    "mlp_down": (("down_proj", ""),),
    "shared_up": (("gate_proj", "shared"), ("up_proj", "shared")),
    "shared_down": (("down_proj", ""),),
    "expert_up": (("expert_gate_proj", "expert"), ("expert_up_proj", "expert")),
    "expert_down": (("expert_down_proj", ""),),
    "scan_in": (("in_proj", ""),),
    "scan_out": (("out_proj", ""),),
}
"""The matrices of a checkpoint inside each row that adapters may stand beside."""

TARGETS: Mapping[str, tuple[str, ...]] = {
    "attention": ("q_proj", "k_proj", "v_proj", "q_a_proj", "q_b_proj", "kv_a_proj", "kv_b_proj", "o_proj"),
    "feed_forward": ("gate_proj", "up_proj", "down_proj"),
    "scan": ("in_proj", "out_proj"),
    "experts": ("expert_gate_proj", "expert_up_proj", "expert_down_proj"),
}
"""Words for several matrices at once."""


def _in_layer(section: str) -> bool:
    return section not in ("embedding", "head")


def _is_dense(row: Row) -> bool:
    return row.name.startswith(("mlp_", "shared_"))


def _is_expert(row: Row) -> bool:
    return isinstance(row, Linear) and row.copies == "E"


def _is_norm(row: Row) -> bool:
    return isinstance(row, Pointwise) and bool(re.search(r"(^|_)norm(_\d+)?$", row.name))


def _is_table(row: Row) -> bool:
    return row.name in ("embedding", "head")


FREEZES: Mapping[str, Callable[[str, Row], bool]] = {
    "embedding": lambda section, row: section == "embedding" and row.name != "extra",
    "extra": lambda section, row: row.name == "extra",
    "head": lambda section, row: section == "head" and not _is_norm(row),
    "layers": lambda section, row: _in_layer(section),
    "norms": lambda section, row: _is_norm(row),
    "router": lambda section, row: row.name.startswith("router"),
    "experts": lambda section, row: _is_expert(row),
    "feed_forward": lambda section, row: _in_layer(section) and _is_dense(row),
    "attention": lambda section, row: (
        _in_layer(section) and not (_is_norm(row) or _is_dense(row) or _is_expert(row) or row.name.startswith("router"))
    ),
}
"""Parts of a model that may be frozen, and the rows that they are."""


@dataclass(frozen=True)
class Training:
    """What is trained of a model."""

    adapter: Literal["none", "lora", "qlora", "dora"] = "none"
    targets: frozenset[str] = frozenset()  # matrices that have an adapter
    frozen: tuple[str, ...] = ()  # parts that are not trained, where there is no adapter

    @property
    def whole(self) -> bool:
        """Whether everything is trained."""
        return self.adapter == "none" and not self.frozen

    @property
    def table(self) -> bool:
        """Whether a table that embedding and head share is trained: freezing either freezes it."""
        return self.adapter == "none" and not {"embedding", "head"} & {*self.frozen}


def named_targets(words: Iterable[str]) -> frozenset[str]:
    """The matrices that some words name: those of a group, or one itself."""
    return frozenset(name for word in words for name in TARGETS.get(word, (word,)))


def pieces_of(row: Row, has_gate: bool) -> tuple[Piece, ...]:
    """The matrices inside a row that adapters may stand beside; an up projection is one where there is no gate."""
    name = re.sub(r"_\d+$", "", row.name)  # the second of its kind in a layer has a number behind its name
    found = PIECES.get(name, ())
    return found[1:] if name.endswith("_up") and len(found) == 2 and not has_gate else found


def trained_rows(
    block: Block, rows: tuple[Row, ...], how: Training, tied: bool = False, stored: float = 0
) -> tuple[Row, ...]:
    """The rows of a kind of layer, or of an end: frozen ones marked, and those of the adapters behind them.

    `tied`: embedding and head share a table. `stored`: bytes a value of frozen matrices inside layers, where they are
    dequantised before each use; 0 where they are not.
    """
    if how.whole:
        return rows
    frozen = [
        how.adapter != "none"
        or (tied and not how.table and _is_table(row))
        or any(FREEZES[part](block.name, row) for part in how.frozen)
        for row in rows
    ]
    found = apart(_Walk(block, how).rows(rows, frozen))
    return tuple(_quantised(row, block, stored) if stored else row for row in found)


def differentiated(sections: Mapping[str, tuple[Row, ...]]) -> dict[str, tuple[Row, ...]]:
    """The rows of every kind of layer and of both ends; marked, those that no backward pass runs through."""
    below = any(row.trained for row in sections["embedding"])
    layers = below or any(row.trained for name, them in sections.items() if _in_layer(name) for row in them)
    passes = {"embedding": below, "head": True}
    return {
        name: them if passes.get(name, layers) else tuple(replace(row, differentiated=False) for row in them)
        for name, them in sections.items()
    }


def gated(block: Block) -> bool:
    """Whether its feed-forward parts have a gate, if it has any."""
    return all(getattr(part, "gated", True) for part in block.parts)


def _quantised(row: Row, block: Block, stored: float) -> Row:
    """A frozen matrix that is dequantised before each use, one matrix of the checkpoint at a time."""
    if not isinstance(row, Linear) or row.trained or row.half:
        return row
    pieces = pieces_of(row, gated(block))
    fields = {name: getattr(row, name) for name in row.__dataclass_fields__}
    return Quantised(**fields, stored=stored, largest=pieces[0][1] or row.outs if pieces else row.outs)


class _Walk:
    """One pass over the rows of a block, which knows whose input is kept by nobody any more."""

    def __init__(self, block: Block, how: Training) -> None:
        self.how, self.has_gate = how, gated(block)
        named = (dimension for part in block.parts for dimension in part.dimensions().items())
        self.cuts = {name: piece.cut for name, pieces in named for piece in pieces if piece.cut != "none"}
        self.dropped: set[str] = set()
        self.core = False  # whether the output of an attention core has been kept by nobody yet

    def rows(self, rows: tuple[Row, ...], frozen: list[bool]) -> Iterator[Row]:
        """An input that a frozen matrix no longer keeps is kept by the next trained one that reads it too."""
        for row, still in zip(rows, frozen, strict=True):
            if isinstance(row, Linear):
                yield from self.linear(row, still)
            else:
                self.pass_by(row)
                yield replace(row, trained=not still)

    def pass_by(self, row: Row) -> None:
        """A norm makes a new tensor of its width; a core leaves its output to the row behind it.

        A residual ends nothing: it also stands between two parts that read one input.
        """
        if isinstance(row, Attention) or re.fullmatch(r"cross_attention(_\d+)?", row.name):
            self.core = True
        elif isinstance(row, Pointwise):
            if _is_norm(row):
                self.dropped.discard(row.width)
            if row.width == "o" and row.kernel.keeps:
                self.core = False

    def linear(self, row: Linear, still: bool) -> Iterator[Row]:
        """A matrix, and its adapters where it has some."""
        waits = OWN.get(row.tokens, row.waits) if row.waits in RELIES and row.ins in self.dropped else row.waits
        chosen = [piece for piece in pieces_of(row, self.has_gate) if piece[0] in self.how.targets]
        core = self.core and row.waits != "none"  # the core needs its output, whoever else does
        self.core &= not core
        if not still or chosen:
            self.dropped -= {row.ins} if waits != "none" else set()
        elif waits not in RELIES and row.tokens in OWN:
            self.dropped.add(row.ins)
        if not still:
            yield replace(row, waits=waits)
            return
        yield replace(row, trained=False, waits=row.waits if core else "none")
        yield from self.adapters(row, chosen, "none" if core else waits)

    def adapters(self, row: Linear, pieces: list[Piece], waits: str) -> Iterator[Row]:
        """A, the sum of its values where its input is cut, B, and a magnitude. The first A keeps the input.

        They stay in 16 bit: Megatron-Bridge, peft/utils.py, ParallelLinearAdapter is of Megatron-Core's own linears.
        """
        held = "R" if row.copies == "E" else row.tokens
        for place, (name, piece) in enumerate(pieces):
            outs, kept = piece or row.outs, waits if place == 0 else "none"
            yield Linear(f"{name}_a", row.tokens, row.ins, RANK, waits=kept, copies=row.copies, half=True)
            if row.ins in self.cuts:
                yield Move(f"sum_{name}_a", self.cuts[row.ins], held, RANK, "all_reduce", "two", "none")
            yield Linear(f"{name}_b", row.tokens, RANK, outs, waits=held, copies=row.copies, half=True)
            if self.how.adapter == "dora":
                yield Pointwise(f"{name}_magnitude", held, outs, SCALE, weights=outs, per=row.copies)
