"""What of a model is trained: everything, some parts, or adapters beside frozen matrices.

A frozen matrix keeps its weight alone: no gradient, no optimizer state, and its input does not wait for backward. An
adapter is two more rows, A from the input to `rank` values and B from there to the output. Source: Hu et al. 2021.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ..engines.engine import Kernel
from .operations import Linear, Move, Pointwise, Row

RANK = "adapter_rank"  # the dimension between A and B
CUT_INPUTS = ("o", "ffn", "shared", "inner")  # inputs that tensor parallelism cuts, so that A's output is summed

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
    return isinstance(row, Pointwise) and row.name.endswith("norm")


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


def named_targets(words: Iterable[str]) -> frozenset[str]:
    """The matrices that some words name: those of a group, or one itself."""
    return frozenset(name for word in words for name in TARGETS.get(word, (word,)))


def pieces_of(row: Row, gated: bool) -> tuple[Piece, ...]:
    """The matrices inside a row that adapters may stand beside; an up projection is one where there is no gate."""
    found = PIECES.get(row.name, ())
    return found[1:] if row.name.endswith("_up") and len(found) == 2 and not gated else found


def trained_rows(section: str, rows: tuple[Row, ...], how: Training, gated: bool = True) -> tuple[Row, ...]:
    """The rows of a kind of layer, or of an end: frozen ones marked, and those of the adapters behind them."""
    if how.whole:
        return rows
    frozen = [how.adapter != "none" or any(FREEZES[part](section, row) for part in how.frozen) for row in rows]
    return tuple(_walk(rows, frozen, how, gated))


def _walk(rows: tuple[Row, ...], frozen: list[bool], how: Training, gated: bool) -> Iterator[Row]:
    """An input that a frozen matrix no longer keeps is kept by the next one that is trained and reads it too."""
    dropped: dict[str, str] = {}
    for row, still in zip(rows, frozen, strict=True):
        if not isinstance(row, Linear):
            yield replace(row, trained=not still)
            continue
        waits = dropped.pop(row.ins, row.waits) if row.waits == "none" else row.waits
        chosen = [piece for piece in pieces_of(row, gated) if piece[0] in how.targets]
        if still:
            core = row.ins == "o"  # the attention core needs its output, whoever else does
            yield replace(row, trained=False, waits=row.waits if core else "none")
            if chosen:
                yield from _adapters(row, chosen, "none" if core else waits, how.adapter == "dora")
            elif waits != "none":
                dropped[row.ins] = waits
        else:
            yield replace(row, waits=waits)


def _adapters(row: Linear, pieces: list[Piece], waits: str, decomposed: bool) -> Iterator[Row]:
    held = "R" if row.copies == "E" else row.tokens
    for place, (name, piece) in enumerate(pieces):
        outs = piece or row.outs
        yield Linear(f"{name}_a", row.tokens, row.ins, RANK, waits=waits if place == 0 else "none", copies=row.copies)
        if row.ins in CUT_INPUTS:
            yield Move(f"sum_{name}_a", "tp", row.tokens, RANK, times="two", times_back="none")
        yield Linear(f"{name}_b", row.tokens, RANK, outs, waits=held, copies=row.copies)
        if decomposed:
            magnitude = Kernel(moves=2, moves_back=3, keeps=1)
            yield Pointwise(f"{name}_magnitude", held, outs, magnitude, weights=outs, per=row.copies)
