"""Modules of a layer that selective recompute runs again, and what of the tape each of them frees.

A plain checkpoint (core_attn, mlp, moe, shared_experts) keeps the input and the output of its module, and drops what
lies between. The others discard their output too: it is computed again before the backward pass of what reads it.
Source: Megatron-Core, transformer_config.py, recompute_modules; tensor_parallel/random.py, CheckpointWithoutOutput.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..engines.engine import Engine, KernelSet
from ..engines.tables import kernel_set
from .blocks import rows as rows_of
from .model import Model
from .moves import Move
from .operations import Linear, Row
from .policies import POLICIES, Saved, policy
from .reads import is_silent, sources

NUMBER = re.compile(r"_\d+$")
OWN_NORM = ("q", "q_down", "router")  # matrices that no engine fuses the norm before them into


@dataclass(frozen=True)
class Module:
    """A module of a layer: which rows are its own, and whether their output is discarded too."""

    name: str
    rows: tuple[str, ...]  # their names, the number of a repeated one apart; or how they begin, with a `_`
    moves: tuple[str, ...]  # exchanges that run again with them
    discards: bool
    lacks: str  # what a model without it lacks
    beside: str = ""  # a row that a layer with this module has
    apart: bool = False  # each of its rows is a checkpoint by itself

    def has(self, name: str) -> bool:
        """Whether a row of this name is its own."""
        plain = NUMBER.sub("", name)
        return plain in self.rows or plain.startswith(tuple(each for each in self.rows if each.endswith("_")))


EXPERTS = (
    "router", "router_", "permute", "expert_", "unpermute", "latent_", "experts_bias", "shared_", "gated_shared",
)  # fmt: skip
EXCHANGES = ("dispatch", "dispatch_gather", "gather_experts", "scatter_experts", "combine", "combine_scatter")
SHARED = ("gather_shared", "scatter_shared")
MODULES = {
    module.name: module
    for module in (
        Module("core_attn", ("attention",), ("ring_kv", "swap_heads"), False, "attention"),
        Module("moe_act", ("expert_clamp", "expert_activation"), (), True, "experts"),
        Module("layernorm", ("input_norm", "post_norm"), (), True, "norms apart from matrices", apart=True),
        Module(
            "mla_up_proj", ("q_up", "q", "kv_up", "rotate"), ("gather_q", "gather_latent"), True,
            "latent attention (MLA)", "kv_up",
        ),
        Module("mlp", ("mlp_", "inner_norm"), ("gather_mlp", "scatter_mlp"), False, "dense feed-forward parts"),
        Module("moe", EXPERTS, (*EXCHANGES, *SHARED), False, "experts", "router"),
        Module("shared_experts", ("shared_", "gated_shared"), SHARED, False, "shared experts"),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Checkpoint:
    """Rows of a layer that run again together, and the rows whose inputs nobody keeps then."""

    name: str
    work: tuple[Row, ...]
    inside: tuple[Row, ...]  # those whose own tape is freed
    reads: tuple[Row, ...]
    moves: tuple[Move, ...]
    saved: tuple[Saved, ...] = ()  # outputs that are kept instead

    @property
    def linears(self) -> tuple[Linear, ...]:
        """The matrices among those whose inputs it frees."""
        return tuple(row for row in self.reads if isinstance(row, Linear))


def fused(rows: Sequence[Row], place: int) -> bool:
    """Whether a norm is one kernel with the matrix behind it, where an engine fuses them: then none runs by itself."""
    behind = rows[place + 1] if place + 1 < len(rows) else None
    return isinstance(behind, Linear) and NUMBER.sub("", behind.name) not in OWN_NORM


def places(module: Module, rows: Sequence[Row], fuses_norms: bool) -> Iterator[frozenset[int]]:
    """The checkpoints of a module in a layer, as places among its kernels; silent rows stand with the one before."""
    names = {NUMBER.sub("", row.name) for row in rows}
    if module.beside and module.beside not in names:
        return
    own = [place for place, row in enumerate(rows) if module.has(row.name)]
    if module.apart:
        yield from (frozenset({place}) for place in own if not (fuses_norms and fused(rows, place)))
    elif own:
        yield frozenset(own)


def checkpoints(rows: Sequence[Row], modules: Sequence[str], kernels: KernelSet) -> tuple[Checkpoint, ...]:
    """The checkpoints of some modules in one kind of layer; none where no backward pass runs through their rows."""
    work, moves = _apart(rows)
    kernel_rows = [own[0] for own in work]
    read = list(sources(kernel_rows))
    readers = [frozenset(at for at, source in enumerate(read) if place in source) for place in range(len(work))]
    found: list[Checkpoint] = []
    for name in (name for name in modules if name in POLICIES):
        how = policy(POLICIES[name], rows, kernels)
        again, inside, reads = (_passed(iter(them)) for them in (how.work, how.inside, how.reads))
        found.append(Checkpoint(name, again, inside, reads, how.moves, how.saved))
    for module in (MODULES[name] for name in modules if name in MODULES):
        for own in places(module, kernel_rows, kernels.fuses_norms):
            freed = {place for place in own if module.discards or readers[place] <= own}
            name = f"{module.name} {work[min(own)][0].name}" if module.apart else module.name
            again = _passed(row for place in sorted(own) for row in work[place])
            found.append(
                Checkpoint(
                    name,
                    again,
                    again,
                    _passed(kernel_rows[at] for at, source in enumerate(read) if max(source) in freed),
                    tuple(move for move in moves if move.name in module.moves and move.differentiated),
                )
            )
    return tuple(one for one in found if one.work)


def _passed(rows: Iterator[Row]) -> tuple[Row, ...]:
    return tuple(row for row in rows if row.differentiated)


def _apart(rows: Sequence[Row]) -> tuple[list[list[Row]], list[Move]]:
    """The kernels of a layer, each with the silent rows behind it; and its exchanges."""
    work: list[list[Row]] = []
    for row in rows:
        if not isinstance(row, Move):
            if work and is_silent(row):
                work[-1].append(row)
            else:
                work.append([row])
    return work, [row for row in rows if isinstance(row, Move)]


def usual_modules(model: Model, engine: Engine) -> tuple[str, ...]:
    """What an engine recomputes under `selective` unless told otherwise, if the model has it."""
    had = modules_of(model, kernel_set(engine.kernels))
    return tuple(name for name in engine.recompute_modules[:1] if name in had)


def other_modules(model: Model, engine: Engine) -> tuple[tuple[str, ...], ...]:
    """What an engine may recompute under `selective` instead: each module, and with each all that discard their output.

    Modules that hold one another are not together.
    """
    had = [name for name in modules_of(model, kernel_set(engine.kernels)) if name in engine.recompute_modules]
    cheap = tuple(name for name in MODULES if name in had and MODULES[name].discards)
    beside = [(*cheap, name) for name in had if name in MODULES and not MODULES[name].discards and name != "moe"]
    every = [*((name,) for name in had), cheap, *beside]
    return tuple(names for names in dict.fromkeys(every) if names and names != usual_modules(model, engine))


@lru_cache(maxsize=64)
def modules_of(model: Model, kernels: KernelSet) -> tuple[str, ...]:
    """The modules that some layer of a model has: norms also where an engine fuses them."""
    layers = [[own[0] for own in _apart(rows_of(model, block, kernels))[0]] for block in model.blocks]
    had = tuple(
        name
        for name, module in MODULES.items()
        if any(own for layer in layers for own in places(module, layer, fuses_norms=False))
    )
    return had + tuple(POLICIES)
