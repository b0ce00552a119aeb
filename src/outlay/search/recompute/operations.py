"""The rows of a layer as operations that may run again: what each keeps, what others keep of it, what it needs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...cluster.efficiency import Rates
from ...engines.engine import KernelSet
from ...engines.recipe import Recipe
from ...formula import where
from ...layer import LayerCosts
from ...layout.case import Case
from ...memory.ways import Operation
from ...model.modules import MODULES, places
from ...model.moves import Move
from ...model.operations import Attention, Linear, Row, Sizes
from ...model.parts.experts import ROUTED
from ...model.reads import INPUT, sources
from ...model.weights import input_spared

BEHIND = ("scatter_", "combine")  # exchanges of what came out of the row before them


@dataclass(frozen=True)
class Layer:
    """The operations of one kind of layer, who reads whose output, and what is kept whatever runs again."""

    name: str
    operations: tuple[Operation, ...]
    readers: tuple[frozenset[int], ...]
    kept: float  # bytes of the whole tape
    entry: float  # bytes of its input
    modules: Mapping[str, tuple[frozenset[int], ...]]  # those that it has, checkpoint by checkpoint
    unread: float = 0  # seconds of its forward pass that do not run again with the whole of it

    @property
    def reads(self) -> float:
        """Bytes of its input that its own backward pass reads."""
        return min(self.entry, max(0.0, self.kept - sum(operation.freed for operation in self.operations)))

    @property
    def forward(self) -> float:
        """Seconds of its forward pass."""
        return sum(operation.seconds for operation in self.operations)


@dataclass(frozen=True)
class Timed:
    """A row with the exchanges that run again with it, and what it keeps."""

    row: Row
    seconds: float
    reads: float  # bytes of its input that it keeps
    inside: float


def layer_of(
    costs: LayerCosts, rows: Sequence[Row], here: Sizes, case: Case, speed: Rates, kernels: KernelSet
) -> Layer:
    """One kind of layer on one rank."""
    timed = list(_timed(costs, rows, here, case, speed, kernels))
    own = [one.row for one in timed]
    read = list(sources(own))
    kept: dict[frozenset[int], float] = {}
    for one, source in zip(timed, read, strict=True):
        kept[source] = kept.get(source, 0.0) + one.reads
    outputs = [0.0] * len(timed)
    together: list[set[int]] = [set() for _ in timed]
    for source, size in kept.items():
        if size > 0 and INPUT not in source:
            outputs[max(source)] += size
            together[max(source)] |= source - {max(source)}
    made = tuple(
        Operation(
            one.row.name,
            one.seconds,
            one.inside,
            outputs[place],
            tuple(sorted(together[place] | (set() if kept[source] > 0 else source - {INPUT}))),
        )
        for place, (one, source) in enumerate(zip(timed, read, strict=True))
    )
    readers = tuple(frozenset(at for at, source in enumerate(read) if place in source) for place in range(len(timed)))
    modules = {name: tuple(places(module, own, kernels.fuses_norms)) for name, module in MODULES.items()}
    return Layer(
        costs.name,
        made,
        readers,
        float(costs.kept),
        float(costs.entry),
        modules,
        float(costs.forward - costs.whole_again),
    )


def _timed(
    costs: LayerCosts, rows: Sequence[Row], here: Sizes, case: Case, speed: Rates, kernels: KernelSet
) -> Iterator[Timed]:
    """The kernels, each with its exchanges: before it, or behind it. What the host takes stands at the router."""
    shown = {
        "tp": float(case.tensor_shown),
        "ep": float(where(case.layout.overlap_ep, 1 - case.engine.ep_hidden, 1)),
    }
    host = float(costs.forward) - sum(float(row.forward(here, speed)) for row in rows if not isinstance(row, Move))
    waiting, found = 0.0, list[Timed]()
    ring = float(costs.context_forward)
    for row in rows:
        if isinstance(row, Move):
            taken = 0.0 if row.axis == "cp" else float(row.time_forward(here, case.cluster))
            taken *= shown.get(row.axis, 1.0)
            if found and (row.name.startswith(BEHIND) or (kernels.keeps_gathered and row.axis == "tp")):
                found[-1] = replace(found[-1], seconds=found[-1].seconds + taken)
            else:
                waiting += taken
            continue
        own = float(row.forward(here, speed))
        if found and not own:  # no kernel of its own: what it keeps, the one before keeps
            found[-1] = replace(found[-1], inside=found[-1].inside + float(row.kept(here)))
            continue
        own += waiting + (host if row.name == ROUTED else 0.0)
        if isinstance(row, Attention):
            own, ring = own + ring, 0.0
        found.append(Timed(row, own, *_split(row, here, case.recipe)))
        waiting = 0.0
    yield from found


def _split(row: Row, here: Sizes, recipe: Recipe) -> tuple[float, float]:
    """What a row keeps: of its input, and beside it."""
    if not row.differentiated:
        return 0.0, 0.0
    spared = input_spared(row, here, recipe.spares, recipe.output_again) if isinstance(row, Linear) else 0
    return float(row.kept_input(here) - spared), float(row.kept_inside(here))
